//! Building `Standard` and `Adaptive`: what was chosen, and the defaults for the rest.

use alloc::sync::Arc;
use core::{fmt, marker::PhantomData, num::NonZeroU32, time::Duration};

use super::{
    adaptive::Adaptive,
    engine::Engine,
    settings::{HintPolicy, MaybePolicy, RetryGeneration, Settings, SettingsError},
    standard::Standard,
    token::StrategyId,
};
use crate::{
    BackoffStrategy, Clock, ControlLaw, ExponentialBackoff, Jitter, MonotonicClock, PacedSettings,
    Random, RetryQuota, SendRate, ThreadRandom,
};

/// The tokens of a quota, in every SDK and generation.
const QUOTA_CAPACITY: u32 = 500;
const MAX_ATTEMPTS: u32 = 3;
const MAX_BACKOFF: Duration = Duration::from_secs(20);

/// DynamoDB answers fast, so it is worth asking again sooner and once more (generation 2.1 only).
const DYNAMODB_MAX_ATTEMPTS: u32 = 4;
const DYNAMODB_BASE_DELAY: Duration = Duration::from_millis(25);

/// Builds a [`Standard`] or an [`Adaptive`] strategy, the `M` of this type.
///
/// [`Settings`] has the table of defaults.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::{RetryGeneration, SettingsError, Standard};
///
/// let strategy = Standard::builder()
///     .generation(RetryGeneration::V2_0)
///     .max_attempts(5)
///     .max_backoff(Duration::from_secs(3))
///     .build()?;
/// assert_eq!(strategy.settings().max_attempts(), 5);
///
/// let wrong = Standard::builder().max_attempts(0).build();
/// assert_eq!(wrong.unwrap_err(), SettingsError::ZeroMaxAttempts);
/// # Ok::<(), SettingsError>(())
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct StrategyBuilder<M> {
    choices: Choices,
    mode: PhantomData<fn() -> M>,
}

/// What the caller chose; `None` where the default depends on other choices, or is made anew.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
struct Choices {
    generation: RetryGeneration,
    dynamodb: bool,
    max_attempts: Option<u32>,
    max_backoff: Option<Duration>,
    base_delay: Option<Duration>,
    throttling_base_delay: Option<Duration>,
    throttling_floor: Option<Duration>,
    jitter: Option<Jitter>,
    backoff: Option<Arc<dyn BackoffStrategy>>,
    quota_capacity: Option<u32>,
    quota: Option<Arc<RetryQuota>>,
    maybe_policy: MaybePolicy,
    hint_policy: HintPolicy,
    long_polling: bool,
    random: Option<Arc<dyn Random>>,
    clock: Option<Arc<dyn Clock>>,
    law: Option<ControlLaw>,
    paced: Option<PacedSettings>,
    fail_fast: bool,
    exact_timing: bool,
}

impl<M> StrategyBuilder<M> {
    pub(super) fn new() -> Self {
        Self {
            choices: Choices::default(),
            mode: PhantomData,
        }
    }

    /// Follows the rules of `generation`.
    pub fn generation(mut self, generation: RetryGeneration) -> Self {
        self.choices.generation = generation;
        self
    }

    /// Sends an operation at most `sends` times, the first time included. 0 is an error at `build`.
    pub fn max_attempts(mut self, sends: u32) -> Self {
        self.choices.max_attempts = Some(sends);
        self
    }

    /// As [`max_attempts`](Self::max_attempts), unless that was or will be called.
    pub(crate) fn max_attempts_unless_set(mut self, sends: NonZeroU32) -> Self {
        self.choices.max_attempts.get_or_insert(sends.get());
        self
    }

    /// Gives the strategy a quota of its own of `tokens`. 0 refuses every retry.
    pub fn quota_capacity(mut self, tokens: u32) -> Self {
        self.choices.quota_capacity = Some(tokens);
        self
    }

    /// Pays from `quota`, which other strategies may pay from as well.
    pub fn quota(mut self, quota: Arc<RetryQuota>) -> Self {
        self.choices.quota = Some(quota);
        self
    }

    /// Caps the built-in backoff before jitter, and in generation 2.0 the service's hints.
    pub fn max_backoff(mut self, span: Duration) -> Self {
        self.choices.max_backoff = Some(span);
        self
    }

    /// Replaces the first backoff before jitter, after failures other than throttling.
    ///
    /// In generation 2.0, which has one base for all failures, after throttling as well.
    pub fn base_delay(mut self, span: Duration) -> Self {
        self.choices.base_delay = Some(span);
        self
    }

    /// Replaces the first backoff before jitter after throttling.
    pub fn throttling_base_delay(mut self, span: Duration) -> Self {
        self.choices.throttling_base_delay = Some(span);
        self
    }

    /// Lets no built-in backoff after throttling be shorter, though jitter would have it. Zero by default.
    ///
    /// Full jitter draws delays near zero now and then. [`ExponentialBackoff::with_throttling_floor`]
    /// says how the rest spreads.
    pub fn throttling_floor(mut self, span: Duration) -> Self {
        self.choices.throttling_floor = Some(span);
        self
    }

    /// Replaces the kind of jitter of the built-in backoff, which is [`Jitter::Full`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{sync::Arc, time::Duration};
    /// use paceline::{BackoffStrategy, Jitter, SettingsError, Standard};
    ///
    /// let strategy = Standard::builder().jitter(Jitter::Equal).build()?;
    /// let least = strategy.settings().backoff().delay(1, false, 0);
    /// assert_eq!(least, Duration::from_millis(25));
    ///
    /// let above = Standard::builder().throttling_floor(Duration::from_secs(21)).build();
    /// assert_eq!(above.unwrap_err(), SettingsError::FloorAboveMaxBackoff);
    /// # Ok::<(), SettingsError>(())
    /// ```
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.choices.jitter = Some(jitter);
        self
    }

    /// Uses `backoff` in place of [`ExponentialBackoff`].
    pub fn backoff(mut self, backoff: Arc<dyn BackoffStrategy>) -> Self {
        self.choices.backoff = Some(backoff);
        self
    }

    /// Says what becomes of failures that may or may not be safe to retry.
    pub fn maybe_policy(mut self, policy: MaybePolicy) -> Self {
        self.choices.maybe_policy = policy;
        self
    }

    /// Says what becomes of the service's clamped hints.
    pub fn hint_policy(mut self, policy: HintPolicy) -> Self {
        self.choices.hint_policy = policy;
        self
    }

    /// Asks the caller to sleep the backoff when nothing but the quota refuses.
    ///
    /// For operations that hold the request open until there is something to answer, such as SQS
    /// `ReceiveMessage`, SFN `GetActivityTask`, SWF `PollForActivityTask` and `PollForDecisionTask`:
    /// their callers ask again at once. A rule of generation 2.1; set in 2.0 it does the same.
    pub fn long_polling(mut self, yes: bool) -> Self {
        self.choices.long_polling = yes;
        self
    }

    /// Uses the defaults of DynamoDB and its streams: in generation 2.1 four sends and 25 ms.
    ///
    /// Replaces defaults only: what was or will be set stays. Generation 2.0 has no such defaults.
    pub fn dynamodb(mut self) -> Self {
        self.choices.dynamodb = true;
        self
    }

    /// Draws jitter from `random` in place of [`ThreadRandom`].
    pub fn random(mut self, random: Arc<dyn Random>) -> Self {
        self.choices.random = Some(random);
        self
    }
}

impl StrategyBuilder<Standard> {
    /// Builds the strategy.
    ///
    /// # Errors
    ///
    /// Returns [`SettingsError`] if a setting is out of range or two contradict each other.
    pub fn build(self) -> Result<Standard, SettingsError> {
        self.choices.check()?;
        Ok(self.build_checked())
    }

    /// Builds the strategy from choices that are known to be right.
    pub(crate) fn build_checked(self) -> Standard {
        Standard::from_engine(self.choices.into_engine())
    }
}

impl StrategyBuilder<Adaptive> {
    /// Reads the time from `clock` in place of [`MonotonicClock`]. It times sends, not backoffs.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.choices.clock = Some(clock);
        self
    }

    /// Moves the send rate by `law`, with the law's own settings.
    pub fn law(mut self, law: ControlLaw) -> Self {
        (self.choices.law, self.choices.paced) = (Some(law), None);
        self
    }

    /// Moves the send rate by [`ControlLaw::Paced`] with `settings`.
    pub fn paced(mut self, settings: PacedSettings) -> Self {
        (self.choices.law, self.choices.paced) = (Some(ControlLaw::Paced), Some(settings));
        self
    }

    /// Refuses a send that would have to wait, with the wait, rather than make it wait.
    pub fn fail_fast(mut self, yes: bool) -> Self {
        self.choices.fail_fast = yes;
        self
    }

    /// Reads the clock for every send and every response.
    ///
    /// By default, while nothing is throttled, a busy thread reads it every millisecond or two:
    /// [`SendRate::record_with`] says what that costs in exactness. Once throttled, all do.
    pub fn exact_timing(mut self, yes: bool) -> Self {
        self.choices.exact_timing = yes;
        self
    }

    /// Builds the strategy, whose send rate starts now by its clock.
    ///
    /// # Errors
    ///
    /// Returns [`SettingsError`] if a setting is out of range or two contradict each other.
    pub fn build(self) -> Result<Adaptive, SettingsError> {
        self.choices.check()?;
        Ok(self.build_checked())
    }

    /// Builds the strategy from choices that are known to be right.
    pub(crate) fn build_checked(mut self) -> Adaptive {
        let clock = self.choices.clock.take();
        let clock = clock.unwrap_or_else(|| Arc::new(MonotonicClock::new()));
        let law = self.choices.law.unwrap_or(ControlLaw::Aws);
        let rate = match self.choices.paced {
            Some(settings) => SendRate::paced(settings, clock.now()),
            None => SendRate::new(law, clock.now()),
        };
        let (fail_fast, exact) = (self.choices.fail_fast, self.choices.exact_timing);
        Adaptive::from_engine(self.choices.into_engine(), rate, fail_fast, exact, clock)
    }
}

impl<M> Clone for StrategyBuilder<M> {
    fn clone(&self) -> Self {
        Self {
            choices: self.choices.clone(),
            mode: PhantomData,
        }
    }
}

impl<M> fmt::Debug for StrategyBuilder<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.choices.fmt(f)
    }
}

impl Choices {
    fn check(&self) -> Result<(), SettingsError> {
        let base_given = self.base_delay.is_some() || self.throttling_base_delay.is_some();
        if self.max_attempts == Some(0) {
            Err(SettingsError::ZeroMaxAttempts)
        } else if self.backoff.is_some() && base_given {
            Err(SettingsError::BackoffWithBaseDelay)
        } else if self.backoff.is_some() && self.jitter.is_some() {
            Err(SettingsError::BackoffWithJitter)
        } else if self.backoff.is_some() && self.throttling_floor.is_some() {
            Err(SettingsError::BackoffWithFloor)
        } else if self.throttling_floor > Some(self.max_backoff.unwrap_or(MAX_BACKOFF)) {
            Err(SettingsError::FloorAboveMaxBackoff)
        } else if self.quota.is_some() && self.quota_capacity.is_some() {
            Err(SettingsError::QuotaWithCapacity)
        } else {
            Ok(())
        }
    }

    fn into_engine(self) -> Engine {
        let max_backoff = self.max_backoff.unwrap_or(MAX_BACKOFF);
        let max_attempts = self.max_attempts.unwrap_or(if self.is_dynamodb() {
            DYNAMODB_MAX_ATTEMPTS
        } else {
            MAX_ATTEMPTS
        });
        let built_in = self.exponential(max_backoff);
        let capacity = self.quota_capacity.unwrap_or(QUOTA_CAPACITY);
        let settings = Settings {
            generation: self.generation,
            max_attempts,
            max_backoff,
            maybe_policy: self.maybe_policy,
            hint_policy: self.hint_policy,
            long_polling: self.long_polling,
            backoff: self.backoff.unwrap_or_else(|| Arc::new(built_in)),
            random: self.random.unwrap_or_else(|| Arc::new(ThreadRandom)),
        };
        Engine {
            id: StrategyId::new(),
            settings,
            quota: self
                .quota
                .unwrap_or_else(|| Arc::new(RetryQuota::new(capacity))),
        }
    }

    fn exponential(&self, max_backoff: Duration) -> ExponentialBackoff {
        let (throttling, other) = self.generation.bases();
        let other = if self.is_dynamodb() {
            DYNAMODB_BASE_DELAY
        } else {
            other
        };
        let throttling = match self.generation {
            RetryGeneration::V2_0 => self.base_delay.unwrap_or(throttling),
            RetryGeneration::V2_1 => throttling,
        };
        ExponentialBackoff::new(self.base_delay.unwrap_or(other), max_backoff)
            .with_throttling_base(self.throttling_base_delay.unwrap_or(throttling))
            .with_throttling_floor(self.throttling_floor.unwrap_or_default())
            .with_jitter(self.jitter.unwrap_or_default())
    }

    /// Tells whether DynamoDB's own defaults apply.
    fn is_dynamodb(&self) -> bool {
        self.dynamodb && self.generation == RetryGeneration::V2_1
    }
}
