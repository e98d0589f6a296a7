//! A token is taken, and there is one: by a clock that is read, and by the caller's time.

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::Mutex;

use better_bucket::{Bucket, BucketConfig, BucketCore};
use governor::clock::{MonotonicClock as GovernorStd, QuantaClock, QuantaUpkeepClock};
use paceline::{
    Clock, ControlLaw, MonotonicClock, SendRate, SendSet, Timestamp, law::PacedSettings,
};
use ratelimit::Ratelimiter;
use rustix::time::{ClockId, clock_gettime};

use super::engaged::{ON_THE_CURVE, throttle_once};
use super::governed::{Governor, ToldClock, per_second};
use super::twin::{Lock, Rate};
use crate::caller::{CallerTime, SharedTime, tell};
use crate::case::{
    Case, Stage,
    Whose::{Ours, Peer, Twin},
    plain, stage,
};
use crate::path::Path::{Granted, GrantedByClock};
use crate::target::Bound::{Nanos, Scales, TimeOf, TotalOf};

/// More than any machine takes: a token each nanosecond.
pub(super) const PLENTY: u32 = 1_000_000_000;
/// Twice what is taken by the caller's time.
const ENOUGH: u32 = 2_000_000;

const PEER: &str = "governor";
const GOVERNOR: &str = "governor, time stamp counter";
const UPKEEP: &str = "governor, upkeep clock";
const BETTER_BUCKET: &str = "better-bucket";

/// Returns the cases.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = by_clock();
    cases.extend(by_caller());
    cases
}

fn by_clock() -> Vec<Case> {
    let case = |whose, name, writes, make| Case::new(GrantedByClock, whose, name, writes, make);
    vec![
        case(Ours, "paceline SendRate, time stamp counter", 1, || {
            plain((fixed(PLENTY), MonotonicClock::new()), |(rate, clock)| {
                rate.try_acquire(clock.now()).is_ok()
            })
        })
        .uncountable()
        .target(
            &[TimeOf(1.1, GOVERNOR)],
            "a full bucket lets a lease spend a token each nanosecond, and the counter moves in steps of 10 ns: one call in \
             eight comes within a nanosecond of the one before, and guesses two branches wrong",
        ),
        case(Ours, "paceline SendRate, counter if need be", 1, || {
            plain((fixed(PLENTY), MonotonicClock::new()), |(rate, clock)| {
                rate.try_acquire_with(|| clock.now()).is_ok()
            })
        })
        .uncountable()
        .target(
            &[TimeOf(0.4, GOVERNOR)],
            "the counter for one request in eight, and what `granted` takes",
        ),
        case(Ours, "paceline SendRate, coarse clock", 1, || {
            plain(fixed(PLENTY), |rate| rate.try_acquire(coarse()).is_ok())
        })
        .target(
            &[Nanos(15.0)],
            "the coarse clock, 7 ns, and what `granted` takes",
        ),
        case(Peer, GOVERNOR, 1, || governor(QuantaClock::default())).uncountable(),
        case(Peer, "governor, std Instant", 1, || governor(GovernorStd)),
        case(Peer, UPKEEP, 1, || {
            let clock = QuantaUpkeepClock::from_interval(Duration::from_millis(1));
            governor(clock.expect("its only upkeep thread"))
        })
        .uncountable(),
        case(Peer, BETTER_BUCKET, 1, || {
            plain(Bucket::per_second(PLENTY), |bucket| bucket.try_acquire(1))
        }),
        case(Peer, "ratelimit", 3, || {
            let limiter = Ratelimiter::builder(PLENTY.into())
                .max_tokens(PLENTY.into())
                .initial_available(PLENTY.into());
            plain(
                limiter.build().expect("the settings are in range"),
                |limiter| limiter.try_wait().is_ok(),
            )
        }),
        case(Peer, "throttle-net", 1, || {
            plain(throttle_net::Throttle::per_second(PLENTY), |throttle| {
                throttle.try_acquire()
            })
        }),
        case(Peer, "leaky-bucket", 3, || tokens_of(leaky(true))),
        case(Peer, "leaky-bucket, unfair", 1, || tokens_of(leaky(false))),
    ]
}

fn by_caller() -> Vec<Case> {
    let case = |whose, name, writes, make| Case::new(Granted, whose, name, writes, make);
    vec![
        case(Ours, "paceline SendRate, published law", 1, || {
            let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
            let start = throttle_once(&rate, ON_THE_CURVE);
            told(rate, start)
        }),
        case(Ours, "paceline SendRate, paced law", 1, || {
            told(fixed(ENOUGH), 1_000_000_000)
        })
        .target(
            &[
                TimeOf(0.6, PEER),
                TimeOf(0.6, BETTER_BUCKET),
                Scales(1.4),
                TotalOf(5.0, PEER),
                TotalOf(5.0, BETTER_BUCKET),
            ],
            "a lease lasts 0.26 ms of the caller's time, in which one thread of two makes 131 requests: then two lines \
             change hands, for as long as 60 of them take",
        ),
        case(Ours, "paceline SendRate, 1,000/s", 1, || {
            // A part of that is taken: time passes 20,000 times as fast.
            told_by(fixed(1_000), 1_000_000_000, |rate, now| {
                let now = Timestamp::from_nanos(now.as_nanos().wrapping_mul(20_000));
                rate.try_acquire(now).is_ok()
            })
        })
        .target(
            &[Nanos(9.75)],
            "no lease at so low a rate: 184 instructions, ten of them to find that out; 146 and 10.1 ns before there were \
             leases. The rest keeps the line for the paths that take one",
        ),
        case(Ours, "paceline SendRate, two in turn", 2, || {
            told_by(two(), 1_000_000_000, |[one, two], now| {
                one.try_acquire(now).is_ok() && two.try_acquire(now).is_ok()
            })
        }),
        case(Ours, "paceline SendSet of two", 2, || {
            let set = SendSet::new(two().map(Arc::new));
            told_by(set, 1_000_000_000, |set, now| {
                set.try_acquire(now, &[1, 1]).is_ok()
            })
        })
        .target(
            &[TimeOf(1.25, PEER), TimeOf(1.25, BETTER_BUCKET)],
            "two leases are spent, each as `granted` does",
        ),
        case(Peer, BETTER_BUCKET, 1, better_bucket),
        case(Peer, "governor", 1, || {
            let time = SharedTime::new(1_000_000_000);
            tell(0);
            let limiter = Governor::direct_with_clock(per_second(ENOUGH), ToldClock);
            stage(
                limiter,
                move |_, seat| time.at(seat),
                |limiter, time: &mut CallerTime| {
                    tell(time.tick());
                    limiter.check().is_ok()
                },
            )
        }),
        case(Twin, "std mutex", 2, twin::<Mutex<Rate>>),
        case(
            Twin,
            "parking_lot mutex",
            2,
            twin::<parking_lot::Mutex<Rate>>,
        ),
    ]
}

/// A limiter at so many tokens a second, from the start of time on.
pub(super) fn fixed(tokens: u32) -> SendRate {
    let settings = PacedSettings::fixed(tokens, Duration::from_secs(1));
    SendRate::paced(settings.expect("the rate is in range"), Timestamp::ZERO)
}

fn coarse() -> Timestamp {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    let seconds = time.tv_sec.unsigned_abs();
    Timestamp::from_nanos(seconds * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

fn governor<C: governor::clock::Clock + Send + Sync + 'static>(clock: C) -> Stage
where
    C::Instant: 'static,
{
    let limiter: Governor<C> = Governor::direct_with_clock(per_second(PLENTY), clock);
    plain(limiter, |limiter| limiter.check().is_ok())
}

pub(super) fn leaky(fair: bool) -> leaky_bucket::RateLimiter {
    let mut builder = leaky_bucket::RateLimiter::builder();
    let many = PLENTY as usize;
    builder
        .max(many)
        .initial(many)
        .refill(many / 100)
        .interval(Duration::from_millis(10))
        .fair(fair);
    builder.build()
}

fn tokens_of(limiter: leaky_bucket::RateLimiter) -> Stage {
    plain(limiter, |limiter| limiter.try_acquire(1))
}

fn two() -> [SendRate; 2] {
    [fixed(ENOUGH), fixed(ENOUGH)]
}

/// By the caller's time, without an end.
fn told(rate: SendRate, start: u64) -> Stage {
    told_by(rate, start, |rate, now| rate.try_acquire(now).is_ok())
}

fn told_by<S: Send + Sync + 'static>(
    shared: S,
    start: u64,
    op: impl Fn(&S, Timestamp) -> bool + Copy + Send + Sync + 'static,
) -> Stage {
    let time = SharedTime::new(start);
    stage(
        shared,
        move |_, seat| time.at(seat),
        move |shared, time: &mut CallerTime| op(shared, Timestamp::from_nanos(time.tick())),
    )
}

fn better_bucket() -> Stage {
    let config = BucketConfig::new(ENOUGH, ENOUGH, Duration::from_secs(1), ENOUGH);
    let bucket = BucketCore::new(config.expect("the settings are in range"), Duration::ZERO);
    let time = SharedTime::new(1_000_000_000);
    stage(
        bucket,
        move |_, seat| time.at(seat),
        |bucket, time: &mut CallerTime| bucket.try_acquire_at(1, time.tick_duration()),
    )
}

fn twin<L: Lock<Rate>>() -> Stage {
    let rate = super::engaged::Locked(L::of(Rate::new()));
    let start = throttle_once(&rate, ON_THE_CURVE);
    let time = SharedTime::new(start);
    stage(
        rate,
        move |_, seat| time.at(seat),
        |rate, time: &mut CallerTime| {
            let now = time.tick();
            rate.0.with(|rate| rate.take(now))
        },
    )
}
