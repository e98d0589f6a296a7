//! The last throttle: when, at which rate, and how many there have been.

use super::bits::{Field, TIME_BITS};
use super::sync::{
    AtomicU128,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::fixed::Rate;

/// One state of the throttle word. Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 62 | when the last throttle came, ns after the limiter's start |
/// | 49 | what the law remembers; of the published one the peak: the rate that was throttled, before it was reduced |
/// | 1 | whether the law has ended: the limiter limits nothing until the next throttle |
/// | 16 | version: 0 before the first throttle, then counted up; wraps to 2, so that its lowest bit goes on |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Throttle(u128);

impl Throttle {
    const SINCE: Field = Field::lowest(TIME_BITS);
    const MEMORY: Field = Self::SINCE.above(Rate::BITS);
    const ENDED: Field = Self::MEMORY.above(1);
    const VERSION: Field = Self::ENDED.above(16);

    /// The state before the first throttle.
    pub(super) const NONE: Self = Self(0);

    /// Returns the state after one more throttle. Its time never goes back.
    pub(super) fn next(self, now: u64, peak: Rate) -> Self {
        self.next_with(now, peak.to_bits())
    }

    /// Returns the state after one more throttle, or another cause to remember something else.
    pub(super) fn next_with(self, now: u64, memory: u64) -> Self {
        let version = match Self::VERSION.next(self.0) {
            0 => 2,
            version => version,
        };
        let since = self.since().max(now);
        Self(Self::SINCE.put(since) | Self::MEMORY.put(memory) | Self::VERSION.put(version))
    }

    /// Returns the state in which nothing is limited any more.
    pub(super) fn ended(self) -> Self {
        Self(self.next_with(0, self.memory()).0 | Self::ENDED.put(1))
    }

    /// Returns the state after the law has begun once more at `now`, even if that is earlier.
    pub(super) fn begun_anew(self, now: u64, memory: u64) -> Self {
        self.next_with(now, memory).brought_back(now)
    }

    /// Returns the state in which nothing is limited any more, or known of what was.
    pub(super) fn forgotten(self, now: u64) -> Self {
        Self(self.begun_anew(now, 0).0 | Self::ENDED.put(1))
    }

    /// Returns the state with `now` for the time of the last throttle.
    const fn brought_back(self, now: u64) -> Self {
        Self((self.0 & !Self::SINCE.put(u64::MAX)) | Self::SINCE.put(now))
    }

    /// Whether the limiter limits: there has been a throttle, and the law has not ended since.
    pub(super) const fn is_engaged(self) -> bool {
        self.version() != 0 && Self::ENDED.get(self.0) == 0
    }

    /// Returns when the last throttle came; later than now during a pause that came with it.
    pub(super) const fn since(self) -> u64 {
        Self::SINCE.get(self.0)
    }

    /// Returns what the law remembers; zero before the first throttle.
    pub(super) const fn memory(self) -> u64 {
        Self::MEMORY.get(self.0)
    }

    /// Returns the rate that was throttled, as the published law remembers it; zero before the first throttle.
    pub(super) const fn peak(self) -> Rate {
        Rate::from_bits(self.memory())
    }

    pub(super) const fn version(self) -> u64 {
        Self::VERSION.get(self.0)
    }
}

const _: () = assert!(Throttle::VERSION.is_last(), "the fields fill the word");

/// The throttle word. Its compare-and-swap decides that there was a throttle and what rate follows; requests
/// go by that rate once `head` has it, which the next recorder sees to if the throttled one has stopped.
#[derive(Debug)]
pub(super) struct LastThrottle(AtomicU128);

impl LastThrottle {
    pub(super) fn new() -> Self {
        Self(AtomicU128::new(Throttle::NONE.0))
    }

    pub(super) fn load(&self) -> Throttle {
        // Acquire, with the release below: a thread that sees version `n` must see a head that follows
        // `n − 1` at least, because the one bit that they share tells no more than two apart.
        // Model: `send_rate::three_throttles_all_cut`.
        Throttle(self.0.load(Acquire))
    }

    /// Moves the time of the last throttle back to `now`, if it is later.
    pub(super) fn bring_back(&self, now: u64) {
        loop {
            let seen = self.load();
            if seen.since() <= now || self.replace(seen, seen.brought_back(now)) {
                return;
            }
        }
    }

    /// Replaces `seen` by `next`. False if there was another throttle in between.
    pub(super) fn replace(&self, seen: Throttle, next: Throttle) -> bool {
        // Release hands over the head that the peak was taken from, see `load`; after a loss all is loaded again.
        // A word comes back only after 65,534 throttles of one peak at one reading of the clock.
        self.0
            .compare_exchange(seen.0, next.0, Release, Relaxed)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEAK: Rate = Rate::MAX;

    #[test]
    fn a_version_counts_up_and_wraps_past_the_first_two() {
        let last = LastThrottle::new();
        assert!(!last.load().is_engaged());
        assert_eq!(last.load().peak(), Rate::ZERO);
        let mut throttle = last.load();
        for version in (1..1 << 16).chain([2, 3]) {
            throttle = throttle.next(5, PEAK);
            assert_eq!(throttle.version(), version);
            assert!(throttle.is_engaged());
        }
        assert_eq!((throttle.since(), throttle.peak()), (5, PEAK));
    }

    #[test]
    fn a_law_that_has_ended_limits_nothing_until_the_next_throttle() {
        let on = Throttle(0).next_with(5, 77);
        let off = on.ended();
        assert!(on.is_engaged() && !off.is_engaged());
        assert_eq!((off.since(), off.memory(), off.version()), (5, 77, 2));
        let again = off.next_with(9, 78);
        assert!(again.is_engaged());
        assert_eq!((again.since(), again.memory(), again.version()), (9, 78, 3));
        let anew = again.begun_anew(4, 0);
        assert_eq!((anew.since(), anew.memory(), anew.version()), (4, 0, 4));
        let gone = again.forgotten(4);
        assert_eq!((gone.since(), gone.memory(), gone.version()), (4, 0, 4));
        assert!(anew.is_engaged() && !gone.is_engaged());
    }

    #[test]
    fn the_time_of_the_last_throttle_goes_back_only_when_it_is_brought_back() {
        let last = LastThrottle::new();
        let before = last.load();
        let late = before.next(9, PEAK).next(4, Rate::ZERO);
        assert_eq!((late.since(), late.peak()), (9, Rate::ZERO));
        assert!(last.replace(before, late));
        assert!(!last.replace(before, before), "there was another one");
        last.bring_back(10);
        assert_eq!(last.load(), late);
        last.bring_back(3);
        assert_eq!(last.load().since(), 3);
        assert_eq!((last.load().version(), last.load().peak()), (2, Rate::ZERO));
        let high = late
            .next(super::super::bits::LAST_TIME, PEAK)
            .brought_back(7);
        assert_eq!((high.since(), high.peak(), high.version()), (7, PEAK, 3));
    }
}
