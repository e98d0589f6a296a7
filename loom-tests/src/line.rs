//! Models of places in line, and of giving them up.
//!
//! Claim: a place given up moves those behind it up by one and nobody ahead, is counted once, and
//! never lets more go than were minted. Exhaustive over two threads unless a model says otherwise.

use core::time::Duration;

use crate::explore;
use loom::{sync::Arc, thread};
use paceline::{ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

/// 0.5 tokens/s from 0 on, at most one: places are two seconds apart.
fn at_the_floor() -> SendRate {
    let rate = SendRate::with_open_places(ControlLaw::Aws, Timestamp::ZERO, 32);
    rate.record(at(0), SendPermit::sent_at(at(0)), Outcome::Throttled);
    rate
}

fn permit(seconds: u64) -> SendPermit {
    SendPermit::sent_at(at(seconds))
}

/// Returns the whole seconds that a claim at `seconds` has to wait: the rate is rounded, by
/// nanoseconds.
fn wait(place: &mut Reservation<'_>, seconds: u64) -> u64 {
    place
        .claim(at(seconds))
        .map_or_else(|wait| (wait + Duration::from_millis(1)).as_secs(), |_| 0)
}

/// Places of two threads differ, and a token is claimed by the one whose place it is.
#[test]
fn places_are_distinct_and_in_order() {
    explore(None, || {
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

/// Somebody behind a place given up moves up by one, sooner or later, and never by two.
#[test]
fn a_place_given_up_is_counted_once() {
    explore(None, || {
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
        // With both gone, ours is the only place left, wherever it was.
        assert_eq!(
            ours.claim(at(0))
                .expect_err("nothing is due at 0")
                .as_secs(),
            2
        );
    });
}

/// While somebody gives up a place, one who tries and one who waits never get the same token.
#[test]
fn nobody_is_let_go_early() {
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

/// A place that is given up while its block retires is counted once.
#[test]
fn a_place_given_up_while_its_block_retires_is_counted_once() {
    explore(Some(3), || {
        let rate = Arc::new(at_the_floor());
        // The line starts two and a half places before a block ends.
        let mut places: Vec<_> = (0..5).map(|_| rate.reserve(at(0))).collect();
        let mut last = places.pop().expect("five places");
        let due = places.remove(0);
        let shared = Arc::clone(&rate);
        // A record at 6 s retires the first block, where the first two places are.
        let other = thread::spawn(move || shared.record(at(6), permit(6), Outcome::Throttled));
        drop(due);
        other.join().expect("the other thread returns");
        assert_eq!(
            wait(&mut last, 6),
            2,
            "one of the four ahead of the last has gone"
        );
    });
}

/// Two places of one block given up together, while it retires, both count.
#[test]
fn two_places_given_up_while_their_block_retires_both_count() {
    explore(Some(2), || {
        let rate = Arc::new(at_the_floor());
        let mut places: Vec<_> = (0..6).map(|_| rate.reserve(at(0))).collect();
        let mut last = places.pop().expect("six places");
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || {
            let mine = shared.reserve(at(0));
            shared.record(at(6), permit(6), Outcome::Throttled);
            drop(mine);
        });
        drop(places.remove(0));
        drop(places.remove(0));
        other.join().expect("the other thread returns");
        assert_eq!(
            wait(&mut last, 6),
            2,
            "two of the five ahead of the last have gone"
        );
    });
}

/// Two threads that retire the same block do it once.
#[test]
fn two_retirements_of_a_block_are_one() {
    explore(Some(1), || {
        let rate = Arc::new(at_the_floor());
        let mut places: Vec<_> = (0..5).map(|_| rate.reserve(at(0))).collect();
        let mut last = places.pop().expect("five places");
        drop(places.remove(0));
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || shared.record(at(6), permit(6), Outcome::Throttled));
        rate.record(at(6), permit(6), Outcome::Throttled);
        other.join().expect("the other thread returns");
        assert_eq!(
            wait(&mut last, 6),
            2,
            "one of the four ahead of the last has gone"
        );
    });
}

/// A thread that gives up a place a lap of the ring later finds that the front has moved.
#[test]
fn a_lap_later_the_front_has_moved() {
    explore(Some(2), || {
        let rate = Arc::new(at_the_floor());
        let first = rate.reserve(at(0));
        let mut rest: Vec<_> = (0..36).map(|_| rate.reserve(at(0))).collect();
        let mut last = rest.pop().expect("36 places");
        // One thread retires the first two blocks, and gives up a place in the third, which has the
        // same word.
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || {
            shared.record(at(70), permit(70), Outcome::Throttled);
            drop(shared.reserve(at(70)));
        });
        drop(first);
        other.join().expect("the other thread returns");
        assert_eq!(
            wait(&mut last, 70),
            2,
            "one of the 36 ahead of the last has gone"
        );
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
