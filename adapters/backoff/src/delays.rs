//! The delay that was decided on, on its way from the condition to the loop.

use core::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Holds the delay of a retry that was granted until it is asked for.
///
/// An atomic only because hosts want iterators that are `Sync`: the loop that decides and the one
/// that asks are the same, one after the other. So `Relaxed` does.
pub(crate) struct Due(AtomicU64);

/// In the place of nanoseconds: no retry was granted.
const NONE: u64 = u64::MAX;

impl Due {
    pub(crate) const fn none() -> Self {
        Self(AtomicU64::new(NONE))
    }

    /// Remembers `delay`, or that there is to be no retry. 584 years and more count as a nanosecond
    /// less.
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
/// Each is given once, after the condition has granted it. Without the condition there is none: the
/// loop stops at its first failure, and no quota is paid.
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
