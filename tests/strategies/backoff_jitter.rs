//! Kinds of jitter against published series, the floor under throttling delays, and the settings
//! that contradict each other.

use core::time::Duration;

use crate::support::{Arc, Fixed, ms};
use paceline::{
    Failure, Legacy, RetryAfter, RetryStrategy, Standard,
    backoff::{BackoffStrategy, ExponentialBackoff, Jitter},
    config::{LegacyBuilder, SettingsError},
    strategy::Reports,
};

/// The jitters b = 1, b = 1/2 and b almost 0.
const WHOLE: u64 = u64::MAX;
const HALF: u64 = u64::MAX / 2;
const NONE: u64 = 0;

fn backoff(base: u64, cap: u64, jitter: Jitter) -> ExponentialBackoff {
    ExponentialBackoff::new(ms(base), ms(cap)).with_jitter(jitter)
}

/// Returns the delays before retries 0, 1, 2, ..., each told of the one before, in milliseconds.
fn series<const N: usize>(backoff: ExponentialBackoff, random: u64) -> [Duration; N] {
    let mut previous = Duration::ZERO;
    core::array::from_fn(|retry| {
        let retry = u32::try_from(retry).unwrap();
        previous = backoff.delay_after(retry, false, random, previous);
        previous
    })
}

/// smithy-python `test_retries.py`, `ExponentialRetryBackoffStrategy`, every kind with 0.5.
#[test]
fn smithy_python_series() {
    fn half<const N: usize>(base: u64, cap: u64, jitter: Jitter) -> [Duration; N] {
        series(backoff(base, cap, jitter), HALF)
    }
    assert_eq!(
        half(2000, 20_000, Jitter::None),
        [0, 2000, 4000, 8000, 16_000, 20_000, 20_000].map(ms)
    );
    assert_eq!(
        half(23_400, 76_500, Jitter::None),
        [0, 23_400, 46_800, 76_500, 76_500].map(ms)
    );
    assert_eq!(
        half(2000, 20_000, Jitter::Full),
        [0, 1000, 2000, 4000, 8000, 10_000, 10_000].map(ms)
    );
    assert_eq!(
        half(2000, 20_000, Jitter::Equal),
        [0, 1500, 3000, 6000, 12_000, 15_000, 15_000].map(ms)
    );
    assert_eq!(
        half(23_400, 76_500, Jitter::Equal),
        [0, 17_550, 35_100, 57_375, 57_375].map(ms)
    );
    assert_eq!(
        half(2000, 20_000, Jitter::Decorrelated),
        [0, 5000, 9500, 16_250, 20_000, 20_000].map(ms)
    );
    assert_eq!(
        half(23_400, 76_500, Jitter::Decorrelated),
        [0, 58_500, 76_500, 76_500].map(ms)
    );
    for jitter in [
        Jitter::None,
        Jitter::Full,
        Jitter::Equal,
        Jitter::Decorrelated,
    ] {
        assert_eq!(half(0, 20_000, jitter), [Duration::ZERO; 9], "{jitter:?}");
        assert_eq!(half(2000, 0, jitter), [Duration::ZERO; 9], "{jitter:?}");
    }
}

/// The columns "least" and "delay" of the documented table, for the third retry of 100 ms under 300
/// ms.
#[test]
fn each_kind_spans_what_its_table_says() {
    let span = |jitter| {
        let backoff = backoff(100, 300, jitter);
        [NONE, WHOLE].map(|random| backoff.delay_after(3, true, random, ms(50)))
    };
    assert_eq!(span(Jitter::Full), [0, 300].map(ms));
    assert_eq!(span(Jitter::Equal), [150, 300].map(ms));
    assert_eq!(span(Jitter::None), [300, 300].map(ms));
    // 50 ms before is less than the base, which counts instead: up to 100 + 3 × 100 under the cap.
    assert_eq!(span(Jitter::Decorrelated), [100, 300].map(ms));
}

#[test]
fn decorrelated_without_a_delay_before_goes_by_the_backoff() {
    let backoff = backoff(100, 20_000, Jitter::Decorrelated);
    let whole = [0, 1, 2, 3].map(|retry| backoff.delay(retry, false, WHOLE));
    assert_eq!(whole, [0, 400, 400, 700].map(ms));
}

#[test]
fn no_kind_overflows() {
    for jitter in [
        Jitter::None,
        Jitter::Full,
        Jitter::Equal,
        Jitter::Decorrelated,
    ] {
        let longest = ExponentialBackoff::new(Duration::MAX, Duration::MAX)
            .with_jitter(jitter)
            .with_throttling_floor(Duration::MAX);
        for retry in [1, 2, 64, 65, u32::MAX] {
            let delay = longest.delay_after(retry, true, WHOLE, Duration::MAX);
            assert_eq!(delay, Duration::from_nanos(u64::MAX), "{jitter:?}");
        }
    }
}

#[test]
fn floor_holds_after_throttling_only_and_jitter_spreads_above_it() {
    let backoff = backoff(100, 20_000, Jitter::Full).with_throttling_floor(ms(150));
    let delay = |retry, random| backoff.delay(retry, true, random);
    assert_eq!(delay(0, WHOLE), ms(0), "the first send");
    assert_eq!(delay(1, WHOLE), ms(150), "lifted: the backoff is 100");
    assert_eq!(
        [NONE, HALF, WHOLE].map(|b| delay(3, b)),
        [150, 275, 400].map(ms)
    );
    assert_eq!(backoff.delay(3, false, NONE), ms(0));
    let equal = backoff.with_jitter(Jitter::Equal);
    assert_eq!(
        equal.delay(3, true, NONE),
        ms(200),
        "half of 400 is above the floor"
    );
    let stepped = backoff.with_jitter(Jitter::Decorrelated);
    assert_eq!(stepped.delay_after(1, true, NONE, ms(0)), ms(150));
}

/// The delays of throttled retries as a strategy has them, which tells the rule of the one before.
fn delays(strategy: &dyn RetryStrategy, failure: &Failure) -> Vec<Duration> {
    let token = strategy.acquire_initial_token(None).unwrap();
    let mut token = token.with_max_retry_after(Duration::MAX);
    let mut delays = Vec::new();
    for _ in 0..3 {
        token = strategy
            .refresh_retry_token(token, failure, Reports::new())
            .unwrap();
        delays.push(token.delay());
    }
    delays
}

#[test]
fn strategies_tell_the_rule_the_backoff_before_without_the_hint() {
    let random = Arc::new(Fixed(HALF));
    let builder = Standard::builder().max_attempts(9).random(random.clone());
    let builder = builder.jitter(Jitter::Decorrelated).max_backoff(ms(60_000));
    let standard = builder.build().unwrap();
    let want = [2500, 4750, 8125].map(ms);
    assert_eq!(delays(&standard, &Failure::throttling()), want);
    let hint = RetryAfter::AtLeast(ms(70_000));
    let hinted = Failure::throttling().with_retry_after(hint);
    assert_eq!(
        delays(&standard, &hinted),
        want.map(|backoff| ms(70_000) + backoff)
    );
    let token = standard.acquire_initial_token(None).unwrap();
    let mut token = token.with_max_retry_after(Duration::MAX);
    token = standard
        .refresh_retry_token(token, &hinted, Reports::new())
        .unwrap();
    token = standard
        .refresh_retry_token(token, &Failure::throttling(), Reports::new())
        .unwrap();
    assert_eq!(token.delay(), want[1], "as if there had been no hint");

    let rule = backoff(1000, 60_000, Jitter::Decorrelated);
    let legacy = Legacy::builder().backoff(Arc::new(rule)).random(random);
    assert_eq!(
        delays(&legacy.build().unwrap(), &Failure::transient()),
        want
    );
}

#[test]
fn builder_passes_jitter_and_floor_on() {
    let builder = Standard::builder().throttling_floor(ms(200));
    let strategy = builder.jitter(Jitter::Equal).build().unwrap();
    let backoff = &strategy.settings().backoff;
    assert_eq!(backoff.delay(1, false, NONE), ms(25));
    assert_eq!(backoff.delay(1, true, NONE), ms(500));
    let full = Standard::builder()
        .throttling_floor(ms(200))
        .build()
        .unwrap();
    assert_eq!(full.settings().backoff.delay(1, true, NONE), ms(200));
}

#[test]
fn contradicting_settings_are_refused() {
    let own = || Standard::builder().backoff(Arc::new(backoff(1, 1, Jitter::Full)));
    let error = |builder: paceline::config::StrategyBuilder<Standard>| builder.build().unwrap_err();
    assert_eq!(
        error(own().jitter(Jitter::Full)),
        SettingsError::BackoffWithJitter
    );
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
            SettingsError::BackoffWithJitter,
            "a jitter has no effect on a backoff of your own",
        ),
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

#[test]
fn legacy_jitter_and_floor_can_be_set_and_contradict_a_backoff_of_ones_own() {
    let least = |builder: LegacyBuilder| {
        let strategy = builder.build().unwrap();
        [true, false].map(|throttle| strategy.backoff().delay(1, throttle, NONE))
    };
    let builder = Legacy::builder;
    assert_eq!(least(builder()), [ms(0), ms(0)]);
    assert_eq!(least(builder().jitter(Jitter::Equal)), [ms(500), ms(500)]);
    assert_eq!(least(builder().throttling_floor(ms(70))), [ms(70), ms(0)]);
    let floor = |span| builder().throttling_floor(ms(span)).build();
    assert!(floor(20_000).is_ok());
    assert_eq!(
        floor(20_001).unwrap_err(),
        SettingsError::FloorAboveMaxBackoff
    );
    let own = builder().backoff(Arc::new(backoff(1, 2, Jitter::Full)));
    let wrong = |builder: LegacyBuilder| builder.build().unwrap_err();
    assert_eq!(
        [
            wrong(own.clone().jitter(Jitter::None)),
            wrong(own.clone().throttling_floor(ms(0))),
            wrong(own.max_attempts(0)),
        ],
        [
            SettingsError::BackoffWithJitter,
            SettingsError::BackoffWithFloor,
            SettingsError::ZeroMaxAttempts,
        ]
    );
}

#[test]
fn no_base_is_no_delay_whatever_came_before() {
    let none = backoff(0, 20_000, Jitter::Decorrelated);
    assert_eq!(none.delay_after(2, false, WHOLE, ms(100)), ms(0));
}

/// A rule without a memory.
#[derive(Debug)]
struct Steady;

impl BackoffStrategy for Steady {
    fn delay(&self, retry: u32, _throttle: bool, _random: u64) -> Duration {
        ms(200).saturating_mul(retry)
    }
}

#[test]
fn a_rule_of_ones_own_need_not_know_the_delay_before() {
    assert_eq!(Steady.delay_after(2, false, WHOLE, ms(7)), ms(400));
}
