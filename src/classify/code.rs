//! The error codes of AWS.

use crate::{Failure, Fault};

impl Failure {
    /// Returns the failure for an error code that AWS's services share, or `None` if the code does
    /// not decide.
    ///
    /// | codes | failure |
    /// |---|---|
    /// | `Throttling`, `ThrottlingException`, `ThrottledException`, `RequestThrottledException`, `RequestThrottled`, `TooManyRequestsException`, `ProvisionedThroughputExceededException`, `TransactionInProgressException`, `RequestLimitExceeded`, `BandwidthLimitExceeded`, `LimitExceededException`, `SlowDown`, `PriorRequestNotComplete`, `EC2ThrottledException` | throttling |
    /// | `RequestTimeout`, `RequestTimeoutException` | transient; not a [timeout](Failure::is_timeout): it was the client that was slow |
    ///
    /// [`from_service_error_code`](Self::from_service_error_code) adds the codes that mean
    /// something in one service only.
    ///
    /// The throttling codes say that [nothing was done](crate::Execution::Rejected). Codes are
    /// case-sensitive. Source: the lists of the AWS SDKs, which agree ("Retry behavior", AWS SDKs
    /// and Tools Reference Guide).
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
            _ => None,
        }
    }

    /// Returns the failure for an error code of one AWS service, or `None` if the code does not
    /// decide.
    ///
    /// | service | code | failure |
    /// |---|---|---|
    /// | `s3` | `InternalError`, which it also puts into responses of status 200 | transient |
    /// | `sts` | `IDPCommunicationError`: the identity provider could not be reached | transient |
    /// | any | as [`from_error_code`](Self::from_error_code) | |
    ///
    /// `service` is the name in the service's endpoints, in any case. Source: botocore
    /// (`retries/special.py`), smithy-rs (its customizations of S3 and STS).
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Failure;
    ///
    /// let code = "IDPCommunicationError";
    /// assert_eq!(Failure::from_service_error_code("sts", code), Some(Failure::transient()));
    /// assert_eq!(Failure::from_service_error_code("dynamodb", code), None);
    /// ```
    #[must_use]
    pub fn from_service_error_code(service: &str, code: &str) -> Option<Self> {
        let owner = match code {
            "InternalError" => "s3",
            "IDPCommunicationError" => "sts",
            _ => return Self::from_error_code(code),
        };
        let own = service.eq_ignore_ascii_case(owner);
        own.then(Self::transient)
    }
}
