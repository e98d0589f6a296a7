//! Legacy mode: plain backoff and nothing else, as before there were quotas.

use alloc::sync::Arc;
use core::{fmt, num::NonZeroU32, time::Duration};

use super::{
    choices::MAX_BACKOFF,
    engine::{out_of_time, permit},
    failure::Failure,
    refusal::{InitialTokenRefused, RetryRefused, StopReason},
    reports::Reports,
    retry_strategy::RetryStrategy,
    token::{ForeignToken, RetryToken, StrategyId},
};
use crate::{
    backoff::{BackoffStrategy, ExponentialBackoff},
    random::{Random, ThreadRandom},
};

const MAX_ATTEMPTS: u32 = 5;
const BASE_DELAY: Duration = Duration::from_secs(1);

/// The mode before there were modes: five sends, full-jitter backoff, no quota and no send rate.
///
/// It is for comparison, and for callers that depend on it. It keeps retrying at full rate, however
/// many operations fail. The SDKs never agreed on this mode. Its rules come from:
///
/// | rule | source |
/// |---|---|
/// | five sends | botocore's legacy mode (its DynamoDB clients: ten); Java's has four |
/// | `b × 1 s × 2^(retry − 1)`, the same for every failure | botocore's legacy mode; Java's starts at 100 ms, and at 500 ms with equal jitter after throttling |
/// | cap of 20 s | Java; botocore's has none |
/// | no quota | botocore; Java's has one that throttling does not touch |
/// | hints are ignored | botocore |
/// | connection dropped after a transient error | as generation 2.0 |
///
/// # Examples
///
/// ```
/// use std::num::NonZeroU32;
/// use paceline::{Legacy, RetryStrategy};
///
/// let token = Legacy::new().acquire_initial_token(None).unwrap();
/// assert_eq!(token.max_attempts(), Some(5));
/// let one = Legacy::new().max_attempts(NonZeroU32::MIN).acquire_initial_token(None);
/// assert_eq!(one.unwrap().max_attempts(), Some(1));
/// ```
pub struct Legacy {
    id: StrategyId,
    max_attempts: u32,
    random: Arc<dyn Random>,
}

impl Legacy {
    const BACKOFF: ExponentialBackoff = ExponentialBackoff::new(BASE_DELAY, MAX_BACKOFF);

    /// Creates the strategy with five sends.
    #[must_use]
    pub fn new() -> Self {
        Self {
            id: StrategyId::new(),
            max_attempts: MAX_ATTEMPTS,
            random: Arc::new(ThreadRandom),
        }
    }

    /// Sends an operation at most `sends` times, the first time included.
    #[must_use]
    pub fn max_attempts(mut self, sends: NonZeroU32) -> Self {
        self.max_attempts = sends.get();
        self
    }

    /// Draws jitter from `random` in place of the random numbers of the thread.
    #[must_use]
    pub fn random(mut self, random: Arc<dyn Random>) -> Self {
        self.random = random;
        self
    }
}

impl fmt::Debug for Legacy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Legacy")
            .field("max_attempts", &self.max_attempts)
            .finish_non_exhaustive()
    }
}

impl RetryStrategy for Legacy {
    fn acquire_initial_token(
        &self,
        _scope: Option<&str>,
    ) -> Result<RetryToken, InitialTokenRefused> {
        Ok(RetryToken::new(self.id).with_attempt(1, Some(self.max_attempts)))
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        failure: &Failure,
        _reports: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        let token = self.id.check(token)?;
        let refused = RetryRefused::new;
        permit(&token, failure)?;
        let (attempt, max) = (token.attempt(), self.max_attempts);
        if attempt >= max {
            return Err(refused(StopReason::MaxAttempts { max }));
        }
        let random = self.random.next_u64();
        let delay = Self::BACKOFF.delay(attempt, failure.is_throttle(), random);
        if let Some(reason) = out_of_time(delay, token.time_left()) {
            return Err(refused(reason).with_backoff(delay));
        }
        Ok(token
            .with_attempt(attempt.saturating_add(1), Some(max))
            .with_delay(delay))
    }

    fn record_success(&self, token: RetryToken, _reports: Reports<'_>) -> Result<(), ForeignToken> {
        self.id.check(token).map(drop)
    }

    fn id(&self) -> Option<StrategyId> {
        Some(self.id)
    }

    /// The strategy has no state to lose.
    fn is_idle(&self) -> bool {
        true
    }
}
