//! Waiting for the tokens of a set: one wait, one deadline, one cancellation.

use core::ops::Deref;

use super::{AcquireRequest, SendLimiter};
use crate::set::{SetError, SetPermit};
use crate::{
    Clock, Outcome, SendRate, SendSet,
    law::{LimitReports, Observed},
};

/// Several limits on one request.
///
/// A request waits for the limit whose turn comes last: it sleeps once, and is woken when that turn
/// comes sooner. First come, first served in each line.
///
/// # Examples
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use paceline::{
///     Clock, MonotonicClock, Outcome, SendLimiter, SendRate, SendSet, law::PacedSettings,
/// };
///
/// let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
/// let settings = |n| PacedSettings::fixed(n, minute)?.to_builder().burst(second).build();
/// let start = MonotonicClock::new().now();
/// let requests = Arc::new(SendRate::paced(settings(500)?, start));
/// let tokens = Arc::new(SendRate::paced(settings(200_000)?, start));
/// let limiter = SendLimiter::new(SendSet::new([requests, tokens]));
///
/// let permit = limiter.tokens([1, 1_200]).within(minute).acquire_blocking()?;
/// // ... the response says that it took 3,411 tokens:
/// limiter.settle(permit, &[1, 3_411])?;
/// limiter.record(&permit, Outcome::NotThrottled);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<R: Deref<Target = SendRate>, C: Clock, Z, const N: usize> SendLimiter<SendSet<R, N>, C, Z> {
    /// Returns the set.
    #[must_use]
    pub const fn set(&self) -> &SendSet<R, N> {
        self.of()
    }

    /// Takes in what the service declares about its limits: see [`SendSet::observe`].
    pub fn observe(&self, permit: &SetPermit<N>, reports: &LimitReports) -> Observed {
        self.of().observe(self.now(), permit, reports)
    }

    /// Records the outcome of a request with each of its limits: see [`SendSet::record`].
    pub fn record(&self, permit: &SetPermit<N>, outcome: Outcome) {
        self.of().record(self.now(), permit, outcome);
    }

    /// Records the outcome of a request of which the service says which `limits` throttled it: see
    /// [`SendSet::record_by`].
    pub fn record_by(&self, permit: &SetPermit<N>, outcome: Outcome, limits: &[usize]) {
        self.of().record_by(self.now(), permit, outcome, limits);
    }

    /// Corrects what a request took to its true `costs`: see [`SendSet::settle`].
    ///
    /// # Errors
    ///
    /// As [`SendSet::settle`].
    pub fn settle(&self, permit: SetPermit<N>, costs: &[u32]) -> Result<(), SetError> {
        self.of().settle(self.now(), permit, costs)
    }

    /// Asks for the weight of each limit at once: as many as the set has rates.
    pub fn tokens(
        &self,
        weights: impl AsRef<[u32]>,
    ) -> AcquireRequest<SendSet<&SendRate, N>, &C, &Z, Checked<N>> {
        self.by(self.of().by_ref()).into_tokens(weights)
    }

    /// As [`tokens`](Self::tokens), and owns what it takes: with `Arc`s for the rates, the future
    /// of a clone is `'static`.
    pub fn into_tokens(
        self,
        weights: impl AsRef<[u32]>,
    ) -> AcquireRequest<SendSet<R, N>, C, Z, Checked<N>> {
        let weights = self.of().checked(weights.as_ref());
        AcquireRequest::new(self, weights)
    }
}

/// The weights of a request, if they fit its set.
type Checked<const N: usize> = Result<[u32; N], SetError>;
