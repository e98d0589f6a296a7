//! What answers over HTTP mean: codes before statuses, hints, wrong clocks; and which requests may
//! be sent twice.

use core::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use paceline::{
    Failure, Fault, Idempotency, RetryAfter,
    classify::{
        Classifier, HttpClassifier, HttpResponseParts, RefusalClassifier, ServiceUnavailable,
        aws_error_code, is_conditional,
    },
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
    HttpClassifier::new().classify(&HttpResponseParts::new(status(of), &none))
}

/// Reads a body that is an error code.
fn read(body: &[u8]) -> Option<&str> {
    core::str::from_utf8(body).ok()
}

fn coded(of: u16, code: &str) -> Option<Failure> {
    let none = HeaderMap::new();
    let answer = HttpResponseParts::new(status(of), &none).with_body(code, read);
    HttpClassifier::new().classify(&answer)
}

/// The hint of a failure with status 500 and these headers.
fn hint(fields: &[(&'static str, &str)]) -> Option<RetryAfter> {
    let headers = headers(fields);
    let answer = HttpResponseParts::new(status(500), &headers).with_local_time(TIME);
    HttpClassifier::new()
        .classify(&answer)
        .unwrap()
        .retry_after()
}

const fn floor(seconds: u64) -> RetryAfter {
    RetryAfter::AtLeast(Duration::from_secs(seconds))
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
    let http = HttpClassifier::new().with_unavailable(ServiceUnavailable::Throttle);
    let response = Response::builder().status(503).body(()).unwrap();
    let want = Failure::throttling().with_fault(Fault::Server);
    assert_eq!(http.classify(&response), Some(want));
}

#[test]
fn codes_come_before_statuses() {
    let throttled = |fault| Some(Failure::throttling().with_fault(fault));
    assert_eq!(coded(400, "ThrottlingException"), throttled(Fault::Client));
    assert_eq!(coded(503, "SlowDown"), throttled(Fault::Server));
    assert_eq!(coded(200, "SlowDown"), throttled(Fault::Other));
    assert_eq!(coded(504, "SlowDown"), throttled(Fault::Server));
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
fn codes_of_a_service_count_if_it_is_named() {
    let none = HeaderMap::new();
    let classify = |service, of, code| {
        let parts = HttpResponseParts::new(status(of), &none).with_body(code, read);
        let classifier = HttpClassifier::new().with_service(service);
        classifier.classify(&parts)
    };
    let transient = |fault| Some(Failure::transient().with_fault(fault));
    let idp = "IDPCommunicationError";
    assert_eq!(classify("sts", 400, idp), transient(Fault::Client));
    assert_eq!(classify("s3", 400, idp), bare(400));
    assert_eq!(coded(400, idp), bare(400));
    let internal = "InternalError";
    assert_eq!(classify("s3", 200, internal), transient(Fault::Other));
    assert_eq!(coded(200, internal), None);
    assert_eq!(coded(500, internal), bare(500));
    assert_eq!(classify("s3", 429, internal), transient(Fault::Client));
    assert_eq!(classify("s3", 429, "Whatever"), bare(429));
}

#[test]
fn code_comes_from_the_header_before_the_body() {
    let body = br#"{"__type":"SlowDown"}"#;
    let code = |value: Option<&str>| {
        let headers = value.map_or_else(HeaderMap::new, |value| {
            headers(&[("x-amzn-errortype", value)])
        });
        let answer = HttpResponseParts::new(status(400), &headers);
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
    let answer = HttpResponseParts::new(status(400), &none).with_body(b"oops", |_| Some("Mine"));
    assert_eq!(answer.code(), Some("Mine"));
}

#[test]
fn error_inside_a_200_is_found_only_if_asked_for() {
    let response = Response::new(b"<Error><Code>InternalError</Code></Error>");
    assert_eq!(HttpClassifier::new().classify(&response), None);
    let answer = HttpResponseParts::of(&response).with_body(response.body(), aws_error_code);
    let want = Failure::transient().with_fault(Fault::Other);
    let s3 = HttpClassifier::new().with_service("s3");
    assert_eq!(s3.classify(&answer), Some(want));
    assert_eq!(HttpClassifier::new().classify(&answer), None);
    let object = Response::new(b"<Objects><Code>InternalError</Code></Objects>");
    let answer = HttpResponseParts::of(&object).with_body(object.body(), aws_error_code);
    assert_eq!(s3.classify(&answer), None);
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
    let answer = HttpResponseParts::new(status(404), &headers);
    assert_eq!(HttpClassifier::new().classify(&answer), bare(404));
    let moved = HttpResponseParts::new(status(301), &headers);
    assert_eq!(HttpClassifier::new().classify(&moved), None);
}

/// RFC 9111, section 5.1: `Age` says that a response comes from a cache.
#[test]
fn age_is_the_first_that_is_valid() {
    let age = |text: &str| {
        let headers = headers(&[("age", text)]);
        HttpResponseParts::new(status(403), &headers)
            .age()
            .as_secs()
    };
    assert_eq!(
        HttpResponseParts::new(status(403), &headers(&[]))
            .age()
            .as_secs(),
        0
    );
    assert_eq!([age("0"), age("17280")], [0, 17_280]);
    assert_eq!(age("1, 0"), 1, "the first counts");
    for invalid in ["-5", "5 s", "", "1.5"] {
        assert_eq!(age(invalid), 0, "{invalid}");
    }
}

#[test]
fn dates_of_cached_responses_count_from_date_and_age() {
    let later = "Sun, 06 Nov 1994 08:50:37 GMT";
    let aged = |age| hint(&[("retry-after", later), ("date", DATE), ("age", age)]);
    assert_eq!(aged("0"), Some(floor(60)));
    assert_eq!(aged("45"), Some(floor(15)));
    assert_eq!(aged("17280"), Some(floor(0)), "it has passed");
    assert_eq!(aged("99999999999999999999"), Some(floor(0)));
    // Seconds count from when the response is received (RFC 9110, section 10.2.3).
    let seconds = [("retry-after", "60"), ("date", DATE), ("age", "45")];
    assert_eq!(hint(&seconds), Some(floor(60)));
    let dateless = [("retry-after", later), ("age", "45")];
    assert_eq!(hint(&dateless), Some(floor(60)), "by the local time");
}

#[test]
fn chain_asks_special_classifiers_first() {
    let headers = headers(&[("ratelimit", "a;r=0;t=9"), ("date", DATE)]);
    let answer = HttpResponseParts::new(status(403), &headers).with_local_time(Duration::ZERO);
    let mine = |answer: &HttpResponseParts<'_>| (answer.status() == 403).then(Failure::timeout);
    let chain = (RefusalClassifier::new(), HttpClassifier::new());
    assert!(chain.classify(&answer).unwrap().is_throttle());
    assert_eq!((mine, chain).classify(&answer), Some(Failure::timeout()));
    assert_eq!(
        (chain, mine).classify(&HttpResponseParts::new(status(200), &headers)),
        None
    );
}

#[test]
fn secrets_in_headers_are_not_printed() {
    let headers = headers(&[("set-cookie", "secret"), ("x-amzn-errortype", "SlowDown")]);
    let printed = format!("{:?}", HttpResponseParts::new(status(400), &headers));
    assert!(
        printed.contains("SlowDown") && !printed.contains("secret"),
        "{printed}"
    );
}

#[test]
fn requests_may_be_sent_twice_by_method_or_key() {
    let with = |method: &Method, fields: &[(&'static str, &str)]| {
        Idempotency::of_parts(method, None, &headers(fields))
    };
    let (twice, once) = (Idempotency::Idempotent, Idempotency::NotIdempotent);
    // Every method of <https://www.iana.org/assignments/http-methods>, but for "*".
    let safe = "GET HEAD OPTIONS TRACE PRI PROPFIND QUERY REPORT SEARCH";
    let idempotent = "ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT COPY DELETE LABEL LINK MERGE \
        MKACTIVITY MKCALENDAR MKCOL MKREDIRECTREF MKWORKSPACE MOVE ORDERPATCH PROPPATCH PUT \
        REBIND UNBIND UNCHECKOUT UNLINK UNLOCK UPDATE UPDATEREDIRECTREF VERSION-CONTROL";
    let condition = &[("if-none-match", "*")][..];
    for (methods, repeated) in [(safe, twice), (idempotent, once)] {
        for name in methods.split_whitespace() {
            let method = Method::from_bytes(name.as_bytes()).unwrap();
            assert_eq!(with(&method, &[]), twice, "{name}");
            assert_eq!(with(&method, condition), repeated, "{name}");
        }
    }
    for name in "CONNECT LOCK PATCH POST ORDER propfind".split(' ') {
        let method = Method::from_bytes(name.as_bytes()).unwrap();
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
    let keyed = &[("idempotency-key", "k"), condition[0]];
    assert_eq!(with(&Method::PUT, keyed), twice);
    for (request, expected) in [
        (Request::post("/"), once),
        (Request::get("/"), twice),
        (Request::put("/?ifGenerationMatch=0"), once),
    ] {
        let request = request.body(()).unwrap();
        assert_eq!(Idempotency::of_request(&request), expected, "{request:?}");
    }
}

/// RFC 9110, section 13.1; RFC 4918, sections 10.4 and 10.6; and the conditions and appends of
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html>,
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/directory-buckets-objects-append.html>,
/// <https://cloud.google.com/storage/docs/request-preconditions>,
/// <https://learn.microsoft.com/en-us/rest/api/storageservices/append-block>,
/// <https://developers.cloudflare.com/r2/api/s3/extensions/> and
/// <https://www.elastic.co/guide/en/elasticsearch/reference/current/optimistic-concurrency-control.html>.
#[test]
fn a_condition_is_known_by_a_word_in_a_name() {
    for (field, is) in [
        (("if-match", "\"x\""), true),
        (("if-none-match", "*"), true),
        (("if-unmodified-since", DATE), true),
        (("if", "(<opaque:token>)"), true),
        (("overwrite", "F"), true),
        (("overwrite", "T"), false),
        (("x-goog-if-generation-match", "0"), true),
        (("cf-copy-destination-if-none-match", "*"), true),
        (("x-amz-if-match-size", "5"), true),
        (("x-amz-write-offset-bytes", "9"), true),
        // The source stays as it is.
        (("x-amz-copy-source-if-match", "\"x\""), false),
        (("x-ms-source-if-none-match", "*"), false),
        (("x-amz-copy-source", "/logs/a"), false),
        (("x-notification", "a"), false),
    ] {
        assert_eq!(is_conditional(None, &headers(&[field])), is, "{field:?}");
    }
    for (query, is) in [
        ("uploadType=media&ifGenerationMatch=0", true),
        ("ifMetagenerationNotMatch=4", true),
        ("ifSourceGenerationMatch=4", false),
        ("if_seq_no=10&if_primary_term=1", true),
        ("iframe=1&if=1&ifs", false),
        ("comp=appendblock", true),
        ("append&position=0", true),
        ("action=append&position=9", true),
        ("op=APPEND", true),
        ("prefix=appendix", false),
        ("", false),
    ] {
        assert_eq!(is_conditional(Some(query), &headers(&[])), is, "{query}");
    }
}
