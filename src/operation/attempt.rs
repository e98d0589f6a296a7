//! What an attempt learns from its operation.

use alloc::string::{String, ToString};
use core::{fmt, time::Duration};

use super::OuterAttempt;
use crate::headers::AttemptHeader;

/// One attempt of an operation.
///
/// `Display` writes the value of AWS's header `amz-sdk-request`: `attempt=1; max=3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub(super) number: u32,
    pub(super) max: Option<u32>,
    pub(super) time_limit: Option<Duration>,
    pub(super) outer: Option<OuterAttempt>,
    pub(super) member: usize,
}

impl Attempt {
    /// Returns the number of this attempt: 1 for the first send.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Returns the most attempts there may be, or `None` if the strategy has no limit.
    #[must_use]
    pub const fn max(&self) -> Option<u32> {
        self.max
    }

    /// Returns `true` if no other attempt follows this attempt. The request need not be kept then.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        match self.max {
            Some(max) => self.number >= max,
            None => false,
        }
    }

    /// Returns the index of the strategy's member that serves the attempt: the key, account or
    /// endpoint to send with. It is 0 unless the strategy has
    /// [several](crate::config::StrategyBuilder::members).
    #[must_use]
    pub const fn member(&self) -> usize {
        self.member
    }

    /// Returns the attempt of an outer loop that contains this attempt, or `None`. Inside an outer
    /// attempt there is a single attempt.
    #[must_use]
    pub const fn outer(&self) -> Option<OuterAttempt> {
        self.outer
    }

    /// Returns the time that the attempt has from its beginning, or `None` without a limit.
    ///
    /// It is the smaller of [`attempt_timeout`](crate::Operation::attempt_timeout) and the time
    /// left of the [`deadline`](crate::Operation::deadline). Hand it to the client that sends.
    #[must_use]
    pub const fn time_limit(&self) -> Option<Duration> {
        self.time_limit
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt={}", self.number)?;
        match self.max {
            Some(max) => write!(f, "; max={max}"),
            None => Ok(()),
        }
    }
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

    /// Returns the header's value for `attempt`, or `None` if there is no value to send.
    #[must_use]
    pub fn value(self, attempt: &Attempt) -> Option<String> {
        let mut shown = *attempt;
        if let Some(outer) = attempt.outer {
            (shown.number, shown.max) = (outer.number()?, outer.max());
        }
        let number = shown.number;
        match self {
            Self::GrpcPreviousRpcAttempts if number <= 1 => None,
            Self::GrpcPreviousRpcAttempts => Some(number.saturating_sub(1).to_string()),
            Self::EnvoyAttemptCount => Some(number.to_string()),
            Self::AmzSdkRequest => Some(shown.to_string()),
        }
    }

    /// Inserts the header into `headers` for the request of `attempt`, and replaces an older value.
    /// The headers do not change if there is no value to send.
    #[cfg(feature = "http")]
    pub fn tell(self, attempt: &Attempt, headers: &mut http::HeaderMap) {
        let value = self.value(attempt).map(http::HeaderValue::try_from);
        if let Some(Ok(value)) = value {
            headers.insert(self.name(), value);
        }
    }
}
