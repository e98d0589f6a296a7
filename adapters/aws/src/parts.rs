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
    /// The address of the part of this crate that was asked last on this thread.
    static ASKED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Shows the caller that `part` is of this crate, even through a wrapper.
pub(crate) fn answer<P>(part: &P) {
    ASKED.set(Some(address(part)));
}

/// Returns the identity of a part, which does not move during an operation.
pub(crate) fn address<P>(part: &P) -> usize {
    core::ptr::from_ref(part).addr()
}

fn answers<T>(ask: impl FnOnce() -> T) -> Option<usize> {
    ASKED.set(None);
    let _said = ask();
    ASKED.get()
}

/// Returns `true` if `interceptor` is the last of its kind, which decides. An operation may have
/// its own interceptor beside its client's.
pub(crate) fn is_last(interceptor: &PacingInterceptor, components: &RuntimeComponents) -> bool {
    let ask = || components.interceptors().for_each(|part| _ = part.name());
    answers(ask) == Some(address(interceptor))
}

/// Checks the parts beside the interceptor, whose operation is in `bag` already.
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
        // Another strategy may take its own token here, for an operation that is not sent.
        Host::Plugin if answers(strategy).is_none() => Err(Misconfigured::NoStrategy),
        _ => Ok(()),
    }
}
