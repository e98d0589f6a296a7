//! Quotas in the headers of an answer: where they are looked for, and when they are throttling.
#![cfg(feature = "http")]

use core::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use paceline::{
    Failure, Fault, RetryAfter,
    classify::{Classifier, HttpResponseParts, RateLimit, RateLimitClassifier},
};

/// 1994-11-06 08:49:37 UTC.
const TIME: Duration = Duration::from_secs(784_111_777);

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let field = |(name, value): &(&'static str, &str)| {
        let value = HeaderValue::from_str(value).unwrap();
        (HeaderName::from_static(name), value)
    };
    fields.iter().map(field).collect()
}

const fn until(seconds: u64) -> Failure {
    let hint = RetryAfter::AtLeast(Duration::from_secs(seconds));
    Failure::throttling().with_retry_after(hint)
}

/// Says by `RateLimitClassifier` alone what an answer means, once its fault is checked.
fn limited(of: u16, fields: &[(&'static str, &str)]) -> Option<Failure> {
    let (headers, status) = (headers(fields), StatusCode::from_u16(of).unwrap());
    let answer = HttpResponseParts::new(status, &headers).with_local_time(TIME);
    let failure = RateLimitClassifier.classify(&answer)?;
    let fault = if of < 500 {
        Fault::Client
    } else {
        Fault::Server
    };
    assert_eq!(failure.fault(), fault);
    Some(failure.with_fault(Fault::Other))
}

#[test]
fn exhausted_quotas_are_throttling() {
    let gone = ("ratelimit", "a;r=0;t=9");
    for of in [403, 429, 503] {
        assert_eq!(limited(of, &[gone]), Some(until(9)), "{of}");
    }
    for of in [200, 400, 404, 500] {
        assert_eq!(limited(of, &[gone]), None, "{of}");
    }
    assert_eq!(limited(429, &[("ratelimit", "a;r=1;t=9")]), None);
    assert_eq!(
        limited(429, &[("ratelimit", "a;r=0")]),
        Some(Failure::throttling())
    );
    assert_eq!(limited(429, &[gone, ("retry-after", "3")]), Some(until(3)));
    assert_eq!(limited(429, &[]), None);
}

#[test]
fn every_spelling_of_the_pair_is_read() {
    for [remaining, reset] in [
        ["ratelimit-remaining", "ratelimit-reset"],
        ["x-ratelimit-remaining", "x-ratelimit-reset"],
        ["x-rate-limit-remaining", "x-rate-limit-reset"],
    ] {
        assert_eq!(
            limited(403, &[(remaining, "0"), (reset, "7")]),
            Some(until(7))
        );
        assert_eq!(limited(403, &[(remaining, "0")]), None, "half a pair");
        let wrong = [(remaining, "none"), (reset, "7")];
        assert_eq!(limited(403, &wrong), None, "ignored");
        let error = RateLimit::from_headers(&headers(&wrong), TIME).unwrap_err();
        assert_eq!(error.header(), "RateLimit-Remaining");
    }
    let reset = [
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1000000000"),
    ];
    assert_eq!(
        limited(403, &reset),
        Some(until(1_000_000_000 - TIME.as_secs()))
    );
}

/// "`RateLimit` header fields for HTTP", section on caching: fields of a response from a cache are
/// ignored.
#[test]
fn quotas_of_cached_responses_are_ignored() {
    let pair = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "7")];
    for fields in [&[("ratelimit", "a;r=0;t=9")][..], &pair[..]] {
        let aged = |age| limited(429, &[fields, &[("age", age)]].concat());
        assert_eq!(aged("1"), None);
        assert!(aged("0").is_some());
        assert!(aged("old").is_some());
    }
    let wrong = headers(&[("ratelimit", "?"), ("age", "1")]);
    assert_eq!(RateLimit::from_headers(&wrong, TIME), Ok(None));
}

#[test]
fn lines_of_one_header_are_one_list_and_come_before_pairs() {
    let lines = [("ratelimit", "a;r=0;t=5"), ("ratelimit", "b;r=0;t=6")];
    assert_eq!(limited(429, &lines), Some(until(6)));
    let pair = [
        ("ratelimit-remaining", "0"),
        ("ratelimit-reset", "7"),
        ("ratelimit", "b;r=2;t=6"),
    ];
    assert_eq!(limited(429, &pair), None);
    let dictionary = [("ratelimit", "remaining=0"), ("ratelimit", "reset=4")];
    assert_eq!(limited(429, &dictionary), Some(until(4)));
    let wrong = [("ratelimit", "a;r=0;t=5"), ("ratelimit", "?")];
    assert_eq!(limited(429, &wrong), None);
    assert!(RateLimit::from_headers(&headers(&wrong), TIME).is_err());
}
