//! The gate: the one word that healthy traffic reads, and the only word that a response with
//! nothing to do reads.

use crate::atomic::sync::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// A hint of what a request has to look at. A wrong hint may make requests look in vain. It may
/// keep them from looking only until the time in the word.
///
/// | bits | field |
/// |---|---|
/// | 54 | before this time the rate stays as it is: 2⁸ ns after the limiter's start |
/// | 8 | version: raised by whatever may change what a request gets |
/// | 1 | whether responses have to look all the same: any of them may end the window |
/// | 1 | whether a throttle is on its way or has come |
///
/// | a throttle | the time | what that means |
/// |---|---|---|
/// | no | is to come | nothing limits: a request goes, and a response is counted |
/// | no | is over | nothing limits: a request goes, and a response looks |
/// | yes | is to come | the rate limits, and is what the last look made of it |
/// | yes | is over, or cleared | the rate limits, and may be about to change: all look |
///
/// A thread that has looked writes until when there is nothing to do, if the version is still the
/// version read before the look. A change of the law's state or settings, and tokens given back,
/// raise the version and clear the time before they take effect and once more afterwards. A thread
/// that read the old state fails at one of the two raises, unless the changing thread stops in
/// between. Then other threads may go by the old rate until the time runs out, which takes at most
/// [`LONGEST_QUIET`].
pub(super) struct Gate(AtomicU64);

/// One value of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GateWord(u64);

const ENGAGED: u64 = 1 << 63;
const COUNTING: u64 = 1 << 62;
const QUIET_BITS: u32 = 54;
const QUIET: u64 = (1 << QUIET_BITS) - 1;
const VERSION: u64 = !(ENGAGED | COUNTING | QUIET);
const ONE_VERSION: u64 = 1 << QUIET_BITS;
const COARSER: u32 = 8;

/// How far ahead of now a limiter that limits may promise that there is nothing to do, in
/// nanoseconds.
pub(super) const LONGEST_QUIET: u64 = 50_000_000;

const fn quiet_until(nanos: u64) -> u64 {
    (nanos >> COARSER) & QUIET
}

impl GateWord {
    /// Returns `true` if the limiter may limit, so that a request must look.
    pub(super) const fn is_engaged(self) -> bool {
        self.0 & ENGAGED != 0
    }

    /// Returns `true` if the rate is at `now` what it was when a thread looked last.
    pub(super) const fn is_quiet(self, now: u64) -> bool {
        (now >> COARSER) < self.0 & QUIET
    }

    /// Returns `true` if a response at `now` has nothing to do but to be counted.
    pub(super) const fn is_quiet_for_responses(self, now: u64) -> bool {
        self.is_quiet(now) && self.0 & COUNTING == 0
    }

    /// Returns until when there is nothing to do, rounded down.
    pub(super) const fn quiet_until(self) -> u64 {
        (self.0 & QUIET) << COARSER
    }

    /// Returns the version, in 8 bits.
    pub(super) const fn version(self) -> u64 {
        (self.0 & VERSION) >> QUIET_BITS
    }

    const fn disturbed(self) -> Self {
        Self((self.0 & ENGAGED) | (self.0.wrapping_add(ONE_VERSION) & VERSION))
    }
}

// Relaxed but for two. The word is a hint. The words that it points to decide, and order
// themselves. If a thread's load comes before a bit is set, the thread goes as it would have a
// moment sooner. If the load comes after, or the thread has learned of the throttle from another
// thread, it sees the bit. Models: `send_rate::a_throttle_seen_elsewhere_is_obeyed`,
// `send_rate::a_throttle_beside_a_change_takes_nothing_of_it_back`. `disturb` and `quiet_until`
// release, and `look` acquires. If the look comes before the change, it has the old version, and a
// note by that version is void. If the look comes after, the thread finds what has changed, and may
// note what it computes. Model: `paced::a_rate_that_rises_voids_what_refused_threads_noted`.
impl Gate {
    pub(super) fn new(window_end: u64) -> Self {
        Self(AtomicU64::new(quiet_until(window_end)))
    }

    pub(super) fn load(&self) -> GateWord {
        GateWord(self.0.load(Relaxed))
    }

    /// Returns the gate for a thread that is about to look at what a request gets.
    pub(super) fn look(&self) -> GateWord {
        GateWord(self.0.load(Acquire))
    }

    /// Sends every request to look. Called before the throttle takes effect: a thread that stops in
    /// between leaves only a hint to look in vain.
    pub(super) fn engage(&self) {
        if !self.load().is_engaged() {
            self.0.fetch_or(ENGAGED, Relaxed);
        }
    }

    /// Lets every response look: what a request gets is about to change, or has just changed.
    pub(super) fn disturb(&self) {
        let mut seen = self.load();
        while let Err(actual) =
            self.0
                .compare_exchange_weak(seen.0, seen.disturbed().0, Release, Relaxed)
        {
            seen = GateWord(actual);
        }
    }

    /// Notes that the rate stays until `end`, unless something has changed since the gate was
    /// `seen`; and whether responses have to look all the same.
    pub(super) fn quiet_until(&self, seen: GateWord, end: u64, counting: bool) {
        let told = quiet_until(end) | if counting { COUNTING } else { 0 };
        let next = seen.disturbed().0 | told;
        if told != seen.0 & (QUIET | COUNTING) {
            // A loss means that another thread has looked, or that there is something new to look
            // at.
            let _ = self.0.compare_exchange(seen.0, next, Release, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_quiet_until_its_time() {
        let gate = Gate::new(1_000 << COARSER);
        let seen = gate.load();
        assert!(seen.is_quiet((1_000 << COARSER) - 1) && !seen.is_quiet(1_000 << COARSER));
        assert!(!seen.is_engaged());
        gate.engage();
        gate.engage();
        let engaged = gate.load();
        assert!(engaged.is_engaged() && engaged.is_quiet(0));
        assert_eq!(engaged.quiet_until(), 1_000 << COARSER);
    }

    #[test]
    fn what_was_seen_before_a_change_quietens_nothing() {
        let gate = Gate::new(0);
        gate.engage();
        let before = gate.load();
        gate.disturb();
        gate.quiet_until(before, 5 << COARSER, false);
        assert!(!gate.load().is_quiet(0));
        let after = gate.load();
        gate.quiet_until(after, u64::MAX, false);
        assert!(gate.load().is_quiet((1 << 62) - 257) && gate.load().is_engaged());
        gate.disturb();
        assert!(!gate.load().is_quiet(0) && gate.load().is_engaged());
    }

    #[test]
    fn responses_look_where_any_may_end_the_window() {
        let gate = Gate::new(0);
        gate.quiet_until(gate.load(), 9 << COARSER, true);
        let seen = gate.load();
        assert!(seen.is_quiet(8 << COARSER) && !seen.is_quiet_for_responses(0));
        gate.quiet_until(seen, 9 << COARSER, false);
        assert!(gate.load().is_quiet_for_responses(8 << COARSER));
    }

    #[test]
    fn versions_wrap_and_touch_nothing_else() {
        let gate = Gate::new(7 << COARSER);
        let first = gate.load();
        for _ in 0..256 {
            gate.disturb();
        }
        assert_eq!(gate.load(), GateWord(first.0 & !QUIET));
    }

    #[test]
    fn what_is_quiet_already_is_left_as_it_is() {
        let gate = Gate::new(0);
        for counting in [true, false] {
            gate.quiet_until(gate.load(), 9 << COARSER, counting);
            let seen = gate.load();
            gate.quiet_until(seen, 9 << COARSER, counting);
            assert_eq!(gate.load(), seen);
        }
    }
}
