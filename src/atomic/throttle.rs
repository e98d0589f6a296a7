//! The last throttle: when, at which rate, and how many there have been.

use super::bits::{Field, TIME_BITS};
use super::sync::{
    AtomicU128,
    Ordering::{AcqRel, Acquire},
};
use crate::fixed::Rate;

/// One state of the throttle word. Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 60 | when the last throttle came, ns after the limiter's start |
/// | 49 | the peak: the rate that was throttled, before it was reduced |
/// | 19 | version: 0 before the first throttle, then counted up; wraps to 8, so that its low 3 bits go on |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Throttle(u128);

impl Throttle {
    const SINCE: Field = Field::lowest(TIME_BITS);
    const PEAK: Field = Self::SINCE.above(Rate::BITS);
    const VERSION: Field = Self::PEAK.above(19);

    /// Returns the state after one more throttle. Its time never goes back.
    pub(super) fn next(self, now: u64, peak: Rate) -> Self {
        let version = match Self::VERSION.next(self.0) {
            0 => 8,
            version => version,
        };
        let since = self.since().max(now);
        Self(Self::SINCE.put(since) | Self::PEAK.put(peak.to_bits()) | Self::VERSION.put(version))
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

/// The throttle word. Its compare-and-swap is the moment at which a throttle takes effect.
#[derive(Debug)]
pub(super) struct LastThrottle(AtomicU128);

impl LastThrottle {
    pub(super) fn new() -> Self {
        Self(AtomicU128::new(0))
    }

    pub(super) fn load(&self) -> Throttle {
        // Acquire, with the release below: a thread that sees version `n` must see a head that follows
        // `n − 1` at least, or it would apply a throttle over one that is still to be applied.
        // Model: `send_rate::two_throttles_both_cut`.
        Throttle(self.0.load(Acquire))
    }

    /// Replaces `seen` by `next`. False if there was another throttle in between.
    pub(super) fn replace(&self, seen: Throttle, next: Throttle) -> bool {
        // Release hands over the head that the peak was taken from; acquire keeps the chain of versions
        // whole. A version and a time together never repeat, so that a stale expectation fails.
        self.0
            .compare_exchange(seen.0, next.0, AcqRel, Acquire)
            .is_ok()
    }
}
