//! The first cut, corrected by what comes after it: rule 13.
//!
//! At the first cut it is not known how much of what was delivered the service had saved up. All
//! that was sent before it, but after the throttled request, comes back within a trip: what is
//! delivered of that is served at the limit.
//!
//! For this the words of a limiter keep, while it drains, two counts and two times. `drains_from`
//! is asked once, at the first cut. Until `has_drained`, each response to a request sent from then
//! on is counted as done or throttled, and the first and the last of them are dated. Then
//! `after_drain` says whether the memory of the cut is to be replaced, if it still is the last one;
//! the time of the cut stays. It is the way of a first second only: nothing is counted afterwards.

use super::cut::{Cut, Seen};
use super::delivered::MOST_DOUBT;
use super::memory::Memory;
use super::settings::PacedSettings;
use crate::fixed::Rate;

/// So many must have been done, and twice as many answered.
const ENOUGH: u64 = 8;

/// What came of the requests that were sent before the first cut, but too late to be served from
/// what the service had saved up: from [`drains_from`] on, until [`has_drained`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drained {
    /// Responses that were not throttled.
    pub(crate) done: u64,
    /// Responses that were.
    pub(crate) throttled: u64,
    /// Nanoseconds from the first of them to the last.
    pub(crate) span: u64,
}

/// returns from when on requests must have been sent to be counted, if the first cut is in doubt: a
/// quarter of a trip after the one that was throttled first.
pub(crate) fn drains_from(first: Memory, seen: &Seen) -> Option<u64> {
    let trip = seen.now.saturating_sub(seen.sent);
    let doubtful = (1..=MOST_DOUBT).contains(&first.ramp());
    doubtful.then(|| seen.sent.saturating_add(trip / 4))
}

/// whether all that was sent before the first cut, at `since`, has come back: a request sent at
/// `sent`, after that, was answered at `now`, or four trips have passed.
pub(crate) fn has_drained(first: Cut, sent: u64, now: u64) -> bool {
    let trips = first.memory.trip().nanos().saturating_mul(4);
    sent > first.since || now.saturating_sub(first.since) > trips
}

/// returns the memory of the first cut as it should have been, or `None` if it is not known to be
/// wrong. The time of the cut stays.
///
/// What the service had saved up is used up by then, so that it serves at its limit. The ends of
/// the span are thin: half of the limit is counted, so that twice that is taken.
pub(crate) fn after_drain(
    settings: &PacedSettings,
    first: Memory,
    drained: &Drained,
) -> Option<Memory> {
    let Drained {
        done,
        throttled,
        span,
    } = *drained;
    let enough = done >= ENOUGH && done.saturating_add(throttled) >= ENOUGH << 1;
    if !enough || throttled == 0 || span == 0 {
        return None;
    }
    let count = u32::try_from(done.saturating_mul(2)).unwrap_or(u32::MAX);
    let peak = settings.within(Rate::from_ratio(count, span));
    (peak < first.peak()).then(|| Memory::new(peak, first.ramp().min(1), first.trip()))
}

#[cfg(test)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]
mod tests {
    use super::super::memory::Trip;
    use super::*;
    use crate::fixed::SECOND;

    const MILLI: u64 = SECOND / 1_000;
    const SINCE: u64 = SECOND;
    const TRIP: u64 = 80 * MILLI;

    fn first(ramp: u32) -> Memory {
        Memory::new(Rate::from_ratio(9_000, SECOND), ramp, Trip::new(TRIP))
    }

    fn drained(done: u64, throttled: u64, millis: u64) -> Drained {
        Drained {
            done,
            throttled,
            span: millis * MILLI,
        }
    }

    fn peak(ramp: u32, drained: &Drained) -> Option<Memory> {
        after_drain(&PacedSettings::new(), first(ramp), drained)
    }

    #[test]
    fn requests_count_from_a_quarter_trip_after_the_throttled_one() {
        let seen = Seen {
            now: SINCE,
            sent: SINCE - TRIP,
            hinted: false,
            since_cut: None,
            delivered: None,
        };
        for (ramp, from) in [
            (0, None),
            (1, Some(SINCE - TRIP * 3 / 4)),
            (3, Some(SINCE - TRIP * 3 / 4)),
            (4, None),
            (10, None), // next to nothing was delivered
        ] {
            assert_eq!(drains_from(first(ramp), &seen), from, "{ramp} halvings");
        }
    }

    #[test]
    fn all_has_drained_with_a_later_request_or_after_four_trips() {
        let cut = Cut {
            memory: first(2),
            since: SINCE,
        };
        let trips = 4 * cut.memory.trip().nanos();
        for (sent, now, over) in [
            (SINCE, SINCE + 1, false),
            (SINCE + 1, SINCE + 1, true),
            (0, SINCE + trips, false),
            (0, SINCE + trips + 1, true),
            (0, 0, false),
        ] {
            assert_eq!(has_drained(cut, sent, now), over, "{sent} at {now}");
        }
    }

    #[test]
    fn twice_what_was_served_is_the_peak_if_that_is_less() {
        let of = |per_second, ramp| {
            let rate = Rate::from_ratio(per_second, SECOND);
            Some(Memory::new(rate, ramp, Trip::new(TRIP)))
        };
        assert_eq!(peak(3, &drained(20, 30, 80)), of(500, 1));
        assert_eq!(peak(1, &drained(20, 30, 80)), of(500, 1));
        assert_eq!(peak(2, &drained(359, 1, 80)), of(8_975, 1));
        assert_eq!(peak(2, &drained(360, 1, 80)), None, "no less");
    }

    #[test]
    fn few_or_none_throttled_correct_nothing() {
        for (done, throttled, millis, corrects) in [
            (8, 8, 50, true),
            (7, 90, 50, false),
            (8, 7, 50, false),
            (20, 0, 50, false),
            (20, 1, 50, true),
            (20, 1, 0, false),
            (u64::MAX, u64::MAX, 50, false), // faster than any peak
        ] {
            let drained = drained(done, throttled, millis);
            assert_eq!(peak(2, &drained).is_some(), corrects, "{drained:?}");
        }
    }

    #[test]
    fn a_corrected_peak_keeps_to_the_limits() {
        let second = core::time::Duration::from_secs(1);
        let settings = PacedSettings::builder()
            .floor(600, second)
            .build()
            .expect("a floor");
        let next = after_drain(&settings, first(2), &drained(20, 30, 80));
        let floor = Memory::new(settings.lowest(), 1, Trip::new(TRIP));
        assert_eq!(next, Some(floor));
    }
}
