//! Building `Standard` and `Adaptive`.

use alloc::sync::Arc;
use core::{fmt, marker::PhantomData, num::NonZeroU32, time::Duration};

use super::{
    adaptive::{Adaptive, Pace},
    choices::Choices,
    costs::RetryCosts,
    event::{Event, Hook},
    plan::Plan,
    settings::{MaybePolicy, RetryGeneration, SettingsError},
    standard::Standard,
    turn::Manner,
};
use crate::{
    Clock, ControlLaw, RetryQuota,
    backoff::{BackoffStrategy, Jitter},
    law::{DeclaredSettings, Dimension, PacedSettings, PacedSettingsError},
    random::Random,
};

const MINUTE: Duration = Duration::from_secs(60);
/// How long tokens are saved up for a heavy request.
const TOKENS_AT_ONCE: Duration = Duration::from_secs(10);

/// Builds a [`Standard`] or an [`Adaptive`] strategy, the `M` of this type.
///
/// [`Settings`](crate::config::Settings) has the table of defaults. With the feature `scopes` there is
/// `scopes`, which builds a strategy for each scope.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::{Standard, config::{RetryGeneration, SettingsError}};
///
/// let strategy = Standard::builder()
///     .generation(RetryGeneration::V2_0)
///     .max_attempts(5)
///     .max_backoff(Duration::from_secs(3))
///     .build()?;
/// assert_eq!(strategy.settings().max_attempts, 5);
///
/// let wrong = Standard::builder().max_attempts(0).build();
/// assert_eq!(wrong.unwrap_err(), SettingsError::ZeroMaxAttempts);
/// # Ok::<(), SettingsError>(())
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct StrategyBuilder<M> {
    pub(super) choices: Choices,
    mode: PhantomData<fn() -> M>,
}

impl<M> StrategyBuilder<M> {
    pub(super) fn new() -> Self {
        Self {
            choices: Choices::default(),
            mode: PhantomData,
        }
    }

    #[cfg(feature = "serde")]
    pub(super) const fn of(choices: Choices) -> Self {
        Self {
            choices,
            mode: PhantomData,
        }
    }

    /// Names the strategy in its [events](Event), in `Debug`, and in the errors of its operations.
    /// No name by default. A scope that is built by `scopes` has its key for a name, whatever is
    /// set here.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Failure, RetryStrategyExt, Standard};
    ///
    /// let orders = Standard::builder().name("orders").build()?;
    /// let failed = orders.run(|_| Err::<(), _>(Failure::not_retryable())).unwrap_err();
    /// let shown = "orders: stopped after 1 attempt: the failure is not retryable";
    /// assert_eq!(failed.to_string(), shown);
    /// # Ok::<(), paceline::config::SettingsError>(())
    /// ```
    pub fn name(mut self, name: &str) -> Self {
        self.choices.name = Some(name.into());
        self
    }

    /// Calls `hook` for each [event](Event) of the strategy and of its operations, on the thread
    /// where it happens. Called twice, both hooks are called.
    ///
    /// A hook is called for each request, so it has to be fast, and must not use the strategy. A
    /// strategy without one pays nothing for it. A panic of the hook unwinds out of the call; while
    /// a thread unwinds, it calls no hook.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use paceline::{Failure, RetryStrategyExt, Standard, strategy::EventKind};
    ///
    /// let seen = Arc::new(Mutex::new(Vec::new()));
    /// let log = Arc::clone(&seen);
    /// let orders = Standard::builder().name("orders").on_event(move |event| {
    ///     if let EventKind::GaveUp { .. } = event.kind {
    ///         log.lock().unwrap().push(event.to_string());
    ///     }
    /// });
    /// let _failed = orders.build()?.run(|_| Err::<(), _>(Failure::not_retryable()));
    /// let line = "orders: gave up: attempts 1, the failure is not retryable, error; not retryable";
    /// assert_eq!(*seen.lock().unwrap(), [line]);
    /// # Ok::<(), paceline::config::SettingsError>(())
    /// ```
    pub fn on_event(mut self, hook: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.choices.on_event = Some(match self.choices.on_event.take() {
            Some(first) => first.and(hook),
            None => Hook::new(hook),
        });
        self
    }

    /// Follows the rules of `generation`.
    pub fn generation(mut self, generation: RetryGeneration) -> Self {
        self.choices.generation = Some(generation);
        self
    }

    /// As [`generation`](Self::generation), unless that was or will be called.
    pub(crate) fn generation_unless_set(mut self, generation: RetryGeneration) -> Self {
        self.choices.generation.get_or_insert(generation);
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

    /// Gives the strategy its own quota of `tokens`. 0 refuses every retry.
    pub fn quota_capacity(mut self, tokens: u32) -> Self {
        self.choices.quota_capacity = Some(tokens);
        self
    }

    /// Pays from `quota`, which other strategies may pay from as well.
    pub fn quota(mut self, quota: Arc<RetryQuota>) -> Self {
        self.choices.quota = Some(quota);
        self
    }

    /// Replaces what retries cost.
    pub fn costs(mut self, costs: RetryCosts) -> Self {
        self.choices.costs = Some(costs);
        self
    }

    /// Replaces what a success without a retry puts into the quota, one token.
    pub fn success_credit(mut self, tokens: u32) -> Self {
        self.choices.success_credit = Some(tokens);
        self
    }

    /// Reads the time from `clock` in place of [`MonotonicClock`](crate::MonotonicClock).
    ///
    /// It times the sends of [`Adaptive`] and the [deadlines](crate::Operation::deadline) of
    /// operations.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.choices.clock = Some(clock);
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

    /// Lets no built-in backoff after throttling be shorter, though jitter would have it. Zero by
    /// default.
    ///
    /// Full jitter draws delays near zero now and then.
    /// [`with_throttling_floor`](crate::backoff::ExponentialBackoff::with_throttling_floor)
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
    /// use paceline::{Standard, backoff::{BackoffStrategy, Jitter}, config::SettingsError};
    ///
    /// let strategy = Standard::builder().jitter(Jitter::Equal).build()?;
    /// let least = strategy.settings().backoff.delay(1, false, 0);
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

    /// Uses `backoff` in place of [`ExponentialBackoff`](crate::backoff::ExponentialBackoff).
    pub fn backoff(mut self, backoff: Arc<dyn BackoffStrategy>) -> Self {
        self.choices.backoff = Some(backoff);
        self
    }

    /// Sets how failures are handled that may or may not be safe to retry.
    pub fn maybe_policy(mut self, policy: MaybePolicy) -> Self {
        self.choices.maybe_policy = policy;
        self
    }

    /// Asks the caller to sleep the backoff when nothing but the quota refuses.
    ///
    /// For operations that hold the request open until there is something to answer, because their
    /// callers ask again at once. The SDKs have it for SQS `ReceiveMessage`, SFN
    /// `GetActivityTask`, SWF `PollForActivityTask` and `PollForDecisionTask`, and botocore
    /// since 1.44 for Kinesis `ReceiveQueueRecords` and `ReceiveDeadLetterQueueRecords`. A rule
    /// of generation 2.1; set in 2.0 it does the same.
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

    /// Gives each operation `span`, unless it says otherwise by
    /// [`Operation::deadline`](crate::Operation::deadline). No limit by default; a day in
    /// [`bulk`](Self::bulk).
    pub fn deadline(mut self, span: Duration) -> Self {
        self.choices.deadline = Some(span);
        self
    }

    /// Lets an operation wait in line until its deadline where its turn would come later at the rate
    /// of the moment: the rate may rise. By default such an operation is refused at once.
    ///
    /// A caller that asks again at once then asks at the pace of its deadlines. A backoff that does
    /// not fit ends the operation at once all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use paceline::{Adaptive, Failure, RetryStrategyExt, law::PacedSettings, operation::StopReason};
    ///
    /// let strategy = Adaptive::builder()
    ///     .paced(PacedSettings::fixed(1, Duration::from_secs(60))?)
    ///     .deadline(Duration::from_millis(20))
    ///     .wait_out_deadlines(true)
    ///     .build()?;
    /// strategy.run(|_| Ok::<_, Failure>(())).unwrap(); // takes the one token
    /// let begun = Instant::now();
    /// let stopped = strategy.run(|_| Ok::<_, Failure>(())).unwrap_err();
    /// assert!(matches!(stopped.why(), StopReason::OutOfTime { .. }));
    /// assert!(begun.elapsed() >= Duration::from_millis(20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait_out_deadlines(mut self, yes: bool) -> Self {
        self.choices.wait_out_deadlines = yes;
        self
    }

    /// Draws jitter from `random` in place of the random numbers of the thread.
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
        Standard::from_engine(self.choices.into_plan(()).engine(None))
    }

    /// Checks the choices once, and returns what builds any number of strategies that share their
    /// settings, by name.
    #[cfg(feature = "scopes")]
    pub(crate) fn many(
        self,
    ) -> impl Fn(Option<&str>) -> Result<Standard, SettingsError> + Send + Sync {
        let (checked, plan) = (self.choices.check(), self.choices.into_plan(()));
        move |name| checked.map(|()| Standard::from_engine(plan.engine(name)))
    }
}

impl StrategyBuilder<Adaptive> {
    /// Moves the send rate by `law` with its defaults. A strategy needs a law:
    /// [`paced`](Self::paced), [`declared`](Self::declared) and [`bulk`](Self::bulk) name one too.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Adaptive, ControlLaw, config::SettingsError};
    ///
    /// let strategy = Adaptive::builder().law(ControlLaw::Paced).max_attempts(5).build()?;
    /// assert_eq!(strategy.settings().law, Some(ControlLaw::Paced));
    /// let nameless = Adaptive::builder().max_attempts(5).build();
    /// assert_eq!(nameless.unwrap_err(), SettingsError::NoLaw);
    /// # Ok::<(), SettingsError>(())
    /// ```
    pub fn law(mut self, law: ControlLaw) -> Self {
        self.choices.law = Some(law);
        (self.choices.paced, self.choices.declared) = (None, None);
        self
    }

    /// Moves the send rate by [`ControlLaw::Paced`] with `settings`: [`Adaptive::paced`].
    pub fn paced(mut self, settings: PacedSettings) -> Self {
        (self.choices.law, self.choices.paced) = (Some(ControlLaw::Paced), Some(settings));
        self.choices.declared = None;
        self
    }

    /// For pipelines: retries what is throttled until it succeeds. See [`Adaptive::bulk`].
    ///
    /// The law is [`ControlLaw::Paced`] unless [`declared`](Self::declared) is called. With either,
    /// [`paced`](Self::paced) sets its settings; it begins with a
    /// [slow start](crate::law::PacedSettingsBuilder::slow_start) whatever they are.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::Adaptive;
    ///
    /// let strategy = Adaptive::builder()
    ///     .bulk()
    ///     .max_attempts(4) // that are not throttled
    ///     .deadline(Duration::from_secs(3_600))
    ///     .stall_timeout(Duration::from_secs(60))
    ///     .build()?;
    /// assert_eq!(strategy.settings().deadline, Some(Duration::from_secs(3_600)));
    /// # Ok::<(), paceline::config::SettingsError>(())
    /// ```
    pub fn bulk(mut self) -> Self {
        self.choices.bulk = true;
        self
    }

    /// Ends the retries of [`bulk`](Self::bulk) when all has been throttled for `span`: 5 minutes
    /// by default. It is also the longest wait that the service may ask for.
    pub fn stall_timeout(mut self, span: Duration) -> Self {
        self.choices.stall_timeout = Some(span);
        self
    }

    /// Moves the send rate by [`ControlLaw::Declared`] with `settings`: [`Adaptive::declared`].
    pub fn declared(mut self, settings: DeclaredSettings) -> Self {
        (self.choices.law, self.choices.paced) = (Some(ControlLaw::Declared), None);
        self.choices.declared = Some(settings);
        self
    }

    /// Limits requests and tokens to so many a minute each, for a service that has these limits and
    /// does not declare them: [`Adaptive::per_minute`].
    ///
    /// # Errors
    ///
    /// If one of them is 0.
    pub fn per_minute(self, requests: u32, tokens: u32) -> Result<Self, PacedSettingsError> {
        let requests = PacedSettings::fixed(requests, MINUTE)?;
        let tokens = PacedSettings::fixed(tokens, MINUTE)?.to_builder();
        let tokens = tokens.burst(TOKENS_AT_ONCE).build()?;
        let declared = DeclaredSettings::new().dimension(Dimension::Tokens);
        Ok(self.paced(requests).also(declared.otherwise(tokens)))
    }

    /// Adds a send rate beside the first, for a service that counts several things at once: tokens
    /// beside requests. Each call adds one, up to seven.
    ///
    /// A send then takes its weight from each ([`Operation::weights`](crate::Operation::weights)),
    /// and waits for the limit whose turn comes last. The first rate counts requests, by whatever
    /// law the strategy has; a further one obeys the declared limits of its
    /// [dimension](DeclaredSettings::dimension), and where none are declared its
    /// [paced law](DeclaredSettings::otherwise) decides. A throttle counts for the limits that
    /// explain it, as [`SendSet::record`](crate::SendSet::record) says.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{
    ///     Adaptive, RetryStrategy, law::{DeclaredSettings, Dimension},
    /// };
    ///
    /// let requests = DeclaredSettings::new();
    /// let tokens = requests.dimension(Dimension::Tokens);
    /// let strategy = Adaptive::builder().declared(requests).also(tokens).build()?;
    /// assert!(strategy.snapshot().further_rates[0].is_some());
    /// # Ok::<(), paceline::config::SettingsError>(())
    /// ```
    pub fn also(mut self, settings: DeclaredSettings) -> Self {
        self.choices.also.push(settings);
        self
    }

    /// Refuses a send that would have to wait, with the wait, rather than make it wait.
    pub fn fail_fast(mut self, yes: bool) -> Self {
        self.choices.fail_fast = yes;
        self
    }

    /// Refuses a send whose turn would come later than `span` after it was asked for, with the
    /// wait: at once where that is known then, and in line where the rate falls meanwhile. No limit
    /// by default.
    ///
    /// For requests that carry what expires, a signature or a credential. A backoff does not count,
    /// as no place in line is held meanwhile.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{Adaptive, Failure, RetryStrategyExt, law::PacedSettings, operation::StopReason};
    ///
    /// let minute = Duration::from_secs(60);
    /// let strategy = Adaptive::builder()
    ///     .paced(PacedSettings::fixed(1, 2 * minute)?)
    ///     .max_wait(minute)
    ///     .build()?;
    /// strategy.run(|_| Ok::<_, Failure>(())).unwrap(); // takes the one token
    /// let refused = strategy.run(|_| Ok::<_, Failure>(())).unwrap_err();
    /// assert!(matches!(refused.why(), StopReason::SendRefused { wait } if wait > minute));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_wait(mut self, span: Duration) -> Self {
        self.choices.max_wait = Some(span);
        self
    }

    /// Reads the clock for every send and every response.
    ///
    /// By default, while nothing is throttled, a busy thread reads it every millisecond or two:
    /// [`SendRate::record_with`](crate::SendRate::record_with) says what that costs in exactness.
    /// Once throttled, all do.
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
        self.choices.check_adaptive()?;
        Ok(self.build_checked())
    }

    /// Builds the strategy from choices that are known to be right.
    pub(crate) fn build_checked(self) -> Adaptive {
        Adaptive::from_engine(self.into_plan().engine(None))
    }

    /// Checks the choices once, and returns what builds any number of strategies that share their
    /// settings, by name.
    #[cfg(feature = "scopes")]
    pub(crate) fn many(
        self,
    ) -> impl Fn(Option<&str>) -> Result<Adaptive, SettingsError> + Send + Sync {
        let (checked, plan) = (self.choices.check_adaptive(), self.into_plan());
        move |name| checked.map(|()| Adaptive::from_engine(plan.engine(name)))
    }

    fn into_plan(mut self) -> Plan<Pace> {
        let law = self.choices.law().unwrap_or(ControlLaw::Aws);
        self.choices.law = Some(law);
        let pace = Pace {
            manner: Manner {
                fail_fast: self.choices.fail_fast,
                max_wait: self.choices.max_wait,
                exact_timing: self.choices.exact_timing,
            },
            law,
            paced: self.choices.paced,
            declared: self.choices.declared,
            also: self.choices.also.clone(),
            stall_timeout: self.choices.stall_timeout(),
        };
        self.choices.into_plan(pace)
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
        self.choices.show("StrategyBuilder", f)
    }
}
