//! Profile files: which sections are profiles, and how profiles of one name are merged.

use std::path::{Path, PathBuf};

use super::{
    profile_error::ProfileFileError,
    syntax::{self, Property, Section},
};

const DEFAULT: &str = "default";
const PREFIX: &str = "profile";

/// The kind of a profile file. The two kinds name profiles differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileFileKind {
    /// `~/.aws/config`, with `[default]`, `[profile NAME]` and `[profile "A NAME"]`.
    Config,
    /// `~/.aws/credentials`, with `[NAME]` and `[A NAME]`.
    Credentials,
}

/// The profiles of a file that the AWS SDKs share.
///
/// - A name of a config file is one word, or anything in single or double quotes, as AWS's command
///   line writes it. A credentials file has names without quotes, spaces included.
/// - Keys consist of `A-Z a-z 0-9 _ - / . % @ : +`; other keys are not loaded.
/// - Sections of other kinds, such as `[sso-session NAME]`, are not loaded. Their lines have to be
///   well formed all the same.
/// - Sections of one name are one profile. The last value of a key counts, in any case. If there is
///   a `[profile default]`, every `[default]` is ignored.
/// - `#` and `;` begin a comment at the start of a line, after whitespace behind a property, and
///   anywhere behind a section's name.
/// - An indented line continues the value above it, comments included, so an indented setting has
///   no effect. Below an empty value the line must be a property.
///
/// Sources: "Shared config and credentials files" in the AWS SDKs and Tools Reference Guide; the
/// test data `profile-parser-tests.json` in smithy-rs; for names, botocore (`configloader.py`).
/// Names with spaces and other characters are found in botocore, but not in smithy-rs. Unlike in
/// smithy-rs, a nameless section of a credentials file is ignored, and only space and tab are
/// whitespace before a comment.
///
/// # Examples
///
/// ```
/// use paceline::aws_config::{ProfileFile, ProfileFileKind};
///
/// let text = "[default]\nmax_attempts = 5 # sends\n[profile \"bulk copy\"]\nRetry_Mode = adaptive\n";
/// let file = ProfileFile::parse(ProfileFileKind::Config, "config", text)?;
/// assert_eq!(file.get("default", "max_attempts"), Some("5"));
/// assert_eq!(file.get("bulk copy", "retry_mode"), Some("adaptive"));
/// assert_eq!(file.get("bulk copy", "max_attempts"), None);
///
/// let wrong = ProfileFile::parse(ProfileFileKind::Config, "config", "[default]\nmax_attempts 5");
/// assert_eq!(wrong.unwrap_err().to_string(), "config:2: a property without '='");
/// # Ok::<(), paceline::aws_config::ProfileFileError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileFile {
    path: PathBuf,
    profiles: Profiles,
}

/// Sorted by name, each name once. There are few names, and a tree would take long to compile.
type Sorted<T> = Vec<(String, T)>;
type Profiles = Sorted<Sorted<String>>;

fn find<'a, T>(sorted: &'a [(String, T)], name: &str) -> Option<&'a T> {
    let at = sorted.partition_point(|(other, _)| other.as_str() < name);
    let (found, value) = sorted.get(at)?;
    (found == name).then_some(value)
}

fn find_or_add<T: Default>(sorted: &mut Sorted<T>, name: String) -> &mut T {
    let at = sorted.partition_point(|(other, _)| *other < name);
    if sorted.get(at).is_none_or(|(found, _)| *found != name) {
        sorted.insert(at, (name, T::default()));
    }
    &mut sorted[at].1
}

impl ProfileFile {
    /// Reads `text`, the contents of the file at `path`. The file is not opened.
    ///
    /// # Errors
    ///
    /// Returns [`ProfileFileError`] with the first line that is invalid.
    pub fn parse(
        kind: ProfileFileKind,
        path: impl Into<PathBuf>,
        text: &str,
    ) -> Result<Self, ProfileFileError> {
        let path = path.into();
        let sections = syntax::sections(text);
        let sections = sections.map_err(|(line, fault)| ProfileFileError {
            file: path.clone(),
            line,
            fault,
        })?;
        let profiles = merge(kind, sections);
        Ok(Self { path, profiles })
    }

    /// Returns the file's path, as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names of the profiles, sorted.
    pub fn profiles(&self) -> impl Iterator<Item = &str> {
        self.profiles.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the keys of `profile`, in lower case and sorted, and their values.
    pub fn properties(&self, profile: &str) -> impl Iterator<Item = (&str, &str)> {
        let properties = find(&self.profiles, profile).into_iter().flatten();
        properties.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns the value of `key`, which is in lower case, in `profile`. It may be empty.
    ///
    /// A continued value has as many lines as in the file.
    #[must_use]
    pub fn get(&self, profile: &str, key: &str) -> Option<&str> {
        find(find(&self.profiles, profile)?, key).map(String::as_str)
    }

    /// Returns `true` if there is such a profile, with or without properties.
    #[must_use]
    pub fn contains(&self, profile: &str) -> bool {
        find(&self.profiles, profile).is_some()
    }
}

/// The profile that a section's header names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named<'a> {
    Profile(&'a str),
    /// `[default]` of a config file, which gives way to `[profile default]`.
    PlainDefault,
}

/// Returns the profile that a section's header names, `None` for a section of another kind.
fn named(kind: ProfileFileKind, header: &str) -> Option<Named<'_>> {
    match (kind, syntax::split_header(header)) {
        (ProfileFileKind::Config, Some((PREFIX, name))) => syntax::name(name).map(Named::Profile),
        (ProfileFileKind::Config, None) if header == DEFAULT => Some(Named::PlainDefault),
        (ProfileFileKind::Config, _) => None,
        (ProfileFileKind::Credentials, _) => (!header.is_empty()).then_some(Named::Profile(header)),
    }
}

fn merge(kind: ProfileFileKind, sections: Vec<Section<'_>>) -> Profiles {
    let is_prefixed_default =
        |section: &Section<'_>| named(kind, section.header) == Some(Named::Profile(DEFAULT));
    let prefixed_default = sections.iter().any(is_prefixed_default);
    let mut profiles = Profiles::new();
    for section in sections {
        let name = match named(kind, section.header) {
            Some(Named::PlainDefault) if !prefixed_default => DEFAULT,
            Some(Named::Profile(name)) => name,
            Some(Named::PlainDefault) | None => continue,
        };
        let profile = find_or_add(&mut profiles, name.to_owned());
        for Property { key, value, .. } in section.properties {
            if is_key(&key) {
                *find_or_add(profile, key) = value;
            }
        }
    }
    profiles
}

fn is_key(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-/.%@:+".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}
