//! What a window makes of the law's memory, and when the law is over.

use super::*;

/// The rate that a window must have counted for `proven` to be proven.
fn counted(proven: Rate) -> Rate {
    Rate::from_raw(u128::from(proven.raw()) + u128::from(Rate::from_ratio(3, SECOND).raw()))
}

/// β is a half and the floor 2³⁹ units: with a peak at it the rate is 2³⁹, and twice that lifts it
/// no more.
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

/// A peak of 10 × 2⁴⁰ units, halved eight times: what of it is proven.
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
fn the_law_is_over_after_thirty_calm_seconds_with_a_rate_of_over_four_times_what_is_delivered() {
    let last = cut(Rate::from_raw(EXACT), 0);
    let settings = defaults();
    let over = |settings: &PacedSettings, now, delivered| is_over(settings, last, now, &delivered);
    let calm = SINCE + 30 * SECOND;
    let few = delivered(0, SECOND);
    assert!(!over(&settings, calm, few));
    assert!(over(&settings, calm + 1, few));
    assert!(!over(&settings, SINCE - 1, few), "in a pause");
    let ceiling = settings
        .to_builder()
        .ceiling(1_000_000, Duration::from_secs(1))
        .build();
    assert!(!over(&ceiling.expect("a ceiling"), calm + 1, few));
    // Of a rate of 4n/s, n/s is the edge, two of them not counted yet.
    let rate = rate_at(&settings, last.memory, SINCE, calm + 1);
    let quarter = rate.tokens_in(SECOND) / 4;
    assert!(over(&settings, calm + 1, delivered(quarter - 2, SECOND)));
    assert!(!over(&settings, calm + 1, delivered(quarter - 1, SECOND)));
}

/// A floor of one in 2²⁴ ns, and 2 in 2²⁷: a quarter, to the bit.
#[test]
fn a_rate_of_just_four_times_what_is_delivered_is_not_over() {
    let floor = defaults()
        .to_builder()
        .floor(1, Duration::from_nanos(1 << 24))
        .build();
    let settings = floor.expect("a floor");
    let last = Cut {
        memory: memory(per_second(1), 0, u64::MAX),
        since: SINCE,
    };
    let now = SINCE + 31 * SECOND;
    assert_eq!(rate_at(&settings, last.memory, SINCE, now).raw(), 1 << 40);
    assert!(!is_over(&settings, last, now, &delivered(0, 1 << 27)));
    assert!(is_over(&settings, last, now, &delivered(0, (1 << 27) + 1)));
}

#[test]
fn a_limiter_that_limits_from_the_start_starts_at_its_rate() {
    let settings = defaults();
    let start = started_at(&settings, per_second(100));
    let rate = rate_at(&settings, start, 0, 0);
    assert_eq!(rate.tokens_in(1_000 * SECOND), 100_000, "rounded up");
    assert_eq!((start.ramp(), start.trip()), (0, CoarseRtt::default()));
}

/// Rounded down, a full bucket would lack a part of its last token.
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

/// At low rates a cut takes more than 1 − β: β of what was delivered is then more than a cut at it
/// would leave.
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
