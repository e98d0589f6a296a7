//! Governor with a clock that says what the thread was told, as its documentation makes clocks.

use core::num::NonZeroU32;
use core::ops::Add;

use governor::clock::{Clock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use crate::caller::told;

/// A limiter by any clock.
pub(super) type Governor<C> =
    RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<<C as Clock>::Instant>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Told(u64);

impl Add<Nanos> for Told {
    type Output = Self;

    fn add(self, span: Nanos) -> Self {
        Self(self.0 + span.as_u64())
    }
}

impl Reference for Told {
    fn duration_since(&self, earlier: Self) -> Nanos {
        self.0.saturating_sub(earlier.0).into()
    }

    fn saturating_sub(&self, span: Nanos) -> Self {
        Self(self.0.saturating_sub(span.into()))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ToldClock;

impl Clock for ToldClock {
    type Instant = Told;

    fn now(&self) -> Told {
        Told(told())
    }
}

/// Returns the quota of so many tokens a second, which it also holds.
pub(super) fn per_second(tokens: u32) -> Quota {
    Quota::per_second(NonZeroU32::new(tokens).expect("there are some"))
}
