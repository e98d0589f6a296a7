//! A token is asked for, and there is none.

use core::hint::black_box;
use core::time::Duration;
use std::sync::Mutex;

use better_bucket::{Bucket, BucketConfig, BucketCore};
use governor::Quota;
use governor::clock::QuantaClock;
use paceline::{
    Clock, ControlLaw, MonotonicClock, Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings,
};
use ratelimit::Ratelimiter;

use super::governed::{Governor, ToldClock};
use super::twin::{Lock, Rate};
use crate::caller::tell;
use crate::case::{
    Case, Stage,
    Whose::{Ours, Peer, Twin},
    plain,
};
use crate::path::Path::{Refused, RefusedByClock};
use crate::target::Bound::{self, ScalesAsEmptyLoop, TimeOf};

/// The lowest rate is one token in that time.
const LONG: Duration = Duration::from_secs(1_000);
const BETTER_BUCKET: &str = "better-bucket";
const GOVERNOR: &str = "governor";
const GOVERNOR_BY_COUNTER: &str = "governor, time stamp counter";
const REFUSED: [Bound; 2] = [TimeOf(2.3, GOVERNOR), ScalesAsEmptyLoop];
/// When everybody asks, in nanoseconds.
const NOW: u64 = 1_000_000_000;
const ASKED: Duration = Duration::from_nanos(NOW);

/// Returns the cases.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = by_caller();
    cases.extend(by_clock());
    cases
}

fn by_caller() -> Vec<Case> {
    let case = |whose, name, writes, make| Case::new(Refused, whose, name, writes, make).refused();
    vec![
        case(Ours, "paceline SendRate, published law", 0, || {
            ours(SendRate::new(ControlLaw::Aws, Timestamp::ZERO))
        })
        .target(
            &REFUSED,
            "its rate moves at responses only, so that no time is known until which to refuse: what `granted` loads, \
             and a division",
        ),
        case(Ours, "paceline SendRate, paced law", 0, || {
            ours(SendRate::new(ControlLaw::Paced, Timestamp::ZERO))
        })
        .target(
            &REFUSED,
            "a pointer, its version and a time are loaded before the comparison; the peer only compares",
        ),
        case(Peer, BETTER_BUCKET, 0, || {
            let config = BucketConfig::new(1, 1, LONG, 0).expect("the settings are in range");
            let bucket = BucketCore::new(config, Duration::ZERO);
            plain(bucket, |bucket| bucket.try_acquire_at(1, black_box(ASKED)))
        }),
        case(
            Peer,
            "better-bucket, which says how long to wait",
            0,
            || {
                let config = BucketConfig::new(1, 1, LONG, 0).expect("the settings are in range");
                let bucket = BucketCore::new(config, Duration::ZERO);
                plain(bucket, |bucket| {
                    let answer = bucket.acquire_at(1, black_box(ASKED));
                    black_box(answer).is_allowed()
                })
            },
        ),
        case(Peer, GOVERNOR, 0, || {
            tell(NOW);
            let limiter = Governor::direct_with_clock(seldom(), ToldClock);
            let _first = limiter.check();
            plain(limiter, |limiter| {
                tell(NOW);
                black_box(limiter.check()).is_ok()
            })
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

fn by_clock() -> Vec<Case> {
    let case =
        |whose, name, writes, make| Case::new(RefusedByClock, whose, name, writes, make).refused();
    vec![
        case(Ours, "paceline SendRate, time stamp counter", 0, || {
            let settings = PacedSettings::fixed(1, LONG).expect("the rate is in range");
            let clock = MonotonicClock::new();
            let rate = SendRate::paced(settings, clock.now());
            let _first = rate.try_acquire(clock.now());
            plain((rate, clock), |(rate, clock)| {
                black_box(rate.try_acquire(clock.now())).is_ok()
            })
        })
        .uncountable()
        .target(
            &[TimeOf(1.0, GOVERNOR_BY_COUNTER)],
            "the counter is nine tenths of both",
        ),
        case(Peer, GOVERNOR_BY_COUNTER, 0, || {
            let limiter: Governor<QuantaClock> =
                Governor::direct_with_clock(seldom(), QuantaClock::default());
            let _first = limiter.check();
            plain(limiter, |limiter| black_box(limiter.check()).is_ok())
        })
        .uncountable(),
        case(Peer, BETTER_BUCKET, 0, || {
            let bucket = Bucket::per_duration(1, LONG);
            let _first = bucket.try_acquire(1);
            plain(bucket, |bucket| bucket.try_acquire(1))
        }),
        case(Peer, "throttle-net", 0, || {
            let throttle = throttle_net::Throttle::per_duration(1, LONG);
            let _first = throttle.try_acquire();
            plain(throttle, throttle_net::Throttle::try_acquire)
        }),
        case(Peer, "ratelimit", 0, || {
            let limiter = Ratelimiter::builder(1).period(LONG).max_tokens(1);
            plain(
                limiter.build().expect("the settings are in range"),
                |limiter| black_box(limiter.try_wait()).is_ok(),
            )
        }),
        case(Peer, "leaky-bucket", 3, || {
            let mut builder = leaky_bucket::RateLimiter::builder();
            builder.max(1).initial(0).refill(1).interval(LONG);
            plain(builder.build(), |limiter| limiter.try_acquire(1))
        }),
    ]
}

/// At the lowest rate, that of a limiter throttled before it measured anything; all tokens are
/// taken.
fn ours(rate: SendRate) -> Stage {
    let now = Timestamp::from_nanos(NOW);
    rate.record(
        now,
        SendPermit::sent_at(Timestamp::ZERO),
        Outcome::Throttled,
    );
    while rate.try_acquire(now).is_ok() {}
    plain(rate, |rate| {
        let now = black_box(Timestamp::from_nanos(NOW));
        black_box(rate.try_acquire(now)).is_ok()
    })
}

fn seldom() -> Quota {
    Quota::with_period(LONG).expect("it is no zero")
}

fn twin<L: Lock<Rate>>() -> Stage {
    let rate = L::of(Rate::new());
    rate.with(|rate| rate.record(NOW, true));
    while rate.with(|rate| rate.take(NOW)) {}
    plain(rate, |rate| rate.with(|rate| rate.take(black_box(NOW))))
}
