//! An attempt that was answered, and whose outcome may not be known yet.

use paceline::Failure;

/// A part that is to learn, once, the outcome of a request.
///
/// Dropped before that, it hears nothing: the request was cancelled.
pub trait Settle {
    /// Tells it: `None` is success.
    ///
    /// The answer is on its way to the caller already, so a failure is recorded and not retried.
    fn settle(self, failure: Option<&Failure>);
}
