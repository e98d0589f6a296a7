//! In tokio-retry's loops.

#![allow(deprecated, reason = "`start` has this name in the oldest version")]

extern crate alloc;

use alloc::sync::Arc;
use core::{future::ready, time::Duration};

use paceline::{Failure, RetryAfter, Standard, backoff::Random};
use paceline_backoff::{Retries, retry_after};
use tokio_retry::{Retry, RetryIf};

const SECOND: Duration = Duration::from_secs(1);

/// No jitter: the most that there can be.
#[derive(Debug)]
struct Whole;

impl Random for Whole {
    fn next_u64(&self) -> u64 {
        u64::MAX
    }
}

/// Backoffs of 1 s, 2 s, 4 s and so on.
fn strategy() -> Standard {
    let builder = Standard::builder()
        .base_delay(SECOND)
        .random(Arc::new(Whole));
    builder.build().expect("the settings are in range")
}

/// Fails so often, then succeeds.
fn failing(times: u32) -> impl FnMut() -> core::future::Ready<Result<u32, Failure>> {
    let mut calls = 0_u32;
    move || {
        calls = calls.wrapping_add(1);
        ready(if calls > times {
            Ok(calls)
        } else {
            Err(Failure::transient())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_sees_the_errors() {
    let strategy = strategy();
    let begun = tokio::time::Instant::now();
    let mut retries = Retries::of(&strategy);
    let (delays, condition) = retries.split(|error: &Failure| *error);
    let answer = RetryIf::spawn(delays, failing(1), condition).await;
    assert_eq!(begun.elapsed(), SECOND);
    assert_eq!(strategy.quota().available(), 486);
    retries.finish(&answer);
    assert_eq!((answer, strategy.quota().available()), (Ok(2), 500));
}

#[tokio::test(start_paused = true)]
async fn without_a_condition_all_failures_are_as_assumed() {
    let strategy = strategy();
    let begun = tokio::time::Instant::now();
    let mut retries = Retries::of(&strategy).assume(Failure::throttling());
    let answer = Retry::spawn(&mut retries, failing(3)).await;
    assert_eq!(
        (answer, begun.elapsed()),
        (Err(Failure::transient()), 3 * SECOND)
    );
    retries.finish(&answer);
    assert_eq!(strategy.quota().available(), 490);

    let mut retries = Retries::of(&strategy);
    let answer = Retry::spawn(&mut retries, failing(0)).await;
    retries.finish(&answer);
    assert_eq!((answer, strategy.quota().available()), (Ok(1), 491));
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_is_dropped_has_spent_what_it_paid() {
    let strategy = strategy();
    let mut retries = Retries::of(&strategy);
    let dropped = Retry::spawn(&mut retries, failing(3));
    let cut_off = tokio::time::timeout(2 * SECOND, dropped).await;
    assert!(cut_off.is_err());
    drop(retries);
    assert_eq!(strategy.quota().available(), 472);
}

#[test]
fn hints_lift_delays_and_nothing_else() {
    let hints = [
        (None, SECOND),
        (Some(RetryAfter::AtLeast(Duration::ZERO)), SECOND),
        (Some(RetryAfter::AtLeast(9 * SECOND)), 10 * SECOND),
        (Some(RetryAfter::Clamped(Duration::ZERO)), SECOND),
        (Some(RetryAfter::Clamped(3 * SECOND)), 3 * SECOND),
        (Some(RetryAfter::Clamped(Duration::MAX)), 6 * SECOND),
    ];
    for (hint, delay) in hints {
        let mut adjust = retry_after(|(): &()| hint);
        assert_eq!(adjust(&(), Some(SECOND)), Some(delay), "{hint:?}");
        assert_eq!(adjust(&(), None), None, "{hint:?}");
    }
    let longest = Some(RetryAfter::Clamped(SECOND));
    assert_eq!(
        retry_after(|(): &()| longest)(&(), Some(Duration::MAX)),
        Some(Duration::MAX)
    );
}
