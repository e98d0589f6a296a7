//! One object's copy, through a strategy: this is where the crate is used.

use paceline::{
    Fault, RetryInfo, RetrySafety, RetryStrategy, RetryStrategyExt,
    operation::{Attempt, StopReason},
};

use crate::{
    client::{CallError, Client},
    service::{destination, source},
};

/// What a strategy wants to know of a failed request.
impl RetryInfo for CallError {
    /// A throttled request was not carried out. An unanswered one may have been, but to write the
    /// same object twice does no harm.
    fn retry_safety(&self) -> RetrySafety {
        match self {
            Self::Connection(_) => RetrySafety::Yes,
            Self::Service { .. } if self.is_slow_down() => RetrySafety::Yes,
            Self::Service { status, .. } if status.is_server_error() => RetrySafety::Maybe,
            Self::Service { .. } => RetrySafety::No,
        }
    }

    fn is_throttle(&self) -> bool {
        self.is_slow_down()
    }

    fn is_timeout(&self) -> bool {
        matches!(self, Self::Connection(error) if error.is_timeout())
    }

    fn fault(&self) -> Fault {
        match self {
            Self::Service { status, .. } if status.is_client_error() => Fault::Client,
            Self::Service { .. } => Fault::Server,
            Self::Connection(_) => Fault::Other,
        }
    }
}

/// Copies object `number`, and returns why the strategy stopped if it failed for good.
pub(crate) async fn copy(
    client: &Client,
    strategy: &dyn RetryStrategy,
    number: u32,
) -> Result<(), StopReason> {
    let (from, to) = (&source(number), &destination(number));
    let copy = |attempt: Attempt| async move { client.copy(from, to, &attempt.to_string()).await };
    strategy.run_async(copy).await.map_err(|stop| stop.why())
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;
    use paceline::{Fault, RetryInfo, RetrySafety};

    use crate::client::CallError;

    fn answered(status: StatusCode, code: &str) -> CallError {
        let code = code.to_owned();
        CallError::Service { status, code }
    }

    #[test]
    fn slow_down_is_a_throttle_and_safe_to_retry() {
        let error = answered(StatusCode::SERVICE_UNAVAILABLE, "SlowDown");
        assert!(error.is_throttle());
        assert_eq!(error.retry_safety(), RetrySafety::Yes);
    }

    #[test]
    fn a_503_without_that_code_is_the_servers_fault_and_no_throttle() {
        let error = answered(StatusCode::SERVICE_UNAVAILABLE, "");
        assert!(!error.is_throttle());
        assert_eq!(error.retry_safety(), RetrySafety::Maybe);
        assert_eq!(error.fault(), Fault::Server);
    }

    #[test]
    fn a_missing_object_is_not_asked_for_again() {
        let error = answered(StatusCode::NOT_FOUND, "NoSuchKey");
        assert_eq!(error.retry_safety(), RetrySafety::No);
        assert_eq!(error.fault(), Fault::Client);
    }
}
