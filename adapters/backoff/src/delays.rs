//! Carries the decided delay from the condition to the loop.

use core::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Holds the delay of a granted retry until the loop asks for it.
///
/// It is an atomic only because hosts want iterators that are `Sync`. The same loop decides and
/// asks, one after the other, so `Relaxed` is enough.
pub(crate) struct Due(AtomicU64);

/// The value of the word if no retry was granted.
const NONE: u64 = u64::MAX;

impl Due {
    pub(crate) const fn none() -> Self {
        Self(AtomicU64::new(NONE))
    }

    /// Stores `delay`, or `None` for no retry. Delays of 584 years and more are cut to
    /// `u64::MAX - 1` ns.
    pub(crate) fn set(&self, delay: Option<Duration>) {
        let nanos = delay.map_or(NONE, |delay| {
            u64::try_from(delay.as_nanos())
                .unwrap_or(NONE)
                .min(NONE.wrapping_sub(1))
        });
        self.0.store(nanos, Relaxed);
    }

    /// Returns what [`take`](Self::take) would return.
    fn get(&self) -> Option<Duration> {
        match self.0.load(Relaxed) {
            NONE => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }

    fn take(&self) -> Option<Duration> {
        match self.0.swap(NONE, Relaxed) {
            NONE => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }
}

/// The delays of an operation whose condition decides, from
/// [`Retries::split`](crate::Retries::split).
///
/// Each delay is given once, after the condition has granted it. Without the condition there is no
/// delay. The loop then stops at its first failure, and pays no quota.
#[must_use = "the delays are for the host's retry loop"]
pub struct Delays<'a>(pub(crate) &'a Due);

impl Iterator for Delays<'_> {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.take()
    }
}

impl fmt::Debug for Delays<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delays")
            .field("next", &self.0.get())
            .finish()
    }
}
