//! Waiting for the tokens of a set: one wait, one deadline, one cancellation.

use core::ops::Deref;

use super::SendLimiter;
use crate::set::{SetError, SetPermit};
use crate::{Clock, Outcome, SendRate, SendSet};

/// Several limits on one request.
///
/// A request waits for the limit whose turn comes last. The request sleeps once, and is woken if
/// that turn comes sooner. Each line is first come, first served.
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
/// limiter.record(permit, Outcome::NotThrottled);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<R: Deref<Target = SendRate>, C: Clock, Z, const N: usize> SendLimiter<SendSet<R, N>, C, Z> {
    /// Returns the set.
    #[must_use]
    pub const fn set(&self) -> &SendSet<R, N> {
        &self.rate
    }

    /// Records the outcome of a request where the service says which `limits` throttled it. See
    /// [`SendSet::record_by`].
    pub fn record_by(&self, permit: &SetPermit<N>, outcome: Outcome, limits: &[usize]) {
        self.rate
            .record_by(self.clock.now(), permit, outcome, limits);
    }

    /// Corrects the tokens of a request to its true `costs`. See [`SendSet::settle`].
    ///
    /// # Errors
    ///
    /// The errors of [`SendSet::settle`].
    pub fn settle(&self, permit: SetPermit<N>, costs: &[u32]) -> Result<(), SetError> {
        self.rate.settle(self.clock.now(), permit, costs)
    }
}
