//! The gate: the one word that healthy traffic reads.

use super::sync::{AtomicU64, Ordering::Relaxed};

/// A hint of what a request has to look at. It may be wrong only towards looking too much.
///
/// Bit 63 is set once a throttle is on its way or has come. The bits below are the end of the current window
/// of the measured rate, in nanoseconds after the limiter's start.
#[derive(Debug)]
pub(super) struct Gate(AtomicU64);

const ENGAGED: u64 = 1 << 63;

impl Gate {
    pub(super) fn new(window_end: u64) -> Self {
        Self(AtomicU64::new(window_end & !ENGAGED))
    }

    /// Whether the limiter may be engaged, so that a request must look.
    pub(super) fn is_engaged(&self) -> bool {
        // Relaxed, here and below: a hint. What is decided is decided by the words it points to, which
        // order themselves. A thread that does not see the bit yet goes as it would have a moment
        // sooner; one that has learned of the throttle from another thread sees it by coherence.
        // Model: `send_rate::a_throttle_seen_elsewhere_is_obeyed`.
        self.0.load(Relaxed) & ENGAGED != 0
    }

    /// Whether a success at `now` has nothing to do but to be counted.
    pub(super) fn is_quiet(&self, now: u64) -> bool {
        // An engaged gate reads as an end of at least 2⁶³, so one comparison is not enough.
        let gate = self.0.load(Relaxed);
        gate & ENGAGED == 0 && now < gate
    }

    /// Returns the end of the current window, or an earlier one.
    pub(super) fn window_end(&self) -> u64 {
        self.0.load(Relaxed) & !ENGAGED
    }

    /// Sends everybody to look. Called before the throttle takes effect: a thread that stops in between
    /// leaves only a hint to look in vain.
    pub(super) fn engage(&self) {
        if !self.is_engaged() {
            self.0.fetch_or(ENGAGED, Relaxed);
        }
    }

    /// Moves the end of the window to `end`, even if that is earlier.
    pub(super) fn close_at(&self, end: u64) {
        let mut gate = self.0.load(Relaxed);
        // Relaxed: as above.
        while let Err(actual) = self.0.compare_exchange_weak(
            gate,
            (gate & ENGAGED) | (end & !ENGAGED),
            Relaxed,
            Relaxed,
        ) {
            gate = actual;
        }
    }

    /// Moves the end of the window to `end`, if that is later.
    pub(super) fn open_until(&self, end: u64) {
        let mut gate = self.0.load(Relaxed);
        while gate & !ENGAGED < end & !ENGAGED {
            let next = (gate & ENGAGED) | (end & !ENGAGED);
            // Relaxed: as above. A loss means that somebody else has moved it, perhaps far enough.
            match self.0.compare_exchange_weak(gate, next, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(actual) => gate = actual,
            }
        }
    }
}
