//! Real runtimes: tokio under its paused clock, and async-io in real time.

use alloc::sync::Arc;
use core::{
    future::poll_fn,
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};
use std::time::Instant;

use paceline::{
    Clock, MonotonicClock, SendLimiter, SendRate, TokioClock,
    law::PacedSettings,
    wait::{AsyncIoSleep, Sleep, Timer},
};

use crate::steady::fixed;
use crate::world::{at, ms};

fn limiter() -> SendLimiter<Arc<SendRate>, TokioClock> {
    SendLimiter::new(Arc::new(fixed(5))).clock(TokioClock::new())
}

#[tokio::test(start_paused = true)]
async fn owned_futures_are_spawned_and_go_in_order() {
    let limiter = limiter();
    let tasks: Vec<_> = (0..5)
        .map(|_| tokio::spawn(limiter.clone().into_tokens(1).acquire()))
        .collect();
    for (task, turn) in tasks.into_iter().zip(1..) {
        let permit = task.await.expect("it runs").expect("there is no deadline");
        let late = permit.time().saturating_since(at(turn * 200_000_000));
        assert!(
            late <= ms(1),
            "tokio's timer is a millisecond late at most: {late:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn select_cancels_and_the_place_goes_back() {
    let limiter = limiter();
    for _ in 0..20 {
        tokio::select! {
            biased;
            permit = limiter.token().acquire() => panic!("{permit:?}"),
            () = tokio::time::sleep(ms(5)) => {}
        }
    }
    // 100 ms have passed, and half of a token has been minted.
    let wait = limiter.token().try_acquire().unwrap_err().wait();
    assert!(wait <= Some(ms(100)), "{wait:?}");
}

#[tokio::test(start_paused = true)]
async fn select_in_a_loop_keeps_the_place() {
    let limiter = limiter();
    let mut waiting = pin!(limiter.token().acquire());
    let mut ticks = 0;
    let permit = loop {
        tokio::select! {
            biased;
            permit = &mut waiting => break permit.expect("there is no deadline"),
            () = tokio::time::sleep(ms(30)) => ticks += 1,
        }
    };
    assert_eq!((ticks, permit.time().as_nanos() / 1_000_000), (6, 200));
}

#[tokio::test(start_paused = true)]
async fn timeout_refuses_nothing_but_gives_back() {
    let limiter = limiter();
    let in_time = tokio::time::timeout(ms(100), limiter.token().acquire()).await;
    assert!(in_time.is_err());
    assert!(limiter.token().within(ms(101)).acquire().await.is_ok());
}

/// Real time: three waiters of 100 tokens a second.
#[test]
fn async_io_serves_them_too() {
    let settings = PacedSettings::fixed(100, Duration::from_secs(1)).expect("in range");
    let clock = MonotonicClock::new();
    let start = Instant::now();
    let rate = SendRate::paced(settings, clock.now());
    while rate.try_acquire(clock.now()).is_ok() {}
    let limiter = SendLimiter::new(&rate)
        .clock(clock)
        .sleep_on(AsyncIoSleep::new());
    for _ in 0..3 {
        let permit = async_io::block_on(limiter.token().within(ms(10_000)).acquire());
        assert!(permit.is_ok(), "{permit:?}");
    }
    let took = start.elapsed();
    // 30 ms by one clock, as another counts them.
    assert!((ms(29)..ms(10_000)).contains(&took), "{took:?}");
}

#[test]
fn an_armed_timer_has_not_elapsed() {
    let mut context = Context::from_waker(Waker::noop());
    let mut boxed: Box<dyn Timer> = Box::new(AsyncIoSleep::new().timer());
    boxed.arm(Duration::from_secs(3_600));
    assert!(boxed.poll_elapsed(&mut context).is_pending());
    boxed.arm(Duration::ZERO);
    async_io::block_on(poll_fn(|context| boxed.poll_elapsed(context)));
}

/// By the system's clock a second of tokio's paused time is nothing, and a wait for it never ends.
#[tokio::test(start_paused = true)]
async fn time_that_stands_still_but_for_timers_is_exact() {
    let (clock, real) = (TokioClock::new(), Instant::now());
    let rate = SendRate::paced(
        PacedSettings::fixed(2, Duration::from_secs(1)).unwrap(),
        clock.now(),
    );
    let limiter = SendLimiter::new(&rate).clock(clock);
    let mut times = Vec::new();
    for _ in 0..5 {
        let acquired = tokio::time::timeout(Duration::from_secs(30), limiter.token().acquire());
        let _permit = acquired.await.unwrap().unwrap();
        times.push(clock.now().as_nanos() / 1_000_000);
    }
    // tokio's timers round up to milliseconds.
    assert_eq!(times, [0, 501, 1_001, 1_501, 2_001]);
    assert!(real.elapsed() < Duration::from_secs(2));
}
