//! What Smithy's classifiers say of an attempt, in paceline's words.

use core::time::Duration;

use aws_smithy_runtime::client::retries::classifiers::run_classifiers_on_ctx;
use aws_smithy_runtime_api::client::{
    interceptors::context::InterceptorContext,
    result::ConnectorError,
    retries::classifiers::{RetryAction, RetryReason},
    runtime_components::RuntimeComponents,
};
use aws_smithy_types::retry::ErrorKind;
use paceline::{Failure, Fault, RetryAfter};

/// Returns what became of the attempt that has just ended: nothing if it succeeded.
///
/// An output that a classifier wants to see again counts as a failure, as it does for Smithy's own
/// strategy.
pub(crate) fn of_attempt(
    context: &InterceptorContext,
    components: &RuntimeComponents,
) -> Option<Failure> {
    match run_classifiers_on_ctx(components.retry_classifiers(), context) {
        RetryAction::RetryIndicated(RetryReason::RetryableError { kind, retry_after }) => {
            Some(retryable(kind, timed_out(context), retry_after))
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

/// Tells whether nobody answered in time. Smithy has no kind of error for it, and generation 2.0
/// charges twice.
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
