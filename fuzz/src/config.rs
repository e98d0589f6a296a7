//! `config`: profile files and variables of any text, against a plain reading of them.
//!
//! The first byte says how the rest is meant and what the program asks for itself. The rest are up
//! to five parts with a zero byte between them: the config file, the credentials file, the mode,
//! the number of sends, the profile.

use core::num::NonZeroU32;
use std::{ffi::OsString, io, path::Path};

use paceline::aws_config::{
    ConfigError, ConfigFault, Environment, ProfileFile, ProfileFileKind, RetryConfig, RetryMode,
    SettingFault::{self, Continued, NotANumber, TooLarge, UnknownMode, Zero},
    SettingOrigin,
};

use crate::profile_model::{self, Profiles};

/// Parts are made of these, one a byte, rather than of the bytes themselves.
const FRAGMENTS: u8 = 1;
/// The program sets a mode.
const SETS_MODE: u8 = 2;
/// The program names the profile, which is otherwise a variable.
const NAMES_PROFILE: u8 = 4;

/// What texts are made of that come anywhere.
#[rustfmt::skip]
const PIECES: [&str; 38] = [
    "\n", "\r\n", " ", "\t", "\r", "[", "]", "=", "#", ";", "é", "x", "!", "+", "-", "_", "profile",
    "default", "[default]\n", "[profile x]\n", "[x]\n", "\nmax_attempts = ", "\nretry_mode = ",
    "\nMAX_Attempts=", "s3 =\n a = b", "standard", "ADAPTIVE", "legacy", "0", "5", "4294967296",
    "[profile default]", "\"", "'", "\\", "[profile \"x y\"]\n", "[x y]\n", "[profile 'x y']",
];

const CONFIG: &str = "/h/.aws/config";
const CREDENTIALS: &str = "/h/.aws/credentials";

#[derive(Debug)]
struct Input {
    flags: u8,
    parts: Vec<Vec<u8>>,
}

impl Input {
    fn new(data: &[u8]) -> Self {
        let (flags, rest) = data.split_first().unwrap_or((&0, &[]));
        let parts = rest.split(|byte| *byte == 0).take(5);
        let parts = parts.map(|part| match flags & FRAGMENTS {
            0 => part.to_owned(),
            _ => part.iter().flat_map(|byte| piece(*byte).bytes()).collect(),
        });
        Self {
            flags: *flags,
            parts: parts.collect(),
        }
    }

    fn file(&self, index: usize) -> &[u8] {
        self.parts.get(index).map_or(b"", Vec::as_slice)
    }

    fn variable(&self, index: usize) -> Option<String> {
        let part = self.parts.get(index)?;
        Some(String::from_utf8_lossy(part).into_owned())
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

fn piece(byte: u8) -> &'static str {
    PIECES[usize::from(byte) % PIECES.len()]
}

impl Environment for Input {
    fn variable(&self, name: &str) -> Option<OsString> {
        let value = match name {
            "HOME" => Some("/h".to_owned()),
            "AWS_RETRY_MODE" => self.variable(2),
            "AWS_MAX_ATTEMPTS" => self.variable(3),
            "AWS_PROFILE" if !self.has(NAMES_PROFILE) => self.variable(4),
            _ => None,
        };
        value.map(OsString::from)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some(CONFIG) => Ok(self.file(0).to_owned()),
            Some(CREDENTIALS) => Ok(self.file(1).to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn is_windows(&self) -> bool {
        false
    }
}

/// Reads the files that `data` encodes, and looks the settings up in them and in the variables.
///
/// # Panics
///
/// Panics if an answer is not the model's, an error names what is not there, or a file that was
/// read does not read the same when written out.
pub fn config(data: &[u8]) {
    let input = Input::new(data);
    for index in [0, 1] {
        let text = String::from_utf8_lossy(input.file(index));
        for kind in [ProfileFileKind::Config, ProfileFileKind::Credentials] {
            compare_file(kind, &text);
        }
    }
    let mut loader = RetryConfig::loader();
    if input.has(SETS_MODE) {
        loader = loader.mode(RetryMode::Legacy);
    }
    if input.has(NAMES_PROFILE) {
        loader = loader.profile(input.variable(4).unwrap_or_default());
    }
    let got = loader.load_from(&input).map_err(Wrong::from);
    let want = load(&input).map(|(mode, sends)| {
        let sends = sends.map(|sends| NonZeroU32::new(sends).expect("counts the first send"));
        (mode, sends)
    });
    let got = got.map(|config| (config.mode(), config.max_attempts()));
    assert_eq!(got, want, "{input:?}");
}

fn compare_file(kind: ProfileFileKind, text: &str) {
    let credentials = kind == ProfileFileKind::Credentials;
    let want = profile_model::read(credentials, text);
    let got = ProfileFile::parse(kind, "file", text);
    match (&got, want) {
        (Ok(file), Ok(want)) => {
            let got = listed(file);
            assert_eq!(got, want, "{kind:?} {text:?}");
            let again = ProfileFile::parse(kind, "file", &written(credentials, &got));
            let again = again.map(|again| listed(&again));
            assert_eq!(again, Ok(got), "{kind:?} {text:?}");
        }
        (Err(error), Err(want)) => {
            assert_eq!((error.line(), error.fault()), want, "{kind:?} {text:?}");
            assert!((1..=text.lines().count()).contains(&error.line()));
        }
        (got, want) => panic!("{kind:?} {text:?}: got {got:?}, want {want:?}"),
    }
}

fn listed(file: &ProfileFile) -> Profiles {
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let names = file.profiles();
    names
        .map(|name| (name.to_owned(), file.properties(name).map(owned).collect()))
        .collect()
}

/// Writes profiles as a file. No space before a value: it may begin with a comment sign.
fn written(credentials: bool, profiles: &Profiles) -> String {
    let mut text = String::new();
    for (name, properties) in profiles {
        let quote = if name.contains(['"', '\\']) {
            "'"
        } else {
            "\""
        };
        if credentials {
            text.extend(["[", name, "]\r\n"]);
        } else {
            text.extend(["[profile ", quote, name, quote, "]\r\n"]);
        }
        for (key, value) in properties {
            text.extend([key, "=", &value.replace('\n', "\r\n "), "\r\n"]);
        }
    }
    text
}

/// What is wrong with an environment, and with which text of it.
#[derive(Debug, PartialEq)]
enum Wrong {
    Variable(&'static str, String, SettingFault),
    Key(&'static str, &'static str, String, String, SettingFault),
    NotText(&'static str),
    Syntax(&'static str, usize),
    NoProfile(String),
    Unexpected(String),
}

impl From<ConfigError> for Wrong {
    fn from(error: ConfigError) -> Self {
        let which = |file: &Path| match file.to_str() {
            Some(CONFIG) => CONFIG,
            Some(CREDENTIALS) => CREDENTIALS,
            _ => "another",
        };
        assert!(!error.to_string().contains('\n'), "{error}");
        match error.fault() {
            ConfigFault::Setting {
                origin,
                value,
                fault,
                ..
            } => match origin {
                SettingOrigin::Variable(name) => Self::Variable(name, value.clone(), *fault),
                SettingOrigin::Profile {
                    file, profile, key, ..
                } => Self::Key(which(file), key, profile.clone(), value.clone(), *fault),
                other => Self::Unexpected(format!("{other:?}")),
            },
            ConfigFault::NotUtf8 { file } => Self::NotText(which(file)),
            ConfigFault::File(error) => Self::Syntax(which(error.file()), error.line()),
            ConfigFault::NoProfile { profile, .. } => Self::NoProfile(profile.clone()),
            other => Self::Unexpected(format!("{other:?}")),
        }
    }
}

type Settings = (Option<RetryMode>, Option<u32>);

/// Looks the settings up: first every variable, then every file, then what is still missing.
fn load(input: &Input) -> Result<Settings, Wrong> {
    let variable = |name, index| (name, input.variable(index).unwrap_or_default());
    let explicit = input.has(SETS_MODE).then_some(RetryMode::Legacy);
    let mut mode = explicit;
    if explicit.is_none() {
        let (name, text) = variable("AWS_RETRY_MODE", 2);
        mode = read_mode(&text).map_err(|fault| Wrong::Variable(name, text, fault))?;
    }
    let (name, text) = variable("AWS_MAX_ATTEMPTS", 3);
    let mut sends = read_sends(&text).map_err(|fault| Wrong::Variable(name, text, fault))?;
    if mode.is_some() && sends.is_some() {
        return Ok((mode, sends));
    }
    let mut files = Vec::new();
    for (path, index) in [(CREDENTIALS, 1), (CONFIG, 0)] {
        let text = core::str::from_utf8(input.file(index)).map_err(|_| Wrong::NotText(path))?;
        let read = profile_model::read(path == CREDENTIALS, text);
        files.push((path, read.map_err(|(line, _)| Wrong::Syntax(path, line))?));
    }
    let mut profile = input.variable(4).unwrap_or_default();
    if input.has(NAMES_PROFILE) || !profile.is_empty() {
        if !files.iter().any(|(_, file)| file.contains_key(&profile)) {
            return Err(Wrong::NoProfile(profile));
        }
    } else {
        "default".clone_into(&mut profile);
    }
    if mode.is_none() {
        mode = find(&files, &profile, "retry_mode", read_mode)?;
    }
    if sends.is_none() {
        sends = find(&files, &profile, "max_attempts", read_sends)?;
    }
    Ok((mode, sends))
}

fn find<T>(
    files: &[(&'static str, Profiles)],
    profile: &str,
    key: &'static str,
    read: fn(&str) -> Result<Option<T>, SettingFault>,
) -> Result<Option<T>, Wrong> {
    for (path, profiles) in files {
        let Some(value) = profiles.get(profile).and_then(|found| found.get(key)) else {
            continue;
        };
        let first = value.split('\n').next().unwrap_or_default();
        let read = if first == value {
            read(value)
        } else {
            Err(Continued)
        };
        let wrong = |fault| Wrong::Key(path, key, profile.to_owned(), first.to_owned(), fault);
        return read.map_err(wrong);
    }
    Ok(None)
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r', '\x0c'])
}

fn read_mode(text: &str) -> Result<Option<RetryMode>, SettingFault> {
    match trimmed(text).to_ascii_uppercase().as_str() {
        "" => Ok(None),
        "STANDARD" => Ok(Some(RetryMode::Standard)),
        "ADAPTIVE" => Ok(Some(RetryMode::Adaptive)),
        "LEGACY" => Ok(Some(RetryMode::Legacy)),
        _ => Err(UnknownMode),
    }
}

fn read_sends(text: &str) -> Result<Option<u32>, SettingFault> {
    let text = trimmed(text);
    if text.is_empty() {
        return Ok(None);
    }
    let mut sends = 0_u64;
    let digits = text.strip_prefix('+').unwrap_or(text);
    for c in digits.chars() {
        let digit = c.to_digit(10).ok_or(NotANumber)?;
        sends = (sends * 10 + u64::from(digit)).min(1 << 40);
    }
    match (digits, u32::try_from(sends)) {
        ("", _) => Err(NotANumber),
        (_, Ok(0)) => Err(Zero),
        (_, Ok(sends)) => Ok(Some(sends)),
        (_, Err(_)) => Err(TooLarge),
    }
}
