//! The pace (rules 4 and 5).

use super::super::Spend;
use super::super::ledger::{Ledger, Within, amount, to_i64};
use super::super::plan::Plan;
use super::super::seen::Seen;
use super::ledgers::{refill, window};
use crate::fixed::{Rate, SECOND};

fn rate(tokens: u64, nanos: u64) -> Rate {
    Rate::from_raw((u128::from(tokens) << 64) / u128::from(nanos))
}

/// The rate, and until when nothing may go.
type Pace = (Rate, Option<u64>);

fn of(plan: Plan) -> Pace {
    (plan.rate, plan.until)
}

fn plan(ledger: &Ledger, now: u64, sent: u64) -> Pace {
    of(ledger.plan(Spend::Even, now, sent, 0))
}

/// The ledger with fifteen others like this client.
fn shared_by_sixteen(ledger: Ledger) -> Ledger {
    let seen = Seen {
        own: 1 << 32,
        others: 15 << 32,
        ..Seen::default()
    };
    Ledger { seen, ..ledger }
}

#[test]
fn what_is_left_is_spread_to_the_end() {
    // 50 in 7 s.
    let ledger = window(50);
    let even = rate(50, 7 * SECOND);
    assert_eq!(plan(&ledger, 2 * SECOND, 10), (even, None));
    let fast = ledger.plan(Spend::Fast, 2 * SECOND, 10, 0);
    assert_eq!(of(fast), (rate(50, SECOND), None));
    // A refill has no end: 60 until it is whole.
    let even = rate(60, 4 * SECOND);
    assert_eq!(plan(&refill(50), 2 * SECOND, 10), (even, None));
}

#[test]
fn what_is_promised_is_planned_already() {
    let less = window(50).plan(Spend::Even, 2 * SECOND, 10, amount(10));
    let even = rate(40, 7 * SECOND);
    assert_eq!(of(less), (even, None));
}

#[test]
fn clients_take_their_part_to_the_power_of_three_quarters() {
    // A part of a sixteenth gets an eighth of the rate.
    let shared = shared_by_sixteen(window(50));
    let part = rate(50, 8 * 7 * SECOND);
    assert_eq!(plan(&shared, 2 * SECOND, 10), (part, None));
    // A client that has taken nothing yet begins at a quarter.
    let mut new = shared;
    new.seen.own = 0;
    let part = rate(50, 4 * 7 * SECOND);
    assert_eq!(plan(&new, 2 * SECOND, 10), (part, None));
}

#[test]
fn beside_another_limit_no_more_goes_than_a_part_of_the_limit() {
    let alone = Ledger {
        contradicted: 3 * SECOND,
        ..window(90)
    };
    assert_eq!(plan(&alone, 2 * SECOND, 10), (rate(100, 10 * SECOND), None));
    assert_eq!(plan(&alone, 3 * SECOND, 10), (rate(90, 6 * SECOND), None));
    // Seven eighths of a sixteenth, and an eighth of an eighth: 9 of 128.
    let shared = shared_by_sixteen(alone);
    let part = rate(900, 1_280 * SECOND);
    assert_eq!(plan(&shared, 2 * SECOND, 10), (part, None));
}

#[test]
fn an_empty_window_waits_for_the_next() {
    let wait = plan(&window(0), 2 * SECOND, 10);
    assert_eq!(wait, (rate(100, 10 * SECOND), Some(9 * SECOND)));
    let wait = plan(&refill(0), SECOND, 10);
    assert_eq!(wait, (rate(1, 10 * SECOND), Some(SECOND + SECOND / 10)));
}

#[test]
fn no_more_than_the_even_rate_where_little_is_known() {
    let even = (rate(100, 10 * SECOND), None);
    let first = Ledger {
        first: true,
        ..window(99)
    };
    assert_eq!(plan(&first, SECOND + SECOND / 5 - 1, 10), even);
    assert_ne!(plan(&first, SECOND + SECOND / 5, 10), even);
    // The end of the window is not known.
    let blind = Ledger {
        reset: Within {
            lo: 4_000_000_000,
            hi: 9_000_000_000,
        },
        ..window(90)
    };
    let less = rate(100, 10 * SECOND).scaled(15, 16);
    assert_eq!(plan(&blind, 2 * SECOND, 10), (less, None));
}

#[test]
fn a_pause_is_waited_for() {
    let paused = Ledger {
        pause: 4 * SECOND,
        ..window(50)
    };
    let then = rate(50, 5 * SECOND);
    let until = 4 * SECOND;
    assert_eq!(plan(&paused, 2 * SECOND, 10), (then, Some(until)));
    assert_eq!(paused.resumed_at(4 * SECOND, then), 4 * SECOND);
    assert_eq!(paused.resumed_at(5 * SECOND, then), 4 * SECOND);
    assert_eq!(window(50).resumed_at(5 * SECOND, then), 5 * SECOND);
    let begun = window(50).rolled(9 * SECOND, 10).expect("one has begun");
    // The first token of the window was begun before.
    let resumed = begun.resumed_at(10 * SECOND, rate(2, SECOND));
    assert_eq!(resumed, 9 * SECOND - SECOND / 2);
}

#[test]
fn the_first_token_of_a_window_may_be_missing() {
    // At one a second, the first token begins a second before 9 s.
    let begun = window(50).rolled(9 * SECOND, 10).expect("one has begun");
    let one = rate(1, SECOND);
    let half = 9 * SECOND - SECOND / 2;
    assert!(!begun.lacks_first(half, one));
    assert!(begun.lacks_first(half + 1, one));
    // The token is not missed among others, or in an old window.
    let mut shared = begun;
    shared.seen.others = 1 << 32;
    assert!(!shared.lacks_first(9 * SECOND, one));
    assert!(!window(50).lacks_first(9 * SECOND, one));
    // A client that is alone begins with a whole token, whatever the limit.
    let of_one = Ledger { limit: 1, ..begun };
    let resumed = of_one.resumed_at(10 * SECOND, one);
    assert_eq!(resumed, 8 * SECOND);
    let of_one = Ledger { limit: 1, ..shared };
    assert!(of_one.resumed_at(10 * SECOND, one) > 8 * SECOND);
}

#[test]
fn a_declared_rate_is_never_none() {
    let year = Ledger {
        window: 1 << 55,
        reset: Within {
            lo: 1 << 55,
            hi: 1 << 55,
        },
        left: to_i64(amount(1)),
        ..window(1)
    };
    let slowest = Rate::from_bits(1 << 15);
    assert_eq!(plan(&year, 2 * SECOND, 10), (slowest, None));
    // A request after an hour without a report goes at once.
    let hour = 3_600 * SECOND;
    assert_eq!(plan(&year, SECOND + hour - 1, 10), (slowest, None));
    let second = Rate::from_bits(u64::MAX / SECOND);
    assert_eq!(plan(&year, SECOND + hour, 10), (second, None));
}

#[test]
fn of_two_plans_the_stricter_holds() {
    let (slow, fast) = (rate(1, SECOND), rate(2, SECOND));
    let of = |rate, until, one_more| Plan {
        rate,
        until,
        one_more,
    };
    let stricter = |one: Plan, two: Plan| one.stricter(two);
    let (rates, wait) = (of(slow, None, 1), of(fast, Some(5), 2));
    assert_eq!(stricter(rates, of(fast, None, 2)), of(slow, None, 2));
    for (one, two) in [(fast, slow), (slow, fast)] {
        let later = stricter(of(one, Some(5), 2), of(two, Some(7), 1));
        assert_eq!(later, of(slow, Some(7), 2));
    }
    assert_eq!([stricter(wait, rates), stricter(rates, wait)], [wait; 2]);
    let token = slow.nanos_per_token();
    assert_eq!(wait.at_most(slow), of(slow, Some(5), token));
    assert_eq!(
        of(fast, None, 9 * SECOND).at_most(slow),
        of(slow, None, 9 * SECOND)
    );
    assert_eq!(
        [wait, rates].map(|plan| plan.rate_now()),
        [Rate::LEAST, slow]
    );
}
