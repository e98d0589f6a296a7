//! Reports of declared limits, beside takes and beside each other.

use core::time::Duration;

use loom::{sync::Arc, thread};
use paceline::{
    ControlLaw, Outcome, SendPermit, SendRate, SendSet, Timestamp,
    law::{DeclaredSettings, LimitReport, LimitReports, PacedSettings, Reset, Spend},
};

use crate::explore;

const SECOND: u64 = 1_000_000_000;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn report(remaining: u64) -> LimitReports {
    let reset = Reset::In(Duration::from_secs(60));
    LimitReport::new(remaining).limit(100).reset(reset).into()
}

fn limiter() -> SendRate {
    SendRate::new(ControlLaw::Declared, Timestamp::ZERO)
}

fn remaining(rate: &SendRate, now: Timestamp) -> f64 {
    let declared = rate.snapshot(now).declared;
    declared.expect("it is declared").remaining
}

/// What was sent after the request of a report is taken off what the report says, whenever the
/// report is taken in.
#[test]
fn a_report_beside_a_send_counts_it_or_not() {
    explore(Some(1), || {
        let rate = Arc::new(limiter());
        let first = rate.try_acquire(at(0)).expect("the first one goes");
        rate.observe(at(SECOND), first, &report(50));
        let now = at(3 * SECOND);
        let shared = Arc::clone(&rate);
        let reporter = thread::spawn(move || {
            shared.observe(now, first, &report(40));
        });
        let taken = rate.try_acquire(now).is_ok();
        reporter.join().expect("the reporter returns");
        let left = remaining(&rate, now);
        // The second report is of the same send, and changes nothing.
        let want = if taken { 49.0 } else { 50.0 };
        assert!((left - want).abs() < 1e-9, "left {left}, taken {taken}");
    });
}

/// Two takes at once are both taken off what the service left.
#[test]
fn two_takes_both_count() {
    explore(Some(1), || {
        let settings = DeclaredSettings::new().spend(Spend::Fast);
        let rate = Arc::new(SendRate::declared(settings, Timestamp::ZERO));
        let first = rate.try_acquire(at(0)).expect("the first one goes");
        rate.observe(at(SECOND / 100), first, &report(50));
        rate.record(at(2 * SECOND), first, Outcome::NotThrottled);
        let now = at(3 * SECOND);
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || shared.try_acquire(now).is_ok());
        assert!(rate.try_acquire(now).is_ok(), "50 are left");
        assert!(
            other.join().expect("the other thread returns"),
            "50 are left"
        );
        let left = remaining(&rate, now);
        assert!((left - 48.0).abs() < 1e-9, "a take was lost: {left} left");
    });
}

/// Of two reports at once that of the later send is the one that stays.
#[test]
fn of_two_reports_that_of_the_later_send_stays() {
    explore(Some(1), || {
        let rate = Arc::new(limiter());
        let first = rate.try_acquire(at(0)).expect("the first one goes");
        rate.observe(at(SECOND), first, &report(50));
        let second = rate.try_acquire(at(3 * SECOND)).expect("its turn");
        let third = rate.try_acquire(at(6 * SECOND)).expect("its turn");
        let now = at(7 * SECOND);
        let shared = Arc::clone(&rate);
        let reporter = thread::spawn(move || {
            shared.observe(now, second, &report(30));
        });
        rate.observe(now, third, &report(20));
        reporter.join().expect("the reporter returns");
        let left = remaining(&rate, now);
        // Others are seen to take some; the other report says ten more.
        assert!((18.0..=20.0).contains(&left), "left {left}");
    });
}

/// Returns a limiter of which `left` are left at three seconds, and two tokens are in the bucket;
/// and the time.
fn at_the_edge(left: u64) -> (SendRate, Timestamp) {
    let settings = DeclaredSettings::new().spend(Spend::Fast);
    let rate = SendRate::declared(settings, Timestamp::ZERO);
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    rate.observe(at(SECOND / 100), first, &report(left));
    assert!(rate.try_acquire_n(at(SECOND / 100), 2).is_err(), "not yet");
    // The rate is looked at, and the bucket fills.
    let _ = rate.try_acquire_n(at(SECOND), 2);
    (rate, at(6 * SECOND))
}

/// Two threads of which each finds a token, and room for one: one of them goes.
#[test]
fn two_sends_at_the_edge_do_not_both_go() {
    explore(Some(1), || {
        let (rate, now) = at_the_edge(1);
        let rate = Arc::new(rate);
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || shared.try_acquire(now).is_ok());
        let mine = rate.try_acquire(now).is_ok();
        let other = other.join().expect("the other thread returns");
        assert!(mine != other, "one is left: {mine}, {other}");
    });
}

/// A send beside a report goes by what was left before it or after it, and one that comes after it
/// by what is left then.
#[test]
fn a_send_beside_a_report_goes_by_one_of_both() {
    explore(Some(1), || {
        let (rate, now) = at_the_edge(1);
        // What it reports is not counted yet.
        let third = SendPermit::sent_at(now);
        let rate = Arc::new(rate);
        let shared = Arc::clone(&rate);
        let reporter = thread::spawn(move || {
            shared.observe(now, third, &report(0));
        });
        let beside = rate.try_acquire(now).is_ok();
        reporter.join().expect("the reporter returns");
        assert!(rate.try_acquire(now).is_err(), "{beside}: none is left");
    });
}

/// A set that takes back what it took of a declared limit, because another limit refuses, beside a
/// send: that one is counted, and the set is not.
#[test]
fn a_set_that_takes_back_beside_a_send_is_not_counted() {
    explore(Some(1), || {
        let (rate, now) = at_the_edge(2);
        let settings = PacedSettings::fixed(1, Duration::from_secs(60)).expect("in range");
        let none = SendRate::paced(settings, Timestamp::ZERO);
        assert!(none.try_acquire(now).is_ok(), "its only token");
        let rates = Arc::new((rate, none));
        let shared = Arc::clone(&rates);
        let set = thread::spawn(move || {
            let set = SendSet::new([&shared.0, &shared.1]);
            set.try_acquire(now, &[1, 1]).is_ok()
        });
        let taken = rates.0.try_acquire(now).is_ok();
        assert!(!set.join().expect("the set returns"), "the other has none");
        let left = remaining(&rates.0, now);
        let want = if taken { 1.0 } else { 2.0 };
        assert!((left - want).abs() < 1e-9, "left {left}, taken {taken}");
    });
}

/// One that takes of each limit in turn and gives nothing back is counted though it is not sent.
#[test]
#[should_panic(expected = "one was counted that was not sent")]
fn a_set_that_only_takes_is_counted() {
    explore(Some(1), || {
        let (rate, now) = at_the_edge(2);
        let rate = Arc::new(rate);
        let shared = Arc::clone(&rate);
        let set = thread::spawn(move || shared.try_acquire(now).is_ok());
        let taken = rate.try_acquire(now).is_ok();
        set.join().expect("the set returns");
        let left = remaining(&rate, now);
        let want = if taken { 1.0 } else { 2.0 };
        assert!(
            (left - want).abs() < 1e-9,
            "one was counted that was not sent"
        );
    });
}
