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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_only_opens_further_and_closes_where_it_is_told() {
        let gate = Gate::new(100);
        for (end, want) in [(100, 100), (99, 100), (150, 150), (ENGAGED | 0x78, 150)] {
            gate.open_until(end);
            assert_eq!(gate.window_end(), want);
        }
        for end in [200, 40, ENGAGED | 0x32] {
            gate.close_at(end);
            assert_eq!(gate.window_end(), end & !ENGAGED);
            assert!(!gate.is_engaged(), "a window is no throttle");
        }
    }

    #[test]
    fn an_engaged_gate_stays_engaged_and_keeps_its_window() {
        let gate = Gate::new(ENGAGED | 0x64);
        assert!(!gate.is_engaged());
        gate.engage();
        gate.engage();
        assert!(gate.is_engaged());
        assert_eq!(gate.window_end(), 100);
        gate.open_until(150);
        assert!(gate.is_engaged());
        gate.open_until(u64::MAX);
        assert_eq!(gate.window_end(), u64::MAX >> 1);
        gate.close_at(7);
        assert!(gate.is_engaged());
        assert_eq!(gate.window_end(), 7);
    }

    #[test]
    fn a_gate_is_quiet_within_its_window_until_it_is_engaged() {
        let gate = Gate::new(100);
        assert!(gate.is_quiet(99));
        assert!(!gate.is_quiet(100));
        gate.engage();
        assert!(!gate.is_quiet(0) && !gate.is_quiet(99));
    }
}
