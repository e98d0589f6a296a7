//! The world outside: environment variables and files.

use std::{env, ffi::OsString, fs, io, path::Path};

/// The source of settings: the process's environment, or another in a test.
///
/// # Examples
///
/// ```
/// use std::{ffi::OsString, io, path::Path};
/// use paceline::aws_config::{Environment, RetryConfig, RetryMode};
///
/// struct Fake;
///
/// impl Environment for Fake {
///     fn variable(&self, name: &str) -> Option<OsString> {
///         (name == "AWS_RETRY_MODE").then(|| "adaptive".into())
///     }
///     fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
///         Err(io::ErrorKind::NotFound.into())
///     }
/// }
///
/// let config = RetryConfig::loader().load_from(&Fake)?;
/// assert_eq!(config.mode(), Some(RetryMode::Adaptive));
/// assert_eq!(config.max_attempts(), None);
/// # Ok::<(), paceline::aws_config::ConfigError>(())
/// ```
pub trait Environment {
    /// Returns the value of an environment variable, if it is set.
    fn variable(&self, name: &str) -> Option<OsString>;

    /// Returns the contents of a file.
    ///
    /// # Errors
    ///
    /// Returns the error if the file cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Returns `true` if home folders are found and paths are joined as on Windows.
    ///
    /// By default the target decides.
    fn is_windows(&self) -> bool {
        cfg!(windows)
    }
}

/// The environment of the process.
pub(super) struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<OsString> {
        env::var_os(name)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }
}
