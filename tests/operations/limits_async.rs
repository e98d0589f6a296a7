//! The limits of an operation in the tokio loop, under tokio's paused clock.

use core::time::Duration;

use crate::support::{Arc, Fixed, http, ms};
use paceline::{
    Clock, Failure, Idempotency, RetryStrategyExt, Standard, Timestamp, TokioClock,
    config::StrategyBuilder, operation::StopReason,
};
use tokio::time::{Instant, sleep};

fn standard() -> StrategyBuilder<Standard> {
    let builder = Standard::builder().clock(Arc::new(TokioClock::new()));
    builder.random(Fixed::whole())
}

#[tokio::test(start_paused = true)]
async fn attempt_is_cut_off_and_counts_as_a_timeout() {
    let strategy = standard().build().unwrap();
    let start = Instant::now();
    let operation = strategy.operation().attempt_timeout(ms(30));
    let answer = operation
        .run_async(async |attempt| {
            if attempt.number() < 3 {
                sleep(ms(31)).await;
            }
            Ok::<_, Failure>(attempt.number())
        })
        .await;
    assert_eq!(answer.unwrap(), 3);
    assert_eq!(start.elapsed(), ms(30 + 50 + 30 + 100));
    assert_eq!(
        strategy.quota().available(),
        500 - 14,
        "only the last is paid back"
    );
}

#[tokio::test(start_paused = true)]
async fn attempt_that_ends_as_its_time_does_has_ended() {
    let strategy = standard().build().unwrap();
    let operation = strategy.operation().attempt_timeout(ms(30));
    let answer = operation.run_async(async |attempt| {
        sleep(ms(30)).await;
        Ok::<_, Failure>(attempt.number())
    });
    assert_eq!(answer.await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn cut_off_attempts_leave_no_error() {
    let strategy = standard().max_attempts(2).build().unwrap();
    let operation = strategy.operation().attempt_timeout(ms(30));
    let stopped = operation
        .run_async(async |attempt| {
            if attempt.number() == 2 {
                sleep(ms(31)).await;
            }
            Err::<(), _>(http(500))
        })
        .await
        .unwrap_err();
    assert!(stopped.error().is_none());
    assert_eq!(stopped.why(), StopReason::MaxAttempts { max: 2 });
    assert_eq!(stopped.error(), None, "the first attempt's would mislead");
}

#[tokio::test(start_paused = true)]
async fn deadline_cuts_an_attempt_off_and_ends_the_operation() {
    let (strategy, clock) = (standard().build().unwrap(), TokioClock::new());
    let operation = strategy.operation().clock(&clock).deadline(ms(120));
    let stopped = operation
        .run_async(async |_| {
            sleep(ms(40)).await;
            Err::<(), _>(http(500))
        })
        .await
        .unwrap_err();
    // 40, sleep 50, 30 of 40.
    assert_eq!(clock.now().saturating_since(Timestamp::ZERO), ms(120));
    assert_eq!((stopped.attempts(), stopped.error().is_none()), (2, true));
    let (wait, left) = (ms(100), Duration::ZERO);
    assert_eq!(stopped.why(), StopReason::OutOfTime { wait, left });
    assert_eq!(strategy.quota().available(), 500 - 14);
}

#[tokio::test(start_paused = true)]
async fn cut_off_attempt_may_have_done_the_work() {
    let strategy = standard().build().unwrap();
    let operation = strategy.operation().attempt_timeout(ms(30));
    let stopped = operation
        .idempotency(Idempotency::NotIdempotent)
        .run_async(async |_| {
            sleep(ms(31)).await;
            Ok::<_, Failure>(())
        })
        .await
        .unwrap_err();
    assert_eq!(
        (stopped.attempts(), stopped.why()),
        (1, StopReason::MaybeExecuted)
    );
}

#[test]
fn limited_operations_can_be_spawned() {
    fn assert_send<T: Send>(_: &T) {}
    let strategy = Standard::new();
    let operation = strategy.operation().deadline(ms(1)).attempt_timeout(ms(1));
    assert_send(&operation.run_async(|_| async { Ok::<(), Failure>(()) }));
}
