//! The refusals of a strategy.

use alloc::boxed::Box;
use core::{error::Error, fmt, time::Duration};

use super::token::{FOREIGN, ForeignToken, RetryToken, nanos};
use crate::AcquireError;
use crate::pool::PoolError;
use crate::set::SetError;
use crate::wait::{LOOK_AGAIN, Rest};

/// Why an attempt may not be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotAdmitted {
    /// The attempt's turn has not come. Its place in line is in the [`SendTurn`](super::SendTurn).
    Wait {
        /// The time until the turn, at today's rate. Never zero.
        wait: Duration,
        /// The time to rest before the next look, unless the waker is woken before. Never zero, and
        /// at most `wait`. For background, whose waits are estimates, at most four times `wait`.
        look_in: Duration,
    },
    /// The attempt would have to wait, and the strategy refuses it instead.
    Refused {
        /// The time until the send would have been let go, at today's rate. Never zero.
        wait: Duration,
    },
    /// The attempt would have to wait, and the service has throttled everything for the [stall
    /// timeout](crate::config::StrategyBuilder::stall_timeout) of a [bulk](crate::Adaptive::bulk)
    /// strategy.
    Stalled {
        /// The time since the first throttle after which nothing was delivered.
        span: Duration,
    },
    /// The strategy cannot send a request of this weight, or of these weights. The only send rate
    /// of a strategy is limit 0.
    Weight(SetError),
    /// The [choice](crate::config::StrategyBuilder::choosing) of the strategy ranks no member.
    NotChosen,
}

impl NotAdmitted {
    /// Returns the answer of a gate whose turn comes in `wait`. The gate is asked again after
    /// `wait`, and at the latest after 50 ms.
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
        match error.wait() {
            Some(wait) => Self::Refused { wait },
            None => Self::Weight(error),
        }
    }
}

impl From<PoolError<SetError>> for NotAdmitted {
    fn from(error: PoolError<SetError>) -> Self {
        match error {
            PoolError::Member { error, .. } => error.into(),
            PoolError::Spent { wait } => Self::Refused { wait },
            _ => Self::NotChosen,
        }
    }
}

impl From<AcquireError> for NotAdmitted {
    fn from(error: AcquireError) -> Self {
        SetError::Limit { limit: 0, error }.into()
    }
}

impl NotAdmitted {
    /// Describes a rest in line.
    pub(super) const fn resting(rest: Rest) -> Self {
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
            Self::Stalled { span } => StopReason::Stalled { span: *span }.fmt(f),
            Self::Weight(error) => error.fmt(f),
            Self::NotChosen => StopReason::NotChosen.fmt(f),
        }
    }
}

impl Error for NotAdmitted {}

/// A strategy gave no token for an operation that begins.
///
/// The operation is sent once all the same, and not retried. Paceline's strategies never refuse.
#[derive(Debug)]
pub struct InitialTokenRefused;

impl fmt::Display for InitialTokenRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no initial token: the operation may be sent once")
    }
}

impl Error for InitialTokenRefused {}

/// There will be no retry. The caller returns the failure that led here.
///
/// # Examples
///
/// ```
/// use paceline::{Failure, RetryStrategy, Standard, operation::StopReason, strategy::Reports};
///
/// let strategy = Standard::builder().quota_capacity(10).build()?;
/// let token = strategy.acquire_initial_token(None).unwrap();
/// let refused = strategy.refresh_retry_token(token, &Failure::transient(), Reports::new()).unwrap_err();
/// assert!(matches!(refused.reason(), StopReason::QuotaExhausted { .. }));
/// assert_eq!(refused.to_string(), "retry quota exhausted: 10 available, 14 needed");
/// # Ok::<(), paceline::config::SettingsError>(())
/// ```
#[must_use]
pub struct RetryRefused {
    reason: StopReason,
    foreign: Option<Box<RetryToken>>,
    backoff_ns: u64,
    waits: bool,
}

impl RetryRefused {
    /// Creates a refusal for `reason` with nothing to wait for.
    pub const fn new(reason: StopReason) -> Self {
        Self {
            reason,
            foreign: None,
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
    pub const fn reason(&self) -> StopReason {
        self.reason
    }

    /// Returns the token of another strategy, if this token is the reason.
    #[must_use]
    pub fn into_foreign(self) -> Option<RetryToken> {
        self.foreign.map(|token| *token)
    }

    /// Returns the time to sleep before the failure is returned.
    ///
    /// It is zero unless the operation is long polling and only the quota refused. Such a caller
    /// would otherwise poll again at once ("Retry behavior", AWS SDKs and Tools Reference Guide).
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
    /// A loop that goes on with other work after an exhausted quota can sleep this long.
    #[must_use]
    pub const fn backoff(&self) -> Duration {
        Duration::from_nanos(self.backoff_ns)
    }
}

impl From<ForeignToken> for RetryRefused {
    fn from(ForeignToken(token): ForeignToken) -> Self {
        Self {
            foreign: Some(Box::new(token)),
            ..Self::new(StopReason::ForeignToken)
        }
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

/// Why an operation was not tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The operation was sent as often as allowed. No quota was asked for.
    MaxAttempts {
        /// The sends that were allowed.
        max: u32,
    },
    /// The failure must not be retried.
    NotRetryable,
    /// The work may have been done, and the operation is
    /// [not idempotent](crate::Idempotency::NotIdempotent).
    MaybeExecuted,
    /// The next attempt would not have begun before the [deadline](crate::Operation::deadline).
    OutOfTime {
        /// The wait that was not begun: a backoff, or a wait for a turn at today's rate.
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
        /// The longest wait that is accepted.
        max: Duration,
    },
    /// The failure would be retried, but the request cannot be sent again.
    NotRepeatable,
    /// The failure would be retried, but the loop [around it](crate::operation::OuterAttempt) owns
    /// the retries of the request.
    LeftToOuter,
    /// The retry quota held less than the retry costs. Nothing was taken.
    QuotaExhausted {
        /// The tokens that were there a moment after the refusal. Other operations may have put
        /// some back by then.
        available: u32,
        /// The tokens that the retry costs.
        needed: u32,
    },
    /// The service has throttled everything for the
    /// [stall timeout](crate::config::StrategyBuilder::stall_timeout) of a
    /// [bulk](crate::Adaptive::bulk) strategy.
    Stalled {
        /// The time since the first throttle after which nothing was delivered.
        span: Duration,
    },
    /// The next send would have had to wait, and the strategy refuses instead.
    SendRefused {
        /// The time until the send's turn, at today's rate.
        wait: Duration,
    },
    /// The strategy cannot send a request of this weight, or of these weights. The only send rate
    /// of a strategy is limit 0.
    Weight(SetError),
    /// The [choice](crate::config::StrategyBuilder::choosing) of the strategy ranks no member.
    NotChosen,
    /// The thread was [interrupted](crate::wait::Interrupt).
    Interrupted,
    /// There was no initial token, so there was one attempt.
    InitialTokenRefused,
    /// The token was issued by another strategy.
    ForeignToken,
    /// The next step was asked for while an attempt was under way, or after the operation had
    /// succeeded.
    OutOfTurn,
    /// A reason of another crate's strategy.
    Other(&'static str),
}

impl fmt::Display for StopReason {
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
            Self::NotRepeatable => f.write_str("the request cannot be sent again"),
            Self::LeftToOuter => f.write_str("retries are left to the loop around it"),
            Self::QuotaExhausted { available, needed } => write!(
                f,
                "retry quota exhausted: {available} available, {needed} needed"
            ),
            Self::Stalled { span } => {
                write!(f, "stalled: everything was throttled for {span:?}")
            }
            Self::SendRefused { wait } => write!(f, "the send rate asks for a wait of {wait:?}"),
            Self::Weight(error) => error.fmt(f),
            Self::NotChosen => f.write_str("no member is chosen"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::InitialTokenRefused => InitialTokenRefused.fmt(f),
            Self::ForeignToken => f.write_str(FOREIGN),
            Self::OutOfTurn => f.write_str("an attempt is under way, or the operation has ended"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}
