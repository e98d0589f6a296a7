//! Models of [`SendRate::forget_throttles`].
//!
//! Claim: a throttle beside it counts as one before it or after it, whole; and who stands in line
//! is not left there.

use crate::explore;
use core::time::Duration;
use loom::{sync::Arc, thread};
use paceline_core::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings};

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

fn throttle(rate: &SendRate, millis: u64) {
    rate.record(
        at(millis),
        SendPermit::sent_at(at(millis)),
        Outcome::Throttled,
    );
}

/// A limiter that was throttled at 0 with nothing measured: 0.5 tokens/s, at most one.
fn at_the_floor() -> Arc<SendRate> {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    throttle(&rate, 0);
    Arc::new(rate)
}

/// Forgets on another thread while `main` runs on this one.
fn beside<T>(rate: &Arc<SendRate>, main: impl FnOnce(&SendRate) -> T) -> T {
    let shared = Arc::clone(rate);
    let other = thread::spawn(move || shared.forget_throttles(at(100)));
    let here = main(rate);
    other.join().expect("the thread returns");
    here
}

/// Either it is forgotten too, or it limits as the first one does; and so does the next.
#[test]
fn a_throttle_beside_it_counts_before_or_after() {
    explore(Some(2), || {
        let rate = at_the_floor();
        beside(&rate, |rate| throttle(rate, 100));
        let granted = rate.try_acquire(at(101)).is_ok();
        assert!(
            granted != rate.snapshot(at(101)).enabled,
            "limited or not, as it shows"
        );
        throttle(&rate, 200);
        assert!(rate.snapshot(at(200)).enabled);
        assert!(rate.try_acquire(at(201)).is_err());
        assert!(
            rate.try_acquire(at(2_201)).is_ok(),
            "and no longer than that"
        );
    });
}

/// No more is written off than the open places ask for: what a settlement owes stays owed, however
/// places were taken and given up.
#[test]
fn what_is_owed_stays_owed_when_places_have_come_and_gone() {
    explore(Some(2), || {
        let fixed = PacedSettings::fixed(1, Duration::from_secs(1)).expect("in range");
        let rate = Arc::new(SendRate::paced(fixed, Timestamp::ZERO));
        let permit = rate.try_acquire(at(0)).expect("the bucket is full");
        rate.settle(at(0), permit, 11).expect("a debit of ten");
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || drop(shared.reserve(at(0))));
        drop(rate.reserve(at(0)));
        other.join().expect("the thread returns");
        rate.forget_throttles(at(0));
        assert!(rate.try_acquire(at(10_900)).is_err(), "ten and one");
        assert!(rate.try_acquire(at(11_000)).is_ok());
    });
}

/// Who stands in line goes once it is forgotten. Callers who come after the next throttle wait for
/// their own token, for what is left of one that was begun, and at most for the token of who took a
/// place meanwhile.
#[test]
fn no_waiter_is_left_behind() {
    explore(Some(2), || {
        let rate = at_the_floor();
        let (mut first, mut second) = (rate.reserve(at(0)), rate.reserve(at(0)));
        let early = beside(&rate, |rate| {
            let mut place = rate.reserve(at(100));
            (place.claim(at(100)).is_ok(), place.claim(at(6_100)).is_ok())
        });
        assert!(early.1, "its turn by the old rate, at the latest");
        assert!(first.claim(at(100)).is_ok() && second.claim(at(100)).is_ok());
        assert!(rate.reserve(at(100)).claim(at(100)).is_ok());
        throttle(&rate, 200);
        let wait = rate.try_acquire(at(200)).expect_err("it holds nothing");
        assert!(wait.as_secs() < 6, "{wait:?}");
    });
}

/// Two at once forget once.
#[test]
fn two_at_once_are_as_one() {
    explore(Some(2), || {
        let rate = at_the_floor();
        beside(&rate, |rate| rate.forget_throttles(at(100)));
        assert!(!rate.snapshot(at(100)).enabled);
        for _ in 0..3 {
            assert!(rate.try_acquire(at(100)).is_ok());
        }
    });
}
