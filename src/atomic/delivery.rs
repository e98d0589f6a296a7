//! The rate delivered, under many threads: the meter's words as the paced law uses them.
//!
//! The counts are of responses that were not throttled. A window begins with the response that ends the one
//! before, so that it lies where the traffic is.

use super::bits::{Field, TIME_BITS};
use super::meter::Meter;
use super::sync::{AtomicU64, Ordering::Relaxed};
use crate::fixed::Rate;
use crate::paced::{Delivered, WINDOW, WindowEnd};

/// The meter's word of the paced law. Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 37 | the rate of the last whole window, 32 significant bits; zero if there was none |
/// | 46 | when the current one began, in 2¹⁶ ns after the start, at least 1; 0 before the first |
/// | 45 | base: the sum of the stripes when it began, wrapping |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading(u128);

/// What a rate loses when it is packed into 37 bits.
const DROPPED: u32 = Rate::BITS.wrapping_sub(37);
/// What a time loses.
const COARSER: u32 = 16;

impl Reading {
    const BEFORE: Field = Field::lowest(37);
    const BEGAN: Field = Self::BEFORE.above(TIME_BITS.wrapping_sub(COARSER));
    const BASE: Field = Self::BEGAN.above(45);

    fn new(before: Rate, began: u64, base: u64) -> Self {
        Self(
            Self::BEFORE.put(before.to_bits() >> DROPPED)
                | Self::BEGAN.put((began >> COARSER).max(1))
                | Self::BASE.put(base),
        )
    }

    const fn before(self) -> Rate {
        Rate::from_bits(Self::BEFORE.get(self.0) << DROPPED)
    }

    /// Returns when the current window began, or `None` before the first.
    fn began(self) -> Option<u64> {
        let began = Self::BEGAN.get(self.0);
        (began > 0).then_some(began << COARSER)
    }

    fn delivered(self, now: u64, sum: u64) -> Option<Delivered> {
        self.began().map(|began| Delivered {
            before: self.before(),
            count: Self::BASE.wrapped(sum.wrapping_sub(Self::BASE.get(self.0))),
            elapsed: now.saturating_sub(began),
        })
    }
}

const _: () = assert!(Reading::BASE.is_last(), "the fields fill the word");

/// How many responses had been delivered at the cut of a version: 16 bits of version above 48 of count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(u64);

impl Mark {
    const VERSION_SHIFT: u32 = 48;
    const COUNT: u64 = (1 << Self::VERSION_SHIFT) - 1;

    const fn new(version: u64, count: u64) -> Self {
        Self(version.wrapping_shl(Self::VERSION_SHIFT) | (count & Self::COUNT))
    }

    const fn is_of(self, version: u64) -> bool {
        self.0 >> Self::VERSION_SHIFT == version & 0xffff
    }

    /// Returns how many have been counted since, none if `sum` is older.
    const fn counted(self, sum: u64) -> u64 {
        let counted = sum.wrapping_sub(self.0) & Self::COUNT;
        if counted >> (Self::VERSION_SHIFT - 1) == 0 {
            counted
        } else {
            0
        }
    }
}

impl Meter {
    /// Returns what has been delivered by `now`; `None` if nothing has.
    pub(super) fn delivered(&self, now: u64) -> Option<Delivered> {
        let reading = Reading(self.load_bits());
        // After the load, as in `turn`.
        reading.delivered(now, self.sum())
    }

    /// Ends the window if it is over at `now`, when a response to a request sent at `sent` has been counted.
    ///
    /// Returns when the window ended, or will at the earliest, and what the end has made known to this caller.
    pub(super) fn end_window(&self, now: u64, sent: u64, starved: bool) -> (u64, WindowEnd) {
        loop {
            let bits = self.load_bits();
            let reading = Reading(bits);
            let sum = self.sum();
            let Some(delivered) = reading.delivered(now, sum) else {
                // The first window begins with its first request, so that the first estimate is about right.
                let began = sent.max(now.saturating_sub(WINDOW));
                let base = Reading::BASE.get(bits);
                if self.replace_bits(bits, Reading::new(Rate::ZERO, began, base).0) {
                    return (began.saturating_add(WINDOW), WindowEnd::NotYet);
                }
                continue;
            };
            let before = match delivered.end(starved) {
                WindowEnd::NotYet => {
                    let began = now.saturating_sub(delivered.elapsed);
                    return (began.saturating_add(WINDOW), WindowEnd::NotYet);
                }
                WindowEnd::Interrupted => reading.before(),
                WindowEnd::Counted(rate) => rate,
            };
            if self.replace_bits(bits, Reading::new(before, now, sum).0) {
                return (now.saturating_add(WINDOW), delivered.end(starved));
            }
        }
    }

    /// Begins a window at `now`, from zero. The rate of the last whole one stays.
    pub(super) fn restart_delivery(&self, now: u64) -> u64 {
        loop {
            let bits = self.load_bits();
            let reading = Reading(bits);
            if reading.began().is_none() {
                return 0;
            }
            let next = Reading::new(reading.before(), now, self.sum());
            if self.replace_bits(bits, next.0) {
                return now.saturating_add(WINDOW);
            }
        }
    }
}

/// What had been counted at the last cut.
#[derive(Debug)]
pub(super) struct LastMark(AtomicU64);

impl LastMark {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(super) fn load(&self) -> Mark {
        // Relaxed, here and below: a mark says of which version it is, and a count that is behind is taken for none.
        Mark(self.0.load(Relaxed))
    }

    /// Marks the cut of `version`, unless `seen` has been replaced: by the mark of a later one.
    pub(super) fn advance(&self, seen: Mark, version: u64, meter: &Meter) {
        let next = Mark::new(version, meter.sum());
        let _ = self.0.compare_exchange(seen.0, next.0, Relaxed, Relaxed);
    }

    /// Returns the responses since the cut of `version`. `None` while the thread that cut has not marked it.
    pub(super) fn since_cut(&self, version: u64, meter: &Meter) -> Option<u64> {
        let mark = self.load();
        mark.is_of(version).then(|| mark.counted(meter.sum()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::SECOND;

    const MILLI: u64 = SECOND / 1_000;

    fn per_second(tokens: u32) -> Rate {
        Rate::from_ratio(tokens, SECOND)
    }

    fn count(meter: &Meter, responses: u32) {
        for _ in 0..responses {
            meter.count(1);
        }
    }

    #[test]
    fn the_first_window_begins_with_the_first_request() {
        let meter = Meter::new();
        assert_eq!(meter.delivered(0), None);
        count(&meter, 1);
        assert_eq!(meter.delivered(0), None, "counted, but by nobody ended");
        let sent = 131 * 65_536;
        let (end, known) = meter.end_window(sent + 50 * MILLI, sent, false);
        assert_eq!((end, known), (sent + WINDOW, WindowEnd::NotYet));
        count(&meter, 4);
        let delivered = meter.delivered(sent + 100 * MILLI).expect("begun");
        assert_eq!((delivered.count, delivered.elapsed), (5, 100 * MILLI));
        assert_eq!(delivered.before, Rate::ZERO);
    }

    #[test]
    fn a_window_ends_once_and_the_next_begins_there() {
        let meter = Meter::new();
        let begun = 65_536;
        meter.end_window(begun, begun, false);
        count(&meter, 40);
        let now = begun + 2 * WINDOW - 65_536;
        let (end, known) = meter.end_window(now, now, false);
        assert_eq!(end, now + WINDOW);
        assert_eq!(known, WindowEnd::Counted(Rate::from_ratio(40, now - begun)));
        assert_eq!(meter.end_window(now, now, false).1, WindowEnd::NotYet);
        let delivered = meter.delivered(now).expect("begun");
        assert_eq!(delivered.count, 0);
        let low = Rate::from_ratio(40, now - begun).raw();
        assert!(
            low - delivered.before.raw() < 1 << DROPPED,
            "the rest is kept"
        );
    }

    #[test]
    fn a_silence_is_no_rate() {
        let meter = Meter::new();
        meter.end_window(65_536, 65_536, false);
        count(&meter, 33);
        let end = 65_536 + WINDOW;
        assert!(matches!(
            meter.end_window(end, end, false).1,
            WindowEnd::Counted(_)
        ));
        let before = meter.delivered(end).expect("begun").before;
        count(&meter, 33);
        let late = (end + 9 * SECOND) & !0xffff;
        assert_eq!(
            meter.end_window(late, late, false).1,
            WindowEnd::Interrupted
        );
        let delivered = meter.delivered(late).expect("begun");
        assert_eq!((delivered.before, delivered.count), (before, 0));
    }

    #[test]
    fn a_restart_keeps_the_rate_and_forgets_the_counts() {
        let meter = Meter::new();
        assert_eq!(meter.restart_delivery(7), 0, "nothing to restart");
        meter.end_window(9 * SECOND, 9 * SECOND, false);
        count(&meter, 3);
        assert_eq!(meter.restart_delivery(SECOND), SECOND + WINDOW);
        let delivered = meter.delivered(SECOND).expect("begun");
        assert_eq!(delivered.count, 0);
        assert!(delivered.elapsed < 65_536);
    }

    #[test]
    fn a_mark_counts_what_comes_after_it_and_is_of_one_version() {
        let meter = Meter::new();
        let last = LastMark::new();
        assert_eq!(last.since_cut(1, &meter), None);
        let old = last.load();
        count(&meter, 5);
        last.advance(old, 1, &meter);
        count(&meter, 3);
        assert_eq!(last.since_cut(1, &meter), Some(3));
        assert_eq!(last.since_cut(2, &meter), None);
        last.advance(old, 7, &meter);
        assert_eq!(last.since_cut(7, &meter), None, "a later mark stays");
        let mark = Mark::new(3, 10);
        assert_eq!((mark.counted(12), mark.counted(9)), (2, 0));
        assert_eq!(Mark::new(3, u64::MAX).counted(1), 2);
    }

    #[test]
    fn rates_in_a_window_are_per_second() {
        let delivered = Delivered {
            before: per_second(10),
            count: 5,
            elapsed: SECOND / 2,
        };
        assert_eq!(delivered.rate(0), per_second(10));
        assert_eq!(delivered.responses(), 14, "rounded down");
    }
}
