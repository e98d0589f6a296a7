//! Counts, lists, and resets.

use super::super::field::Number;
use super::*;
use crate::classify::limits::{counts, reader};
use crate::law::Reset;

const SECOND: Duration = Duration::from_secs(1);
const NANOS: u64 = 1_000_000_000;

#[test]
fn counts_have_fractions_and_thousands() {
    for (text, want) in [
        ("0", 0),
        (" 7 ", 7),
        ("598.0", 598),
        ("597.5", 597),
        ("4,987", 4_987),
        ("15,000,000", 15_000_000),
        ("4,987.25", 4_987),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(counts::count(text.as_bytes()), Some(want), "{text}");
    }
    for wrong in [
        "",
        "-3",
        "+3",
        ".5",
        "598.",
        "1.2.3",
        "1e3",
        "0x10",
        "many",
        "4, 987",
        "4,98",
        "4,9870",
        "4987,000",
        "0,987",
        "4,",
        ",987",
        "4,,987",
        "4.987,0",
        "\u{661}",
        "18446744073709551616",
    ] {
        assert_eq!(counts::count(wrong.as_bytes()), None, "{wrong}");
    }
}

#[test]
fn lists_are_no_thousands() {
    let list = |text: &str| {
        let items = counts::list(text.as_bytes())?;
        Some(items.iter().map(|item| (item.count, item.window)).collect())
    };
    let none = Number::Absent;
    let is = Number::Is;
    let wants: [(&str, Vec<(u64, Number)>); 10] = [
        ("4,987", vec![(4_987, none)]),
        ("1, 15000", vec![(1, none), (15_000, none)]),
        ("4, 987", vec![(4, none), (987, none)]),
        ("100;w=60", vec![(100, is(60))]),
        ("100, 100;w=60", vec![(100, none), (100, is(60))]),
        ("100,100;w=60", vec![(100, none), (100, is(60))]),
        (
            "10,10;w=1,100;w=60",
            vec![(10, none), (10, is(1)), (100, is(60))],
        ),
        ("5,5;w=1,100", vec![(5, none), (5, is(1)), (100, none)]),
        ("100; burst=3 ;w=60", vec![(100, is(60))]),
        (
            "100;w=0, 7;w=x",
            vec![(100, Number::Wrong), (7, Number::Wrong)],
        ),
    ];
    for (text, want) in wants {
        assert_eq!(list(text), Some(want), "{text}");
    }
    // 4,987 in 60 s, or 4 and then 987.
    for wrong in ["4,987;w=60", "4,987, 5,000", "", "3, 4;, x", "-1", "1,"] {
        assert_eq!(list(wrong), None, "{wrong}");
    }
}

#[test]
fn counts_are_read_or_counted_as_wrong() {
    assert_eq!(
        texts(&[
            ("x-ratelimit-limit", "5,000"),
            ("x-ratelimit-remaining", "4,987")
        ]),
        ["4987 of 5000 requests left"]
    );
    let wrong = read(&[
        ("x-ratelimit-limit", "many"),
        ("x-ratelimit-remaining", "3"),
        ("x-ratelimit-reset", "soon"),
        ("x-shopify-shop-api-call-limit", "40"),
        ("ratelimit", "=="),
    ]);
    assert_eq!((wrong.iter().count(), wrong.ignored()), (1, 4));
    for remaining in [
        "-3",
        "",
        "99999999999999999999",
        "4,987;w=60",
        "3, 4",
        "\u{661}",
    ] {
        let wrong = read(&[("x-ratelimit-remaining", remaining)]);
        assert_eq!(
            (wrong.iter().count(), wrong.ignored()),
            (0, 1),
            "{remaining}"
        );
    }
    let window = read(&[
        ("ratelimit-remaining", "3"),
        ("ratelimit-limit", "5"),
        ("ratelimit-policy", "5;w=0"),
    ]);
    assert_eq!(shown(&window), ["3 of 5 requests left"]);
    assert_eq!(window.ignored(), 1);
}

/// "Rate limits", Okta: <https://github.com/okta/okta-sdk-nodejs/issues/409>.
#[test]
fn a_limit_of_zero_is_none() {
    let zero = read(&[
        ("x-rate-limit-limit", "0"),
        ("x-rate-limit-remaining", "0"),
        ("x-rate-limit-reset", "1506461721"),
        DATE,
    ]);
    assert_eq!((zero.iter().count(), zero.ignored()), (0, 1));
    let zero = read(&[("ratelimit-policy", "a;q=0"), ("ratelimit", "a;r=0;t=9")]);
    assert_eq!((zero.iter().count(), zero.ignored()), (0, 1));
}

#[test]
fn a_header_that_contradicts_itself_is_ignored() {
    let twice = |second| {
        [
            ("x-ratelimit-remaining", "3"),
            ("x-ratelimit-remaining", second),
        ]
    };
    let wrong = read(&twice("4987"));
    assert_eq!((wrong.iter().count(), wrong.ignored()), (0, 1));
    assert_eq!(texts(&twice("3")), ["3 requests left"]);
}

#[test]
fn a_time_counts_beside_a_date_alone() {
    for reset in [
        "1700000000",
        "1700000000000",
        "2023-11-14T22:13:20Z",
        "Tue, 14 Nov 2023 22:13:20 GMT",
    ] {
        let headers = [
            ("x-ratelimit-limit", "60;w=60"),
            ("x-ratelimit-remaining", "3"),
            ("x-ratelimit-reset", reset),
        ];
        let dated = [headers.as_slice(), &[DATE]].concat();
        assert_eq!(
            texts(&dated),
            ["3 of 60 requests left, reset at 1700000000 s of 1970, window of 60s"],
            "{reset}"
        );
        for more in [&[][..], &[("date", "today")]] {
            let reports = read(&[&headers[..], more].concat());
            assert_eq!(
                shown(&reports),
                ["3 of 60 requests left, window of 60s"],
                "{reset}"
            );
            assert_eq!(reports.ignored(), 1, "{reset}");
        }
    }
}

#[test]
fn a_structured_field_may_have_a_time_too() {
    for field in ["a;r=3;t=1700000000", "remaining=3, reset=1700000000"] {
        let left = ["3 requests left, reset at 1700000000 s of 1970"];
        assert_eq!(texts(&[("ratelimit", field), DATE]), left, "{field}");
    }
}

#[test]
fn resets_are_read_in_every_form() {
    let millis = Duration::from_millis;
    let at = |seconds| Reset::At(SECOND * seconds);
    for (text, want) in [
        ("0", Reset::In(Duration::ZERO)),
        ("6m0s", Reset::In(SECOND * 360)),
        ("23h18m29s", Reset::In(SECOND * 83_909)),
        ("1d2h", Reset::In(SECOND * 93_600)),
        ("120ms", Reset::In(millis(120))),
        ("1.0001", Reset::In(Duration::from_micros(1_000_100))),
        ("1.0000", Reset::In(SECOND)),
        ("1.000000000000000001", Reset::In(Duration::new(1, 1))),
        ("1700000000.25", Reset::At(millis(1_700_000_000_250))),
        ("1700000000250", Reset::At(millis(1_700_000_000_250))),
        (
            "2023-11-14T23:13:20.5+01:00",
            Reset::At(millis(1_700_000_000_500)),
        ),
        ("2023-11-15T22:12:20+23:59", at(1_700_000_000)),
        ("2023-11-14T23:13:20+0100", at(1_700_000_000)),
        ("2023-11-14T22:13Z", at(1_699_999_980)),
        ("2023-11-14T23:13+01:00", at(1_699_999_980)),
        ("2024-02-29T00:00:00Z", at(1_709_164_800)),
        ("2000-02-29T00:00:00Z", at(951_782_400)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", at(784_111_777)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", at(784_111_777)),
    ] {
        assert_eq!(reader::reset(text.as_bytes(), NANOS), Some(want), "{text}");
    }
}

#[test]
fn what_is_no_reset_is_none() {
    for wrong in [
        "",
        "-1",
        "1e3",
        "6m6m",
        "1s2m",
        "soon",
        "1,700,000,000",
        // Microseconds.
        "1700000000000000",
        "99999999999999999999",
        "6m0",
        "0x10",
        "+5",
        "2023-13-01T00:00:00Z",
        "2023-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2023-04-31T00:00:00Z",
        "2023-11-14T24:00:00Z",
        "2023-11-14T23:60:20Z",
        "2023-11-14T23:13:20+24:00",
        "2023-11-14T23:13:20+01:60",
        "2023-11-14T23:13:20+010",
        "2023-11-14T23:13:20+0a00",
        // A time without a zone is ambiguous.
        "2023-11-14T23:13:20",
        "2023-11-14T23:13",
        "2023-11-14T23:13.5Z",
        "2023-11-14T23Z",
        "1970-01-01T00:00:00+01:00",
        "Sun, 06 Nov 1994 08:49:37",
        ".5",
        "1.",
    ] {
        assert_eq!(reader::reset(wrong.as_bytes(), NANOS), None, "{wrong}");
    }
}
