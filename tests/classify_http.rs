//! What answers over HTTP mean: codes before statuses, hints, wrong clocks; and which requests may be
//! sent twice.
#![cfg(feature = "http")]

use core::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use paceline::{
    Chain, Classifier, Execution, Failure, Fault, HttpAnswer, HttpResponses, Idempotency,
    RateLimits, RetryAfter, ServiceUnavailable, Skew, SkewedClock, aws_error_code,
};

/// 1994-11-06 08:49:37 UTC.
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const TIME: Duration = Duration::from_secs(784_111_777);

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let field = |(name, value): &(&'static str, &str)| {
        let value = HeaderValue::from_str(value).unwrap();
        (HeaderName::from_static(name), value)
    };
    fields.iter().map(field).collect()
}

fn status(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap()
}

/// Classifies an answer without a code.
fn bare(of: u16) -> Option<Failure> {
    let none = HeaderMap::new();
    HttpResponses::new().classify(&HttpAnswer::new(status(of), &none))
}

fn coded(of: u16, code: &str) -> Option<Failure> {
    let none = HeaderMap::new();
    let answer = HttpAnswer::new(status(of), &none).with_code(code);
    HttpResponses::new().classify(&answer)
}

/// The hint of a failure with status 500 and these headers.
fn hint(fields: &[(&'static str, &str)]) -> Option<RetryAfter> {
    let headers = headers(fields);
    let answer = HttpAnswer::new(status(500), &headers).with_local_time(TIME);
    HttpResponses::new()
        .classify(&answer)
        .unwrap()
        .retry_after()
}

const fn floor(seconds: u64) -> RetryAfter {
    RetryAfter::Floor(Duration::from_secs(seconds))
}

#[test]
fn bare_statuses_mean_what_their_table_says() {
    let (client, server) = (Fault::Client, Fault::Server);
    let throttled = |fault| Some(Failure::throttling().with_fault(fault));
    assert_eq!(bare(429), throttled(client));
    assert_eq!(bare(509), throttled(server));
    for transient in [500, 502, 503] {
        assert_eq!(bare(transient), Some(Failure::transient()), "{transient}");
    }
    assert_eq!(bare(504), Some(Failure::timeout()));
    assert_eq!(bare(408), Some(Failure::timeout().with_fault(client)));
    for (refused, fault) in [
        (400, client),
        (401, client),
        (403, client),
        (404, client),
        (409, client),
        (425, client),
        (499, client),
        (501, server),
        (505, server),
        (600, Fault::Other),
    ] {
        let want = Failure::not_retryable().with_fault(fault);
        assert_eq!(bare(refused), Some(want), "{refused}");
    }
    for unknown in [100, 200, 204, 301, 304, 399] {
        assert_eq!(bare(unknown), None, "{unknown}");
    }
}

#[test]
fn bare_503_can_be_throttling() {
    let http = HttpResponses::new().with_unavailable(ServiceUnavailable::Throttle);
    let response = Response::builder().status(503).body(()).unwrap();
    let want = Failure::throttling().with_fault(Fault::Server);
    assert_eq!(http.classify(&response), Some(want));
    assert_eq!(http.classify(&response.into_parts().0), Some(want));
    assert_eq!(HttpResponses::new(), HttpResponses::default());
}

#[test]
fn codes_come_before_statuses() {
    let throttled = |fault| Some(Failure::throttling().with_fault(fault));
    assert_eq!(coded(400, "ThrottlingException"), throttled(Fault::Client));
    assert_eq!(coded(503, "SlowDown"), throttled(Fault::Server));
    assert_eq!(coded(200, "SlowDown"), throttled(Fault::Other));
    assert_eq!(coded(504, "SlowDown"), throttled(Fault::Server));
    assert_eq!(
        coded(429, "InternalError"),
        Some(Failure::transient().with_fault(Fault::Client))
    );
    assert_eq!(
        coded(400, "RequestTimeout"),
        Some(Failure::transient().with_fault(Fault::Client))
    );
    assert_eq!(
        coded(408, "RequestTimeout"),
        Some(Failure::timeout().with_fault(Fault::Client))
    );
    // A code that decides nothing leaves it to the status.
    assert_eq!(coded(429, "Whatever"), bare(429));
    assert_eq!(coded(500, "NoSuchKey"), bare(500));
    assert_eq!(coded(400, "ValidationException"), bare(400));
    assert_eq!(coded(200, "NoSuchKey"), None);
}

#[test]
fn code_comes_from_the_header_before_the_body() {
    let body = br#"{"__type":"SlowDown"}"#;
    let code = |value: Option<&str>| {
        let headers = value.map_or_else(HeaderMap::new, |value| {
            headers(&[("x-amzn-errortype", value)])
        });
        let answer = HttpAnswer::new(status(400), &headers);
        answer
            .with_body(body, aws_error_code)
            .code()
            .map(str::to_owned)
    };
    assert_eq!(
        code(Some("Throttling:http://internal.amazon.com/")).as_deref(),
        Some("Throttling")
    );
    assert_eq!(code(Some("a.b#Throttling")).as_deref(), Some("Throttling"));
    assert_eq!(code(Some("what is this")).as_deref(), Some("SlowDown"));
    assert_eq!(code(None).as_deref(), Some("SlowDown"));
    let none = HeaderMap::new();
    let answer = HttpAnswer::new(status(400), &none).with_body(b"oops", |_| Some("Mine"));
    assert_eq!(answer.code(), Some("Mine"));
    assert_eq!(answer.with_code("Theirs").code(), Some("Theirs"));
}

#[test]
fn error_inside_a_200_is_found_only_if_asked_for() {
    let response = Response::new(b"<Error><Code>InternalError</Code></Error>");
    assert_eq!(HttpResponses::new().classify(&response), None);
    let answer = HttpAnswer::of(&response).with_body(response.body(), aws_error_code);
    let want = Failure::transient().with_fault(Fault::Other);
    assert_eq!(HttpResponses::new().classify(&answer), Some(want));
    let object = Response::new(b"<Objects><Code>InternalError</Code></Objects>");
    let answer = HttpAnswer::of(&object).with_body(object.body(), aws_error_code);
    assert_eq!(HttpResponses::new().classify(&answer), None);
}

#[test]
fn hints_are_read_from_three_forms_and_wrong_ones_are_ignored() {
    let millis = Some(RetryAfter::Clamped(Duration::from_millis(1500)));
    assert_eq!(hint(&[]), None);
    assert_eq!(
        hint(&[("x-amz-retry-after", "1500"), ("retry-after", "9")]),
        millis
    );
    assert_eq!(
        hint(&[("x-amz-retry-after", "soon"), ("retry-after", "9")]),
        Some(floor(9))
    );
    assert_eq!(hint(&[("retry-after", "9")]), Some(floor(9)));
    assert_eq!(hint(&[("retry-after", "-9")]), None);
    let later = "Sun, 06 Nov 1994 08:50:37 GMT";
    assert_eq!(
        hint(&[("retry-after", later)]),
        Some(floor(60)),
        "by the local time"
    );
    let date = ("date", "Sun, 06 Nov 1994 08:50:27 GMT");
    assert_eq!(
        hint(&[("retry-after", later), date]),
        Some(floor(10)),
        "by its own date"
    );
    assert_eq!(
        hint(&[("retry-after", later), ("date", "today")]),
        Some(floor(60))
    );
    assert_eq!(
        hint(&[("retry-after", "9"), ("retry-after", "8")]),
        Some(floor(9))
    );
}

#[test]
fn hint_makes_nothing_retryable() {
    let headers = headers(&[("retry-after", "9")]);
    let answer = HttpAnswer::new(status(404), &headers);
    assert_eq!(HttpResponses::new().classify(&answer), bare(404));
    let moved = HttpAnswer::new(status(301), &headers);
    assert_eq!(HttpResponses::new().classify(&moved), None);
}

/// Says what `SkewedClock` makes of a code in an answer of `DATE`, at a local time.
fn skewed(code: &str, local_time: Duration) -> Option<Failure> {
    let headers = headers(&[("date", DATE)]);
    let answer = HttpAnswer::new(status(403), &headers).with_code(code);
    SkewedClock.classify(&answer.with_local_time(local_time))
}

#[test]
fn signatures_fail_for_clocks_more_than_four_minutes_apart() {
    let minutes = Duration::from_secs(4 * 60);
    let nano = Duration::from_nanos(1);
    let want = Failure::transient().with_fault(Fault::Client);
    let want = Some(want.with_execution(Execution::Rejected));
    for code in [
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "AuthFailure",
        "RequestTimeTooSkewed",
        "AccessDeniedException",
    ] {
        assert_eq!(skewed(code, TIME + minutes), None, "{code}");
        assert_eq!(skewed(code, TIME.saturating_sub(minutes)), None, "{code}");
        assert_eq!(skewed(code, TIME + minutes + nano), want, "{code}");
        assert_eq!(
            skewed(code, TIME.saturating_sub(minutes + nano)),
            want,
            "{code}"
        );
    }
    for code in ["RequestExpired", "RequestInTheFuture", "SlowDown"] {
        assert_eq!(skewed(code, Duration::ZERO), None, "{code}");
    }
    let none = HeaderMap::new();
    let dateless = HttpAnswer::new(status(403), &none).with_local_time(TIME);
    assert_eq!(
        SkewedClock.classify(&dateless.with_code("AuthFailure")),
        None
    );
    assert_eq!(SkewedClock.classify(&dateless), None, "no code");
}

#[test]
fn skew_says_which_clock_is_ahead() {
    let headers = headers(&[("date", DATE)]);
    let skew = |local| {
        HttpAnswer::new(status(200), &headers)
            .with_local_time(local)
            .skew()
    };
    let second = Duration::from_secs(1);
    assert_eq!(skew(TIME.saturating_sub(second)), Some(Skew::Ahead(second)));
    assert_eq!(skew(TIME + second), Some(Skew::Behind(second)));
    assert_eq!(skew(TIME), Some(Skew::Ahead(Duration::ZERO)));
    assert_eq!(
        skew(Duration::MAX).map(Skew::span),
        Some(Duration::MAX.saturating_sub(TIME))
    );
    // Without a time the system's is taken: some decades later.
    let long_ago = HttpAnswer::new(status(200), &headers).skew();
    assert!(matches!(long_ago, Some(Skew::Behind(span)) if span.as_secs() > 900_000_000));
}

#[test]
fn chain_asks_special_classifiers_first() {
    let headers = headers(&[("ratelimit", "a;r=0;t=9"), ("date", DATE)]);
    let answer = HttpAnswer::new(status(403), &headers).with_local_time(Duration::ZERO);
    let mine = |answer: &HttpAnswer<'_>| (answer.status() == 403).then(Failure::timeout);
    let special = Chain::new(SkewedClock, RateLimits);
    let chain = special.or(HttpResponses::new());
    assert!(chain.classify(&answer).unwrap().is_throttle());
    let skewed = chain.classify(&answer.with_code("AuthFailure")).unwrap();
    assert!(!skewed.is_throttle());
    assert_eq!(
        Chain::new(mine, chain).classify(&answer),
        Some(Failure::timeout())
    );
    assert_eq!(
        chain
            .or(mine)
            .classify(&HttpAnswer::new(status(200), &headers)),
        None
    );
}

#[test]
fn secrets_in_headers_are_not_printed() {
    let headers = headers(&[("set-cookie", "secret"), ("x-amzn-errortype", "SlowDown")]);
    let printed = format!("{:?}", HttpAnswer::new(status(400), &headers));
    assert!(
        printed.contains("SlowDown") && !printed.contains("secret"),
        "{printed}"
    );
}

#[test]
fn requests_may_be_sent_twice_by_method_or_key() {
    let with = |method: &Method, fields: &[(&'static str, &str)]| {
        Idempotency::of_method(method, &headers(fields))
    };
    let (twice, once) = (Idempotency::Idempotent, Idempotency::NotIdempotent);
    for method in [
        Method::GET,
        Method::HEAD,
        Method::PUT,
        Method::DELETE,
        Method::OPTIONS,
        Method::TRACE,
    ] {
        assert_eq!(with(&method, &[]), twice, "{method}");
    }
    let own = Method::from_bytes(b"ORDER").unwrap();
    for method in [Method::POST, Method::PATCH, Method::CONNECT, own] {
        assert_eq!(with(&method, &[]), once, "{method}");
        for key in [
            "idempotency-key",
            "x-idempotency-key",
            "repeatability-request-id",
        ] {
            assert_eq!(with(&method, &[(key, "k")]), twice, "{method} {key}");
            assert_eq!(with(&method, &[(key, " ")]), once, "{method} {key}");
            assert_eq!(with(&method, &[(key, ""), (key, "k")]), twice);
        }
        assert_eq!(with(&method, &[("amz-sdk-invocation-id", "k")]), once);
    }
    assert_eq!(
        Idempotency::of_request(&Request::post("/").body(()).unwrap()),
        once
    );
    assert_eq!(
        Idempotency::of_request(&Request::get("/").body(()).unwrap()),
        twice
    );
}
