//! What is said when a part is missing.

use core::{error::Error, fmt};

/// A client was configured with some of the parts, and needs another.
///
/// Found as the source of the error of the first operation that misses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misconfigured {
    /// [`Pacing::classifier`](crate::Pacing::classifier) is missing, so that the SDK would retry as
    /// it likes.
    NoClassifier,
    /// [`Pacing::http_client`](crate::Pacing::http_client) is missing, so that a request did not
    /// wait for its turn.
    NoHttpClient,
    /// [`Pacing::interceptor`](crate::Pacing::interceptor) is missing, so that the SDK would retry
    /// as it likes.
    NoInterceptor,
}

impl fmt::Display for Misconfigured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoClassifier => {
                "the client lacks `.retry_classifier(pacing.classifier())`: retries would not be paced"
            }
            Self::NoHttpClient => {
                "the client lacks `.http_client(pacing.http_client(..))`: a request did not wait for its turn"
            }
            Self::NoInterceptor => {
                "the client lacks `.interceptor(pacing.interceptor())`: nothing is decided"
            }
        })
    }
}

impl Error for Misconfigured {}
