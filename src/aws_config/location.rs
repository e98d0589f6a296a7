//! Where the profile files are, and which profile is meant.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{environment::Environment, profile::ProfileFileKind};

/// Returns a variable's value unless it is empty, which counts as unset.
pub(super) fn variable(environment: &dyn Environment, name: &str) -> Option<OsString> {
    let value = environment.variable(name);
    value.filter(|value| !value.is_empty())
}

/// Returns the path of a file that the program did not name, or `None` if the path needs a missing
/// home folder.
pub(super) fn file(environment: &dyn Environment, kind: ProfileFileKind) -> Option<PathBuf> {
    let (name, default) = match kind {
        ProfileFileKind::Config => ("AWS_CONFIG_FILE", "~/.aws/config"),
        ProfileFileKind::Credentials => ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    };
    let path = variable(environment, name).unwrap_or_else(|| default.into());
    let path = Path::new(&path);
    match path.strip_prefix("~") {
        Ok(rest) => expand(environment, rest),
        Err(_) => Some(path.to_owned()),
    }
}

/// Returns `rest` below the home folder.
fn expand(environment: &dyn Environment, rest: &Path) -> Option<PathBuf> {
    let (separator, separators): (_, &[u8]) = if environment.is_windows() {
        ("\\", b"\\/")
    } else {
        ("/", b"/")
    };
    let mut path = home(environment)?;
    for part in rest {
        let last = path.as_encoded_bytes().last();
        if !last.is_some_and(|last| separators.contains(last)) {
            path.push(separator);
        }
        path.push(part);
    }
    Some(path.into())
}

/// Returns the home folder: `HOME`, or else the variables of Windows.
fn home(environment: &dyn Environment) -> Option<OsString> {
    let home = variable(environment, "HOME");
    if home.is_some() || !environment.is_windows() {
        return home;
    }
    variable(environment, "USERPROFILE").or_else(|| {
        let mut home = variable(environment, "HOMEDRIVE")?;
        home.push(variable(environment, "HOMEPATH")?);
        Some(home)
    })
}
