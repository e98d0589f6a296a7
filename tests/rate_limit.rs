//! Headers on how much is left, and what they may say.
#![cfg(feature = "structured-fields")]

use core::time::Duration;

use paceline::{RetryAfter, classify::RateLimit, headers::HintFault};

const NOW: Duration = Duration::from_secs(1_800_000_000);

/// What is left, and the seconds to the reset.
fn read(value: &str) -> Result<(u64, Option<u64>), HintFault> {
    let limit = RateLimit::parse(value).map_err(|error| error.fault())?;
    Ok((
        limit.remaining(),
        limit.reset().map(|reset| reset.as_secs()),
    ))
}

fn pair(remaining: &str, reset: &str) -> Result<(u64, Option<Duration>), HintFault> {
    let limit = RateLimit::parse_pair(remaining, reset, NOW);
    let limit = limit.map_err(|error| error.fault())?;
    Ok((limit.remaining(), limit.reset()))
}

#[test]
fn lists_of_quotas_are_read() {
    assert_eq!(read(r#""default";r=50;t=30"#), Ok((50, Some(30))));
    assert_eq!(read("default;t=30;r=50"), Ok((50, Some(30))));
    assert_eq!(read(r#""a,\";r=1\\";r=7"#), Ok((7, None)));
    assert_eq!(
        read(r#"  "a" ; r=7"#),
        Err(HintFault::NotRateLimit),
        "no space before ;"
    );
    assert_eq!(read("\"a\"; r=7;  t=1 \t"), Ok((7, Some(1))));
    let others = r#""a";pk=:cHsdsRa894==:;q=1.5;d=-3;when=@-1;u=%"f%c3%bc";ok;no=?0;r=5;k=*x/y:z"#;
    assert_eq!(read(others), Ok((5, None)));
    assert_eq!(
        read("a;r=1;r=2"),
        Ok((2, None)),
        "the last of a name counts"
    );
    assert_eq!(read("a;r=999999999999999"), Ok((999_999_999_999_999, None)));
}

#[test]
fn tightest_quota_counts() {
    assert_eq!(read("a;r=2;t=9, b;r=1;t=3"), Ok((1, Some(3))));
    assert_eq!(read("a;r=1;t=3 ,\tb;r=2;t=9"), Ok((1, Some(3))));
    assert_eq!(read("a;r=0;t=2,b;r=0;t=600,c;r=0"), Ok((0, Some(600))));
    assert_eq!(read("a;t=5, b;r=3"), Ok((3, None)), "one does not say");
}

#[test]
fn dictionary_of_earlier_drafts_is_read() {
    assert_eq!(read("limit=100, remaining=50, reset=5"), Ok((50, Some(5))));
    assert_eq!(read("remaining=0"), Ok((0, None)));
    assert_eq!(
        read("reset=5;x=1,policy=\"a\",remaining=1"),
        Ok((1, Some(5)))
    );
}

#[test]
fn dictionary_may_hold_an_inner_list() {
    let field = "limit=10, remaining=10, reset=4,policy=(10;w=1 50;w=60)";
    assert_eq!(read(field), Ok((10, Some(4))));
    assert_eq!(
        read("remaining=(1), remaining=2"),
        Ok((2, None)),
        "the last of a key counts"
    );
}

#[test]
fn names_that_the_drafts_may_get_are_read() {
    assert_eq!(read(r#""burst";a=80;w=45"#), Ok((80, Some(45))));
    assert_eq!(read("x;a=0"), Ok((0, None)));
    assert_eq!(
        read("x;r=1;w=60"),
        Ok((1, None)),
        "a window is no reset beside r"
    );
    assert_eq!(read("x;r=1;t=2;a=3;w=4"), Ok((1, Some(2))));
}

/// Rules of RFC 9651, sections 4.2.4 to 4.2.10, in a parameter that means nothing here.
#[test]
fn values_of_every_type_have_to_be_well_formed() {
    for good in [
        "-0",
        "999999999999999",
        "999999999999.999",
        "@-1659578233",
        ":aGVsbG8=:",
        ":aGVsbG8:",
        "::",
        r#"%"f%c3%bc\""#,
        r#""\"\\""#,
        "?1",
        "*/:",
    ] {
        assert_eq!(read(&format!("a;x={good};r=1")), Ok((1, None)), "{good}");
    }
    for bad in [
        "--0",
        "-",
        "-a",
        "1000000000000000",
        "1234567890123.0",
        "123456789012345.6",
        "1.",
        "1.2345",
        "@1659578233.12",
        "@",
        ":aGVs=bG8=:",
        ":a*b:",
        ":aGVsbG8=",
        r#"%"%C3%BC""#,
        r#"%"%zz""#,
        r#"%"%c3""#,
        r#"%"%c3%28""#,
        r#"%"a"#,
        r#""\a""#,
        "?2",
        "?",
        "(a)",
    ] {
        assert_eq!(
            read(&format!("a;x={bad};r=1")),
            Err(HintFault::NotRateLimit),
            "{bad}"
        );
    }
}

#[test]
fn nothing_else_is_read() {
    for value in [
        "",
        " ",
        "50",
        "\"a\"",
        "a;t=5",
        "reset=5",
        "limit=100",
        "a;r",
        "a;r=",
        "a;r=-1",
        "a;r=1.5",
        "a;r=?1",
        "a;r=\"1\"",
        "a;r=x",
        "a;r=1;t=-1",
        "a;r=1;t=soon",
        "a;r=1000000000000000",
        "a;r=1,",
        ",a;r=1",
        "a;r=1,,b;r=1",
        "a;r=1 b;r=2",
        "a;r=1;",
        "a;R=1",
        "\"a;r=1",
        "\"a\\b\";r=1",
        "\"ä\";r=1",
        "a;r=1;x=1.",
        "a;r=1;x=1.2345",
        "a;r=1;x=:a",
        "a;r=1;x=?2",
        "a;r=1;x=%a",
        "a;r=1;x=-",
        "a;r=1;x=(a)",
        "(a b);r=1",
        "remaining=-1",
        "remaining=1, reset=x",
        "remaining=(1)",
        "a;r=1, k=v",
        "\"a\";r=1, remaining=1",
        "a;r=1;t=1;a=-1;r=x",
        "remaining",
        "=1",
    ] {
        assert_eq!(read(value), Err(HintFault::NotRateLimit), "{value:?}");
    }
    assert!(RateLimit::parse(b"a;r=1\xff").is_err());
}

#[test]
fn resets_are_spans_or_times_by_their_size() {
    let reset = |text| pair("0", text).unwrap().1.unwrap();
    assert_eq!(reset("0"), Duration::ZERO);
    assert_eq!(reset("999999999"), Duration::from_secs(999_999_999));
    assert_eq!(reset("1000000000"), Duration::ZERO, "it has passed");
    assert_eq!(reset("1800000060"), Duration::from_secs(60));
    assert_eq!(reset("999999999999"), Duration::from_secs(998_199_999_999));
    assert_eq!(reset("1000000000000"), Duration::ZERO);
    assert_eq!(reset("1800000000500"), Duration::from_millis(500));
    assert_eq!(
        reset("18446744073709551615"),
        Duration::from_millis(u64::MAX).saturating_sub(NOW)
    );
    assert_eq!(pair(" 7 ", "\t1"), Ok((7, Some(Duration::from_secs(1)))));
}

#[test]
fn pairs_are_digits_of_64_bits() {
    for wrong in [
        "",
        "-1",
        "+1",
        "1.5",
        "1s",
        "soon",
        "18446744073709551616",
        "٥",
    ] {
        assert_eq!(pair(wrong, "1"), Err(HintFault::NotCount), "{wrong:?}");
        assert_eq!(pair("1", wrong), Err(HintFault::NotReset), "{wrong:?}");
    }
    assert_eq!(pair("18446744073709551615", "1").unwrap().0, u64::MAX);
}

#[test]
fn errors_name_header_and_value() {
    let text = |error: paceline::headers::HintError| error.to_string();
    assert_eq!(
        text(RateLimit::parse("a;t=1").unwrap_err()),
        r#"RateLimit: "a;t=1": neither a list of quotas nor a dictionary of one"#
    );
    assert_eq!(
        text(RateLimit::parse_pair("x", "1", NOW).unwrap_err()),
        r#"RateLimit-Remaining: "x": not a count in digits"#
    );
    assert_eq!(
        text(RateLimit::parse_pair("1", "x", NOW).unwrap_err()),
        r#"RateLimit-Reset: "x": not seconds or a time in digits"#
    );
}

#[test]
fn hint_is_given_only_when_nothing_is_left_and_the_reset_is_known() {
    let hint = |text| RateLimit::parse(text).unwrap().hint();
    let floor = RetryAfter::AtLeast(Duration::from_secs(9));
    assert_eq!(hint("a;r=0;t=9"), Some(floor));
    assert_eq!(hint("a;r=1;t=9"), None);
    assert_eq!(hint("a;r=0"), None);
}
