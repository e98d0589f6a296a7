//! The table of defaults in the documentation of `Settings`, row by row.

use crate::support::{Arc, Fixed, OK, Response, Then, http, ms, step};
use paceline::{
    Adaptive, ControlLaw, Execution, Failure, Fault, Legacy, RetryAfter, RetryInfo, RetrySafety,
    RetryStrategy, Standard,
    backoff::SeededRandom,
    classify::ServiceUnavailable,
    config::{RetryGeneration, Settings},
    strategy::Reports,
};

/// Answers the first attempt of an operation of a new default strategy, with b = 1.
fn first_answer(response: Response) -> (Then, u32) {
    let strategy = Standard::builder().random(Fixed::whole()).build().unwrap();
    let token = strategy.acquire_initial_token(None).unwrap();
    let (then, _) = step(&strategy, token, &response);
    (then, strategy.quota().available())
}

fn assert_settings(settings: &Settings) {
    assert_eq!(settings.generation, RetryGeneration::V2_1);
    assert_eq!(settings.max_attempts, 3);
    assert_eq!(settings.backoff.delay(1, false, u64::MAX), ms(50));
    assert_eq!(settings.backoff.delay(1, true, u64::MAX), ms(1000));
    assert_eq!(settings.max_backoff, ms(20_000));
    assert_eq!(settings.backoff.delay(99, false, u64::MAX), ms(20_000));
    assert!(!settings.long_polling);
}

#[test]
fn defaults_are_those_of_the_documented_table() {
    let (standard, adaptive) = (Standard::new(), Adaptive::new(ControlLaw::Aws));
    assert_settings(standard.settings());
    assert_settings(adaptive.settings());
    assert_settings(Adaptive::paced().settings());
    assert_eq!(standard.quota().capacity(), 500);
    assert_eq!(adaptive.quota().capacity(), 500);
    assert_eq!(adaptive.law(), ControlLaw::Aws);

    let dynamodb = Standard::builder().dynamodb().build().unwrap();
    assert_eq!(dynamodb.settings().max_attempts, 4);
    let backoff = &dynamodb.settings().backoff;
    assert_eq!(backoff.delay(1, false, u64::MAX), ms(25));
    assert_eq!(backoff.delay(1, true, u64::MAX), ms(1000));

    let spent = Standard::new();
    drop(spent.quota().try_acquire(2));
    let token = spent.acquire_initial_token(None).unwrap();
    assert_eq!(step(&spent, token, &OK).0, Then::Success);
    assert_eq!(spent.quota().available(), 499);
    let legacy = Legacy::new().acquire_initial_token(None).unwrap();
    assert_eq!(legacy.max_attempts(), Some(5));
}

/// The rows about failures: whether they are retried, at what delay, for what cost.
#[test]
fn failures_are_treated_as_the_documented_table_says() {
    let refused = (Then::FailRequest, 500);
    let transient = (Then::Retry(ms(50)), 486);
    let throttled = (Then::Retry(ms(1000)), 495);
    let bare = |status| first_answer(Response::Fails(http(status)));
    let fault = |fault| first_answer(Response::Fails(Failure::from_fault(fault)));
    let told = |hint| first_answer(Response::Fails(http(500).with_retry_after(hint)));

    assert_eq!(fault(Fault::Server), transient);
    assert_eq!([fault(Fault::Client), fault(Fault::Other)], [refused; 2]);
    assert_eq!(
        told(RetryAfter::Clamped(ms(60_000))),
        (Then::Retry(ms(5050)), 486)
    );
    assert_eq!(
        told(RetryAfter::AtLeast(ms(60_000))),
        (Then::Retry(ms(60_050)), 486)
    );
    assert_eq!([bare(429), bare(509)], [throttled; 2]);
    assert_eq!(bare(503), transient);
    let slow_down = Failure::from_http_status(503, ServiceUnavailable::Throttle);
    assert_eq!(first_answer(Response::Fails(slow_down)), throttled);
    assert_eq!([500, 502, 504, 408].map(bare), [transient; 4]);
    assert_eq!(
        [400, 403, 404, 409, 501, 505, 200, 0].map(bare),
        [refused; 8]
    );
}

#[test]
fn bare_statuses_know_fault_and_timeout() {
    assert_eq!([429, 408, 400].map(|s| http(s).fault()), [Fault::Client; 3]);
    assert_eq!([500, 503, 509].map(|s| http(s).fault()), [Fault::Server; 3]);
    assert_eq!(http(302).fault(), Fault::Other);
    let timed_out: &dyn RetryInfo = &http(408);
    assert!(timed_out.failure().is_timeout());
    let overloaded = Failure::from_http_status(503, ServiceUnavailable::Overloaded);
    assert!(overloaded.is_throttle());
    assert_eq!(overloaded.execution(), Execution::Maybe);
    assert!(!http(504).is_timeout());
    assert_eq!(http(504).retry_safety(), RetrySafety::Yes);
}

#[test]
fn a_seed_replays_every_delay() {
    let delays = |seed| {
        let random = Arc::new(SeededRandom::new(seed));
        let builder = Standard::builder().max_attempts(9).random(random);
        let strategy = builder.build().unwrap();
        let mut token = strategy.acquire_initial_token(None).unwrap();
        let mut delays = Vec::new();
        for _ in 0..8 {
            let failure = Failure::throttling();
            token = strategy
                .refresh_retry_token(token, &failure, Reports::new())
                .unwrap();
            delays.push(token.delay());
        }
        delays
    };
    assert_eq!(delays(7), delays(7));
    assert_ne!(delays(7), delays(8));
}

#[test]
fn the_short_forms_are_the_builders() {
    let bulk = Adaptive::bulk();
    assert_eq!(bulk.law(), ControlLaw::Paced);
    assert!(bulk.settings().deadline.is_some());
    assert_eq!(Adaptive::declared().law(), ControlLaw::Declared);
    assert_eq!(Adaptive::new(ControlLaw::Aws).settings().deadline, None);
}
