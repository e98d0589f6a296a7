//! Retry settings from where the AWS SDKs find them: environment variables and profile files.

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

pub use crate::strategy::{
    builder::StrategyBuilder,
    settings::{RetryGeneration, Settings, SettingsError},
};

// Not public API: what tests put in place of the process, and look at.
#[doc(hidden)]
pub use self::{
    environment::Environment,
    error::{ConfigFault, SettingFault, SettingOrigin},
    profile::{ProfileFile, ProfileFileKind},
    profile_error::{ProfileFileError, ProfileFileFault},
};
