//! The transport in which requests wait for their turn, and are sent again.

use alloc::sync::Arc;

use http::{Request, Response};
use opendal_core::{Buffer, Error, ErrorKind, HttpBody, HttpTransport, HttpTransporter, Result};
use paceline::{
    Failure, Idempotency, Operation,
    classify::HttpResponseParts,
    operation::{Attempt, Stop},
};

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
        let answer = HttpResponseParts::of(&response);
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
        let mut operation = Operation::new(&*strategy).idempotency(idempotency);
        if let Some(span) = self.settings.deadline {
            operation = operation.deadline(span);
        }
        if let Some(span) = self.settings.max_retry_after {
            operation = operation.max_retry_after(span);
        }
        let operation = operation.inside(request.extensions().get().copied());
        let send = |attempt: Attempt| {
            let mut request = request.clone();
            if let Some(header) = self.settings.tells {
                header.tell(&attempt, request.headers_mut());
            }
            self.send(request)
        };
        match operation.run_async_with(classify, send).await {
            Ok(response) => Ok(response),
            Err(stopped) => match stopped.into_error() {
                Ok(Unwell::Answered(_, response)) => Ok(response),
                Ok(Unwell::Failed(error)) => Err(error),
                Err(stop) => Err(refused(stop)),
            },
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

/// Nothing was sent, or an attempt was cut off.
fn refused(stop: Stop) -> Error {
    Error::new(ErrorKind::RateLimited, "paceline stopped the request")
        .with_operation("paceline")
        .set_source(stop)
        .set_temporary()
}
