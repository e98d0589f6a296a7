//! Profile files, as the AWS SDKs read them.

mod profile;
mod profile_error;
mod syntax;

pub use profile::{ProfileFile, ProfileFileKind};
pub use profile_error::{ProfileFileError, ProfileFileFault};
