//! Threads that come one after the other and go by one number: what the last one had taken ahead and
//! did not spend is there for the next. A pool that ends threads, as rayon's and tokio's blocking
//! threads do, lost the rest of a lease with each.
//!
//! No other test runs in this process: its threads could get the numbers of those that ended.
#![cfg(feature = "std")]
#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;
use std::thread;

use paceline::{Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings};

const SECOND: u64 = 1_000_000_000;

/// A million a second, of which the bucket of two seconds is half empty, at two seconds.
fn half_empty() -> Arc<SendRate> {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::fixed(1_000_000, second).and_then(|fixed| {
        let settings = fixed.to_builder().burst(second * 2);
        settings.build()
    });
    let rate = SendRate::paced(settings.expect("in range"), Timestamp::ZERO);
    for _ in 0..1_000 {
        let taken = rate.try_acquire_n(at(2 * SECOND), 1_000);
        assert!(taken.is_ok(), "it is full");
    }
    Arc::new(rate)
}

const fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// How a thread takes a token.
type Take = fn(&SendRate, Timestamp) -> bool;

const TAKES: [Take; 3] = [
    |rate, now| rate.try_acquire(now).is_ok(),
    |rate, now| rate.try_acquire_with(|| now).is_ok(),
    |rate, now| rate.try_acquire_n(now, 1).is_ok(),
];

/// The tokens that are there, once all leases of threads that have ended have come back.
fn available(rate: &SendRate, now: Timestamp) -> u64 {
    rate.record(now, SendPermit::sent_at(now), Outcome::NotThrottled);
    let mut tokens = 0;
    while rate.try_acquire_n(now, 1).is_ok() {
        tokens += 1;
    }
    tokens
}

#[test]
fn a_thread_finds_what_the_one_before_it_had_taken_ahead() {
    for first in TAKES {
        for next in TAKES {
            let rate = half_empty();
            let now = at(2 * SECOND);
            for number in 0..10 {
                let take = if number % 2 == 0 { first } else { next };
                let rate = Arc::clone(&rate);
                let took = thread::spawn(move || (0..200).all(|_| take(&rate, now)));
                assert!(took.join().expect("the thread returns"));
            }
            assert_eq!(available(&rate, now), 1_000_000 - 2_000);
        }
    }
}
