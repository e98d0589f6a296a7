//! throttle-net 2.0.0 (<https://crates.io/crates/throttle-net>): faults of waiting and of pauses.

use alloc::sync::Arc;
use core::time::Duration;

use paceline::{
    AcquireError, Outcome, SendLimiter, SendPermit, SendRate, SendSet, Timestamp,
    law::{DeclaredSettings, LimitReport, PacedSettings, Reset},
    set::SetError,
    wait::AcquireRequest,
};

use crate::world::{Hands, MILLI, SECOND, World, at, limiter, ms};

type Set = SendLimiter<SendSet<Arc<SendRate>, 2>, Hands, Hands>;
type SetRequest =
    AcquireRequest<SendSet<Arc<SendRate>, 2>, Hands, Hands, Result<[u32; 2], SetError>>;

/// A limiter of `tokens` in each `interval`, with a bucket of one token or of what `burst` brings,
/// full.
fn full(tokens: u32, interval: Duration, burst: Duration) -> SendRate {
    let settings = PacedSettings::fixed(tokens, interval)
        .and_then(|fixed| fixed.to_builder().burst(burst).build());
    SendRate::paced(settings.expect("in range"), Timestamp::ZERO)
}

/// The same, empty.
fn empty(tokens: u32, interval: Duration, burst: Duration) -> SendRate {
    let rate = full(tokens, interval, burst);
    while rate.try_acquire(at(0)).is_ok() {}
    rate
}

/// Five tokens a second, and none in the bucket.
fn five() -> SendRate {
    empty(5, ms(1_000), ms(200))
}

fn pair(rates: [&Arc<SendRate>; 2], world: &World) -> Set {
    SendLimiter::new(SendSet::new(rates.map(Arc::clone)))
        .clock(world.hands.clone())
        .sleep_on(world.hands.clone())
}

/// Waits for a set as for one rate: the permit of the first limit.
async fn first(request: SetRequest) -> Result<SendPermit, AcquireError> {
    match request.acquire().await {
        Ok(permit) => Ok(permit.get(0).expect("it has a weight in the first")),
        Err(error) => Err(AcquireError::NotInTime {
            wait: error.wait().expect("it is a matter of time"),
        }),
    }
}

/// When the tasks went, in milliseconds, of which the fixed point of a rate takes some nanoseconds.
fn went<const N: usize>(world: &World, tasks: [usize; N]) -> [u64; N] {
    tasks.map(|task| {
        let nanos = world.tasks[task].went_at();
        let millis = nanos.div_ceil(MILLI);
        assert!(millis * MILLI - nanos < 100, "{nanos}");
        millis
    })
}

// tests/regressions.rs: tn2_001_bulkhead_two_releases_wake_two_waiters,
// tn2_001_adaptive_two_settles_wake_two_waiters
#[test]
fn two_places_given_up_at_once_wake_two_waiters() {
    let mut world = World::default();
    let limiter = limiter(five(), &world.hands);
    let places = [(); 2].map(|()| limiter.token().reserve().expect("there is room"));
    let tasks = [(); 2].map(|()| world.spawn(limiter.clone().into_tokens(1).acquire()));
    world.run_until(100 * MILLI);
    // No task runs between the two.
    drop(places);
    world.settle();
    world.run_until(SECOND);
    assert_eq!(went(&world, tasks), [200, 400]);
}

// tests/regressions.rs: tn2_001_adaptive_refund_wakes_additional_waiters
#[test]
fn two_refunds_of_three_tokens_wake_three_waiters() {
    let mut world = World::default();
    let rate = full(1, ms(1_000), ms(3_000));
    let taken = [1, 2].map(|weight| rate.try_acquire_n(at(0), weight).expect("full"));
    let limiter = limiter(rate, &world.hands);
    let tasks = [(); 3].map(|()| world.spawn(limiter.clone().into_tokens(1).acquire()));
    world.run_until(10 * MILLI);
    for permit in taken {
        let settled = limiter.send_rate().settle(at(10 * MILLI), permit, 0);
        settled.expect("a credit");
    }
    world.settle();
    assert_eq!(went(&world, tasks), [10; 3]);
}

// tests/regressions.rs: tn2_002_layered_noisy_tenant_cannot_starve_the_global_scope,
// tn2_002_hybrid_waiters_hold_nothing_in_a_shared_constituent
#[test]
fn a_deep_backlog_on_a_slow_limit_leaves_the_shared_one() {
    let mut world = World::default();
    let minute = ms(60_000);
    let shared = Arc::new(full(10, ms(1_000), ms(1_000)));
    let tenant = || Arc::new(full(1, minute, ms(1_000)));
    let noisy = pair([&tenant(), &shared], &world);
    for _ in 0..200 {
        world.spawn(first(noisy.clone().into_tokens([1, 1])));
    }
    assert_eq!(world.order, [0], "one token a minute");
    world.run_until(SECOND);
    let left = shared.snapshot(at(SECOND));
    assert_eq!((left.available, left.waiting), (10.0, 0));
    let quiet = [(); 15].map(|()| {
        let set = pair([&tenant(), &shared], &world);
        world.spawn(first(set.into_tokens([1, 1])))
    });
    world.run_until(61 * SECOND);
    let at_once = [1_000; 10].into_iter();
    let in_turn = [1_100, 1_200, 1_300, 1_400, 1_500];
    let expected: Vec<_> = at_once.chain(in_turn).collect();
    assert_eq!(went(&world, quiet).to_vec(), expected);
    assert_eq!(went(&world, [1]), [60_000], "the noisy tenant's second");
}

// tests/regressions.rs: tn2_006_timeout_fires_while_a_constituent_says_retry_now
#[test]
fn a_deadline_ends_a_wait_that_is_told_to_look_again() {
    let mut world = World::default();
    // Before its first report a declared limit says: look again in 50 ms.
    let rate = SendRate::declared(DeclaredSettings::new().first_burst(1), Timestamp::ZERO);
    assert!(rate.try_acquire(at(0)).is_ok());
    let limiter = limiter(rate, &world.hands);
    let task = world.spawn(limiter.clone().into_tokens(1).within(ms(270)).acquire());
    world.run_until(10 * SECOND);
    let (ended, result) = world.tasks[task].ended.expect("it has ended");
    assert!(
        result.is_err() && ended <= 270 * MILLI,
        "{ended}: {result:?}"
    );
    assert_eq!(limiter.send_rate().snapshot(at(10 * SECOND)).waiting, 0);
}

// tests/regressions.rs: tn2_006_zero_timeout_fails_at_once
#[test]
fn a_timeout_of_nothing_takes_what_is_there_or_fails_at_once() {
    let mut world = World::default();
    let limiter = limiter(five(), &world.hands);
    let ask = || limiter.clone().into_tokens(1).within(Duration::ZERO);
    let wait = ms(200);
    let task = world.spawn(ask().acquire());
    let refused = Err(AcquireError::NotInTime { wait });
    assert_eq!(world.tasks[task].ended, Some((0, refused)));
    assert_eq!(ask().acquire_blocking(), refused);
    world.run_until(200 * MILLI);
    let task = world.spawn(ask().acquire());
    assert_eq!(went(&world, [task]), [200], "the refused took no place");
}

// tests/regressions.rs: tn2_009_pause_holds_waiters_that_already_reserved
#[test]
fn a_pause_holds_those_that_stand_in_line() {
    let mut world = World::default();
    let limiter = limiter(five(), &world.hands);
    let tasks = [(); 3].map(|()| world.spawn(limiter.clone().into_tokens(1).acquire()));
    world.run_until(100 * MILLI);
    let pause = Outcome::ThrottledFor(ms(1_000));
    limiter.record(SendPermit::sent_at(at(50 * MILLI)), pause);
    world.settle();
    world.run_until(10 * SECOND);
    assert_eq!(
        went(&world, tasks),
        [1_200, 1_400, 1_600],
        "half a token was there"
    );
}

// tests/regressions.rs: tn2_010_resume_wakes_paused_waiters;
// tests/resume.rs: resume_wakes_paused_waiters_and_leaves_refill_waiters_asleep
#[test]
fn a_pause_that_is_forgotten_wakes_its_waiters_and_no_other() {
    let mut world = World::default();
    let (paused, other) = (limiter(five(), &world.hands), limiter(five(), &world.hands));
    let pause = Outcome::ThrottledFor(ms(30_000));
    paused.record(SendPermit::sent_at(at(0)), pause);
    let waits = world.spawn(paused.clone().into_tokens(1).acquire());
    let refills = world.spawn(other.clone().into_tokens(1).acquire());
    world.run_until(100 * MILLI);
    paused.send_rate().forget_throttles(at(100 * MILLI));
    world.settle();
    assert_eq!(world.tasks[refills].polls, 1, "it sleeps on");
    world.run_until(SECOND);
    // What was promised to those in line goes at once.
    assert_eq!(went(&world, [waits, refills]), [100, 200]);
}

// tests/regressions.rs: tn2_010_resume_wakes_composite_waiters
#[test]
fn a_pause_that_is_forgotten_wakes_waiters_of_sets() {
    let mut world = World::default();
    let rates = [five(), five()].map(Arc::new);
    let pause = Outcome::ThrottledFor(ms(30_000));
    rates[1].record(at(0), SendPermit::sent_at(at(0)), pause);
    let set = pair([&rates[0], &rates[1]], &world);
    let task = world.spawn(first(set.into_tokens([1, 1])));
    world.run_until(400 * MILLI);
    rates[1].forget_throttles(at(400 * MILLI));
    world.settle();
    world.run_until(SECOND);
    assert_eq!(went(&world, [task]), [400]);
}

// tests/regressions.rs: tn2_010_resume_wakes_sliding_waiters
#[test]
fn a_window_that_is_forgotten_wakes_its_waiters() {
    let mut world = World::default();
    let rate = SendRate::declared(DeclaredSettings::new().first_burst(1), Timestamp::ZERO);
    let permit = rate.try_acquire(at(0)).expect("the first goes");
    let used_up = LimitReport::new(0)
        .limit(100)
        .window(ms(60_000))
        .refills(false)
        .reset(Reset::In(ms(60_000)));
    rate.observe(at(MILLI), permit, &used_up.into());
    let limiter = limiter(rate, &world.hands);
    let task = world.spawn(limiter.clone().into_tokens(1).acquire());
    world.run_until(2 * SECOND);
    assert!(world.order.is_empty());
    limiter.send_rate().forget_throttles(at(2 * SECOND));
    world.settle();
    assert_eq!(went(&world, [task]), [2_000]);
}

// tests/regressions.rs: tn2_016_settle_charges_overrun_while_paused
#[test]
fn an_overrun_that_is_settled_in_a_pause_is_owed() {
    let next = |settled_at: u64| {
        let rate = full(100, ms(1_000), ms(1_000));
        let permit = rate.try_acquire_n(at(0), 60).expect("full");
        let settle = |now| rate.settle(at(now), permit, 560).expect("a debit");
        if settled_at == 0 {
            settle(0);
        }
        rate.record(at(0), permit, Outcome::ThrottledFor(ms(5_000)));
        if settled_at > 0 {
            settle(settled_at);
        }
        rate.try_acquire(at(4 * SECOND)).expect_err("it is owed")
    };
    // A pause empties the bucket, and mints nothing: 500 tokens are owed, and one more is asked
    // for.
    assert_eq!(next(2 * SECOND), ms(1_000 + 5_010));
    // Settled before the pause: the bucket paid for 40 of the 500.
    assert_eq!(next(0), ms(1_000 + 4_610));
}

// CHANGELOG.md, 2.0.0: large-cost starvation (TN-023); tests/stress.rs:
// waiting_composites_never_over_admit_any_scope_on_a_multi_threaded_runtime
#[test]
fn a_heavy_waiter_is_not_passed_by_light_ones() {
    let mut world = World::default();
    let requests = Arc::new(empty(1_000, ms(1_000), ms(1_000)));
    let tokens = Arc::new(empty(100, ms(1_000), ms(1_000)));
    let set = pair([&requests, &tokens], &world);
    let heavy = world.spawn(first(set.clone().into_tokens([1, 100])));
    let mut lights = Vec::new();
    for millis in 1..1_000 {
        world.run_until(millis * MILLI);
        if millis % 20 == 0 {
            lights.push(world.spawn(first(set.clone().into_tokens([1, 1]))));
        }
    }
    world.run_until(2 * SECOND);
    assert_eq!(went(&world, [heavy]), [1_000]);
    let turns = (1..).map(|number| 1_000 + 10 * number);
    for (light, turn) in lights.into_iter().zip(turns) {
        assert_eq!(went(&world, [light]), [turn]);
    }
}

// CHANGELOG.md, 2.0.0: windows of nothing were unlimited (TN-009), slow rates (TN-020), capacities
// above 4.29 million were clamped (TN-010)
#[test]
fn intervals_of_nothing_are_errors_and_no_rate_is_clamped() {
    assert!(PacedSettings::fixed(1, Duration::ZERO).is_err());
    assert!(PacedSettings::fixed(0, ms(1_000)).is_err());
    let slow = full(1, ms(1_000_000), ms(1_000));
    assert!(slow.try_acquire(at(0)).is_ok());
    let wait = slow.try_acquire(at(0)).expect_err("it had one");
    assert_eq!(wait.as_micros() / 10, 100_000_000, "to 2^-28");
    let capacity = 16_000_000;
    let wide = full(capacity, ms(1_000), ms(1_000));
    assert!(wide.try_acquire_n(at(0), capacity).is_ok());
    assert!(wide.try_acquire(at(0)).is_err());
    assert!(wide.try_acquire_n(at(SECOND), capacity).is_ok());
    let above = PacedSettings::fixed(u32::MAX, Duration::from_nanos(1));
    assert!(above.is_err(), "a rate that cannot be kept is refused");
}
