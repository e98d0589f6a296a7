//! What an HTTP status means without an error code.

use crate::{Execution, Failure, Fault};

/// What a bare 503 means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceUnavailable {
    /// A transient error, as in the SDKs.
    #[default]
    Transient,
    /// A throttling error, for services that answer 503 Slow Down.
    Throttle,
    /// A throttling error after which the work may have been done. A 503 says that the server is
    /// overloaded (RFC 9110, section 15.6.4), not that it rejected the request.
    Overloaded,
}

impl Failure {
    /// Returns the failure for an HTTP status without an error code.
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
    //= AWS: SDK retry behavior is determined in combination with error codes or other data from the
    //= service.
    //= Smithy: For HTTP protocols, for example, a 429 status code indicates this.
    //= Smithy: For HTTP protocols, a 504 status code could also indicate this.
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
}
