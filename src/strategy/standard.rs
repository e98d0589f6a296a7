//! Standard mode: a retry quota, and no say in when a first attempt is sent.

use core::fmt;

use super::{
    builder::StrategyBuilder,
    costs::RetryCosts,
    engine::{Engine, Weighed},
    failure::Failure,
    refusal::{ForeignToken, InitialTokenRefused, RetryRefused},
    reports::Reports,
    retry_strategy::RetryStrategy,
    settings::Settings,
    snapshot::StrategySnapshot,
    token::{RetryToken, StrategyId},
};
use crate::{Clock, RetryQuota};

/// The standard mode of the AWS SDKs: backoff with full jitter, and a quota that ends retries when
/// too many fail.
///
/// It holds back no first attempt. An operation that succeeds at once writes nothing that is shared
/// while the quota is full. One strategy belongs to one client: make it once, share it by reference
/// or `Arc`.
///
/// # Examples
///
/// ```
/// use paceline::{Failure, RetryStrategyExt, Standard, operation::StopReason};
///
/// let strategy = Standard::new();
/// let answer = strategy.run(|_| Ok::<_, Failure>(42));
/// assert_eq!(answer.unwrap(), 42);
///
/// let stopped = strategy.run(|_| Err::<(), _>(Failure::not_retryable())).unwrap_err();
/// assert_eq!((stopped.why(), stopped.attempts()), (StopReason::NotRetryable, 1));
/// ```
pub struct Standard {
    pub(super) engine: Engine,
}

impl Standard {
    /// Creates the strategy with the defaults in [`Settings`].
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build_checked()
    }

    /// Starts from the defaults in [`Settings`].
    pub fn builder() -> StrategyBuilder<Self> {
        StrategyBuilder::new()
    }

    pub(super) const fn from_engine(engine: Engine) -> Self {
        Self { engine }
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        self.engine.settings()
    }

    /// Returns the quota that retries are paid from.
    #[must_use]
    pub fn quota(&self) -> &RetryQuota {
        &self.engine.quota
    }

    /// Returns what retries cost.
    #[must_use]
    pub fn costs(&self) -> RetryCosts {
        self.engine.common.costs
    }
}

impl fmt::Debug for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standard")
            .field("max_attempts", &self.settings().max_attempts())
            .field("quota", &self.snapshot().quota.available)
            .finish_non_exhaustive()
    }
}

impl Default for Standard {
    fn default() -> Self {
        Self::new()
    }
}

impl RetryStrategy for Standard {
    fn acquire_initial_token(
        &self,
        _scope: Option<&str>,
    ) -> Result<RetryToken, InitialTokenRefused> {
        Ok(self.engine.initial_token())
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        failure: &Failure,
        _reports: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        let token = self.engine.id().check(token)?;
        self.engine.refresh(token, failure, Weighed::Counts)
    }

    #[inline]
    fn record_success(
        &self,
        mut token: RetryToken,
        _reports: Reports<'_>,
    ) -> Result<(), ForeignToken> {
        if token.strategy() != self.engine.id() {
            return Err(ForeignToken(token));
        }
        let paid = token.take_paid();
        drop(token);
        self.engine.succeed(paid);
        Ok(())
    }

    fn record_cancelled(
        &self,
        token: RetryToken,
        _reports: Reports<'_>,
    ) -> Result<(), ForeignToken> {
        self.engine.give_back(&mut self.engine.id().check(token)?);
        Ok(())
    }

    fn snapshot(&self) -> StrategySnapshot {
        self.engine.snapshot()
    }

    fn clock(&self) -> &dyn Clock {
        &*self.engine.common.clock
    }

    fn id(&self) -> Option<StrategyId> {
        Some(self.engine.id())
    }

    fn is_idle(&self) -> bool {
        self.engine.is_idle()
    }
}
