//! One request stays one request: loops inside of an attempt leave its retries to the outermost.

use core::{cell::Cell, panic::AssertUnwindSafe};
use std::{panic::catch_unwind, thread};

use crate::support::{Arc, Hands};
use paceline::{
    Adaptive, Failure, Operation, RetryStrategy, RetryStrategyExt, Standard,
    operation::{Next, OuterAttempt, StopReason, Verdict, within},
    strategy::Reports,
};

/// The attempts of three loops, the outermost first. Alone they send one request 48 times.
const STACK: [u32; 3] = [4, 3, 4];

fn standard(attempts: u32) -> Standard {
    let builder = Standard::builder().max_attempts(attempts);
    builder.build().expect("in range")
}

/// Runs the loops of `stack`, one in the other, and returns how often the innermost one sent.
fn sends_of(stack: &[Standard], send: &dyn Fn() -> Result<(), Failure>) -> u32 {
    fn run(
        stack: &[Standard],
        sends: &Cell<u32>,
        send: &dyn Fn() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Some((outer, inner)) = stack.split_first() else {
            sends.set(sends.get().wrapping_add(1));
            return send();
        };
        let operation = outer.operation().sleep_by(|_| {});
        let answer = operation.run(|_| run(inner, sends, send));
        answer.map_err(|stopped| stopped.into_error().expect("it was sent"))
    }
    let sends = Cell::new(0);
    let _answer = run(stack, &sends, send);
    sends.get()
}

#[test]
fn the_outermost_of_three_loops_sends_again() {
    let stack = STACK.map(standard);
    assert_eq!(sends_of(&stack, &|| Err(Failure::transient())), 4);
    let left = stack
        .each_ref()
        .map(|strategy| strategy.quota().available());
    assert_eq!(left, [500 - 3 * 14, 500, 500]);
    // Alone each is as ever.
    let alone = stack.each_ref().map(|strategy| {
        sends_of(core::slice::from_ref(strategy), &|| {
            Err(Failure::transient())
        })
    });
    assert_eq!(alone, STACK);
}

#[test]
fn a_broken_service_gets_one_send_a_request_and_the_quota() {
    // At each depth: the innermost loop alone, two, all three.
    for depth in 1..=3 {
        let stack: Vec<_> = STACK[3 - depth..].iter().copied().map(standard).collect();
        let requests = 300;
        let sends: u32 = (0..requests)
            .map(|_| sends_of(&stack, &|| Err(Failure::transient())))
            .sum();
        // A retry costs 14 of 500.
        assert_eq!(sends, requests + 500 / 14, "{depth} loops");
        let inner: u32 = stack[1..].iter().map(|s| s.quota().available()).sum();
        assert_eq!(inner, 500 * (u32::try_from(depth).unwrap() - 1));
    }
}

#[test]
fn an_inner_loop_records_throttles_and_successes() {
    let hands = Arc::new(Hands::default());
    let inner = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .clock(hands.clone())
        .build();
    let (outer, inner) = (standard(3), inner.expect("in range"));
    let answers = Cell::new(0);
    let answer = outer.operation().sleep_by(|_| {}).run(|_| {
        let operation = inner.operation().sleep_by(|span| hands.sleep(span));
        let answer = operation.run(|attempt| {
            assert!(attempt.is_last());
            assert_eq!((attempt.number(), attempt.max()), (1, Some(1)));
            answers.set(answers.get() + 1);
            assert_eq!(
                attempt.outer().and_then(|outer| outer.number()),
                Some(answers.get())
            );
            match answers.get() {
                1 => Err(Failure::throttling()),
                _ => Ok(()),
            }
        });
        answer.map_err(|stopped| {
            assert_eq!(stopped.why(), StopReason::LeftToOuter);
            stopped.into_error().expect("it was sent")
        })
    });
    assert!(answer.is_ok());
    let seen = inner.snapshot();
    assert_eq!((seen.counts.throttled, inner.quota().available()), (1, 500));
    assert!(seen.rate.is_some_and(|rate| rate.enabled));
    assert_eq!(outer.quota().available(), 500);
}

#[test]
fn a_failure_that_is_final_says_so_inside() {
    let (outer, inner) = (standard(3), standard(3));
    let stopped = outer.run(|_| {
        let stopped = inner.run(|_| Err::<(), _>(Failure::not_retryable()));
        Err::<(), _>(stopped.unwrap_err().into_error().expect("it was sent"))
    });
    assert_eq!(stopped.unwrap_err().attempts(), 1);
    let stopped = within(Some(OuterAttempt::new()), || {
        inner.run(|_| Err::<(), _>(Failure::not_retryable()))
    });
    assert_eq!(stopped.unwrap_err().why(), StopReason::NotRetryable);
}

#[test]
fn a_composite_and_a_single_attempt_set_no_mark() {
    let inside = |outer: Operation<'_, &Standard>| {
        let mut sends = 0;
        let _stopped = outer.run(|_| {
            let operation = Standard::new();
            let operation = operation.operation().sleep_by(|_| {});
            let _stopped = operation.run(|_| {
                sends += 1;
                Err::<(), _>(Failure::transient())
            });
            Ok::<_, Failure>(())
        });
        sends
    };
    assert_eq!(inside(standard(3).operation()), 1);
    assert_eq!(inside(standard(3).operation().composite()), 3);
    assert_eq!(inside(standard(1).operation()), 3);
    // A composite inside of an attempt is a part of it, and so are its own parts.
    let outer = Some(OuterAttempt::new());
    assert_eq!(
        within(outer, || inside(standard(3).operation().composite())),
        1
    );
    assert_eq!(within(outer, || inside(standard(1).operation())), 1);
}

#[test]
fn by_hand_the_mark_is_what_the_host_is_given() {
    let strategy = standard(3);
    let clock = strategy.clock();
    let mut attempts = Operation::new(&strategy).start();
    assert_eq!(attempts.outer(), None); // nothing is under way
    let Next::Send(_) = attempts.next(clock, None) else {
        panic!("it waits");
    };
    let outer = attempts.outer().expect("it can be sent again");
    assert_eq!((outer.number(), outer.max()), (Some(1), Some(3)));
    assert_eq!(OuterAttempt::current(), None);
    attempts.set_repeatable(false);
    assert_eq!(attempts.outer(), None);

    // Found with the request, in another thread, say.
    let mut inner = Operation::new(&strategy).inside(Some(outer)).start();
    assert!(matches!(inner.next(clock, None), Next::Send(attempt) if attempt.is_last()));
    assert_eq!(inner.outer(), Some(outer));
    let verdict = inner.failed(&Failure::transient(), Reports::at(clock));
    assert!(matches!(verdict, Ok(Verdict::Stop(stop)) if stop.why() == StopReason::LeftToOuter));
    assert_eq!(strategy.quota().available(), 500);
}

#[test]
fn a_panic_takes_the_mark_along() {
    let strategy = standard(3);
    let panics = AssertUnwindSafe(|| strategy.run(|_| -> Result<(), Failure> { panic!("in it") }));
    assert!(catch_unwind(panics).is_err());
    assert_eq!(OuterAttempt::current(), None);
}

#[test]
fn another_thread_sees_the_mark_if_it_is_carried_there() {
    let strategy = standard(3);
    let seen = strategy.run(|_| {
        let outer = OuterAttempt::current();
        Ok::<_, Failure>(thread::scope(|threads| {
            let bare = threads.spawn(OuterAttempt::current).join();
            let carried = threads
                .spawn(|| within(outer, OuterAttempt::current))
                .join();
            (
                outer.is_some(),
                bare.unwrap().is_some(),
                carried.unwrap() == outer,
            )
        }))
    });
    assert_eq!(seen.unwrap(), (true, false, true));
}

#[cfg(feature = "tokio")]
mod tasks {
    use core::time::Duration;

    use paceline::operation::within_async;
    use tokio::{task::yield_now, time::timeout};

    use super::*;

    /// An operation of an inner loop, that waits before each answer.
    async fn inner() -> u32 {
        let strategy = standard(3);
        let stopped = strategy.run_async(async |_| {
            yield_now().await;
            Err::<(), _>(Failure::transient())
        });
        stopped.await.unwrap_err().attempts()
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_attempt_awaits_sees_the_mark() {
        let strategy = standard(3);
        let mut outer = core::pin::pin!(strategy.run_async(async |_| {
            let spawned = tokio::spawn(inner());
            let carried = tokio::spawn(within_async(OuterAttempt::current(), inner()));
            let (here, there) = tokio::join!(inner(), timeout(Duration::from_secs(1), inner()));
            let (spawned, carried) = (spawned.await.unwrap(), carried.await.unwrap());
            Ok::<_, Failure>([here, there.unwrap(), carried, spawned])
        }));
        // A task beside it does not, while it waits.
        let beside = tokio::select! {
            biased;
            _ = &mut outer => panic!("it waits"),
            beside = async { OuterAttempt::current() } => beside,
        };
        assert_eq!(beside, None);
        assert_eq!(outer.await.unwrap(), [1, 1, 1, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_outermost_loop_of_tasks_sends_again() {
        let (outer, inner) = (standard(4), standard(3));
        let sends = Cell::new(0);
        let stopped = outer.run_async(async |_| {
            let stopped = inner.run_async(async |_| {
                sends.set(sends.get() + 1);
                yield_now().await;
                Err::<(), _>(Failure::transient())
            });
            Err::<(), _>(
                stopped
                    .await
                    .unwrap_err()
                    .into_error()
                    .expect("it was sent"),
            )
        });
        assert_eq!((stopped.await.unwrap_err().attempts(), sends.get()), (4, 4));
        assert_eq!(inner.quota().available(), 500);
    }

    #[tokio::test]
    async fn a_dropped_attempt_leaves_no_mark() {
        let strategy = standard(3);
        let endless =
            strategy.run_async(async |_| core::future::pending::<Result<(), Failure>>().await);
        assert!(timeout(Duration::from_millis(1), endless).await.is_err());
        assert_eq!(OuterAttempt::current(), None);
    }
}
