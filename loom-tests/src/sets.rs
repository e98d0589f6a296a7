//! Settlements, and sets that overlap: what they take and give back, whatever the order.

use core::time::Duration;

use loom::{sync::Arc, thread};
use paceline_core::{
    ControlLaw, SendRate, SendSet, Timestamp,
    law::{LimitReport, LimitReports, PacedSettings, Reset},
};

use crate::explore;

const NOW: Timestamp = Timestamp::ZERO;
const SECOND: u64 = 1_000_000_000;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// A limiter of 40/s whose bucket holds two tokens and is full.
fn two() -> SendRate {
    let settings = PacedSettings::fixed(40, Duration::from_secs(1)).unwrap();
    SendRate::paced(settings, NOW)
}

/// Returns how many tokens `rate` has left now, and takes them.
fn left(rate: &SendRate) -> usize {
    (0..4).filter(|_| rate.try_acquire(NOW).is_ok()).count()
}

/// Two sets with both limits in common, in different orders: whatever the two callers meet, nothing
/// is granted twice and nothing is lost.
#[test]
fn overlapping_sets_take_all_or_nothing_and_lose_nothing() {
    explore(Some(2), || {
        let rates = Arc::new((two(), two()));
        let other = {
            let rates = Arc::clone(&rates);
            thread::spawn(move || {
                let set = SendSet::new([&rates.1, &rates.0]);
                set.try_acquire(NOW, &[1, 2]).is_ok()
            })
        };
        let set = SendSet::new([&rates.0, &rates.1]);
        let here = set.try_acquire(NOW, &[1, 2]).is_ok();
        let there = other.join().unwrap();
        assert!(
            !(here && there),
            "there are two of each, and three asked for"
        );
        let (one, two) = (left(&rates.0), left(&rates.1));
        let taken = |weights: [usize; 2]| {
            [
                usize::from(here) * weights[0],
                usize::from(there) * weights[1],
            ]
            .iter()
            .sum::<usize>()
        };
        assert_eq!((one, two), (2 - taken([1, 2]), 2 - taken([2, 1])));
    });
}

/// Two places in each of two lines, taken in different orders: neither waits for the other.
#[test]
fn overlapping_places_come_due_in_any_order() {
    explore(Some(1), || {
        let rates = Arc::new((two(), two()));
        let other = {
            let rates = Arc::clone(&rates);
            thread::spawn(move || {
                let set = SendSet::new([&rates.1, &rates.0]);
                let mut place = set.reserve(NOW, &[2, 2]).unwrap();
                place.claim(NOW).is_ok()
            })
        };
        let set = SendSet::new([&rates.0, &rates.1]);
        let mut place = set.reserve(NOW, &[2, 2]).unwrap();
        let here = place.claim(NOW).is_ok();
        drop(place);
        let there = other.join().unwrap();
        assert!(!(here && there), "each line has two tokens");
        // The one that was dropped gave everything back.
        let want = if here || there { 0 } else { 2 };
        assert_eq!((left(&rates.0), left(&rates.1)), (want, want));
    });
}

/// What a refused set gives back must be what it took: one that keeps the first limit's tokens
/// loses them.
#[test]
#[should_panic(expected = "a token was lost")]
fn a_set_that_keeps_what_it_took_first_loses_it() {
    explore(Some(2), || {
        let rates = Arc::new((two(), two()));
        let take = |first: &SendRate, second: &SendRate| {
            let taken = first.try_acquire_n(NOW, 2).is_ok();
            taken && second.try_acquire_n(NOW, 2).is_ok()
        };
        let other = {
            let rates = Arc::clone(&rates);
            thread::spawn(move || take(&rates.1, &rates.0))
        };
        let here = take(&rates.0, &rates.1);
        let there = other.join().unwrap();
        let rest = left(&rates.0) + left(&rates.1);
        assert!(here || there || rest == 4, "a token was lost");
    });
}

#[test]
fn a_credit_beside_a_take_is_there_again_once() {
    explore(Some(2), || {
        let rate = Arc::new(two());
        let permit = rate.try_acquire(NOW).unwrap();
        let other = {
            let rate = Arc::clone(&rate);
            thread::spawn(move || rate.settle(NOW, permit, 0))
        };
        let taken = usize::from(rate.try_acquire(NOW).is_ok());
        other.join().unwrap().unwrap();
        assert_eq!(taken + left(&rate), 2);
    });
}

#[test]
fn a_debit_beside_a_take_is_owed_once() {
    explore(Some(2), || {
        let rate = Arc::new(two());
        let permit = rate.try_acquire(NOW).unwrap();
        let other = {
            let rate = Arc::clone(&rate);
            thread::spawn(move || rate.settle(NOW, permit, 3))
        };
        let taken = u128::from(rate.try_acquire(NOW).is_ok());
        other.join().unwrap().unwrap();
        // One of two is left, less two: below zero by one, and by one more if it was taken.
        let wait = rate.try_acquire(NOW).unwrap_err();
        // A rate is rounded, so that it may be a nanosecond more.
        let (millis, nanos) = (wait.as_millis(), wait.subsec_nanos() % 1_000_000);
        assert_eq!((millis, nanos / 2), (25 * (2 + taken), 0));
    });
}

/// A debit that is taken like a token is lost if another caller has taken what was there.
#[test]
#[should_panic(expected = "a debt was lost")]
fn a_debit_that_has_to_be_there_is_lost() {
    explore(Some(2), || {
        let rate = Arc::new(two());
        let permit = rate.try_acquire(NOW).unwrap();
        let other = {
            let rate = Arc::clone(&rate);
            thread::spawn(move || rate.try_acquire_n(NOW, 3 - permit.weight()).is_ok())
        };
        let taken = u128::from(rate.try_acquire(NOW).is_ok());
        other.join().unwrap();
        let wait = rate.try_acquire(NOW).err().map(|wait| wait.as_millis());
        assert_eq!(wait, Some(25 * (2 + taken)), "a debt was lost");
    });
}

/// A charge is used once, which its type sees to: a permit that is charged twice is not.
#[test]
#[should_panic(expected = "a credit was given twice")]
fn a_permit_that_is_charged_twice_is_credited_twice() {
    explore(Some(2), || {
        let rate = Arc::new(two());
        let permit = rate.try_acquire(NOW).unwrap();
        let other = {
            let rate = Arc::clone(&rate);
            thread::spawn(move || rate.settle(NOW, permit, 0))
        };
        let taken = usize::from(rate.try_acquire(NOW).is_ok());
        rate.settle(NOW, permit, 0).unwrap();
        other.join().unwrap().unwrap();
        assert_eq!(taken + left(&rate), 2, "a credit was given twice");
    });
}

fn report(remaining: u64) -> LimitReports {
    let reset = Reset::In(Duration::from_secs(60));
    LimitReport::new(remaining).limit(100).reset(reset).into()
}

fn remaining(rate: &SendRate, now: Timestamp) -> f64 {
    let declared = rate.snapshot(now).declared;
    declared.expect("it is declared").remaining
}

/// A settlement beside the report of the same request counts at most once: what the service says is
/// left has it in.
#[test]
fn a_settlement_beside_its_report_counts_twice_at_most() {
    explore(Some(1), || {
        let rate = Arc::new(SendRate::new(ControlLaw::Declared, NOW));
        let first = rate.try_acquire(at(0)).expect("the first one goes");
        rate.observe(at(SECOND), first, &report(50));
        let second = rate.try_acquire(at(3 * SECOND)).expect("its turn");
        let now = at(4 * SECOND);
        let shared = Arc::clone(&rate);
        let reporter = thread::spawn(move || {
            shared.observe(now, second, &report(40));
        });
        rate.settle(now, second, 10).expect("there is room");
        reporter.join().expect("the reporter returns");
        let left = remaining(&rate, now);
        // Counted twice it is 31, until a later send is reported. Others are seen to take some.
        assert!((30.0..=40.0).contains(&left), "left {left}");
    });
}

/// A settlement that says what is left, as a report does, hides what the service says.
#[test]
#[should_panic(expected = "not what the service says")]
fn a_settlement_that_overwrites_what_is_left_hides_its_report() {
    explore(Some(1), || {
        let rate = Arc::new(SendRate::new(ControlLaw::Declared, NOW));
        let first = rate.try_acquire(at(0)).expect("the first one goes");
        rate.observe(at(SECOND), first, &report(50));
        let second = rate.try_acquire(at(3 * SECOND)).expect("its turn");
        let now = at(4 * SECOND);
        let shared = Arc::clone(&rate);
        let reporter = thread::spawn(move || {
            shared.observe(now, second, &report(45));
        });
        let settled = format!("{:.0}", remaining(&rate, now) - 9.0);
        rate.observe(now, second, &report(settled.parse().expect("whole")));
        reporter.join().expect("the reporter returns");
        let left = remaining(&rate, now);
        assert!((44.0..=45.0).contains(&left), "not what the service says");
    });
}

/// Two settlements at once both count.
#[test]
fn two_declared_settlements_both_count() {
    explore(Some(1), || {
        let rate = Arc::new(SendRate::new(ControlLaw::Declared, NOW));
        let first = rate.try_acquire(at(0)).expect("the first one goes");
        rate.observe(at(SECOND), first, &report(50));
        let second = rate.try_acquire(at(3 * SECOND)).expect("its turn");
        let third = rate.try_acquire(at(6 * SECOND)).expect("its turn");
        let now = at(7 * SECOND);
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || shared.settle(now, second, 10));
        rate.settle(now, third, 5).expect("there is room");
        other.join().expect("it returns").expect("there is room");
        let left = remaining(&rate, now);
        assert!((left - 35.0).abs() < 1e-6, "left {left}");
    });
}

/// What is sent beside a settlement is counted as well.
#[test]
fn a_declared_settlement_beside_a_take_counts_both() {
    explore(Some(1), || {
        let rate = Arc::new(SendRate::new(ControlLaw::Declared, NOW));
        let first = rate.try_acquire(at(0)).expect("the first one goes");
        rate.observe(at(SECOND), first, &report(50));
        let second = rate.try_acquire(at(3 * SECOND)).expect("its turn");
        let now = at(6 * SECOND);
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || shared.settle(now, second, 10));
        let taken = rate.try_acquire(now).is_ok();
        other.join().expect("it returns").expect("there is room");
        let left = remaining(&rate, now);
        let want = if taken { 39.0 } else { 40.0 };
        assert!((left - want).abs() < 1e-6, "left {left}, taken {taken}");
    });
}
