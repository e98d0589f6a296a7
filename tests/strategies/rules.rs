//! The rules of strategies that no published vector covers: settings that are wrong, tokens of
//! others, what may be retried, hints, connections, legacy mode, a quota that is shared.

use crate::support::{Arc, Fixed, OK, Response, Then, http, ms, step, throttling};
use paceline::{
    Adaptive, Failure, Fault, Legacy, RetryAfter, RetryQuota, RetrySafety, RetryStrategy, Standard,
    backoff::ExponentialBackoff,
    config::{RetryGeneration, SettingsError, StrategyBuilder},
    operation::StopReason,
    strategy::Reports,
};

fn build(builder: StrategyBuilder<Standard>) -> Standard {
    builder.random(Fixed::whole()).build().unwrap()
}

/// Answers the first attempt of an operation.
fn answer(strategy: &impl RetryStrategy, failure: Failure) -> Then {
    let token = strategy.acquire_initial_token(None).unwrap();
    step(strategy, token, &Response::Fails(failure)).0
}

#[test]
fn wrong_settings_are_typed_errors() {
    use SettingsError::{BackoffWithBaseDelay, QuotaWithCapacity, ZeroMaxAttempts};
    let backoff = Arc::new(ExponentialBackoff::new(ms(1), ms(2)));
    let quota = Arc::new(RetryQuota::new(1));
    let standard = Standard::builder;
    let error = |builder: StrategyBuilder<Standard>| builder.build().unwrap_err();

    assert_eq!(error(standard().max_attempts(0)), ZeroMaxAttempts);
    assert_eq!(
        error(standard().backoff(backoff).base_delay(ms(1))),
        BackoffWithBaseDelay
    );
    assert_eq!(
        error(standard().quota(quota).quota_capacity(1)),
        QuotaWithCapacity
    );
    let adaptive = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .max_attempts(0)
        .build();
    assert_eq!(adaptive.unwrap_err(), ZeroMaxAttempts);
    assert_eq!(
        ZeroMaxAttempts.to_string(),
        "max_attempts must be at least 1: it counts the first send"
    );
}

#[test]
fn token_of_another_strategy_comes_back_and_changes_nothing() {
    let issuer = Standard::new();
    let strategies: [&dyn RetryStrategy; 3] = [
        &Standard::new(),
        &Adaptive::new(paceline::ControlLaw::Aws),
        &Legacy::new(),
    ];
    for strategy in strategies {
        let token = issuer.acquire_initial_token(None).unwrap();
        let refused = strategy
            .refresh_retry_token(token, &http(500), Reports::new())
            .unwrap_err();
        assert_eq!(refused.reason(), StopReason::ForeignToken);
        let token = refused.into_foreign().expect("it comes back");
        let token = strategy
            .record_success(token, Reports::new())
            .unwrap_err()
            .0;
        assert_eq!((token.attempt(), token.delay()), (1, ms(0)));
        issuer.record_success(token, Reports::new()).unwrap();
    }
}

#[test]
fn foreign_token_keeps_what_it_paid() {
    let issuer = build(Standard::builder());
    let other = build(Standard::builder().quota_capacity(100));
    let token = issuer.acquire_initial_token(None).unwrap();
    let token = issuer
        .refresh_retry_token(token, &http(500), Reports::new())
        .unwrap();
    let token = other.record_success(token, Reports::new()).unwrap_err().0;
    assert_eq!(
        (issuer.quota().available(), other.quota().available()),
        (486, 100)
    );
    issuer.record_success(token, Reports::new()).unwrap();
    assert_eq!(issuer.quota().available(), 500);
}

#[test]
fn only_the_last_retry_is_paid_back() {
    let strategy = build(Standard::builder().max_attempts(4));
    let mut token = strategy.acquire_initial_token(None).unwrap();
    for failure in [http(500), Failure::throttling(), http(500)] {
        token = strategy
            .refresh_retry_token(token, &failure, Reports::new())
            .unwrap();
    }
    assert_eq!(strategy.quota().available(), 500 - 14 - 5 - 14);
    strategy.record_success(token, Reports::new()).unwrap();
    assert_eq!(strategy.quota().available(), 500 - 14 - 5);
}

#[test]
fn failure_that_ends_an_operation_pays_nothing_back() {
    let strategy = build(Standard::builder());
    let token = strategy.acquire_initial_token(None).unwrap();
    let token = strategy
        .refresh_retry_token(token, &http(500), Reports::new())
        .unwrap();
    assert_eq!(
        step(&strategy, token, &Response::Fails(http(404))).0,
        Then::FailRequest
    );
    assert_eq!(strategy.quota().available(), 486);
}

#[test]
fn initial_token_is_given_when_the_quota_is_empty() {
    let strategy = build(Standard::builder().quota_capacity(0));
    let token = strategy.acquire_initial_token(Some("scope")).unwrap();
    assert_eq!(
        (token.attempt(), token.max_attempts(), token.delay()),
        (1, Some(3), ms(0))
    );
    assert!(token.send_permit().is_none());
}

#[test]
fn refusal_names_its_numbers_and_the_backoff_it_would_have_used() {
    let strategy = build(Standard::builder().quota_capacity(10));
    let token = strategy.acquire_initial_token(None).unwrap();
    let refused = strategy
        .refresh_retry_token(token, &http(500), Reports::new())
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "retry quota exhausted: 10 available, 14 needed"
    );
    assert_eq!((refused.backoff(), refused.delay()), (ms(50), ms(0)));
}

#[test]
fn maybe_is_decided_by_the_fault() {
    for (fault, retried) in [
        (Fault::Server, true),
        (Fault::Other, false),
        (Fault::Client, false), // not a maybe
    ] {
        let failure = Failure::from_fault(fault);
        let expected = if retried {
            Then::Retry(ms(50))
        } else {
            Then::FailRequest
        };
        let standard = build(Standard::builder());
        assert_eq!(answer(&standard, failure), expected, "{fault:?}");
        let refused = answer(&Legacy::new(), failure) == Then::FailRequest;
        assert_eq!(!refused, retried, "legacy: {fault:?}");
    }
}

#[test]
fn yes_and_no_outrank_the_fault() {
    let strategy = build(Standard::builder());
    let yes = Failure::from_fault(Fault::Client).with_retry_safety(RetrySafety::Yes);
    let no = Failure::transient().with_retry_safety(RetrySafety::No);
    let throttled_but_no = Failure::throttling().with_retry_safety(RetrySafety::No);
    assert_eq!(answer(&strategy, yes), Then::Retry(ms(50)));
    assert_eq!(answer(&strategy, no), Then::FailRequest);
    assert_eq!(answer(&strategy, throttled_but_no), Then::FailRequest);
}

#[test]
fn throttling_is_safe_to_retry_unless_the_error_says_otherwise() {
    let strategy = build(Standard::builder());
    assert_eq!(
        answer(&strategy, Failure::throttling().with_fault(Fault::Client)),
        Then::Retry(ms(1000))
    );
}

#[test]
fn hints_by_kind_and_generation() {
    use RetryGeneration::{V2_0, V2_1};
    let clamped = |millis| RetryAfter::Clamped(ms(millis));
    let floor = |millis| RetryAfter::AtLeast(ms(millis));
    for (generation, hint, delay) in [
        (V2_1, clamped(60_000), 5050),
        (V2_1, floor(60_000), 60_050),
        (V2_1, floor(10), 60),
        (V2_0, clamped(60_000), 20_000),
        (V2_0, clamped(10), 10),
        (V2_0, floor(60_000), 61_000),
        (V2_0, floor(10), 1010),
    ] {
        let strategy = build(Standard::builder().generation(generation));
        assert_eq!(
            answer(&strategy, http(500).with_retry_after(hint)),
            Then::Retry(ms(delay)),
            "{generation:?} {hint:?}"
        );
    }
}

#[test]
fn hint_makes_no_failure_retryable_and_passes_no_limit() {
    let hint = RetryAfter::AtLeast(ms(1));
    let strategy = build(Standard::builder().max_attempts(1));
    assert_eq!(
        answer(&strategy, http(404).with_retry_after(hint)),
        Then::FailRequest
    );
    assert_eq!(
        answer(&strategy, http(500).with_retry_after(hint)),
        Then::MaxAttempts
    );
    let strategy = build(Standard::builder().quota_capacity(13));
    assert_eq!(
        answer(&strategy, http(500).with_retry_after(hint)),
        Then::QuotaExceeded(ms(0))
    );
}

#[test]
fn legacy_sends_five_times_whatever_fails_elsewhere() {
    let strategy = Legacy::new().random(Fixed::whole());
    let told = http(500).with_retry_after(RetryAfter::AtLeast(ms(60_000)));
    // Ten thousand operations fail for good: no quota ends the retries of the last.
    for _ in 0..10_000 {
        let mut token = strategy.acquire_initial_token(None).unwrap();
        for (failure, delay) in [
            (Failure::timeout(), 1000),
            (Failure::throttling(), 2000),
            (told, 4000),
            (http(503), 8000),
        ] {
            token = strategy
                .refresh_retry_token(token, &failure, Reports::new())
                .unwrap();
            assert_eq!(token.delay(), ms(delay));
        }
        assert_eq!((token.attempt(), token.max_attempts()), (5, Some(5)));
        assert_eq!(step(&strategy, token, &throttling()).0, Then::MaxAttempts);
    }
    assert_eq!(answer(&strategy, http(404)), Then::FailRequest);
}

#[test]
fn legacy_attempts_can_be_set() {
    let strategy = Legacy::new().max_attempts(core::num::NonZeroU32::new(2).unwrap());
    let token = strategy.acquire_initial_token(None).unwrap();
    let token = strategy
        .refresh_retry_token(token, &http(500), Reports::new())
        .unwrap();
    assert_eq!(
        step(&strategy, token, &Response::Fails(http(500))).0,
        Then::MaxAttempts
    );
}

#[test]
fn shared_quota_is_paid_by_both() {
    let quota = Arc::new(RetryQuota::new(20));
    let one = build(Standard::builder().quota(quota.clone()));
    let other = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .quota(quota.clone())
        .build()
        .unwrap();
    assert_eq!(answer(&one, http(500)), Then::Retry(ms(50)));
    assert_eq!(answer(&other, http(500)), Then::QuotaExceeded(ms(0)));
    assert_eq!(quota.available(), 6);
}

#[test]
fn base_delay_in_2_0_is_for_throttling_too() {
    let builder = Standard::builder().generation(RetryGeneration::V2_0);
    let strategy = build(builder.base_delay(ms(100)));
    assert_eq!(
        answer(&strategy, Failure::throttling()),
        Then::Retry(ms(100))
    );
    let strategy = build(Standard::builder().base_delay(ms(100)));
    assert_eq!(
        answer(&strategy, Failure::throttling()),
        Then::Retry(ms(1000))
    );
}

#[test]
fn operations_of_many_threads_leave_the_quota_full() {
    let strategy = build(Standard::builder());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let token = strategy.acquire_initial_token(None).unwrap();
                    let token = strategy
                        .refresh_retry_token(token, &http(500), Reports::new())
                        .unwrap();
                    assert_eq!(step(&strategy, token, &OK).0, Then::Success);
                }
            });
        }
    });
    assert_eq!(strategy.quota().available(), 500);
}
