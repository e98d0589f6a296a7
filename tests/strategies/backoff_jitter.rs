//! Full jitter against a published series, the floor under throttling delays, and the settings that
//! contradict each other.

use core::time::Duration;

use crate::support::{Arc, ms};
use paceline::{
    Standard,
    backoff::{BackoffStrategy, ExponentialBackoff},
    config::SettingsError,
};

/// The jitters b = 1, b = 1/2 and b almost 0.
const WHOLE: u64 = u64::MAX;
const HALF: u64 = u64::MAX / 2;
const NONE: u64 = 0;

fn backoff(base: u64, cap: u64) -> ExponentialBackoff {
    ExponentialBackoff::new(ms(base), ms(cap))
}

/// smithy-python `test_retries.py`, `ExponentialRetryBackoffStrategy`, full jitter with 0.5.
#[test]
fn smithy_python_series() {
    fn half<const N: usize>(base: u64, cap: u64) -> [Duration; N] {
        let backoff = backoff(base, cap);
        core::array::from_fn(|retry| backoff.delay(u32::try_from(retry).unwrap(), false, HALF))
    }
    assert_eq!(
        half(2000, 20_000),
        [0, 1000, 2000, 4000, 8000, 10_000, 10_000].map(ms)
    );
    assert_eq!(half(0, 20_000), [Duration::ZERO; 9]);
    assert_eq!(half(2000, 0), [Duration::ZERO; 9]);
}

#[test]
fn nothing_overflows() {
    let longest = Standard::builder()
        .base_delay(Duration::MAX)
        .max_backoff(Duration::MAX)
        .throttling_floor(Duration::MAX);
    let longest = longest.build().unwrap();
    for retry in [1, 2, 64, 65, u32::MAX] {
        for throttle in [false, true] {
            let delay = longest.settings().backoff.delay(retry, throttle, WHOLE);
            assert_eq!(delay, Duration::from_nanos(u64::MAX));
        }
    }
}

#[test]
fn floor_holds_after_throttling_only_and_jitter_spreads_above_it() {
    let builder = Standard::builder().throttling_floor(ms(1500));
    let strategy = builder.build().unwrap();
    let backoff = &strategy.settings().backoff;
    let delay = |retry, random| backoff.delay(retry, true, random);
    assert_eq!(delay(0, WHOLE), ms(0), "the first send");
    assert_eq!(delay(1, WHOLE), ms(1500), "lifted: the backoff is 1000");
    assert_eq!(
        [NONE, HALF, WHOLE].map(|b| delay(3, b)),
        [1500, 2750, 4000].map(ms)
    );
    assert_eq!(backoff.delay(3, false, NONE), ms(0));
}

#[test]
fn contradicting_settings_are_refused() {
    let own = || Standard::builder().backoff(Arc::new(backoff(1, 1)));
    let error = |builder: paceline::config::StrategyBuilder<Standard>| builder.build().unwrap_err();
    assert_eq!(
        error(own().throttling_floor(ms(0))),
        SettingsError::BackoffWithFloor
    );
    let floor = |millis| Standard::builder().throttling_floor(ms(millis));
    assert_eq!(error(floor(20_001)), SettingsError::FloorAboveMaxBackoff);
    assert_eq!(
        error(floor(11).max_backoff(ms(10))),
        SettingsError::FloorAboveMaxBackoff
    );
    assert!(floor(20_000).build().is_ok());
    assert!(floor(30_000).max_backoff(ms(30_000)).build().is_ok());
    for (error, text) in [
        (
            SettingsError::BackoffWithFloor,
            "a throttling floor has no effect on a backoff of your own",
        ),
        (
            SettingsError::FloorAboveMaxBackoff,
            "the throttling floor is above the longest backoff",
        ),
    ] {
        assert_eq!(error.to_string(), text);
    }
}
