//! Legacy mode: plain backoff and nothing else, as before there were quotas.

use alloc::sync::Arc;
use core::{fmt, time::Duration};

use super::{
    choices::{Choices, MAX_BACKOFF, choose},
    engine::{out_of_time, permit},
    failure::Failure,
    refusal::{InitialTokenRefused, RetryRefused, StopReason},
    reports::Reports,
    retry_strategy::RetryStrategy,
    settings::{MaybePolicy, SettingsError},
    token::{ForeignToken, RetryToken, StrategyId},
};
use crate::{
    backoff::{BackoffStrategy, ExponentialBackoff, Jitter},
    random::{Random, ThreadRandom},
};

const MAX_ATTEMPTS: u32 = 5;
const BASE_DELAY: Duration = Duration::from_secs(1);

/// The mode before there were modes: five sends, full-jitter backoff, no quota and no send rate.
///
/// For comparison, and for callers that depend on it: it keeps retrying at full rate however many
/// operations fail. The SDKs never agreed on it. These rules are taken from:
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
/// use paceline::{Legacy, RetryStrategy};
///
/// let token = Legacy::new().acquire_initial_token(None).unwrap();
/// assert_eq!(token.max_attempts(), Some(5));
/// let ten = Legacy::builder().max_attempts(10).build()?;
/// assert_eq!(ten.max_attempts(), 10);
/// # Ok::<(), paceline::config::SettingsError>(())
/// ```
pub struct Legacy {
    id: StrategyId,
    max_attempts: u32,
    maybe_policy: MaybePolicy,
    backoff: Arc<dyn BackoffStrategy>,
    random: Arc<dyn Random>,
}

impl Legacy {
    /// Creates the strategy with five sends.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build_checked()
    }

    /// Starts from five sends.
    pub fn builder() -> LegacyBuilder {
        LegacyBuilder(Choices::default())
    }

    /// Returns the most sends that an operation may make, the first one included.
    #[must_use]
    pub const fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// Returns how failures are handled that may or may not be safe to retry.
    #[must_use]
    pub const fn maybe_policy(&self) -> MaybePolicy {
        self.maybe_policy
    }

    /// Returns the rule for delays.
    #[must_use]
    pub fn backoff(&self) -> &dyn BackoffStrategy {
        &*self.backoff
    }
}

impl Default for Legacy {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Legacy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Legacy")
            .field("max_attempts", &self.max_attempts)
            .field("maybe_policy", &self.maybe_policy)
            .field("backoff", &self.backoff)
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
        permit(self.maybe_policy, &token, failure)?;
        let (attempt, max) = (token.attempt(), self.max_attempts);
        if attempt >= max {
            return Err(refused(StopReason::MaxAttempts { max }));
        }
        let random = self.random.next_u64();
        let (rule, throttle) = (&self.backoff, failure.is_throttle());
        let delay = rule.delay_after(attempt, throttle, random, token.backoff());
        if let Some(reason) = out_of_time(delay, token.time_left()) {
            return Err(refused(reason).with_backoff(delay));
        }
        Ok(token
            .with_attempt(attempt.saturating_add(1), Some(max))
            .with_delay(delay)
            .with_backoff(delay))
    }

    fn record_success(&self, token: RetryToken, _reports: Reports<'_>) -> Result<(), ForeignToken> {
        self.id.check(token).map(drop)
    }

    fn id(&self) -> Option<StrategyId> {
        Some(self.id)
    }

    /// There is nothing to lose.
    fn is_idle(&self) -> bool {
        true
    }
}

/// Builds a [`Legacy`] strategy.
#[derive(Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct LegacyBuilder(Choices);

impl LegacyBuilder {
    choose! {
        0:
        /// Sends an operation at most `sends` times, the first time included. 0 is an error at `build`.
        max_attempts(sends: u32);

        /// Sets how failures are handled that may or may not be safe to retry.
        maybe_policy(policy: MaybePolicy);

        /// Uses `backoff` in place of an [`ExponentialBackoff`] of 1 s, capped at 20 s.
        backoff(backoff: Arc<dyn BackoffStrategy>);

        /// Replaces the kind of jitter of the built-in backoff, which is [`Jitter::Full`].
        jitter(jitter: Jitter);

        /// Lets no built-in backoff after throttling be shorter, though jitter would have it. Zero by
        /// default, at most 20 s.
        ///
        /// [`ExponentialBackoff::with_throttling_floor`] says how the rest spreads.
        ///
        /// # Examples
        ///
        /// ```
        /// use std::time::Duration;
        /// use paceline::{Legacy, backoff::Jitter, config::SettingsError};
        ///
        /// let half = Duration::from_millis(500);
        /// let strategy = Legacy::builder().jitter(Jitter::Equal).throttling_floor(half).build()?;
        /// assert_eq!(strategy.backoff().delay(1, true, 0), half);
        ///
        /// let wrong = Legacy::builder().throttling_floor(60 * half).build();
        /// assert_eq!(wrong.unwrap_err(), SettingsError::FloorAboveMaxBackoff);
        /// # Ok::<(), SettingsError>(())
        /// ```
        throttling_floor(span: Duration);

        /// Draws jitter from `random` in place of the random numbers of the thread.
        random(random: Arc<dyn Random>);
    }

    /// As [`max_attempts`](Self::max_attempts), unless that was or will be called.
    #[cfg(feature = "aws-config")]
    pub(crate) fn max_attempts_unless_set(mut self, sends: u32) -> Self {
        self.0.max_attempts.get_or_insert(sends);
        self
    }

    /// Builds the strategy.
    ///
    /// # Errors
    ///
    /// Returns [`SettingsError`] if there is no send to make, the floor is above 20 s, or a backoff
    /// of one's own comes with a jitter or a floor.
    pub fn build(self) -> Result<Legacy, SettingsError> {
        self.0.check()?;
        Ok(self.build_checked())
    }

    /// Builds the strategy from choices that are known to be right.
    pub(crate) fn build_checked(self) -> Legacy {
        let choices = self.0;
        let built_in = ExponentialBackoff::new(BASE_DELAY, MAX_BACKOFF)
            .with_jitter(choices.jitter.unwrap_or_default())
            .with_throttling_floor(choices.throttling_floor.unwrap_or_default());
        Legacy {
            id: StrategyId::new(),
            max_attempts: choices.max_attempts.unwrap_or(MAX_ATTEMPTS),
            maybe_policy: choices.maybe_policy,
            backoff: choices.backoff.unwrap_or_else(|| Arc::new(built_in)),
            random: choices.random.unwrap_or_else(|| Arc::new(ThreadRandom)),
        }
    }
}

impl fmt::Debug for LegacyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show("LegacyBuilder", f)
    }
}
