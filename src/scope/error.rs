//! Why a scope is refused.

use core::{error::Error, fmt};

use crate::strategy::settings::SettingsError;

/// There is no state for the key, and none was made.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScopeRefused {
    /// There is no room for another scope, and no scope was found that is idle and not in use.
    Full {
        /// The most scopes that there may be.
        max: usize,
    },
    /// The key is too long.
    KeyTooLong {
        /// The bytes of the key.
        len: usize,
        /// The most bytes that a key may have.
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
