//! A limiter is found by its key among ten thousand, and a token taken of it by a clock that is
//! read.

use core::time::Duration;

use governor::RateLimiter;
use paceline::{Adaptive, Clock, MonotonicClock, law::PacedSettings};
use throttle_net::PerKey;

use super::governed::per_second;
use crate::case::{
    Case, Seat, Stage,
    Whose::{Ours, Peer},
    stage,
};
use crate::path::Path::Keyed;

/// The keys that there are.
const KEYS: usize = 10_000;
/// From one to the next, so that no cache foresees it: a prime.
const STRIDE: usize = 7_919;
/// The limit of each, a second: more than is asked for, and too low for a lease.
const TOKENS: u32 = 1_000;

/// Returns the cases.
pub(super) fn cases() -> Vec<Case> {
    let case = |whose, name, writes, make| Case::new(Keyed, whose, name, writes, make);
    vec![
        case(Ours, "paceline Scopes", 3, || {
            let second = Duration::from_secs(1);
            let settings = PacedSettings::fixed(TOKENS, second);
            let settings = settings.and_then(|fixed| fixed.to_builder().burst(second).build());
            let scopes = Adaptive::builder().paced(settings.expect("the rate is in range"));
            let scopes = scopes.scopes().max_scopes(KEYS);
            let scopes = scopes.build().expect("the settings are in range");
            by_key((scopes, MonotonicClock::new()), |(scopes, clock), key| {
                let scope = scopes.get(key);
                scope.is_ok_and(|scope| scope.send_rate().try_acquire(clock.now()).is_ok())
            })
        })
        .uncountable(),
        case(Peer, "governor, dashmap", 3, || {
            let limiter = RateLimiter::keyed(per_second(TOKENS));
            by_key(limiter, |limiter, key| limiter.check_key(key).is_ok())
        })
        .uncountable(),
        case(Peer, "throttle-net PerKey", 3, || {
            by_key(PerKey::per_second(TOKENS), PerKey::try_acquire)
        }),
    ]
}

/// Takes of one key after the other, two threads half of them apart.
fn by_key<S: Send + Sync + 'static>(
    limiters: S,
    take: impl Fn(&S, &String) -> bool + Copy + Send + Sync + 'static,
) -> Stage {
    let name = |key| format!("eu-west-1/customer-{key}");
    let keys: Vec<String> = (0..KEYS).map(name).collect();
    for key in &keys {
        let _made = take(&limiters, key);
    }
    stage(
        (limiters, keys),
        |_, seat: Seat| KEYS / seat.threads * seat.thread,
        move |(limiters, keys), next| {
            *next = (*next + STRIDE) % KEYS;
            take(limiters, &keys[*next])
        },
    )
}
