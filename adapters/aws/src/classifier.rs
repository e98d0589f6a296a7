//! Hands the decision to the SDK's own retry strategy.

use core::{cell::Cell, time::Duration};

use aws_smithy_runtime_api::client::{
    interceptors::context::InterceptorContext,
    retries::classifiers::{ClassifyRetry, RetryAction, RetryClassifierPriority},
};
use aws_smithy_types::retry::ErrorKind;

use crate::parts::address;

std::thread_local! {
    /// The decision on the attempt that ended last on this thread.
    ///
    /// The SDK asks its classifiers right after the interceptors, in the same poll of the
    /// operation's future. So the operation finds the decision that its interceptor left here. If
    /// an SDK ever does something in between, the address does not match, and the SDK's own backoff
    /// applies.
    static DECISION: Cell<Option<(usize, Decision)>> = const { Cell::new(None) };
}

/// The answer that the classifier gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Forbid,
    /// The kind of error does not matter, since the SDK's quota costs nothing by then.
    Retry(Duration),
}

/// The part that hands the decision to an `aws-sdk-*` client's own retry strategy.
///
/// [`Pacing::classifier`](crate::Pacing::classifier) makes one. It does not classify answers. The
/// SDK's own classifiers and the user's do so before it.
#[derive(Debug)]
pub struct PacingClassifier(());

impl PacingClassifier {
    pub(crate) const NAME: &str = "paceline";

    pub(crate) const fn new() -> Self {
        Self(())
    }
}

/// Leaves a decision on the attempt that ended with `context`, whose address identifies the
/// operation.
pub(crate) fn leave(context: &InterceptorContext, decision: Decision) {
    DECISION.set(Some((address(context), decision)));
}

impl ClassifyRetry for PacingClassifier {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        match DECISION.take() {
            Some((address_then, decision)) if address_then == address(context) => match decision {
                Decision::Forbid => RetryAction::RetryForbidden,
                Decision::Retry(delay) => RetryAction::retryable_error_with_explicit_delay(
                    ErrorKind::TransientError,
                    delay,
                ),
            },
            _ => RetryAction::NoActionIndicated,
        }
    }

    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// Runs after all others.
    fn priority(&self) -> RetryClassifierPriority {
        let mut last = RetryClassifierPriority::transient_error_classifier();
        for _ in 0..64 {
            last = RetryClassifierPriority::run_after(last);
        }
        last
    }
}
