//! Errors that come of a wrong clock.

use core::time::Duration;

use super::{Classifier, HttpResponseParts};
use crate::{Execution, Failure, Fault};

/// Clocks no further apart than this do not explain an error.
const TOLERATED: Duration = Duration::from_secs(4 * 60);

/// How far a service's clock is from the local one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClockSkew {
    /// The service's clock is ahead: this is to be added to the local time.
    Ahead(Duration),
    /// The service's clock is behind: this is to be taken from the local time.
    Behind(Duration),
}

impl ClockSkew {
    pub(super) const fn between(theirs: Duration, ours: Duration) -> Self {
        match theirs.checked_sub(ours) {
            Some(span) => Self::Ahead(span),
            None => Self::Behind(ours.saturating_sub(theirs)),
        }
    }

    /// Returns the span between the clocks.
    #[must_use]
    pub const fn span(self) -> Duration {
        match self {
            Self::Ahead(span) | Self::Behind(span) => span,
        }
    }
}

/// Classifies as transient the errors that a wrong local clock explains.
///
/// Those are the error codes `InvalidSignatureException`, `SignatureDoesNotMatch`, `AuthFailure`,
/// `RequestTimeTooSkewed` and `AccessDeniedException`, in a response whose `Date` is more than four
/// minutes from the local time, and that does not come from a cache. [Nothing was
/// done](Execution::Rejected), and the fault is the client's.
///
/// A retry is of use only if its signature is made by a clock put right by
/// [`HttpResponseParts::skew`], so this is for callers that do that. To be asked before
/// [`HttpClassifier`](super::HttpClassifier). Source: the AWS SDKs since 2026.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "http")] {
/// use std::time::Duration;
/// use paceline::classify::{Classifier, ClockSkew, ClockSkewClassifier, HttpResponseParts};
///
/// let response = http::Response::builder()
///     .status(403)
///     .header("date", "Sun, 06 Nov 1994 08:49:37 GMT")
///     .body(())
///     .unwrap();
/// let hour = Duration::from_secs(3_600);
/// let parts = HttpResponseParts::of(&response)
///     .with_code("SignatureDoesNotMatch")
///     .with_local_time(Duration::from_secs(784_111_777) - hour);
/// assert_eq!(parts.skew(), Some(ClockSkew::Ahead(hour)));
/// assert!(ClockSkewClassifier.classify(&parts).is_some());
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClockSkewClassifier;

impl Classifier<HttpResponseParts<'_>> for ClockSkewClassifier {
    fn classify(&self, parts: &HttpResponseParts<'_>) -> Option<Failure> {
        let about_signatures = matches!(
            parts.code()?,
            "InvalidSignatureException"
                | "SignatureDoesNotMatch"
                | "AuthFailure"
                | "RequestTimeTooSkewed"
                | "AccessDeniedException"
        );
        if !about_signatures || parts.skew()?.span() <= TOLERATED {
            return None;
        }
        let failure = Failure::transient().with_fault(Fault::Client);
        Some(failure.with_execution(Execution::Rejected))
    }
}
