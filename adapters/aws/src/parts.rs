//! Whether a client has all the parts that it needs.

use core::cell::Cell;

use aws_smithy_runtime_api::client::{
    http::HttpClient as _,
    retries::{RetryStrategy as _, classifiers::ClassifyRetry as _},
    runtime_components::RuntimeComponents,
};
use aws_smithy_types::config_bag::ConfigBag;

use crate::{Misconfigured, classifier::PacingClassifier, interceptor::Host};

std::thread_local! {
    /// Whether a part of this crate was asked on this thread.
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

/// Tells who asks a part that the part is of this crate. A wrapper may be in between.
pub(crate) fn answer() {
    ASKED.set(true);
}

fn answers<T>(ask: impl FnOnce() -> T) -> bool {
    ASKED.set(false);
    let _said = ask();
    ASKED.get()
}

/// Looks for the parts beside the interceptor, whose operation is in `bag` already.
///
/// Called before the SDK asks its retry strategy for the first time.
pub(crate) fn complete(
    host: Host,
    components: &RuntimeComponents,
    bag: &ConfigBag,
) -> Result<(), Misconfigured> {
    let client = components.http_client();
    if !client.is_some_and(|client| answers(|| client.connector_metadata())) {
        return Err(Misconfigured::NoHttpClient);
    }
    let strategy = || {
        let strategy = components.retry_strategy();
        strategy.should_attempt_initial_request(components, bag)
    };
    let mut classifiers = components.retry_classifiers();
    match host {
        Host::Sdk if !classifiers.any(|part| part.name() == PacingClassifier::NAME) => {
            Err(Misconfigured::NoClassifier)
        }
        // Another strategy may take a token of its own, for an operation that is not sent.
        Host::Plugin if !answers(strategy) => Err(Misconfigured::NoStrategy),
        _ => Ok(()),
    }
}
