//! Generation 2.1 against the vectors that the SDKs test themselves with.
//!
//! Table J: smithy-kotlin `NewStandardRetryIntegrationTestResources.kt`; the same cases are in
//! aws-sdk-go-v2 `retry2026_test.go`, smithy-rs `strategy/standard.rs`, smithy-python
//! `test_retries.py`, smithy-typescript `retries.integ.spec.ts` and botocore. b = 1 throughout.

use crate::support::{
    Fixed, OK, Response, Row,
    Then::{FailRequest, MaxAttempts, QuotaExceeded, Retry, Success},
    http, ms, play, status, step, throttling,
};
use paceline::{
    Failure, RetryAfter, RetryStrategy, Standard,
    config::{RetryGeneration, StrategyBuilder},
    strategy::Reports,
};

fn generation_2_1() -> StrategyBuilder<Standard> {
    Standard::builder()
        .generation(RetryGeneration::V2_1)
        .random(Fixed::whole())
}

fn check(builder: StrategyBuilder<Standard>, rows: &[Row]) {
    let strategy = builder.build().unwrap();
    play(&strategy, strategy.quota(), rows);
}

/// Returns a 500 with the header `x-amz-retry-after`.
fn told(millis: u64) -> Response {
    Response::Fails(http(500).with_retry_after(RetryAfter::Clamped(ms(millis))))
}

#[test]
fn retry_eventually_succeeds() {
    check(
        generation_2_1(),
        &[
            (status(500), Retry(ms(50)), 486),
            (status(500), Retry(ms(100)), 472),
            (OK, Success, 486),
        ],
    );
}

#[test]
fn fail_due_to_max_attempts_reached() {
    check(
        generation_2_1(),
        &[
            (status(502), Retry(ms(50)), 486),
            (status(502), Retry(ms(100)), 472),
            (status(502), MaxAttempts, 472),
        ],
    );
}

#[test]
fn retry_quota_reached_after_a_single_retry() {
    check(
        generation_2_1().quota_capacity(14),
        &[
            (status(500), Retry(ms(50)), 0),
            (status(500), QuotaExceeded(ms(0)), 0),
        ],
    );
}

#[test]
fn no_retries_at_all_if_retry_quota_is_0() {
    check(
        generation_2_1().quota_capacity(0),
        &[(status(500), QuotaExceeded(ms(0)), 0)],
    );
}

#[test]
fn verifying_exponential_backoff_timing() {
    check(
        generation_2_1().max_attempts(5),
        &[
            (status(500), Retry(ms(50)), 486),
            (status(500), Retry(ms(100)), 472),
            (status(500), Retry(ms(200)), 458),
            (status(500), Retry(ms(400)), 444),
            (status(500), MaxAttempts, 444),
        ],
    );
}

#[test]
fn verify_max_backoff_time() {
    check(
        generation_2_1().max_attempts(5).max_backoff(ms(200)),
        &[
            (status(500), Retry(ms(50)), 486),
            (status(500), Retry(ms(100)), 472),
            (status(500), Retry(ms(200)), 458),
            (status(500), Retry(ms(200)), 444),
            (status(500), MaxAttempts, 444),
        ],
    );
}

#[test]
fn retry_stops_after_retry_quota_exhaustion() {
    check(
        generation_2_1().max_attempts(5).quota_capacity(20),
        &[
            (status(500), Retry(ms(50)), 6),
            (status(502), QuotaExceeded(ms(0)), 6),
        ],
    );
}

/// The case of the shared vectors, and smithy-rs's variant with another second failure.
#[test]
fn retry_quota_recovery_after_successful_responses() {
    for second in [status(502), status(500)] {
        let builder = generation_2_1().max_attempts(5).quota_capacity(30);
        let strategy = builder.build().unwrap();
        let first_operation = [
            (status(500), Retry(ms(50)), 16),
            (second, Retry(ms(100)), 2),
            (OK, Success, 16),
        ];
        play(&strategy, strategy.quota(), &first_operation);
        let second_operation = [(status(500), Retry(ms(50)), 2), (OK, Success, 16)];
        play(&strategy, strategy.quota(), &second_operation);
    }
}

#[test]
fn throttling_error_costs_5_and_backs_off_1_s() {
    check(
        generation_2_1(),
        &[(throttling(), Retry(ms(1000)), 495), (OK, Success, 500)],
    );
}

#[test]
fn dynamodb_retries_sooner_and_once_more() {
    check(
        generation_2_1().dynamodb(),
        &[
            (status(500), Retry(ms(25)), 486),
            (status(500), Retry(ms(50)), 472),
            (status(500), Retry(ms(100)), 458),
            (status(500), MaxAttempts, 458),
        ],
    );
}

/// smithy-rs `dynamodb/tests/retry-spec.rs`: three failures, 175 ms of sleep, four requests; and
/// six requests if the user says six, whichever is said first.
#[test]
fn dynamodb_replaces_defaults_only() {
    check(
        generation_2_1().dynamodb(),
        &[
            (status(500), Retry(ms(25)), 486),
            (status(500), Retry(ms(50)), 472),
            (status(500), Retry(ms(100)), 458),
            (OK, Success, 472),
        ],
    );
    let either_order = [
        generation_2_1()
            .max_attempts(6)
            .base_delay(ms(30))
            .dynamodb(),
        generation_2_1()
            .dynamodb()
            .max_attempts(6)
            .base_delay(ms(30)),
    ];
    for builder in either_order {
        let strategy = builder.build().unwrap();
        assert_eq!(strategy.settings().max_attempts, 6);
        let backoff = &strategy.settings().backoff;
        assert_eq!(backoff.delay(1, false, u64::MAX), ms(30));
        assert_eq!(backoff.delay(1, true, u64::MAX), ms(1000));
    }
}

#[test]
fn hint_between_backoff_and_5_s_more_is_taken() {
    check(
        generation_2_1(),
        &[(told(1500), Retry(ms(1500)), 486), (OK, Success, 500)],
    );
}

#[test]
fn hint_below_the_backoff_is_raised_to_it() {
    check(
        generation_2_1(),
        &[(told(0), Retry(ms(50)), 486), (OK, Success, 500)],
    );
}

#[test]
fn hint_beyond_5_s_more_than_the_backoff_is_cut() {
    check(
        generation_2_1(),
        &[(told(10_000), Retry(ms(5050)), 486), (OK, Success, 500)],
    );
}

/// A header that does not parse ("invalid", and botocore's "-100") is no hint.
#[test]
fn hint_that_is_no_number_is_none() {
    check(
        generation_2_1(),
        &[(status(500), Retry(ms(50)), 486), (OK, Success, 500)],
    );
}

/// smithy-rs's unit tests of explicit delays, first attempt.
#[test]
fn hint_of_smithy_rs_unit_tests() {
    for (hint, delay) in [(3000, 3000), (10, 50), (10_000, 5050)] {
        let strategy = generation_2_1().build().unwrap();
        let first = strategy.acquire_initial_token(None).unwrap();
        assert_eq!(
            step(&strategy, first, &told(hint)).0,
            Retry(ms(delay)),
            "hint of {hint} ms"
        );
    }
}

#[test]
fn long_polling_sleeps_when_the_quota_refuses_a_transient_error() {
    check(
        generation_2_1().quota_capacity(0).long_polling(true),
        &[(status(500), QuotaExceeded(ms(50)), 0)],
    );
}

/// 1 s as in every SDK but Go's, which sleeps 50 ms.
#[test]
fn long_polling_sleeps_when_the_quota_refuses_a_throttling_error() {
    check(
        generation_2_1().quota_capacity(0).long_polling(true),
        &[(throttling(), QuotaExceeded(ms(1000)), 0)],
    );
}

#[test]
fn long_polling_does_not_sleep_at_max_attempts() {
    check(
        generation_2_1().max_attempts(2).long_polling(true),
        &[
            (status(500), Retry(ms(50)), 486),
            (status(500), MaxAttempts, 486),
        ],
    );
}

#[test]
fn long_polling_does_not_sleep_after_success() {
    check(
        generation_2_1().max_attempts(2).long_polling(true),
        &[(status(500), Retry(ms(50)), 486), (OK, Success, 500)],
    );
}

#[test]
fn long_polling_does_not_sleep_when_the_failure_is_not_retryable() {
    check(
        generation_2_1().max_attempts(2).long_polling(true),
        &[(status(404), FailRequest, 500)],
    );
}

/// The case "two operations concurrently", in each of the ten orders there are.
#[test]
fn two_operations_never_touch_each_others_permit() {
    let orders = (0_u32..32).filter(|order| order.count_ones() == 2);
    let mut played = 0;
    for order in orders {
        let strategy = generation_2_1().max_attempts(5).build().unwrap();
        let mut scripts = [
            [status(500), status(500), OK].iter(),
            [status(500), OK].iter(),
        ]
        .map(|script| (script.copied().collect::<Vec<_>>().into_iter(), None));
        for (_, token) in &mut scripts {
            *token = Some(strategy.acquire_initial_token(None).unwrap());
        }
        for turn in 0..5 {
            let (script, token) = &mut scripts[usize::from(order >> turn & 1 == 1)];
            let response = script.next().unwrap();
            *token = step(&strategy, token.take().unwrap(), &response).1;
        }
        assert_eq!(strategy.quota().available(), 486, "order {order:05b}");
        played += 1;
    }
    assert_eq!(played, 10);
}

/// smithy-typescript `retries.integ.spec.ts`, 2026 "mixed a" and "mixed b": cost and exponent by
/// the failure at hand and the number of the retry, whatever came before.
#[test]
fn mixed_failures_are_priced_one_by_one() {
    const THROTTLE: bool = true;
    const TRANSIENT: bool = false;
    let mixed_a = [
        (THROTTLE, 1000),
        (THROTTLE, 2000),
        (TRANSIENT, 200),
        (TRANSIENT, 400),
        (TRANSIENT, 800),
        (TRANSIENT, 1600),
        (THROTTLE, 20_000),
    ];
    let mixed_b = [
        (TRANSIENT, 50),
        (THROTTLE, 2000),
        (THROTTLE, 4000),
        (THROTTLE, 8000),
        (THROTTLE, 16_000),
        (TRANSIENT, 1600),
        (THROTTLE, 20_000),
    ];
    for case in [mixed_a, mixed_b] {
        let strategy = generation_2_1().max_attempts(12).build().unwrap();
        let mut token = strategy.acquire_initial_token(None).unwrap();
        let mut left = 500;
        for (throttle, delay) in case {
            let (failure, cost) = if throttle {
                (Failure::throttling(), 5)
            } else {
                (Failure::transient(), 14)
            };
            token = strategy
                .refresh_retry_token(token, &failure, Reports::new())
                .unwrap();
            left -= cost;
            assert_eq!(
                (token.delay(), strategy.quota().available()),
                (ms(delay), left)
            );
        }
    }
}
