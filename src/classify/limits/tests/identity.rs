//! What a quota of draft-ietf-httpapi-ratelimit-headers counts, and its partitions.

use super::*;
use crate::law::Dimension;

/// Draft 10, section 3.1.2 and the registry in 10.3, where it is "request".
#[test]
fn units_are_read_in_singular_and_plural() {
    let unit = |unit: &str| {
        let policy = format!(r#""p";q=9;qu={unit}"#);
        let headers = [
            ("ratelimit", r#""p";r=5"#),
            ("ratelimit-policy", policy.as_str()),
        ];
        let reports = read(&headers);
        assert_eq!(reports.ignored(), 0, "{unit}");
        reports.iter().next().map(LimitReport::counts)
    };
    let named = |name: &str| Some(Dimension::Named(LimitName::new(name)));
    for (units, want) in [
        (
            &[r#""request""#, r#""requests""#, "requests"][..],
            Some(Dimension::Requests),
        ),
        (&[r#""token""#, r#""Tokens""#], Some(Dimension::Tokens)),
        (
            &[r#""content-byte""#, r#""content-bytes""#, "content-bytes"],
            named("content-bytes"),
        ),
        (
            &[
                r#""concurrent-request""#,
                r#""concurrent-requests""#,
                r#""concurrency""#,
            ],
            Some(Dimension::CONCURRENT_REQUESTS),
        ),
        (&[r#""acme-points""#], named("acme-points")),
    ] {
        for text in units {
            assert_eq!(unit(text), want, "{text}");
        }
    }
    assert_eq!(
        texts(&[("ratelimit", r#""p";r=5;q=9;qu="concurrent-requests""#)]),
        ["5 of 9 concurrent-requests left"]
    );
}

/// Draft 10, sections 3.1.4 and 4.1.3.
#[test]
fn partitions_are_limits_apart() {
    let one = policies(&[("ratelimit", r#""peruser";r=5;pk=:cHsdsRa894==:"#)]);
    let other = policies(&[("ratelimit", r#""peruser";r=5;pk=:sdfjLJUOUH==:"#)]);
    let none = policies(&[("ratelimit", r#""peruser";r=5"#)]);
    assert_eq!(none, [LimitName::new("peruser")]);
    assert!(one != other && one != none && other != none);
    assert_eq!(
        one,
        [LimitName::new("peruser").of_partition([0x70, 0x7b, 0x1d, 0xb1, 0x16, 0xbc, 0xf7])]
    );
    // A limit without a key takes the policy's. Of two policies the one with the limit's key
    // counts.
    let policy = r#""peruser";q=100;w=60;pk=:cHsdsRa894==:"#;
    let told = [
        ("ratelimit", r#""peruser";r=5"#),
        ("ratelimit-policy", policy),
    ];
    assert_eq!(policies(&told), one);
    let both = r#""u";q=1;pk="a", "u";q=2;pk="b""#;
    assert_eq!(
        texts(&[
            ("ratelimit", r#""u";r=1;pk="b", "u";r=0;pk="a""#),
            ("ratelimit-policy", both)
        ]),
        ["1 of 2 requests left", "0 of 1 requests left"]
    );
    let wrong = read(&[("ratelimit", r#""peruser";r=5;pk=?1"#)]);
    assert_eq!(wrong.ignored(), 1);
    assert_eq!(wrong.iter().count(), 1);
}

#[test]
fn a_partition_header_is_part_of_the_name() {
    let name = |partition| {
        let limit = ("ratelimit", r#""user";r=5"#);
        policies(&[limit, ("ratelimit-partition", partition)])
    };
    let plain = name(r#""other";user_id="a""#);
    assert_eq!(plain, [LimitName::new("user")]);
    let partitions = [
        r#""user";user_id="a""#,
        r#""user";user_id="b""#,
        r#""user";user_id="ab""#,
        r#""user";user_id="a";method=GET"#,
        r#""user";user_id"#,
        r#""user";level=1.5"#,
    ];
    for (index, one) in partitions.iter().enumerate() {
        assert_ne!(name(one), plain, "{one}");
        assert_eq!(name(one), name(one));
        for other in partitions.iter().skip(index + 1) {
            assert_ne!(name(one), name(other), "{one} {other}");
        }
    }
    assert_eq!(name(r#""user""#), plain);
    let wrong = read(&[("ratelimit", r#""user";r=5"#), ("ratelimit-partition", "=")]);
    assert_eq!((wrong.iter().count(), wrong.ignored()), (1, 1));
}
