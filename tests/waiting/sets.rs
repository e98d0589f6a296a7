//! Waiting for several limits at once: one wait, one deadline, one cancellation.

use alloc::sync::Arc;
use core::{
    cell::{Cell, RefCell},
    future::Future,
    ops::Deref,
    time::Duration,
};
use std::thread;

use paceline::{
    AcquireError, Clock, ControlLaw, MonotonicClock, Outcome, SendLimiter, SendPermit, SendRate,
    SendSet, Timestamp,
    law::{DeclaredSettings, PacedSettings},
    set::SetError,
    wait::{AcquireRequest, Sleep},
};

use crate::steady::fixed;
use crate::world::{Hands, MILLI, Task, World, at, ms};

type Rates = [Arc<SendRate>; 2];
type Set = SendLimiter<SendSet<Arc<SendRate>, 2>, Hands, Hands>;
type Weights = Result<[u32; 2], SetError>;
type Request<Z> = AcquireRequest<SendSet<Arc<SendRate>, 2>, Hands, Z, Weights>;

/// A limiter of 5 requests and 1,000 tokens a second, both empty.
fn limiter(hands: &Hands) -> (Set, Rates) {
    let rates = [5, 1_000].map(|tokens| Arc::new(fixed(tokens)));
    let limiter = SendLimiter::new(SendSet::new(rates.clone()))
        .clock(hands.clone())
        .sleep_on(hands.clone());
    (limiter, rates)
}

fn not_in_time(limit: usize, millis: u64) -> SetError {
    let wait = ms(millis);
    let error = AcquireError::NotInTime { wait };
    SetError::Limit { limit, error }
}

/// Waits for a set as for one rate: the permit of the first limit.
async fn first<Z: Sleep>(request: Request<Z>) -> Result<SendPermit, AcquireError> {
    match request.acquire().await {
        Ok(permit) => Ok(permit.get(0).expect("it has a weight in the first")),
        Err(error) => Err(AcquireError::NotInTime {
            wait: error.wait().expect("it is a matter of time"),
        }),
    }
}

#[test]
fn a_request_sleeps_until_it_has_to_stand_in_each_line() {
    let mut world = World::default();
    let (limiter, rates) = limiter(&world.hands);
    world.spawn(first(limiter.clone().into_tokens([1, 40])));
    world.spawn(first(limiter.into_tokens([1, 40])));
    world.run_until(1_000 * MILLI);
    let went: Vec<_> = world.tasks.iter().map(Task::went_at).collect();
    assert_eq!(went, [200 * MILLI, 400 * MILLI]);
    assert_eq!(world.most_wakes(), 2);
    assert_eq!(rates[1].snapshot(world.hands.now()).waiting, 0);
}

#[test]
fn a_turn_at_the_deadline_is_waited_for() {
    let mut world = World::default();
    let (limiter, _) = limiter(&world.hands);
    world.spawn(first(limiter.into_tokens([1, 40]).within(ms(200))));
    world.run_until(1_000 * MILLI);
    assert_eq!(world.tasks[0].went_at(), 200 * MILLI);
}

#[test]
fn what_cannot_come_in_time_is_refused_with_its_limit() {
    let world = World::default();
    let (limiter, _) = limiter(&world.hands);
    for _ in 0..3 {
        let asked = || limiter.tokens([1, 50]).within(ms(199));
        assert_eq!(asked().reserve().map(drop), Err(not_in_time(0, 200)));
        assert_eq!(asked().acquire_blocking(), Err(not_in_time(0, 200)));
        let tried = limiter.tokens([1, 50]).try_acquire();
        assert_eq!(tried, Err(not_in_time(0, 200)));
    }
    // Nothing was left in either line.
    assert!(limiter.tokens([1, 50]).within(ms(200)).reserve().is_ok());
    let (given, rates) = (1, 2);
    assert_eq!(
        limiter.tokens([1]).reserve().map(drop),
        Err(SetError::Weights { given, rates })
    );
}

#[test]
fn a_place_says_which_limit_it_waits_for() {
    for (weights, limit, due) in [([1, 50], 0, 200), ([0, 50], 1, 50)] {
        let world = World::default();
        let (limiter, _) = limiter(&world.hands);
        let mut place = limiter.tokens(weights).reserve().expect("it may wait");
        // It looks sooner than it is due, to stand in the other line in time.
        while let Err(wait) = place.claim() {
            assert_eq!(place.limit(), limit);
            let now = world.hands.now().saturating_add(wait);
            world.hands.set(now.as_nanos());
        }
        assert_eq!(world.hands.now(), at(due * MILLI));
        let permit = place.claim();
        assert!(
            permit.is_ok() && place.claim() == permit,
            "the same ever after"
        );
    }
}

#[test]
fn a_request_is_woken_when_its_last_turn_comes_sooner() {
    let mut world = World::default();
    let (limiter, rates) = limiter(&world.hands);
    let ahead = limiter.tokens([5, 0]).reserve();
    let ahead = ahead.map(drop).expect_err("above the capacity");
    assert_eq!(ahead.limit(), Some(0));
    let places: Vec<_> = (0..5).map(|_| limiter.tokens([1, 1]).reserve()).collect();
    let task = world.spawn(first(limiter.clone().into_tokens([1, 40])));
    world.run_until(100 * MILLI);
    drop(places);
    world.settle();
    world.run_until(1_000 * MILLI);
    assert_eq!(world.tasks[task].went_at(), 200 * MILLI);

    // A credit brings the turn at once.
    let permit = rates[1].try_acquire_n(world.hands.now(), 50).expect("full");
    let task = world.spawn(first(limiter.into_tokens([1, 30])));
    world.run_until(1_010 * MILLI);
    assert!(world.tasks[task].ended.is_none());
    let settled = rates[1].settle(world.hands.now(), permit, 0);
    settled.expect("a credit");
    world.settle();
    assert_eq!(world.tasks[task].went_at(), 1_010 * MILLI);
}

#[test]
fn a_dropped_future_gives_back_every_place_and_wakes_the_next() {
    let mut world = World::default();
    let (limiter, rates) = limiter(&world.hands);
    let one = world.spawn(first(limiter.clone().into_tokens([1, 40])));
    let two = world.spawn(first(limiter.into_tokens([1, 40])));
    // The tokens of the first one have come by then, and wait for its request.
    world.run_until(150 * MILLI);
    world.drop_task(one);
    world.run_until(1_000 * MILLI);
    assert_eq!(world.tasks[two].went_at(), 200 * MILLI);
    let now = world.hands.now();
    assert_eq!(rates[0].snapshot(now).waiting, 0);
    assert!(rates[1].try_acquire_n(now, 50).is_ok(), "full again");
}

#[test]
fn a_turn_that_moves_past_the_deadline_is_refused_with_its_limit() {
    let mut world = World::default();
    let (limiter, rates) = limiter(&world.hands);
    let task = world.spawn(first(limiter.into_tokens([1, 40]).within(ms(250))));
    world.run_until(100 * MILLI);
    let slow = PacedSettings::fixed(1, Duration::from_secs(1)).expect("in range");
    rates[0]
        .set_paced(slow, world.hands.now())
        .expect("it is paced");
    world.run_until(1_000 * MILLI);
    let ended = world.tasks[task].ended.expect("it has ended");
    assert!(ended.1.is_err());
    assert!(ended.0 <= 250 * MILLI, "{ended:?}");
    assert_eq!(rates[1].snapshot(world.hands.now()).waiting, 0);
}

/// A rate that calls `before` whenever it is looked at.
#[derive(Clone, Copy)]
struct Watched<'a> {
    rate: &'a SendRate,
    before: &'a dyn Fn(),
}

impl Deref for Watched<'_> {
    type Target = SendRate;

    fn deref(&self) -> &SendRate {
        (self.before)();
        self.rate
    }
}

/// A set of `first` and of 1/s, which refuses: after the set has taken of `first`, and before it
/// looks at the other, a waiter for `first` looks. Returns when the waiter went.
fn waiter_went_at(first: SendRate, refused: impl Fn(SendSet<Watched<'_>, 2>, &Hands)) -> u64 {
    let world = RefCell::new(World::default());
    let hands = world.borrow().hands.clone();
    let first = Arc::new(first);
    let single = SendLimiter::new(Arc::clone(&first))
        .clock(hands.clone())
        .sleep_on(hands.clone());
    let (before, looked) = (first.snapshot(Timestamp::ZERO), Cell::new(false));
    let look = || {
        if first.snapshot(Timestamp::ZERO) != before && !looked.replace(true) {
            let waiter = single.clone().into_tokens(1).acquire();
            world.borrow_mut().spawn(waiter);
        }
    };
    let empty = fixed(1);
    let rates = [(&*first, &(|| {}) as &dyn Fn()), (&empty, &look)];
    let rates = rates.map(|(rate, before)| Watched { rate, before });
    refused(SendSet::new(rates), &hands);
    assert!(looked.get());
    let mut world = world.borrow_mut();
    assert!(world.tasks[0].ended.is_none(), "there was none for it");
    world.settle();
    world.run_until(10_000 * MILLI);
    world.tasks[0].went_at()
}

/// The waiter may have seen the bucket empty, and set its timer by that.
#[test]
fn a_refused_try_wakes_waiters_for_what_it_gives_back() {
    let second = Duration::from_secs(1);
    let settings =
        PacedSettings::fixed(10, second).and_then(|fixed| fixed.to_builder().burst(second).build());
    let full = SendRate::paced(settings.expect("in range"), Timestamp::ZERO);
    let went = waiter_went_at(full, |set, _| {
        let refused = set.try_acquire(Timestamp::ZERO, &[10, 1]);
        assert_eq!(refused, Err(not_in_time(1, 1_000)));
    });
    assert_eq!(went, 0);
}

#[test]
fn threads_wait_for_two_limits_at_once() {
    let start = MonotonicClock::new().now();
    let rates = [100, 1_000].map(|tokens| {
        let settings = PacedSettings::fixed(tokens, Duration::from_secs(1));
        SendRate::paced(settings.expect("in range"), start)
    });
    let [requests, tokens] = &rates;
    let ab = SendLimiter::new(SendSet::new([requests, tokens]));
    let ba = SendLimiter::new(SendSet::new([tokens, requests]));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let permit = ab.tokens([1, 5]).acquire_blocking().expect("its turn");
                ab.settle(permit, &[1, 2]).expect("a credit");
                ab.record(permit, Outcome::NotThrottled);
            });
            scope.spawn(|| ba.tokens([5, 1]).acquire_blocking().expect("its turn"));
        }
    });
    assert!(
        ab.tokens([1, 1])
            .within(Duration::from_secs(1))
            .reserve()
            .is_ok()
    );
}

#[test]
fn outcomes_and_costs_go_to_the_limits() {
    let mut world = World::default();
    world.run_until(1_000 * MILLI);
    let paced = || SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    let (one, two) = (paced(), paced());
    let limiter = SendLimiter::new(SendSet::new([&one, &two])).clock(world.hands.clone());
    let cut = || [&one, &two].map(|rate| rate.snapshot(world.hands.now()).enabled);
    let permit = limiter
        .tokens([1, 5])
        .try_acquire()
        .expect("nothing limits");
    limiter.record_by(&permit, Outcome::Throttled, &[1]);
    assert_eq!(cut(), [false, true]);
    limiter.record(permit, Outcome::Throttled);
    assert_eq!(cut(), [true, true]);
    // Ten seconds from now.
    let rate = SendRate::declared(DeclaredSettings::new(), Timestamp::ZERO);
    let limiter_of_one = SendLimiter::new(SendSet::new([&rate])).clock(world.hands.clone());
    let sent = limiter_of_one.tokens([1]).try_acquire().expect("it goes");
    limiter_of_one.record(sent, Outcome::ThrottledFor(ms(10_000)));
    let stops = |millis| rate.snapshot(at(millis * MILLI)).fill_rate.to_bits() == 0;
    assert_eq!([10_900, 11_100].map(stops), [true, false]);
    let (given, rates) = (1, 2);
    let settled = limiter.settle(permit, &[3]);
    assert_eq!(settled, Err(SetError::Weights { given, rates }));
}

/// The futures of a set of `Arc`s may be moved to other threads.
#[test]
fn a_future_of_arcs_is_send_and_static() {
    fn check(_: impl Future + Send + 'static) {}
    let world = World::default();
    let (limiter, _) = limiter(&world.hands);
    check(limiter.into_tokens([1, 1]).acquire());
}
