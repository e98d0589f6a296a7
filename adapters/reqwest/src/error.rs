//! What the errors of reqwest mean.

use alloc::sync::Arc;
use core::fmt;

use paceline::{Execution, Failure, classify::IoErrorClassifier};
use reqwest_middleware::Error;

/// A request was cut off when its [deadline](crate::Pacing::deadline) had passed.
///
/// [`downcast_ref`](reqwest_middleware::Error::Middleware) finds it in the request's error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlinePassed {
    name: Option<Arc<str>>,
}

impl DeadlinePassed {
    pub(crate) const fn new(name: Option<Arc<str>>) -> Self {
        Self { name }
    }

    /// Returns the [name](paceline::RetryStrategy::name) of the strategy, or of the scope.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl fmt::Display for DeadlinePassed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}: ")?;
        }
        f.write_str("the request was cut off: its deadline has passed")
    }
}

impl core::error::Error for DeadlinePassed {}

/// Returns the failure of an attempt without an answer.
pub(crate) fn classify(error: &Error) -> Failure {
    match error {
        Error::Reqwest(error) => of_reqwest(error),
        // Only the middleware that made the error knows its meaning.
        Error::Middleware(_) => Failure::not_retryable(),
    }
}

fn of_reqwest(error: &reqwest::Error) -> Failure {
    let (connecting, late) = (error.is_connect(), error.is_timeout());
    if connecting || late {
        let failure = Failure::transient().with_timeout(late);
        return if connecting {
            failure.with_execution(Execution::NotSent)
        } else {
            failure
        };
    }
    if error.is_builder() || error.is_redirect() {
        return Failure::not_retryable();
    }
    match IoErrorClassifier.classify_causes(error) {
        Some(failure) => failure,
        // The connection broke, or the answer was malformed. HTTP's own errors have no `io::Error`.
        None if error.is_request() => Failure::transient(),
        None => Failure::not_retryable(),
    }
}
