//! At a steady rate: who goes when, in which order, and how often each is woken.

use core::sync::atomic::Ordering::SeqCst;
use core::time::Duration;

use paceline::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings};

use crate::world::{MILLI, SECOND, World, at, limiter, ms};

/// 0.5 tokens/s by the published law, which stays there while nothing is recorded.
pub(crate) fn at_the_floor() -> SendRate {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    rate.record(at(0), SendPermit::sent_at(at(0)), Outcome::Throttled);
    rate
}

/// `tokens` a second, as long as nothing is changed; the bucket is empty.
pub(crate) fn fixed(tokens: u32) -> SendRate {
    let settings = PacedSettings::fixed(tokens, Duration::from_secs(1)).expect("in range");
    let rate = SendRate::paced(settings, Timestamp::ZERO);
    while rate.try_acquire(at(0)).is_ok() {}
    rate
}

#[test]
fn one_waiter_is_woken_once_when_its_turn_comes() {
    for rate in [at_the_floor(), fixed(5)] {
        let mut world = World::default();
        let wait = rate.try_acquire(at(0)).unwrap_err();
        let limiter = limiter(rate, &world.hands);
        let task = world.spawn(limiter.clone().into_tokens(1).acquire());
        world.run_until(20 * SECOND);
        assert_eq!(u128::from(world.tasks[task].went_at()), wait.as_nanos());
        assert_eq!(world.most_wakes(), 1);
        assert_eq!(world.hands.made.load(SeqCst), 1);
        assert_eq!(world.hands.armed.load(SeqCst), 1);
    }
}

#[test]
fn ten_thousand_waiters_go_in_order_and_are_woken_once_each() {
    for make in [at_the_floor, || fixed(1_000)] {
        let rate = make();
        let mut line: Vec<_> = (0..10_000).map(|_| rate.reserve(at(0))).collect();
        let mut world = World::default();
        let limiter = limiter(make(), &world.hands);
        for _ in 0..10_000 {
            world.spawn(limiter.clone().into_tokens(1).acquire());
        }
        world.run_until(20_001 * SECOND);
        assert!(
            world.order.iter().copied().eq(0..10_000),
            "first come, first served"
        );
        for (task, place) in world.tasks.iter().zip(&mut line) {
            let wait = place.claim(at(0)).expect_err("not minted");
            assert_eq!(u128::from(task.went_at()), wait.as_nanos());
        }
        assert_eq!(world.most_wakes(), 1);
        assert_eq!(world.hands.armed.load(SeqCst), 10_000);
    }
}

/// A line that never ends: who comes finds others there, for thousands of laps of the smallest
/// table.
#[test]
fn those_who_come_and_go_are_woken_once_each() {
    let mut world = World::default();
    let limiter = limiter(fixed(1_000), &world.hands);
    for _ in 0..150 {
        world.spawn(limiter.clone().into_tokens(1).acquire());
    }
    for round in 1..5_000 {
        world.run_until(round * MILLI);
        world.spawn(limiter.clone().into_tokens(1).acquire());
    }
    world.run_until(6 * SECOND);
    for (task, turn) in world.tasks.iter().zip(1..) {
        assert_eq!(task.went_at(), turn * MILLI);
    }
    assert_eq!(world.most_wakes(), 1);
}

#[test]
fn weights_are_waited_for_in_order_with_one_wake_each() {
    let mut world = World::default();
    let settings = PacedSettings::fixed(1_000, Duration::from_secs(1));
    let settings =
        settings.and_then(|fixed| fixed.to_builder().burst(Duration::from_secs(1)).build());
    let rate = SendRate::paced(settings.expect("in range"), Timestamp::ZERO);
    assert!(rate.try_acquire_n(at(0), 1_000).is_ok());
    let limiter = limiter(rate, &world.hands);
    let weights = [700, 1, 1_000, 30, 999, 5];
    for weight in weights {
        world.spawn(limiter.clone().into_tokens(weight).acquire());
    }
    world.run_until(10 * SECOND);
    let mut minted = 0;
    for (task, weight) in world.tasks.iter().zip(weights) {
        minted += u64::from(weight);
        assert_eq!(task.went_at(), minted * MILLI);
    }
    assert_eq!(world.most_wakes(), 1);
}

#[test]
fn who_is_dropped_leaves_no_debt_and_those_behind_move_up() {
    let mut world = World::default();
    let limiter = limiter(fixed(5), &world.hands);
    for _ in 0..6 {
        world.spawn(limiter.clone().into_tokens(1).acquire());
    }
    world.run_until(SECOND / 2); // two have gone
    world.drop_task(2);
    world.drop_task(4);
    world.run_until(10 * SECOND);
    let went = |task: usize| world.tasks[task].went_at() / MILLI;
    assert_eq!((went(0), went(1), went(3), went(5)), (200, 400, 600, 800));
    assert!(world.most_wakes() <= 3, "told that it moves up, twice");
    assert!(
        limiter.token().try_acquire().is_ok(),
        "the bucket has filled again"
    );
}

/// No waiter has to be polled for those behind it to be served: their own timers do.
#[test]
fn a_future_that_is_never_polled_again_holds_up_none() {
    let mut world = World::default();
    let limiter = limiter(fixed(5), &world.hands);
    for _ in 0..5 {
        world.spawn(limiter.clone().into_tokens(1).acquire());
    }
    world.hold(0);
    world.hold(2);
    world.run_until(10 * SECOND);
    for (task, millis) in [(1, 400), (3, 800), (4, 1_000)] {
        assert_eq!(world.tasks[task].went_at(), millis * MILLI);
        assert_eq!(world.tasks[task].polls, 2);
    }
}

#[test]
fn a_poll_for_no_reason_changes_nothing() {
    use core::future::Future;
    use core::pin::pin;
    use core::task::{Context, Waker};

    let world = World::default();
    let limiter = limiter(fixed(5), &world.hands);
    let mut waiting = pin!(limiter.token().acquire());
    for millis in 0..200 {
        world.hands.set(millis * MILLI);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
    }
    assert_eq!(world.hands.made.load(SeqCst), 1);
    assert_eq!(world.hands.armed.load(SeqCst), 1, "its time never changed");
    world.hands.set(200 * MILLI);
    let mut cx = Context::from_waker(Waker::noop());
    let done = waiting.as_mut().poll(&mut cx);
    assert!(done.is_ready());
    assert_eq!(
        waiting.as_mut().poll(&mut cx),
        done,
        "it says the same again"
    );
    assert_eq!(
        limiter.token().try_acquire().unwrap_err().wait(),
        Some(ms(200))
    );
}

/// A million tokens a second and a bucket of as many, which is empty.
fn a_million_a_second() -> SendRate {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::fixed(1_000_000, second)
        .and_then(|fixed| fixed.to_builder().burst(second).build());
    let rate = SendRate::paced(settings.expect("in range"), Timestamp::ZERO);
    assert!(rate.try_acquire_n(at(0), 1_000_000).is_ok());
    rate
}

/// Weights that are powers of two wait like others: each is woken once, by its own timer.
#[test]
fn weights_that_are_powers_of_two_arm_one_timer_each() {
    for (weight, waiters) in [(65_536, 400), (65_537, 400), (1_024, 4_000)] {
        let mut world = World::default();
        let limiter = limiter(a_million_a_second(), &world.hands);
        for _ in 0..waiters {
            world.spawn(limiter.clone().into_tokens(weight).acquire());
        }
        world.run_until(100 * SECOND);
        assert!(world.order.iter().copied().eq(0..waiters));
        assert_eq!(world.most_wakes(), 1, "weight {weight}");
        assert_eq!(world.hands.armed.load(SeqCst), waiters as u64);
    }
}

/// Some of ten thousand of all weights give up: two wakes each at most.
#[test]
fn ten_thousand_of_mixed_weights_are_woken_twice_at_most() {
    let mut world = World::default();
    let limiter = limiter(a_million_a_second(), &world.hands);
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..10_000 {
        let weight = 1 << rng.u32(..18);
        world.spawn(limiter.clone().into_tokens(weight).acquire());
    }
    for task in (5_000..10_000).step_by(100).rev() {
        world.drop_task(task);
    }
    world.run_until(10_000 * SECOND);
    let ended = world.tasks.iter().filter(|task| task.ended.is_some());
    assert_eq!(ended.count(), 10_000 - 50);
    assert_eq!(world.most_wakes(), 2, "told that it moves up, and to go");
}
