//! Foreground before background.

use core::time::Duration;
use std::thread;

use paceline::{
    AcquireError, Class, Clock, MonotonicClock, SendLimiter, SendRate, law::PacedSettings,
};

use crate::steady::fixed;
use crate::world::{Limiter, MILLI, SECOND, World, at, limiter, ms};

#[test]
fn foreground_goes_before_background_that_waits() {
    let mut world = World::default();
    let limiter = limiter(fixed(8), &world.hands);
    let behind = || {
        limiter
            .clone()
            .into_tokens(1)
            .class(Class::Background)
            .acquire()
    };
    let ahead = || limiter.clone().into_tokens(1).acquire();
    let first: Vec<_> = (0..4).map(|_| world.spawn(behind())).collect();
    let then: Vec<_> = (0..4).map(|_| world.spawn(ahead())).collect();
    world.run_until(2 * SECOND);
    let order: Vec<_> = then.iter().chain(&first).copied().collect();
    assert_eq!(world.order, order);
    let went = |task: &usize| world.tasks[*task].went_at();
    let times: Vec<_> = order.iter().map(went).collect();
    let even: Vec<_> = (1..=8).map(|nth| nth * 125 * MILLI).collect();
    assert_eq!(times, even);
}

#[test]
fn background_alone_uses_the_whole_rate() {
    let mut world = World::default();
    let limiter = limiter(fixed(1_000), &world.hands);
    for _ in 0..2_000 {
        let acquire = limiter.clone().into_tokens(1).class(Class::Background);
        world.spawn(acquire.acquire());
    }
    world.run_until(3 * SECOND);
    assert!(world.order.iter().copied().eq(0..2_000), "in order");
    // A bucket of 50 tokens, of which three quarters are left alone.
    let last = world.tasks[1_999].went_at();
    assert!((2_036 * MILLI..2_041 * MILLI).contains(&last), "{last}");
    let polls: u32 = world.tasks.iter().map(|task| task.polls).sum();
    assert!(polls <= 10_000, "{polls} polls");
}

#[test]
fn a_waiter_that_is_never_polled_holds_up_no_other() {
    let mut world = World::default();
    let limiter = limiter(fixed(8), &world.hands);
    let behind = || {
        limiter
            .clone()
            .into_tokens(1)
            .class(Class::Background)
            .acquire()
    };
    let tasks: Vec<_> = (0..4).map(|_| world.spawn(behind())).collect();
    world.hold(tasks[0]);
    world.run_until(60 * SECOND);
    assert_eq!(world.order, tasks[1..]);
    let last = world.tasks[tasks[3]].went_at();
    // Nobody else looks, so their own timers serve: four times their estimates.
    assert!(last <= 2_100 * MILLI, "{last}");
}

#[test]
fn a_waiter_that_is_dropped_leaves_its_token_to_the_next() {
    let mut world = World::default();
    let limiter = limiter(fixed(8), &world.hands);
    let behind = || {
        limiter
            .clone()
            .into_tokens(1)
            .class(Class::Background)
            .acquire()
    };
    let tasks: Vec<_> = (0..3).map(|_| world.spawn(behind())).collect();
    world.run_until(10 * MILLI);
    world.drop_task(tasks[0]);
    world.run_until(SECOND);
    assert_eq!(world.tasks[tasks[1]].went_at(), 125 * MILLI);
    assert_eq!(world.tasks[tasks[2]].went_at(), 250 * MILLI);
}

/// What it leaves in the bucket of a learned rate a burst of the foreground would find.
#[test]
fn the_first_looks_when_a_token_may_be_free() {
    let mut world = World::default();
    let limiter = limiter(fixed(8), &world.hands);
    let behind = |limiter: &Limiter| {
        let request = limiter.clone().into_tokens(1).class(Class::Background);
        request.acquire()
    };
    // The foreground takes 20 tokens for each of background.
    for _ in 0..3 {
        world.spawn(behind(&limiter));
    }
    for _ in 0..60 {
        world.spawn(limiter.clone().into_tokens(1).acquire());
    }
    world.run_until(63 * 125 * MILLI);
    assert_eq!(world.order.len(), 63);
    // Then it ends, and the estimate is of the past.
    let wait = limiter
        .send_rate()
        .background()
        .try_acquire(at(world.hands.nanos()));
    assert!(wait.expect_err("none is there") > ms(250), "{wait:?}");
    let last = world.spawn(behind(&limiter));
    world.run_until(70 * 125 * MILLI);
    assert_eq!(world.tasks[last].went_at(), 64 * 125 * MILLI);
}

#[test]
fn a_deadline_refuses_when_it_comes() {
    let mut world = World::default();
    let limiter = limiter(fixed(8), &world.hands);
    let behind = |within| {
        let request = limiter.clone().into_tokens(1).class(Class::Background);
        request.within(within).acquire()
    };
    let tasks = [1_000, 200, 260].map(|within| world.spawn(behind(ms(within))));
    // The second cannot come in time by the estimate, at once.
    let refused = AcquireError::NotInTime { wait: ms(250) };
    assert_eq!(world.tasks[tasks[1]].ended, Some((0, Err(refused))));
    // Then the foreground takes everything: the last one learns at its deadline.
    for _ in 0..8 {
        world.spawn(limiter.clone().into_tokens(1).acquire());
    }
    world.run_until(SECOND);
    let (at, last) = world.tasks[tasks[2]].ended.expect("it has ended");
    assert!(last.is_err() && at <= 260 * MILLI, "{at} {last:?}");
}

#[test]
fn threads_wait_behind_the_line() {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::fixed(2_000, second).expect("in range");
    let rate = SendRate::paced(settings, MonotonicClock::new().now());
    let limiter = SendLimiter::new(&rate);
    thread::scope(|scope| {
        for number in 0..8 {
            let class = if number % 2 == 0 {
                Class::Background
            } else {
                Class::Foreground
            };
            let limiter = &limiter;
            scope.spawn(move || {
                for _ in 0..50 {
                    let acquired = limiter.token().class(class).acquire_blocking();
                    limiter.record(acquired.unwrap(), paceline::Outcome::NotThrottled);
                }
            });
        }
    });
    let seen = rate.snapshot(MonotonicClock::new().now()).background;
    assert_eq!((seen.waiting, seen.released), (0, 200));
}
