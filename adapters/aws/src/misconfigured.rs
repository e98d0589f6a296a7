//! The error of a missing part.

use core::{error::Error, fmt};

/// A client was configured with some of the parts, and needs another.
///
/// Each operation of such a client fails with this error before anything is sent. It is among the
/// sources of the SDK's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misconfigured {
    /// [`Pacing::classifier`](crate::Pacing::classifier) is missing, so the SDK would retry by its
    /// own rules.
    NoClassifier,
    /// [`Pacing::http_client`](crate::Pacing::http_client) is missing, so requests would not wait
    /// for their turn.
    ///
    /// Pass your own client to this method. A wrapper around the result has to hand on
    /// [`connector_metadata`](aws_smithy_runtime_api::client::http::HttpClient::connector_metadata)
    /// and the extensions of a request. A lost extension is noticed only late, at the first answer
    /// to a request that should have waited.
    NoHttpClient,
    /// [`Pacing::interceptor`](crate::Pacing::interceptor) is missing, so the SDK would retry by
    /// its own rules.
    NoInterceptor,
    /// The client has another retry strategy than [`Pacing::plugin`](crate::Pacing::plugin)
    /// installs, and would retry by that strategy.
    NoStrategy,
    /// [`Pacing::default_http_client`](crate::Pacing::default_http_client) found no client, since
    /// the SDK was built without a client.
    NoDefaultClient,
}

impl fmt::Display for Misconfigured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoClassifier => {
                "the client lacks `.retry_classifier(pacing.classifier())`: retries would not be paced"
            }
            Self::NoHttpClient => {
                "the client lacks `.http_client(pacing.http_client(..))`: requests would not wait for their turn"
            }
            Self::NoInterceptor => {
                "the client lacks `.interceptor(pacing.interceptor())`: nothing is decided"
            }
            Self::NoStrategy => {
                "the client has another retry strategy than that of `pacing.plugin(..)`: retries would not be paced"
            }
            Self::NoDefaultClient => {
                "the SDK was built without an HTTP client: enable `default-https-client`"
            }
        })
    }
}

impl Error for Misconfigured {}
