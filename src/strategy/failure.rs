//! What a strategy sees of a failed attempt: plain data, whatever the error's type.

use core::{error::Error, fmt};

use super::info::{
    Execution, Fault, RetryInfo, RetrySafety, execution_by_throttle, forward, safety_by_fault,
};
use crate::{Outcome, RetryAfter};

/// A failed attempt, as a strategy sees it.
///
/// Printed, it says in a few words what failed, whether a retry is safe, and what the service asked
/// for: `throttled by the service; retry after at least 3s`.
///
/// Made from an error that implements [`RetryInfo`], or by a closure from any other type, so that
/// strategies are object safe and errors of other crates need no wrapper.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Failure {
    safety: RetrySafety,
    fault: Fault,
    throttle: bool,
    timeout: bool,
    execution: Execution,
    retry_after: Option<RetryAfter>,
}

impl Failure {
    /// Returns what `error` says about itself.
    pub fn of(error: &(impl RetryInfo + ?Sized)) -> Self {
        Self {
            safety: error.retry_safety(),
            fault: error.fault(),
            throttle: error.is_throttle(),
            timeout: error.is_timeout(),
            execution: error.execution(),
            retry_after: error.retry_after(),
        }
    }

    /// Returns the failure of which only the fault is known: not retryable if it is the client's,
    /// else maybe ("Retrying Requests", Smithy).
    pub const fn from_fault(fault: Fault) -> Self {
        Self {
            safety: safety_by_fault(fault),
            fault,
            throttle: false,
            timeout: false,
            execution: Execution::Maybe,
            retry_after: None,
        }
    }

    /// Returns a throttling error: safe to retry, and the send rate slows down.
    pub const fn throttling() -> Self {
        let failure = Self::from_fault(Fault::Other).with_throttle(true);
        failure.with_retry_safety(RetrySafety::Yes)
    }

    /// Returns a temporary server error that is safe to retry.
    pub const fn transient() -> Self {
        Self::from_fault(Fault::Server).with_retry_safety(RetrySafety::Yes)
    }

    /// Returns a transient error that is a timeout, which costs twice in generation 2.0.
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

    /// Returns what an HTTP status says of a failure when there is no error code to go by.
    ///
    /// | status | failure | source |
    /// |---|---|---|
    /// | 429, 509 | throttling | AWS's "Retry behavior" lists both; botocore 1.44 and the JavaScript SDK for 429 |
    /// | 503 | as `unavailable` says | transient in the SDKs; S3 means "slow down" by it |
    /// | 500, 502, 504 | transient | all SDKs |
    /// | 408 | transient, timeout | smithy-python |
    /// | any other, so 400 and 403 | not retryable | an error code decides those, a bare status does not |
    ///
    /// A 504 may be [marked a timeout](Self::with_timeout) as Smithy's guide allows.
    pub const fn from_http_status(status: u16, unavailable: ServiceUnavailable) -> Self {
        let failure = match (status, unavailable) {
            (429 | 509, _) | (503, ServiceUnavailable::Throttle) => Self::throttling(),
            (503, ServiceUnavailable::Overloaded) => {
                Self::throttling().with_execution(Execution::Maybe)
            }
            (500 | 502 | 503 | 504, _) => Self::transient(),
            (408, _) => Self::timeout(),
            _ => Self::not_retryable(),
        };
        failure.with_fault(match status {
            400..=499 => Fault::Client,
            500..=599 => Fault::Server,
            _ => Fault::Other,
        })
    }

    /// Replaces the retry safety.
    pub const fn with_retry_safety(self, safety: RetrySafety) -> Self {
        Self { safety, ..self }
    }

    /// Replaces the fault. The retry safety stays.
    pub const fn with_fault(self, fault: Fault) -> Self {
        Self { fault, ..self }
    }

    /// Sets whether it is a throttling error, and with it whether the work may have been done: what
    /// is throttled was turned away. The retry safety stays.
    pub const fn with_throttle(self, throttle: bool) -> Self {
        Self {
            throttle,
            execution: execution_by_throttle(throttle),
            ..self
        }
    }

    /// Sets whether it is a timeout. The retry safety stays.
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

    /// Returns whether the request may be sent again.
    #[must_use]
    pub const fn retry_safety(&self) -> RetrySafety {
        self.safety
    }

    /// Returns whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        self.fault
    }

    /// Returns `true` if the service turned the request away because too many came.
    #[must_use]
    pub const fn is_throttle(&self) -> bool {
        self.throttle
    }

    /// Returns `true` if the service did not answer in time.
    #[must_use]
    pub const fn is_timeout(&self) -> bool {
        self.timeout
    }

    /// Returns whether the work may have been done.
    #[must_use]
    pub const fn execution(&self) -> Execution {
        self.execution
    }

    /// Returns the service's hint on when to come back.
    #[must_use]
    pub const fn retry_after(&self) -> Option<RetryAfter> {
        self.retry_after
    }
}

/// What a send rate records: whether the service throttled, and for how long it asked to be left
/// alone.
impl From<&Failure> for Outcome {
    fn from(failure: &Failure) -> Self {
        match (failure.throttle, failure.retry_after) {
            // The request's own error is an answer like any other.
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

/// So that an operation can fail with a bare `Failure`.
impl RetryInfo for Failure {
    // The type's own methods come before those of the trait.
    forward! {
        self => (self):
        retry_safety() -> RetrySafety;
        is_throttle() -> bool;
        is_timeout() -> bool;
        execution() -> Execution;
        retry_after() -> Option<RetryAfter>;
        fault() -> Fault;
    }
}

/// So that it goes where errors go, `Box<dyn Error>` for one. It has no source.
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

/// What a bare 503 means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServiceUnavailable {
    /// A transient error, as in the SDKs.
    #[default]
    Transient,
    /// A throttling error, for services that answer 503 Slow Down.
    Throttle,
    /// A throttling error for the send rate, after which the work may have been done: 503 says that
    /// the server is overloaded (RFC 9110, section 15.6.4), not that it turned the request
    /// away.
    Overloaded,
}
