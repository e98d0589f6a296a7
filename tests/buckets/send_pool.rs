//! One of several limiters for one request: who serves it, what goes back, and what cannot be.

use alloc::sync::Arc;
use core::time::Duration;

use paceline::{
    AcquireError, ControlLaw, Outcome, SendPermit, SendPool, SendRate, SendSet, Timestamp,
    WeightError,
    law::{DeclaredSettings, LimitReport, LimitReports, PacedSettings, Reset},
    pool::PoolError,
    set::SetError,
};

use crate::support::{fixed, ms, wait};

/// The same, of which `taken` are taken.
fn with_taken(tokens: u32, taken: u32) -> SendRate {
    let rate = fixed(tokens);
    assert!(rate.try_acquire_n(ms(0), taken).is_ok());
    rate
}

fn not_in_time<T>(index: usize, millis: u64) -> Result<T, PoolError<AcquireError>> {
    let error = AcquireError::NotInTime { wait: wait(millis) };
    Err(PoolError::Member { index, error })
}

/// Returns how many tokens `rate` has at `now`.
fn held(rate: &SendRate, now: Timestamp) -> u64 {
    SendPool::new([rate])
        .expect("a pool")
        .snapshot(now, 1)
        .map(|member| member.left)
        .sum()
}

#[test]
fn the_member_with_the_most_left_serves_a_request() {
    let rates = [with_taken(10, 4), fixed(8), with_taken(20, 13)];
    let pool = SendPool::new(rates.each_ref()).expect("a pool");
    let served = [(); 6].map(|()| {
        let permit = pool.try_acquire(ms(0), 1).expect("there are tokens");
        permit.index()
    });
    // They have 6, 8 and 7.
    assert_eq!(served, [1, 1, 2, 0, 1, 2]);
    let left = rates.each_ref().map(|rate| held(rate, ms(0)));
    assert_eq!(left, [5, 5, 5]);
}

#[test]
fn a_refusal_names_the_member_that_would_be_first() {
    let rates = [with_taken(5, 5), with_taken(8, 8), with_taken(4, 4)];
    let pool = SendPool::new(rates.each_ref()).expect("a pool");
    assert_eq!(pool.try_acquire(ms(0), 1), not_in_time(1, 125));
    assert_eq!(pool.try_acquire(ms(124), 1), not_in_time(1, 1));
    let served = pool.try_acquire(ms(125), 1).map(|permit| permit.index());
    assert_eq!(served, Ok(1));
    // Two tokens of the first come in 400 ms, and those of the second from 125 ms in 250.
    assert_eq!(pool.try_acquire(ms(125), 2), not_in_time(1, 250));
}

#[test]
fn what_cannot_be_is_a_typed_error() {
    let key = || Arc::new(fixed(10));
    let none = SendPool::<Arc<SendRate>, 4>::of([]);
    assert_eq!(none.unwrap_err(), PoolError::Members { given: 0, most: 4 });
    let none = SendPool::<Arc<SendRate>, 0>::new([]);
    assert_eq!(none.unwrap_err(), PoolError::Members { given: 0, most: 0 });
    let many = SendPool::<_, 4>::of((0..9).map(|_| key()));
    assert_eq!(many.unwrap_err(), PoolError::Members { given: 9, most: 4 });
    let [one, two] = [key(), key()];
    let twice = SendPool::<_, 8>::of([&two, &one, &one].map(Arc::clone));
    assert_eq!(twice.unwrap_err(), PoolError::Twice { members: [1, 2] });

    let set = |rates: Vec<&'_ Arc<SendRate>>| {
        SendSet::of(rates.into_iter().map(Arc::clone)).expect("one to eight")
    };
    let pool = |sets: [SendSet<Arc<SendRate>>; 2]| SendPool::new(sets).map(drop);
    assert_eq!(
        pool([set(vec![&one, &two]), set(vec![&one])]),
        Err(PoolError::Member {
            index: 1,
            error: SetError::Weights { given: 2, rates: 1 }
        })
    );
    assert_eq!(
        pool([set(vec![&one, &two]), set(vec![&two, &two])]),
        Err(PoolError::Member {
            index: 1,
            error: SetError::Twice { limits: [0, 1] }
        })
    );
    assert_eq!(
        pool([set(vec![&one, &two]), set(vec![&one, &two])]),
        Err(PoolError::Twice { members: [0, 1] })
    );

    let pool = SendPool::new([key()]).expect("a pool");
    let error = AcquireError::Weight(WeightError::Zero);
    let refused = PoolError::Member { index: 0, error };
    assert_eq!(pool.try_acquire(ms(0), 0), Err(refused));
    assert_eq!(pool.reserve(ms(0), 0).map(drop), Err(refused));
    let error = AcquireError::Weight(WeightError::AboveCapacity {
        weight: 11,
        capacity: 10,
    });
    let refused = PoolError::Member { index: 0, error };
    assert_eq!(pool.try_acquire(ms(0), 11), Err(refused));
    assert_eq!(pool.reserve(ms(0), 11).map(drop), Err(refused));
    assert_eq!(held(&pool.members()[0], ms(0)), 10);
}

#[test]
fn a_member_that_is_paused_or_spent_is_passed_over() {
    let open = with_taken(8, 7);
    let paused = SendRate::paced(PacedSettings::new(), ms(0));
    let hint = Outcome::ThrottledFor(Duration::from_secs(2));
    paused.record(ms(0), SendPermit::sent_at(ms(0)), hint);
    let spent = SendRate::declared(DeclaredSettings::new(), ms(0));
    let first = spent.try_acquire(ms(0)).expect("the first one goes");
    let report = LimitReport::new(0).limit(60).reset(Reset::In(wait(3_000)));
    spent.observe(ms(0), first, &LimitReports::from(report));

    let pool = SendPool::new([&paused, &spent, &open]).expect("a pool");
    let closed: Vec<_> = pool
        .snapshot(ms(0), 1)
        .map(|member| (member.index, member.is_closed))
        .collect();
    assert_eq!(closed, [(0, true), (1, true), (2, false)]);
    assert_eq!(
        pool.try_acquire(ms(0), 1).map(|permit| permit.index()),
        Ok(2)
    );
    // The open one has no more: it is asked alone, whatever the others would say.
    assert_eq!(pool.try_acquire(ms(0), 1), not_in_time(2, 125));

    let closed = SendPool::new([&paused, &spent]).expect("a pool");
    let Err(PoolError::Spent { wait: first }) = closed.try_acquire(ms(0), 1) else {
        panic!("both are closed");
    };
    assert_eq!(paused.try_acquire(ms(0)), Err(first));
    assert!(first >= wait(2_000), "{first:?}");
    assert_eq!(
        closed
            .snapshot(ms(2_001), 1)
            .map(|m| m.is_closed)
            .collect::<Vec<_>>(),
        [false, true]
    );
}

#[test]
fn the_first_turn_is_kept_and_the_others_go_back() {
    let rates = [with_taken(4, 4), with_taken(8, 8)];
    let pool = SendPool::new(rates.each_ref()).expect("a pool");
    let mut places = [(); 3].map(|()| pool.reserve(ms(0), 1).expect("a place"));
    // Alone in line the request has the faster turn. Behind two others the rates add up: three
    // tokens of twelve a second.
    assert_eq!(places[0].claim(ms(0)).map(drop), Err(wait(125)));
    assert_eq!(places[2].claim(ms(0)).map(drop), Err(wait(250)));
    assert_eq!(places[0].claim(ms(125)).map(|p| p.index()), Ok(1));
    assert_eq!(
        places[0].claim(ms(500)).map(|p| p.index()),
        Ok(1),
        "the same ever after"
    );
    // Each line holds two more.
    let waiting = rates.each_ref().map(|rate| rate.snapshot(ms(125)).waiting);
    assert_eq!(waiting, [2, 2]);
    let claimed = places[1..]
        .iter_mut()
        .map(|place| place.claim(ms(250)).map(|p| p.index()));
    assert_eq!(claimed.collect::<Vec<_>>(), [Ok(0), Ok(1)]);
    drop(places);
    let waits = rates
        .each_ref()
        .map(|rate| rate.try_acquire(ms(250)).map(drop));
    assert_eq!(waits, [Err(wait(250)), Err(wait(125))]);
}

/// What a line has minted for a request ahead serves another request, if the request ahead goes by
/// another line.
#[test]
fn no_wait_is_longer_than_what_follows() {
    let minute = Duration::from_secs(60);
    let slow = || {
        let rate = SendRate::paced(PacedSettings::fixed(1, minute).expect("in range"), ms(0));
        assert!(rate.try_acquire(ms(0)).is_ok());
        rate
    };
    let rates = [slow(), slow()];
    let pool = SendPool::new(rates.each_ref()).expect("a pool");
    let mut first = pool.reserve(ms(59_000), 1).expect("a place");
    let mut second = pool.reserve(ms(59_000), 1).expect("a place");
    let foretold = second.claim(ms(59_000)).map(drop).expect_err("it is early");
    assert!(foretold <= wait(1_001), "{foretold:?}");
    let went = [&mut first, &mut second].map(|place| place.claim(ms(60_001)).map(|p| p.index()));
    assert_eq!(went, [Ok(0), Ok(1)]);
}

/// Two requests of ten tokens are ahead, for which four lines have minted nine each.
#[test]
fn a_light_request_is_not_foretold_the_wait_of_heavy_ones() {
    let rates = [(); 4].map(|()| with_taken(10, 10));
    let pool = SendPool::new(rates.each_ref()).expect("a pool");
    let mut heavy = [(); 2].map(|()| pool.reserve(ms(0), 10).expect("a place"));
    let mut light = pool.reserve(ms(900), 1).expect("a place");
    let foretold = light.claim(ms(900)).map(drop).expect_err("it is behind");
    assert!(foretold <= wait(100), "{foretold:?}");
    for place in &mut heavy {
        assert!(place.claim(ms(1_001)).is_ok());
    }
    assert!(light.claim(ms(1_001)).is_ok());
}

#[test]
fn a_refusal_is_that_of_a_closed_member_which_opens_first() {
    let hundred = Duration::from_secs(100);
    let slow = SendRate::paced(PacedSettings::fixed(1, hundred).expect("in range"), ms(0));
    assert!(slow.try_acquire(ms(0)).is_ok());
    let paused = fixed(100);
    let pause = Outcome::ThrottledFor(wait(1_000));
    paused.record(ms(0), SendPermit::sent_at(ms(0)), pause);
    let pool = SendPool::new([&slow, &paused]).expect("a pool");
    let Err(PoolError::Member { index: 1, error }) = pool.try_acquire(ms(0), 1) else {
        panic!("the second opens first");
    };
    let opens = error.wait().expect("a wait");
    assert!((wait(1_000)..wait(1_100)).contains(&opens), "{opens:?}");
    // A weight that the open member never has is no reason to give up.
    let small = fixed(5);
    let large = fixed(10);
    large.record(ms(0), SendPermit::sent_at(ms(0)), pause);
    let pool = SendPool::new([&small, &large]).expect("a pool");
    let refused = pool.try_acquire(ms(0), 8).map(drop);
    assert!(
        matches!(refused, Err(PoolError::Member { index: 1, .. })),
        "{refused:?}"
    );
}

#[test]
fn a_place_that_is_dropped_gives_all_back() {
    let rates = [with_taken(4, 4), with_taken(8, 8)];
    let pool = SendPool::new(rates.each_ref()).expect("a pool");
    let first = pool.reserve(ms(0), 1).expect("a place");
    let mut second = pool.reserve(ms(0), 1).expect("a place");
    assert_eq!(format!("{second:?}"), "PoolReservation(2 places)");
    drop(first);
    assert_eq!(second.claim(ms(125)).map(|p| p.index()), Ok(1));
    let shown = format!("{second:?}");
    assert!(
        shown.starts_with("PoolReservation(claimed: PoolPermit { index: 1, "),
        "{shown}"
    );
}

#[test]
fn an_outcome_is_recorded_with_the_member_that_served() {
    let rates = [(); 2].map(|()| SendRate::new(ControlLaw::Aws, ms(0)));
    let pool = SendPool::new(rates.each_ref()).expect("a pool");
    let permit = pool.try_acquire(ms(0), 1).expect("nothing is limited");
    pool.record(ms(0), permit, Outcome::Throttled);
    let enabled = rates.each_ref().map(|rate| rate.snapshot(ms(0)).enabled);
    assert_eq!(enabled, [true, false]);
    let next = pool.try_acquire(ms(1), 1).expect("the other one");
    assert_eq!(next.index(), 1);
}

#[test]
fn a_choice_ranks_members_and_leaves_some_alone() {
    let rates = [fixed(1), fixed(9), fixed(5)];
    let pool = SendPool::new(rates.each_ref()).expect("a pool");
    let last = pool.clone().choosing(|member| member.index.try_into().ok());
    let served = [(); 6].map(|()| last.try_acquire(ms(0), 1).expect("tokens").index());
    assert_eq!(served, [2, 2, 2, 2, 2, 1]);
    let only = pool
        .clone()
        .choosing(|member| (member.index == 0).then_some(1));
    assert_eq!(only.try_acquire(ms(0), 1).map(|p| p.index()), Ok(0));
    assert_eq!(only.try_acquire(ms(0), 1), not_in_time(0, 1_000));
    let place = only.reserve(ms(0), 1).expect("a place");
    assert_eq!(
        rates.each_ref().map(|rate| rate.snapshot(ms(0)).waiting),
        [1, 0, 0]
    );
    drop(place);
    let none = pool.choosing(|_| None);
    assert_eq!(none.try_acquire(ms(0), 1), Err(PoolError::NotChosen));
    assert_eq!(none.reserve(ms(0), 1).map(drop), Err(PoolError::NotChosen));
}

/// Two keys of 5 a second each, and 8 a second of the account.
#[test]
fn sets_of_one_pool_may_share_a_rate() {
    let (keys, account) = ([fixed(5), fixed(5)], fixed(8));
    let sets = keys.each_ref().map(|key| SendSet::new([key, &account]));
    let pool = SendPool::new(sets).expect("a pool");
    let served = [(); 8].map(|()| pool.try_acquire(ms(0), [1, 1]).expect("tokens").index());
    assert_eq!(
        served.iter().filter(|index| **index == 0).count(),
        5,
        "{served:?}"
    );
    let refused = pool.try_acquire(ms(0), [1, 1]);
    let error = SetError::Limit {
        limit: 1,
        error: AcquireError::NotInTime { wait: wait(125) },
    };
    assert_eq!(refused, Err(PoolError::Member { index: 1, error }));
    assert_eq!(held(&account, ms(0)), 0);
    assert_eq!(
        keys.each_ref().map(|key| held(key, ms(0))),
        [0, 2],
        "taken back"
    );

    let mut places = [(); 2].map(|()| pool.reserve(ms(0), [1, 1]).expect("a place"));
    let claimed = [125, 250].map(|millis| {
        let mut claims = places
            .iter_mut()
            .map(|place| place.claim(ms(millis)).is_ok());
        [claims.next(), claims.next()]
    });
    assert_eq!(
        claimed,
        [[Some(true), Some(false)], [Some(true), Some(true)]]
    );
    let left = [&keys[0], &keys[1], &account].map(|rate| rate.snapshot(ms(250)).waiting);
    assert_eq!(left, [0; 3]);
}

#[test]
fn a_pool_of_pools_is_asked_as_one() {
    let rates = [with_taken(4, 4), with_taken(8, 8), with_taken(2, 2)];
    let [first, second, third] = rates.each_ref();
    let pool = |members| SendPool::<_, 2>::of(members).expect("a pool");
    let both = SendPool::new([pool(vec![first, second]), pool(vec![third])]).expect("a pool");
    let permit = both.try_acquire(ms(125), 1).expect("one token");
    assert_eq!((permit.index(), permit.permit().index()), (0, 1));
    let mut place = both.reserve(ms(125), 1).expect("a place");
    assert_eq!(place.claim(ms(249)).map(drop), Err(wait(1)));
    let permit = place.claim(ms(250)).expect("its turn");
    both.record(ms(250), permit, Outcome::NotThrottled);
    let waiting = rates.each_ref().map(|rate| rate.snapshot(ms(250)).waiting);
    assert_eq!(waiting, [0; 3]);
    let twice = SendPool::new([pool(vec![first, second]), pool(vec![third, second])]);
    assert_eq!(twice.unwrap_err(), PoolError::Twice { members: [0, 1] });
}
