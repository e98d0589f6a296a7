//! Which of several sources counts: explicit, environment, profile, none, each setting on its own.

use core::num::NonZeroU32;
use std::{env, process::Command};

use paceline::aws_config::{ConfigFault, RetryConfig, RetryMode};

use crate::fake::{CONFIG, CREDENTIALS, Fake, sends};

const BOTH: &str = "[default]\nmax_attempts = 7\nretry_mode = adaptive\n";

fn seven() -> Fake {
    Fake::new().file(CONFIG, BOTH)
}

fn found(fake: &Fake) -> (Option<RetryMode>, Option<u32>) {
    let config = fake.load().unwrap();
    (config.mode(), sends(&config))
}

fn number(sends: u32) -> NonZeroU32 {
    NonZeroU32::new(sends).unwrap()
}

#[test]
fn nothing_anywhere_sets_nothing() {
    assert_eq!(Fake::new().load().unwrap(), RetryConfig::default());
    assert_eq!(
        Fake::default().load().unwrap(),
        RetryConfig::default(),
        "no home"
    );
}

#[test]
fn profile_counts_where_nothing_else_is_set() {
    assert_eq!(found(&seven()), (Some(RetryMode::Adaptive), Some(7)));
}

#[test]
fn variable_counts_before_the_profile() {
    let fake = seven().with("AWS_MAX_ATTEMPTS", "2");
    assert_eq!(found(&fake), (Some(RetryMode::Adaptive), Some(2)));
    let fake = seven().with("AWS_RETRY_MODE", "legacy");
    assert_eq!(found(&fake), (Some(RetryMode::Legacy), Some(7)));
}

#[test]
fn empty_variable_counts_as_unset() {
    let fake = seven()
        .with("AWS_MAX_ATTEMPTS", "")
        .with("AWS_RETRY_MODE", " ");
    assert_eq!(found(&fake), (Some(RetryMode::Adaptive), Some(7)));
}

#[test]
fn explicit_setting_counts_before_all() {
    let fake = seven()
        .with("AWS_MAX_ATTEMPTS", "2")
        .with("AWS_RETRY_MODE", "legacy");
    let one = RetryConfig::loader().max_attempts(number(9));
    let config = fake.load_with(&one).unwrap();
    assert_eq!(
        (config.mode(), sends(&config)),
        (Some(RetryMode::Legacy), Some(9))
    );
    let other = RetryConfig::loader().mode(RetryMode::Standard);
    let config = fake.load_with(&other).unwrap();
    assert_eq!(
        (config.mode(), sends(&config)),
        (Some(RetryMode::Standard), Some(2))
    );
}

#[test]
fn wrong_variable_is_an_error_whatever_the_profile_says() {
    let fake = seven().with("AWS_MAX_ATTEMPTS", "potato");
    assert!(fake.error().starts_with("AWS_MAX_ATTEMPTS: "));
    let fake = seven().with("AWS_RETRY_MODE", "potato");
    assert!(fake.error().starts_with("AWS_RETRY_MODE: "));
}

#[test]
fn what_is_set_is_not_looked_up_any_further() {
    let wrong = Fake::new()
        .with("AWS_MAX_ATTEMPTS", "0")
        .file(CONFIG, "[default]\nretry_mode = potato\nmax_attempts = 3");
    let loader = RetryConfig::loader()
        .max_attempts(number(9))
        .mode(RetryMode::Legacy);
    assert_eq!(
        sends(&wrong.load_with(&loader).unwrap()),
        Some(9),
        "nor the variable"
    );

    let fake = wrong
        .with("AWS_MAX_ATTEMPTS", "")
        .with("AWS_RETRY_MODE", "adaptive");
    assert_eq!(
        found(&fake),
        (Some(RetryMode::Adaptive), Some(3)),
        "nor the key"
    );

    let fake = fake.with("AWS_MAX_ATTEMPTS", "4").file(CONFIG, "broken");
    assert_eq!(
        found(&fake),
        (Some(RetryMode::Adaptive), Some(4)),
        "nor the file"
    );
}

#[test]
fn variable_picks_the_profile() {
    let files = format!("{BOTH}[profile p]\nmax_attempts = 9\n");
    let fake = Fake::new().file(CONFIG, files).with("AWS_PROFILE", "p");
    assert_eq!(found(&fake), (None, Some(9)), "nothing comes from default");
    let fake = fake.with("AWS_PROFILE", "");
    assert_eq!(found(&fake).1, Some(7), "empty is unset");
}

#[test]
fn program_picks_the_profile_before_the_variable() {
    let fake = Fake::new()
        .file(
            CONFIG,
            "[profile p]\nmax_attempts = 9\n[profile q]\nmax_attempts = 8",
        )
        .with("AWS_PROFILE", "p");
    let config = fake.load_with(&RetryConfig::loader().profile("q")).unwrap();
    assert_eq!(sends(&config), Some(8));
}

#[test]
fn profile_that_is_nowhere_is_an_error() {
    let error = seven()
        .load_with(&RetryConfig::loader().profile("p"))
        .unwrap_err();
    assert!(matches!(error.fault(), ConfigFault::NoProfile { profile, .. } if profile == "p"));
    assert_eq!(error.to_string(), "no profile \"p\"");
    let variable = seven().with("AWS_PROFILE", "p");
    assert_eq!(variable.error(), "no profile \"p\"");
    let none = Fake::new().with("AWS_PROFILE", "default");
    assert_eq!(none.error(), "no profile \"default\"", "as in botocore");
    let known = none
        .with("AWS_RETRY_MODE", "legacy")
        .with("AWS_MAX_ATTEMPTS", "2");
    assert_eq!(found(&known).1, Some(2), "nothing is looked for there");
    let fake = seven().file(CREDENTIALS, "[p]");
    let config = fake.load_with(&RetryConfig::loader().profile("p"));
    assert_eq!(
        config.unwrap(),
        RetryConfig::default(),
        "one file is enough"
    );
}

#[test]
fn profile_in_quotes_is_found() {
    let fake = Fake::new().with("AWS_PROFILE", "my profile");
    let quoted = "[profile \"my profile\"]\nmax_attempts = 9";
    let fake = fake.file(CONFIG, quoted);
    assert_eq!(found(&fake), (None, Some(9)));
    let fake = fake.file(CONFIG, "").file(CREDENTIALS, "[my profile]");
    assert_eq!(found(&fake), (None, None), "there, without settings");
}

#[test]
fn profile_that_cannot_be_read_is_not_there() {
    let fake = Fake::new().with("AWS_PROFILE", "my profile");
    let fake = fake
        .file(
            CONFIG,
            "[default]
[profile my profile]
max_attempts = 9",
        )
        .file(
            CREDENTIALS,
            "[default]
in valid = 1",
        );
    assert_eq!(fake.error(), "no profile \"my profile\"");
}

#[test]
fn generation_comes_from_the_program_or_its_variable() {
    use paceline::config::RetryGeneration::{V2_0, V2_1};
    let with = |value: &str| Fake::new().with("AWS_NEW_RETRIES_2026", value);
    let generation = |fake: &Fake| fake.load().unwrap().generation();
    assert_eq!(generation(&Fake::new()), None);
    assert_eq!(generation(&with("")), None);
    for value in ["true", "TRUE", " True "] {
        assert_eq!(generation(&with(value)), Some(V2_1), "{value:?}");
    }
    assert_eq!(generation(&with("false")), Some(V2_0));
    let explicit = RetryConfig::loader().generation(V2_0);
    let config = with("potato").load_with(&explicit).unwrap();
    assert_eq!(config.generation(), Some(V2_0));
    for value in ["1", "potato", "yes"] {
        let want = format!("AWS_NEW_RETRIES_2026: {value:?}: neither true nor false");
        assert_eq!(with(value).error(), want);
    }
    let all = with("false")
        .with("AWS_RETRY_MODE", "adaptive")
        .with("AWS_MAX_ATTEMPTS", "4");
    assert_eq!(generation(&all), Some(V2_0), "without any file");
}

#[test]
fn credentials_file_counts_before_the_config_file() {
    let fake = seven().file(CREDENTIALS, "[default]\nmax_attempts = 6");
    assert_eq!(found(&fake), (Some(RetryMode::Adaptive), Some(6)));
    let fake = fake.file(CREDENTIALS, "[default]\nmax_attempts =");
    assert_eq!(found(&fake).1, None, "an empty value too");
}

#[test]
fn prefixed_default_of_the_config_file_leaves_the_credentials_alone() {
    let fake = Fake::new()
        .file(
            CONFIG,
            "[default]\nmax_attempts = 2\n[profile default]\nretry_mode = legacy",
        )
        .file(CREDENTIALS, "[default]\nmax_attempts = 6");
    assert_eq!(found(&fake), (Some(RetryMode::Legacy), Some(6)));
}

#[test]
fn broken_file_is_an_error() {
    let fake = seven().file(CREDENTIALS, "[default]\n\nmax_attempts");
    assert!(matches!(
        fake.load().unwrap_err().fault(),
        ConfigFault::File(_)
    ));
    assert_eq!(
        fake.error(),
        "/home/user/.aws/credentials:3: a property without '='"
    );
}

#[test]
fn file_that_is_not_utf_8_is_an_error() {
    let fake = Fake::new().file(CONFIG, b"[default]\n# caf\xe9");
    assert!(matches!(
        fake.load().unwrap_err().fault(),
        ConfigFault::NotUtf8 { .. }
    ));
    assert_eq!(fake.error(), "/home/user/.aws/config: not in UTF-8");
}

#[test]
fn process_has_an_environment_too() {
    let loader = RetryConfig::loader()
        .max_attempts(number(9))
        .mode(RetryMode::Legacy);
    assert_eq!(sends(&loader.load().unwrap()), Some(9));
}

/// In another process, since a test must not change the environment that it shares with others.
#[test]
fn settings_are_found_in_the_environment_of_the_process() {
    const CHILD: &str = "PACELINE_TEST_CHILD";
    if env::var_os(CHILD).is_some() {
        let config = RetryConfig::from_env().unwrap();
        return assert_eq!(sends(&config), Some(7));
    }
    let name = "settings_are_found_in_the_environment_of_the_process";
    let mut child = Command::new(env::current_exe().unwrap());
    child.env(CHILD, "1").env("AWS_MAX_ATTEMPTS", "7");
    let output = child.arg(name).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}
