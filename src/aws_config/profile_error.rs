//! A line of a profile file that is invalid.

use core::{error::Error, fmt};
use std::path::{Path, PathBuf};

/// A line of a profile file that is invalid.
///
/// The error does not contain the line, which may hold a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileFileError {
    pub(super) file: PathBuf,
    pub(super) line: usize,
    pub(super) fault: ProfileFileFault,
}

impl ProfileFileError {
    /// Returns the file's path, as it was given.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the number of the line. The first line has 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// Returns what is wrong with the line.
    #[must_use]
    pub const fn fault(&self) -> ProfileFileFault {
        self.fault
    }
}

impl fmt::Display for ProfileFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.fault)
    }
}

impl Error for ProfileFileError {}

/// What is wrong with a line of a profile file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileFileFault {
    /// A section's line does not end with `]`.
    UnclosedSection,
    /// A property, or a continuation of one, stands before the first section.
    OutsideSection,
    /// A property has no `=`.
    NoEquals,
    /// A property has no name.
    NoName,
    /// An indented line follows a section's line, with no property to continue.
    NothingToContinue,
    /// A sub-property has no `=`.
    SubPropertyNoEquals,
    /// A sub-property has no name.
    SubPropertyNoName,
}

impl fmt::Display for ProfileFileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnclosedSection => "the section does not end with ']'",
            Self::OutsideSection => "a property outside of a section",
            Self::NoEquals => "a property without '='",
            Self::NoName => "a property without a name",
            Self::NothingToContinue => "an indented line without a property to continue",
            Self::SubPropertyNoEquals => "a sub-property without '='",
            Self::SubPropertyNoName => "a sub-property without a name",
        })
    }
}
