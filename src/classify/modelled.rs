//! What an operation's model says of its errors.

use crate::Failure;

/// What an operation's model says of an error: whether it has Smithy's trait `@retryable`.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "http")] {
/// use paceline::{
///     RetrySafety,
///     classify::{Classifier, HttpClassifier, HttpResponseParts, ModelledError},
/// };
///
/// let response = http::Response::builder().status(429).body(()).unwrap();
/// let parts = HttpResponseParts::of(&response);
/// let failure = HttpClassifier::new().classify(&parts).unwrap();
/// assert!(failure.is_throttle());
///
/// // The model has an error for exhausted monthly quotas, and does not call it retryable.
/// let parts = parts.with_modelled_error(ModelledError::Final);
/// let failure = HttpClassifier::new().classify(&parts).unwrap();
/// assert_eq!(failure.retry_safety(), RetrySafety::No);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelledError {
    /// The error is modelled without `@retryable`.
    Final,
    /// The error is modelled with `@retryable`.
    Retryable,
    /// The error is modelled with `@retryable(throttling: true)`.
    Throttling,
}

impl ModelledError {
    /// Returns the failure of an error of this kind with this status, or `None` if the status
    /// decides.
    ///
    /// As botocore 1.44.5 does: a modelled error is final whatever the status, but for 500, 502,
    /// 503 and 504.
    pub(super) fn failure(self, status: u16) -> Option<Failure> {
        match self {
            Self::Throttling => Some(Failure::throttling()),
            Self::Retryable => Some(Failure::transient()),
            Self::Final if matches!(status, 500 | 502 | 503 | 504) => None,
            Self::Final => Some(Failure::not_retryable()),
        }
    }
}
