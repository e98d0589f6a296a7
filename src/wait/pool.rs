//! Waiting for the tokens of a pool: one wait, and the first turn that comes ends it.

use super::SendLimiter;
use crate::{Clock, SendPool};

/// One of several limiters for each request.
///
/// A request waits in the line of each member, and is woken when the first turn comes.
///
/// # Examples
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use paceline::{
///     Clock, MonotonicClock, Outcome, SendLimiter, SendPool, SendRate, law::PacedSettings,
/// };
///
/// let settings = PacedSettings::fixed(40, Duration::from_secs(60))?; // each key
/// let start = MonotonicClock::new().now();
/// let keys = ["key-a", "key-b", "key-c"];
/// let rates = keys.map(|_| Arc::new(SendRate::paced(settings, start)));
/// let limiter = SendLimiter::new(SendPool::new(rates)?);
///
/// let permit = limiter.token().acquire_blocking()?;
/// let key = keys[permit.index()];
/// // ... send with `key`:
/// limiter.record(permit, Outcome::NotThrottled);
/// # assert_eq!(key, "key-a");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<L, C: Clock, Z, const N: usize, F> SendLimiter<SendPool<L, N, F>, C, Z> {
    /// Returns the pool.
    #[must_use]
    pub const fn pool(&self) -> &SendPool<L, N, F> {
        &self.rate
    }
}
