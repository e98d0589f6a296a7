//! The retry loops wait by the same rules.

use alloc::sync::Arc;
use core::time::Duration;
use std::{thread, time::Instant};

use paceline::{Adaptive, Failure, Outcome, RetryStrategyExt, SendPermit, Timestamp};

use crate::world::{SECOND, World, at, ms};

/// An operation in a task, by timers that are neither tokio's nor async-io's: two seconds of
/// waiting, two wakes at most.
#[test]
fn an_operation_is_woken_once_for_its_turn() {
    let mut world = World::default();
    let strategy = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .clock(Arc::new(world.hands.clone()))
        .build();
    let strategy = Arc::new(strategy.expect("the defaults"));
    let permit = SendPermit::sent_at(Timestamp::ZERO);
    strategy
        .send_rate()
        .record(Timestamp::ZERO, permit, Outcome::Throttled);
    for _ in 0..50 {
        let (strategy, hands) = (Arc::clone(&strategy), world.hands.clone());
        world.spawn(async move {
            let operation = strategy.operation().sleep_on(hands.clone());
            let op = async |_| Ok::<_, Failure>(SendPermit::sent_at(at(hands.nanos())));
            Ok(operation.run_async(op).await.expect("it succeeds"))
        });
    }
    world.run_until(2 * SECOND);
    assert_eq!(
        world.tasks[0].went_at(),
        2 * SECOND,
        "at the floor, one in two seconds"
    );
    world.run_until(100 * SECOND);
    assert!(world.order.iter().copied().eq(0..50));
    // Each success raises the rate, so that those behind are told.
    assert!(world.tasks[49].went_at() < 90 * SECOND);
    assert!(world.tasks[0].polls == 2 && world.tasks[1].polls <= 4);
}

/// A thread that parks for its turn goes when those ahead have given up, not when its time has
/// come.
#[test]
fn a_blocking_operation_parks() {
    let strategy = Adaptive::new(paceline::ControlLaw::Aws);
    let now = strategy.clock().now();
    strategy
        .send_rate()
        .record(now, SendPermit::sent_at(now), Outcome::Throttled);
    let limiter = paceline::SendLimiter::new(strategy.send_rate());
    let ahead: Vec<_> = (0..100).map(|_| limiter.token().reserve()).collect();
    let start = Instant::now();
    thread::scope(|scope| {
        let run = scope.spawn(|| strategy.run(|_| Ok::<_, Failure>(7)));
        thread::sleep(ms(50));
        drop(ahead);
        assert_eq!(run.join().expect("it returns").unwrap(), 7);
    });
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "{:?}",
        start.elapsed()
    );
}
