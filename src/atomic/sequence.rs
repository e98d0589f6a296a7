//! A counter that hands out every number once.

use core::sync::atomic::Ordering::Relaxed;

// Not from `sync`: loom's atomics cannot live in a static, and there is nothing here to model. One
// fetch-and-add is the whole type, and nobody reads a second word because of what it returns.
use portable_atomic::AtomicU64;

/// Consecutive numbers, each handed out once to whichever thread asks next.
#[derive(Debug)]
pub(crate) struct Sequence(AtomicU64);

impl Sequence {
    /// Creates a sequence that begins with `first`.
    pub(crate) const fn starting_at(first: u64) -> Self {
        Self(AtomicU64::new(first))
    }

    /// Returns the next number. After `u64::MAX` comes 0.
    pub(crate) fn next(&self) -> u64 {
        // Relaxed: read-modify-writes of one word are totally ordered at any ordering, which is all
        // that "once" needs; no other memory goes with the number.
        self.0.fetch_add(1, Relaxed)
    }
}
