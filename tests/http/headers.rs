//! Headers that say when to retry: accepted values, bounds of their numbers, and how a strategy
//! uses the hint.

use core::time::Duration;

use paceline::{
    Failure, RetryAfter, RetryStrategy, RetryStrategyExt, Standard,
    headers::{AttemptHeader, age},
    operation::{OuterAttempt, within},
    strategy::Reports,
};

/// 1994-11-06 08:49:37 UTC, the date of RFC 9110's examples.
const DATE: Duration = Duration::from_secs(784_111_777);
const FORMS: [&str; 3] = [
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
];

fn amz(value: &str) -> Option<u128> {
    match RetryAfter::parse_amz(value)? {
        RetryAfter::Clamped(span) => Some(span.as_millis()),
        other => panic!("{other:?}"),
    }
}

fn http(value: &str, now: Duration) -> Option<Duration> {
    match RetryAfter::parse_http(value, now)? {
        RetryAfter::AtLeast(span) => Some(span),
        other => panic!("{other:?}"),
    }
}

#[test]
fn amz_header_is_milliseconds() {
    assert_eq!(amz("1500"), Some(1_500));
    assert_eq!(amz("0"), Some(0));
    assert_eq!(amz("007"), Some(7));
    assert_eq!(
        amz(" 7\t"),
        Some(7),
        "whitespace around a header's value is no part of it"
    );
}

#[test]
fn amz_header_is_digits_only() {
    for value in [
        "", " ", "invalid", "-100", "+5", "1.5", "1e3", "5ms", "1 5", "5_0", "٥", FORMS[0],
    ] {
        assert_eq!(amz(value), None, "{value:?}");
    }
}

#[test]
fn amz_header_ends_at_64_bits() {
    assert_eq!(amz("18446744073709551615"), Some(u128::from(u64::MAX)));
    assert_eq!(amz("18446744073709551616"), None);
    assert_eq!(amz("18446744073709551620"), None);
    assert_eq!(amz(&"9".repeat(1_000)), None);
    assert_eq!(amz(&format!("{}5", "0".repeat(1_000))), Some(5));
}

#[test]
fn http_header_is_seconds() {
    assert_eq!(http("120", DATE), Some(Duration::from_secs(120)));
    assert_eq!(http("0", DATE), Some(Duration::ZERO));
    assert_eq!(http(" 7 ", Duration::MAX), Some(Duration::from_secs(7)));
}

#[test]
fn http_seconds_are_a_time_from_31_years_on() {
    let second = Duration::from_secs(1);
    assert_eq!(http("999999999", DATE), Some(second * 999_999_999));
    let now = Duration::from_secs(1_746_136_878);
    // <https://github.com/docker/hub-feedback/issues/2459>
    assert_eq!(http("1746136938", now), Some(second * 60));
    assert_eq!(http("1746136938.5", now), Some(second * 60 + second / 2));
    assert_eq!(http("1746136938000", now), Some(second * 60));
    assert_eq!(
        http("1000000000", now),
        Some(Duration::ZERO),
        "it has passed"
    );
    for wrong in [
        "100000000000000",
        "18446744073709551616",
        &"9".repeat(1_000),
    ] {
        assert_eq!(http(wrong, now), None, "{wrong}");
    }
}

#[test]
fn http_header_is_a_span_or_a_time_of_rfc_3339() {
    assert_eq!(http("1500ms", DATE), Some(Duration::from_millis(1_500)));
    assert_eq!(http("6m0s", DATE), Some(Duration::from_secs(360)));
    // <https://github.com/jrchamp/moodle-mod_zoom/issues/106>
    let now = Duration::from_secs(1_635_215_320);
    let until = Some(Duration::from_secs(77_480));
    assert_eq!(http("2021-10-27T00:00:00Z", now), until);
    assert_eq!(http("2021-10-27T02:00:00+02:00", now), until);
}

#[cfg(feature = "http-date")]
#[test]
fn http_header_is_a_date_in_three_forms() {
    for form in FORMS {
        let now = Duration::new(784_111_775, 500_000_000);
        assert_eq!(
            http(form, now),
            Some(Duration::from_millis(1_500)),
            "{form}"
        );
        assert_eq!(
            http(&format!(" {form}\t"), Duration::ZERO),
            Some(DATE),
            "{form}"
        );
    }
}

#[cfg(feature = "http-date")]
#[test]
fn date_that_has_passed_is_no_wait() {
    for form in FORMS {
        for later in [0, 1, u64::MAX - DATE.as_secs()] {
            let now = DATE + Duration::from_secs(later);
            assert_eq!(http(form, now), Some(Duration::ZERO), "{form}");
        }
    }
}

#[cfg(feature = "http-date")]
#[test]
fn last_date_is_that_of_the_year_9999() {
    let last = Duration::from_secs(253_402_300_799);
    assert_eq!(
        http("Fri, 31 Dec 9999 23:59:59 GMT", Duration::ZERO),
        Some(last)
    );
    assert_eq!(
        http("Thursday, 01-Jan-70 00:00:00 GMT", Duration::ZERO),
        Some(Duration::ZERO)
    );
}

#[test]
fn http_header_may_have_a_fraction() {
    let parsed = |value| http(value, DATE);
    assert_eq!(parsed("1.5"), Some(Duration::from_millis(1_500)));
    assert_eq!(parsed("0.000000001"), Some(Duration::from_nanos(1)));
    // Rounded up.
    assert_eq!(parsed("2.0000000001"), Some(Duration::new(2, 1)));
    assert_eq!(parsed("7.000"), Some(Duration::from_secs(7)));
}

#[test]
fn retry_info_is_found_among_the_details() {
    let parsed = |value: &str| RetryAfter::parse_status_details(value);
    // Of 1 s and 1 ns, with padding and without.
    let info = "GjIKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SBgoECAEQAQ";
    let hint = RetryAfter::AtLeast(Duration::new(1, 1));
    assert_eq!(parsed(info), Some(hint));
    assert_eq!(parsed(&format!("{info}==")), Some(hint));
    for (end, _) in info.char_indices() {
        assert_eq!(parsed(&info[..end]), None, "cut at {end}");
    }
    for wrong in ["", "=", "not base64", "AAAA", "////////////////"] {
        assert_eq!(parsed(wrong), None, "{wrong}");
    }
}

#[test]
fn http_header_is_nothing_else() {
    for value in [
        "",
        "soon",
        "-1",
        "+1",
        "1.",
        ".5",
        "1.5.2",
        "1e3",
        "1, 2",
        "Mon, 06 Nov 1994 08:49:37 GMT", // it was a Sunday
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "1994-11-06T08:49:37",
        "Wed, 31 Dec 1969 23:59:59 GMT",
        "Ｓun, 06 Nov 1994 08:49:37 GMT",
    ] {
        assert_eq!(http(value, DATE), None, "{value:?}");
    }
}

#[test]
fn bytes_that_are_not_text_are_no_hint() {
    assert_eq!(RetryAfter::parse_amz(b"5\xff"), None);
    assert_eq!(RetryAfter::parse_http(b"Sun\xff", DATE), None);
}

/// The delay of a first retry after a transient failure without jitter, in milliseconds.
fn delay(hint: Option<RetryAfter>) -> u128 {
    let strategy = Standard::builder()
        .base_delay(Duration::ZERO)
        .build()
        .unwrap();
    let token = strategy.acquire_initial_token(None).unwrap();
    let token = token.with_max_retry_after(Duration::MAX);
    let failure = hint.map_or(Failure::transient(), |hint| {
        Failure::transient().with_retry_after(hint)
    });
    let token = strategy
        .refresh_retry_token(token, &failure, Reports::new())
        .unwrap();
    token.delay().as_millis()
}

#[test]
fn hint_reaches_the_delay() {
    let amz = |value: &str| delay(RetryAfter::parse_amz(value));
    assert_eq!(amz("1500"), 1_500);
    assert_eq!(amz("10000"), 5_000, "clamped");
    assert_eq!(amz("invalid"), 0, "ignored");
    let http = |value: &str| delay(RetryAfter::parse_http(value, DATE));
    assert_eq!(http("10"), 10_000, "a floor");
    assert_eq!(http("18446744073709551616"), 0, "ignored");
}

#[test]
fn age_is_the_first_member_in_digits() {
    assert_eq!(age("17280"), Some(Duration::from_secs(17_280)));
    assert_eq!(age(" 5 ,7"), Some(Duration::from_secs(5)));
    assert_eq!(age("x,7"), None);
    for invalid in ["", ",5", "-5", "+5", "1.5", "5s"] {
        assert_eq!(age(invalid), None, "{invalid:?}");
    }
    let most = Duration::from_secs(u64::MAX);
    assert_eq!(age("99999999999999999999999"), Some(most));
}

#[test]
fn an_attempt_is_told_in_three_ways() {
    let told = |header: AttemptHeader| {
        let (strategy, mut values) = (Standard::new(), Vec::new());
        let _stopped = strategy.operation().sleep_by(|_| {}).run(|attempt| {
            values.push(header.value(&attempt).unwrap_or_default());
            Err::<(), _>(Failure::transient())
        });
        (header.name(), values.join(", "))
    };
    let grpc = AttemptHeader::GrpcPreviousRpcAttempts;
    assert_eq!(told(grpc), ("grpc-previous-rpc-attempts", ", 1, 2".into()));
    let envoy = AttemptHeader::EnvoyAttemptCount;
    assert_eq!(told(envoy), ("x-envoy-attempt-count", "1, 2, 3".into()));
    let three = "attempt=1; max=3, attempt=2; max=3, attempt=3; max=3";
    let amz = AttemptHeader::AmzSdkRequest;
    assert_eq!(told(amz), ("amz-sdk-request", three.into()));
    // Inside of an attempt that of the outermost loop counts.
    let (outer, inner) = (Standard::new(), Standard::new());
    let mut values = Vec::new();
    let _stopped = outer.operation().sleep_by(|_| {}).run(|_| {
        let stopped = inner.run(|attempt| {
            values.push([amz, grpc].map(|header| header.value(&attempt)));
            Err::<(), _>(Failure::transient())
        });
        Err::<(), _>(stopped.unwrap_err().into_error().unwrap())
    });
    assert_eq!(values[0], [Some("attempt=1; max=3".into()), None]);
    assert_eq!(
        values[2],
        [Some("attempt=3; max=3".into()), Some("2".into())]
    );
    // Of another crate's loop it is not known.
    let _stopped = within(Some(OuterAttempt::new()), || {
        outer.run(|attempt| {
            assert_eq!(
                [amz, envoy, grpc].map(|header| header.value(&attempt)),
                [const { None }; 3]
            );
            Ok::<_, Failure>(())
        })
    });
}
