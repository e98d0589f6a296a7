//! The ways in which a strategy says no.

use alloc::boxed::Box;
use core::{error::Error, fmt, time::Duration};

use super::token::{RetryToken, nanos};
use crate::operation::StopReason;
use crate::set::SetError;
use crate::wait::{LOOK_AGAIN, Rest};
use crate::{AcquireError, WeightError};

/// Why an attempt may not be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotAdmitted {
    /// Its turn has not come. The place in line is in the [`SendTurn`](super::SendTurn).
    Wait {
        /// The time until the turn, at the rate of the moment. Never zero.
        wait: Duration,
        /// The time to rest before the next look, unless the waker is woken before. Never zero,
        /// and at most `wait`; of background, whose waits are estimates, four times that.
        look_in: Duration,
    },
    /// It would have to wait, and the strategy refuses rather than makes wait.
    Refused {
        /// The time until the send would have been let go, at today's rate. Never zero.
        wait: Duration,
    },
    /// It would have to wait, and the service has throttled everything for the
    /// [stall timeout](crate::config::StrategyBuilder::stall_timeout) of a
    /// [bulk](crate::Adaptive::bulk) strategy.
    Stalled {
        /// The time since the first throttle after which nothing was delivered.
        span: Duration,
    },
    /// There is no such weight.
    Weight(WeightError),
    /// One of several limits refused, or there is no such request.
    Set(SetError),
}

impl NotAdmitted {
    /// Returns the answer of a gate whose turn comes in `wait`, to be asked again after that or
    /// after 50 ms.
    #[must_use]
    pub const fn wait(wait: Duration) -> Self {
        let wait = if wait.is_zero() {
            Duration::from_nanos(1)
        } else {
            wait
        };
        let look_in = if wait.as_nanos() < LOOK_AGAIN.as_nanos() {
            wait
        } else {
            LOOK_AGAIN
        };
        Self::Wait { wait, look_in }
    }
}

impl From<SetError> for NotAdmitted {
    fn from(error: SetError) -> Self {
        match error {
            SetError::NotInTime(binding) => Self::Refused { wait: binding.wait },
            error => Self::Set(error),
        }
    }
}

impl From<AcquireError> for NotAdmitted {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::NotInTime { wait } => Self::Refused { wait },
            AcquireError::Weight(error) => Self::Weight(error),
        }
    }
}

impl From<Rest> for NotAdmitted {
    fn from(rest: Rest) -> Self {
        Self::Wait {
            wait: rest.wait(),
            look_in: rest.span(),
        }
    }
}

impl fmt::Display for NotAdmitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wait { wait, .. } => write!(f, "the turn to send comes in {wait:?}"),
            Self::Refused { wait } => StopReason::SendRefused { wait: *wait }.fmt(f),
            Self::Stalled { span } => RefusalReason::Stalled { span: *span }.fmt(f),
            Self::Weight(error) => error.fmt(f),
            Self::Set(error) => error.fmt(f),
        }
    }
}

impl Error for NotAdmitted {}

/// A strategy gave no token for an operation that begins.
///
/// The operation is sent once all the same, and not retried. Our own strategies never refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InitialTokenRefused;

impl fmt::Display for InitialTokenRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no initial token: the operation may be sent once")
    }
}

impl Error for InitialTokenRefused {}

/// The token was issued by another strategy. Here it is again; nothing has changed.
#[derive(Debug)]
pub struct ForeignToken(pub RetryToken);

impl fmt::Display for ForeignToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the token was issued by another strategy")
    }
}

impl Error for ForeignToken {}

/// There will be no retry. The caller returns the failure that led here.
///
/// # Examples
///
/// ```
/// use paceline::{Failure, RetryStrategy, Standard, strategy::{RefusalReason, Reports}};
///
/// let strategy = Standard::builder().quota_capacity(10).build()?;
/// let token = strategy.acquire_initial_token(None).unwrap();
/// let refused = strategy.refresh_retry_token(token, &Failure::transient(), Reports::new()).unwrap_err();
/// assert!(matches!(refused.reason(), RefusalReason::QuotaExhausted { .. }));
/// assert_eq!(refused.to_string(), "retry quota exhausted: 10 available, 14 needed");
/// # Ok::<(), paceline::config::SettingsError>(())
/// ```
#[must_use]
pub struct RetryRefused {
    reason: RefusalReason,
    backoff_ns: u64,
    waits: bool,
}

impl RetryRefused {
    /// Creates a refusal for `reason` with nothing to wait for.
    pub const fn new(reason: RefusalReason) -> Self {
        Self {
            reason,
            backoff_ns: 0,
            waits: false,
        }
    }

    /// Adds the delay that the retry would have had, cut off at 584 years.
    pub fn with_backoff(mut self, backoff: Duration) -> Self {
        self.backoff_ns = nanos(backoff);
        self
    }

    /// Sets whether to sleep the [`backoff`](Self::backoff) before the failure is returned.
    pub fn waiting(mut self, waits: bool) -> Self {
        self.waits = waits;
        self
    }

    /// Returns why there will be no retry.
    #[must_use]
    pub const fn reason(&self) -> &RefusalReason {
        &self.reason
    }

    /// Returns why there will be no retry, and with it a foreign token.
    #[must_use]
    pub fn into_reason(self) -> RefusalReason {
        self.reason
    }

    /// Returns the time to sleep before the failure is returned.
    ///
    /// Zero unless the operation is long polling and only the quota refused: then the caller would
    /// poll again at once ("Retry behavior", AWS SDKs and Tools Reference Guide).
    #[must_use]
    pub const fn delay(&self) -> Duration {
        if self.waits {
            self.backoff()
        } else {
            Duration::ZERO
        }
    }

    /// Returns the delay that the retry would have had if the quota and the time had allowed it,
    /// else zero.
    ///
    /// A loop that goes on with other work after an exhausted quota can slow down by it.
    #[must_use]
    pub const fn backoff(&self) -> Duration {
        Duration::from_nanos(self.backoff_ns)
    }
}

impl fmt::Debug for RetryRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryRefused")
            .field("reason", &self.reason)
            .field("backoff", &self.backoff())
            .field("delay", &self.delay())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for RetryRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl Error for RetryRefused {}

/// Why there will be no retry.
#[derive(Debug)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The operation has been sent as often as it may be. No quota was asked for.
    MaxAttempts {
        /// The sends that were allowed.
        max: u32,
    },
    /// The failure must not be retried.
    NotRetryable,
    /// The work may have been done, and the operation is
    /// [not idempotent](crate::Idempotency::NotIdempotent).
    MaybeExecuted,
    /// The delay would use up the time that the operation has left. No quota was asked for.
    OutOfTime {
        /// The delay that the retry would have had.
        wait: Duration,
        /// The time that was left.
        left: Duration,
    },
    /// The service asked for a longer wait than the
    /// [operation accepts](crate::Operation::max_retry_after). No quota was asked for.
    RetryAfterTooLong {
        /// How long the service asked for.
        asked: Duration,
        /// The longest that is accepted.
        max: Duration,
    },
    /// The retry quota holds less than the retry costs. Nothing was taken.
    QuotaExhausted {
        /// The tokens that were there when looked at again, a moment after the refusal. Other
        /// operations may have put some back by then.
        available: u32,
        /// What the retry costs.
        needed: u32,
    },
    /// The service has throttled everything for the
    /// [stall timeout](crate::config::StrategyBuilder::stall_timeout) of a
    /// [bulk](crate::Adaptive::bulk) strategy. No quota was asked for.
    Stalled {
        /// The time since the first throttle after which nothing was delivered.
        span: Duration,
    },
    /// The token was issued by another strategy. Nothing has changed.
    ForeignToken(Box<RetryToken>),
    /// The reason of another crate's strategy.
    Other(&'static str),
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MaxAttempts { max } => write!(f, "all {max} attempts made"),
            Self::NotRetryable => f.write_str("the failure is not retryable"),
            Self::MaybeExecuted => {
                f.write_str("the work may have been done, and must not be done twice")
            }
            Self::OutOfTime { wait, left } => {
                write!(f, "out of time: {left:?} left, and a wait of {wait:?}")
            }
            Self::RetryAfterTooLong { asked, max } => write!(
                f,
                "the service asked for a wait of {asked:?}, and {max:?} is the longest accepted"
            ),
            Self::QuotaExhausted { available, needed } => write!(
                f,
                "retry quota exhausted: {available} available, {needed} needed"
            ),
            Self::Stalled { span } => {
                write!(f, "stalled: everything was throttled for {span:?}")
            }
            Self::ForeignToken(_) => f.write_str("the token was issued by another strategy"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}
