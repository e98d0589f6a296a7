//! throttle-net 2.0.0 (<https://crates.io/crates/throttle-net>): over-admission under threads.
//!
//! Its tests run for 400 ms of real time. Here the threads themselves move one clock, and each goes
//! on with a time that is old by then, which is the fault that its 1.0 had.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{sync::Barrier, thread};

use paceline::{
    Adaptive, Failure, RetryStrategy, SendRate, SendSet, Standard, Timestamp, law::PacedSettings,
    strategy::Reports,
};

use crate::support::{Arc, Hands, ms, scopes};

const MILLI: u64 = 1_000_000;
/// How many tokens come in a millisecond, and how many the bucket holds.
const EACH: u64 = 100;
const BUCKET: u64 = 1_000;
/// How far the clock is moved, in milliseconds.
const SPAN: u64 = 200;

fn settings() -> PacedSettings {
    PacedSettings::fixed(100, ms(1))
        .and_then(|fixed| fixed.to_builder().burst(ms(10)).build())
        .expect("in range")
}

fn rate() -> SendRate {
    SendRate::paced(settings(), Timestamp::ZERO)
}

/// Has threads ask for tokens until the clock has moved over the span, and checks that they got no
/// more than there were. `ask` returns how many it got. A thread looks at the clock once for four
/// times that it asks, and moves it by 20 microseconds.
fn hammer<A: Fn(Timestamp) -> u64 + Sync>(form: &str, make: impl Fn() -> A) {
    for threads in [2, 4, 8] {
        let (clock, got, start) = (AtomicU64::new(0), AtomicU64::new(0), Barrier::new(threads));
        let ask = make();
        let work = || {
            start.wait();
            let mut mine = 0;
            loop {
                let now = clock.load(Relaxed);
                if now >= SPAN * MILLI {
                    break;
                }
                for _ in 0..4 {
                    mine += ask(Timestamp::from_nanos(now));
                }
                clock.fetch_add(20_000, Relaxed);
            }
            got.fetch_add(mine, Relaxed);
        };
        thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        let minted = BUCKET + clock.into_inner() * EACH / MILLI;
        let got = got.into_inner();
        assert!(
            got <= minted,
            "{form}, {threads} threads: {got} of {minted}"
        );
        assert!(got >= minted / 2, "{form}, {threads} threads: {got}");
    }
}

// tests/stress.rs: throttle_never_over_admits_under_contention
#[test]
fn single_tokens_keep_the_rate_under_threads() {
    hammer("one", || {
        let rate = rate();
        move |now| u64::from(rate.try_acquire(now).is_ok())
    });
    hammer("background", || {
        let rate = rate();
        move |now| u64::from(rate.background().try_acquire(now).is_ok())
    });
}

// tests/stress.rs: cost_aware_grants_never_over_admit_under_contention
#[test]
fn weights_keep_the_rate_under_threads() {
    hammer("three", || {
        let rate = rate();
        move |now| 3 * u64::from(rate.try_acquire_n(now, 3).is_ok())
    });
}

// tests/stress.rs: reservations_never_over_admit_under_contention
#[test]
fn places_keep_the_rate_under_threads() {
    hammer("a place", || {
        let rate = rate();
        move |now| u64::from(rate.reserve(now).claim(now).is_ok())
    });
}

// tests/stress.rs: hybrid_never_over_admits_under_contention,
// multi_limiter_never_over_admits_under_contention,
// layered_global_scope_never_over_admits_under_contention
#[test]
fn sets_keep_the_rate_of_each_limit_under_threads() {
    hammer("the narrow one of a set", || {
        let wide = PacedSettings::fixed(400, ms(1)).expect("in range");
        let wide = SendRate::paced(wide, Timestamp::ZERO);
        let set = SendSet::new([Arc::new(rate()), Arc::new(wide)]);
        move |now| u64::from(set.try_acquire(now, &[1, 1]).is_ok())
    });
    // Two sets share a limit.
    hammer("the shared one of two sets", || {
        let shared = Arc::new(rate());
        let own = || {
            let wide = PacedSettings::fixed(400, ms(1)).expect("in range");
            Arc::new(SendRate::paced(wide, Timestamp::ZERO))
        };
        let sets = [own(), own()].map(|own| SendSet::new([own, shared.clone()]));
        move |now| {
            let set = &sets[usize::from(now.as_nanos() % 40_000 == 0)];
            u64::from(set.try_acquire(now, &[1, 1]).is_ok())
        }
    });
}

// tests/stress.rs: per_key_single_key_never_over_admits_under_contention
#[test]
fn one_key_keeps_its_rate_under_threads() {
    hammer("a key", || {
        let template = Adaptive::builder().paced(settings());
        let scopes = template.clock(Arc::new(Hands::default())).scopes();
        let scopes = scopes.max_scopes(4).build().expect("in range");
        move |now| {
            let scope = scopes.get("a").expect("there is room");
            u64::from(scope.send_rate().try_acquire(now).is_ok())
        }
    });
}

// tests/stress.rs: per_key_flood_cannot_reset_a_limited_key
#[test]
fn a_flood_of_keys_resets_no_limited_key() {
    let (scopes, hands) = scopes::adaptive(64);
    scopes::throttle(&scopes, "victim");
    let now = paceline::Clock::now(&*hands);
    let limited = || {
        let victim = scopes.find("victim").expect("it is kept");
        victim.send_rate().snapshot(now).enabled
    };
    assert!(limited());
    let flood = |thread: u32| {
        let scopes = &scopes;
        let limited = &limited;
        move || {
            for number in 0..2_000 {
                let key = format!("{thread}-{number}");
                assert!(scopes.get(&key).is_ok(), "an idle key makes room");
                assert!(number % 100 > 0 || limited());
            }
        }
    };
    thread::scope(|scope| (0..4).for_each(|thread| drop(scope.spawn(flood(thread)))));
    assert!(limited());
    assert_eq!(scopes.snapshot().refused, 0);
}

// CHANGELOG.md, 2.0.0: retry budgets (`RetryBudget`, `run_with_budget`)
#[test]
fn a_budget_of_retries_is_spent_once_under_threads() {
    for threads in [4, 8] {
        let strategy = Standard::builder().quota_capacity(50_000).build();
        let strategy = strategy.expect("in range");
        let start = Barrier::new(threads);
        let (strategy, start) = (&strategy, &start);
        let fail = move || {
            start.wait();
            let mut granted = 0;
            for _ in 0..1_000 {
                let token = strategy.acquire_initial_token(None).expect("the first");
                let again =
                    strategy.refresh_retry_token(token, &Failure::transient(), Reports::new());
                granted += u32::from(again.is_ok());
            }
            granted
        };
        let granted: u32 = thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(fail)).collect();
            threads
                .into_iter()
                .map(|one| one.join().expect("it ended"))
                .sum()
        });
        // A retry costs 14.
        assert_eq!((granted, strategy.quota().available()), (3_571, 6));
    }
}
