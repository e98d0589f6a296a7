//! When the next token comes, for callers who ask before that.

use super::gate::GateWord;
use crate::atomic::sync::{AtomicU64, Ordering::Relaxed};

/// A word beside the last token promised. It says that there is no token before a time.
///
/// | bits | field |
/// |---|---|
/// | 56 | the time, ns after the limiter's start, wrapping |
/// | 8 | the gate's version when it was computed |
///
/// The thread that takes the last token writes the hint, because it owns the cache line already. So
/// does a refused thread that has found a new step of the law's curve. The hint holds while the
/// gate is quiet and has the same version. Then the rate is still the same, and no token has been
/// given back. A thread that stops before it writes the hint writes an old version later. After 256
/// versions that version seems new. Then some callers are refused until the gate's time is over, 50
/// ms at most.
pub(super) struct Hint(AtomicU64);

const TIME_BITS: u32 = 56;
const TIME: u64 = (1 << TIME_BITS) - 1;
/// A time further ahead than this has passed.
const FUTURE: u64 = 1 << (TIME_BITS - 1);

// Relaxed throughout: a hint, which has the version that it belongs to.
impl Hint {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Returns the nanoseconds until there is a token, if that is known at `now`, with the gate as
    /// it was `seen`.
    #[inline]
    pub(super) fn wait(&self, seen: GateWord, now: u64) -> Option<u64> {
        let hint = self.0.load(Relaxed);
        let wait = hint.wrapping_sub(now) & TIME;
        let is_known = hint != 0 && hint >> TIME_BITS == seen.version() && seen.is_quiet(now);
        (is_known && wait.wrapping_sub(1) < FUTURE).then_some(wait)
    }

    /// Notes that there is no token before `time`, as computed since the gate was `seen`.
    #[inline]
    pub(super) fn note(&self, seen: GateWord, time: u64) {
        let next = (seen.version() << TIME_BITS) | (time & TIME);
        self.0.store(next, Relaxed);
    }

    /// Forgets the hint: a place was taken, so the next token comes later.
    pub(super) fn forget(&self) {
        if self.0.load(Relaxed) != 0 {
            self.0.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::gate::Gate;
    use super::*;

    #[test]
    fn a_hint_holds_while_the_gate_is_quiet_and_unchanged() {
        let gate = Gate::new(1 << 20);
        gate.engage();
        let hint = Hint::new();
        assert_eq!(hint.wait(gate.load(), 0), None, "there is none yet");
        hint.note(gate.load(), 1 << 21);
        assert_eq!(hint.wait(gate.load(), 5), Some((1 << 21) - 5));
        assert_eq!(hint.wait(gate.load(), 1 << 20), None, "not quiet");
        let seen = gate.load();
        gate.disturb();
        gate.quiet_until(gate.load(), 1 << 20, false);
        assert_eq!(hint.wait(gate.load(), 5), None, "another version");
        assert_eq!(hint.wait(seen, 5), Some((1 << 21) - 5));
        hint.forget();
        assert_eq!(hint.wait(seen, 5), None);
    }

    #[test]
    fn a_hint_for_a_time_that_has_passed_says_nothing() {
        let gate = Gate::new(0);
        gate.quiet_until(gate.load(), u64::MAX, false);
        let hint = Hint::new();
        for time in [7, TIME, TIME + 1, TIME + 2, 1 << 61] {
            hint.note(gate.load(), time);
            assert_eq!(hint.wait(gate.load(), time - 1), Some(1));
            assert_eq!(hint.wait(gate.load(), time), None);
            assert_eq!(hint.wait(gate.load(), time + 1), None);
        }
        hint.note(gate.load(), FUTURE + 5);
        assert_eq!(hint.wait(gate.load(), 5), Some(FUTURE));
        assert_eq!(hint.wait(gate.load(), 4), None, "further ahead");
    }
}
