//! The correction of the first cut by the responses after it: rule 13.
//!
//! At the first cut the law does not know how much of what was delivered the service had saved up.
//! When the service throttles for the first time, its savings are spent, and it serves at its limit
//! from then on. The responses that show this come back within a trip of the cut. The limiter
//! counts these responses in one word, and stops then.

use super::cut::Cut;
use super::cut_state::CutState;
use super::delivered::MOST_DOUBT;
use super::settings::PacedSettings;
use crate::bits::Field;
use crate::fixed::Rate;
use crate::law::{Drain, Response};

/// The least tokens that must have been done; twice as many must have been answered.
const ENOUGH: u64 = 8;

/// The counts of requests that were sent before the first cut, but too late to be served from the
/// service's savings. Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 26 | the round trip of the request that was throttled first, in 2¹⁰ ns |
/// | 28 | how long after the cut the last response came, in 2¹⁰ ns |
/// | 24 | tokens of responses that were not throttled |
/// | 5 | responses that were, 31 at most |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drained(u128);

/// The low bits that a time drops.
const COARSER: u32 = 10;
const LONGEST_TRIP: u64 = (1 << 26) - 1;
const MOST_DONE: u64 = (1 << 24) - 1;
const MOST_THROTTLED: u64 = (1 << 5) - 1;

impl Drained {
    const TRIP: Field = Field::lowest(26);
    const LAST: Field = Self::TRIP.above(28);
    const DONE: Field = Self::LAST.above(24);
    const THROTTLED: Field = Self::DONE.above(5);

    pub(super) const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    pub(super) const fn to_bits(self) -> u128 {
        self.0
    }

    /// Begins to count at the first cut, if the cut is in doubt. `trip` is the throttled request's
    /// round trip.
    pub(super) fn begin(first: CutState, trip: u64) -> Option<Self> {
        let trip = (trip >> COARSER).min(LONGEST_TRIP);
        (is_doubtful(first) && trip > 0).then(|| Self(Self::TRIP.put(trip)))
    }

    fn trip(self) -> u64 {
        Self::TRIP.get(self.0) << COARSER
    }

    fn last(self) -> u64 {
        Self::LAST.get(self.0) << COARSER
    }

    fn done(self) -> u64 {
        Self::DONE.get(self.0)
    }

    fn throttled(self) -> u64 {
        Self::THROTTLED.get(self.0)
    }

    /// Counts a response that came `after` the cut, in nanoseconds. `None` if there is no room.
    fn with(self, after: u64, response: &Response) -> Option<Self> {
        let (mut done, mut throttled) = (self.done(), self.throttled());
        if response.throttled > 0 {
            throttled = throttled.saturating_add(1).min(MOST_THROTTLED);
        }
        done = done.saturating_add(response.done.into());
        let counted = Self::TRIP.put(Self::TRIP.get(self.0))
            | Self::LAST.put((after >> COARSER).max(Self::LAST.get(self.0)))
            | Self::DONE.put(done)
            | Self::THROTTLED.put(throttled);
        (done <= MOST_DONE).then_some(Self(counted))
    }
}

const fn is_doubtful(first: CutState) -> bool {
    let ramp = first.ramp();
    0 < ramp && ramp <= MOST_DOUBT
}

/// Returns what a response does to the counts after the first cut.
///
/// A response counts if its request was sent before the cut, and a quarter of a trip or more after
/// the throttled request. A request without a time is taken to have taken a trip. All such requests
/// have come back when a later request is answered, or after four trips.
pub(super) fn drain(
    settings: &PacedSettings,
    first: Cut,
    drained: Drained,
    response: &Response,
) -> Drain {
    let trip = drained.trip();
    let after = response.now.saturating_sub(first.since);
    let is_later = response.sent.is_some_and(|sent| sent > first.since);
    if is_later || after > trip.saturating_mul(4) {
        return Drain::Over(corrected(settings, first.memory, drained).map(CutState::to_bits));
    }
    let sent = response.sent.unwrap_or(response.now.saturating_sub(trip));
    let from = first.since.saturating_sub(trip.saturating_sub(trip / 4));
    let counted = (sent >= from).then(|| drained.with(after, response));
    match counted.flatten() {
        Some(counted) => Drain::Counted(counted.to_bits()),
        None => Drain::Unchanged,
    }
}

/// Returns the corrected memory of the first cut, or `None` if the cut is not known to be wrong.
///
/// Since the first throttle the service has had nothing saved up. Its first quarter of a trip is
/// not counted, so the counted responses were served in three quarters of the time. Their rate is
/// 0.6 to 1.2 times the limit, from 200/s to a million a second. The peak is twice that rate, with
/// a halving, because a peak that is too low costs seconds.
fn corrected(settings: &PacedSettings, first: CutState, drained: Drained) -> Option<CutState> {
    let (done, throttled) = (drained.done(), drained.throttled());
    let enough = done >= ENOUGH && done.saturating_add(throttled) >= ENOUGH << 1;
    if !is_doubtful(first) || !enough || throttled == 0 {
        return None;
    }
    let count = u32::try_from(done.saturating_mul(8)).unwrap_or(u32::MAX);
    let peak = Rate::from_ratio(count, drained.last().saturating_mul(3));
    let peak = settings.within(peak);
    (peak < first.peak()).then(|| CutState::new(peak, 1, first.trip()))
}

#[cfg(test)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]
mod tests {
    use super::super::cut_state::CoarseRtt;
    use super::*;
    use crate::fixed::SECOND;

    const SINCE: u64 = SECOND;
    /// 82 ms, in whole units.
    const TRIP: u64 = 80_000 << COARSER;

    fn first(ramp: u32) -> CutState {
        CutState::new(Rate::from_ratio(9_000, SECOND), ramp, CoarseRtt::new(TRIP))
    }

    fn cut(ramp: u32) -> Cut {
        Cut {
            memory: first(ramp),
            since: SINCE,
        }
    }

    fn begun() -> Drained {
        Drained::begin(first(2), TRIP).expect("it is in doubt")
    }

    /// A response `after` nanoseconds from the cut, to a request sent at `sent`.
    fn response(after: u64, sent: Option<u64>) -> Response {
        Response {
            now: SINCE + after,
            sent,
            done: 1,
            throttled: 0,
            pause: 0,
            is_silent: false,
        }
    }

    fn counts(drained: Drained) -> (u64, u64, u64) {
        (drained.done(), drained.throttled(), drained.last())
    }

    /// Returns the effect of a response on `drained`.
    fn after(drained: Drained, response: &Response) -> Drain {
        drain(&PacedSettings::new(), cut(2), drained, response)
    }

    fn counted(drained: Drained, response: &Response) -> Drained {
        match after(drained, response) {
            Drain::Counted(bits) => Drained::from_bits(bits),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_a_doubtful_cut_with_a_trip_is_looked_at() {
        for (ramp, trip, looks) in [
            (0, TRIP, false),
            (1, TRIP, true),
            (3, TRIP, true),
            (4, TRIP, false),
            (10, TRIP, false), // next to nothing was delivered
            (2, 1_023, false),
            (2, 1_024, true),
        ] {
            let begun = Drained::begin(first(ramp), trip);
            assert_eq!(begun.is_some(), looks, "{ramp} halvings, {trip} ns");
            if let Some(begun) = begun {
                assert_eq!((begun.trip(), counts(begun)), (trip, (0, 0, 0)));
            }
        }
        let longest = Drained::begin(first(1), u64::MAX).map(Drained::trip);
        assert_eq!(longest, Some(LONGEST_TRIP << COARSER));
    }

    #[test]
    fn requests_count_from_a_quarter_trip_after_the_throttled_one() {
        let from = SINCE - TRIP * 3 / 4;
        assert_eq!(
            after(begun(), &response(9, Some(from - 1))),
            Drain::Unchanged
        );
        for sent in [from, SINCE] {
            let one = counted(begun(), &response(5 << COARSER, Some(sent)));
            assert_eq!(counts(one), (1, 0, 5 << COARSER));
        }
        // A request without a time is taken to have taken a trip.
        let quarter = TRIP / 4;
        assert_eq!(
            after(begun(), &response(quarter - 1, None)),
            Drain::Unchanged
        );
        assert_eq!(counts(counted(begun(), &response(quarter, None))).0, 1);
    }

    #[test]
    fn counts_keep_the_latest_response_and_weights() {
        let heavy = Response {
            done: 7,
            ..response(9 << COARSER, Some(SINCE))
        };
        let throttled = Response {
            done: 0,
            throttled: 1,
            ..response(3 << COARSER, Some(SINCE))
        };
        let mut drained = counted(begun(), &heavy);
        for times in 1..=40 {
            drained = counted(drained, &throttled);
            assert_eq!(counts(drained), (7, times.min(31), 9 << COARSER));
        }
        assert_eq!(drained.trip(), TRIP);
        let most = Response {
            done: (1 << 24) - 8,
            ..heavy
        };
        let full = counted(drained, &most);
        assert_eq!(counts(full), ((1 << 24) - 1, 31, 9 << COARSER));
        assert_eq!(
            after(full, &response(9 << COARSER, Some(SINCE))),
            Drain::Unchanged
        );
    }

    #[test]
    fn all_has_drained_with_a_later_request_or_after_four_trips() {
        for (sent, after_cut, over) in [
            (Some(SINCE), 4 * TRIP, false),
            (Some(SINCE), 4 * TRIP + 1, true),
            (Some(SINCE + 1), 1, true),
            (None, 4 * TRIP, false),
            (None, 4 * TRIP + 1, true),
        ] {
            let is_over = after(begun(), &response(after_cut, sent)) == Drain::Over(None);
            assert_eq!(is_over, over, "sent {sent:?}, {after_cut} ns after the cut");
        }
    }

    /// Returns what corrects a peak of 9,000/s after these counts within `millis`.
    fn peak(ramp: u32, done: u64, throttled: u64, millis: u64) -> Option<CutState> {
        let last = (millis * 1_000_000) >> COARSER;
        let drained =
            Drained::LAST.put(last) | Drained::DONE.put(done) | Drained::THROTTLED.put(throttled);
        corrected(&PacedSettings::new(), first(ramp), Drained(drained))
    }

    #[test]
    fn twice_what_was_served_is_the_peak_if_that_is_less() {
        // 128 ms are a whole number of units.
        let of = |per_second| {
            let rate = Rate::from_ratio(per_second, SECOND);
            Some(CutState::new(rate, 1, CoarseRtt::new(TRIP)))
        };
        for ramp in 1..=3 {
            assert_eq!(peak(ramp, 24, 8, 128), of(500));
        }
        assert_eq!(
            peak(2, 431, 1, 128),
            Some(CutState::new(
                Rate::from_ratio(431 * 8, 384_000_000),
                1,
                CoarseRtt::new(TRIP)
            ))
        );
        assert_eq!(peak(2, 432, 1, 128), None, "no less");
    }

    #[test]
    fn a_peak_that_was_right_stays() {
        let first = CutState::new(Rate::from_raw(1 << 43), 2, CoarseRtt::new(TRIP));
        // 8 · 24 in 3 · 2²⁷ ns
        let drained =
            Drained::LAST.put(1 << 17) | Drained::DONE.put(24) | Drained::THROTTLED.put(8);
        let corrected = corrected(&PacedSettings::new(), first, Drained(drained));
        assert_eq!(corrected, None);
    }

    #[test]
    fn few_or_none_throttled_correct_nothing() {
        for (done, throttled, millis, corrects) in [
            (8, 8, 50, true),
            (7, 31, 50, false),
            (8, 7, 50, false),
            (20, 0, 50, false),
            (20, 1, 50, true),
            (20, 1, 0, false),
        ] {
            let corrected = peak(2, done, throttled, millis).is_some();
            assert_eq!(corrected, corrects, "{done}, {throttled} in {millis} ms");
        }
        for ramp in [0, 4, 10] {
            assert_eq!(peak(ramp, 20, 10, 50), None, "{ramp} halvings");
        }
    }

    #[test]
    fn a_corrected_peak_keeps_to_the_limits() {
        let settings = PacedSettings::builder().floor(600, core::time::Duration::from_secs(1));
        let settings = settings.build().expect("a floor");
        let drained =
            Drained::LAST.put(125_000) | Drained::DONE.put(24) | Drained::THROTTLED.put(8);
        let floor = CutState::new(settings.lowest(), 1, CoarseRtt::new(TRIP));
        assert_eq!(
            corrected(&settings, first(2), Drained(drained)),
            Some(floor)
        );
    }
}
