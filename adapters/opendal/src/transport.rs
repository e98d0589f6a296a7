//! The transport in which requests wait for their turn, and are sent again.

use alloc::sync::Arc;

use http::{Request, Response};
use opendal_core::{Buffer, Error, ErrorKind, HttpBody, HttpTransport, HttpTransporter, Result};
use paceline::{Failure, HttpAnswer, Idempotency, RetryStrategyExt as _, SendRefused};

use crate::layer::Settings;

pub(crate) struct Paced {
    pub(crate) settings: Arc<Settings>,
    pub(crate) inner: HttpTransporter,
}

/// What came of an attempt that did not succeed.
enum Unwell {
    Answered(Failure, Response<HttpBody>),
    Failed(Error),
}

impl Paced {
    async fn send(
        &self,
        request: Request<Buffer>,
    ) -> core::result::Result<Response<HttpBody>, Unwell> {
        let response = self.inner.fetch(request).await.map_err(Unwell::Failed)?;
        let answer = HttpAnswer::of(&response);
        match self.settings.answers.classify(&answer) {
            None => Ok(response),
            Some(failure) => Err(Unwell::Answered(failure, response)),
        }
    }
}

impl HttpTransport for Paced {
    async fn fetch(&self, request: Request<Buffer>) -> Result<Response<HttpBody>> {
        let strategy = self.settings.strategy(&request);
        let idempotency = Idempotency::of_method(request.method(), request.headers());
        let operation = strategy.operation().idempotency(idempotency);
        let send = |_| self.send(request.clone());
        match operation.run_async_with(classify, send).await {
            Ok(response) => Ok(response),
            Err(stopped) => {
                let wait = stopped.wait();
                match stopped.into_error() {
                    Some(Unwell::Answered(_, response)) => Ok(response),
                    Some(Unwell::Failed(error)) => Err(error),
                    None => Err(refused(wait)),
                }
            }
        }
    }
}

fn classify(unwell: &Unwell) -> Failure {
    match unwell {
        Unwell::Answered(failure, _) => *failure,
        Unwell::Failed(error) if error.kind() == ErrorKind::RateLimited => Failure::throttling(),
        Unwell::Failed(error) if error.is_temporary() => Failure::transient(),
        Unwell::Failed(_) => Failure::not_retryable(),
    }
}

/// The strategy refused to wait, so nothing was sent.
fn refused(wait: core::time::Duration) -> Error {
    Error::new(ErrorKind::RateLimited, "the send rate asks for a wait")
        .with_operation("paceline::send_turn")
        .set_source(SendRefused { wait })
        .set_temporary()
}
