//! Strategies in the time of the tests.

use alloc::sync::Arc;
use core::time::Duration;

use paceline::{
    Adaptive, Standard, TokioClock, backoff::BackoffStrategy, config::StrategyBuilder,
    law::PacedSettings,
};

use crate::SECOND;

/// A backoff of always the same length.
#[derive(Debug)]
pub struct Always(pub Duration);

impl BackoffStrategy for Always {
    fn delay(&self, _retry: u32, _throttle: bool, _random: u64) -> Duration {
        self.0
    }
}

/// Returns a strategy of three attempts, without a rate and a backoff, by tokio's clock.
pub fn standard() -> StrategyBuilder<Standard> {
    Standard::builder()
        .clock(Arc::new(TokioClock::new()))
        .backoff(Arc::new(Always(Duration::ZERO)))
}

/// Returns a strategy of `rate` sends a second, without a backoff, by tokio's clock. Throttling
/// does not change this rate.
pub fn fixed(rate: u32) -> StrategyBuilder<Adaptive> {
    Adaptive::builder()
        .clock(Arc::new(TokioClock::new()))
        .backoff(Arc::new(Always(Duration::ZERO)))
        .paced(PacedSettings::fixed(rate, SECOND).expect("in range"))
}
