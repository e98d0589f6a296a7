//! The end of a window, and its rate.

use super::*;

fn per_second(tokens: u32) -> Rate {
    Rate::from_ratio(tokens, SECOND)
}

/// A window of `count` responses in `millis`, after a window of ten a second.
fn after_ten(count: u64, millis: u64) -> Delivered {
    Delivered {
        before: per_second(10),
        count,
        elapsed: millis * SECOND / 1_000,
    }
}

fn first(count: u64, elapsed: u64) -> Delivered {
    Delivered {
        before: Rate::ZERO,
        count,
        elapsed,
    }
}

#[test]
fn a_first_window_is_its_own_rate() {
    assert_eq!(first(30, 3 * SECOND).rate(0), per_second(10));
    assert_eq!(first(29, 3 * SECOND).rate(1), per_second(10));
    assert_eq!(first(0, 3 * SECOND).rate(0), Rate::ZERO);
    assert_eq!(first(5, 0).rate(0), Rate::MAX, "five in no time");
    assert_eq!(first(u64::MAX, u64::MAX).rate(1), Rate::MAX);
}

#[test]
fn a_window_before_counts_as_one_second_of_its_rate() {
    assert_eq!(after_ten(0, 0).rate(0), per_second(10));
    for (delivered, more, want) in [
        (after_ten(20, 1_000), 0, 15),
        (after_ten(18, 1_000), 2, 15),
        (after_ten(5, 2_000), 0, 5),
    ] {
        let off = delivered.rate(more).raw().abs_diff(per_second(want).raw());
        assert!(off <= 1, "{delivered:?}");
    }
    let all = Delivered {
        before: Rate::MAX,
        count: u64::MAX,
        elapsed: u64::MAX,
    };
    assert_eq!(all.rate(u64::MAX), Rate::MAX);
    assert_eq!(all.responses(), u64::MAX);
}

#[test]
fn a_window_before_of_few_counts_for_eight_responses_up_to_eight_seconds() {
    let after = |tokens, nanos| Delivered {
        before: Rate::from_ratio(tokens, nanos),
        count: 0,
        elapsed: 0,
    };
    for (tokens, nanos, responses) in [(2, SECOND, 8), (1, SECOND, 8), (1, 2 * SECOND, 4)] {
        let before = after(tokens, nanos);
        assert_eq!(before.responses(), responses, "{tokens} in {nanos}");
        let rate = Delivered {
            count: 4,
            elapsed: SECOND,
            ..before
        }
        .rate(0);
        let span = (8 * nanos / u64::from(tokens)).min(8 * SECOND) + SECOND;
        let count = u32::try_from(responses).expect("few") + 4;
        assert!(rate.raw().abs_diff(Rate::from_ratio(count, span).raw()) <= 8);
    }
    assert_eq!(after(8, SECOND).responses(), 8);
    assert_eq!(after(9, SECOND + 1).responses(), 8, "in a second");
}

#[test]
fn responses_are_those_of_both_windows() {
    assert_eq!(first(7, SECOND).responses(), 7);
    // Ten a second is rounded, so that a second has nine or ten whole responses.
    let ten = per_second(10).tokens_in(SECOND);
    assert_eq!(after_ten(7, 100).responses(), 7 + ten);
}

#[test]
fn the_first_64_are_in_doubt_by_a_halving_for_each_halving_of_a_tenth_of_a_second() {
    let milli = SECOND / 1_000;
    for (elapsed, halvings) in [
        (0, 3),
        (25 * milli - 1, 3),
        (25 * milli, 2),
        (50 * milli - 1, 2),
        (50 * milli, 1),
        (100 * milli - 1, 1),
        (100 * milli, 0),
        (u64::MAX, 0),
    ] {
        assert_eq!(first(64, elapsed).doubt(), halvings, "{elapsed} ns");
        assert_eq!(first(63, elapsed).doubt(), 0, "fewer, {elapsed} ns");
    }
    assert_eq!(after_ten(64, 0).doubt(), 0, "not the first");
}

#[test]
fn a_window_lasts_a_second_and_has_32_responses_or_lasts_eight() {
    let counted = |count, elapsed| WindowEnd::Counted(Rate::from_ratio(count, elapsed));
    assert_eq!(
        first(1_000, SECOND - 1).end(false, false),
        WindowEnd::NotYet
    );
    assert_eq!(first(32, SECOND).end(false, false), counted(32, SECOND));
    assert_eq!(first(31, SECOND).end(false, false), WindowEnd::NotYet);
    assert_eq!(
        first(31, 8 * SECOND - 1).end(false, false),
        WindowEnd::NotYet
    );
    assert_eq!(
        first(31, 8 * SECOND).end(false, false),
        counted(31, 8 * SECOND)
    );
    assert_eq!(
        first(0, 8 * SECOND).end(true, false),
        counted(0, 8 * SECOND)
    );
    assert_eq!(
        first(33, 9 * SECOND).end(true, false),
        counted(33, 9 * SECOND)
    );
    assert_eq!(
        first(1 << 40, u64::MAX).end(false, false),
        counted(u32::MAX, u64::MAX)
    );
}

#[test]
fn a_long_window_with_many_responses_or_few_of_the_starved_was_interrupted() {
    let counted =
        |count, millis: u64| WindowEnd::Counted(Rate::from_ratio(count, millis * SECOND / 1_000));
    assert_eq!(after_ten(33, 1_999).end(false, false), counted(33, 1_999));
    assert_eq!(
        after_ten(33, 2_000).end(false, false),
        WindowEnd::Interrupted
    );
    assert_eq!(after_ten(32, 2_000).end(false, false), counted(32, 2_000));
    assert_eq!(
        after_ten(32, 2_000).end(true, false),
        WindowEnd::Interrupted
    );
    assert_eq!(after_ten(32, 1_999).end(true, false), counted(32, 1_999));
    assert_eq!(after_ten(3, 8_000).end(false, false), counted(3, 8_000));
    assert_eq!(after_ten(3, 8_000).end(true, false), WindowEnd::Interrupted);
}
