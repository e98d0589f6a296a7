//! The tokio loop, under tokio's paused clock: nothing sleeps for real, and every time is exact.

use core::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::support::{Arc, Fixed, http, ms};
use paceline::{
    Adaptive, Failure, RetryStrategy, RetryStrategyExt, Standard, TokioClock,
    config::StrategyBuilder,
    operation::{StopReason, Waiter},
    strategy::Reports,
    wait::DefaultSleep,
};
use tokio::time::{Instant, advance};

fn standard() -> StrategyBuilder<Standard> {
    let builder = Standard::builder().clock(Arc::new(TokioClock::new()));
    builder.random(Fixed::whole())
}

/// Polls once, for tests that stop a future where it waits.
fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn retries_sleep_their_delays() {
    let strategy = standard().build().unwrap();
    let start = Instant::now();
    let mut sent_at = Vec::new();
    let answer = strategy
        .run_async(|attempt| {
            sent_at.push(start.elapsed());
            async move {
                if attempt.number() < 3 {
                    Err(http(500))
                } else {
                    Ok(attempt.to_string())
                }
            }
        })
        .await;
    assert_eq!(answer.unwrap(), "attempt=3; max=3");
    assert_eq!(sent_at, [ms(0), ms(50), ms(150)]);
    assert_eq!(strategy.quota().available(), 486);
}

#[tokio::test(start_paused = true)]
async fn last_failure_is_returned_with_why() {
    let strategy = standard().build().unwrap();
    let stopped = strategy
        .run_async_with(
            |_: &u32| Failure::transient(),
            async |attempt| Err::<(), _>(attempt.number()),
        )
        .await
        .unwrap_err();
    assert_eq!(stopped.why(), StopReason::MaxAttempts { max: 3 });
    assert_eq!(stopped.into_error(), Ok(3));
}

#[tokio::test(start_paused = true)]
async fn long_polling_sleeps_before_the_failure_is_returned() {
    let builder = standard().quota_capacity(0).long_polling(true);
    let strategy = builder.build().unwrap();
    let start = Instant::now();
    let stopped = strategy
        .run_async(async |_| Err::<(), _>(Failure::throttling()))
        .await
        .unwrap_err();
    assert_eq!(start.elapsed(), ms(1000));
    assert_eq!(
        stopped.why(),
        StopReason::QuotaExhausted {
            available: 0,
            needed: 5
        }
    );
}

#[tokio::test(start_paused = true)]
async fn users_strategy_runs_through_dyn() {
    let strategy: Box<dyn RetryStrategy> = Box::new(standard().build().unwrap());
    let operation = strategy.operation().scope("scope");
    let answer = operation.run_async(async |_| Ok::<_, Failure>(1)).await;
    assert_eq!(answer.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn success_at_once_never_yields() {
    let strategy = Adaptive::new(paceline::ControlLaw::Aws);
    let run = pin!(strategy.run_async(async |_| Ok::<_, Failure>(1)));
    assert!(matches!(poll(run), Poll::Ready(Ok(1))));
}

/// Drops an operation that is about to sleep before its second attempt.
#[tokio::test(start_paused = true)]
async fn dropped_during_backoff_it_gives_its_quota_back() {
    let strategy = standard().build().unwrap();
    let mut sends = 0;
    {
        let mut run = pin!(strategy.run_async(|_| {
            sends += 1;
            async { Err::<(), _>(http(500)) }
        }));
        assert!(poll(run.as_mut()).is_pending());
        advance(ms(49)).await;
        assert!(poll(run.as_mut()).is_pending());
    }
    advance(ms(1000)).await;
    assert_eq!(sends, 1);
    assert_eq!(strategy.quota().available(), 500);
}

#[tokio::test(start_paused = true)]
async fn dropped_during_a_send_it_records_nothing() {
    let strategy = standard().build().unwrap();
    drop(strategy.quota().try_acquire(100));
    {
        let run = pin!(strategy.run_async(async |_| {
            tokio::time::sleep(ms(10)).await;
            Ok::<_, Failure>(())
        }));
        assert!(poll(run).is_pending());
    }
    assert_eq!(strategy.quota().available(), 400);
}

#[tokio::test(start_paused = true)]
async fn timeout_around_an_operation_cancels_it() {
    let strategy = standard().max_attempts(9).build().unwrap();
    let run = strategy.run_async(async |_| Err::<(), _>(Failure::throttling()));
    let start = Instant::now();
    let in_time = tokio::time::timeout(Duration::from_secs(4), run).await;
    assert!(in_time.is_err());
    assert_eq!(start.elapsed(), ms(4000));
}

#[test]
fn operations_can_be_spawned() {
    fn assert_send<T: Send>(_: &T) {}
    let (standard, adaptive) = (Standard::new(), Adaptive::new(paceline::ControlLaw::Aws));
    let op = |_| async { Ok::<(), Failure>(()) };
    assert_send(&standard.run_async(op));
    assert_send(&adaptive.run_async(op));
    let strategy: &dyn RetryStrategy = &adaptive;
    assert_send(&strategy.run_async_with(|failure| *failure, op));
}

/// What hosts that poll call.
#[tokio::test(start_paused = true)]
async fn a_waiter_is_polled_through_a_backoff_and_a_span() {
    let strategy = standard().build().unwrap();
    let start = Instant::now();
    let mut waiter = Waiter::new(DefaultSleep::new());
    let mut attempts = strategy.operation().start();
    waiter.next(&mut attempts, strategy.clock()).await.unwrap();
    let failed = attempts.failed(&Failure::transient(), Reports::new());
    failed.unwrap();
    poll_fn(|cx| waiter.poll_backoff(&mut attempts, strategy.clock(), cx)).await;
    assert_eq!(start.elapsed(), ms(50));
    waiter.arm(ms(70));
    poll_fn(|cx| waiter.poll_elapsed(cx)).await;
    assert_eq!(start.elapsed(), ms(120));
}
