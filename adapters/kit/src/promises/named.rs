//! One scope as a strategy, for hosts that choose a strategy for each request.

use alloc::sync::Arc;

use paceline::{
    Failure, RetryStrategy, RetryToken,
    strategy::{ForeignToken, InitialTokenRefused, Reports, RetryRefused},
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

    fn inside(&self) -> Option<&dyn RetryStrategy> {
        Some(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use paceline::{
        Adaptive, Operation,
        operation::{Next, Verdict},
        strategy::Event,
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
