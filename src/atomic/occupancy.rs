//! How many places of a bounded store are taken, and what became of those that were not free.

use super::sync::{AtomicU64, Ordering::Relaxed};

/// A number of places, and counts of what happened for want of one.
#[derive(Debug)]
pub(crate) struct Occupancy {
    taken: AtomicU64,
    most: u64,
    evicted: AtomicU64,
    refused: AtomicU64,
}

impl Occupancy {
    /// Creates the occupancy of `most` places, all free.
    pub(crate) fn new(most: u64) -> Self {
        Self {
            taken: AtomicU64::new(0),
            most,
            evicted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Takes a place, or returns false if there is none.
    pub(crate) fn take(&self) -> bool {
        // Relaxed, here and below: counts, of which nothing is published, and read-modify-writes, so that none is lost.
        // A place that is given back and not yet seen is as if it were given back later.
        // Test: `scopes::there_are_never_more_than_allowed` of shuttle-tests.
        let mut seen = self.taken.load(Relaxed);
        while seen < self.most {
            let next = seen.saturating_add(1);
            match self
                .taken
                .compare_exchange_weak(seen, next, Relaxed, Relaxed)
            {
                Ok(_) => return true,
                Err(actual) => seen = actual,
            }
        }
        false
    }

    /// Gives a place back.
    pub(crate) fn give_back(&self) {
        self.taken.fetch_sub(1, Relaxed);
    }

    /// Counts a place that changed hands.
    pub(crate) fn note_eviction(&self) {
        self.evicted.fetch_add(1, Relaxed);
    }

    /// Counts somebody who got none.
    pub(crate) fn note_refusal(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    pub(crate) const fn most(&self) -> u64 {
        self.most
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }
}
