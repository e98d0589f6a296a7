//! One scope as a strategy, for hosts that choose a strategy for each request.

use alloc::sync::Arc;

use paceline::{
    Clock, Failure, RetryStrategy, RetryToken, SendPermit,
    strategy::{
        ForeignToken, InitialTokenRefused, NotAdmitted, Reports, RetryRefused, SendRequest,
        SendTurn,
    },
};

use crate::Strategy;

#[derive(Debug)]
struct Named(Strategy, &'static str);

/// Returns `strategy` with all operations on `scope`.
#[must_use]
pub fn on(strategy: &Strategy, scope: &'static str) -> Arc<dyn RetryStrategy> {
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
}
