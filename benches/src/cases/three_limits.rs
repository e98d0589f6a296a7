//! A token of each of three limits is taken, or of none: by a clock that is read.

use alloc::sync::Arc;

use paceline::{Clock, MonotonicClock, SendSet};
use throttle_net::{Hybrid, MultiLimiter, Throttle};

use super::granted::{PLENTY, fixed};
use crate::case::{
    Case,
    Whose::{Ours, Peer},
    plain,
};
use crate::path::Path::ThreeLimits;

/// Returns the cases.
pub(super) fn cases() -> Vec<Case> {
    let case = |whose, name, writes, make| Case::new(ThreeLimits, whose, name, writes, make);
    vec![
        case(Ours, "paceline SendSet of three", 3, || {
            let set = SendSet::new([(); 3].map(|()| Arc::new(fixed(PLENTY))));
            plain((set, MonotonicClock::new()), |(set, clock)| {
                set.try_acquire(clock.now(), &[1, 1, 1]).is_ok()
            })
        })
        .uncountable(),
        case(Peer, "throttle-net Hybrid, one cost for all", 3, || {
            let throttle = || Throttle::per_second(PLENTY);
            let all = Hybrid::builder().limiter(throttle()).limiter(throttle());
            plain(all.limiter(throttle()).build(), Hybrid::try_acquire)
        }),
        case(Peer, "throttle-net MultiLimiter, a cost by name", 3, || {
            let [one, two, three] = NAMES;
            let throttle = || Throttle::per_second(PLENTY);
            let all = MultiLimiter::builder()
                .dimension(one, throttle())
                .dimension(two, throttle())
                .dimension(three, throttle());
            plain(all.build(), |all| {
                all.try_acquire_costs(&NAMES.map(|name| (name, 1)))
            })
        }),
    ]
}

const NAMES: [&str; 3] = ["requests", "input_tokens", "output_tokens"];
