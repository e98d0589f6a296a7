//! Sending, attempt by attempt, as the operation says.

use async_trait::async_trait;
use http::Extensions;
use paceline::{
    Failure, Idempotency, Operation, RetryStrategy as _,
    operation::{StopReason, Verdict, Waiter},
    set::Weights,
    strategy::Reports,
    wait::DefaultSleep,
};
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Middleware, Next, Result};

use crate::{BodyNotRepeatable, DeadlinePassed, OneShotBody, Pacing};

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
        let (strategy, scope) = (self.choose(&request), self.scope_of(&request));
        let clock = strategy.clock();
        let idempotency = idempotency(&request, extensions);
        let mut operation = Operation::new(&*strategy).idempotency(idempotency);
        if let Some(scope) = &scope {
            operation = operation.scope(scope);
        }
        let weights = extensions.get::<Weights>().copied();
        if let Some(weights) = weights {
            operation = operation.weights(weights);
        }
        if let Some(span) = self.deadline {
            operation = operation.deadline(span);
        }
        if let Some(span) = self.max_retry_after {
            operation = operation.max_retry_after(span);
        }
        let mut attempts = operation.start();
        let mut waiter = Waiter::new(DefaultSleep::new());
        loop {
            let attempt = waiter.next(&mut attempts, clock).await;
            let attempt = attempt.map_err(Error::middleware)?;
            // The last attempt spares itself the copy.
            let copy = (!attempt.is_last()).then(|| request.try_clone()).flatten();
            attempts.set_repeatable(copy.is_some() || attempt.is_last());
            let sending = next.clone().run(request, extensions);
            let sent = waiter.cut_off(attempt.time_limit(), sending).await;
            let (mut result, failure) = match sent {
                Some(result) => {
                    let failure = self.classify(&result);
                    (result, failure)
                }
                None => (
                    Err(Error::middleware(DeadlinePassed)),
                    Some(Failure::timeout()),
                ),
            };
            let verdict = {
                let limits = self.limits(&*strategy, &result);
                let costs = self.costs(&result);
                let mut reports = Reports::at(clock).declaring(&limits);
                if let Some(costs) = &costs {
                    reports = reports.costing(costs);
                }
                let Some(failure) = failure else {
                    if let (Some(_), None, Ok(response)) = (weights, &costs, &mut result) {
                        // The cost may stand in the body, which the caller reads.
                        if let Some(charge) = attempts.charge() {
                            response.extensions_mut().insert(charge);
                        }
                    }
                    attempts.succeeded(reports).map_err(Error::middleware)?;
                    return result;
                };
                attempts.failed(&failure, reports)
            };
            match (verdict.map_err(Error::middleware)?, copy) {
                (Verdict::Again(_), Some(copy)) => request = copy,
                (Verdict::Stop(stop), _) => {
                    waiter.sleep(stop.delay()).await;
                    let once = stop.why() == StopReason::NotRepeatable;
                    return if once && self.one_shot == OneShotBody::SendOnce {
                        Err(Error::middleware(BodyNotRepeatable::after(result)))
                    } else {
                        result
                    };
                }
                _ => return result,
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
