//! Headers by which a client says which attempt of a request this is.

use alloc::{format, string::String};

use crate::operation::Attempt;

/// A header that tells the service which attempt of a request it gets.
///
/// Services and proxies count retries by it. Nothing sends one unless it is asked to: the adapters
/// for HTTP have `tell_attempts`. A loop inside of an
/// [outer attempt](crate::operation::OuterAttempt) tells the number of that one, or nothing if the
/// number is not known.
///
/// # Examples
///
/// ```
/// use paceline::{Failure, RetryStrategyExt, Standard, headers::AttemptHeader};
///
/// let mut values = Vec::new();
/// let _stopped = Standard::new().run(|attempt| {
///     values.push(AttemptHeader::EnvoyAttemptCount.value(&attempt).unwrap());
///     Err::<(), _>(Failure::transient())
/// });
/// assert_eq!(values, ["1", "2", "3"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttemptHeader {
    /// `grpc-previous-rpc-attempts`: the attempts before this one. The first attempt has none
    /// ("gRPC Retry Design", A6).
    GrpcPreviousRpcAttempts,
    /// `x-envoy-attempt-count`: 1 for the first attempt (Envoy, "HTTP header manipulation").
    EnvoyAttemptCount,
    /// `amz-sdk-request`: `attempt=1; max=3`. The SDKs of AWS send it themselves.
    AmzSdkRequest,
}

impl AttemptHeader {
    /// Returns the header's name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GrpcPreviousRpcAttempts => "grpc-previous-rpc-attempts",
            Self::EnvoyAttemptCount => "x-envoy-attempt-count",
            Self::AmzSdkRequest => "amz-sdk-request",
        }
    }

    /// Returns its value for `attempt`, or `None` if there is nothing to tell.
    #[must_use]
    pub fn value(self, attempt: &Attempt) -> Option<String> {
        let (number, max) = match attempt.outer() {
            Some(outer) => (outer.number()?, outer.max()),
            None => (attempt.number(), attempt.max()),
        };
        match self {
            Self::GrpcPreviousRpcAttempts => {
                let before = number.saturating_sub(1);
                (before > 0).then(|| format!("{before}"))
            }
            Self::EnvoyAttemptCount => Some(format!("{number}")),
            Self::AmzSdkRequest => Some(match max {
                Some(max) => format!("attempt={number}; max={max}"),
                None => format!("attempt={number}"),
            }),
        }
    }

    /// Puts it into the headers of the request of `attempt`, in place of what stands there. Where
    /// there is nothing to tell the headers stay as they are.
    #[cfg(feature = "http")]
    pub fn tell(self, attempt: &Attempt, headers: &mut http::HeaderMap) {
        let value = self.value(attempt).map(http::HeaderValue::try_from);
        if let Some(Ok(value)) = value {
            headers.insert(self.name(), value);
        }
    }
}
