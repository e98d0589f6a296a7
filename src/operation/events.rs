//! What operations tell `tracing`: each retry, and the end of those that did not succeed. At the
//! level debug and with the target `paceline::operation`, since they are as many as failures.
//!
//! Without the feature `tracing` each of these is empty.

use core::time::Duration;

use super::Stop;
use crate::{Failure, RetryStrategy};

/// Emits that a failed attempt is followed by another one.
pub(super) fn retry(
    strategy: &impl RetryStrategy,
    attempt: u32,
    failure: &Failure,
    delay: Duration,
) {
    #[cfg(feature = "tracing")]
    {
        let strategy = strategy.id();
        tracing::debug!(
            target: "paceline::operation", ?strategy, attempt, %failure, ?delay, "attempt failed, retrying"
        );
    }
    #[cfg(not(feature = "tracing"))]
    let _ = (strategy, attempt, failure, delay);
}

/// Emits that there is no further attempt, and why. `failure` is that of the last attempt, if there
/// was one.
pub(super) fn gave_up(strategy: &impl RetryStrategy, stop: &Stop, failure: Option<&Failure>) {
    #[cfg(feature = "tracing")]
    {
        let (strategy, failure) = (strategy.id(), failure.map(tracing::field::display));
        let (attempt, reason) = (stop.attempts(), stop.why());
        tracing::debug!(
            target: "paceline::operation", ?strategy, attempt, failure, %reason, "gave up"
        );
    }
    #[cfg(not(feature = "tracing"))]
    let _ = (strategy, stop, failure);
}
