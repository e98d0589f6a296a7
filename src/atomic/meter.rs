//! The measured rate under many threads: striped counts, and one word that turns the window.

use super::bits::Field;
use super::stripes::{Stripe, Stripes};
use super::sync::{
    AtomicU128,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::fixed::Rate;
use crate::meter::{Window, Windows, smoothed};

/// One state of the meter. Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 49 | the measured rate |
/// | 34 | the window that is being counted |
/// | 45 | base: the sum of the stripes when that window began, wrapping |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading(u128);

impl Reading {
    const MEASURED: Field = Field::lowest(Rate::BITS);
    const WINDOW: Field = Self::MEASURED.above(34);
    const BASE: Field = Self::WINDOW.above(45);

    const fn new(measured: Rate, window: u64, base: u64) -> Self {
        Self(
            Self::MEASURED.put(measured.to_bits())
                | Self::WINDOW.put(window)
                | Self::BASE.put(base),
        )
    }

    const fn measured(self) -> Rate {
        Self::MEASURED.rate(self.0)
    }

    const fn window(self) -> u64 {
        Self::WINDOW.get(self.0)
    }

    /// Returns the counts between the window's beginning and `sum`.
    const fn counted(self, sum: u64) -> u64 {
        Self::BASE.wrapped(sum.wrapping_sub(Self::BASE.get(self.0)))
    }
}

const _: () = assert!(Reading::BASE.is_last(), "the fields fill the word");

/// Counts requests and measures their rate in half-second windows.
#[derive(Debug)]
pub(super) struct Meter {
    reading: AtomicU128,
    counts: Stripes,
}

impl Meter {
    pub(super) fn new() -> Self {
        // Just before the wrap of both, so that every test crosses it.
        let count = u64::MAX.wrapping_sub(1);
        Self {
            reading: AtomicU128::new(Reading::new(Rate::ZERO, 0, count).0),
            counts: Stripes::new(count),
        }
    }

    /// Counts a request that took `weight` tokens: the rate is one of tokens.
    pub(super) fn count(&self, weight: u32) {
        self.counts.add(u64::from(weight));
    }

    /// Counts one request at `now`, and may allow for some without the time.
    pub(super) fn count_at(&self, now: u64) {
        match self.counts.stripe() {
            Some(stripe) => stripe.add_one_at(now),
            None => self.counts.add(1),
        }
    }

    /// Counts one request if the calling thread need not look at the clock for it.
    pub(super) fn count_untimed(&self) -> bool {
        self.counts.stripe().is_some_and(Stripe::try_add_one)
    }

    /// Whether the calling thread need not look at the clock for its next request.
    pub(super) fn is_ahead(&self) -> bool {
        self.counts.stripe().is_some_and(Stripe::is_ahead)
    }

    fn load(&self) -> Reading {
        Reading(self.load_bits())
    }

    /// Returns the sum of all counts, wrapping. To be called after the load of what it is compared with.
    pub(super) fn sum(&self) -> u64 {
        self.counts.sum()
    }

    pub(super) fn load_bits(&self) -> u128 {
        // Acquire: whoever sums the stripes after this load must see at least the counts that went into
        // the base it has read, or the difference would wrap. Pairs with the release in `turn`.
        // Model: `send_rate::a_window_never_counts_below_zero`.
        self.reading.load(Acquire)
    }

    /// Replaces `seen` by `next`. False if another thread has replaced it first.
    pub(super) fn replace_bits(&self, seen: u128, next: u128) -> bool {
        // Release publishes the counts behind the base to the next one who sums. Strong, because one caller
        // alone must never fail; after a loss all is loaded again.
        // Models: `send_rate::a_window_never_counts_below_zero`, `send_rate::no_count_is_lost_at_a_turn`.
        let replaced = self
            .reading
            .compare_exchange(seen, next, Release, Relaxed)
            .is_ok();
        if replaced {
            self.counts.settle();
        }
        replaced
    }

    /// Returns the measured rate.
    pub(super) fn measured(&self) -> Rate {
        self.load().measured()
    }

    /// Closes the window that was counted until now, if `now` is past its end, and returns the one that is
    /// counted from here on.
    ///
    /// Nobody waits: whoever closes it first has done it for all. No count is left out or counted
    /// twice, because the sum that one window ends with is the base of the next.
    pub(super) fn turn(&self, windows: Windows, now: u64) -> Window {
        let window = windows.index(now);
        loop {
            let reading = self.load();
            if window <= reading.window() {
                return windows.window(reading.window());
            }
            // After the load, see there.
            let sum = self.sum();
            let passed = window.wrapping_sub(reading.window());
            let measured = smoothed(reading.measured(), reading.counted(sum), passed);
            let next = Reading::new(measured, window, sum);
            if self.replace_bits(reading.0, next.0) {
                return windows.window(window);
            }
        }
    }

    /// Makes the window that holds `now` the one that is counted, from zero. The measured rate stays.
    pub(super) fn restart(&self, windows: Windows, now: u64) -> Window {
        let window = windows.index(now);
        loop {
            let reading = self.load();
            let next = Reading::new(reading.measured(), window, self.sum());
            if self.replace_bits(reading.0, next.0) {
                return windows.window(window);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = crate::fixed::SECOND;
    const WINDOWS: Windows = Windows::new(0);

    fn per_second(count: u32) -> Rate {
        Rate::from_ratio(count, SECOND)
    }

    #[test]
    fn each_count_is_in_one_window_and_the_wrap_loses_none() {
        let meter = Meter::new();
        for _ in 0..5 {
            meter.count(1);
        }
        assert_eq!(meter.turn(WINDOWS, SECOND / 2 - 1).start, 0);
        assert_eq!(meter.measured(), Rate::ZERO, "the window is not over");
        let window = meter.turn(WINDOWS, SECOND / 2);
        assert_eq!((window.start, window.end), (SECOND / 2, SECOND));
        assert_eq!(meter.measured(), per_second(8), "0.8 × 5 in half a second");
        assert_eq!(
            meter.turn(WINDOWS, 0),
            window,
            "an older clock turns nothing back"
        );
        assert_eq!(
            meter.turn(WINDOWS, SECOND / 2),
            window,
            "and turning twice is once"
        );
        assert_eq!(meter.measured(), per_second(8));
        meter.count(1);
        // Two windows with one count, and 0.2 of what was.
        assert_eq!(meter.turn(WINDOWS, 3 * SECOND / 2).end, 2 * SECOND);
        assert_eq!(meter.measured(), Rate::from_ratio(24, 10 * SECOND));
        meter.turn(WINDOWS, u64::MAX);
        assert!(meter.measured() > Rate::ZERO && meter.measured() < per_second(1));
    }

    #[test]
    fn a_restart_keeps_the_rate_and_forgets_the_counts() {
        let meter = Meter::new();
        meter.count(1);
        meter.turn(WINDOWS, 9 * SECOND);
        let measured = meter.measured();
        assert!(measured > Rate::ZERO);
        meter.count(1);
        let window = meter.restart(WINDOWS, SECOND);
        assert_eq!((window.start, window.end), (SECOND, 3 * SECOND / 2));
        assert_eq!(meter.measured(), measured);
        meter.turn(WINDOWS, 3 * SECOND / 2);
        assert_eq!(
            meter.measured(),
            measured.scaled(1, 5),
            "nothing was counted"
        );
    }

    /// What must be read first: a sum that is older than the base would wrap to 2⁴⁵ requests.
    #[test]
    fn counts_are_the_difference_to_the_base_across_its_wrap() {
        let reading = Reading::new(Rate::MAX, (1 << 34) - 1, u64::MAX);
        assert_eq!(reading.counted(u64::MAX.wrapping_add(4)), 4);
        assert_eq!(reading.counted(u64::MAX), 0);
        assert_eq!(
            (reading.measured(), reading.window()),
            (Rate::MAX, (1 << 34) - 1)
        );
    }
}
