//! An attempt whose outcome is known long after its response has begun.

use core::{fmt, time::Duration};

use super::open::Open;
use crate::{
    Failure, RetrySafety, RetryStrategy, RetryToken,
    strategy::{AttemptCharge, Reports},
};

/// An attempt whose response has begun, from [`Attempts::detach`](super::Attempts::detach). Its
/// outcome is known when the response ends, as with gRPC's trailers and streamed bodies.
///
/// The response is on its way to the caller, so a failure is recorded and not retried, and no quota
/// is taken for it. An attempt that is dropped before it is recorded counts as
/// [cancelled](RetryStrategy::record_cancelled).
///
/// # Examples
///
/// ```
/// use paceline::{Adaptive, ControlLaw, Failure, Operation, RetryStrategy, operation::Next, strategy::Reports};
///
/// let strategy = Adaptive::new(ControlLaw::Aws);
/// let clock = strategy.clock();
/// let mut attempts = Operation::new(&strategy).start();
/// let Next::Send(_) = attempts.next(clock, None) else { unreachable!() };
/// let body = attempts.detach()?; // goes with the body
/// body.failed(&Failure::throttling(), Reports::at(clock)); // its trailers say so
/// assert!(strategy.snapshot().rate.is_some_and(|rate| rate.enabled));
/// # Ok::<(), paceline::operation::NotSending>(())
/// ```
#[must_use = "its outcome is to be recorded"]
pub struct Detached<S: RetryStrategy> {
    pub(super) open: Open<S>,
    pub(super) max_retry_after: Duration,
}

impl<S: RetryStrategy> Detached<S> {
    /// Returns the attempt's charge on the send rates, to settle with its true cost. `None` if
    /// there is nothing to settle.
    pub fn charge(&self) -> Option<AttemptCharge> {
        self.open.strategy.charge(self.open.token.as_ref()?)
    }

    /// Reports that the response ended well.
    pub fn succeeded(mut self, reports: Reports<'_>) {
        self.open.succeed(reports);
    }

    /// Reports that the response ended badly.
    pub fn failed(mut self, failure: &Failure, reports: Reports<'_>) {
        self.open.ends(reports);
        if let Some(token) = self.open.token.take() {
            let token = token.with_max_retry_after(self.max_retry_after);
            let failure = failure.with_retry_safety(RetrySafety::No);
            // The strategy's decision changes nothing about a response that has begun.
            let strategy = &self.open.strategy;
            let _refused = strategy.refresh_retry_token(token, &failure, reports);
        }
    }
}

impl<S: RetryStrategy> fmt::Debug for Detached<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempt = self.open.token.as_ref().map(RetryToken::attempt);
        f.debug_struct("Detached")
            .field("attempt", &attempt)
            .field("strategy", &self.open.strategy)
            .finish_non_exhaustive()
    }
}
