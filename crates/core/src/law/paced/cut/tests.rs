//! The effects of a throttle and of a window, at the very edges between the cases.

use core::time::Duration;

use super::*;

mod windows;

const MILLI: u64 = SECOND / 1_000;
/// A step of the clock by which rates move.
const STEP: u64 = 1 << 24;
/// When the last cut was, a whole number of steps.
const SINCE: u64 = 1_000_000 * STEP;
/// A raw rate that packs exactly: 59.6/s.
const EXACT: u128 = 1 << 40;

fn defaults() -> PacedSettings {
    PacedSettings::new()
}

fn per_second(tokens: u32) -> Rate {
    Rate::from_ratio(tokens, SECOND)
}

fn cut(peak: Rate, ramp: u32) -> Cut {
    let memory = CutState::new(peak, ramp, CoarseRtt::new(STEP));
    Cut {
        memory,
        since: SINCE,
    }
}

/// A throttle `span` after the cut, of a request sent `trip` ago, with `count` delivered since the
/// cut.
fn seen(span: u64, trip: u64, count: u64) -> Evidence {
    Evidence {
        now: SINCE + span,
        sent: SINCE + span - trip,
        hinted: false,
        since_cut: Some(count),
        delivered: None,
    }
}

const fn delivered(count: u64, elapsed: u64) -> Delivered {
    Delivered {
        before: Rate::ZERO,
        count,
        elapsed,
    }
}

/// A memory with a trip as [`seen`] gives it.
fn memory(peak: Rate, ramp: u32, trip: u64) -> CutState {
    CutState::new(peak, ramp, CoarseRtt::new(trip))
}

/// The memory of a cut, if the throttle makes one.
fn after_throttle(settings: &PacedSettings, last: Cut, seen: &Evidence) -> Option<CutState> {
    match super::after_throttle(settings, last, seen)? {
        Verdict::Cut(memory) => Some(memory),
        Verdict::Shut => None,
    }
}

#[test]
fn the_first_cut_is_at_the_rate_delivered_and_the_one_throttled() {
    let mut first = seen(0, 100 * MILLI, 0);
    first.delivered = Some(delivered(8, SECOND));
    let known = memory(per_second(9), 0, 100 * MILLI);
    assert_eq!(first_cut(&defaults(), &first), known);
    // Fewer than eight are next to nothing: the peak is 2¹⁰ times the rate, with ten halvings.
    first.delivered = Some(delivered(7, SECOND));
    let blind = memory(per_second(8 * 1_024), 10, 100 * MILLI).blind();
    assert_eq!(first_cut(&defaults(), &first), blind);
}

#[test]
fn a_first_cut_after_many_in_a_short_time_begins_below_their_rate() {
    let mut first = seen(0, 40 * MILLI, 0);
    for (count, millis, rate, ramp) in
        [(499, 50, 10_000, 1), (63, 32, 2_000, 0), (64, 20, 3_250, 3)]
    {
        first.delivered = Some(delivered(count, millis * MILLI));
        let begun = memory(per_second(rate), ramp, 40 * MILLI);
        assert_eq!(
            first_cut(&defaults(), &first),
            begun,
            "{count} in {millis} ms"
        );
    }
}

/// The hint silences the refused requests, so that nothing corrects a first estimate.
#[test]
fn a_first_cut_with_a_hint_takes_what_came_at_once_for_100_ms() {
    let mut first = seen(0, 40 * MILLI, 0);
    first.hinted = true;
    for (count, millis, rate, ramp) in [
        (10, 1, 110, 0),
        (7, 0, 80, 0),
        (999, 99, 10_000, 0),
        (999, 100, 10_000, 0),
        (3, 100, 40 * 1_024, 10),
    ] {
        first.delivered = Some(delivered(count, millis * MILLI));
        let begun = memory(per_second(rate), ramp, 40 * MILLI);
        let begun = if ramp == 10 { begun.blind() } else { begun };
        let cut = first_cut(&defaults(), &first);
        assert_eq!(cut, begun, "{count} in {millis} ms");
    }
}

#[test]
fn a_first_cut_with_nothing_delivered_takes_one_request_in_a_trip() {
    for (trip, taken) in [
        (100 * MILLI, 100 * MILLI),
        (MILLI, MILLI),
        (MILLI - 1, MILLI),
        (0, MILLI),
        (MILLI + 1, MILLI + 1),
    ] {
        let peak = Rate::from_ratio(1, taken).times_two_to(10);
        let first = first_cut(&defaults(), &seen(0, trip, 0));
        assert_eq!(first, memory(peak, 10, trip).blind(), "a trip of {trip} ns");
    }
    // A request that seems to be sent after its throttle took no time.
    let mut odd = seen(0, 0, 0);
    odd.sent = u64::MAX;
    assert_eq!(
        first_cut(&defaults(), &odd),
        first_cut(&defaults(), &seen(0, 0, 0))
    );
}

#[test]
fn a_first_cut_keeps_to_the_limits() {
    let second = Duration::from_secs(1);
    let mut first = seen(0, 0, 0);
    first.delivered = Some(delivered(8, 1_000 * SECOND));
    let floor = defaults()
        .to_builder()
        .floor(3, second)
        .build()
        .expect("a floor");
    assert_eq!(first_cut(&floor, &first), memory(per_second(3), 0, 0));
    first.delivered = Some(delivered(99, SECOND));
    let ceiling = defaults()
        .to_builder()
        .ceiling(5, second)
        .build()
        .expect("a ceiling");
    assert_eq!(first_cut(&ceiling, &first), memory(per_second(5), 0, 0));
}

#[test]
fn the_first_throttle_of_fewer_than_one_a_second_is_a_shut() {
    let mut first = seen(0, 100 * MILLI, 0);
    let shuts = |settings: &PacedSettings, first: &Evidence| {
        let (verdict, memory) = first_throttle(settings, first);
        assert_eq!(memory, first_cut(settings, first));
        assert!([Verdict::Shut, Verdict::Cut(memory)].contains(&verdict));
        verdict == Verdict::Shut
    };
    // With the throttled request: 8 in 8.1 s, and in 7.9 s.
    for (millis, is_shut) in [(8_100, true), (7_900, false)] {
        first.delivered = Some(delivered(7, millis * MILLI));
        assert_eq!(shuts(&defaults(), &first), is_shut);
    }
    // A trip of two seconds says nothing about the rate.
    assert!(!shuts(&defaults(), &seen(0, 2 * SECOND, 0)));
    // At the floor nothing is shut.
    let floor = defaults().to_builder().floor(3, Duration::from_secs(4));
    first.delivered = Some(delivered(19, 40 * SECOND));
    assert!(shuts(&defaults(), &first));
    assert!(!shuts(&floor.build().expect("a floor"), &first));
}

#[test]
fn a_throttle_of_what_was_sent_before_the_cut_says_nothing() {
    let last = cut(per_second(100), 0);
    let mut late = seen(SECOND, SECOND, 500);
    late.delivered = Some(delivered(100, SECOND));
    for (sent, says) in [(0, false), (SINCE - 1, false), (SINCE, false)] {
        late.sent = sent;
        assert_eq!(after_throttle(&defaults(), last, &late).is_some(), says);
    }
    late.now = SINCE + 2 * SECOND;
    late.sent = SINCE + SECOND;
    assert!(after_throttle(&defaults(), last, &late).is_some());
}

#[test]
fn what_was_sent_when_a_pause_ended_was_sent_after_it() {
    let mut last = cut(per_second(50), 0);
    let mut at_the_end = seen(200 * MILLI, 200 * MILLI, 0);
    at_the_end.hinted = true;
    let after = |last| super::after_throttle(&defaults(), last, &at_the_end);
    assert_eq!(after(last), None);
    last.memory = last.memory.with_pause();
    assert_eq!(after(last), Some(Verdict::Shut));
}

/// Otherwise a client whose bursts all end in a pause would never be cut.
#[test]
fn after_a_pause_the_first_throttle_cuts() {
    let mut last = cut(per_second(1_000), 1);
    let soon = seen(SECOND, SECOND, 200);
    assert_eq!(after_throttle(&defaults(), last, &soon), None);
    last.memory = last.memory.with_pause();
    let sent_at = rate_at(&defaults(), last.memory, SINCE, SINCE);
    let peak = memory(sent_at.scaled(7, 10), 0, SECOND);
    assert_eq!(after_throttle(&defaults(), last, &soon), Some(peak));
}

/// A request counts if it was sent a nanosecond after the cut.
#[test]
fn a_starved_law_that_got_nothing_of_what_was_sent_right_after_the_cut_is_shut() {
    let last = cut(per_second(100), 3);
    let span = 10 * MILLI;
    let sent_at = |after| super::after_throttle(&defaults(), last, &seen(span, span - after, 0));
    assert_eq!([0, 1].map(sent_at), [None, Some(Verdict::Shut)]);
    // Too soon for another cut.
    let one = super::after_throttle(&defaults(), last, &seen(MILLI, 1, 1));
    assert_eq!(one, None);
}

/// Otherwise a throttle would shut a plain limiter, whose floor is its rate.
#[test]
fn at_the_floor_nothing_is_shut() {
    let floor = defaults().to_builder().floor(100, Duration::from_secs(1));
    let none = seen(10 * MILLI, 1, 0);
    for (peak, says) in [(100, None), (101, Some(Verdict::Shut))] {
        let settings = floor.build().expect("a floor");
        let after = super::after_throttle(&settings, cut(per_second(peak), 3), &none);
        assert_eq!(after, says, "{peak}/s");
    }
}

/// Below one a second, a law of seconds has too few answers.
#[test]
fn a_throttle_below_one_a_second_is_for_the_law_of_windows() {
    let after = |peak: Rate| {
        let late = seen(30 * SECOND, SECOND, 25);
        super::after_throttle(&defaults(), cut(peak, 0), &late)
    };
    let below = Rate::from_ratio(999, 1_000 * SECOND);
    assert_eq!(after(below), Some(Verdict::Shut));
    assert!(matches!(after(per_second(2)), Some(Verdict::Cut(_))));
}

/// A rate of 8/s is back at its peak after 2.5 s, and allows 32 in four seconds and a microsecond.
#[test]
fn a_law_that_got_less_than_an_eighth_of_32_and_more_is_shut() {
    let last = cut(per_second(8), 0);
    let span = 4 * SECOND + 1_000;
    let trip = span / 4 + 1;
    let after = |span, count| after_throttle(&defaults(), last, &seen(span, trip, count));
    for count in 0..4 {
        let verdict = super::after_throttle(&defaults(), last, &seen(span, trip, count));
        assert_eq!(verdict, Some(Verdict::Shut), "{count}");
    }
    assert_eq!(after(span, 4).expect("a cut").ramp(), 0);
    let next = after(span - SECOND / 8, 1).expect("a cut");
    assert_eq!(next.ramp(), 0, "one of 31");
    let next = after(4 * trip, 1).expect("a cut");
    assert_eq!(next.ramp(), 0, "after two seconds, and four trips");
    // Without counts, the law is taken to have got what it allowed.
    let mut uncounted = seen(span, trip, 0);
    uncounted.since_cut = None;
    let next = after_throttle(&defaults(), last, &uncounted);
    assert_eq!(next.expect("a cut").ramp(), 0);
}

#[test]
fn a_law_that_got_none_of_four_is_shut() {
    let last = cut(per_second(8), 0);
    let mut starved = [0; 2];
    for step in 8..60 {
        let now = SINCE + step * STEP;
        let allowed = rate_at(&defaults(), last.memory, SINCE, now).min(last.memory.peak());
        let four = allowed.tokens_in(step * STEP) >= 4;
        let after = |count| after_throttle(&defaults(), last, &seen(step * STEP, MILLI, count));
        assert_eq!(after(0).is_none(), four, "{step} steps");
        assert_eq!(after(1).expect("a cut").ramp(), 0, "{step} steps");
        starved[usize::from(four)] += 1;
    }
    assert!(starved[0] > 10 && starved[1] > 10, "{starved:?}");
}

#[test]
fn a_throttle_in_the_first_tenth_of_a_second_of_few_belongs_to_the_cut() {
    let few = cut(per_second(100), 0);
    let after = |last, span| after_throttle(&defaults(), last, &seen(span, MILLI, 9)).is_some();
    assert!(!after(few, 100 * MILLI - 1));
    assert!(after(few, 100 * MILLI));
    // 10,000/s is cut to 8,900/s: 32 in 3.6 ms, 31 in 3.5 ms.
    let many = cut(per_second(10_000), 0);
    assert!(after(many, 3_600_000));
    assert!(!after(many, 3_500_000));
}

#[test]
fn a_throttle_within_two_trips_of_the_cut_belongs_to_it() {
    let last = cut(per_second(100), 0);
    for (span, trip, cuts) in [
        (SECOND, SECOND / 2, true),
        (SECOND, SECOND / 2 + 1, false),
        (SECOND, SECOND - 1, false),
    ] {
        let next = after_throttle(&defaults(), last, &seen(span, trip, 90));
        assert_eq!(next.is_some(), cuts, "{trip} of {span} ns");
    }
    let mut ancient = seen(SECOND, 0, 90);
    (ancient.now, ancient.since_cut) = (u64::MAX, None);
    ancient.sent = SINCE + 1;
    assert_eq!(after_throttle(&defaults(), last, &ancient), None);
}

#[test]
fn a_cut_on_the_ramp_is_at_the_average_since_the_last_within_30_percent_of_what_was_sent_at() {
    let last = cut(per_second(100), 3);
    let (span, trip) = (STEP * 12, STEP); // on the ramp: 201 ms
    let sent_at = rate_at(&defaults(), last.memory, SINCE, SINCE + span - trip);
    let after = |count| after_throttle(&defaults(), last, &seen(span, trip, count));
    let low = sent_at.scaled(7, 10);
    for count in 1..12 {
        let average = Rate::from_ratio(count + 2, span);
        let peak = average.max(low).min(sent_at);
        assert_eq!(after(count.into()), Some(memory(peak, 0, trip)), "{count}");
    }
    assert!(
        Rate::from_ratio(1 + 2, span) > low,
        "fifteen a second of 17"
    );
    let slow = seen(span * 2, trip, 1);
    let sent_at = rate_at(&defaults(), last.memory, SINCE, slow.sent);
    let next = after_throttle(&defaults(), last, &slow);
    assert_eq!(next, Some(memory(sent_at.scaled(7, 10), 0, trip)));
}

/// 84 in 28 × 2²⁶ ns are three quarters of 59.6/s, to the bit.
#[test]
fn a_cut_soon_after_the_last_is_at_the_average_if_that_is_under_three_quarters() {
    let last = cut(Rate::from_raw(EXACT), 0);
    let span = 28 << 26;
    let average = Rate::from_ratio(83, span);
    let after = |count, span| after_throttle(&defaults(), last, &seen(span, STEP, count));
    assert_eq!(after(81, span), Some(memory(average, 0, STEP)));
    assert_eq!(Rate::from_ratio(84, span), last.memory.peak().scaled(3, 4));
    let sent_at = |span| rate_at(&defaults(), last.memory, SINCE, SINCE + span - STEP);
    assert_eq!(after(82, span), Some(memory(sent_at(span), 0, STEP)));
    // From two seconds on, the windows decide.
    let late = 2 * SECOND;
    let average = Rate::from_ratio(52, late - 1);
    assert_eq!(after(50, late - 1), Some(memory(average, 0, STEP)));
    assert_eq!(after(50, late), Some(memory(sent_at(late), 0, STEP)));
}

/// Responses are expected at no more than the peak, however high the rate has grown.
#[test]
fn what_was_expected_is_at_most_the_peak() {
    let last = cut(per_second(100), 0);
    let span = 60 * SECOND;
    let trip = 16 * SECOND;
    let is_cut = |count| after_throttle(&defaults(), last, &seen(span, trip, count)).is_some();
    assert!(!is_cut(749) && is_cut(751), "an eighth of 6,000");
}

#[test]
fn a_cut_is_at_the_rate_delivered_and_at_most_at_what_was_sent_at() {
    let last = cut(per_second(100), 0);
    let span = 5 * SECOND;
    let sent_at = rate_at(&defaults(), last.memory, SINCE, SINCE + span - STEP);
    let after = |count, elapsed| {
        let mut seen = seen(span, STEP, 450);
        seen.delivered = Some(delivered(count, elapsed));
        after_throttle(&defaults(), last, &seen)
    };
    let at_sent = Some(memory(sent_at, 0, STEP));
    let short = SECOND / 20;
    assert_eq!(after(6, short), Some(memory(per_second(120), 0, STEP)));
    assert_eq!(after(5, short / 2), at_sent, "too few to decide");
    assert_eq!(after(300, SECOND), at_sent, "more than was sent at");
    assert_eq!(after(150, SECOND), Some(memory(per_second(150), 0, STEP)));
    // 57 % of 206.9/s is just under 118.
    assert_eq!(sent_at.scaled(57, 100).tokens_in(SECOND), 117);
    assert_eq!(after(117, SECOND), at_sent, "not held back by the service");
    assert_eq!(after(118, SECOND), Some(memory(per_second(118), 0, STEP)));
}

/// 57 in 2³¹ ns are 57 × 2³³ units.
#[test]
fn a_measured_peak_of_57_percent_to_the_bit_counts() {
    let sent_at = Rate::from_raw(100 << 33);
    let measured = |elapsed| measured_peak(Some(delivered(57, elapsed)), sent_at);
    assert_eq!(measured(1 << 31), Rate::from_raw(57 << 33));
    assert_eq!(measured((1 << 31) + 1), sent_at);
}

#[test]
fn a_cut_keeps_to_the_limits() {
    let second = Duration::from_secs(1);
    let settings = defaults()
        .to_builder()
        .floor(90, second)
        .build()
        .expect("a floor");
    let last = cut(per_second(100), 0);
    // The average, 52 in two seconds, is less than the floor.
    let next = after_throttle(&settings, last, &seen(2 * SECOND - 1, STEP, 50));
    assert_eq!(next, Some(memory(per_second(90), 0, STEP)));
}

#[test]
fn a_cut_of_a_shared_limit_is_at_the_rate_sent_after_one_trip() {
    let last = cut(per_second(100), 0);
    let shared = PacedSettings::shared();
    let span = 5 * SECOND;
    let sent_at = rate_at(&shared, last.memory, SINCE, SINCE + span - STEP);
    let mut throttled = seen(span, STEP, 450);
    throttled.delivered = Some(delivered(118, SECOND));
    let next = after_throttle(&shared, last, &throttled);
    assert_eq!(next, Some(memory(sent_at, 0, STEP)));
    // Within two seconds the responses since the cut decide, if they are far fewer.
    let few = after_throttle(&shared, last, &seen(SECOND, STEP, 50));
    assert_eq!(few, Some(memory(per_second(52), 0, STEP)));
    let next = after_throttle(&shared, last, &seen(SECOND, SECOND - 1, 90));
    assert!(next.is_some(), "sent right after the cut");
    assert_eq!(
        after_throttle(&shared, last, &seen(SECOND, SECOND, 90)),
        None
    );
}

#[test]
fn a_hint_is_for_all_while_nothing_gets_through() {
    // 100/s is cut to 80/s: four responses are expected in 48.3 ms, 33 in 370 ms.
    let last = cut(per_second(100), 0);
    let obeys = |last, span, count| obeys_hint(&defaults(), Some(last), &seen(span, 0, count));
    for (millis, count, all) in [
        (0, 0, false),
        (47, 0, false),
        (50, 0, true),
        (50, 1, false),
        (370, 4, true),
        (370, 5, false),
    ] {
        assert_eq!(
            obeys(last, millis * MILLI, count),
            all,
            "{count} in {millis} ms"
        );
    }
    // If nothing got through before the cut either, the first hint pauses everything.
    let starved = cut(per_second(100), 2);
    let mut paused = last;
    paused.memory = paused.memory.with_pause();
    for before in [starved, paused] {
        assert!(obeys(before, 0, 0));
        assert!(!obeys(before, MILLI, 1));
    }
}

#[test]
fn a_hint_is_for_all_if_nothing_was_ever_delivered() {
    let mut first = seen(0, 0, 0);
    for since_cut in [None, Some(0)] {
        first.since_cut = since_cut;
        first.delivered = None;
        assert!(obeys_hint(&defaults(), None, &first));
        first.delivered = Some(delivered(0, SECOND));
        assert!(obeys_hint(&defaults(), None, &first));
        first.delivered = Some(delivered(1, SECOND));
        assert!(!obeys_hint(&defaults(), None, &first));
    }
    // A limiter that limits from the start, and was never cut.
    let start = cut(per_second(100), 0);
    first.since_cut = None;
    assert!(!obeys_hint(&defaults(), Some(start), &first));
    first.delivered = None;
    assert!(obeys_hint(&defaults(), Some(start), &first));
}

fn slow(rate: Rate) -> Cut {
    Cut {
        memory: CutState::slow_start(rate),
        since: SINCE,
    }
}

#[test]
fn a_slow_start_doubles_with_fewer_than_ten_under_way() {
    let step = |rate, span, trip| {
        let now = SINCE + span;
        let next = after_step(&defaults(), slow(per_second(rate)), now, now - trip)?;
        assert!(next.is_slow_start());
        // Rounded to 32 bits.
        Some(next.peak().tokens_in(SECOND + MILLI))
    };
    assert_eq!(step(10, 100 * MILLI, 50 * MILLI), Some(20));
    assert_eq!(step(192, 50 * MILLI, 50 * MILLI), Some(384));
    assert_eq!(step(208, 50 * MILLI, 50 * MILLI), Some(234));
    assert_eq!(step(1_024, 25 * MILLI, 5 * MILLI), Some(2_050));
    assert_eq!(step(1_024, 25 * MILLI - 1, 5 * MILLI), None, "too soon");
    assert_eq!(step(10, 100 * MILLI, 100 * MILLI), Some(20));
    assert_eq!(
        step(10, 100 * MILLI, 100 * MILLI + 1),
        None,
        "sent at the rate before"
    );
}

#[test]
fn a_slow_start_stops_at_the_ceiling_and_with_the_first_cut() {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::builder().ceiling(15, second).build();
    let settings = settings.expect("a ceiling");
    let now = SINCE + SECOND;
    let step = |cut| after_step(&settings, cut, now, now);
    assert_eq!(
        step(slow(per_second(10))),
        Some(CutState::slow_start(per_second(15)))
    );
    let at_most = CutState::slow_start(settings.within(Rate::MAX));
    let there = Cut {
        memory: at_most,
        since: SINCE,
    };
    assert_eq!(step(there), None, "no further");
    assert_eq!(step(cut(per_second(10), 0)), None);
}

#[test]
fn the_first_throttle_of_a_slow_start_ends_it_at_what_was_delivered() {
    let rate = Rate::from_raw(EXACT << 5); // 1,907/s
    let end = |delivered| {
        let mut seen = seen(10 * MILLI, 50 * MILLI, 0);
        seen.delivered = delivered;
        after_throttle(&defaults(), slow(rate), &seen)
    };
    let with = |ramp| Some(memory(rate, ramp, 50 * MILLI));
    // An eighth is 238/s.
    assert_eq!(end(Some(delivered(238, SECOND))), with(3));
    assert_eq!(end(Some(delivered(237, SECOND))), with(4));
    assert_eq!(end(Some(delivered(1_907, SECOND))), with(0));
    assert_eq!(end(None), with(2), "nothing is known");
}

#[test]
fn no_window_lifts_a_slow_start_and_hints_pause_it_if_nothing_came() {
    let last = slow(per_second(10));
    let later = SINCE + SECOND;
    assert_eq!(
        after_window(&defaults(), last, later, per_second(1_000)),
        None
    );
    let mut seen = seen(SECOND, MILLI, 0);
    assert!(obeys_hint(&defaults(), Some(last), &seen));
    seen.delivered = Some(delivered(1, SECOND));
    assert!(!obeys_hint(&defaults(), Some(last), &seen));
}
