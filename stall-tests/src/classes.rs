//! Stops behind the line.
//!
//! Claim: a thread that stops in a request of background, at any step, keeps no other from taking,
//! and what it held is all that is lost.

use core::mem::ManuallyDrop;
use core::time::Duration;

use paceline_core::{SendRate, Timestamp, law::PacedSettings};

use crate::hook::{MOST, bounded, stopped_at};
use crate::scene::at;

/// A learned rate of 1,000 tokens a second with an empty bucket of 100.
fn limiter() -> SendRate {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::builder()
        .initial_rate(1_000, second)
        .burst(second / 10)
        .build();
    let rate = SendRate::paced(settings.expect("in range"), Timestamp::ZERO);
    while rate.try_acquire(at(0)).is_ok() {}
    rate
}

/// Returns how many of the tokens at 20 ms others get behind the line.
fn left(rate: &SendRate) -> u32 {
    let tries = 0..30_u32;
    let got = tries.filter(|_| bounded(2 * MOST, || rate.background().try_acquire(at(20))).is_ok());
    u32::try_from(got.count()).unwrap_or(0)
}

#[test]
fn a_thread_that_stops_within_a_release_loses_what_it_took() {
    for step in 0.. {
        let rate = limiter();
        let place = rate.background().reserve_n(at(0), 5).expect("it fits");
        let mut place = ManuallyDrop::new(place);
        let stopped = stopped_at(step, || place.claim(at(20)).is_ok());
        // Others go on, and at most twice its five tokens of twenty are lost.
        let left = left(&rate);
        assert!((10..=16).contains(&left), "step {step}: {left}");
        let later = bounded(2 * MOST, || rate.background().try_acquire_n(at(200), 50));
        assert!(later.is_ok(), "step {step}: {later:?}");
        let first = bounded(2 * MOST, || rate.try_acquire_n(at(200), 20));
        assert!(first.is_ok(), "step {step}: {first:?}");
        if stopped.is_some() {
            break;
        }
    }
}

#[test]
fn a_thread_that_stops_while_it_gives_up_holds_up_nobody() {
    for step in 0.. {
        let rate = limiter();
        let place = rate.background().reserve_n(at(0), 5).expect("it fits");
        let stopped = stopped_at(step, || drop(place));
        let mut next = bounded(2 * MOST, || rate.background().reserve(at(20)));
        let claimed = bounded(2 * MOST, || next.claim(at(20)));
        assert!(claimed.is_ok(), "step {step}: {claimed:?}");
        let first = bounded(2 * MOST, || rate.try_acquire(at(20)));
        assert!(first.is_ok(), "step {step}: {first:?}");
        if stopped.is_some() {
            break;
        }
    }
}

/// The credit is what background got beyond its part. However little of it a stopped thread has
/// written, the trickle comes after 60 tokens.
#[test]
fn a_stop_within_the_credit_puts_the_trickle_off_by_60() {
    for step in 0.. {
        let rate = limiter();
        let place = rate.background().reserve_n(at(0), 5).expect("it fits");
        let mut place = ManuallyDrop::new(place);
        let stopped = stopped_at(step, || place.claim(at(20)).is_ok());
        while bounded(2 * MOST, || rate.try_acquire(at(20))).is_ok() {}
        let mut behind = bounded(2 * MOST, || rate.background().reserve(at(20)));
        let _line: Vec<_> = (0..61).map(|_| rate.reserve(at(20))).collect();
        let waits = bounded(2 * MOST, || behind.claim(at(20))).is_err();
        assert!(waits, "step {step}: the bucket is empty");
        let mut last = bounded(2 * MOST, || rate.reserve(at(20)));
        let wait = bounded(2 * MOST, || last.claim(at(20))).expect_err("it is the last");
        // A token comes in less than a millisecond: 62 places, and the trickle's.
        let alone = Duration::from_millis(62);
        assert!(wait > alone, "step {step}: {wait:?}");
        if stopped.is_some() {
            break;
        }
    }
}

#[test]
fn a_thread_that_stops_within_the_trickle_loses_one_token() {
    for step in 0.. {
        let rate = limiter();
        let place = rate.background().reserve(at(0));
        let mut place = ManuallyDrop::new(place);
        let mut line: Vec<_> = (0..25).map(|_| rate.reserve(at(0))).collect();
        let stopped = stopped_at(step, || place.claim(at(0)).is_ok());
        let mut last = bounded(2 * MOST, || rate.reserve(at(0)));
        let wait =
            bounded(2 * MOST, || last.claim(at(0))).map_or_else(|wait| wait.as_millis(), |_| 0);
        assert!((25..=27).contains(&wait), "step {step}: {wait}");
        assert!(line.iter_mut().all(|place| place.claim(at(27)).is_ok()));
        assert!(
            bounded(2 * MOST, || last.claim(at(28))).is_ok(),
            "step {step}"
        );
        if stopped.is_some() {
            break;
        }
    }
}
