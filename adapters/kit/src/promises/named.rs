//! One scope as a strategy, for hosts that choose a strategy for each request.

use alloc::sync::Arc;

use paceline::{
    Clock, Failure, RetryStrategy, RetryToken, SendPermit,
    snapshot::StrategySnapshot,
    strategy::{
        AttemptCharge, Event, ForeignToken, InitialTokenRefused, NotAdmitted, Reports,
        RetryRefused, SendRequest, SendTurn, StrategyId,
    },
};

use super::Strategy;

#[derive(Debug)]
struct Named(Strategy, &'static str);

/// Returns `strategy` with all operations on `scope`.
pub(super) fn on(strategy: &Strategy, scope: &'static str) -> Arc<dyn RetryStrategy> {
    Arc::new(Named(strategy.clone(), scope))
}

impl RetryStrategy for Named {
    fn acquire_initial_token(&self, _: Option<&str>) -> Result<RetryToken, InitialTokenRefused> {
        self.0.acquire_initial_token(Some(self.1))
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        failure: &Failure,
        reports: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        self.0.refresh_retry_token(token, failure, reports)
    }

    fn record_success(&self, token: RetryToken, reports: Reports<'_>) -> Result<(), ForeignToken> {
        self.0.record_success(token, reports)
    }

    fn record_cancelled(
        &self,
        token: RetryToken,
        reports: Reports<'_>,
    ) -> Result<(), ForeignToken> {
        self.0.record_cancelled(token, reports)
    }

    fn observe(&self, token: &RetryToken, reports: Reports<'_>) {
        self.0.observe(token, reports);
    }

    fn charge(&self, token: &RetryToken) -> Option<AttemptCharge> {
        self.0.charge(token)
    }

    fn obeys_limits(&self) -> bool {
        self.0.obeys_limits()
    }

    fn admit(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
    ) -> Result<SendPermit, NotAdmitted> {
        self.0.admit(turn, request)
    }

    fn clock(&self) -> &dyn Clock {
        self.0.clock()
    }
    fn id(&self) -> Option<StrategyId> {
        self.0.id()
    }

    fn name(&self, token: Option<&RetryToken>) -> Option<Arc<str>> {
        self.0.name(token)
    }

    fn notify(&self, event: &Event<'_>) {
        self.0.notify(event);
    }

    fn snapshot(&self) -> StrategySnapshot {
        self.0.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use paceline::{
        Adaptive, Operation,
        operation::{Next, Verdict},
    };

    use super::*;

    #[test]
    fn its_events_have_the_name_of_the_scope() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hook = {
            let heard = Arc::clone(&heard);
            move |event: &Event<'_>| heard.lock().unwrap().push(event.to_string())
        };
        let scopes = Adaptive::builder()
            .law(paceline::ControlLaw::Aws)
            .on_event(hook)
            .scopes()
            .build();
        let strategy = on(&Arc::new(scopes.unwrap()), "hot");
        let clock = strategy.clock();
        let mut attempts = Operation::new(&strategy).start();
        assert!(matches!(attempts.next(clock, None), Next::Send(_)));
        let verdict = attempts.failed(&Failure::not_retryable(), Reports::at(clock));
        assert!(matches!(verdict, Ok(Verdict::Stop(_))));
        let heard = heard.lock().unwrap();
        let last = "hot: gave up: attempts 1, the failure is not retryable, error; not retryable";
        assert_eq!(heard.last().unwrap(), last);
    }
}
