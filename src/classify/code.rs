//! The error codes of AWS.

use crate::{Failure, Fault};

impl Failure {
    /// Returns what an error code of AWS says of a failure, or `None` if the code does not decide.
    ///
    /// | codes | failure |
    /// |---|---|
    /// | `Throttling`, `ThrottlingException`, `ThrottledException`, `RequestThrottledException`, `RequestThrottled`, `TooManyRequestsException`, `ProvisionedThroughputExceededException`, `TransactionInProgressException`, `RequestLimitExceeded`, `BandwidthLimitExceeded`, `LimitExceededException`, `SlowDown`, `PriorRequestNotComplete`, `EC2ThrottledException` | throttling |
    /// | `RequestTimeout`, `RequestTimeoutException` | transient; not a [timeout](Failure::is_timeout): it was the client that was slow |
    /// | `InternalError`, which S3 puts into answers of status 200 | transient |
    /// | `IDPCommunicationError`, of STS | transient |
    ///
    /// Of a throttled request it says that [nothing was done](crate::Execution::Rejected). Upper and lower
    /// case differ. Source: the lists of the AWS SDKs, which agree ("Retry behavior", AWS SDKs and Tools
    /// Reference Guide).
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Failure;
    ///
    /// assert!(Failure::from_error_code("SlowDown").unwrap().is_throttle());
    /// assert_eq!(Failure::from_error_code("NoSuchKey"), None);
    /// ```
    #[must_use]
    pub fn from_error_code(code: &str) -> Option<Self> {
        match code {
            "Throttling"
            | "ThrottlingException"
            | "ThrottledException"
            | "RequestThrottledException"
            | "RequestThrottled"
            | "TooManyRequestsException"
            | "ProvisionedThroughputExceededException"
            | "TransactionInProgressException"
            | "RequestLimitExceeded"
            | "BandwidthLimitExceeded"
            | "LimitExceededException"
            | "SlowDown"
            | "PriorRequestNotComplete"
            | "EC2ThrottledException" => Some(Self::throttling()),
            "RequestTimeout" | "RequestTimeoutException" => {
                Some(Self::transient().with_fault(Fault::Client))
            }
            "InternalError" | "IDPCommunicationError" => Some(Self::transient()),
            _ => None,
        }
    }
}
