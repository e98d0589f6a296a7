//! Times, and a limiter, as several modules have them.

use core::time::Duration;

use paceline::{SendRate, Timestamp, law::PacedSettings};

pub(crate) fn ms(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

pub(crate) fn wait(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A limiter of `tokens` a second with a bucket of as many, full.
pub(crate) fn fixed(tokens: u32) -> SendRate {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::fixed(tokens, second)
        .and_then(|fixed| fixed.to_builder().burst(second).build());
    SendRate::paced(settings.expect("in range"), Timestamp::ZERO)
}
