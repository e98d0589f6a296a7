//! Tests of cycles, rule by rule.

use super::*;
use crate::law::paced::coarse::{OF_CALM, OF_RATE, pack};
use crate::law::paced::cycle::MOST_CALM;

/// The unit of waits.
const TICK: u64 = 1 << WAIT_BITS;
/// The time of the last refusal, or of the opening.
const SINCE: u64 = (SECOND * 10_000) >> WAIT_BITS << WAIT_BITS;
/// The sum of all counts at [`SINCE`].
const SUM: u64 = 10_000;

fn settings() -> PacedSettings {
    PacedSettings::new()
}

/// A cycle of `span` that ends at [`SINCE`], and accepted the last `count` of [`SUM`].
fn cycle(span: u64, count: u64) -> Cycle {
    Cycle::new(SINCE - span, SUM - count)
}

/// A response at `now`, without a hint, to a request sent `trip` before.
fn seen(now: u64, trip: u64, cycle: Cycle) -> Seen {
    Seen {
        now,
        sent: now - trip,
        until: now,
        cycle,
        sum: SUM,
        weight: 1,
    }
}

/// The state after an opening, as a word holds it, with a calm in quarters of an answer.
fn open(rate: Rate, calm: u64) -> Open {
    let memory = Open { rate, calm }.memory();
    Open::of(memory).expect("it is open")
}

/// A service that was found shut at [`SINCE`], with the next knock `wait` later.
fn shut(rate: Rate, grown: Option<u64>, knocked: bool, wait: u64) -> Shut {
    Shut {
        rate,
        grown,
        knocked,
        wait,
        weight: 1,
        hinted: false,
    }
}

/// A wait as a word holds it, in [`TICK`]s.
fn ticks(nanos: u64) -> u64 {
    unpack(pack_up(nanos / TICK, OF_WAIT), OF_WAIT)
}

/// A rate of one token in `nanos`, as a word holds it.
fn one_in(nanos: u64) -> Rate {
    kept(Rate::from_ratio(1, nanos))
}

fn kept(rate: Rate) -> Rate {
    Rate::from_raw(unpack(pack(rate.raw(), OF_RATE), OF_RATE).into())
}

/// The time from which the knock is minted, and the remembered state.
fn waits((since, memory): (u64, CutState)) -> (u64, Shut) {
    (since, Shut::of(memory).expect("it is shut"))
}

fn knocked(shut: Shut, since: u64, seen: &Seen) -> Option<Shut> {
    let (since, memory, _) = shut.knocked(&settings(), since, seen)?;
    Some(waits((since, memory)).1)
}

/// The opening and its cycle; `None` if the law of seconds goes on.
fn opened(shut: Shut, since: u64, seen: &Seen) -> Option<(Open, Cycle)> {
    let (memory, cycle) = shut.opened(&settings(), since, seen)?;
    Open::of(memory).map(|open| (open, cycle))
}

#[test]
fn a_coarse_number_is_rounded_up_and_a_rate_down() {
    for (value, up, down) in [
        (0, 0, 0),
        (63, 63, 63),
        (65, 66, 65),
        (66, 66, 66),
        (16_384, 16_384, 16_384),
        (16_385, 16_896, 16_384),
        (32_767, 32_768, 32_766),
        (1_000_000, 1_015_808, 1_000_000),
        (63 << 30, 63 << 30, 63 << 30),
    ] {
        assert_eq!(unpack(pack_up(value, OF_CALM), OF_CALM), up, "{value} up");
        let code = pack(value, OF_RATE);
        assert_eq!(unpack(code, OF_RATE), down, "{value} down");
    }
    for code in 0..1_024 {
        assert_eq!(pack_up(unpack(code, OF_CALM), OF_CALM), code);
    }
    for code in (0..=pack(u64::MAX, OF_RATE)).step_by(97) {
        assert_eq!(pack(unpack(code, OF_RATE), OF_RATE), code);
    }
}

#[test]
fn a_power_is_within_16_percent() {
    for base in (ONE / 8..ONE * 64).step_by(1_001) {
        let wide = u128::from(base);
        let cube = narrow((wide * wide * wide) >> 32);
        let square = narrow((wide * wide) >> 16);
        let root = (base << 16).isqrt();
        for (exponent, exact) in [
            (ONE / 2, root),
            (ONE, base),
            (ONE * 2, square),
            (ONE * 3, cube),
        ] {
            let rough = power(base, exponent);
            let bounds = exact * 84 / 100..=exact * 107 / 100;
            assert!(bounds.contains(&rough), "{base} to the {exponent}: {rough}");
        }
    }
    assert_eq!((power(0, ONE), power(ONE, ONE * 3)), (0, ONE));
}

#[test]
fn growth_is_a_cube_of_large_calms_and_nearly_a_line_of_small_ones() {
    let grown = |calm: u64, calms: u64| open(one_in(SECOND), calm * 4).grown(calms << 10);
    assert_eq!(
        [0, 1, 2].map(|calms| grown(40, calms)),
        [0, 1_638, 1_638 * 8]
    );
    assert_eq!([0, 1, 2].map(|calms| grown(160, calms)), [0, 655, 655 * 8]);
    // β = ¼, and a power of 1.2.
    assert_eq!([0, 1, 2].map(|calms| grown(4, calms)), [0, 16_384, 39_321]);
    assert_eq!(open(one_in(SECOND), 160).calms(10), 256);
    assert_eq!(
        [160, 1_280].map(|calm| open(one_in(SECOND), calm).step()),
        [2, 20]
    );
}

#[test]
fn an_idle_time_keeps_the_mean_of_growth_and_not_more_than_twice() {
    let rate = one_in(SECOND);
    let rested = |calms: u64| open(rate, 160).rested(calms << 10).and_then(Open::of);
    assert_eq!(rested(1), None);
    let mean = |grown: u64| Some(open(more(rate, grown), 160));
    assert_eq!(rested(2), mean(1_638 * 8 / 4));
    assert_eq!(rested(64), mean(ONE));
}

#[test]
fn no_window_holds_a_rate_that_has_grown_by_half_by_32_answers_in_twice_the_cycle_before() {
    let free = |rate, calms: u64, count, span| {
        let cycle = cycle(span, count).after(SECOND * 10, 160);
        open(rate, 160).is_beyond(calms << 10, cycle, SUM, SINCE)
    };
    let (two, long) = (kept(Rate::from_ratio(3, SECOND)), SECOND * 21);
    // A fortieth of the cube of three calms is more than half.
    assert!(free(two, 3, 32, long));
    assert!(!free(two, 2, 32, long) && !free(two, 3, 31, long));
    assert!(!free(two, 3, 32, SECOND * 19));
    assert!(!free(one_in(SECOND / 19 * 10), 3, 32, long));
}

#[test]
fn growth_begins_anew_below_two_a_second_and_is_left_to_seconds_from_there_on() {
    let half = one_in(SECOND / 2);
    let anew = |rate, grown| open(rate, 160).anew(grown).and_then(Open::of);
    let grown = anew(one_in(SECOND * 60), one_in(SECOND * 4)).expect("below two a second");
    // 40 answers, times a quarter to the power of three quarters, in quarters: 56.6.
    assert_eq!((grown.rate, grown.calm), (one_in(SECOND * 4), 56));
    assert_eq!(anew(one_in(SECOND), half.doubled()), None);
    assert_eq!(anew(half.doubled(), one_in(SECOND)), None);
}

#[test]
fn a_calm_is_at_most_what_a_word_holds() {
    let hour = seen(SINCE, SECOND * 3_600, cycle(SECOND, 1));
    let longest = Open::at(Rate::MAX, None, &hour);
    assert_eq!(Open::of(longest.memory()), Some(open(Rate::MAX, MOST_CALM)));
    assert_eq!(open(Rate::MAX, MOST_CALM).calm, MOST_CALM);
}

#[test]
fn a_shut_service_is_remembered() {
    let open = open(one_in(SECOND / 3), 160);
    let now = seen(SINCE, 0, cycle(SECOND, 9));
    // After two calms the growth is a fifth: 26 of 128 parts, in four bits.
    let (since, shut) = waits(Shut::after(
        &settings(),
        open,
        open.rate_after(2 << 10),
        &now,
    ));
    let wait = (SECOND / 3 / TICK).next_multiple_of(16) * TICK;
    assert_eq!(since, SINCE + wait / 16);
    assert_eq!(shut, self::shut(open.rate, Some(26 << 9), false, wait));
    assert_eq!(shut.rate(), Rate::from_ratio(1, wait / 16 * 15));
    assert_eq!(shut.heard(since), SINCE);
}

#[test]
fn a_knock_is_as_heavy_as_the_request_that_was_refused_in_powers_of_two() {
    let weighed = |weight| {
        let now = Seen {
            weight,
            ..seen(SINCE, 0, cycle(SECOND, 9))
        };
        let last = shut(one_in(SECOND), Some(0), true, SECOND);
        waits(last.limit(&settings(), &now)).1.weight
    };
    let most = weighed(u32::MAX.into());
    assert_eq!([1, 2, 3, 1_000].map(weighed).map(u64::ilog2), [0, 1, 2, 10]);
    assert_eq!(most, 1 << 31, "the most that a word holds");
}

#[test]
fn a_light_request_opens_nothing_before_the_time_of_a_heavy_knock() {
    let wait = TICK << 15;
    let since = SINCE + wait / PAUSE;
    let heavy = Shut {
        weight: 1 << 10,
        ..shut(one_in(SECOND), Some(0), true, wait)
    };
    let opens = |weight, sent| {
        let now = Seen {
            weight,
            ..seen(sent, 0, cycle(SECOND, 9))
        };
        opened(heavy, since, &now).is_some()
    };
    let due = SINCE + wait;
    assert_eq!(
        [511, 512].map(|weight| opens(weight, due - 1)),
        [false, true]
    );
    assert!(opens(1, due));
}

#[test]
fn a_light_knock_that_is_refused_halves_the_weight_of_the_next() {
    let wait = TICK << 15;
    let since = SINCE + wait / PAUSE;
    let heavy = Shut {
        weight: 1 << 10,
        ..shut(one_in(SECOND), Some(0), true, wait)
    };
    let next = |weight| {
        let now = Seen {
            weight,
            ..seen(SINCE + wait, 0, cycle(SECOND, 9))
        };
        knocked(heavy, since, &now).expect("a knock").weight
    };
    assert_eq!([1, 512, 513, 3_000].map(next), [512, 512, 1_024, 4_096]);
}

#[test]
fn the_first_wait_is_the_own_spacing() {
    let peak = one_in(SECOND / 100);
    let first = |trip, cycle| {
        let (since, memory, _) = Shut::first(&settings(), peak, &seen(SINCE, trip, cycle));
        let (_, shut) = waits((since, memory));
        assert_eq!((shut.rate, shut.grown, shut.knocked), (peak, None, false));
        shut.wait / TICK
    };
    assert_eq!(first(0, cycle(TICK << 16, 32)), (1 << 16) / 32);
    assert_eq!(
        first(TICK << 13, cycle(TICK << 16, 32)),
        1 << 12,
        "half a trip"
    );
    assert_eq!(first(0, cycle(SECOND * 1_000, 2)), ticks(SECOND * 60));
    assert_eq!(first(0, cycle(SECOND * 1_000, 0)), ticks(SECOND * 4));
    // Nothing was counted yet, or the counts were forgotten.
    assert_eq!(first(0, Cycle::default()), ticks(SECOND * 4));
}

#[test]
fn where_nothing_was_delivered_a_cycle_begins_with_the_refusal() {
    let now = seen(SINCE, 0, Cycle::default());
    let (_, _, begun) = Shut::first(&settings(), one_in(SECOND / 100), &now);
    assert_eq!(
        (begun.start(), begun.count(SUM)),
        (Some(SINCE >> 16 << 16), 0)
    );
    assert_eq!(begun.light(), 0);
}

#[test]
fn the_second_wait_is_twice_the_first_and_later_ones_grow_by_what_was_accepted() {
    let rate = one_in(SECOND);
    let next = |grown, knocked, wait, accepted| {
        let since = SINCE + wait / PAUSE;
        let now = seen(since + wait, 0, cycle(SECOND, accepted));
        let shut = self::knocked(shut(rate, grown, knocked, wait), since, &now).expect("a knock");
        assert!(shut.knocked);
        shut.wait / TICK
    };
    let wait = TICK << 10;
    assert_eq!(next(Some(0), false, wait, 400), 2 << 10);
    assert_eq!(next(Some(0), true, wait, 400), 1_536);
    assert_eq!(next(Some(0), true, wait, 0), 2 << 10);
    assert_eq!(next(Some(0), true, wait, 1_200), 1_280);
    assert_eq!(next(Some(0), true, wait, 400 * 15), 1_088);
    // After the law of seconds, 1,200 count as accepted, and waits below half a second double.
    assert_eq!(next(None, true, wait, 400 * 15), 1_280);
    assert_eq!(next(None, true, TICK << 8, 1_200), 2 << 8);
    assert_eq!(next(None, true, TICK << 9, 1_200), 640);
}

#[test]
fn the_longest_wait_is_100_seconds_or_a_thirtysecond_of_the_cycle_or_what_the_floor_takes() {
    let limited = |settings: &PacedSettings, span| {
        let now = seen(SINCE, 0, cycle(span, 9));
        let long = shut(one_in(SECOND), Some(0), true, SECOND * 1_000);
        waits(long.limit(settings, &now)).1.wait / TICK
    };
    assert_eq!(limited(&settings(), SECOND * 100), ticks(SECOND * 100));
    assert_eq!(limited(&settings(), SECOND * 9_600), ticks(SECOND * 300));
    let floor = PacedSettings::builder().floor(1, core::time::Duration::from_secs(7));
    let floor = floor.build().expect("in range");
    assert_eq!(limited(&floor, SECOND * 100), ticks(SECOND * 7));
}

#[test]
fn a_hint_pauses_until_its_time_and_the_knock_comes_a_wait_later() {
    let until = SINCE + SECOND * 33 + 7;
    let wait = TICK << 10;
    let (last, nine) = (shut(one_in(SECOND), Some(0), false, wait), cycle(SECOND, 9));
    let hint = Seen {
        until,
        ..seen(SINCE, 0, nine)
    };
    let (since, shut) = waits(last.limit(&settings(), &hint));
    assert_eq!((since, shut.hinted, shut.wait), (until, true, wait));
    assert_eq!(shut.rate(), Rate::from_ratio(1, wait));
    // A request sent when the pause ends is a knock; an earlier request is not.
    for (sent, is_knock) in [(until - 1, false), (until, true), (until + 1, true)] {
        let now = seen(sent, 0, nine);
        assert_eq!(knocked(shut, since, &now).is_some(), is_knock);
        assert_eq!(shut.opened(&settings(), since, &now).is_some(), is_knock);
    }
    // The refusal of an earlier request may make the pause longer.
    let memory = last.limit(&settings(), &seen(SINCE, 0, nine)).1;
    let pause = Cut {
        memory,
        since: SINCE,
    };
    let paused = Shut::paused(pause, &hint).map(waits);
    assert_eq!(paused, Some((until, shut)));
    let later = Cut {
        since: until,
        ..pause
    };
    assert_eq!(Shut::paused(later, &hint), None);
}

#[test]
fn what_was_sent_before_the_refusal_was_heard_opens_nothing_and_is_no_knock() {
    let wait = TICK << 10;
    let since = SINCE + wait / PAUSE;
    let last = shut(one_in(SECOND), Some(0), false, wait);
    for (sent, is_knock) in [(SINCE - 1, false), (SINCE, false), (SINCE + 1, true)] {
        let now = seen(SINCE + SECOND, SINCE + SECOND - sent, cycle(SECOND, 9));
        assert_eq!(knocked(last, since, &now).is_some(), is_knock);
        assert_eq!(last.opened(&settings(), since, &now).is_some(), is_knock);
    }
}

#[test]
fn the_next_rate_is_the_mean_of_the_cycle() {
    let wait = TICK << 12;
    let since = SINCE + wait / PAUSE;
    let last = shut(one_in(SECOND * 2), Some(ONE / 2), false, wait);
    // 40 in 64 s: the opening is midway between the refusal and the knock 4 s later.
    let now = seen(SINCE + SECOND * 4, 0, cycle(SECOND * 62, 40).after(0, 640));
    let (open, next) = opened(last, since, &now).expect("a window");
    let start = now.cycle.start().expect("begun");
    let at = SINCE + SECOND * 2;
    assert_eq!(open.rate, kept(ratio(40, at - start)));
    assert_eq!(next.start(), Some(at >> 16 << 16));
    assert_eq!((next.count(SUM + 1), next.before() / TICK), (1, 60_416));
    assert_eq!((at - start) / TICK, 61_035, "rounded down");
    // Earlier cycles count in part: 40 of a calm of 160 leave seven eighths.
    let short = Seen {
        cycle: now.cycle.after(TICK << 16, 640),
        ..now
    };
    let (open, next) = opened(last, since, &short).expect("a window");
    let before = (TICK << 13) * 7;
    let tokens = (40_u128 << 64) + u128::from(last.rate.raw()) * u128::from(before);
    let mean = Rate::from_raw(tokens / u128::from(at - start + before));
    assert_eq!(open.rate, kept(mean));
    assert_eq!(
        next.before() / TICK,
        unpack(pack(61_035 + (7 << 13), OF_CALM), OF_CALM)
    );
}

#[test]
fn a_cycle_of_two_is_no_slower_than_its_last_gap_and_no_rate_falls_by_more_than_half() {
    let wait = TICK << 15;
    let since = SINCE + wait / PAUSE;
    let mean = |rate, grown, count, span, gap| {
        let now = seen(SINCE + gap, 0, cycle(span, count).after(0, 4));
        let (open, _) = opened(shut(rate, Some(grown), true, wait), since, &now)?;
        Some(open.rate)
    };
    let (slow, fast) = (one_in(SECOND * 30), one_in(SECOND / 10));
    let gap = SECOND * 20;
    assert_eq!(mean(slow, ONE, 2, SECOND * 600, gap), Some(one_in(gap)));
    assert_eq!(mean(slow, ONE, 3, SECOND * 600, gap), Some(slow.half()));
    // After the longest wait the gap counts as half.
    let longest = TICK * ticks(LONGEST);
    let since = SINCE + longest / PAUSE;
    for (knocked, part) in [(true, 2), (false, 1)] {
        let now = seen(SINCE + longest, 0, cycle(SECOND * 600, 2).after(0, 4));
        let slow = one_in(SECOND * 90);
        let (open, _) = opened(shut(slow, Some(ONE), knocked, longest), since, &now).expect("open");
        assert_eq!(open.rate, one_in(longest / part));
    }
    assert_eq!(mean(fast, 0, 30, SECOND * 600, gap), Some(fast.half()));
    // The next rate is at most the rate that was refused.
    assert_eq!(
        mean(slow, ONE / 4, 10, SECOND, 2),
        Some(kept(more(slow, ONE / 4)))
    );
}

#[test]
fn a_calm_falls_by_an_eighth_at_most_after_five_answers() {
    let wait = TICK << 10;
    let since = SINCE + wait / PAUSE;
    let calm = |count| {
        let cycle = cycle(SECOND * 40, count).after(0, 1_024);
        let now = seen(SINCE + wait, 0, cycle);
        let shut = shut(one_in(SECOND * 8), Some(0), true, wait);
        opened(shut, since, &now).expect("a window").0.calm
    };
    // At 0.1 a second: 160 quarters, times the power of three quarters.
    assert_eq!([4, 5].map(calm), [28, 896]);
}

#[test]
fn where_a_cycle_beats_its_rate_the_mean_lags() {
    let wait = TICK << 10;
    let since = SINCE + wait / PAUSE;
    let rate = Rate::from_raw(1 << 34); // a little below 1/s
    let next = |grown, count, nanos| {
        let cycle = cycle(nanos, count).after(0, 4);
        let now = seen(SINCE + 2, 0, cycle);
        let own = ratio(count, now.sent - 1 - cycle.start().expect("begun"));
        let open = opened(shut(rate, Some(grown), true, wait), since, &now)?.0;
        Some((own, open.rate))
    };
    // The mean is twice the rate, and the end eight times: the root of their product is about four.
    let (own, rate) = next(7 * ONE, 40, SECOND * 20).expect("a window");
    let ratio = rate.raw() * 100 / own.raw();
    assert!((190..210).contains(&ratio), "{ratio} %");
    // Too few answers.
    let (own, rate) = next(7 * ONE, 19, SECOND * 10).expect("a window");
    assert_eq!(rate, kept(own));
}

#[test]
fn an_outage_is_for_the_law_of_seconds_unless_the_last_cycle_was_as_long() {
    let peak = one_in(SECOND / 100);
    let play = |cycle: Cycle, knocked, dark| {
        let first = seen(SINCE, 0, cycle);
        let (_, _, cycle) = Shut::first(&settings(), peak, &first);
        let wait = TICK << 18;
        let (shut, since) = (shut(peak, None, knocked, wait), SINCE + wait / PAUSE);
        let now = seen(SINCE + 2 * dark, 0, cycle);
        let (memory, next) = shut.opened(&settings(), since, &now).expect("a knock");
        let seconds = remember(&settings(), peak, STARVED_STEP, 0);
        assert_eq!(memory == seconds, !memory.is_open());
        (memory.is_open(), next, cycle)
    };
    let light = cycle(SECOND * 100, 500);
    let (is_window, next, _) = play(light, true, SECOND * 50);
    assert!(!is_window);
    assert_eq!(next.start(), Some((SINCE + SECOND * 50) >> 16 << 16));
    assert_eq!(
        next.before() / TICK,
        unpack(pack(SECOND * 150 / TICK, OF_CALM), OF_CALM)
    );
    // A second cycle as long, and one twice as long.
    let again = next.anew(SINCE - SECOND * 100, SUM - 500);
    assert!(play(again, true, SECOND * 50).0);
    let longer = next.anew(SINCE - SECOND * 250, SUM - 500);
    assert!(!play(longer, true, SECOND * 50).0);
    // The service is shut for longer than open.
    assert!(play(light, true, SECOND * 110).0);
}

#[test]
fn what_is_shut_for_less_than_a_second_is_for_the_law_of_seconds_but_not_twice_for_few() {
    let play = |rate: Rate, cycle: Cycle, count, dark| {
        let cycle = cycle.anew(SINCE - SECOND / 4, SUM - count);
        let first = seen(SINCE, 0, cycle);
        let (_, _, cycle) = Shut::first(&settings(), rate, &first);
        let wait = TICK << 12;
        let (shut, since) = (shut(rate, None, false, wait), SINCE + wait / PAUSE);
        let now = seen(SINCE + 2 * dark, 0, cycle);
        let (memory, next) = shut.opened(&settings(), since, &now).expect("a knock");
        (memory.is_open(), next)
    };
    let (none, fast) = (Cycle::default(), one_in(SECOND / 10));
    let (short, long) = (SECOND / 2, SECOND * 2);
    let (is_window, next) = play(fast, none, 7, short);
    assert!(!is_window && next.before() > 0);
    assert_eq!(
        [7, 8].map(|count| play(fast, next, count, short).0),
        [true, false]
    );
    // After two answers or fewer the length says nothing.
    assert_eq!(
        [2, 3].map(|count| play(fast, none, count, long).0),
        [false, true]
    );
    assert!(play(one_in(SECOND * 2), none, 7, short).0, "below 1/s");
}

#[test]
fn a_count_of_a_cycle_is_none_before_it_began() {
    assert_eq!(Cycle::default().count(7), 0);
    let begun = Cycle::new(SECOND, 7);
    assert_eq!([6, 7, 9].map(|sum| begun.count(sum)), [0, 0, 2]);
    assert_eq!(Cycle::new(SECOND, u64::MAX).count(1), 2, "it wraps");
    assert_eq!(Cycle::new(0, 7).start(), Some(1 << 16));
    let moved = begun.moved(SECOND);
    let start = (SECOND >> 16) * 2;
    assert_eq!((moved.start(), moved.count(9)), (Some(start << 16), 2));
}

#[test]
fn time_in_which_no_knock_was_sent_is_no_part_of_a_cycle() {
    let (wait, late) = (TICK << 12, TICK << 22);
    let since = SINCE + wait / PAUSE;
    let last = shut(one_in(SECOND * 2), Some(ONE / 2), true, wait);
    let at = |sent| seen(sent, 0, cycle(SECOND * 62, 40).after(0, 640));
    let refused = |sent| {
        last.knocked(&settings(), since, &at(sent))
            .map(|next| next.2)
    };
    let due = SINCE + wait;
    let goes_on = |late: u64| Some(at(due).cycle.moved(late));
    assert_eq!(
        (refused(due), refused(due + late)),
        (goes_on(0), goes_on(late))
    );
    let done = |sent| opened(last, since, &at(sent)).expect("a window");
    let ((open, next), (same, later)) = (done(due), done(due + late));
    assert_eq!((same, later), (open, next.moved(late)));
}

/// A knock goes at the very moment that the service had said, after few answers. The time since the
/// pause is no gap from which a rate could follow.
#[test]
fn a_knock_at_the_end_of_a_pause_is_no_rate() {
    let since = SECOND * 600;
    let shut = Shut {
        rate: Rate::from_ratio(1, SECOND * 30),
        grown: None,
        knocked: true,
        wait: SECOND * 30,
        weight: 1,
        hinted: true,
    };
    let seen = Seen {
        now: since + SECOND,
        sent: since,
        until: since,
        cycle: Cycle::new(SECOND, 0).dark_after(SECOND * 60),
        sum: 2,
        weight: 1,
    };
    let opened = shut.opened(&PacedSettings::new(), since, &seen);
    let (memory, _) = opened.expect("it was a knock");
    let open = Open::of(memory).expect("it counts cycles");
    let mean = Rate::from_ratio(2, SECOND * 599);
    assert!(open.rate <= mean && mean <= open.rate.scaled(11, 10));
}
