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

pub use environment::{Environment, ProcessEnvironment};
pub use error::{ConfigError, SettingFault, SettingOrigin};
pub use loader::{RetryConfig, RetryConfigLoader};
pub use profile::{ProfileFile, ProfileFileKind};
pub use profile_error::{ProfileFileError, ProfileFileFault};
pub use setting::RetryMode;
