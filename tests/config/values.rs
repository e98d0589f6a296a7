//! What each text means, in a variable and in a file. One table, as the SDKs disagree on its rows.

use paceline::aws_config::{ConfigError, ConfigFault, RetryMode, SettingFault, SettingOrigin};

use crate::fake::{CONFIG, Fake, sends};

fn in_file(key: &str, text: &str) -> Fake {
    Fake::new().file(CONFIG, format!("[default]\n{key} ={text}\n"))
}

/// Checks what `text` means as a mode in both places.
#[track_caller]
fn mode(text: &str, want: Result<Option<RetryMode>, SettingFault>) {
    for fake in [
        Fake::new().with("AWS_RETRY_MODE", text),
        in_file("retry_mode", text),
    ] {
        let found = fake.load().map(|config| config.mode());
        assert_eq!(found.map_err(|error| fault(&error, text)), want, "{text:?}");
    }
}

/// Checks what `text` means as a number of sends in both places.
#[track_caller]
fn count(text: &str, want: Result<Option<u32>, SettingFault>) {
    for fake in [
        Fake::new().with("AWS_MAX_ATTEMPTS", text),
        in_file("max_attempts", text),
    ] {
        let found = fake.load().map(|config| sends(&config));
        assert_eq!(found.map_err(|error| fault(&error, text)), want, "{text:?}");
    }
}

#[track_caller]
fn fault(error: &ConfigError, text: &str) -> SettingFault {
    match error.fault() {
        ConfigFault::Setting {
            origin,
            value,
            fault,
            ..
        } => {
            let whole = matches!(origin, SettingOrigin::Variable(_));
            assert_eq!(value, if whole { text } else { text.trim() });
            *fault
        }
        other => panic!("{other}"),
    }
}

#[test]
fn mode_is_one_of_three_names() {
    mode("standard", Ok(Some(RetryMode::Standard)));
    mode("adaptive", Ok(Some(RetryMode::Adaptive)));
    mode("legacy", Ok(Some(RetryMode::Legacy)));
}

#[test]
fn mode_may_be_in_any_case() {
    mode("ADAPTIVE", Ok(Some(RetryMode::Adaptive)));
    mode("Standard", Ok(Some(RetryMode::Standard)));
}

#[test]
fn mode_is_trimmed() {
    mode(" standard ", Ok(Some(RetryMode::Standard)));
    mode("\tlegacy", Ok(Some(RetryMode::Legacy)));
}

#[test]
fn mode_of_nothing_is_not_set() {
    mode("", Ok(None));
    mode(" \t", Ok(None));
}

#[test]
fn mode_of_another_name_is_an_error() {
    for text in ["garbage", "standard2", "adaptive,standard", "ſtandard", "0"] {
        mode(text, Err(SettingFault::UnknownMode));
    }
}

#[test]
fn count_is_a_number() {
    count("5", Ok(Some(5)));
    count("1", Ok(Some(1)));
    count("007", Ok(Some(7)));
}

#[test]
fn count_of_zero_is_an_error() {
    count("0", Err(SettingFault::Zero));
    count("+00", Err(SettingFault::Zero));
}

#[test]
fn negative_count_is_an_error() {
    count("-1", Err(SettingFault::NotANumber));
    count("-0", Err(SettingFault::NotANumber));
}

#[test]
fn count_of_letters_is_an_error() {
    count("potato", Err(SettingFault::NotANumber));
}

#[test]
fn count_is_trimmed() {
    count(" 5 ", Ok(Some(5)));
}

#[test]
fn count_may_have_a_plus() {
    count("+5", Ok(Some(5)));
    for text in ["+", "++5", "+ 5", "5+"] {
        count(text, Err(SettingFault::NotANumber));
    }
}

#[test]
fn count_with_an_underscore_is_an_error() {
    count("5_0", Err(SettingFault::NotANumber));
}

#[test]
fn count_with_more_behind_is_an_error() {
    count("5abc", Err(SettingFault::NotANumber));
    count("5 6", Err(SettingFault::NotANumber));
    count("99999999999x", Err(SettingFault::NotANumber));
}

#[test]
fn count_with_a_point_is_an_error() {
    count("3.0", Err(SettingFault::NotANumber));
    count("1e3", Err(SettingFault::NotANumber));
}

#[test]
fn count_in_other_digits_is_an_error() {
    count("٥", Err(SettingFault::NotANumber));
    count("0x5", Err(SettingFault::NotANumber));
}

#[test]
fn count_of_nothing_is_not_set() {
    count("", Ok(None));
    count(" ", Ok(None));
}

#[test]
fn count_is_at_most_32_bits() {
    count("4294967295", Ok(Some(u32::MAX)));
    count("4294967296", Err(SettingFault::TooLarge));
    count("99999999999999999999999999", Err(SettingFault::TooLarge));
}

#[test]
fn continued_setting_is_an_error_that_keeps_secrets() {
    let text = "5\n  aws_secret_access_key = wJalr";
    let error = in_file("max_attempts", text).load().unwrap_err();
    assert!(!format!("{error:?} {error}").contains("wJalr"));
    let want = r#"/home/user/.aws/config, profile default, max_attempts: "5": an indented line continues it"#;
    assert_eq!(error.to_string(), want);
    let below = in_file("retry_mode", "\n  mode = adaptive").load();
    assert!(
        below
            .unwrap_err()
            .to_string()
            .contains(r#": "": an indented line"#)
    );
}

#[test]
fn error_names_the_variable() {
    let error = Fake::new().with("AWS_MAX_ATTEMPTS", "0").error();
    let want = r#"AWS_MAX_ATTEMPTS: "0": must be at least 1: it counts the first send"#;
    assert_eq!(error, want);
    let error = Fake::new().with("AWS_RETRY_MODE", "fast\n").error();
    let want = r#"AWS_RETRY_MODE: "fast\n": not one of standard, adaptive, legacy"#;
    assert_eq!(error, want);
}

#[test]
fn error_names_file_profile_and_key() {
    let fake = Fake::new()
        .with("AWS_PROFILE", "bulk")
        .file("/home/user/.aws/credentials", "[bulk]\nMAX_attempts = 1e3");
    let want =
        r#"/home/user/.aws/credentials, profile bulk, max_attempts: "1e3": not a number of sends"#;
    assert_eq!(fake.error(), want);
}

#[cfg(unix)]
#[test]
fn value_that_is_not_unicode_is_an_error() {
    use std::{ffi::OsString, os::unix::ffi::OsStringExt};
    let fake = Fake::new().with("AWS_RETRY_MODE", OsString::from_vec(b"leg\xffacy".to_vec()));
    assert!(
        fake.error()
            .starts_with("AWS_RETRY_MODE: \"leg\u{fffd}acy\"")
    );
}

#[test]
fn modes_have_the_names_that_are_read() {
    for of in [RetryMode::Standard, RetryMode::Adaptive, RetryMode::Legacy] {
        mode(of.as_str(), Ok(Some(of)));
        assert_eq!(of.to_string(), of.as_str());
    }
}
