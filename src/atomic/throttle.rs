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
/// | 49 | the peak: the rate that was throttled, before it was reduced |
/// | 17 | version: 0 before the first throttle, then counted up; wraps to 2, so that its lowest bit goes on |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Throttle(u128);

impl Throttle {
    const SINCE: Field = Field::lowest(TIME_BITS);
    const PEAK: Field = Self::SINCE.above(Rate::BITS);
    const VERSION: Field = Self::PEAK.above(17);

    /// Returns the state after one more throttle. Its time never goes back.
    pub(super) fn next(self, now: u64, peak: Rate) -> Self {
        let version = match Self::VERSION.next(self.0) {
            0 => 2,
            version => version,
        };
        let since = self.since().max(now);
        Self(Self::SINCE.put(since) | Self::PEAK.put(peak.to_bits()) | Self::VERSION.put(version))
    }

    /// Returns the state with `now` for the time of the last throttle.
    const fn brought_back(self, now: u64) -> Self {
        Self((self.0 & !Self::SINCE.put(u64::MAX)) | Self::SINCE.put(now))
    }

    /// Whether there has been a throttle: the limiter limits.
    pub(super) const fn is_engaged(self) -> bool {
        self.version() != 0
    }

    pub(super) const fn since(self) -> u64 {
        Self::SINCE.get(self.0)
    }

    /// Returns the rate that was throttled; zero before the first throttle.
    pub(super) const fn peak(self) -> Rate {
        Self::PEAK.rate(self.0)
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
        Self(AtomicU128::new(0))
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
        // A word comes back only after 131,070 throttles of one peak at one reading of the clock.
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
        for version in (1..1 << 17).chain([2, 3]) {
            throttle = throttle.next(5, PEAK);
            assert_eq!(throttle.version(), version);
            assert!(throttle.is_engaged());
        }
        assert_eq!((throttle.since(), throttle.peak()), (5, PEAK));
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
