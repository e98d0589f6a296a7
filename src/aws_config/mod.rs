//! The retry settings of the AWS SDKs, from the environment and the profile files.

mod apply;
mod environment;
mod error;
mod loader;
mod location;
mod profile;
mod profile_error;
mod setting;
mod syntax;
#[cfg(feature = "serde")]
mod text;

pub use error::ConfigError;
pub use loader::{RetryConfig, RetryConfigLoader};
pub use setting::RetryMode;

// Not public API: tests use these to replace the process's environment.
#[doc(hidden)]
pub use self::{
    environment::Environment,
    error::{ConfigFault, SettingFault, SettingOrigin},
    profile::{ProfileFile, ProfileFileKind},
    profile_error::{ProfileFileError, ProfileFileFault},
};
