//! Why settings could not be read, and where.

use core::{error::Error, fmt};
use std::{io, path::PathBuf};

use super::profile_error::ProfileFileError;

/// Where a setting was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingOrigin {
    /// In an environment variable.
    Variable(&'static str),
    /// In the field of a deserialized text.
    Field(&'static str),
    /// In a profile file.
    Profile {
        /// The file.
        file: PathBuf,
        /// The profile's name.
        profile: String,
        /// The key, in lower case.
        key: &'static str,
    },
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) | Self::Field(name) => f.write_str(name),
            Self::Profile { file, profile, key } => {
                write!(f, "{}, profile {profile}, {key}", file.display())
            }
        }
    }
}

/// Why settings could not be read, and where. The message is one line.
#[derive(Debug)]
pub struct ConfigError(ConfigFault);

impl ConfigError {
    /// Returns what is wrong. Not public API: for tests.
    #[doc(hidden)]
    #[must_use]
    pub const fn fault(&self) -> &ConfigFault {
        &self.0
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for ConfigError {}

#[doc(hidden)]
impl From<ConfigFault> for ConfigError {
    fn from(fault: ConfigFault) -> Self {
        Self(fault)
    }
}

/// What is wrong with settings.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigFault {
    /// A setting has a value that it cannot have.
    Setting {
        /// Where the setting was found.
        origin: SettingOrigin,
        /// The setting's text. Of a continued value only the first line, since the rest may be a
        /// secret.
        value: String,
        /// What is wrong with the text.
        fault: SettingFault,
    },
    /// A profile file has an invalid line.
    File(ProfileFileError),
    /// A file that the program named could not be read.
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why the file could not be read.
        error: io::Error,
    },
    /// A file is not in UTF-8.
    NotUtf8 {
        /// The file.
        file: PathBuf,
    },
    /// A profile that the program or `AWS_PROFILE` named is in neither file.
    NoProfile {
        /// The profile's name.
        profile: String,
    },
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting {
                origin,
                value,
                fault,
            } => write!(f, "{origin}: {value:?}: {fault}"),
            Self::File(error) => error.fmt(f),
            Self::Unreadable { file, error } => write!(f, "{}: {error}", file.display()),
            Self::NotUtf8 { file } => write!(f, "{}: not in UTF-8", file.display()),
            Self::NoProfile { profile } => write!(f, "no profile {profile:?}"),
        }
    }
}

/// What is wrong with a setting's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingFault {
    /// The text names no mode.
    UnknownMode,
    /// The text is no number in plain digits.
    NotANumber,
    /// The number is 0, but it counts the first send.
    Zero,
    /// The number is more than `u32::MAX`.
    TooLarge,
    /// The text is neither `true` nor `false`.
    NotABoolean,
    /// An indented line continues the value.
    Continued,
}

impl fmt::Display for SettingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownMode => "not one of standard, adaptive, legacy",
            Self::NotANumber => "not a number of sends",
            Self::Zero => "must be at least 1: it counts the first send",
            Self::TooLarge => "more than 4294967295",
            Self::NotABoolean => "neither true nor false",
            Self::Continued => "an indented line continues it",
        })
    }
}
