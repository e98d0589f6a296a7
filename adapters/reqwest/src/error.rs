//! What the errors of reqwest mean.

use paceline::{Execution, Failure, IoErrors};
use reqwest_middleware::Error;

/// Returns what an attempt without an answer came to.
pub(crate) fn classify(error: &Error) -> Failure {
    match error {
        Error::Reqwest(error) => of_reqwest(error),
        // Of another middleware, which alone knows what it means.
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
    match IoErrors.classify_causes(error) {
        Some(failure) => failure,
        // A connection that broke, or an answer that was none: HTTP's own errors are not the system's.
        None if error.is_request() => Failure::transient(),
        None => Failure::not_retryable(),
    }
}
