//! The effect of a window on the law's memory, and when the limit ends.

use super::*;

/// The rate that a window must have counted to prove `proven`.
fn counted(proven: Rate) -> Rate {
    Rate::from_raw(u128::from(proven.raw()) + u128::from(Rate::from_ratio(3, SECOND).raw()))
}

/// β is a half, and the floor 2³⁹ units. With a peak at the floor, twice 2³⁹ lifts the rate no
/// more.
#[test]
fn a_window_lifts_a_rate_that_is_less_than_beta_of_what_it_proves() {
    let settings = defaults()
        .to_builder()
        .beta_permille(500)
        .build()
        .expect("a half");
    let last = cut(Rate::from_raw(EXACT), 0);
    assert_eq!(rate_at(&settings, last.memory, SINCE, SINCE).raw(), 1 << 39);
    let after = |raw, now| after_window(&settings, last, now, counted(Rate::from_raw(raw)));
    assert_eq!(after(EXACT, SINCE), None);
    assert_eq!(
        after(EXACT + 2, SINCE),
        Some(memory(Rate::from_raw(EXACT + 2), 0, STEP))
    );
    assert_eq!(after(EXACT * 4, SINCE - 1), None, "in a pause");
    assert_eq!(
        after(EXACT, SINCE + 10 * SECOND),
        None,
        "it is faster by then"
    );
    assert_eq!(after(0, SINCE), None);
    assert_eq!(after_window(&settings, last, SINCE, Rate::ZERO), None);
}

#[test]
fn three_responses_a_second_prove_nothing() {
    let last = cut(per_second(1), 0);
    let after = |rate| after_window(&defaults(), last, SINCE, rate);
    assert_eq!(after(per_second(3)), None);
    let next = after(per_second(4)).expect("one a second, and 0.9 is more than 0.55");
    assert!(next.peak().raw().abs_diff(per_second(1).raw()) <= 1 << 13);
}

/// A peak of 10 × 2⁴⁰ units, halved eight times, and its proven part.
#[test]
fn a_starved_law_keeps_a_peak_of_which_a_good_part_is_proven() {
    let peak = Rate::from_raw(EXACT * 10);
    let last = cut(peak, 8);
    let after = |raw| {
        let next = after_window(&defaults(), last, SINCE, counted(Rate::from_raw(raw)));
        next.map(|memory| {
            assert_eq!(memory.trip(), last.memory.trip());
            (u128::from(memory.peak().raw()), memory.ramp())
        })
    };
    let one = 1 << 13;
    let all = EXACT * 10;
    assert_eq!(after(EXACT * 12), Some((EXACT * 12, 0)));
    assert_eq!(after(all), Some((all, 0)));
    assert_eq!(after(EXACT * 9), Some((all, 0)));
    assert_eq!(after(EXACT * 6 + one), Some((all, 0)));
    assert_eq!(after(EXACT * 6), Some((all, 1)));
    let quarter = EXACT * 5 / 2;
    assert_eq!(after(quarter + one), Some((all, 1)));
    assert_eq!(after(quarter), Some((quarter, 0)));
    assert_eq!(after(EXACT * 2 + one), Some((EXACT * 2 + one, 0)));
    assert_eq!(after(EXACT * 2), Some((EXACT * 2, 0)));
    assert_eq!(after(EXACT), Some((EXACT * 2, 0)));
}

#[test]
fn a_window_lifts_no_peak_beyond_the_ceiling() {
    let ceiling = defaults()
        .to_builder()
        .ceiling(50, Duration::from_secs(1))
        .build();
    let settings = ceiling.expect("a ceiling");
    for ramp in [0, 4] {
        let last = cut(per_second(10), ramp);
        let next = after_window(&settings, last, SINCE, per_second(100));
        assert_eq!(next, Some(memory(per_second(50), 0, STEP)));
    }
}

#[test]
fn the_law_is_over_after_thirty_calm_seconds_with_twice_the_peak_delivered() {
    let last = cut(Rate::from_raw(EXACT), 0);
    let settings = defaults();
    let calm = SINCE + 30 * SECOND;
    let twice = last.memory.peak().doubled();
    let over = |settings: &PacedSettings, now, done| is_over(settings, last, now, done);
    assert!(!over(&settings, calm, twice));
    assert!(over(&settings, calm + 1, twice));
    assert!(!over(&settings, SINCE - 1, twice), "in a pause");
    let less = Rate::from_raw(u128::from(twice.raw()) - 1);
    assert!(!over(&settings, calm + 1, less));
    let ceiling = settings
        .to_builder()
        .ceiling(1_000_000, Duration::from_secs(1))
        .build();
    assert!(!over(&ceiling.expect("a ceiling"), calm + 1, twice));
    let blind = Cut {
        memory: last.memory.blind(),
        ..last
    };
    assert!(!is_over(&settings, blind, calm + 1, twice));
}

/// A cut of a service with short trips.
fn near(peak: u32) -> Cut {
    Cut {
        memory: memory(per_second(peak), 0, 0),
        since: SINCE,
    }
}

/// A window that began `from` seconds after the cut, in which `done` were done.
fn past(from: u64, done: u32) -> Past {
    let done = per_second(done);
    Past {
        began: SINCE + from * SECOND,
        before: per_second(100),
        done,
        ..Past::default()
    }
}

#[test]
fn beyond_the_peak_the_rate_at_most_doubles_in_a_window() {
    let settings = defaults();
    let last = near(100);
    let peak = last.memory.peak();
    let within = |began: u64, before, now: u64| {
        let window = Some((SINCE + began * SECOND, before));
        rate_within(&settings, last, window, SINCE + now * SECOND)
    };
    let at = |now: u64| rate_at(&settings, last.memory, SINCE, SINCE + now * SECOND);
    // Up to the peak, time leads back, however little was delivered.
    assert_eq!(within(0, per_second(1), 2), at(2));
    assert_eq!(within(4, Rate::ZERO, 5), at(5));
    assert_eq!(within(4, Rate::ZERO, 3_600), at(4).doubled());
    assert_eq!(within(4, per_second(110), 3_600), per_second(220));
    assert_eq!(within(4, per_second(1), 3_600), peak.doubled());
}

#[test]
fn of_a_cut_that_knew_next_to_nothing_only_use_leads_back() {
    let settings = defaults();
    let last = Cut {
        memory: memory(Rate::from_raw(EXACT << 10), 10, 0).blind(),
        since: SINCE,
    };
    assert!(last.memory.is_blind() && last.memory.ramp() == 10);
    let later = SINCE + 3_600 * SECOND;
    let first = rate_at(&settings, last.memory, SINCE, SINCE);
    let within = |before| rate_within(&settings, last, Some((SINCE, before)), later);
    assert_eq!(within(Rate::ZERO), first.times_two_to(4));
    assert_eq!(within(per_second(100)), per_second(200));
    assert_eq!(unused(&settings, last, later, past(0, 0)), None);
}

#[test]
fn a_window_that_was_not_half_used_moves_the_cut_on() {
    let settings = defaults();
    let last = near(100);
    let (began, now) = (SINCE + 4 * SECOND, SINCE + 5 * SECOND);
    let rate = rate_within(&settings, last, Some((began, per_second(100))), now);
    let half = u32::try_from(rate.half().tokens_in(SECOND)).expect("few");
    let moved = |done| unused(&settings, last, now, past(4, done));
    assert_eq!(moved(half), None);
    assert_eq!(moved(half - 1), Some(SINCE + SECOND));
    assert_eq!(moved(0), Some(SINCE + SECOND));
    // Below the peak the time of the cut stays.
    assert_eq!(unused(&settings, last, SINCE + SECOND, past(0, 0)), None);
    // If the window passed the peak, the rate goes back to the peak.
    let later = SINCE + 3_600 * SECOND;
    let since = unused(&settings, last, later, past(0, 0)).expect("it was not used");
    let rate = rate_at(&settings, last.memory, since, later);
    assert!(rate > per_second(99) && rate < per_second(102), "{rate:?}");
}

#[test]
fn a_limiter_that_limits_from_the_start_starts_at_its_rate() {
    let settings = defaults();
    let start = started_at(&settings, per_second(100));
    let rate = rate_at(&settings, start, 0, 0);
    assert_eq!(rate.tokens_in(1_000 * SECOND), 100_000, "rounded up");
    assert_eq!((start.ramp(), start.trip()), (0, CoarseRtt::default()));
}

/// With a peak rounded down, a full bucket would lack a part of its last token.
#[test]
fn a_limiter_with_a_ceiling_starts_at_all_of_it() {
    for tokens in (1..20_000).chain((20_000..1_000_000_000).step_by(99_991).take(5_000)) {
        let ceiling = PacedSettings::builder().ceiling(tokens, Duration::from_secs(1));
        let settings = ceiling.build().expect("in range");
        let start = started_at(&settings, per_second(tokens));
        let rate = rate_at(&settings, start, 0, 0);
        assert_eq!(rate, per_second(tokens), "{tokens}");
    }
}

/// At low rates a cut takes more than 1 − β. β of a rate is then more than a cut at the rate would
/// leave.
#[test]
fn a_window_never_lowers_a_rate_that_is_back_from_starvation() {
    let mut rng = fastrand::Rng::with_seed(3);
    let mut lifted = 0;
    for _ in 0..20_000 {
        let last = cut(per_second(rng.u32(1..2_000)), 0);
        let now = SINCE + rng.u64(..3 * SECOND);
        let counted = per_second(rng.u32(1..2_000));
        if let Some(next) = after_window(&defaults(), last, now, counted) {
            let before = rate_at(&defaults(), last.memory, SINCE, now);
            let after = rate_at(&defaults(), next, now, now);
            assert!(
                after.raw() >> 13 >= before.raw() >> 13,
                "{last:?}, {counted:?}"
            );
            lifted += 1;
        }
    }
    assert!(lifted > 5_000, "{lifted}");
}
