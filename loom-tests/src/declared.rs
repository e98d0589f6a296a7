//! Reports of declared limits, beside takes and beside each other.

use core::time::Duration;

use loom::{sync::Arc, thread};
use paceline_core::{
    ControlLaw, Outcome, Reservation, SendRate, SendSet, Timestamp,
    law::{DeclaredSettings, LimitReport, LimitReports, PacedSettings, Reset, Spend},
    modelled::Burst,
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

/// Returns a limiter of which `left` are left, with `tokens` in its bucket at the time returned.
fn holding(left: u64, tokens: u32) -> (SendRate, Timestamp) {
    let settings = DeclaredSettings::new().spend(Spend::Fast);
    let rate = SendRate::declared(settings, Timestamp::ZERO);
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    rate.observe(at(SECOND / 100), first, &report(left));
    let early = rate.try_acquire_n(at(SECOND / 100), tokens);
    assert!(early.is_err(), "not yet");
    // The rate is looked at, and the bucket fills.
    let _ = rate.try_acquire_n(at(SECOND), tokens);
    (rate, at(6 * SECOND))
}

/// As [`holding`], of two tokens.
fn at_the_edge(left: u64) -> (SendRate, Timestamp) {
    holding(left, 2)
}

/// As [`report`], of the same window at the time of [`holding`].
fn later_report(remaining: u64) -> LimitReports {
    let reset = Reset::In(Duration::from_secs(54));
    LimitReport::new(remaining).limit(100).reset(reset).into()
}

/// Returns a place whose turn has come, if the bucket has a token: the pace refuses it no more.
fn due(rate: &SendRate, now: Timestamp) -> Reservation<'_> {
    rate.reserve(now)
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
        let (rate, now) = holding(3, 3);
        let sent = rate.try_acquire(now).expect("three are left");
        let rate = Arc::new(rate);
        let (mut beside, mut after) = (due(&rate, now), due(&rate, now));
        let shared = Arc::clone(&rate);
        let reporter = thread::spawn(move || {
            shared.observe(now, sent, &later_report(0));
        });
        let goes = beside.claim(now).is_ok();
        reporter.join().expect("the reporter returns");
        assert!(after.claim(now).is_err(), "{goes}: none is left");
    });
}

/// After reports at once, the edge of an earlier one is not taken for that of a later report.
#[test]
fn reports_at_once_each_move_the_edge() {
    explore(Some(1), || {
        let (rate, now) = holding(20, 6);
        let sent = [(); 4].map(|()| rate.try_acquire(now).expect("20 are left"));
        let rate = Arc::new(rate);
        let mut after = due(&rate, now);
        let tell = move |rate: &SendRate, index: usize, left| {
            rate.observe(now, sent[index], &later_report(left));
        };
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || {
            tell(&shared, 1, 18);
            tell(&shared, 2, 17);
            shared.try_acquire(now).is_ok()
        });
        tell(&rate, 0, 19);
        let goes = other.join().expect("the other thread returns");
        tell(&rate, 3, 0);
        assert!(after.claim(now).is_err(), "{goes}: none is left");
    });
}

/// The last one of a first burst is given to one of two that ask at once.
#[test]
fn the_last_of_a_burst_is_given_once() {
    explore(None, || {
        let burst = Arc::new(Burst::of(1));
        let shared = Arc::clone(&burst);
        let other = thread::spawn(move || shared.is_one_of(2));
        let mine = burst.is_one_of(2);
        let other = other.join().expect("the other thread returns");
        assert!(mine != other, "one is left: {mine}, {other}");
    });
}

/// A set that takes back what it took of a declared limit, because another thread has taken the one
/// token of its other limit meanwhile, beside a send of that thread: the send stays counted.
#[test]
fn a_set_that_takes_back_beside_a_send_is_not_counted() {
    explore(Some(1), || {
        let (rate, now) = at_the_edge(2);
        let settings = PacedSettings::fixed(1, Duration::from_secs(60)).expect("in range");
        let rates = Arc::new((rate, SendRate::paced(settings, Timestamp::ZERO)));
        let shared = Arc::clone(&rates);
        let other = thread::spawn(move || {
            let goes = shared.0.try_acquire(now).is_ok();
            (goes, shared.1.try_acquire(now).is_ok())
        });
        let set = SendSet::new([&rates.0, &rates.1]);
        let taken = set.try_acquire(now, &[1, 1]).is_ok();
        let (passed, had) = other.join().expect("the other thread returns");
        assert!(passed, "two are left");
        assert!(taken != had, "the other limit has one token");
        let left = remaining(&rates.0, now);
        // After a send that came between, what was taken back stays counted.
        let wanted: &[f64] = if taken { &[0.0] } else { &[0.0, 1.0] };
        let is_so = wanted.iter().any(|want| (left - want).abs() < 1e-9);
        assert!(is_so, "left {left}");
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
