//! What a retry loop returns when it gives up.

use core::{error::Error, fmt, time::Duration};

use crate::{InitialTokenRefused, RefusalReason, RetryRefused, SendRefused};

/// An operation failed, and why it was not tried again.
///
/// The failure itself is what [`into_error`](Self::into_error) returns, and the
/// [`source`](Error::source).
#[derive(Debug)]
pub struct RunError<E> {
    error: Option<E>,
    why: Stopped,
    attempts: u32,
    backoff: Duration,
    connection_reusable: bool,
}

/// Why an operation was not tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stopped {
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
        /// The wait that was not begun: a backoff, or a wait for a turn at the rate of the moment. Zero if
        /// the time was up.
        wait: Duration,
        /// The time that was left.
        left: Duration,
    },
    /// The retry quota held less than the retry costs.
    QuotaExhausted {
        /// The tokens that were there a moment after the refusal.
        available: u32,
        /// What the retry costs.
        needed: u32,
    },
    /// The next send would have had to wait, and the strategy refuses rather than waits.
    SendRefused {
        /// The time until it would have been let go, at the rate of the moment.
        wait: Duration,
    },
    /// There was no initial token, so there was one attempt.
    InitialTokenRefused,
    /// The strategy did not recognize its own token.
    ForeignToken,
    /// A reason of a strategy that is not ours.
    Other(&'static str),
}

impl<E> RunError<E> {
    pub(super) const fn by_refresh(
        error: Option<E>,
        refused: &RetryRefused,
        attempts: u32,
    ) -> Self {
        Self {
            error,
            why: Stopped::by(refused.reason()),
            attempts,
            backoff: refused.backoff(),
            connection_reusable: refused.connection_reusable(),
        }
    }

    /// For reasons of the loop, not of the strategy's decision on a retry.
    pub(super) const fn by_loop(
        error: Option<E>,
        why: Stopped,
        attempts: u32,
        connection_reusable: bool,
    ) -> Self {
        Self {
            error,
            why,
            attempts,
            backoff: Duration::ZERO,
            connection_reusable,
        }
    }

    /// Returns the error of the last attempt, or `None` if it was [cut off](Self::is_cut_off) or there was none.
    #[must_use]
    pub const fn error(&self) -> Option<&E> {
        self.error.as_ref()
    }

    /// Returns the error of the last attempt, or `None` if it was [cut off](Self::is_cut_off) or there was none.
    #[must_use]
    pub fn into_error(self) -> Option<E> {
        self.error
    }

    /// Returns why there was no further attempt.
    #[must_use]
    pub const fn why(&self) -> Stopped {
        self.why
    }

    /// Returns the attempts that were made.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns the delay that a retry would have had if the quota or the time had allowed it, else zero.
    #[must_use]
    pub const fn backoff(&self) -> Duration {
        self.backoff
    }

    /// Returns how long one would have waited for the next attempt, whatever it was for: a backoff or a
    /// turn to send. Zero if there was to be none.
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
    /// # Ok::<(), paceline::SettingsError>(())
    /// ```
    #[must_use]
    pub const fn wait(&self) -> Duration {
        match self.why {
            Stopped::SendRefused { wait } | Stopped::OutOfTime { wait, .. } => wait,
            _ => self.backoff,
        }
    }

    /// Tells whether the last attempt was cut off because its time was up, so that it left no error.
    #[must_use]
    pub const fn is_cut_off(&self) -> bool {
        self.attempts > 0 && self.error.is_none()
    }

    /// Tells whether the connection of the last attempt may be used again.
    #[must_use]
    pub const fn connection_reusable(&self) -> bool {
        self.connection_reusable
    }
}

impl<E> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.attempts == 1 { "" } else { "s" };
        write!(
            f,
            "failed after {} attempt{plural}: {}",
            self.attempts, self.why
        )?;
        match self.why {
            Stopped::QuotaExhausted { .. } => write!(f, ", for a wait of {:?}", self.backoff),
            _ => Ok(()),
        }
    }
}

impl<E: Error + 'static> Error for RunError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error
            .as_ref()
            .map(|error| error as &(dyn Error + 'static))
    }
}

impl Stopped {
    const fn by(reason: &RefusalReason) -> Self {
        match *reason {
            RefusalReason::MaxAttempts { max } => Self::MaxAttempts { max },
            RefusalReason::NotRetryable => Self::NotRetryable,
            RefusalReason::MaybeExecuted => Self::MaybeExecuted,
            RefusalReason::OutOfTime { wait, left } => Self::OutOfTime { wait, left },
            RefusalReason::QuotaExhausted { available, needed } => {
                Self::QuotaExhausted { available, needed }
            }
            RefusalReason::ForeignToken(_) => Self::ForeignToken,
            RefusalReason::Other(reason) => Self::Other(reason),
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::MaxAttempts { max } => RefusalReason::MaxAttempts { max }.fmt(f),
            Self::NotRetryable => RefusalReason::NotRetryable.fmt(f),
            Self::MaybeExecuted => RefusalReason::MaybeExecuted.fmt(f),
            Self::OutOfTime { wait, left } => RefusalReason::OutOfTime { wait, left }.fmt(f),
            Self::QuotaExhausted { available, needed } => {
                RefusalReason::QuotaExhausted { available, needed }.fmt(f)
            }
            Self::SendRefused { wait } => SendRefused { wait }.fmt(f),
            Self::InitialTokenRefused => InitialTokenRefused.fmt(f),
            Self::ForeignToken => f.write_str("the strategy did not recognize its own token"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}
