//! An environment of the test's own.

use std::{collections::HashMap, ffi::OsString, io, path::Path};

use paceline::aws_config::{ConfigError, Environment, RetryConfig, RetryConfigLoader};

/// Home is `/home/user`, and the files are where they are by default.
pub(crate) const CONFIG: &str = "/home/user/.aws/config";
pub(crate) const CREDENTIALS: &str = "/home/user/.aws/credentials";

#[derive(Debug, Default)]
pub(crate) struct Fake {
    variables: HashMap<String, OsString>,
    files: HashMap<String, Vec<u8>>,
    windows: bool,
}

impl Fake {
    pub(crate) fn new() -> Self {
        Self::default().with("HOME", "/home/user")
    }

    pub(crate) fn with(mut self, variable: &str, value: impl Into<OsString>) -> Self {
        self.variables.insert(variable.to_owned(), value.into());
        self
    }

    pub(crate) fn file(mut self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        self.files
            .insert(path.to_owned(), contents.as_ref().to_owned());
        self
    }

    pub(crate) fn windows(mut self) -> Self {
        self.windows = true;
        self
    }

    /// Looks up with nothing set explicitly.
    pub(crate) fn load(&self) -> Result<RetryConfig, ConfigError> {
        self.load_with(&RetryConfig::loader())
    }

    pub(crate) fn load_with(&self, loader: &RetryConfigLoader) -> Result<RetryConfig, ConfigError> {
        loader.load_from(self)
    }

    pub(crate) fn error(&self) -> String {
        self.load().unwrap_err().to_string()
    }
}

impl Environment for Fake {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(name).cloned()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let contents = path.to_str().and_then(|path| self.files.get(path));
        contents
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn is_windows(&self) -> bool {
        self.windows
    }
}

/// The number of sends that was found.
pub(crate) fn sends(config: &RetryConfig) -> Option<u32> {
    config.max_attempts().map(u32::from)
}
