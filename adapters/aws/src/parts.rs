//! Whether a client has all the parts that it needs.

use core::cell::Cell;

use aws_smithy_runtime_api::client::{
    http::HttpClient as _,
    interceptors::Intercept as _,
    retries::{RetryStrategy as _, classifiers::ClassifyRetry as _},
    runtime_components::RuntimeComponents,
};
use aws_smithy_types::config_bag::ConfigBag;

use crate::{
    Misconfigured,
    classifier::PacingClassifier,
    interceptor::{Host, PacingInterceptor},
};

std::thread_local! {
    /// The part of this crate that was asked last on this thread.
    static ASKED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Tells who asks `part` that it is of this crate. A wrapper may be in between.
pub(crate) fn answer<P>(part: &P) {
    ASKED.set(Some(address(part)));
}

/// The identity of what stays where it is during an operation.
pub(crate) fn address<P>(part: &P) -> usize {
    core::ptr::from_ref(part).addr()
}

fn answers<T>(ask: impl FnOnce() -> T) -> Option<usize> {
    ASKED.set(None);
    let _said = ask();
    ASKED.get()
}

/// Returns `true` if `interceptor` is the last of its kind: an operation may have its own beside its
/// client's, and the last one decides.
pub(crate) fn is_last(interceptor: &PacingInterceptor, components: &RuntimeComponents) -> bool {
    let ask = || components.interceptors().for_each(|part| _ = part.name());
    answers(ask) == Some(address(interceptor))
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
    if client
        .and_then(|client| answers(|| client.connector_metadata()))
        .is_none()
    {
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
        Host::Plugin if answers(strategy).is_none() => Err(Misconfigured::NoStrategy),
        _ => Ok(()),
    }
}
