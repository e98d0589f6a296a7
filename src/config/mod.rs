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

pub use environment::{Environment, ProcessEnvironment};
pub use error::{ConfigError, SettingFault, SettingOrigin};
pub use loader::{RetryConfig, RetryConfigLoader};
pub use profile::{ProfileFile, ProfileFileKind};
pub use profile_error::{ProfileFileError, ProfileFileFault};
pub use setting::RetryMode;

pub use crate::strategy::{
    builder::StrategyBuilder,
    settings::{RetryGeneration, Settings, SettingsError},
};
