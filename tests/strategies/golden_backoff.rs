//! Backoff series against published ones, each test naming its source.

use core::time::Duration;

use crate::support::{Fixed, ms};
use paceline::{
    Adaptive, Failure, Legacy, RetryStrategy, Standard,
    backoff::{BackoffStrategy, ExponentialBackoff},
    config::RetryGeneration,
    strategy::Reports,
};

/// The jitter b = 1.
const WHOLE: u64 = u64::MAX;
/// The jitter b = 1/2.
const HALF: u64 = u64::MAX / 2;

/// Asserts the delays before retries 1, 2, ..., in milliseconds.
fn assert_series(backoff: &dyn BackoffStrategy, throttle: bool, random: u64, millis: &[u64]) {
    for (retry, delay) in (1..).zip(millis) {
        assert_eq!(
            backoff.delay(retry, throttle, random),
            ms(*delay),
            "retry {retry}"
        );
    }
}

const SECONDS: [u64; 8] = [1000, 2000, 4000, 8000, 16_000, 20_000, 20_000, 20_000];

/// "Retry behavior", AWS SDKs and Tools Reference Guide: `b × min(2^i, 20)`.
#[test]
fn generation_2_0() {
    let builder = Standard::builder().generation(RetryGeneration::V2_0);
    let strategy = builder.build().unwrap();
    for throttle in [false, true] {
        assert_series(&*strategy.settings().backoff, throttle, WHOLE, &SECONDS);
    }
}

/// "Retry behavior", AWS SDKs and Tools Reference Guide: `x = 0.05`, and `x = 1` after throttling.
#[test]
fn generation_2_1() {
    let transient = [
        50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 20_000, 20_000,
    ];
    let (standard, adaptive) = (Standard::new(), Adaptive::new(paceline::ControlLaw::Aws));
    for backoff in [&standard.settings().backoff, &adaptive.settings().backoff] {
        assert_series(&**backoff, false, WHOLE, &transient);
        assert_series(&**backoff, true, WHOLE, &SECONDS);
    }
}

/// "Retry behavior", AWS SDKs and Tools Reference Guide: `x = 0.025` for `DynamoDB`.
#[test]
fn generation_2_1_dynamodb() {
    let strategy = Standard::builder().dynamodb().build().unwrap();
    let backoff = &strategy.settings().backoff;
    assert_series(&**backoff, false, WHOLE, &[25, 50, 100, 200]);
    assert_series(&**backoff, true, WHOLE, &SECONDS);
}

/// smithy-rs `calculate_exponential_backoff_where_initial_backoff_is_one`,
/// `..._is_greater_than_one`, `..._is_less_than_one`;
/// `calculate_backoff_overflow_should_gracefully_fallback_to_max_backoff`.
#[test]
fn smithy_rs_series() {
    for (initial, series) in [
        (1000, [1000, 2000, 4000]),
        (3000, [3000, 6000, 12_000]),
        (30, [30, 60, 120]),
    ] {
        let backoff = ExponentialBackoff::new(ms(initial), ms(20_000));
        assert_series(&backoff, false, WHOLE, &series);
        for retry in [33, 64, 65, 100_000, u32::MAX] {
            assert_eq!(backoff.delay(retry, false, WHOLE), ms(20_000));
        }
    }
}

/// smithy-python `test_retries.py`, `ExponentialRetryBackoffStrategy` with full jitter and 0.5.
#[test]
fn smithy_python_full_jitter() {
    let whole_seconds = ExponentialBackoff::new(ms(2000), ms(20_000));
    assert_series(
        &whole_seconds,
        false,
        HALF,
        &[1000, 2000, 4000, 8000, 10_000, 10_000],
    );
    let fractions = ExponentialBackoff::new(ms(23_400), ms(76_500));
    assert_series(&fractions, false, HALF, &[11_700, 23_400, 38_250, 38_250]);
}

/// smithy-python `test_retries.py`: attempt 0 has no delay; a scale or cap of 0 gives none at all.
#[test]
fn attempt_0_and_zero_settings_give_no_delay() {
    let backoff = ExponentialBackoff::new(ms(2000), ms(20_000));
    assert_eq!(backoff.delay(0, true, WHOLE), Duration::ZERO);
    for (base, cap) in [(0, 20_000), (2000, 0)] {
        let backoff = ExponentialBackoff::new(ms(base), ms(cap));
        for retry in [0, 1, 2, 64, 65, 100, u32::MAX] {
            assert_eq!(backoff.delay(retry, false, WHOLE), Duration::ZERO);
        }
    }
}

#[test]
fn jitter_spans_everything_up_to_the_backoff_and_rounds_down() {
    let backoff = ExponentialBackoff::new(Duration::from_nanos(10), ms(20_000));
    assert_eq!(backoff.delay(1, false, 0), Duration::ZERO);
    assert_eq!(backoff.delay(1, false, WHOLE), Duration::from_nanos(10));
    assert_eq!(backoff.delay(1, false, WHOLE - 1), Duration::from_nanos(9));
    assert_eq!(backoff.delay(1, false, HALF), Duration::from_nanos(5));
}

#[test]
fn spans_beyond_584_years_count_as_that() {
    let backoff = ExponentialBackoff::new(Duration::MAX, Duration::MAX);
    assert_eq!(
        backoff.delay(2, false, WHOLE),
        Duration::from_nanos(u64::MAX)
    );
}

/// botocore's legacy mode, `delay_exponential` with a random base and growth factor 2, under the
/// cap of 20 s that Java has.
#[test]
fn legacy_is_plain() {
    let strategy = Legacy::new().random(Fixed::whole());
    for failure in [Failure::throttling(), Failure::transient()] {
        let mut token = strategy.acquire_initial_token(None).unwrap();
        for seconds in [1, 2, 4, 8] {
            token = strategy
                .refresh_retry_token(token, &failure, Reports::new())
                .unwrap();
            assert_eq!(token.delay(), Duration::from_secs(seconds));
        }
    }
}
