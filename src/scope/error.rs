//! The ways in which scopes say no.

use core::{error::Error, fmt};

use crate::strategy::settings::SettingsError;

/// There is no state for the key, and none was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScopeRefused {
    /// There are as many scopes as there may be, and none was found that is idle and not in use.
    Full {
        /// The scopes there may be.
        max: usize,
    },
    /// The key is too long.
    KeyTooLong {
        /// The bytes of the key.
        len: usize,
        /// The bytes that a key may have.
        max: usize,
    },
    /// The settings of this scope are wrong.
    Settings(SettingsError),
}

impl fmt::Display for ScopeRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { max } => write!(
                f,
                "{max} scopes are kept, and none that was looked at is idle"
            ),
            Self::KeyTooLong { len, max } => {
                write!(f, "a scope's key of {len} bytes, more than {max}")
            }
            Self::Settings(error) => write!(f, "the scope's settings: {error}"),
        }
    }
}

impl Error for ScopeRefused {}

impl From<SettingsError> for ScopeRefused {
    fn from(error: SettingsError) -> Self {
        Self::Settings(error)
    }
}

/// Why scopes could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScopesError {
    /// `max_scopes` is 0: every operation would share one state.
    ZeroMaxScopes,
    /// The settings that all scopes share are wrong.
    Settings(SettingsError),
}

impl fmt::Display for ScopesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroMaxScopes => f.write_str("max_scopes must be at least 1"),
            Self::Settings(error) => error.fmt(f),
        }
    }
}

impl Error for ScopesError {}

impl From<SettingsError> for ScopesError {
    fn from(error: SettingsError) -> Self {
        Self::Settings(error)
    }
}
