//! The meaning of an error for a strategy, and which requests may be sent again after it.

use core::{error::Error, fmt};

use crate::{Outcome, Part, RetryAfter};

/// Whether it is safe to send a failed request again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetrySafety {
    /// A retry is permitted, not promised.
    Yes,
    /// A retry must not be made.
    No,
    /// Unknown. Retried if the fault is the server's.
    Maybe,
}

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The client's: the request itself is wrong.
    Client,
    /// The server's: the same request might have succeeded.
    Server,
    /// Neither's, or unknown.
    Other,
}

/// Whether the service may have done the work of a failed request.
///
/// This is another question than whether a retry may succeed. If a connection breaks after the
/// request went out, a retry may succeed, but the order may have been placed already.
/// [`Idempotency`](crate::Idempotency) combines both questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Execution {
    /// Nothing was sent, because the connection was refused or missing.
    NotSent,
    /// The service throttled: it turned the request away and did nothing.
    Rejected,
    /// The work may have been done, in whole or in part, or it is unknown.
    Maybe,
}

/// An error that says what it means to a strategy.
///
/// # Examples
///
/// ```
/// use paceline::{Failure, Fault, RetryInfo, RetrySafety};
///
/// struct Refused { status: u16 }
///
/// impl RetryInfo for Refused {
///     fn failure(&self) -> Failure {
///         match self.status {
///             429 => Failure::throttling(),
///             400..500 => Failure::from_fault(Fault::Client),
///             _ => Failure::from_fault(Fault::Server),
///         }
///     }
/// }
///
/// assert_eq!(Refused { status: 429 }.failure().retry_safety(), RetrySafety::Yes);
/// assert_eq!(Refused { status: 404 }.failure().retry_safety(), RetrySafety::No);
/// assert_eq!(Refused { status: 500 }.failure().retry_safety(), RetrySafety::Maybe);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether it may be retried",
    label = "not a `RetryInfo`",
    note = "`run_with` and `run_async_with` take a closure that says so; a type of your own may implement `paceline::RetryInfo`"
)]
pub trait RetryInfo {
    /// Returns what the error means.
    fn failure(&self) -> Failure;
}

/// So that an operation can fail with a bare `Failure`.
impl RetryInfo for Failure {
    fn failure(&self) -> Failure {
        *self
    }
}

/// Returns the retry safety of an error if only its fault is known.
const fn safety_by_fault(fault: Fault) -> RetrySafety {
    match fault {
        Fault::Client => RetrySafety::No,
        Fault::Server | Fault::Other => RetrySafety::Maybe,
    }
}

/// Returns whether the work may have been done, if only throttling is known.
const fn execution_by_throttle(throttle: bool) -> Execution {
    if throttle {
        Execution::Rejected
    } else {
        Execution::Maybe
    }
}

/// A failed attempt, as a strategy sees it.
///
/// `Display` says in a few words what failed, whether a retry is safe, and what the service asked
/// for: `throttled by the service; retry after at least 3s`.
///
/// A failure is made from an error that implements [`RetryInfo`], or by a closure from any other
/// type. So strategies are object safe, and errors of other crates need no wrapper.
///
/// # Examples
///
/// ```
/// use std::{io, time::Duration};
/// use paceline::{Failure, RetryAfter, classify::ServiceUnavailable};
///
/// let classify = |error: &io::Error| match error.kind() {
///     io::ErrorKind::TimedOut => Failure::timeout(),
///     io::ErrorKind::InvalidInput => Failure::not_retryable(),
///     _ => Failure::transient(),
/// };
/// assert!(classify(&io::ErrorKind::TimedOut.into()).is_timeout());
///
/// let slow_down = Failure::from_http_status(429, ServiceUnavailable::Transient)
///     .with_retry_after(RetryAfter::AtLeast(Duration::from_secs(3)));
/// assert!(slow_down.is_throttle());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Failure {
    safety: RetrySafety,
    fault: Fault,
    throttle: bool,
    timeout: bool,
    execution: Execution,
    retry_after: Option<RetryAfter>,
    part: Option<Part>,
}

/// Declares the getters of [`Failure`].
macro_rules! getters {
    ($($(#[$doc:meta])+ $method:ident: $field:ident -> $type:ty;)+) => {
        impl Failure {
            $(
                $(#[$doc])+
                #[must_use]
                pub const fn $method(&self) -> $type {
                    self.$field
                }
            )+
        }
    };
}

getters! {
    /// Returns whether the request may be sent again.
    retry_safety: safety -> RetrySafety;
    /// Returns whose fault the error is.
    fault: fault -> Fault;
    /// Returns `true` if the service turned the request away because too many requests came.
    is_throttle: throttle -> bool;
    /// Returns `true` if the service did not answer in time.
    is_timeout: timeout -> bool;
    /// Returns whether the work may have been done.
    execution: execution -> Execution;
    /// Returns the service's hint on when to come back.
    retry_after: retry_after -> Option<RetryAfter>;
    /// Returns the throttled part, if only a part was throttled.
    part: part -> Option<Part>;
}

impl Failure {
    /// Returns a failure of which only the fault is known. It is not retryable if the fault is the
    /// client's, and else maybe ("Retrying Requests", Smithy).
    pub const fn from_fault(fault: Fault) -> Self {
        Self {
            safety: safety_by_fault(fault),
            fault,
            throttle: false,
            timeout: false,
            execution: Execution::Maybe,
            retry_after: None,
            part: None,
        }
    }

    /// Returns a throttling error: safe to retry, and the send rate slows down.
    pub const fn throttling() -> Self {
        let failure = Self::from_fault(Fault::Other).with_throttle(true);
        failure.with_retry_safety(RetrySafety::Yes)
    }

    /// Returns the failure of a batch of which the service throttled `refused` items and did the
    /// others.
    ///
    /// The send rate counts the part that was done as delivered. The next attempt of the operation
    /// sends only the refused items, and takes less of its [weight](crate::Operation::weight)
    /// accordingly. If the service refused no item, there is no failure to report. If it refused
    /// all items, the failure is [`throttling`](Self::throttling).
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Adaptive, Failure, RetryStrategyExt};
    ///
    /// /// Writes what the service takes, and returns the items that it throttled.
    /// fn write_batch(items: &[u32]) -> Vec<u32> {
    ///     items.iter().copied().skip(20).collect()
    /// }
    ///
    /// let strategy = Adaptive::paced();
    /// let mut left: Vec<u32> = (0..25).collect();
    /// strategy.operation().weight(25).run(|_| {
    ///     let items = left.len();
    ///     left = write_batch(&left);
    ///     match left.len() {
    ///         0 => Ok(()),
    ///         refused => Err(Failure::partly_throttled(refused as u32, items as u32)),
    ///     }
    /// })?;
    /// assert!(left.is_empty());
    /// # Ok::<(), paceline::operation::RunError<Failure>>(())
    /// ```
    pub const fn partly_throttled(refused: u32, items: u32) -> Self {
        Self {
            part: Part::new(refused, items),
            ..Self::throttling()
        }
    }

    /// Returns a temporary server error that is safe to retry.
    pub const fn transient() -> Self {
        Self::from_fault(Fault::Server).with_retry_safety(RetrySafety::Yes)
    }

    /// Returns a transient error that is a timeout. Its retry costs twice as much in generation
    /// 2.0.
    pub const fn timeout() -> Self {
        Self {
            timeout: true,
            ..Self::transient()
        }
    }

    /// Returns an error that must not be retried.
    pub const fn not_retryable() -> Self {
        Self::from_fault(Fault::Other).with_retry_safety(RetrySafety::No)
    }

    /// Replaces the retry safety.
    pub const fn with_retry_safety(self, safety: RetrySafety) -> Self {
        Self { safety, ..self }
    }

    /// Replaces the fault. The retry safety stays.
    pub const fn with_fault(self, fault: Fault) -> Self {
        Self { fault, ..self }
    }

    /// Sets whether the failure is throttling. This also sets the execution, because a throttled
    /// request was turned away. The retry safety stays.
    pub(crate) const fn with_throttle(self, throttle: bool) -> Self {
        Self {
            throttle,
            execution: execution_by_throttle(throttle),
            ..self
        }
    }

    /// Sets whether the failure is a timeout. The retry safety stays.
    pub const fn with_timeout(self, timeout: bool) -> Self {
        Self { timeout, ..self }
    }

    /// Sets whether the work may have been done.
    pub const fn with_execution(self, execution: Execution) -> Self {
        Self { execution, ..self }
    }

    /// Adds the service's hint on when to come back.
    pub const fn with_retry_after(self, hint: RetryAfter) -> Self {
        Self {
            retry_after: Some(hint),
            ..self
        }
    }
}

/// The outcome for a send rate: whether the service throttled, and the pause that it asked for.
impl From<&Failure> for Outcome {
    fn from(failure: &Failure) -> Self {
        if let Some(part) = failure.part.filter(|_| failure.throttle) {
            return Self::PartlyThrottled(part);
        }
        match (failure.throttle, failure.retry_after) {
            // An error of the request is an answer like any other.
            (false, _) => match (failure.fault, failure.safety) {
                (Fault::Client | Fault::Other, RetrySafety::No) => Self::NotThrottled,
                _ => Self::Failed,
            },
            (true, None) => Self::Throttled,
            (true, Some(RetryAfter::AtLeast(hint) | RetryAfter::Clamped(hint))) => {
                Self::ThrottledFor(hint)
            }
        }
    }
}

/// A failure can be used as an error, such as a `Box<dyn Error>`. It has no source.
impl Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = match self.fault {
            Fault::Client => "client error",
            Fault::Server => "server error",
            Fault::Other => "error",
        };
        match (self.throttle, self.timeout, self.safety) {
            (true, ..) => f.write_str("throttled by the service")?,
            (false, true, _) => f.write_str("timed out")?,
            (false, false, RetrySafety::Yes) => write!(f, "transient {error}")?,
            (false, false, RetrySafety::No | RetrySafety::Maybe) => f.write_str(error)?,
        }
        f.write_str(match self.safety {
            RetrySafety::Yes => "",
            RetrySafety::No => "; not retryable",
            RetrySafety::Maybe => "; maybe retryable",
        })?;
        match self.retry_after {
            Some(RetryAfter::AtLeast(span)) => write!(f, "; retry after at least {span:?}"),
            Some(RetryAfter::Clamped(span)) => write!(f, "; retry after {span:?}"),
            None => Ok(()),
        }
    }
}

/// Whether an operation that is carried out twice has the same effect as once.
///
/// | | retried after |
/// |---|---|
/// | `Idempotent` | whatever is retryable |
/// | `NotIdempotent` | of that, what says that nothing was done: throttling, a refused connection |
///
/// Idempotency makes no failure retryable, and lifts no limit. A loop gets it from
/// [`Operation::idempotency`](crate::Operation::idempotency). Without a loop, give it to
/// [`RetryToken::with_idempotency`](crate::RetryToken::with_idempotency). With the feature `http`,
/// `Idempotency::of_request` reads it from a request.
///
/// # Examples
///
/// ```
/// use paceline::{Execution, Failure, Idempotency};
///
/// let once = Idempotency::NotIdempotent;
/// assert!(once.permits(&Failure::throttling()));
/// assert!(once.permits(&Failure::transient().with_execution(Execution::NotSent)));
/// assert!(!once.permits(&Failure::timeout()));
/// assert!(Idempotency::Idempotent.permits(&Failure::timeout()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Idempotency {
    /// Repeating the operation is safe, because it is idempotent or the service detects a
    /// repetition by its key.
    Idempotent,
    /// Repeating the operation is wrong, as with an order without a key.
    NotIdempotent,
}

impl Idempotency {
    /// Returns `true` if the operation may be sent again after `failure`, as far as idempotency
    /// decides.
    #[must_use]
    pub const fn permits(self, failure: &Failure) -> bool {
        match (self, failure.execution()) {
            (Self::Idempotent, _) | (_, Execution::NotSent | Execution::Rejected) => true,
            (Self::NotIdempotent, Execution::Maybe) => false,
        }
    }
}
