//! The words of a law's state: the state, and what is counted and remembered of it.
//!
//! A thread may stop between the steps of a throttle:
//!
//! - After `drain` has begun, before the swap of the state: the next first throttle uses this
//!   `drain`, with the round trip of the stopped thread's request.
//! - After the swap of the state, before `baseline`: until its next cut the paced law takes the
//!   expected responses as delivered.

use super::meter::Meter;
use crate::atomic::sync::{
    AtomicU64, AtomicU128,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::law::{Draining, State};

/// The state word. Its compare-and-swap decides that there was a throttle and what rate follows.
/// Requests go by that rate once `head` has it. If the throttled thread has stopped, the next
/// thread that records changes `head`.
pub(super) struct LastState(AtomicU128);

impl LastState {
    pub(super) fn new() -> Self {
        Self(AtomicU128::new(State::NONE.to_bits()))
    }

    pub(super) fn load(&self) -> State {
        // Acquire, with the release below: a thread that sees version `n` must see a head that
        // follows at least `n − 1`. The head has one bit of the version, which cannot tell more
        // than two apart. Model: `send_rate::three_throttles_all_cut`.
        State::from_bits(self.0.load(Acquire))
    }

    /// Moves the time of the state back to `now`, if it is later.
    pub(super) fn bring_back(&self, now: u64) {
        loop {
            let seen = self.load();
            if seen.since() <= now || self.replace(seen, seen.brought_back(now)) {
                return;
            }
        }
    }

    /// Replaces `seen` by `next`. False if there was another state in between.
    pub(super) fn replace(&self, seen: State, next: State) -> bool {
        // Release hands over the head that the next state was made from: see `load`. After a loss
        // all words are loaded again. A word comes back only after 65,534 states with the same
        // memory at one reading of the clock.
        self.0
            .compare_exchange(seen.to_bits(), next.to_bits(), Release, Relaxed)
            .is_ok()
    }
}

/// The next state, and the cycle that was seen with the cycle that begins.
pub(super) struct Next {
    pub(super) state: State,
    pub(super) cycle: Option<(u128, u128)>,
}

/// What a thread makes of the last state.
pub(super) enum Step {
    /// The state stays.
    Keep,
    /// Another word has changed: all words are looked at again.
    Again,
    Enter(Next),
}

impl From<Option<State>> for Step {
    fn from(next: Option<State>) -> Self {
        next.map_or(Self::Keep, |state| Self::Enter(Next { state, cycle: None }))
    }
}

/// How many responses had been counted when the law entered its state: 16 bits of the state's
/// version above 48 of count.
pub(super) struct CutBaseline(AtomicU64);

impl CutBaseline {
    const VERSION_SHIFT: u32 = 48;
    const COUNT: u64 = (1 << Self::VERSION_SHIFT) - 1;

    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(super) fn load(&self) -> u64 {
        // Relaxed, here and below: a baseline has its version, and a sum older than the baseline
        // counts as no responses.
        self.0.load(Relaxed)
    }

    /// Notes the count at the state of `version`, unless `seen` has been replaced by the count of a
    /// later state.
    pub(super) fn advance(&self, seen: u64, version: u64, meter: &Meter) {
        self.replace(seen, version, meter.sum());
    }

    /// Keeps the count of the state `last` for the state `version`, which belongs to the same cut.
    pub(super) fn carry(&self, seen: u64, last: u64, version: u64) {
        if seen >> Self::VERSION_SHIFT == last {
            self.replace(seen, version, seen);
        }
    }

    fn replace(&self, seen: u64, version: u64, count: u64) {
        let next = (version << Self::VERSION_SHIFT) | (count & Self::COUNT);
        let _ = self.0.compare_exchange(seen, next, Relaxed, Relaxed);
    }

    /// Returns the responses since the state of `version`. `None` until the thread that entered
    /// this state has noted the count.
    pub(super) fn since(&self, version: u64, meter: &Meter) -> Option<u64> {
        let noted = self.load();
        if noted >> Self::VERSION_SHIFT != version {
            return None;
        }
        let counted = meter.sum().wrapping_sub(noted) & Self::COUNT;
        // No responses if the sum is older.
        Some(counted)
            .filter(|counted| *counted <= Self::COUNT >> 1)
            .or(Some(0))
    }
}

/// The counts after the first throttle, until all earlier requests have come back. The counts may
/// show that the first estimate was wrong.
pub(super) struct DrainWord(AtomicU128);

// Relaxed throughout: all counts are in one word, which also has the state's version. The word is
// begun before the state is swapped in. So a thread that has loaded that state, with acquire, finds
// the word begun. Models: `paced::no_response_after_the_first_throttle_goes_uncounted`,
// `paced::responses_that_come_back_at_once_all_count`.
impl DrainWord {
    pub(super) fn new() -> Self {
        Self(AtomicU128::new(0))
    }

    pub(super) fn load(&self) -> Draining {
        Draining::from_bits(self.0.load(Relaxed))
    }

    /// Begins to count for the state of `version`, which is about to be swapped in, unless another
    /// thread has done so.
    pub(super) fn begin(&self, version: u64, counts: u128) {
        let seen = self.load();
        if seen.of(version).is_none() {
            let _ = self.replace(seen, Draining::new(version, counts));
        }
    }

    /// Counts no more.
    pub(super) fn clear(&self) {
        self.0.store(0, Relaxed);
    }

    /// Replaces the counts. False if another response was counted first.
    pub(super) fn replace(&self, seen: Draining, next: Draining) -> bool {
        let (seen, next) = (seen.to_bits(), next.to_bits());
        self.0
            .compare_exchange(seen, next, Relaxed, Relaxed)
            .is_ok()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::law::{Controller, PacedSettings};

    #[test]
    fn a_count_is_carried_to_another_state_of_the_same_cut() {
        let (meter, _) = Meter::new(&Controller::Paced(PacedSettings::new()));
        let baseline = CutBaseline::new();
        let since = |version| baseline.since(version, &meter);
        baseline.advance(baseline.load(), 5, &meter);
        meter.count(3);
        assert_eq!([5, 6].map(since), [Some(3), None]);
        baseline.carry(baseline.load(), 4, 6);
        assert_eq!([5, 6].map(since), [Some(3), None], "that is another cut");
        baseline.carry(baseline.load(), 5, 6);
        assert_eq!([5, 6].map(since), [None, Some(3)]);
    }

    /// Another thread may have noted the count just before this thread sums its older view.
    #[test]
    fn a_sum_that_is_older_than_the_count_noted_is_none_since() {
        let (meter, _) = Meter::new(&Controller::Paced(PacedSettings::new()));
        let baseline = CutBaseline::new();
        baseline.replace(baseline.load(), 5, meter.sum().wrapping_add(1));
        assert_eq!(baseline.since(5, &meter), Some(0));
        meter.count(2);
        assert_eq!(baseline.since(5, &meter), Some(1));
    }
}
