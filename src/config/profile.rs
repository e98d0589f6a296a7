//! Profile files: which sections are profiles, and what becomes of those that say the same twice.

use alloc::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{
    profile_error::ProfileFileError,
    syntax::{self, Property, Section},
};

const DEFAULT: &str = "default";
const PREFIX: &str = "profile";

/// Which of the two files a text is, on which hangs how it names profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProfileFileKind {
    /// `~/.aws/config`, with `[default]` and `[profile NAME]`.
    Config,
    /// `~/.aws/credentials`, with `[NAME]`.
    Credentials,
}

/// The profiles of a file that the AWS SDKs share.
///
/// - Sections of other names are ignored, and so are names and keys with characters other than
///   `A-Z a-z 0-9 _ - / . % @ : +`. Their lines have to be well formed all the same.
/// - Sections of one name are one profile. The last value of a key counts, in whatever case it is
///   written. `[profile default]` anywhere takes the place of every `[default]`.
/// - `#` and `;` begin a comment: at the start of a line, after whitespace behind a property,
///   anywhere behind a section's name.
/// - An indented line continues the value above it, comments included, so an indented setting is
///   none. Below an empty value it has to be a property itself.
///
/// Sources: "Shared config and credentials files" in the AWS SDKs and Tools Reference Guide; the
/// test data `profile-parser-tests.json` in smithy-rs. Unlike there, a nameless section of a
/// credentials file is ignored, and only space and tab are whitespace before a comment.
///
/// # Examples
///
/// ```
/// use paceline::{ProfileFile, ProfileFileKind};
///
/// let text = "[default]\nmax_attempts = 5 # sends\n[profile bulk]\nRetry_Mode = adaptive\n";
/// let file = ProfileFile::parse(ProfileFileKind::Config, "config", text)?;
/// assert_eq!(file.get("default", "max_attempts"), Some("5"));
/// assert_eq!(file.get("bulk", "retry_mode"), Some("adaptive"));
/// assert_eq!(file.get("bulk", "max_attempts"), None);
///
/// let wrong = ProfileFile::parse(ProfileFileKind::Config, "config", "[default]\nmax_attempts 5");
/// assert_eq!(wrong.unwrap_err().to_string(), "config:2: a property without '='");
/// # Ok::<(), paceline::ProfileFileError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileFile {
    path: PathBuf,
    profiles: BTreeMap<String, BTreeMap<String, String>>,
}

impl ProfileFile {
    /// Reads `text`, the contents of the file at `path`, which serves in errors only.
    ///
    /// # Errors
    ///
    /// Returns [`ProfileFileError`] with the first line that means nothing.
    pub fn parse(
        kind: ProfileFileKind,
        path: impl Into<PathBuf>,
        text: &str,
    ) -> Result<Self, ProfileFileError> {
        let path = path.into();
        match syntax::sections(text) {
            Ok(sections) => Ok(Self {
                path,
                profiles: merge(kind, sections),
            }),
            Err((line, fault)) => Err(ProfileFileError {
                file: path,
                line,
                fault,
            }),
        }
    }

    /// Returns the file's path, as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names of the profiles, sorted.
    pub fn profiles(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    /// Returns the keys of `profile`, in lower case and sorted, and their values.
    pub fn properties(&self, profile: &str) -> impl Iterator<Item = (&str, &str)> {
        let properties = self.profiles.get(profile).into_iter().flatten();
        properties.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns the value of `key`, which is in lower case, in `profile`. It may be empty.
    ///
    /// A continued value has a line for each of the file's.
    #[must_use]
    pub fn get(&self, profile: &str, key: &str) -> Option<&str> {
        self.profiles.get(profile)?.get(key).map(String::as_str)
    }

    /// Tells whether there is such a profile, with or without properties.
    #[must_use]
    pub fn contains(&self, profile: &str) -> bool {
        self.profiles.contains_key(profile)
    }
}

/// The profile that a section's header names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named<'a> {
    Profile(&'a str),
    /// `[default]` of a config file, which gives way to `[profile default]`.
    PlainDefault,
}

fn named(kind: ProfileFileKind, header: &str) -> Option<Named<'_>> {
    match (kind, syntax::split_header(header)) {
        (ProfileFileKind::Config, Some((PREFIX, name))) if is_name(name) => {
            Some(Named::Profile(name))
        }
        (ProfileFileKind::Config, None) if header == DEFAULT => Some(Named::PlainDefault),
        (ProfileFileKind::Credentials, None) if is_name(header) => Some(Named::Profile(header)),
        _ => None,
    }
}

fn merge(
    kind: ProfileFileKind,
    sections: Vec<Section<'_>>,
) -> BTreeMap<String, BTreeMap<String, String>> {
    let is_prefixed_default =
        |section: &Section<'_>| named(kind, section.header) == Some(Named::Profile(DEFAULT));
    let prefixed_default = sections.iter().any(is_prefixed_default);
    let mut profiles = BTreeMap::<String, BTreeMap<String, String>>::new();
    for section in sections {
        let name = match named(kind, section.header) {
            Some(Named::Profile(name)) => name,
            Some(Named::PlainDefault) if !prefixed_default => DEFAULT,
            _ => continue,
        };
        let properties = section.properties.into_iter();
        let valid = properties.filter(|Property { key, .. }| is_name(key));
        let profile = profiles.entry(name.to_owned()).or_default();
        profile.extend(valid.map(|Property { key, value, .. }| (key, value)));
    }
    profiles
}

fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-/.%@:+".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}
