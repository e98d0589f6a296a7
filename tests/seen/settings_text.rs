//! Settings out of a text, and snapshots as text: what is read, what is refused, and that the error
//! names the field.

use core::{fmt::Debug, num::NonZeroU32, time::Duration};

use paceline::{
    Adaptive, ControlLaw, RetryQuota, RetryStrategy, Standard,
    aws_config::{RetryConfig, RetryMode},
    config::{RetryGeneration, SettingsError, StrategyBuilder},
    law::PacedSettings,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, from_str, json, to_string, to_value};

const ONE_SECOND: Duration = Duration::from_secs(1);

/// Asserts that `value` is `text`, both ways.
fn is_text<T: Serialize + DeserializeOwned + Debug + PartialEq>(value: &T, text: &str) {
    assert_eq!(to_string(value).unwrap(), text);
    assert_eq!(&from_str::<T>(text).unwrap(), value);
}

/// Returns the error of `text`, without the place that the reader of JSON adds.
fn error<T: DeserializeOwned + Debug>(text: &str) -> String {
    let error = from_str::<T>(text).unwrap_err().to_string();
    error.split(" at line").next().unwrap().into()
}

#[test]
fn names_are_those_of_the_published_modes_and_of_the_methods() {
    let mode = |text: &str| from_str::<RetryConfig>(text).unwrap().mode();
    let found = mode(r#"{"retry_mode":"LEGACY"}"#);
    assert_eq!(found, Some(RetryMode::Legacy));
    assert_eq!(
        mode(r#"{"retry_mode":"Standard"}"#),
        Some(RetryMode::Standard)
    );
    let fast = error::<RetryConfig>(r#"{"retry_mode":"fast"}"#);
    assert!(
        fast.ends_with("not one of standard, adaptive, legacy"),
        "{fast}"
    );
    assert_eq!(
        from_str::<RetryGeneration>("\"2.0\"").unwrap(),
        RetryGeneration::V2_0
    );
    assert_eq!(
        from_str::<RetryGeneration>("\"2.1\"").unwrap(),
        RetryGeneration::V2_1
    );
    assert!(error::<RetryGeneration>("\"3\"").contains("expected `2.0` or `2.1`"));
    is_text(&ControlLaw::Paced, "\"paced\"");
}

#[test]
fn config_has_the_keys_of_profile_files() {
    assert_eq!(
        from_str::<RetryConfig>("{}").unwrap(),
        RetryConfig::default()
    );
    let old = RetryConfig::loader()
        .mode(RetryMode::Legacy)
        .max_attempts(NonZeroU32::MIN)
        .generation(RetryGeneration::V2_0);
    let text = r#"{"retry_mode":"legacy","max_attempts":1,"generation":"2.0"}"#;
    assert_eq!(from_str::<RetryConfig>(text).unwrap(), old.load().unwrap());
    let config = RetryConfig::loader()
        .mode(RetryMode::Adaptive)
        .max_attempts(NonZeroU32::MAX)
        .load()
        .unwrap();
    let text = r#"{"retry_mode":"adaptive","max_attempts":4294967295}"#;
    assert_eq!(from_str::<RetryConfig>(text).unwrap(), config);
    for (text, expected) in [
        (
            r#"{"retry_mode":"fast"}"#,
            "retry_mode: \"fast\": not one of standard, adaptive, legacy",
        ),
        (
            r#"{"max_attempts":0}"#,
            "max_attempts: \"0\": must be at least 1: it counts the first send",
        ),
        (
            r#"{"max_attempts":4294967296}"#,
            "max_attempts: \"4294967296\": more than 4294967295",
        ),
    ] {
        assert_eq!(error::<RetryConfig>(text), expected);
    }
    assert!(error::<RetryConfig>(r#"{"max_attempt":1}"#).contains("`max_attempt`"));
}

#[test]
fn paced_settings_come_out_of_a_text_as_if_they_had_been_built() {
    let second = r#"{"secs":1,"nanos":0}"#;
    let text = format!(
        r#"{{"ceiling":{{"tokens":1000,"per":{second}}},"floor":{{"tokens":3,"per":{second}}},
            "initial_rate":{{"tokens":77,"per":{{"secs":9,"nanos":0}}}},
            "max_slope":{{"tokens":5,"per":{{"secs":3,"nanos":0}}}},
            "burst":{{"secs":0,"nanos":125000000}},"max_pause":{second},
            "slow_start":true,"beta_permille":800}}"#
    );
    let settings = PacedSettings::builder()
        .ceiling(1_000, ONE_SECOND)
        .floor(3, ONE_SECOND)
        .initial_rate(77, Duration::from_secs(9))
        .max_slope(5, Duration::from_secs(3))
        .burst(Duration::from_millis(125))
        .max_pause(ONE_SECOND)
        .slow_start(true)
        .beta_permille(800);
    assert_eq!(
        from_str::<PacedSettings>(&text).unwrap(),
        settings.build().unwrap()
    );
    let shared = format!(r#"{{"preset":"shared","floor":{{"tokens":1,"per":{second}}}}}"#);
    let built = PacedSettings::shared().to_builder().floor(1, ONE_SECOND);
    assert_eq!(
        from_str::<PacedSettings>(&shared).unwrap(),
        built.build().unwrap()
    );
    assert_eq!(
        from_str::<PacedSettings>(r#"{"preset":"exclusive"}"#).unwrap(),
        PacedSettings::exclusive()
    );
    assert!(error::<PacedSettings>(r#"{"preset":"alone"}"#).contains("`exclusive`"));
    assert_eq!(
        from_str::<PacedSettings>("{}").unwrap(),
        PacedSettings::new()
    );
}

#[test]
fn wrong_paced_settings_are_refused_by_the_builder() {
    let second = r#"{"secs":1,"nanos":0}"#;
    for (text, expected) in [
        (
            format!(r#"{{"floor":{{"tokens":0,"per":{second}}}}}"#),
            "the floor of 0 tokens in 1s is not between one a day and one in 1 ns",
        ),
        (
            format!(r#"{{"ceiling":{{"tokens":0,"per":{second}}}}}"#),
            "the ceiling of 0 tokens in 1s is not between one a day and one in 1 ns",
        ),
        (
            format!(
                r#"{{"floor":{{"tokens":9,"per":{second}}},"ceiling":{{"tokens":8,"per":{second}}}}}"#
            ),
            "the floor is above the ceiling",
        ),
        (
            format!(
                r#"{{"initial_rate":{{"tokens":9,"per":{second}}},"ceiling":{{"tokens":8,"per":{second}}}}}"#
            ),
            "the initial rate is above the ceiling",
        ),
        (
            r#"{"beta_permille":499}"#.into(),
            "a beta of 499/1000 is not between 500 and 990",
        ),
        (
            r#"{"burst":{"secs":11,"nanos":0}}"#.into(),
            "a burst of 11s is longer than 10 s",
        ),
    ] {
        assert_eq!(error::<PacedSettings>(&text), expected);
    }
    assert!(error::<PacedSettings>(r#"{"beta":900}"#).contains("`beta`"));
}

#[test]
fn builder_comes_out_of_a_text_as_if_it_had_been_called() {
    let text = json!({
        "generation": "2.0", "max_attempts": 5, "quota_capacity": 100,
        "max_backoff": { "secs": 3, "nanos": 0 }, "long_polling": true,
        "throttling_floor": { "secs": 0, "nanos": 5 },
        "law": "paced", "paced": { "beta_permille": 700 }, "fail_fast": true,
        "max_wait": { "secs": 2, "nanos": 0 },
    });
    let builder: StrategyBuilder<Adaptive> = serde_json::from_value(text).unwrap();
    let shown = format!("{builder:?}");
    for choice in ["fail_fast: true", "max_wait: 2s", "beta_permille: 700"] {
        assert!(shown.contains(choice), "{choice}: {shown}");
    }
    let strategy = builder.build().unwrap();
    let settings = strategy.settings();
    assert_eq!(settings.backoff.delay(1, true, 0), Duration::from_nanos(5));
    assert_eq!(
        (settings.max_attempts, settings.max_backoff),
        (5, Duration::from_secs(3))
    );
    assert_eq!(strategy.quota().capacity(), 100);
    assert!(settings.long_polling);
    assert_eq!(strategy.law(), ControlLaw::Paced);
    let defaults: StrategyBuilder<Standard> = from_str("{}").unwrap();
    assert_eq!(defaults.build().unwrap().settings().max_attempts, 3);
}

#[test]
fn builder_refuses_what_it_would_refuse_to_build_and_what_is_of_another_mode() {
    type Plain = StrategyBuilder<Standard>;
    type Adapts = StrategyBuilder<Adaptive>;
    assert_eq!(
        error::<Plain>(r#"{"max_attempts":0}"#),
        "max_attempts must be at least 1: it counts the first send"
    );
    let span = |secs| format!("{{\"throttling_floor\":{{\"secs\":{secs},\"nanos\":0}}}}");
    assert!(from_str::<Plain>(&span(20)).is_ok());
    assert_eq!(
        error::<Plain>(&span(21)),
        SettingsError::FloorAboveMaxBackoff.to_string()
    );
    for (field, value) in [
        ("law", "\"aws\""),
        ("paced", "{}"),
        ("fail_fast", "true"),
        ("max_wait", "{\"secs\":2,\"nanos\":0}"),
        ("exact_timing", "true"),
    ] {
        assert_eq!(
            error::<Plain>(&format!("{{\"{field}\":{value}}}")),
            format!("{field} is a setting of adaptive mode")
        );
    }
    for field in ["quota", "backoff", "random", "clock", "max_attempt"] {
        let error = error::<Plain>(&format!("{{\"{field}\":1}}"));
        assert!(
            error.contains(&format!("unknown field `{field}`")),
            "{error}"
        );
    }
    assert_eq!(
        error::<Adapts>(r#"{"law":"aws","paced":{}}"#),
        "paced has no effect on the law aws"
    );
    let paced: Adapts = from_str(r#"{"paced":{}}"#).unwrap();
    assert_eq!(paced.build().unwrap().law(), ControlLaw::Paced);
}

#[test]
fn snapshots_can_be_written() {
    let strategy = Adaptive::new(ControlLaw::Aws);
    let shown = to_value(strategy.snapshot()).unwrap();
    assert_eq!(shown["quota"], json!({ "available": 500, "capacity": 500 }));
    assert_eq!(shown["rate"]["enabled"], Value::Bool(false));
    assert_eq!(shown["counts"]["granted"], 0);
    let quota = RetryQuota::new(7).snapshot();
    assert_eq!(
        to_string(&quota).unwrap(),
        r#"{"available":7,"capacity":7}"#
    );
}
