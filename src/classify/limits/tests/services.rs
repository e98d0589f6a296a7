//! The headers of services, as they document them.

use super::*;

/// "Rate limits for the REST API", GitHub Docs.
#[test]
fn github_has_windows() {
    let core = [
        ("x-ratelimit-limit", "5000"),
        ("x-ratelimit-remaining", "4987"),
        ("x-ratelimit-used", "13"),
        ("x-ratelimit-reset", "1700000000"),
        ("x-ratelimit-resource", "core"),
        DATE,
    ];
    assert_eq!(
        texts(&core),
        ["4987 of 5000 requests left, reset at 1700000000 s of 1970, windows"]
    );
    assert_eq!(policies(&core), [LimitName::new("core")]);
}

/// "Rate limits on GitLab.com", GitLab Docs.
#[test]
fn gitlab_has_windows_and_a_time() {
    let headers = [
        ("ratelimit-limit", "60"),
        ("ratelimit-name", "throttle_authenticated_web"),
        ("ratelimit-observed", "57"),
        ("ratelimit-remaining", "3"),
        ("ratelimit-reset", "1700000000"),
        ("ratelimit-resettime", "Tue, 14 Nov 2023 22:13:20 GMT"),
        DATE,
    ];
    assert_eq!(
        texts(&headers),
        ["3 of 60 requests left, reset at 1700000000 s of 1970, windows"]
    );
    assert_eq!(
        policies(&headers),
        [LimitName::new("throttle_authenticated_web")]
    );
    // Behind a gateway that leaves the count out.
    let unobserved: Vec<_> = headers
        .into_iter()
        .filter(|(name, _)| *name != "ratelimit-observed")
        .collect();
    assert_eq!(texts(&unobserved), texts(&headers));
}

/// "Rate Limits", Discord Developer Docs.
#[test]
fn discord_has_windows_and_spans() {
    let route = [
        ("x-ratelimit-limit", "5"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1470173023"),
        ("x-ratelimit-reset-after", "1.5"),
        ("x-ratelimit-bucket", "abcd1234"),
    ];
    assert_eq!(
        texts(&route),
        ["0 of 5 requests left, reset in 1.5s, windows"]
    );
    assert_eq!(policies(&route), [LimitName::new("abcd1234")]);
    // The time beside a wrong span counts.
    let wrong = read(&[
        ("x-ratelimit-remaining", "3"),
        ("x-ratelimit-reset", "1700000000"),
        ("x-ratelimit-reset-after", "soon"),
        DATE,
    ]);
    assert_eq!(
        shown(&wrong),
        ["3 requests left, reset at 1700000000 s of 1970, windows"]
    );
    assert_eq!(wrong.ignored(), 1);
}

/// "API Rules", Reddit: fractions, a used count instead of a limit, and seconds.
#[test]
fn reddit_has_windows_and_fractions() {
    assert_eq!(
        texts(&[
            ("x-ratelimit-used", "2"),
            ("x-ratelimit-remaining", "598.0"),
            ("x-ratelimit-reset", "416"),
        ]),
        ["598 of 600 requests left, reset in 416s, windows"]
    );
}

/// "Rate limits", X Developer Platform.
#[test]
fn x_has_windows() {
    let limit = [
        ("x-rate-limit-limit", "900"),
        ("x-rate-limit-remaining", "847"),
        DATE,
    ];
    assert_eq!(
        texts(&[&limit[..], &[("x-rate-limit-reset", "1700000000")]].concat()),
        ["847 of 900 requests left, reset at 1700000000 s of 1970, windows"]
    );
    // Another service may refill.
    assert_eq!(
        texts(&[&limit[..], &[("x-rate-limit-reset", "25")]].concat()),
        ["847 of 900 requests left, reset in 25s"]
    );
}

/// "REST Admin API rate limits", Shopify.
#[test]
fn shopify_refills() {
    assert_eq!(
        texts(&[("x-shopify-shop-api-call-limit", "32/40")]),
        ["8 of 40 requests left, window of 20s, refills"]
    );
    for wrong in ["40", "0/0", "1/2/3", "/", "a/40"] {
        let wrong = read(&[("x-shopify-shop-api-call-limit", wrong)]);
        assert_eq!((wrong.iter().count(), wrong.ignored()), (0, 1));
    }
}

/// "LIMITS", Binance Spot API.
#[test]
fn binance_has_windows_of_a_minute() {
    assert_eq!(
        texts(&[("x-mbx-used-weight-1m", "17"), ("x-mbx-used-weight", "17")]),
        ["5983 of 6000 tokens left, window of 60s, windows"]
    );
}

/// "Docker Hub pull usage and limits", Docker Docs.
#[test]
fn docker_hub_has_a_window_and_no_reset() {
    assert_eq!(
        texts(&[
            ("ratelimit-limit", "100;w=21600"),
            ("ratelimit-remaining", "76;w=21600"),
            ("docker-ratelimit-source", "192.0.2.1"),
        ]),
        ["76 of 100 requests left, window of 21600s"]
    );
}

/// "Response Headers", Brave Search API: a limit a second, and a limit a month.
#[test]
fn brave_has_lists() {
    let headers = [
        ("x-ratelimit-limit", "1, 15000"),
        ("x-ratelimit-policy", "1;w=1, 15000;w=2592000"),
        ("x-ratelimit-remaining", "1, 1000"),
        ("x-ratelimit-reset", "1, 1419704"),
    ];
    assert_eq!(
        texts(&headers),
        [
            "1 of 1 requests left, reset in 1s, window of 1s",
            "1000 of 15000 requests left, reset in 1419704s, window of 2592000s",
        ]
    );
    assert_eq!(policies(&headers), ["1", "15000"].map(LimitName::new));
    let wrong = read(&[
        ("x-ratelimit-limit", "1, 15000"),
        ("x-ratelimit-remaining", "1, 1000"),
        ("x-ratelimit-reset", "1"),
    ]);
    assert_eq!(
        shown(&wrong),
        ["1 of 1 requests left", "1000 of 15000 requests left"]
    );
    assert_eq!(wrong.ignored(), 1);
}

/// "Rate Limiting", Kong Docs: the headers without `X-` repeat the window with the least left.
#[test]
fn kong_has_a_limit_for_each_window() {
    let headers = |least: [&'static str; 3]| {
        let [limit, remaining, reset] = least;
        [
            ("ratelimit-limit", limit),
            ("ratelimit-remaining", remaining),
            ("ratelimit-reset", reset),
            ("x-ratelimit-limit-second", "5"),
            ("x-ratelimit-remaining-second", "4"),
            ("x-ratelimit-limit-hour", "1000"),
            ("x-ratelimit-remaining-hour", "3"),
            ("x-ratelimit-limit-month", "10000"),
            ("x-ratelimit-remaining-month", "9000"),
        ]
    };
    let hour = headers(["1000", "3", "1200"]);
    assert_eq!(
        texts(&hour),
        [
            "4 of 5 requests left, window of 1s, windows",
            "3 of 1000 requests left, reset in 1200s, window of 3600s, windows",
            "9000 of 10000 requests left, windows",
        ]
    );
    assert_eq!(
        policies(&hour),
        ["second", "hour", "month"].map(LimitName::new)
    );
    let month = headers(["10000", "9000", "86400"]);
    assert_eq!(
        texts(&month)[2],
        "9000 of 10000 requests left, reset in 86400s, windows"
    );
    // The reset of another limit does not belong to these.
    let other = headers(["100", "3", "7"]);
    assert!(texts(&other).iter().all(|text| !text.contains("reset")));
}
