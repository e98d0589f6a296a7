//! The examples of draft-ietf-httpapi-ratelimit-headers, each with its version and section.

use super::*;

const BURST: (&str, &str) = (
    "ratelimit-policy",
    r#""burst";q=100;w=60,"daily";q=1000;w=86400"#,
);

/// Draft 10, sections 3, 3.2 and 4.2.
#[test]
fn the_fields_are_read_as_in_their_sections() {
    let left = |value| texts(&[("ratelimit", value)]);
    assert_eq!(
        left(r#""default";r=50;t=30"#),
        ["50 requests left, reset in 30s"]
    );
    assert_eq!(
        left(r#""default";r=999;pk=:dHJpYWwxMjEzMjM=:"#),
        ["999 requests left"]
    );
    assert_eq!(
        left(r#""default";r=300000000;t=60;pk=:QXBwLTk5OQ==:"#),
        ["300000000 requests left, reset in 60s"]
    );
    assert_eq!(
        texts(&[
            ("ratelimit", r#""burst";r=50;t=30, "daily";r=7;t=9"#),
            BURST
        ]),
        [
            "50 of 100 requests left, reset in 30s, window of 60s",
            "7 of 1000 requests left, reset in 9s, window of 86400s",
        ]
    );
    let policy = r#""permin";q=50;w=60,"perhr";q=1000;w=3600"#;
    assert_eq!(
        texts(&[
            ("ratelimit", r#""perhr";r=50;t=30"#),
            ("ratelimit-policy", policy)
        ]),
        ["50 of 1000 requests left, reset in 30s, window of 3600s"]
    );
    let policy = r#""peruser";q=65535;qu="content-bytes";w=10;pk=:sdfjLJUOUH==:"#;
    assert_eq!(
        texts(&[
            ("ratelimit", r#""peruser";r=100;t=3"#),
            ("ratelimit-policy", policy)
        ]),
        ["100 of 65535 content-bytes left, reset in 3s, window of 10s"]
    );
}

/// Draft 10, appendix B: responses without and with policies, dynamic limits, and windows.
#[test]
fn the_examples_of_responses_are_read() {
    for (policy, limit, want) in [
        (
            r#""basic";q=100;w=60"#,
            r#""basic";r=60;t=58"#,
            "60 of 100 requests left, reset in 58s, window of 60s",
        ),
        (
            r#""fixedwindow";q=100;w=60"#,
            r#""fixedwindow";r=99;t=50"#,
            "99 of 100 requests left, reset in 50s, window of 60s",
        ),
        (
            r#""dynamic";q=15;w=20"#,
            r#""dynamic";r=0;t=20"#,
            "0 of 15 requests left, reset in 20s, window of 20s",
        ),
        (
            r#""hour";q=1000;w=3600, "day";q=5000;w=86400"#,
            r#""day";r=100;t=36000"#,
            "100 of 5000 requests left, reset in 36000s, window of 86400s",
        ),
        // Section 8.5: more than a window's part may be left.
        (
            r#""somepolicy";q=10000;w=1000"#,
            r#""somepolicy";r=10000;t=10"#,
            "10000 of 10000 requests left, reset in 10s, window of 1000s",
        ),
        // Appendix C: other parameters are comments.
        (
            r#""sliding";q=100;w=60;burst=1000, "fixed";q=5000;w=3600;burst=0"#,
            r#""sliding";r=50;t=44"#,
            "50 of 100 requests left, reset in 44s, window of 60s",
        ),
    ] {
        let headers = [("ratelimit-policy", policy), ("ratelimit", limit)];
        assert_eq!(texts(&headers), [want], "{limit}");
    }
    // Appendix D: the quota beside what is left.
    assert_eq!(
        texts(&[("ratelimit", r#""sliding";q=12;r=6;t=1"#)]),
        ["6 of 12 requests left, reset in 1s"]
    );
    // Appendix B, "Missing Remaining information": without it there is no report.
    let none: [String; 0] = [];
    assert_eq!(
        texts(&[
            ("ratelimit-policy", "quota;q=100;w=1"),
            ("ratelimit", "quota;t=1")
        ]),
        none
    );
}

/// The names that the working group considers since draft 11: `a`, `w` and `c`.
#[test]
fn later_names_of_parameters_are_read() {
    for limit in [
        r#""burst";a=50;w=30"#,
        r#""burst";a=50;t=30"#,
        r#""burst";a=50;w=60;t=30"#,
    ] {
        assert_eq!(
            texts(&[("ratelimit", limit), BURST]),
            ["50 of 100 requests left, reset in 30s, window of 60s"],
            "{limit}"
        );
    }
    let cost = |value, cost: &str| {
        let reports = read(&[("ratelimit", value)]);
        let shown = reports.iter().map(|report| format!("{report:?}"));
        let costs = shown.filter(|report| report.contains(cost)).count();
        (costs, reports.ignored())
    };
    assert_eq!(cost(r#""burst";a=50;w=30;c=5"#, "cost: Some(5)"), (1, 0));
    assert_eq!(cost(r#""burst";r=50;t=30;c=0"#, "cost: Some(0)"), (1, 0));
    assert_eq!(cost(r#""burst";r=50;t=30"#, "cost: None"), (1, 0));
    assert_eq!(cost(r#""burst";r=50;t=30;c=-1"#, "cost: None"), (1, 1));
}

/// Draft 07, section 3; of several policies the field shows the tightest.
#[test]
fn the_dictionary_of_draft_07_is_read_with_its_policies() {
    let value = ("ratelimit", "limit=100, remaining=50, reset=5");
    for policy in ["100;w=10", "10;w=1, 100;w=10"] {
        assert_eq!(
            texts(&[value, ("ratelimit-policy", policy)]),
            ["50 of 100 requests left, reset in 5s, window of 10s"]
        );
    }
    assert_eq!(texts(&[value]), ["50 of 100 requests left, reset in 5s"]);
    let policy = ("ratelimit-policy", "10;w=1, 100;w=10");
    let tight = ("ratelimit", "limit=10, remaining=1, reset=1");
    assert_eq!(policies(&[value, policy]), [LimitName::new("100")]);
    assert_eq!(policies(&[tight, policy]), [LimitName::new("10")]);
    let alone = ("ratelimit-policy", "100;w=10");
    assert_eq!(policies(&[value, alone]), [LimitName::default()]);
}

/// Drafts 03 and 05, sections 3.1 and 3.2; of several policies the fields show the tightest.
#[test]
fn the_three_fields_of_earlier_drafts_are_read() {
    let left = [("ratelimit-remaining", "9"), ("ratelimit-reset", "50")];
    let with = |more: &[(&'static str, &'static str)]| [more, &left].concat();
    assert_eq!(
        texts(&with(&[("ratelimit-limit", "100, 100;w=60")])),
        ["9 of 100 requests left, reset in 50s, window of 60s"]
    );
    assert_eq!(
        texts(&with(&[(
            "ratelimit-limit",
            "10, 10;w=1, 50;w=60, 1000;w=3600"
        )])),
        ["9 of 10 requests left, reset in 50s, window of 1s"]
    );
    let several = [
        ("ratelimit-limit", "50"),
        ("ratelimit-policy", r#"10;w=1, 50;w=60;comment="all""#),
    ];
    assert_eq!(
        texts(&with(&several)),
        ["9 of 50 requests left, reset in 50s, window of 60s"]
    );
    assert_eq!(policies(&with(&several)), [LimitName::new("50")]);
    let one = [("ratelimit-limit", "50"), ("ratelimit-policy", "50;w=60")];
    assert_eq!(policies(&with(&one)), [LimitName::default()]);
}

#[test]
fn wrong_parameters_are_counted() {
    let check = |headers: &[(&str, &str)], want: &[&str], ignored| {
        let reports = read(headers);
        assert_eq!(shown(&reports), want, "{headers:?}");
        assert_eq!(reports.ignored(), ignored, "{headers:?}");
    };
    let policy = ("ratelimit-policy", r#""burst";q=-1;w=soon"#);
    let limit = ("ratelimit", r#""burst";r=50;t=30"#);
    check(&[limit, policy], &["50 requests left, reset in 30s"], 2);
    let policy = ("ratelimit-policy", r#""burst";q=9;w=0"#);
    check(
        &[limit, policy],
        &["50 of 9 requests left, reset in 30s"],
        1,
    );
    check(
        &[
            ("ratelimit", "limit=100, remaining=50, reset=5"),
            ("ratelimit-policy", "100;w=soon"),
        ],
        &["50 of 100 requests left, reset in 5s"],
        1,
    );
    check(&[("ratelimit", "==")], &[], 1);
    check(&[("ratelimit", r#""a";r=-1"#)], &[], 1);
    // Either of the two may hold.
    check(
        &[("ratelimit", r#""a";r=1, "a";r=5"#)],
        &["1 requests left"],
        1,
    );
}
