//! Waiting for the first of several limiters: one wait, one deadline, one cancellation.

use alloc::sync::Arc;
use core::future::Future;
use core::time::Duration;
use std::sync::{Mutex, mpsc};
use std::thread;

use paceline::{
    AcquireError, Clock, MonotonicClock, Outcome, SendLimiter, SendPermit, SendPool, SendRate,
    SendSet, Timestamp,
    law::PacedSettings,
    pool::{PoolError, PoolPermit},
    set::SetError,
    wait::AcquireRequest,
};

use crate::world::{Hands, MILLI, SECOND, World, at, ms};

type Pool = SendPool<Arc<SendRate>, 3>;
type Limiter = SendLimiter<Pool, Hands, Hands>;

/// `tokens` a second, and a bucket of a second's tokens that is empty.
fn fixed(tokens: u32) -> Arc<SendRate> {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::fixed(tokens, second)
        .and_then(|fixed| fixed.to_builder().burst(second).build());
    let rate = SendRate::paced(settings.expect("in range"), Timestamp::ZERO);
    assert!(rate.try_acquire_n(at(0), tokens).is_ok());
    Arc::new(rate)
}

const RATES: [u32; 3] = [4, 8, 20];

fn limiter(hands: &Hands) -> (Limiter, [Arc<SendRate>; 3]) {
    let rates = RATES.map(fixed);
    let pool = SendPool::new(rates.clone()).expect("a pool");
    let limiter = SendLimiter::new(pool).clock(hands.clone());
    (limiter.sleep_on(hands.clone()), rates)
}

/// Which member served which task.
type Served = Arc<Mutex<Vec<(usize, usize)>>>;

/// Waits for `request`, and notes the member under `task`.
fn noting(
    request: AcquireRequest<Pool, Hands, Hands>,
    served: &Served,
    task: usize,
) -> impl Future<Output = Result<SendPermit, AcquireError>> + Send + 'static {
    let served = Arc::clone(served);
    async move {
        let permit = match request.acquire().await {
            Ok(permit) => permit,
            Err(PoolError::Member { error, .. }) => return Err(error),
            Err(other) => panic!("{other}"),
        };
        served.lock().unwrap().push((task, permit.index()));
        Ok(permit.permit())
    }
}

#[test]
fn waiters_go_in_order_by_all_members_and_lose_no_token() {
    const WAITERS: usize = 512;
    for given_up in [0, 5] {
        let mut world = World::default();
        let (limiter, rates) = limiter(&world.hands);
        let served = Served::default();
        for task in 0..WAITERS {
            world.spawn(noting(limiter.clone().into_tokens(1), &served, task));
        }
        let gives_up = |task: usize| given_up > 0 && task % given_up == 2;
        world.run_until(SECOND);
        for task in (0..WAITERS).filter(|task| gives_up(*task)) {
            world.drop_task(task);
        }
        let left = (0..WAITERS).filter(|task| *task < 32 || !gives_up(*task));
        let left = left.count();
        // All members together let 32 go in each second, the last of them by 10 ms late.
        let end = u64::try_from(left).unwrap() * SECOND / 32;
        world.run_until(end + 20 * MILLI);
        let served = served.lock().unwrap();
        assert_eq!(served.len(), left, "{given_up}");
        let tasks = |member| served.iter().filter(move |(_, index)| *index == member);
        for (member, rate) in rates.iter().enumerate() {
            assert!(tasks(member).is_sorted(), "first come, first served");
            // No token is lost, and none is granted twice.
            let minted = u128::from(RATES[member]) * u128::from(world.hands.nanos());
            let minted = usize::try_from(minted / u128::from(SECOND)).unwrap();
            let held = (0..64).filter(|_| rate.try_acquire(world.hands.now()).is_ok());
            assert_eq!(tasks(member).count() + held.count(), minted, "{member}");
            assert_eq!(rate.snapshot(world.hands.now()).waiting, 0);
        }
        assert!(served.is_sorted_by_key(|(task, _)| *task), "as they came");
    }
}

/// Behind 63 others the request waits for 2 s by all members, and for 3.2 s by the fastest alone.
#[test]
fn a_deadline_counts_on_all_members() {
    let mut world = World::default();
    let (limiter, rates) = limiter(&world.hands);
    let served = Served::default();
    for task in 0..63 {
        world.spawn(noting(limiter.clone().into_tokens(1), &served, task));
    }
    let asked = |micros| limiter.token().within(Duration::from_micros(micros));
    let refused = asked(1_999_998).reserve().map(drop);
    assert_eq!(asked(1_999_998).acquire_blocking().map(drop), refused);
    let wait = refused.map_err(|error| match error {
        PoolError::Member { index: 2, error } => error.wait().map(|wait| wait.as_micros()),
        other => panic!("{other}"),
    });
    assert_eq!(wait, Err(Some(1_999_999)));
    let waiting = rates.each_ref().map(|rate| rate.snapshot(at(0)).waiting);
    assert_eq!(waiting, [63; 3], "a refusal takes no place");
    let request = limiter.clone().into_tokens(1).within(ms(2_001));
    let task = world.spawn(noting(request, &served, 63));
    world.run_until(3 * SECOND);
    assert!(world.tasks[task].went_at() <= 2 * SECOND + MILLI);
}

/// The account of two keys is empty, and each key has tokens.
#[test]
fn a_refusal_by_a_deadline_names_the_limit_of_the_member() {
    let world = World::default();
    let second = Duration::from_secs(1);
    let fixed = |tokens| {
        let settings = PacedSettings::fixed(tokens, second).expect("in range");
        Arc::new(SendRate::paced(settings, at(0)))
    };
    let (keys, account) = ([fixed(100), fixed(100)], fixed(1));
    assert!(account.try_acquire(at(0)).is_ok());
    let sets = keys.map(|key| SendSet::new([key, account.clone()]));
    let limiter = SendLimiter::new(SendPool::new(sets).expect("a pool"))
        .clock(world.hands.clone())
        .sleep_on(world.hands.clone());
    let asked = || limiter.tokens([1, 1]).within(ms(10));
    let error = AcquireError::NotInTime { wait: second };
    let error = SetError::Limit { limit: 1, error };
    let refused = Err(PoolError::Member { index: 0, error });
    assert_eq!(limiter.tokens([1, 1]).try_acquire().map(drop), refused);
    let refused = asked().reserve().map(drop);
    let blocked = asked().acquire_blocking().map(drop);
    assert_eq!(refused, blocked);
    let Err(PoolError::Member {
        error: SetError::Limit { limit, .. },
        ..
    }) = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!(limit, 1);
}

/// A member whose bucket never holds so many does not turn the deadline off.
#[test]
fn a_deadline_holds_beside_a_member_that_is_too_small() {
    let world = World::default();
    let second = Duration::from_secs(1);
    let of = |tokens: u32| {
        let settings = PacedSettings::fixed(tokens, second)
            .and_then(|fixed| fixed.to_builder().burst(second).build());
        Arc::new(SendRate::paced(settings.expect("in range"), at(0)))
    };
    let (small, large) = (of(5), of(10));
    assert!(large.try_acquire_n(at(0), 10).is_ok());
    let refused = |pool: SendPool<Arc<SendRate>, 2>| {
        let limiter = SendLimiter::new(pool)
            .clock(world.hands.clone())
            .sleep_on(world.hands.clone());
        let refused = limiter.tokens(10).within(ms(10)).reserve().map(drop);
        refused.map_err(|error| error.index())
    };
    let alone = SendPool::<_, 2>::of([large.clone()]).expect("a pool");
    assert_eq!(refused(alone), Err(Some(0)));
    let pool = SendPool::new([small, large]).expect("a pool");
    assert_eq!(refused(pool), Err(Some(1)));
}

#[test]
fn a_turn_that_has_moved_past_the_deadline_is_refused_there() {
    let mut world = World::default();
    let (limiter, rates) = limiter(&world.hands);
    let served = Served::default();
    let request = limiter.into_tokens(1).within(ms(100));
    let task = world.spawn(noting(request, &served, 0));
    let slow = PacedSettings::fixed(1, Duration::from_secs(60))
        .and_then(|slow| slow.to_builder().burst(Duration::from_secs(1)).build());
    for rate in &rates {
        let set = rate.set_paced(slow.expect("in range"), at(0));
        set.expect("it is paced");
    }
    world.settle();
    world.run_until(SECOND);
    let (ended, refused) = world.tasks[task].ended.expect("it has ended");
    assert!(
        refused.is_err() && ended <= 100 * MILLI,
        "{ended} {refused:?}"
    );
    let waiting = rates.map(|rate| rate.snapshot(at(SECOND)).waiting);
    assert_eq!(waiting, [0; 3]);
}

#[test]
fn a_dropped_future_gives_back_every_place_and_wakes_the_next() {
    let mut world = World::default();
    let (limiter, rates) = limiter(&world.hands);
    let served = Served::default();
    let one = world.spawn(noting(limiter.clone().into_tokens(1), &served, 0));
    let two = world.spawn(noting(limiter.into_tokens(1), &served, 1));
    world.deafen(one);
    world.hands.set(60 * MILLI); // the token of the fastest has come for the first
    world.drop_task(one);
    assert_eq!(world.tasks[two].went_at(), 60 * MILLI);
    assert_eq!(*served.lock().unwrap(), [(1, 2)]);
    let waiting = rates.map(|rate| rate.snapshot(world.hands.now()).waiting);
    assert_eq!(waiting, [0; 3]);
}

#[test]
fn a_pause_of_a_member_sends_waiters_to_the_others() {
    let mut world = World::default();
    let rates = [(); 3].map(|()| Arc::new(SendRate::paced(PacedSettings::new(), at(0))));
    for rate in &rates[..2] {
        let hint = Outcome::ThrottledFor(Duration::from_secs(30));
        rate.record(at(0), SendPermit::sent_at(at(0)), hint);
    }
    let pool = SendPool::new(rates.clone()).expect("a pool");
    let limiter = SendLimiter::new(pool)
        .clock(world.hands.clone())
        .sleep_on(world.hands.clone());
    let served = Served::default();
    for task in 0..3 {
        world.spawn(noting(limiter.clone().into_tokens(1), &served, task));
    }
    assert_eq!(*served.lock().unwrap(), [(0, 2), (1, 2), (2, 2)]);
    let hint = Outcome::ThrottledFor(Duration::from_secs(50));
    rates[2].record(at(0), SendPermit::sent_at(at(0)), hint);
    let refused = limiter.token().try_acquire();
    let Err(PoolError::Spent { wait }) = refused else {
        panic!("{refused:?}");
    };
    assert!(wait >= ms(30_000), "{wait:?}");
    // A request may go as soon as the first pause ends, by the token that is minted then.
    let refused = limiter.token().within(ms(1)).reserve().map(drop);
    let Err(PoolError::Spent { wait: least }) = refused else {
        panic!("{refused:?}");
    };
    assert!((ms(30_000)..=wait).contains(&least), "{least:?}");
    let task = world.spawn(noting(limiter.into_tokens(1), &served, 3));
    world.run_until(49 * SECOND);
    assert!(world.tasks[task].went_at() >= 30 * SECOND);
    assert!(served.lock().unwrap()[3].1 < 2);
}

/// A request with two limits each, of which one is shared.
#[test]
fn a_pool_of_sets_waits_for_the_limit_of_all() {
    let world = World::default();
    let (account, keys) = (fixed(8), [fixed(20), fixed(20)]);
    let sets = keys.map(|key| SendSet::new([key, Arc::clone(&account)]));
    let pool = SendPool::new(sets).expect("a pool");
    let limiter = SendLimiter::new(pool).clock(world.hands.clone());
    let mut places = [(); 4].map(|()| limiter.tokens([1, 1]).reserve().expect("a place"));
    let mut went = Vec::new();
    for millis in (0..2_000).step_by(5) {
        world.hands.set(millis * MILLI);
        for (number, place) in places.iter_mut().enumerate() {
            if place.claim().is_ok() && !went.iter().any(|(gone, _)| *gone == number) {
                went.push((number, millis));
            }
        }
    }
    // One in 125 ms, by a look each 5 ms.
    assert_eq!(went, [(0, 125), (1, 250), (2, 375), (3, 500)]);
    let error = SetError::Weights { given: 1, rates: 2 };
    let refused = limiter.tokens([1]).try_acquire();
    assert_eq!(refused, Err(PoolError::Member { index: 0, error }));
}

/// Workers on threads that always have work, by the system's clock.
#[test]
fn threads_take_what_all_members_mint() {
    const EACH: usize = 40;
    let start = MonotonicClock::new().now();
    let rates = [200, 400, 1_000].map(|tokens| {
        let settings = PacedSettings::fixed(tokens, Duration::from_secs(1)).expect("in range");
        Arc::new(SendRate::paced(settings, start))
    });
    let pool = SendPool::new(rates.clone()).expect("a pool");
    let limiter = SendLimiter::new(pool);
    let (sender, permits) = mpsc::channel::<PoolPermit<SendPermit>>();
    thread::scope(|scope| {
        for _ in 0..16 {
            let (limiter, sender) = (&limiter, sender.clone());
            scope.spawn(move || {
                for _ in 0..EACH {
                    let permit = limiter.token().acquire_blocking().expect("no deadline");
                    limiter.record(permit, Outcome::NotThrottled);
                    sender.send(permit).expect("it is received");
                }
            });
        }
    });
    drop(sender);
    let permits: Vec<_> = permits.into_iter().collect();
    assert_eq!(permits.len(), 16 * EACH);
    let now = MonotonicClock::new().now();
    let lasted = now.saturating_since(start).as_nanos();
    for (index, (rate, tokens)) in rates.iter().zip([200_u128, 400, 1_000]).enumerate() {
        let served = permits
            .iter()
            .filter(|permit| permit.index() == index)
            .count();
        // What the bucket holds at first, and what was minted since.
        let most = tokens / 20 + 1 + tokens * lasted / 1_000_000_000;
        assert!(u128::try_from(served).unwrap() <= most, "{index}: {served}");
        assert!(served > 0, "all members are used");
        assert_eq!(rate.snapshot(now).waiting, 0, "every place went back");
    }
}
