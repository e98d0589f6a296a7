//! What a retry loop returns when it gives up.

use alloc::sync::Arc;
use core::{error::Error, fmt, time::Duration};

use crate::{
    WeightError,
    set::SetError,
    strategy::{InitialTokenRefused, RefusalReason},
};

/// The end of an operation that did not succeed: why, and after how many attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stop {
    pub(super) reason: StopReason,
    pub(super) attempts: u32,
    pub(super) backoff: Duration,
    /// In nanoseconds, which keeps an error with it below 128 bytes.
    pub(super) delay: u64,
}

impl Stop {
    /// Returns why there was no further attempt.
    #[must_use]
    pub const fn why(&self) -> StopReason {
        self.reason
    }

    /// Returns the attempts that were made.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns the delay that a retry would have had if the quota or the time had allowed it, else
    /// zero.
    #[must_use]
    pub const fn backoff(&self) -> Duration {
        self.backoff
    }

    /// Returns how long to sleep before the failure is returned. Zero, but for operations that are
    /// [long polling](crate::config::StrategyBuilder::long_polling).
    #[must_use]
    pub const fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay)
    }

    /// Returns how long the next attempt would have had to wait, for a backoff or for a turn to
    /// send. Zero if there was to be none.
    #[must_use]
    pub const fn wait(&self) -> Duration {
        match self.reason {
            StopReason::SendRefused { wait } | StopReason::OutOfTime { wait, .. } => wait,
            StopReason::RetryAfterTooLong { asked, .. } => asked,
            _ => self.backoff,
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.reason, self.attempts) {
            (StopReason::MaxAttempts { .. }, 1) => f.write_str("the only attempt failed"),
            (StopReason::MaxAttempts { .. }, made) => write!(f, "all {made} attempts failed"),
            (reason, 0) => write!(f, "not sent: {reason}"),
            (reason, 1) => write!(f, "stopped after 1 attempt: {reason}"),
            (reason, made) => write!(f, "stopped after {made} attempts: {reason}"),
        }
    }
}

impl Error for Stop {}

/// An operation failed, and why it was not tried again.
///
/// The operation's own error is the [`source`](Error::source), and [`into_error`](Self::into_error)
/// returns it. Where that is an error, so is this: `?` turns it into a `Box<dyn Error + Send +
/// Sync>`.
///
/// # Examples
///
/// ```
/// use std::{error::Error, io};
/// use paceline::{Failure, RetryStrategyExt, Standard};
///
/// fn read() -> io::Result<u8> {
///     Err(io::ErrorKind::NotFound.into())
/// }
///
/// fn boxed() -> Result<u8, Box<dyn Error + Send + Sync>> {
///     Ok(Standard::new().run_with(|_| Failure::not_retryable(), |_| read())?)
/// }
///
/// fn its_own() -> io::Result<u8> {
///     let read = Standard::new().run_with(|_| Failure::not_retryable(), |_| read());
///     read.map_err(|stopped| stopped.into_error_or_else(io::Error::other))
/// }
///
/// let shown = "stopped after 1 attempt: the failure is not retryable";
/// assert_eq!(boxed().unwrap_err().to_string(), shown);
/// assert_eq!(its_own().unwrap_err().kind(), io::ErrorKind::NotFound);
/// ```
#[derive(Debug)]
pub struct RunError<E> {
    error: Option<E>,
    stop: Stop,
    name: Option<Arc<str>>,
}

impl<E> RunError<E> {
    pub(super) const fn new(error: Option<E>, stop: Stop, name: Option<Arc<str>>) -> Self {
        Self { error, stop, name }
    }

    /// Returns the [name](crate::RetryStrategy::name) of the strategy, or of the scope.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the error of the last attempt, or `None` if that was [cut off](Self::is_cut_off) or
    /// there was none.
    #[must_use]
    pub const fn error(&self) -> Option<&E> {
        self.error.as_ref()
    }

    /// Returns the error of the last attempt, or why it left none: it was [cut
    /// off](Self::is_cut_off), or there was none.
    ///
    /// # Errors
    ///
    /// [`Stop`] if there is no error of the operation's own.
    pub fn into_error(self) -> Result<E, Stop> {
        self.error.ok_or(self.stop)
    }

    /// Returns the error of the last attempt, or what `otherwise` makes of the reason why it left
    /// none.
    pub fn into_error_or_else(self, otherwise: impl FnOnce(Stop) -> E) -> E {
        self.error.unwrap_or_else(|| otherwise(self.stop))
    }

    /// Returns why the operation ended and how far it came.
    #[must_use]
    pub const fn stop(&self) -> Stop {
        self.stop
    }

    /// Returns why there was no further attempt.
    #[must_use]
    pub const fn why(&self) -> StopReason {
        self.stop.why()
    }

    /// Returns the attempts that were made.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.stop.attempts()
    }

    /// Returns the delay that a retry would have had if the quota or the time had allowed it, else
    /// zero.
    #[must_use]
    pub const fn backoff(&self) -> Duration {
        self.stop.backoff()
    }

    /// Returns how long the next attempt would have had to wait: see [`Stop::wait`].
    ///
    /// A loop that goes on with other work can slow down by it.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Failure, RetryStrategyExt, Standard};
    ///
    /// let strategy = Standard::builder().quota_capacity(0).build()?;
    /// let stopped = strategy.run(|_| Err::<(), _>(Failure::transient())).unwrap_err();
    /// std::thread::sleep(stopped.wait()); // the quota is gone: not at full speed to the next one
    /// # Ok::<(), paceline::config::SettingsError>(())
    /// ```
    #[must_use]
    pub const fn wait(&self) -> Duration {
        self.stop.wait()
    }

    /// Returns `true` if the last attempt was cut off because its time was up, so that it left no
    /// error.
    #[must_use]
    pub const fn is_cut_off(&self) -> bool {
        self.stop.attempts() > 0 && self.error.is_none()
    }
}

impl<E> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}: ")?;
        }
        self.stop.fmt(f)
    }
}

impl<E: Error + 'static> Error for RunError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let error = self.error.as_ref()?;
        Some(error)
    }
}

/// Why an operation was not tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// It was sent as often as it may be.
    MaxAttempts {
        /// The sends that were allowed.
        max: u32,
    },
    /// Its failure must not be retried.
    NotRetryable,
    /// The work may have been done, and the operation is
    /// [not idempotent](crate::Idempotency::NotIdempotent).
    MaybeExecuted,
    /// The next attempt would not have begun before the [deadline](crate::Operation::deadline).
    OutOfTime {
        /// The wait that was not begun: a backoff, or a wait for a turn at the rate of the moment.
        /// Zero if the time was up.
        wait: Duration,
        /// The time that was left.
        left: Duration,
    },
    /// The service asked for a longer wait than the
    /// [operation accepts](crate::Operation::max_retry_after).
    RetryAfterTooLong {
        /// How long the service asked for.
        asked: Duration,
        /// The longest that is accepted.
        max: Duration,
    },
    /// The failure would be retried, and the request cannot be sent again.
    NotRepeatable,
    /// The failure would be retried, and that is left to the loop [around it](super::OuterAttempt),
    /// which owns the retries of the request.
    LeftToOuter,
    /// The retry quota held less than the retry costs.
    QuotaExhausted {
        /// The tokens that were there a moment after the refusal.
        available: u32,
        /// What the retry costs.
        needed: u32,
    },
    /// The service has throttled everything for the
    /// [stall timeout](crate::config::StrategyBuilder::stall_timeout) of a
    /// [bulk](crate::Adaptive::bulk) strategy.
    Stalled {
        /// The time since the first throttle after which nothing was delivered.
        span: Duration,
    },
    /// The next send would have had to wait, and the strategy refuses rather than waits.
    SendRefused {
        /// The time until it would have been let go, at the rate of the moment.
        wait: Duration,
    },
    /// There is no such weight.
    Weight(WeightError),
    /// There is no such request of a strategy with several send rates.
    Set(SetError),
    /// There was no initial token, so there was one attempt.
    InitialTokenRefused,
    /// The strategy did not recognize its own token.
    ForeignToken,
    /// The next step was asked for while an attempt was under way, or after the operation had
    /// succeeded.
    OutOfTurn,
    /// A reason of a strategy that is not paceline's.
    Other(&'static str),
}

impl StopReason {
    pub(super) const fn by(reason: &RefusalReason) -> Self {
        match *reason {
            RefusalReason::MaxAttempts { max } => Self::MaxAttempts { max },
            RefusalReason::NotRetryable => Self::NotRetryable,
            RefusalReason::MaybeExecuted => Self::MaybeExecuted,
            RefusalReason::OutOfTime { wait, left } => Self::OutOfTime { wait, left },
            RefusalReason::RetryAfterTooLong { asked, max } => {
                Self::RetryAfterTooLong { asked, max }
            }
            RefusalReason::QuotaExhausted { available, needed } => {
                Self::QuotaExhausted { available, needed }
            }
            RefusalReason::Stalled { span } => Self::Stalled { span },
            RefusalReason::ForeignToken(_) => Self::ForeignToken,
            RefusalReason::Other(reason) => Self::Other(reason),
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::MaxAttempts { max } => RefusalReason::MaxAttempts { max }.fmt(f),
            Self::NotRetryable => RefusalReason::NotRetryable.fmt(f),
            Self::MaybeExecuted => RefusalReason::MaybeExecuted.fmt(f),
            Self::OutOfTime { wait, left } => RefusalReason::OutOfTime { wait, left }.fmt(f),
            Self::RetryAfterTooLong { asked, max } => {
                RefusalReason::RetryAfterTooLong { asked, max }.fmt(f)
            }
            Self::NotRepeatable => f.write_str("the request cannot be sent again"),
            Self::LeftToOuter => f.write_str("retries are left to the loop around it"),
            Self::QuotaExhausted { available, needed } => {
                RefusalReason::QuotaExhausted { available, needed }.fmt(f)
            }
            Self::Stalled { span } => RefusalReason::Stalled { span }.fmt(f),
            Self::SendRefused { wait } => {
                write!(f, "the send rate asks for a wait of {wait:?}")
            }
            Self::Weight(error) => error.fmt(f),
            Self::Set(error) => error.fmt(f),
            Self::OutOfTurn => f.write_str("an attempt is under way, or the operation has ended"),
            Self::InitialTokenRefused => InitialTokenRefused.fmt(f),
            Self::ForeignToken => f.write_str("the strategy did not recognize its own token"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}
