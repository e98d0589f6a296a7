//! An attempt that was answered, and whose outcome may not be known yet.

use paceline::{Failure, strategy::AttemptCharge};

/// A part that gets the outcome of a request, once.
///
/// If it is dropped before, the request counts as cancelled.
pub trait Conclude {
    /// Ends the request: `None` is success.
    ///
    /// The answer is on its way to the caller already, so a failure is recorded and not retried.
    fn conclude(self, failure: Option<&Failure>);

    /// Returns what the request took of the send rates, to be settled once its true cost is known.
    /// It is `None` for a request without weights, for a known cost, and by default.
    fn charge(&self) -> Option<AttemptCharge> {
        None
    }
}
