//! What an error says about itself: the two traits that users' error types implement.

use crate::RetryAfter;

/// Whether it is safe to send a failed request again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RetrySafety {
    /// A retry is permitted, not promised.
    Yes,
    /// A retry must not be made.
    No,
    /// Unknown. [`MaybePolicy`](crate::config::MaybePolicy) decides.
    Maybe,
}

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The client's: the request itself is wrong.
    Client,
    /// The server's: the same request might have succeeded.
    Server,
    /// Neither's, or unknown.
    Other,
}

/// What a failure says about the work that was asked for: whether the service may have done it.
///
/// Another question than whether a retry may succeed: a connection that breaks after the request
/// went out is worth a retry, and the order may have been placed all the same.
/// [`Idempotency`](crate::Idempotency) brings the two together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Execution {
    /// Nothing was sent: the connection was refused, or there was none.
    NotSent,
    /// The service turned the request away and did nothing: it throttled.
    Rejected,
    /// The work may have been done, in whole or in part, or it is unknown.
    #[default]
    Maybe,
}

/// What a strategy wants to know about an error.
///
/// Every method has a default, so an error type implements what it knows. Names and meanings follow
/// `RetryInfo` and `ErrorInfo` of Smithy's client guide, "Retrying Requests".
///
/// # Examples
///
/// ```
/// use paceline::{Failure, Fault, RetryInfo, RetrySafety};
///
/// struct Refused { status: u16 }
///
/// impl RetryInfo for Refused {
///     fn is_throttle(&self) -> bool { self.status == 429 }
///     fn fault(&self) -> Fault {
///         if self.status < 500 { Fault::Client } else { Fault::Server }
///     }
/// }
///
/// assert_eq!(Refused { status: 429 }.retry_safety(), RetrySafety::Yes);
/// assert_eq!(Refused { status: 404 }.retry_safety(), RetrySafety::No);
/// assert_eq!(Failure::of(&Refused { status: 500 }).retry_safety(), RetrySafety::Maybe);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether it may be retried",
    label = "not a `RetryInfo`",
    note = "`run_with` and `run_async_with` take a closure that says so; a type of your own may implement `paceline::RetryInfo`"
)]
pub trait RetryInfo {
    /// Returns whether the request may be sent again.
    ///
    /// By default a throttled request may be (it was turned away, not worked on); of the rest,
    /// [`No`](RetrySafety::No) if the fault is the client's and [`Maybe`](RetrySafety::Maybe) if it
    /// is anyone else's, as Smithy's guide has it for errors that are not modelled as retryable.
    fn retry_safety(&self) -> RetrySafety {
        if self.is_throttle() {
            RetrySafety::Yes
        } else {
            safety_by_fault(self.fault())
        }
    }

    /// Returns `true` if the service turned the request away because too many came. No by default.
    fn is_throttle(&self) -> bool {
        false
    }

    /// Returns `true` if the service did not answer in the client's time limit. No by default.
    ///
    /// Not to be confused with being safe to retry: the request may have been carried out.
    fn is_timeout(&self) -> bool {
        false
    }

    /// Returns whether the work may have been done.
    ///
    /// By default [`Rejected`](Execution::Rejected) if the request was throttled, else
    /// [`Maybe`](Execution::Maybe).
    fn execution(&self) -> Execution {
        execution_by_throttle(self.is_throttle())
    }

    /// Returns the service's hint on when to come back. None by default.
    fn retry_after(&self) -> Option<RetryAfter> {
        None
    }

    /// Returns whose fault the error is. [`Fault::Other`] by default.
    fn fault(&self) -> Fault {
        Fault::Other
    }
}

/// Returns the retry safety of an error of which only the fault is known.
pub(super) const fn safety_by_fault(fault: Fault) -> RetrySafety {
    match fault {
        Fault::Client => RetrySafety::No,
        Fault::Server | Fault::Other => RetrySafety::Maybe,
    }
}

/// Returns whether the work may have been done, if only throttling is known.
pub(super) const fn execution_by_throttle(throttle: bool) -> Execution {
    if throttle {
        Execution::Rejected
    } else {
        Execution::Maybe
    }
}

/// Forwards the methods of a list to another value.
macro_rules! forward {
    (
        $self:ident => $to:tt:
        $($method:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)+
    ) => {$(
        fn $method(&$self $(, $argument: $kind)*) $(-> $result)? {
            $to.$method($($argument),*)
        }
    )+};
}
pub(crate) use forward;
