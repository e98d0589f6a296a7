//! In backon's loops.

extern crate alloc;

use alloc::sync::Arc;
use core::{cell::Cell, time::Duration};
use std::sync::mpsc;

use backon::{BlockingRetryable, Retryable};
use paceline::{
    Failure, Idempotency, RetryAfter, RetryStrategy, RetryToken, Standard,
    backoff::{BackoffStrategy, Random},
    strategy::{Reports, StrategyId},
};
use paceline_backoff::Retries;

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

/// What the operation says each time, one after the other.
fn script<const N: usize>(
    answers: [Result<u32, Failure>; N],
) -> impl FnMut() -> Result<u32, Failure> {
    let mut answers = answers.into_iter();
    move || answers.next().expect("no more attempts than that")
}

#[tokio::test(start_paused = true)]
async fn a_success_pays_its_retry_back() {
    let strategy = strategy();
    let mut answers = script([Err(Failure::transient()), Err(Failure::transient()), Ok(7)]);
    let begun = tokio::time::Instant::now();
    let mut retries = Retries::of(&strategy);
    let (delays, condition) = retries.split(|error: &Failure| *error);
    let fetch = || core::future::ready(answers());
    let answer = fetch.retry(delays).when(condition).await;
    assert_eq!(begun.elapsed(), 3 * SECOND);
    assert_eq!(strategy.quota().available(), 472);
    retries.finish(&answer);
    assert_eq!((answer, strategy.quota().available()), (Ok(7), 486));
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_the_quota_is_gone() {
    let strategy = Standard::builder().quota_capacity(20).max_attempts(10);
    let strategy = strategy.build().expect("the settings are in range");
    let attempts = Cell::new(0);
    let fetch = || {
        attempts.set(attempts.get() + 1);
        core::future::ready(Err::<(), _>(Failure::transient()))
    };
    let mut retries = Retries::of(&strategy);
    let (delays, condition) = retries.split(|error: &Failure| *error);
    let answer = fetch.retry(delays).when(condition).await;
    assert_eq!((answer.is_err(), attempts.get()), (true, 2));
    retries.finish(&answer);
    assert_eq!(strategy.quota().available(), 6);
}

#[tokio::test(start_paused = true)]
async fn each_error_has_its_price_and_its_hint() {
    let hint = RetryAfter::AtLeast(60 * SECOND);
    let busy = Failure::throttling().with_retry_after(hint);
    let strategy = strategy();
    let mut answers = script([Err(busy), Err(Failure::not_retryable())]);
    let begun = tokio::time::Instant::now();
    let mut retries = Retries::of(&strategy);
    let (delays, condition) = retries.split(|error: &Failure| *error);
    let fetch = || core::future::ready(answers());
    let answer = fetch.retry(delays).when(condition).await;
    retries.finish(&answer);
    assert_eq!(answer, Err(Failure::not_retryable()));
    assert_eq!(begun.elapsed(), 61 * SECOND);
    assert_eq!(strategy.quota().available(), 495);
}

#[test]
fn a_blocking_loop_takes_the_same() {
    let strategy = strategy();
    let (slept, naps) = mpsc::channel();
    let mut retries = Retries::of(&strategy);
    let (delays, condition) = retries.split(|error: &Failure| *error);
    let fetch = script([Err(Failure::throttling()), Ok(7)]);
    let answer = fetch
        .retry(delays)
        .sleep(move |span| slept.send(span).expect("the receiver is open"))
        .when(condition)
        .call();
    retries.finish(&answer);
    assert_eq!((answer, naps.iter().sum::<Duration>()), (Ok(7), SECOND));
    assert_eq!(strategy.quota().available(), 500);
}

#[test]
fn delays_without_their_condition_are_none_and_cost_nothing() {
    let strategy = strategy();
    let mut retries = Retries::of(&strategy);
    let (delays, condition) = retries.split(|error: &Failure| *error);
    drop(condition);
    let answer = script([Err(Failure::transient())]).retry(delays).call();
    retries.finish(&answer);
    assert!(answer.is_err());
    assert_eq!(strategy.quota().available(), 500);
}

#[test]
fn what_may_have_been_done_is_not_done_twice() {
    let strategy = strategy();
    let mut retries = Retries::of(&strategy).idempotency(Idempotency::NotIdempotent);
    let (mut delays, mut condition) = retries.split(|error: &Failure| *error);
    assert!(condition(&Failure::throttling()));
    assert_eq!(delays.next(), Some(SECOND));
    assert_eq!(delays.next(), None);
    assert!(!condition(&Failure::timeout()));
    assert_eq!(delays.next(), None);
}

/// Backs off for as long as can be said.
#[derive(Debug)]
struct Forever;

impl BackoffStrategy for Forever {
    fn delay(&self, _: u32, _: bool, _: u64) -> Duration {
        Duration::MAX
    }
}

#[test]
fn a_delay_without_end_is_no_refusal() {
    let builder = Standard::builder().backoff(Arc::new(Forever));
    let strategy = builder.build().expect("the settings are in range");
    let mut retries = Retries::of(&strategy);
    let (mut delays, mut condition) = retries.split(|error: &Failure| *error);
    assert!(condition(&Failure::transient()));
    assert_eq!(delays.next(), Some(Duration::from_nanos(u64::MAX - 1)));
}

/// Delays its first send and does not ask whether the operation is idempotent.
#[derive(Debug)]
struct Careless(StrategyId);

impl RetryStrategy for Careless {
    fn acquire_initial_token(
        &self,
        scope: Option<&str>,
    ) -> Result<RetryToken, paceline::strategy::InitialTokenRefused> {
        match scope {
            Some("closed") => Err(paceline::strategy::InitialTokenRefused),
            _ => Ok(RetryToken::new(self.0).with_delay(SECOND)),
        }
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        _: &Failure,
        _: Reports<'_>,
    ) -> Result<RetryToken, paceline::strategy::RetryRefused> {
        let next = token.attempt().saturating_add(1);
        Ok(self.0.check(token)?.with_attempt(next, None))
    }

    fn record_success(
        &self,
        token: RetryToken,
        _: Reports<'_>,
    ) -> Result<(), paceline::strategy::ForeignToken> {
        Err(paceline::strategy::ForeignToken(token))
    }
}

#[test]
fn strategies_of_ones_own_are_kept_to_the_rules() {
    let strategy: &dyn RetryStrategy = &Careless(StrategyId::new());
    let mut retries = Retries::of(strategy).idempotency(Idempotency::NotIdempotent);
    assert_eq!(retries.first_delay(), SECOND);
    {
        let (mut delays, mut condition) = retries.split(|error: &Failure| *error);
        assert!(condition(&Failure::throttling()));
        assert!(!condition(&Failure::transient()));
        assert_eq!(delays.next(), None);
    }
    let mut plain = Retries::of(strategy);
    assert_eq!(plain.next(), Some(SECOND));
    assert_eq!(plain.first_delay(), Duration::ZERO);
    assert_eq!(retries.first_delay(), Duration::ZERO);
    retries.succeed();

    let mut refused = Retries::in_scope(strategy, Some("closed"));
    assert_eq!(refused.first_delay(), Duration::ZERO);
    assert_eq!(refused.next(), None);
    refused.succeed();
}

#[test]
fn a_hint_beyond_the_cap_gets_no_retry() {
    let hint = RetryAfter::AtLeast(Duration::from_secs(3));
    let asked = |cap: Option<u64>| {
        let strategy = strategy();
        let retries = Retries::of(&strategy);
        let mut retries = match cap {
            Some(cap) => retries.max_retry_after(Duration::from_secs(cap)),
            None => retries,
        };
        let (_delays, mut condition) =
            retries.split(|(): &()| Failure::throttling().with_retry_after(hint));
        condition(&())
    };
    assert_eq!([None, Some(3), Some(2)].map(asked), [true, true, false]);
}

#[test]
fn it_takes_four_lines() {
    assert_eq!(kit::count_lines(include_str!("../README.md")), 4);
}
