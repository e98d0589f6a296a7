//! The headers of services that send what others leave out: windows, spans in milliseconds, rates,
//! lists, days and plans.

use super::*;

/// "Adjusting your code for rate limiting", Atlassian Data Center: 20 more in each minute.
#[test]
fn jira_refills_as_told() {
    let headers = |fill, interval| {
        [
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-remaining", "1"),
            ("x-ratelimit-fillrate", fill),
            ("x-ratelimit-interval-seconds", interval),
        ]
    };
    assert_eq!(
        texts(&headers("20", "60")),
        ["1 of 100 requests left, window of 300s, refills"]
    );
    for wrong in [("0", "60"), ("20", "0"), ("many", "60"), ("20", "-1")] {
        let wrong = read(&headers(wrong.0, wrong.1));
        assert_eq!(shown(&wrong), ["1 of 100 requests left"]);
        assert_eq!(wrong.ignored(), 1);
    }
}

/// "Rate Limits", Datadog; "Rate Limits", `RingCentral` Developers.
#[test]
fn windows_and_names_have_headers() {
    let datadog = [
        ("x-ratelimit-limit", "60"),
        ("x-ratelimit-period", "60"),
        ("x-ratelimit-remaining", "1"),
        ("x-ratelimit-reset", "48"),
        ("x-ratelimit-name", "dashboard_public_get"),
    ];
    assert_eq!(
        texts(&datadog),
        ["1 of 60 requests left, reset in 48s, window of 60s, windows"]
    );
    assert_eq!(policies(&datadog), [LimitName::new("dashboard_public_get")]);
    let ringcentral = [
        ("x-rate-limit-group", "light"),
        ("x-rate-limit-limit", "50"),
        ("x-rate-limit-remaining", "49"),
        ("x-rate-limit-window", "60"),
    ];
    assert_eq!(
        texts(&ringcentral),
        ["49 of 50 requests left, window of 60s"]
    );
    assert_eq!(policies(&ringcentral), [LimitName::new("light")]);
}

/// "Rate Limiting", WHOOP Developer: the nearer of two limits.
#[test]
fn whoop_spells_windows_out() {
    let headers = |limit, left, reset| {
        [
            ("x-ratelimit-limit", limit),
            ("x-ratelimit-remaining", left),
            ("x-ratelimit-reset", reset),
        ]
    };
    let minute = headers("100, 100;window=60, 10000;window=86400", "98", "3");
    assert_eq!(
        texts(&minute),
        ["98 of 100 requests left, reset in 3s, window of 60s"]
    );
    assert_eq!(policies(&minute), [LimitName::new("100")]);
    let day = headers("10000, 100;window=60, 10000;window=86400", "12", "7143");
    assert_eq!(
        texts(&day),
        ["12 of 10000 requests left, reset in 7143s, window of 86400s"]
    );
    assert_eq!(policies(&day), [LimitName::new("10000")]);
}

/// "Rate Limit", `KuCoin` API; "Rate Limits", `BigCommerce`.
#[test]
fn spans_may_be_milliseconds() {
    assert_eq!(
        texts(&[
            ("gw-ratelimit-limit", "500"),
            ("gw-ratelimit-remaining", "300"),
            ("gw-ratelimit-reset", "1489"),
        ]),
        ["300 of 500 requests left, reset in 1.489s, windows"]
    );
    assert_eq!(
        texts(&[
            ("x-rate-limit-time-window-ms", "30000"),
            ("x-rate-limit-time-reset-ms", "15000"),
            ("x-rate-limit-requests-quota", "150"),
            ("x-rate-limit-requests-left", "35"),
        ]),
        ["35 of 150 requests left, reset in 15s, window of 30s, windows"]
    );
}

/// "Rate limiting", Fastly; "Rate limits", Trello; "Rate Limiting", Yelp.
#[test]
fn a_limit_or_a_reset_may_be_missing() {
    assert_eq!(
        texts(&[
            ("fastly-ratelimit-remaining", "999"),
            ("fastly-ratelimit-reset", "1700000000"),
            DATE,
        ]),
        ["999 requests left, reset at 1700000000 s of 1970, windows"]
    );
    let trello = [
        ("x-rate-limit-api-token-interval-ms", "10000"),
        ("x-rate-limit-api-token-max", "100"),
        ("x-rate-limit-api-token-remaining", "99"),
        ("x-rate-limit-api-key-interval-ms", "10000"),
        ("x-rate-limit-api-key-max", "300"),
        ("x-rate-limit-api-key-remaining", "299"),
    ];
    assert_eq!(
        texts(&trello),
        [
            "99 of 100 requests left, window of 10s, windows",
            "299 of 300 requests left, window of 10s, windows",
        ]
    );
    assert_eq!(policies(&trello), ["token", "key"].map(LimitName::new));
    assert_eq!(
        texts(&[
            ("ratelimit-remaining", "12"),
            ("ratelimit-resettime", "2023-11-14T22:13:20+00:00"),
            DATE,
        ]),
        ["12 requests left, reset at 1700000000 s of 1970"]
    );
}

/// "Rate limiting", Linear Developers: two leaky buckets, and milliseconds since 1970.
#[test]
fn linear_has_requests_and_complexity() {
    assert_eq!(
        texts(&[
            ("x-complexity", "60"),
            ("x-ratelimit-complexity-limit", "3000000"),
            ("x-ratelimit-complexity-remaining", "2999940"),
            ("x-ratelimit-complexity-reset", "1700000000678"),
            ("x-ratelimit-requests-limit", "1500"),
            ("x-ratelimit-requests-remaining", "1499"),
            ("x-ratelimit-requests-reset", "1700000000678"),
            DATE,
        ]),
        [
            "1499 of 1500 requests left, reset at 1700000000 s of 1970, window of 3600s, refills",
            "2999940 of 3000000 tokens left, reset at 1700000000 s of 1970, window of 3600s, refills",
        ]
    );
}

/// "Usage Plans and Rate Limits", Selling Partner API: one request in a minute, and ten in a
/// second.
#[test]
fn the_selling_partner_api_has_a_rate() {
    let told = |rate| [("x-amzn-ratelimit-limit", rate)];
    assert_eq!(
        texts(&told("0.0167")),
        ["1 of 2 requests left, window of 119.760479041s, refills"]
    );
    assert_eq!(
        texts(&told("10.0")),
        ["1 of 2 requests left, window of 200ms, refills"]
    );
    for wrong in ["0", "0.0", "-1", "", "1/s", "99999999999999999999"] {
        let wrong = read(&told(wrong));
        assert_eq!((wrong.iter().count(), wrong.ignored()), (0, 1));
    }
}

/// "Rate Limits", Strava Developers: two lists, whose second number is a day's.
#[test]
fn strava_has_lists_of_what_is_used() {
    let headers = [
        ("x-ratelimit-limit", "200,2000"),
        ("x-ratelimit-usage", "3,250"),
        ("x-readratelimit-limit", "100,1000"),
        ("x-readratelimit-usage", "120,100"),
    ];
    assert_eq!(
        texts(&headers),
        [
            "197 of 200 requests left, window of 900s, windows",
            "1750 of 2000 requests left, window of 86400s, windows",
            "0 of 100 requests left, window of 900s, windows",
            "900 of 1000 requests left, window of 86400s, windows",
        ]
    );
    let names = ["15m", "day", "read-15m", "read-day"];
    assert_eq!(policies(&headers), names.map(LimitName::new));
    for wrong in ["3", "3,250,1", "3,x", ""] {
        let wrong = read(&[
            ("x-ratelimit-limit", "200,2000"),
            ("x-ratelimit-usage", wrong),
        ]);
        assert_eq!((wrong.iter().count(), wrong.ignored()), (0, 1));
    }
}

/// "Rate Limits", Cerebras Inference: a day, and minutes.
#[test]
fn cerebras_has_a_day() {
    let headers = [
        ("x-ratelimit-limit-requests-day", "10000"),
        ("x-ratelimit-remaining-requests-day", "9500"),
        ("x-ratelimit-reset-requests-day", "33011.382867"),
        ("x-ratelimit-limit-requests-minute", "120"),
        ("x-ratelimit-remaining-requests-minute", "115"),
        ("x-ratelimit-reset-requests-minute", "45.5"),
        ("x-ratelimit-limit-tokens-minute", "200000"),
        ("x-ratelimit-remaining-tokens-minute", "195000"),
        ("x-ratelimit-reset-tokens-minute", "30.2"),
    ];
    assert_eq!(
        texts(&headers),
        [
            "195000 of 200000 tokens left, reset in 30.2s, window of 60s",
            "115 of 120 requests left, reset in 45.5s, window of 60s",
            "9500 of 10000 requests left, reset in 33011.382867s, window of 86400s",
        ]
    );
    assert_eq!(
        policies(&headers),
        ["", "minute", "day"].map(LimitName::new)
    );
}

/// "Rate limits", `SambaNova`; "Quota-Specific Response Headers", `DigitalOcean`: `OpenAI`'s names
/// with a time, which is the end of a window, or when one request fits.
#[test]
fn a_time_is_no_refill() {
    assert_eq!(
        texts(&[
            ("x-ratelimit-limit-requests", "20"),
            ("x-ratelimit-remaining-requests", "19"),
            ("x-ratelimit-reset-requests", "1700000000"),
            ("x-ratelimit-limit-tokens-per-minute", "750000"),
            ("x-ratelimit-remaining-tokens-per-minute", "741200"),
            ("x-ratelimit-reset-tokens-per-minute", "1700000000"),
            DATE,
        ]),
        [
            "19 of 20 requests left, reset at 1700000000 s of 1970",
            "741200 of 750000 tokens left, reset at 1700000000 s of 1970, window of 60s",
        ]
    );
}

/// "Service tiers", Claude Docs: limits for priority, beside four others.
#[test]
fn anthropic_has_priority_tokens() {
    let kinds = [
        "anthropic-ratelimit-requests",
        "anthropic-ratelimit-tokens",
        "anthropic-ratelimit-input-tokens",
        "anthropic-ratelimit-output-tokens",
        "anthropic-priority-input-tokens",
        "anthropic-priority-output-tokens",
    ];
    let values = [
        ("limit", "10000"),
        ("remaining", "9618"),
        ("reset", "2023-11-14T22:13:20Z"),
    ];
    let each = |kind| values.map(|(what, value)| (format!("{kind}-{what}"), value));
    let told: Vec<_> = kinds.into_iter().flat_map(each).collect();
    let told = told.iter().map(|(name, value)| (name.as_str(), *value));
    let headers: Vec<_> = told.chain([DATE]).collect();
    let text = "left, reset at 1700000000 s of 1970, window of 60s, refills";
    assert_eq!(
        texts(&headers)[4..],
        [
            format!("9618 of 10000 input-tokens {text}"),
            format!("9618 of 10000 output-tokens {text}"),
        ]
    );
    let names = ["", "", "", "", "priority", "priority"];
    assert_eq!(policies(&headers), names.map(LimitName::new));
}

/// A plan of Claude: <https://github.com/1jehuang/jcode/issues/1183>.
#[test]
fn a_plan_of_claude_has_parts() {
    let headers = |hours, state| {
        [
            ("anthropic-ratelimit-unified-status", state),
            ("anthropic-ratelimit-unified-5h-status", state),
            ("anthropic-ratelimit-unified-5h-utilization", hours),
            ("anthropic-ratelimit-unified-5h-reset", "1700000000"),
            ("anthropic-ratelimit-unified-7d-status", "allowed"),
            ("anthropic-ratelimit-unified-7d-utilization", "0.0213"),
            ("anthropic-ratelimit-unified-7d-reset", "1700500000"),
            DATE,
        ]
    };
    let left = |hours, state| texts(&headers(hours, state))[0].clone();
    let hours = "of 1000000 plan left, reset at 1700000000 s of 1970, window of 18000s, windows";
    assert_eq!(
        texts(&headers("0.42", "allowed")),
        [
            format!("580000 {hours}"),
            "978700 of 1000000 plan left, reset at 1700500000 s of 1970, window of 604800s, windows"
                .to_owned(),
        ]
    );
    assert_eq!(
        policies(&headers("0.42", "allowed")),
        ["5h", "7d"].map(LimitName::new)
    );
    // The caller may pay for more.
    assert_eq!(left("1.08", "allowed_warning"), format!("1 {hours}"));
    assert_eq!(left("1.08", "rejected"), format!("0 {hours}"));
    assert_eq!(left("0.97", "rejected"), format!("0 {hours}"));
    let wrong = read(&headers("much", "allowed"));
    assert_eq!((wrong.iter().count(), wrong.ignored()), (1, 1));
}

/// A plan of Codex: <https://github.com/router-for-me/CLIProxyAPI/issues/1666>.
#[test]
fn a_plan_of_codex_has_parts() {
    let headers = |used| {
        [
            ("x-codex-primary-used-percent", used),
            ("x-codex-primary-window-minutes", "300"),
            ("x-codex-primary-reset-at", "1700000000"),
            ("x-codex-secondary-used-percent", "12.5"),
            ("x-codex-secondary-window-minutes", "10080"),
            ("x-codex-secondary-reset-at", "1700500000"),
            ("x-codex-secondary-reset-after-seconds", "500800"),
            DATE,
        ]
    };
    assert_eq!(
        texts(&headers("100")),
        [
            "0 of 1000000 plan left, reset at 1700000000 s of 1970, window of 18000s, windows",
            "875000 of 1000000 plan left, reset in 500800s, window of 604800s, windows",
        ]
    );
    assert_eq!(
        policies(&headers("0")),
        ["primary", "secondary"].map(LimitName::new)
    );
}
