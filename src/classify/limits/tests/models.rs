//! The headers of services with language models, as they document them.

use super::*;

/// "Rate limits", `OpenAI` API.
#[test]
fn openai_refills() {
    assert_eq!(
        texts(&[
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ]),
        [
            "59 of 60 requests left, reset in 1s, refills",
            "149984 of 150000 tokens left, reset in 360s, refills",
        ]
    );
}

/// "Rate Limits", `GroqDocs`: requests a day, and tokens a minute.
#[test]
fn groq_refills() {
    assert_eq!(
        texts(&[
            ("x-ratelimit-limit-requests", "14400"),
            ("x-ratelimit-limit-tokens", "18000"),
            ("x-ratelimit-remaining-requests", "14370"),
            ("x-ratelimit-remaining-tokens", "17997"),
            ("x-ratelimit-reset-requests", "2m59.56s"),
            ("x-ratelimit-reset-tokens", "7.66s"),
        ]),
        [
            "14370 of 14400 requests left, reset in 179.56s, refills",
            "17997 of 18000 tokens left, reset in 7.66s, refills",
        ]
    );
}

/// Azure `OpenAI` and GitHub Models: whole seconds, and the time in which the limit comes back; or
/// only what is left; or -1 for an unknown value.
#[test]
fn azure_refills() {
    assert_eq!(
        texts(&[
            ("x-ratelimit-limit-requests", "20000"),
            ("x-ratelimit-remaining-requests", "19999"),
            ("x-ratelimit-limit-tokens", "2000000"),
            ("x-ratelimit-remaining-tokens", "1999962"),
            ("x-ratelimit-renewalperiod-requests", "60"),
            ("x-ratelimit-renewalperiod-tokens", "60"),
            ("x-ratelimit-reset-requests", "3"),
            ("x-ratelimit-reset-tokens", "1"),
            ("x-ratelimit-abusepenalty-active", "False"),
        ]),
        [
            "19999 of 20000 requests left, reset in 3s, window of 60s, refills",
            "1999962 of 2000000 tokens left, reset in 1s, window of 60s, refills",
        ]
    );
    assert_eq!(
        texts(&[
            ("x-ratelimit-remaining-requests", "79"),
            ("x-ratelimit-remaining-tokens", "61353"),
        ]),
        ["79 requests left, refills", "61353 tokens left, refills"]
    );
    let unknown = read(&[
        ("x-ratelimit-limit-tokens", "-1"),
        ("x-ratelimit-remaining-tokens", "-1"),
        ("x-ratelimit-reset-tokens", "0"),
    ]);
    assert_eq!((unknown.iter().count(), unknown.ignored()), (0, 1));
}

/// "Rate limits", Claude Docs: a token bucket for each minute, with times that move with
/// each request.
#[test]
fn anthropic_refills() {
    assert_eq!(
        texts(&[
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2023-11-14T22:13:20Z"),
            ("anthropic-ratelimit-tokens-limit", "38000"),
            ("anthropic-ratelimit-tokens-remaining", "37000"),
            ("anthropic-ratelimit-tokens-reset", "2023-11-14T22:13:21Z"),
            ("anthropic-ratelimit-input-tokens-limit", "30000"),
            ("anthropic-ratelimit-input-tokens-remaining", "29000"),
            (
                "anthropic-ratelimit-input-tokens-reset",
                "2023-11-14T22:13:22Z"
            ),
            ("anthropic-ratelimit-output-tokens-limit", "8000"),
            ("anthropic-ratelimit-output-tokens-remaining", "8000"),
            (
                "anthropic-ratelimit-output-tokens-reset",
                "2023-11-14T22:13:20Z"
            ),
            DATE,
        ]),
        [
            "49 of 50 requests left, reset at 1700000000 s of 1970, window of 60s, refills",
            "37000 of 38000 tokens left, reset at 1700000001 s of 1970, window of 60s, refills",
            "29000 of 30000 input-tokens left, reset at 1700000002 s of 1970, window of 60s, refills",
            "8000 of 8000 output-tokens left, reset at 1700000000 s of 1970, window of 60s, refills",
        ]
    );
}

/// "Rate limits and usage tiers", Mistral AI: the names say the window.
#[test]
fn mistral_has_windows_of_a_minute() {
    assert_eq!(
        texts(&[
            ("x-ratelimit-limit-req-minute", "60"),
            ("x-ratelimit-remaining-req-minute", "59"),
            ("x-ratelimit-limit-tokens-minute", "500000"),
            ("x-ratelimit-remaining-tokens-minute", "499990"),
        ]),
        [
            "59 of 60 requests left, window of 60s, windows",
            "499990 of 500000 tokens left, window of 60s, windows",
        ]
    );
    // Another service has a reset, too, and may refill.
    assert_eq!(
        texts(&[
            ("x-ratelimit-limit-tokens-minute", "60000"),
            ("x-ratelimit-remaining-tokens-minute", "59000"),
            ("x-ratelimit-reset-tokens-minute", "11.382"),
        ]),
        ["59000 of 60000 tokens left, reset in 11.382s, window of 60s"]
    );
}

/// "Limits", `OpenRouter`: milliseconds since 1970.
#[test]
fn openrouter_has_milliseconds() {
    assert_eq!(
        texts(&[
            ("x-ratelimit-limit", "50"),
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1700000000000"),
            DATE,
        ]),
        ["0 of 50 requests left, reset at 1700000000 s of 1970"]
    );
}
