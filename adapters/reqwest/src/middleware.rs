//! The loop of sends.

use async_trait::async_trait;
use http::Extensions;
use paceline::Idempotency;
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Middleware, Next, Result};

use crate::{
    BodyNotRepeatable, OneShotBody, Pacing,
    operation::{Operation, Verdict, pause},
};

#[async_trait]
impl Middleware for Pacing {
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        if self.one_shot == OneShotBody::Refuse && is_one_shot(&request) {
            return Err(Error::middleware(BodyNotRepeatable::not_sent()));
        }
        let mut operation = Operation::begin(
            self.choose(&request),
            idempotency(&request, extensions),
            self.deadline,
        );
        loop {
            operation.wait().await.map_err(Error::middleware)?;
            // The last attempt spares itself the copy.
            let may_retry = operation.may_retry();
            let copy = if may_retry { request.try_clone() } else { None };
            let answer = next.clone().run(request, extensions).await;
            let Some(failure) = self.classify(&answer) else {
                operation.succeed();
                return answer;
            };
            match (operation.fail(&failure, copy.is_some() || !may_retry), copy) {
                (Verdict::Retry, Some(copy)) => request = copy,
                (Verdict::OneShot, _) if self.one_shot == OneShotBody::SendOnce => {
                    return Err(Error::middleware(BodyNotRepeatable::after(answer)));
                }
                (Verdict::Stop(delay), _) => {
                    pause(delay).await;
                    return answer;
                }
                (Verdict::OneShot | Verdict::Retry, _) => return answer,
            }
        }
    }
}

/// What the user says of this request, else what its method and headers say.
fn idempotency(request: &Request, extensions: &Extensions) -> Idempotency {
    let said = extensions.get::<Idempotency>().copied();
    said.unwrap_or_else(|| Idempotency::of_method(request.method(), request.headers()))
}

fn is_one_shot(request: &Request) -> bool {
    request.body().is_some_and(|body| body.as_bytes().is_none())
}
