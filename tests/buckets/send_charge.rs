//! Estimates that are settled with the true cost: what is debited, what is credited, and when not.

use alloc::sync::Arc;
use core::time::Duration;
use std::thread;

use paceline::{
    AcquireError, ControlLaw, Outcome, SendPermit, SendRate, Timestamp, WeightError,
    law::{DeclaredSettings, LimitReport, PacedSettings, Reset},
};

use crate::support::{fixed, ms};

const SECOND: u64 = 1_000_000_000;

fn not_in_time(millis: u64) -> AcquireError {
    AcquireError::NotInTime {
        wait: Duration::from_millis(millis),
    }
}

#[test]
fn a_debit_is_paid_before_anything_new_goes() {
    let rate = fixed(100);
    let permit = rate.try_acquire_n(ms(0), 60).expect("the bucket is full");
    rate.settle(ms(0), permit, 200).expect("there is room");
    // 100 of the bucket less 200: one more needs 101 tokens.
    assert_eq!(rate.try_acquire_n(ms(0), 1), Err(not_in_time(1_010)));
    assert_eq!(rate.try_acquire(ms(1_009)), Err(Duration::from_millis(1)));
    assert!(rate.try_acquire(ms(1_010)).is_ok());
    assert!(rate.try_acquire(ms(1_010)).is_err());
}

#[test]
fn a_debt_stays_when_throttles_are_forgotten() {
    let rate = fixed(100);
    let permit = rate.try_acquire_n(ms(0), 100).expect("the bucket is full");
    rate.settle(ms(0), permit, 150).expect("a debit");
    rate.forget_throttles(ms(0));
    assert_eq!(rate.try_acquire(ms(0)), Err(Duration::from_millis(510)));
    rate.reset(ms(0));
    let next = Duration::from_millis(10);
    assert_eq!(rate.try_acquire(ms(0)), Err(next), "nothing is owed");
}

#[test]
fn places_in_line_keep_their_turns_beside_a_debit() {
    let rate = fixed(100);
    let permit = rate.try_acquire_n(ms(0), 100).expect("the bucket is full");
    let mut before = rate.reserve_n(ms(0), 10).expect("in range");
    rate.settle(ms(0), permit, 150).expect("in range");
    let mut behind = rate.reserve_n(ms(0), 10).expect("in range");
    assert_eq!(before.claim(ms(0)), Err(Duration::from_millis(100)));
    assert_eq!(behind.claim(ms(0)), Err(Duration::from_millis(700)));
    assert!(before.claim(ms(100)).is_ok());
    assert!(behind.claim(ms(699)).is_err());
    assert!(behind.claim(ms(700)).is_ok());
}

#[test]
fn a_credit_fills_the_bucket_to_its_capacity_and_no_further() {
    let rate = fixed(100);
    let permit = rate.try_acquire_n(ms(0), 80).expect("the bucket is full");
    rate.settle(ms(0), permit, 30).expect("a credit");
    assert_eq!(rate.try_acquire_n(ms(0), 71), Err(not_in_time(10)));
    assert!(rate.try_acquire_n(ms(0), 70).is_ok());

    let rate = fixed(100);
    let permit = rate.try_acquire_n(ms(0), 80).expect("the bucket is full");
    // It is full again after 800 ms: the credit finds no room.
    rate.settle(ms(800), permit, 0).expect("a credit");
    assert!(rate.try_acquire_n(ms(800), 100).is_ok());
    assert_eq!(rate.try_acquire(ms(800)), Err(Duration::from_millis(10)));
}

#[test]
fn a_credit_moves_the_line_up() {
    let rate = fixed(100);
    let permit = rate.try_acquire_n(ms(0), 100).expect("the bucket is full");
    let mut place = rate.reserve_n(ms(0), 50).expect("in range");
    assert_eq!(place.claim(ms(0)), Err(Duration::from_millis(500)));
    rate.settle(ms(0), permit, 60).expect("a credit");
    assert_eq!(place.claim(ms(0)), Err(Duration::from_millis(100)));
    assert!(place.claim(ms(100)).is_ok());
}

#[test]
fn the_estimate_stays_spent_unless_it_is_settled() {
    let rate = fixed(100);
    let permit = rate.try_acquire_n(ms(0), 100).expect("the bucket is full");
    assert_eq!(rate.try_acquire(ms(0)), Err(Duration::from_millis(10)));
    rate.settle(ms(0), permit, 100)
        .expect("the estimate was right");
    assert_eq!(rate.try_acquire(ms(0)), Err(Duration::from_millis(10)));
}

#[test]
fn what_took_nothing_is_not_settled() {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    let free = rate.try_acquire_n(ms(0), 50).expect("nothing is limited");
    let throttled = SendPermit::sent_at(ms(0));
    rate.record(ms(1), throttled, Outcome::Throttled);
    let before = rate.snapshot(ms(2));
    rate.settle(ms(2), free, 1_000).expect("nothing");
    rate.settle(ms(2), free, 0).expect("nothing");
    assert_eq!(rate.snapshot(ms(2)), before);
    // One that was granted once it limits did take something.
    let charged = rate.try_acquire(ms(60_000)).expect("it has minted by then");
    let wait = rate.try_acquire_n(ms(60_000), 1).map(SendPermit::weight);
    rate.settle(ms(60_000), charged, 1_000_000)
        .expect("a debit");
    assert_ne!(
        rate.try_acquire_n(ms(60_000), 1).map(SendPermit::weight),
        wait
    );
}

#[test]
fn debits_that_would_fill_the_line_are_refused_and_change_nothing() {
    let rate = fixed(100);
    let permit = rate.try_acquire_n(ms(0), 100).expect("the bucket is full");
    let mut last = Ok(());
    let mut debits = 0_u64;
    while last.is_ok() {
        last = rate.settle(ms(0), permit, u32::MAX);
        debits += u64::from(last.is_ok());
    }
    // 2³⁷ tokens are the most; each debit is of 2³² less 101.
    assert_eq!(debits, 32);
    let (weight, waiting) = (u32::MAX - 100, 32 * u64::from(u32::MAX - 100));
    assert_eq!(last, Err(WeightError::LineFull { weight, waiting }));
    assert_eq!(rate.snapshot(ms(0)).waiting, waiting);
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn an_estimate_may_be_settled_in_a_later_task() {
    let rate = Arc::new(fixed(100));
    let permit = rate.try_acquire_n(ms(0), 100).expect("the bucket is full");
    let other = Arc::clone(&rate);
    let later = thread::spawn(move || other.settle(ms(0), permit, 40));
    later.join().expect("it returns").expect("a credit");
    assert!(rate.try_acquire_n(ms(0), 60).is_ok());
    assert!(rate.try_acquire(ms(0)).is_err());
}

#[test]
fn a_permit_at_its_true_cost_is_measured_as_such() {
    let rate = fixed(1_000);
    for step in 1..100 {
        let now = ms(step * 100);
        let permit = rate.try_acquire_n(now, 10).expect("it has minted by then");
        assert_eq!(permit.costing(0).weight(), 1);
        rate.record(now, permit.costing(30), Outcome::NotThrottled);
    }
    let measured = rate.snapshot(ms(9_900)).measured_rate;
    assert_eq!(format!("{measured:.1}"), "300.0");
}

/// The remaining tokens of a limit of 10,000 in a minute.
fn report(remaining: u64) -> LimitReport {
    LimitReport::new(remaining)
        .limit(10_000)
        .window(Duration::from_secs(60))
        .reset(Reset::In(Duration::from_secs(60)))
        .refills(false)
}

/// A declared limiter of which 9,000 are left after a first request, and the permits of three
/// requests of 100 tokens that were sent since, at 1 s, 2 s and 3 s.
fn declared() -> (SendRate, [SendPermit; 3]) {
    let rate = SendRate::declared(DeclaredSettings::new().first_burst(0), Timestamp::ZERO);
    let first = rate.try_acquire_n(ms(0), 100).expect("it goes");
    let _ = rate.observe(ms(0), first, &report(9_000).into());
    let permits = [1, 2, 3].map(|second| {
        let place = rate.reserve_n(ms(second * 1_000 - 1_000), 100);
        let permit = place.expect("there is room").claim(ms(second * 1_000));
        permit.expect("150 a second are minted")
    });
    assert_eq!(left(&rate), 8_700);
    (rate, permits)
}

fn left(rate: &SendRate) -> i64 {
    let declared = rate.snapshot(ms(3_000)).declared.expect("it is declared");
    format!("{:.0}", declared.remaining).parse().expect("whole")
}

fn hear(rate: &SendRate, permit: SendPermit, remaining: u64) {
    let _ = rate.observe(ms(3_000), permit, &report(remaining).into());
}

fn settle(rate: &SendRate, permit: SendPermit, cost: u32) {
    rate.settle(ms(3_000), permit, cost).expect("room");
}

#[test]
fn a_settlement_without_a_report_moves_what_is_left() {
    let (rate, [first, second, _]) = declared();
    settle(&rate, first, 300);
    assert_eq!(left(&rate), 8_500);
    settle(&rate, second, 0);
    assert_eq!(left(&rate), 8_500, "a credit waits for the next report");
}

#[test]
fn a_report_after_the_settlement_has_it_in() {
    let (rate, [first, second, third]) = declared();
    settle(&rate, first, 300);
    hear(&rate, first, 8_700);
    assert!(
        left(&rate) < 8_500,
        "200 were sent since, and the debit counts twice"
    );
    settle(&rate, second, 400);
    let next = rate.try_acquire_n(ms(3_000), 1).expect("its turn");
    hear(&rate, next, 8_200);
    assert_eq!(left(&rate), 8_200, "until a later send is reported");
    settle(&rate, third, 400);
    assert_eq!(left(&rate), 8_200);
}

#[test]
fn a_report_before_the_settlement_has_it_in() {
    for by in [0, 2] {
        let (rate, permits) = declared();
        hear(&rate, permits[by], 8_000);
        let (reported, snapshot) = (left(&rate), rate.snapshot(ms(3_000)));
        settle(&rate, permits[0], 5_000);
        settle(&rate, permits[0], 0);
        assert_eq!(left(&rate), reported);
        assert_eq!(
            rate.snapshot(ms(3_000)),
            snapshot,
            "nor has the bucket moved"
        );
    }
}

#[test]
fn a_report_of_an_older_send_leaves_the_settlement() {
    let (rate, [first, second, _]) = declared();
    settle(&rate, second, 400);
    hear(&rate, first, 8_900);
    assert_eq!(left(&rate), 8_400, "8,900 less 100, 100 and 300");
}

#[test]
fn a_report_between_two_settled_sends_counts_a_debit_twice_at_most() {
    let (rate, [first, second, third]) = declared();
    settle(&rate, first, 300);
    settle(&rate, third, 400);
    assert_eq!(left(&rate), 8_200);
    hear(&rate, second, 8_600);
    // 100 were sent since, and 500 debited.
    let left = left(&rate);
    assert!((7_900..=8_500).contains(&left), "{left}");
}

#[test]
fn a_debit_below_zero_is_waited_out() {
    let (rate, [first, _, _]) = declared();
    settle(&rate, first, 9_000);
    assert_eq!(left(&rate), 0);
    assert_eq!(rate.snapshot(ms(3_000)).fill_rate.to_bits(), 0);
    let wait = rate.try_acquire(ms(3_000)).expect_err("nothing is left");
    assert!(wait >= Duration::from_nanos(57 * SECOND), "{wait:?}");
}

#[test]
fn a_new_window_owes_nothing_of_the_last_one() {
    let (rate, [first, _, third]) = declared();
    settle(&rate, third, 5_000);
    let next = ms(70_000);
    let permit = rate.try_acquire(next);
    let rolled = rate
        .snapshot(next)
        .declared
        .expect("it is declared")
        .remaining;
    settle(&rate, first, 9_000);
    let after = rate
        .snapshot(next)
        .declared
        .expect("it is declared")
        .remaining;
    assert_eq!(rolled.to_bits(), after.to_bits(), "{permit:?}");
}

/// A report has the true cost of its request in it.
#[test]
fn a_debit_after_its_report_is_not_paid_twice() {
    let (rate, [_, _, third]) = declared();
    hear(&rate, third, 3_800);
    settle(&rate, third, 5_000);
    assert_eq!(left(&rate), 3_800);
}

#[test]
fn a_declared_bucket_holds_the_heaviest_try() {
    let (rate, _) = declared();
    let refused = rate.try_acquire_n(ms(3_000), 1_000);
    let Err(AcquireError::NotInTime { wait }) = refused else {
        panic!("it is not above the limit: {refused:?}");
    };
    // There are no waiters, and nothing is sent meanwhile.
    let later = ms(3_000).saturating_add(wait);
    let sent = rate
        .try_acquire_n(later, 1_000)
        .expect("its tokens are there");
    assert_eq!(sent.weight(), 1_000);
    let above = WeightError::AboveCapacity {
        weight: 10_001,
        capacity: 10_000,
    };
    assert_eq!(rate.try_acquire_n(later, 10_001), Err(above.into()));
    assert_eq!(rate.reserve_n(later, 10_001).map(drop), Err(above));
}

#[test]
fn credits_that_do_not_fit_the_bucket_are_lost() {
    let settings = PacedSettings::fixed(900_000_000, Duration::from_secs(1))
        .and_then(|fixed| fixed.to_builder().burst(Duration::from_secs(5)).build());
    let rate = SendRate::paced(settings.expect("in range"), Timestamp::ZERO);
    let permit = rate
        .try_acquire_n(ms(0), 4_000_000_000)
        .expect("it is full");
    // Two hundred times would be more than positions in the line can tell apart.
    for _ in 0..200 {
        rate.settle(ms(0), permit, 0).expect("a credit");
    }
    let snapshot = rate.snapshot(ms(0));
    assert_eq!(format!("{:.0}", snapshot.available), "4500000000");
    assert!(rate.try_acquire_n(ms(0), 4_000_000_000).is_ok());
}

#[test]
fn a_permit_at_its_true_cost_gives_nothing_back() {
    let rate = fixed(100);
    let permit = rate.try_acquire_n(ms(0), 100).expect("the bucket is full");
    rate.settle(ms(0), permit.costing(90), 0).expect("in range");
    assert_eq!(rate.try_acquire(ms(0)), Err(Duration::from_millis(10)));
}
