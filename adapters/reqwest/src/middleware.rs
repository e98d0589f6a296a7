//! Sends the attempts of a request, as the operation decides.

use async_trait::async_trait;
use http::Extensions;
use paceline::{
    Class, Failure, Idempotency, Operation, RetryStrategy,
    classify::may_fail_late,
    operation::{OuterAttempt, Verdict, Waiter, within_async},
    set::Weights,
    strategy::Reports,
    wait::DefaultSleep,
};
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Middleware, Next, Result};

use crate::{BodyNotRepeatable, DeadlinePassed, OneShotBody, Pacing, pacing::Judged};

#[async_trait]
impl Middleware for Pacing {
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        if self.one_shot == OneShotBody::Refuse && is_one_shot(&request) {
            return Err(Error::middleware(BodyNotRepeatable));
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
        let class = extensions.get::<Class>().copied();
        operation = operation.class(class.unwrap_or_default());
        operation = self.bounds.apply(operation);
        // The attempt of a loop in another task. A loop in this task is found without the
        // extension.
        let carried = extensions.get::<OuterAttempt>().copied();
        let mut attempts = operation.inside(carried).start();
        let mut waiter = Waiter::new(DefaultSleep::new());
        // The answer that the caller gets if no other follows.
        let mut last: Option<Result<Response>> = None;
        loop {
            let attempt = match waiter.next(&mut attempts, clock).await {
                Ok(attempt) => attempt,
                Err(stop) => {
                    let Some(Ok(mut response)) = last else {
                        return last.unwrap_or_else(|| Err(Error::middleware(stop)));
                    };
                    response.extensions_mut().insert(stop);
                    return Ok(response);
                }
            };
            // The last attempt needs no copy.
            let copy = (!attempt.is_last()).then(|| request.try_clone()).flatten();
            attempts.set_repeatable(copy.is_some() || attempt.is_last());
            let outer = attempts.outer();
            if self.marks {
                extensions.insert(attempt);
                outer.map(|outer| extensions.insert(outer));
            }
            if let Some(header) = self.tells {
                header.tell(&attempt, request.headers_mut());
            }
            let begun = clock.now();
            let left = || {
                let limit = attempt.time_limit()?;
                Some(limit.saturating_sub(clock.now().saturating_since(begun)))
            };
            let query = request.url().query();
            let may_fail_late = may_fail_late(request.method(), query, request.headers());
            let sending = async {
                let result = next.clone().run(request, extensions).await;
                self.judge(&*strategy, result, may_fail_late, left).await
            };
            let sending = within_async(outer, sending);
            let sent = waiter.cut_off(attempt.time_limit(), sending).await;
            let judged = sent.unwrap_or_else(|| {
                let cut_off = DeadlinePassed::new(attempts.name());
                Judged::failed(Error::middleware(cut_off), Failure::timeout())
            });
            // The block drops the reports before the next wait.
            let (mut result, is_whole, verdict) = {
                let (mut result, costs) = (judged.answer, judged.costs);
                let mut reports = Reports::at(clock).declaring(&judged.limits);
                if let Some(costs) = &costs {
                    reports = reports.costing(costs);
                }
                let Some(failure) = judged.failure else {
                    if let Some(span) = judged.pause {
                        reports = reports.pausing(span);
                    }
                    if let (Some(_), None, Ok(response)) = (weights, &costs, &mut result) {
                        // The cost may stand in the body, which the caller reads.
                        if let Some(charge) = attempts.charge() {
                            response.extensions_mut().insert(charge);
                        }
                    }
                    attempts.succeeded(reports).map_err(Error::middleware)?;
                    return result;
                };
                let verdict = attempts.failed(&failure, reports);
                (result, judged.is_whole, verdict)
            };
            match (verdict.map_err(Error::middleware)?, copy) {
                (Verdict::Again(_), Some(copy)) => {
                    request = copy;
                    // A response that was not read whole holds its connection.
                    last = Some(result).filter(|_| is_whole || self.bounds.deadline.is_some());
                }
                (Verdict::Stop(stop), _) => {
                    let delay = stop.delay();
                    if let Ok(response) = &mut result {
                        response.extensions_mut().insert(stop);
                    }
                    waiter.sleep(delay).await;
                    return result;
                }
                _ => return result,
            }
        }
    }
}

/// Returns what the user set for this request, or else what its method, query and headers say.
fn idempotency(request: &Request, extensions: &Extensions) -> Idempotency {
    let said = extensions.get::<Idempotency>().copied();
    let (method, query) = (request.method(), request.url().query());
    said.unwrap_or_else(|| Idempotency::of_parts(method, query, request.headers()))
}

fn is_one_shot(request: &Request) -> bool {
    request.body().is_some_and(|body| body.as_bytes().is_none())
}
