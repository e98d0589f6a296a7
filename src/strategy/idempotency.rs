//! Whether an operation may be carried out twice.

use super::{failure::Failure, info::Execution};

/// Whether carrying an operation out twice comes to the same as once.
///
/// | | retried after |
/// |---|---|
/// | `Idempotent` | whatever is retryable |
/// | `NotIdempotent` | of that, what says that nothing was done: throttling, a refused connection |
///
/// It does not make a failure retryable, nor lift a limit. A loop gets it from
/// [`Operation::idempotency`](crate::Operation::idempotency). Without a loop, give it to
/// [`RetryToken::with_idempotency`](crate::RetryToken::with_idempotency). With the feature
/// `http`, `Idempotency::of_request` reads it from a request.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Idempotency {
    /// Repeating it is safe: the operation is idempotent, or the service detects a repetition by
    /// its key.
    #[default]
    Idempotent,
    /// Twice is wrong: an order without a key.
    NotIdempotent,
}

impl Idempotency {
    /// Returns `true` if the operation may be sent again after `failure`, as far as this goes.
    #[must_use]
    pub const fn permits(self, failure: &Failure) -> bool {
        match (self, failure.execution()) {
            (Self::Idempotent, _) | (_, Execution::NotSent | Execution::Rejected) => true,
            (Self::NotIdempotent, Execution::Maybe) => false,
        }
    }
}
