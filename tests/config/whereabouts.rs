//! Where the files are. The table is `file-location-tests.json` in smithy-rs.

use core::error::Error;

use paceline::aws_config::{ConfigFault, RetryConfig};

use crate::fake::{CONFIG, CREDENTIALS, Fake, sends};

/// Checks that the two files of `fake` are at these places and nowhere else.
#[track_caller]
fn are_at(fake: Fake, config: &str, credentials: &str) {
    let fake = fake
        .file(config, "[default]\nmax_attempts = 7")
        .file(credentials, "[default]\nretry_mode = legacy");
    let found = fake.load().unwrap();
    assert_eq!(sends(&found), Some(7), "{config}");
    assert!(found.mode().is_some(), "{credentials}");
}

const C: &str = r"C:\users\user\.aws\config";
const D: &str = r"C:\users\user\.aws\credentials";

#[test]
fn files_are_below_home() {
    are_at(Fake::new(), CONFIG, CREDENTIALS);
    are_at(
        Fake::default().with("HOME", "/home/user/"),
        CONFIG,
        CREDENTIALS,
    );
    are_at(
        Fake::default().with("HOME", "/"),
        "/.aws/config",
        "/.aws/credentials",
    );
    are_at(
        Fake::default().with("HOME", r"/x\"),
        r"/x\/.aws/config",
        r"/x\/.aws/credentials",
    );
}

#[test]
fn home_on_windows_is_home_first() {
    let fake = Fake::default()
        .windows()
        .with("USERPROFILE", r"C:\users\other");
    are_at(fake.with("HOME", r"C:\users\user"), C, D);
}

#[test]
fn home_on_windows_is_the_user_profile_next() {
    let fake = Fake::default()
        .windows()
        .with("USERPROFILE", r"C:\users\user");
    are_at(fake.with("HOMEDRIVE", "D:").with("HOMEPATH", r"\x"), C, D);
}

#[test]
fn home_on_windows_is_drive_and_path_last() {
    let fake = Fake::default().windows().with("HOMEDRIVE", "C:");
    assert_eq!(fake.load().unwrap(), RetryConfig::default(), "half of it");
    are_at(fake.with("HOMEPATH", r"\users\user"), C, D);
    let root = Fake::default()
        .windows()
        .with("HOMEDRIVE", "C:")
        .with("HOMEPATH", r"\");
    are_at(root, r"C:\.aws\config", r"C:\.aws\credentials");
}

#[test]
fn elsewhere_home_is_home_only() {
    let fake = Fake::default()
        .with("USERPROFILE", "/home/user")
        .with("HOMEDRIVE", "/home");
    let fake = fake
        .with("HOMEPATH", "/user")
        .file(CONFIG, "[default]\nmax_attempts = 7");
    assert_eq!(fake.load().unwrap(), RetryConfig::default());
    let fake = fake.with("HOME", "");
    assert_eq!(
        fake.load().unwrap(),
        RetryConfig::default(),
        "empty is unset"
    );
}

#[test]
fn variable_moves_the_config_file_only() {
    let fake = Fake::new().with("AWS_CONFIG_FILE", "/other/path/config");
    are_at(fake, "/other/path/config", CREDENTIALS);
    let fake = Fake::default().windows().with("HOME", r"C:\users\user");
    are_at(
        fake.with("AWS_CONFIG_FILE", r"C:\other\config"),
        r"C:\other\config",
        D,
    );
}

#[test]
fn variable_moves_the_credentials_file_only() {
    let fake = Fake::new().with("AWS_SHARED_CREDENTIALS_FILE", "/other/path/credentials");
    are_at(fake, CONFIG, "/other/path/credentials");
    let fake = Fake::default().windows().with("HOME", r"C:\users\user");
    are_at(
        fake.with("AWS_SHARED_CREDENTIALS_FILE", r"C:\other\credentials"),
        C,
        r"C:\other\credentials",
    );
}

#[test]
fn empty_variable_moves_nothing() {
    let fake = Fake::new().with("AWS_CONFIG_FILE", "");
    are_at(
        fake.with("AWS_SHARED_CREDENTIALS_FILE", ""),
        CONFIG,
        CREDENTIALS,
    );
}

#[test]
fn tilde_of_a_variable_is_home() {
    let fake = Fake::new().with("AWS_CONFIG_FILE", "~/x/config");
    are_at(fake, "/home/user/x/config", CREDENTIALS);
    let fake = Fake::default()
        .windows()
        .with("USERPROFILE", r"C:\users\user");
    are_at(
        fake.with("AWS_CONFIG_FILE", "~/x/config"),
        r"C:\users\user\x\config",
        D,
    );
}

#[test]
fn tilde_inside_a_name_stays() {
    let fake = Fake::new().with("AWS_CONFIG_FILE", "~user/config");
    are_at(fake, "~user/config", CREDENTIALS);
    let fake = Fake::new().with("AWS_CONFIG_FILE", "/x/~/config");
    are_at(fake, "/x/~/config", CREDENTIALS);
}

#[test]
fn tilde_without_a_home_is_nowhere() {
    let fake = Fake::default().with("AWS_CONFIG_FILE", "~/config");
    let fake = fake.file("~/config", "[default]\nmax_attempts = 7");
    assert_eq!(fake.load().unwrap(), RetryConfig::default());
}

#[test]
fn missing_files_are_empty() {
    let fake = Fake::new()
        .with("AWS_CONFIG_FILE", "/x")
        .with("AWS_SHARED_CREDENTIALS_FILE", "/y");
    assert_eq!(fake.load().unwrap(), RetryConfig::default());
}

#[test]
fn program_names_the_files_before_the_variables() {
    let fake = Fake::new()
        .with("AWS_CONFIG_FILE", "/x")
        .with("AWS_SHARED_CREDENTIALS_FILE", "/x")
        .file("/x", "[default]\nmax_attempts = 1")
        .file("/a", "[default]\nmax_attempts = 7")
        .file("/b", "[default]\nretry_mode = legacy");
    let loader = RetryConfig::loader()
        .config_file("/a")
        .credentials_file("/b");
    let config = fake.load_with(&loader).unwrap();
    assert_eq!(sends(&config), Some(7));
    assert!(config.mode().is_some());
}

#[test]
fn missing_file_that_the_program_named_is_an_error() {
    for loader in [
        RetryConfig::loader().config_file("/gone"),
        RetryConfig::loader().credentials_file("/gone"),
    ] {
        let error = Fake::new().load_with(&loader).unwrap_err();
        assert!(matches!(error.fault(), ConfigFault::Unreadable { .. }));
        assert!(error.to_string().starts_with("/gone: "));
        assert!(error.source().is_none(), "the message has it");
    }
}
