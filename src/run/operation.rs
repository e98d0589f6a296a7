//! One operation that is about to run, and its settings.

use core::{any::type_name, fmt, time::Duration};

use super::limits::Limits;
use crate::{Clock, DefaultSleep, Idempotency, Sleep};

/// An operation that is about to run, from [`RetryStrategyExt::operation`].
///
/// `S` is its strategy and `Z` what puts its thread or its task to sleep.
///
/// [`RetryStrategyExt::operation`]: crate::RetryStrategyExt::operation
#[must_use = "an operation does nothing until it is run"]
pub struct Operation<'a, S: ?Sized, Z = DefaultSleep> {
    pub(super) strategy: &'a S,
    pub(super) scope: Option<&'a str>,
    pub(super) limits: Limits<'a>,
    pub(super) sleep: Z,
}

impl<'a, S: ?Sized> Operation<'a, S> {
    pub(super) fn new(strategy: &'a S) -> Self {
        Self {
            strategy,
            scope: None,
            limits: Limits::default(),
            sleep: DefaultSleep,
        }
    }
}

impl<'a, S: ?Sized, Z> Operation<'a, S, Z> {
    /// Names what the operation goes to. `Scopes` (feature `scopes`) keeps a state for each; our other strategies ignore it.
    pub fn scope(self, scope: &'a str) -> Self {
        Self {
            scope: Some(scope),
            ..self
        }
    }

    /// Says whether the operation may be carried out twice. Yes by default.
    ///
    /// What may not be is retried only after failures that say that nothing was done, whatever the strategy:
    /// else the operation stops with [`Stopped::MaybeExecuted`](crate::Stopped::MaybeExecuted).
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Failure, Idempotency, RetryStrategyExt, Standard, Stopped};
    ///
    /// let stopped = Standard::new()
    ///     .operation()
    ///     .idempotency(Idempotency::NotIdempotent)
    ///     .run(|_| Err::<(), _>(Failure::timeout()))
    ///     .unwrap_err();
    /// assert_eq!((stopped.attempts(), stopped.why()), (1, Stopped::MaybeExecuted));
    /// ```
    pub fn idempotency(mut self, idempotency: Idempotency) -> Self {
        self.limits.idempotency = idempotency;
        self
    }

    /// Gives the operation `span` from when it is run, with all its attempts and waits. No limit by default.
    ///
    /// A backoff or a wait for a turn that would use up what is left is not begun, and neither is an
    /// attempt when nothing is left: the operation stops at once with
    /// [`Stopped::OutOfTime`](crate::Stopped::OutOfTime), which says how long it would have waited. No quota
    /// is taken for such a retry. The wait for a turn is that of the rate of the moment; that the
    /// rate might rise is not waited for.
    ///
    /// An attempt is told what is left ([`Attempt::time_limit`](crate::Attempt::time_limit)). The
    /// asynchronous loop cuts it off then; the blocking one cannot.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{Failure, RetryAfter, RetryStrategyExt, Standard, Stopped};
    ///
    /// let minute = Duration::from_secs(60);
    /// let stopped = Standard::new()
    ///     .operation()
    ///     .deadline(Duration::from_secs(5))
    ///     .run(|_| Err::<(), _>(Failure::throttling().with_retry_after(RetryAfter::Floor(minute))))
    ///     .unwrap_err();
    /// assert!(matches!(stopped.why(), Stopped::OutOfTime { .. }));
    /// assert_eq!(stopped.wait(), minute);
    /// ```
    pub fn deadline(mut self, span: Duration) -> Self {
        self.limits.total = Some(span);
        self
    }

    /// Gives each attempt `span`, or what the [`deadline`](Self::deadline) leaves if that is less.
    ///
    /// An attempt is told ([`Attempt::time_limit`](crate::Attempt::time_limit)), to hand it to its client.
    /// The asynchronous loop also cuts it off, which counts as a failure that is a timeout: the work may
    /// have been done. With a `span` of zero an attempt ends where it first waits.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{Failure, RetryStrategyExt, Standard};
    ///
    /// let second = Duration::from_secs(1);
    /// let answer = Standard::new().operation().attempt_timeout(second).run(|attempt| {
    ///     assert_eq!(attempt.time_limit(), Some(second));
    ///     Ok::<_, Failure>("in time")
    /// });
    /// assert_eq!(answer.unwrap(), "in time");
    /// ```
    pub fn attempt_timeout(mut self, span: Duration) -> Self {
        self.limits.attempt = Some(span);
        self
    }

    /// Measures the [`deadline`](Self::deadline) by `clock` in place of a
    /// [`MonotonicClock`](crate::MonotonicClock). It is not read without a deadline.
    pub fn clock(mut self, clock: &'a dyn Clock) -> Self {
        self.limits.clock = Some(clock);
        self
    }

    /// Sleeps by `sleep` instead of on the thread, so that tests can move a clock of their own.
    ///
    /// For the blocking loop. Out of such a sleep nobody can be woken, so that a turn is looked at every 50 ms.
    pub fn sleep_by<Y: FnMut(Duration)>(self, sleep: Y) -> Operation<'a, S, Y> {
        Operation {
            strategy: self.strategy,
            scope: self.scope,
            limits: self.limits,
            sleep,
        }
    }

    /// Sleeps by the timers of another run time than tokio's. For the asynchronous loop.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "async-io")] {
    /// use paceline::{AsyncIoSleep, Failure, RetryStrategyExt, Standard};
    ///
    /// let strategy = Standard::new();
    /// let operation = strategy.operation().sleep_on(AsyncIoSleep::new());
    /// let answer = async_io::block_on(operation.run_async(async |_| Ok::<_, Failure>(42)));
    /// assert_eq!(answer.unwrap(), 42);
    /// # }
    /// ```
    pub fn sleep_on<Y: Sleep>(self, sleep: Y) -> Operation<'a, S, Y> {
        Operation {
            strategy: self.strategy,
            scope: self.scope,
            limits: self.limits,
            sleep,
        }
    }
}

impl<S: fmt::Debug + ?Sized, Z> fmt::Debug for Operation<'_, S, Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("strategy", &self.strategy)
            .field("scope", &self.scope)
            .field("limits", &self.limits)
            .field("sleep", &type_name::<Z>())
            .finish()
    }
}
