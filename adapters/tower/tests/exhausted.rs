//! What `RESOURCE_EXHAUSTED` means beside the message of its status.
#![cfg(feature = "grpc")]

use core::time::Duration;

use http::Response;
use paceline::{Failure, RetryAfter, RetrySafety};
use paceline_tower::{BoxError, Classify, GrpcResults};

fn classified(headers: &[(&str, &str)]) -> Failure {
    let mut response = Response::builder().header("grpc-status", "8");
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    let response = response.body(()).expect("a response");
    let failure = GrpcResults::new().classify(Ok::<_, &BoxError>(&response));
    failure.expect("it is no success")
}

#[test]
fn what_no_wait_can_mend_is_final() {
    for message in [
        // <https://github.com/grpc/grpc/pull/10612>
        "grpc: received message larger than max (5194304 vs. 4194304)",
        // <https://github.com/googlemaps/google-maps-services-python/issues/109>
        "You have exceeded your daily request quota",
        "Quota%20exceeded%3A%20Requests%20per%20day",
        "limit: 0",
    ] {
        let failure = classified(&[("grpc-message", message)]);
        let final_ = (failure.is_throttle(), failure.retry_safety());
        assert_eq!(final_, (false, RetrySafety::No), "{message}");
    }
}

#[test]
fn all_else_is_throttling_with_the_hint_that_it_has() {
    let wait = |seconds| Some(RetryAfter::AtLeast(Duration::from_secs(seconds)));
    let message = ("grpc-message", "Requests%20per%20minute: retry in 9s %zz%");
    let none = classified(&[]);
    assert_eq!((none.is_throttle(), none.retry_after()), (true, None));
    let in_text = classified(&[message]);
    assert_eq!(
        (in_text.is_throttle(), in_text.retry_after()),
        (true, wait(9))
    );
    let pushback = classified(&[message, ("grpc-retry-pushback-ms", "2000")]);
    assert_eq!(pushback.retry_after(), wait(2));
    let never = classified(&[message, ("grpc-retry-pushback-ms", "-1")]);
    assert_eq!(
        (never.is_throttle(), never.retry_safety()),
        (true, RetrySafety::No)
    );
}
