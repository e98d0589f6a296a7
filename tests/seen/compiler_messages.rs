//! What the compiler says to a user whose program lacks something.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// Compiles a program that uses the crate with `features`, and returns what the compiler says.
fn compile(name: &str, features: &str, source: &str) -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    let package = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(package.join("src")).expect("a folder of the build");
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies]\npaceline = {{ path = {root:?}, features = [{features}] }}\n"
    );
    fs::write(package.join("Cargo.toml"), manifest).expect("a file of the build");
    fs::write(package.join("src/main.rs"), source).expect("a file of the build");
    // The versions that are here already.
    let lock = PathBuf::from(root).join("Cargo.lock");
    fs::copy(lock, package.join("Cargo.lock")).expect("the workspace's lock file");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["check", "--offline", "--color=never", "--target-dir"])
        .arg(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("messages"))
        .current_dir(&package);
    // Flags of this build, such as those of a sanitizer, are not the user's.
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().ends_with("RUSTFLAGS") {
            cargo.env_remove(name);
        }
    }
    let output = cargo.output().expect("cargo runs");
    assert!(!output.status.success(), "{name} must not compile");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_error_that_does_not_classify_itself_names_run_with() {
    let said = compile(
        "unclassified",
        "",
        "use paceline::{RetryStrategyExt, Standard};\n\
         fn main() { let _ = Standard::new().run(|_| Err::<(), _>(std::io::Error::last_os_error())); }\n",
    );
    for expected in [
        "`std::io::Error` does not say whether it may be retried",
        "`run_with` and `run_async_with` take a closure",
        "a type of your own may implement `paceline::RetryInfo`",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in:\n{said}");
    }
}

#[test]
fn a_task_without_a_timer_names_the_feature() {
    let said = compile(
        "timerless",
        "",
        "use paceline::{Failure, RetryStrategyExt, Standard};\n\
         fn main() { let _ = Standard::new().run_async(|_| async { Err::<(), _>(Failure::transient()) }); }\n",
    );
    for expected in [
        "tasks have no timer to sleep by",
        "needs the feature `tokio` of paceline",
        "strategy.operation().sleep_on(...)",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in:\n{said}");
    }
}
