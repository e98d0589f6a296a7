//! Generation 2.0 against the vectors that the SDKs test themselves with.
//!
//! Table I: smithy-kotlin `StandardRetryIntegrationTestResources.kt`; the same cases are in
//! aws-sdk-go-v2, aws-sdk-java-v2 and smithy-rs. Table H: smithy-rs `strategy/standard.rs`, where
//! each test names its upstream one. b = 1 throughout. smithy-rs charges 10 for every transient
//! error in 2.0; here, as in botocore, only timeouts pay it, so H's rows of cost 10 are timeouts.

use crate::support::{
    Fixed, OK, Response, Row,
    Then::{MaxAttempts, QuotaExceeded, Retry, Success},
    http, ms, play, status,
};
use paceline::{
    Failure, Fault, RetryAfter, RetrySafety, RetryStrategy, RetryToken, Standard,
    config::{RetryGeneration, StrategyBuilder},
    strategy::Reports,
};

fn generation_2_0() -> StrategyBuilder<Standard> {
    Standard::builder()
        .generation(RetryGeneration::V2_0)
        .random(Fixed::whole())
}

fn check(builder: StrategyBuilder<Standard>, rows: &[Row]) {
    let strategy = builder.build().unwrap();
    play(&strategy, strategy.quota(), rows);
}

#[test]
fn retry_eventually_succeeds() {
    check(
        generation_2_0(),
        &[
            (status(500), Retry(ms(1000)), 495),
            (status(500), Retry(ms(2000)), 490),
            (OK, Success, 495),
        ],
    );
}

#[test]
fn fail_due_to_max_attempts_reached() {
    check(
        generation_2_0(),
        &[
            (status(502), Retry(ms(1000)), 495),
            (status(502), Retry(ms(2000)), 490),
            (status(502), MaxAttempts, 490),
        ],
    );
}

#[test]
fn retry_quota_reached_after_a_single_retry() {
    check(
        generation_2_0().quota_capacity(5),
        &[
            (status(500), Retry(ms(1000)), 0),
            (status(502), QuotaExceeded(ms(0)), 0),
        ],
    );
}

#[test]
fn no_retries_at_all_if_retry_quota_is_0() {
    check(
        generation_2_0().quota_capacity(0),
        &[(status(500), QuotaExceeded(ms(0)), 0)],
    );
}

#[test]
fn verifying_exponential_backoff_timing() {
    check(
        generation_2_0().max_attempts(5),
        &[
            (status(500), Retry(ms(1000)), 495),
            (status(500), Retry(ms(2000)), 490),
            (status(500), Retry(ms(4000)), 485),
            (status(500), Retry(ms(8000)), 480),
            (status(500), MaxAttempts, 480),
        ],
    );
}

#[test]
fn verify_max_backoff_time() {
    check(
        generation_2_0().max_attempts(5).max_backoff(ms(3000)),
        &[
            (status(500), Retry(ms(1000)), 495),
            (status(500), Retry(ms(2000)), 490),
            (status(500), Retry(ms(3000)), 485),
            (status(500), Retry(ms(3000)), 480),
            (status(500), MaxAttempts, 480),
        ],
    );
}

/// Fails `attempts` attempts of an operation by `failure` and returns the token of the next.
fn token_after(strategy: &Standard, attempts: u32, failure: &Failure) -> RetryToken {
    let first = strategy.acquire_initial_token(None).unwrap();
    (0..attempts).fold(first, |token, _| {
        strategy
            .refresh_retry_token(token, failure, Reports::new())
            .unwrap()
    })
}

/// The kinds of smithy-rs's `ErrorKind`, each declared retryable.
fn every_error_kind() -> [Failure; 4] {
    let client = Failure::from_fault(Fault::Client).with_retry_safety(RetrySafety::Yes);
    let server = Failure::from_fault(Fault::Server).with_retry_safety(RetrySafety::Yes);
    [Failure::timeout(), Failure::throttling(), server, client]
}

/// smithy-rs `should_retry_transient_error_result_after_2s`, the same for client, server and
/// throttling errors (their delay is 4 s whatever the names say), and
/// `dont_retry_when_out_of_attempts`.
#[test]
fn every_kind_backs_off_4_s_at_the_third_attempt_of_four() {
    for failure in every_error_kind() {
        let strategy = generation_2_0().max_attempts(4).build().unwrap();
        let token = token_after(&strategy, 3, &failure);
        assert_eq!((token.attempt(), token.delay()), (4, ms(4000)));
        let refused = strategy
            .refresh_retry_token(token, &failure, Reports::new())
            .unwrap_err();
        assert_eq!(refused.to_string(), "all 4 attempts made");
    }
}

/// smithy-rs `should_not_panic_when_exponential_backoff_duration_could_not_be_created`.
#[test]
fn backoff_at_the_33rd_attempt_is_the_cap() {
    let builder = generation_2_0().max_attempts(100).quota_capacity(1000);
    let strategy = builder.build().unwrap();
    let token = token_after(&strategy, 33, &http(500));
    assert_eq!((token.attempt(), token.delay()), (34, ms(20_000)));
}

/// smithy-rs `quota_replenishes_on_success`.
#[test]
fn quota_replenishes_on_success() {
    let told = Failure::timeout().with_retry_after(RetryAfter::Clamped(ms(1000)));
    check(
        generation_2_0().max_attempts(5).quota_capacity(100),
        &[
            (Response::Fails(Failure::timeout()), Retry(ms(1000)), 90),
            (Response::Fails(told), Retry(ms(1000)), 80),
            (OK, Success, 90),
        ],
    );
}

/// smithy-rs `no_quota`, after the one retry that 5 tokens pay for.
#[test]
fn no_quota() {
    check(
        generation_2_0().max_attempts(5).quota_capacity(5),
        &[
            (status(500), Retry(ms(1000)), 0),
            (status(500), QuotaExceeded(ms(0)), 0),
        ],
    );
}

/// smithy-rs `successful_request_and_deser_should_be_retryable`: a response that parsed, and that
/// the classifier wants again, pays like any failure.
#[test]
fn success_that_is_classified_retryable_pays_and_is_paid_back() {
    let not_ready = Failure::from_fault(Fault::Other).with_retry_safety(RetrySafety::Yes);
    check(
        generation_2_0().max_attempts(5).quota_capacity(5),
        &[
            (Response::Fails(not_ready), Retry(ms(1000)), 0),
            (OK, Success, 5),
        ],
    );
}

/// smithy-rs `quota_replenishes_on_first_try_success`.
#[test]
fn quota_replenishes_on_first_try_success() {
    let strategy = generation_2_0().quota_capacity(20).build().unwrap();
    drop(token_after(&strategy, 2, &Failure::timeout()));
    assert_eq!(strategy.quota().available(), 0);
    for success in 1..=20 {
        let token = strategy.acquire_initial_token(None).unwrap();
        strategy.record_success(token, Reports::new()).unwrap();
        assert_eq!(strategy.quota().available(), success);
    }
    let token = strategy.acquire_initial_token(None).unwrap();
    strategy.record_success(token, Reports::new()).unwrap();
    assert_eq!(strategy.quota().available(), 20);
}

/// smithy-rs `strategy/standard.rs`, explicit delay of 30 s in 2.0: a hint replaces the backoff, up
/// to `max_backoff`.
#[test]
fn hint_replaces_the_backoff_up_to_the_cap() {
    for (hint, delay) in [(30_000, 20_000), (3000, 3000), (10, 10)] {
        let failure = http(500).with_retry_after(RetryAfter::Clamped(ms(hint)));
        let strategy = generation_2_0().build().unwrap();
        assert_eq!(token_after(&strategy, 1, &failure).delay(), ms(delay));
    }
}

/// smithy-rs `dynamodb/tests/retry-spec.rs`: 3 requests and 3 s; the preset is 2.1's.
#[test]
fn dynamodb_has_no_defaults_of_its_own_in_2_0() {
    check(
        generation_2_0().dynamodb(),
        &[
            (status(500), Retry(ms(1000)), 495),
            (status(500), Retry(ms(2000)), 490),
            (status(500), MaxAttempts, 490),
        ],
    );
}

/// C++'s test of the costs, as far as strategies go: 5 for a retry, 10 after a timeout.
#[test]
fn timeouts_cost_twice() {
    check(
        generation_2_0(),
        &[
            (status(500), Retry(ms(1000)), 495),
            (Response::Fails(Failure::timeout()), Retry(ms(2000)), 485),
            (OK, Success, 495),
        ],
    );
}
