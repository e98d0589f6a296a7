//! Models of places in line, and of giving them up.
//!
//! Claim: a place given up moves places behind it up by one and none ahead, is counted once, and
//! never lets more go than were minted. Exhaustive over two threads unless a model says otherwise.

use core::time::Duration;

use crate::explore;
use loom::{
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
    thread,
};
use paceline_core::{
    ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp,
    law::PacedSettings,
    modelled::{GivenUp, LastChange},
};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

/// 0.5 tokens/s from 0 on, at most one: places are two seconds apart.
fn at_the_floor() -> SendRate {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    rate.record(at(0), SendPermit::sent_at(at(0)), Outcome::Throttled);
    rate
}

fn permit(seconds: u64) -> SendPermit {
    SendPermit::sent_at(at(seconds))
}

/// Of two changes at once the later time stays: a change by an older clock begins there.
#[test]
fn of_two_changes_the_later_time_stays() {
    explore(None, || {
        let last = Arc::new(LastChange::new());
        let shared = Arc::clone(&last);
        let other = thread::spawn(move || shared.raise(20));
        assert!(last.raise(10) >= Some(10));
        assert_eq!(other.join().expect("the other thread returns"), Some(20));
        assert_eq!(last.raise(15), Some(20));
    });
}

/// What two threads write off at once is all written off.
#[test]
fn two_that_write_off_at_once_both_do() {
    explore(None, || {
        let given_up = Arc::new(GivenUp::new());
        let shared = Arc::clone(&given_up);
        let other = thread::spawn(move || shared.write_off(1));
        given_up.write_off(2);
        other.join().expect("the other thread returns");
        assert_eq!([given_up.before(0), given_up.total()], [3, 3]);
    });
}

/// Places of two threads differ, and a token is claimed by the one whose place it is.
#[test]
fn places_are_distinct_and_in_order() {
    explore(Some(3), || {
        let rate = Arc::new(at_the_floor());
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || shared.reserve(at(0)).claim(at(2)).is_ok());
        let ours = rate.reserve(at(0)).claim(at(2)).is_ok();
        let theirs = other.join().expect("the other thread returns");
        // The loser's place is given up when it is dropped, so both may claim only if one was
        // dropped before the other was taken; a claimed place is never given up.
        assert!(theirs || ours, "the first place's token is there at 2 s");
        assert!(!(theirs && ours), "there is one token at 2 s");
    });
}

/// A place behind one that is given up moves up by one, sooner or later, and never by two.
#[test]
#[ignore = "takes over 15 seconds: `ci/check.sh models` runs it"]
fn a_place_given_up_is_counted_once() {
    explore(Some(2), || {
        let rate = Arc::new(at_the_floor());
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || {
            let (first, second) = (shared.reserve(at(0)), shared.reserve(at(0)));
            drop(first);
            drop(second);
        });
        let mut ours = rate.reserve(at(0));
        let before = ours
            .claim(at(0))
            .expect_err("nothing is due at 0")
            .as_secs();
        assert!([2, 4, 6].contains(&before), "waits {before} s");
        other.join().expect("the other thread returns");
        // With both gone, this is the only place left, wherever it was.
        assert_eq!(
            ours.claim(at(0))
                .expect_err("nothing is due at 0")
                .as_secs(),
            2
        );
    });
}

/// While a place is given up, a try and a waiter never get the same token.
#[test]
fn no_waiter_is_let_go_early() {
    explore(Some(3), || {
        let rate = Arc::new(at_the_floor());
        let first = rate.reserve(at(0));
        let mut second = rate.reserve(at(0));
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || shared.try_acquire(at(2)).is_ok());
        drop(first);
        let waited = second.claim(at(2)).is_ok();
        let tried = other.join().expect("the other thread returns");
        assert!(waited, "the second is the first now");
        assert!(!tried, "its token is not there for anybody else");
    });
}

/// Ten tokens a second, none of them there.
fn ten_a_second() -> Arc<SendRate> {
    let settings = PacedSettings::fixed(10, Duration::from_secs(1)).expect("in range");
    let rate = SendRate::paced(settings, at(0));
    assert!(rate.try_acquire(at(0)).is_ok(), "it was full");
    Arc::new(rate)
}

/// Returns the tenths of a second that a claim at `tenths`, and a microsecond, has to wait: a token
/// is minted a little late.
fn tenths(place: &mut Reservation<'_>, tenths: u64) -> u128 {
    let now = Timestamp::from_nanos(tenths * 100_000_000 + 1_000);
    let wait = place
        .claim(now)
        .map_or_else(|wait| wait, |_| Duration::ZERO);
    (wait.as_millis() + 1) / 100
}

/// A place that two threads retire is retired once, and neither of them counts it twice or misses
/// it, nor does one that looks meanwhile.
#[test]
fn a_place_is_retired_once() {
    explore(Some(2), || {
        let rate = ten_a_second();
        let (mut first, second) = (rate.reserve(at(0)), rate.reserve(at(0)));
        let mut third = rate.reserve(at(0));
        drop(second);
        let shared = Arc::clone(&rate);
        // At a tenth of a second the first is due, so that the one given up behind it is retired.
        let other = thread::spawn(move || {
            let mut fourth = shared.reserve(at(0));
            assert_eq!(tenths(&mut fourth, 1), 2, "two before it, one of them due");
        });
        assert_eq!(tenths(&mut third, 1), 1, "one before it, which is due");
        other.join().expect("the other thread returns");
        assert_eq!(tenths(&mut third, 1), 1);
        assert_eq!(tenths(&mut first, 1), 0);
    });
}

/// A waiter that counts what was given up before it, while that is retired, misses none of it and
/// counts none twice.
#[test]
fn a_count_beside_a_retirement_is_exact() {
    explore(Some(1), || {
        let rate = ten_a_second();
        let (_first, second) = (rate.reserve(at(0)), rate.reserve(at(0)));
        let (third, mut fourth) = (rate.reserve(at(0)), rate.reserve(at(0)));
        drop(second);
        drop(third);
        let shared = Arc::clone(&rate);
        // This one retires both, one after the other.
        let other = thread::spawn(move || {
            let mut last = shared.reserve(at(0));
            assert_eq!(tenths(&mut last, 1), 2);
        });
        assert_eq!(
            tenths(&mut fourth, 0),
            2,
            "two of the three before it have gone"
        );
        other.join().expect("the other thread returns");
    });
}

/// A place given up while another thread looks at the line is found by the next that looks.
#[test]
fn a_place_given_up_beside_a_look_is_found() {
    explore(Some(2), || {
        let rate = ten_a_second();
        let (_first, second) = (rate.reserve(at(0)), rate.reserve(at(0)));
        let mut third = rate.reserve(at(0));
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || {
            let mut last = shared.reserve(at(0));
            assert!(
                (3..=4).contains(&tenths(&mut last, 0)),
                "two or three before it"
            );
        });
        drop(second);
        other.join().expect("the other thread returns");
        assert_eq!(tenths(&mut third, 0), 2, "one before it");
    });
}

/// Of two places given up at once both are counted: what is free later is not kept for them.
#[test]
fn places_given_up_at_once_are_both_counted() {
    explore(Some(1), || {
        let rate = Arc::new(at_the_floor());
        let (first, _second) = (rate.reserve(at(0)), rate.reserve(at(0)));
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || {
            let third = shared.reserve(at(0));
            let _last = shared.reserve(at(0)); // which is taken back, and not given up
            drop(third);
        });
        drop(first);
        other.join().expect("the other thread returns");
        assert!(
            rate.try_acquire(at(4)).is_ok(),
            "two are minted, and one waits"
        );
        let wait = rate.reserve(at(4)).claim(at(4)).expect_err("both are gone");
        assert_eq!(wait.as_secs(), 2, "the next token is for the next in line");
    });
}

/// A slot that is freed and taken again, while its last place is retired, keeps the new one.
#[test]
fn a_slot_that_is_taken_again_keeps_its_place() {
    explore(Some(1), || {
        let rate = Arc::new(at_the_floor());
        let (first, second) = (rate.reserve(at(0)), rate.reserve(at(0)));
        let mut third = rate.reserve(at(0));
        drop(second);
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || {
            shared.record(at(2), permit(2), Outcome::Throttled);
            let fourth = shared.reserve(at(2));
            let fifth = shared.reserve(at(2));
            drop(fourth);
            drop(fifth);
        });
        drop(first);
        other.join().expect("the other thread returns");
        assert!(third.claim(at(2)).is_ok(), "it is the only one left");
        assert!(rate.try_acquire(at(2)).is_err(), "there was one token");
    });
}

/// A reset lets at most as many requests go as there were places open.
#[test]
fn a_reset_lets_go_what_waited_and_no_more() {
    explore(Some(2), || {
        let rate = Arc::new(at_the_floor());
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || drop(shared.reserve(at(0))));
        rate.reset(at(0));
        other.join().expect("the other thread returns");
        let granted = (0..3).filter(|_| rate.try_acquire(at(0)).is_ok()).count();
        assert!(granted <= 1, "one place was open, {granted} went");
    });
}

/// A gap of one token that one thread retires while another counts it: the mistakes that the
/// models above are there for.
fn retire_beside_a_count(retire: fn(&AtomicU64, &AtomicU64), check: fn(u64)) {
    explore(None, move || {
        let words = Arc::new((AtomicU64::new(0), AtomicU64::new(1)));
        let shared = Arc::clone(&words);
        let other = thread::spawn(move || retire(&shared.0, &shared.1));
        check(words.0.load(Acquire) + words.1.load(Acquire));
        other.join().expect("the other thread returns");
    });
}

#[test]
#[should_panic(expected = "counted twice")]
fn a_gap_that_is_added_and_then_freed_is_counted_twice() {
    let retire = |retired: &AtomicU64, slot: &AtomicU64| {
        retired.fetch_add(1, Release);
        slot.store(0, Release);
    };
    retire_beside_a_count(retire, |counted| assert!(counted <= 1, "counted twice"));
}

#[test]
#[should_panic(expected = "missed")]
fn a_gap_that_is_freed_and_then_added_is_missed() {
    let retire = |retired: &AtomicU64, slot: &AtomicU64| {
        slot.store(0, Release);
        retired.fetch_add(1, Release);
    };
    retire_beside_a_count(retire, |counted| assert!(counted >= 1, "missed"));
}
