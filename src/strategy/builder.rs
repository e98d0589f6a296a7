//! What the builders of `Standard` and `Adaptive` share.

use alloc::sync::Arc;
use core::{fmt, marker::PhantomData, time::Duration};

use super::{
    choices::{Choices, choose},
    event::{Event, Hook},
    settings::RetryGeneration,
};
use crate::{Clock, RetryQuota, backoff::BackoffStrategy, random::Random};

/// Builds the strategy `M`: [`Standard`](crate::Standard) or [`Adaptive`](crate::Adaptive).
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

    /// Reads choices that fit together.
    #[cfg(feature = "serde")]
    pub(super) fn read<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let choices: Choices = crate::seam::by_name(from)?;
        choices.check().map_err(serde::de::Error::custom)?;
        let mode = PhantomData;
        Ok(Self { choices, mode })
    }

    /// Names the strategy in its [events](Event), in `Debug`, and in the errors of its operations.
    /// No name by default. The name of a scope from `scopes` is always its key.
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

    /// Calls `hook` for each [event](Event) of the strategy and of its operations, on the thread of
    /// the event. If this method is called twice, both hooks are called.
    ///
    /// A hook is called for each request, so it has to be fast, and must not use the strategy. A
    /// strategy without a hook pays nothing for hooks. A panic of the hook unwinds out of the call.
    /// A thread that unwinds calls no hook.
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
        let before = self.choices.on_event.take();
        self.choices.on_event = Some(Hook::new(move |event| {
            if let Some(before) = &before {
                before.call(event);
            }
            hook(event);
        }));
        self
    }

    choose! {
        choices:
        /// Follows the rules of `generation`.
        generation(generation: RetryGeneration);

        /// Sends an operation at most `sends` times, the first time included. 0 is an error at `build`.
        max_attempts(sends: u32);

        /// Gives the strategy its own quota of `tokens`. 0 refuses every retry.
        quota_capacity(tokens: u32);

        /// Pays from `quota`, which other strategies may pay from as well.
        quota(quota: Arc<RetryQuota>);

        /// Reads the time from `clock` in place of [`MonotonicClock`](crate::MonotonicClock).
        ///
        /// It times the sends of `Adaptive` and the [deadlines](crate::Operation::deadline) of
        /// operations.
        clock(clock: Arc<dyn Clock>);

        /// Caps the built-in backoff before jitter, and in generation 2.0 the service's hints.
        max_backoff(span: Duration);

        /// Replaces the first backoff before jitter, after failures other than throttling.
        ///
        /// Generation 2.0 has one base for all failures, so there the base also applies after
        /// throttling.
        base_delay(span: Duration);

        /// Sets the shortest built-in backoff after throttling, whatever the jitter. Zero by
        /// default.
        ///
        /// Full jitter draws delays near zero now and then. With a floor, the jitter spreads over
        /// the span above it, so delays do not gather at the floor.
        ///
        /// # Examples
        ///
        /// ```
        /// use std::time::Duration;
        /// use paceline::{Standard, config::SettingsError};
        ///
        /// let half = Duration::from_millis(500);
        /// let strategy = Standard::builder().throttling_floor(half).build()?;
        /// assert_eq!(strategy.settings().backoff.delay(1, true, 0), half);
        ///
        /// let above = Standard::builder().throttling_floor(Duration::from_secs(21)).build();
        /// assert_eq!(above.unwrap_err(), SettingsError::FloorAboveMaxBackoff);
        /// # Ok::<(), SettingsError>(())
        /// ```
        throttling_floor(span: Duration);

        /// Uses `backoff` in place of [`ExponentialBackoff`](crate::backoff::ExponentialBackoff).
        backoff(backoff: Arc<dyn BackoffStrategy>);

        /// Asks the caller to sleep the backoff when only the quota refuses.
        ///
        /// It is for operations that hold the request open until there is an answer, because their
        /// callers ask again at once. The SDKs have it for SQS `ReceiveMessage`, SFN
        /// `GetActivityTask`, SWF `PollForActivityTask` and `PollForDecisionTask`, and botocore
        /// since 1.44 for Kinesis `ReceiveQueueRecords` and `ReceiveDeadLetterQueueRecords`. It is
        /// a rule of generation 2.1, and does the same in 2.0.
        long_polling(yes: bool);

        /// Gives each operation `span`, unless [`Operation::deadline`](crate::Operation::deadline)
        /// sets another span. No limit by default; a day in [`bulk`](Self::bulk).
        deadline(span: Duration);

        /// Lets an operation wait in line until its deadline, even if its turn would come later at
        /// today's rate. The rate may rise meanwhile. By default such an operation is refused at
        /// once.
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
        wait_out_deadlines(yes: bool);

        /// Draws jitter from `random` in place of the random numbers of the thread.
        random(random: Arc<dyn Random>);
    }

    /// Like [`generation`](Self::generation), unless the caller sets a generation.
    #[cfg(feature = "aws-config")]
    pub(crate) fn generation_unless_set(mut self, generation: RetryGeneration) -> Self {
        self.choices.generation.get_or_insert(generation);
        self
    }

    /// Like [`max_attempts`](Self::max_attempts), unless the caller sets a maximum.
    #[cfg(feature = "aws-config")]
    pub(crate) fn max_attempts_unless_set(mut self, sends: u32) -> Self {
        self.choices.max_attempts.get_or_insert(sends);
        self
    }

    /// Uses the defaults of DynamoDB and its streams: in generation 2.1 four sends and 25 ms.
    ///
    /// Replaces defaults only, and no setting of the caller. Generation 2.0 has no such defaults.
    pub fn dynamodb(mut self) -> Self {
        self.choices.dynamodb = true;
        self
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
