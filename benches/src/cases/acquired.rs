//! A token is asked for by a task, and there is one: the future is ready when it is polled first.

use alloc::sync::Arc;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use governor::clock::QuantaClock;
use paceline::SendLimiter;
use paceline::wait::{Sleep, Timer};

use super::governed::{Governor, per_second};
use super::granted::{PLENTY, fixed, leaky};
use crate::case::{
    Case, Stage,
    Whose::{Ours, Peer},
    plain,
};
use crate::path::Path::Acquired;
use crate::target::Bound::Nanos;

/// Returns the cases.
pub(super) fn cases() -> Vec<Case> {
    let case = |whose, name, writes, make| Case::new(Acquired, whose, name, writes, make);
    vec![
        case(Ours, "paceline SendLimiter", 2, || {
            let limiter = SendLimiter::new(Arc::new(fixed(PLENTY))).sleep_on(Never);
            plain(limiter, |limiter| {
                at_once(limiter.token().acquire(), |taken| taken.is_ok())
            })
        })
        .uncountable()
        .target(
            &[Nanos(40.0)],
            "the counter for one request in eight, what `granted` takes, and a future that is polled once",
        ),
        case(Peer, "throttle-net", 1, || {
            let throttle = throttle_net::Throttle::per_second(PLENTY);
            plain(throttle, |throttle| {
                at_once(throttle.acquire(), |taken| taken.is_ok())
            })
        }),
        case(Peer, "governor, time stamp counter", 1, || {
            let clock = QuantaClock::default();
            let limiter: Governor<_> = Governor::direct_with_clock(per_second(PLENTY), clock);
            plain(limiter, |limiter| at_once(limiter.until_ready(), |()| true))
        })
        .uncountable(),
        case(Peer, "leaky-bucket", 3, || tokens_of(leaky(true))),
    ]
}

fn tokens_of(limiter: leaky_bucket::RateLimiter) -> Stage {
    plain(limiter, |limiter| at_once(limiter.acquire_one(), |()| true))
}

/// Polls a future once, and returns what `granted` makes of its output; `false` if it has none yet.
#[inline]
fn at_once<F: Future>(future: F, granted: impl FnOnce(F::Output) -> bool) -> bool {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => granted(output),
        Poll::Pending => false,
    }
}

/// A timer that is never armed: no task waits.
#[derive(Clone, Copy, Debug)]
struct Never;

impl Sleep for Never {
    type Timer = Self;

    fn timer(&self) -> Self {
        Self
    }
}

impl Timer for Never {
    fn arm(&mut self, _: Duration) {}

    fn poll_elapsed(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}
