//! An attempt that was answered, and whose outcome may not be known yet.

use paceline::{Failure, strategy::AttemptCharge};

/// A part that is to learn, once, the outcome of a request.
///
/// Dropped before that, it hears nothing: the request was cancelled.
pub trait Conclude {
    /// Ends the request: `None` is success.
    ///
    /// The answer is on its way to the caller already, so a failure is recorded and not retried.
    fn conclude(self, failure: Option<&Failure>);

    /// Returns what the request took of the send rates, to be settled once its true cost is known:
    /// `None` if it had no weights, or its cost is known already. By default there is nothing.
    fn charge(&self) -> Option<AttemptCharge> {
        None
    }
}
