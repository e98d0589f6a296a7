//! Turns the results of Smithy's classifiers into paceline's failures.

use core::time::Duration;

use aws_smithy_runtime::client::retries::classifiers::run_classifiers_on_ctx;
use aws_smithy_runtime_api::client::{
    interceptors::context::InterceptorContext,
    result::ConnectorError,
    retries::classifiers::{RetryAction, RetryReason},
    runtime_components::RuntimeComponents,
};
use aws_smithy_types::retry::ErrorKind;
use paceline::{Failure, Fault, RetryAfter, classify::ServiceUnavailable};

/// Returns the failure of the attempt that has just ended, or `None` if it succeeded.
///
/// An output that a classifier wants to retry counts as a failure, as in Smithy's own strategy.
pub(crate) fn of_attempt(
    context: &InterceptorContext,
    components: &RuntimeComponents,
    unavailable: ServiceUnavailable,
) -> Option<Failure> {
    let response = context.response();
    let status = response.map(|response| response.status().as_u16());
    match run_classifiers_on_ctx(components.retry_classifiers(), context) {
        RetryAction::RetryIndicated(RetryReason::RetryableError { kind, retry_after }) => {
            let failure = retryable(kind, timed_out(context), retry_after);
            Some(if status == Some(503) {
                overloaded(failure, unavailable)
            } else {
                failure
            })
        }
        // Unlike botocore 1.44 and the SDK for Go, the SDK for Rust has no classifier for a bare
        // 429.
        RetryAction::NoActionIndicated if context.is_failed() && status == Some(429) => {
            let hint = response.and_then(|response| response.headers().get("x-amz-retry-after"));
            let hint = hint.and_then(RetryAfter::parse_amz);
            let failure = Failure::from_http_status(429, unavailable);
            Some(hint.map_or(failure, |hint| failure.with_retry_after(hint)))
        }
        _ if context.is_failed() => Some(Failure::not_retryable()),
        _ => None,
    }
}

fn retryable(kind: ErrorKind, timed_out: bool, retry_after: Option<Duration>) -> Failure {
    let failure = match kind {
        ErrorKind::ThrottlingError => Failure::throttling(),
        ErrorKind::ClientError => Failure::transient().with_fault(Fault::Client),
        _ if timed_out => Failure::timeout(),
        _ => Failure::transient(),
    };
    match retry_after {
        Some(hint) => failure.with_retry_after(RetryAfter::Clamped(hint)),
        None => failure,
    }
}

/// Returns the meaning of a retryable failure with status 503. A failure with an error code of
/// throttling stays.
fn overloaded(failure: Failure, unavailable: ServiceUnavailable) -> Failure {
    let bare = Failure::from_http_status(503, unavailable);
    if failure.is_throttle() || !bare.is_throttle() {
        return failure;
    }
    match failure.retry_after() {
        Some(hint) => bare.with_retry_after(hint),
        None => bare,
    }
}

/// Returns `true` if no answer came in time. Smithy has no kind of error for a timeout, and
/// generation 2.0 charges twice.
fn timed_out(context: &InterceptorContext) -> bool {
    let Some(Err(error)) = context.output_or_error() else {
        return false;
    };
    let connector = error.as_connector_error();
    error.is_timeout_error() || connector.is_some_and(ConnectorError::is_timeout)
}

#[cfg(test)]
mod tests {
    use aws_smithy_runtime_api::client::{
        interceptors::context::{Error, Input},
        orchestrator::OrchestratorError,
    };

    use paceline::Execution;

    use super::*;

    fn failed_with(error: OrchestratorError<Error>) -> InterceptorContext {
        let mut context = InterceptorContext::new(Input::erase(()));
        context.set_output_or_error(Err(error));
        context
    }

    #[test]
    fn each_kind_keeps_its_meaning_and_a_hint_is_clamped() {
        let second = Duration::from_secs(1);
        let kinds = [
            (ErrorKind::ThrottlingError, Failure::throttling()),
            (ErrorKind::TransientError, Failure::transient()),
            (ErrorKind::ServerError, Failure::transient()),
            (
                ErrorKind::ClientError,
                Failure::transient().with_fault(Fault::Client),
            ),
        ];
        for (kind, failure) in kinds {
            assert_eq!(retryable(kind, false, None), failure);
            let hinted = failure.with_retry_after(RetryAfter::Clamped(second));
            assert_eq!(retryable(kind, false, Some(second)), hinted);
        }
    }

    #[test]
    fn a_503_means_what_was_said_unless_its_code_does() {
        let hint = RetryAfter::Clamped(Duration::from_secs(1));
        let transient = Failure::transient().with_retry_after(hint);
        let meant = |unavailable| overloaded(transient, unavailable);
        assert_eq!(meant(ServiceUnavailable::Transient), transient);
        let throttle = meant(ServiceUnavailable::Throttle);
        assert_eq!(
            (throttle.is_throttle(), throttle.retry_after()),
            (true, Some(hint))
        );
        assert_eq!(throttle.execution(), Execution::Rejected);
        let overload = meant(ServiceUnavailable::Overloaded);
        assert_eq!(
            (overload.is_throttle(), overload.execution()),
            (true, Execution::Maybe)
        );
        let by_code = Failure::throttling();
        assert_eq!(overloaded(by_code, ServiceUnavailable::Overloaded), by_code);
    }

    #[test]
    fn a_timeout_is_one_wherever_it_happened_and_throttling_is_not() {
        let attempt = failed_with(OrchestratorError::timeout("late".into()));
        let connector = failed_with(OrchestratorError::connector(ConnectorError::timeout(
            "late".into(),
        )));
        let reset = failed_with(OrchestratorError::connector(ConnectorError::io(
            "reset".into(),
        )));
        let seen = [&attempt, &connector, &reset].map(timed_out);
        assert_eq!(seen, [true, true, false]);
        let slow = retryable(ErrorKind::TransientError, true, None);
        assert_eq!(slow, Failure::timeout());
        let throttled = retryable(ErrorKind::ThrottlingError, true, None);
        assert_eq!(throttled, Failure::throttling());
    }
}
