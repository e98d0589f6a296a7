//! Finds the settings: explicit settings come first, then the environment, then the profile.

use core::num::NonZeroU32;
use std::path::{Path, PathBuf};

use super::{
    environment::{Environment, ProcessEnvironment},
    error::{ConfigError, ConfigFault, SettingFault, SettingOrigin},
    location::{self, variable},
    profile::{ProfileFile, ProfileFileKind},
    setting::{GENERATION, MAX_ATTEMPTS, MODE, RetryMode, Setting},
};
use crate::config::RetryGeneration;

/// The retry settings that a program or its environment chose. Other settings keep their defaults.
///
/// # Examples
///
/// ```no_run
/// use paceline::{RetryStrategyExt, aws_config::RetryConfig};
///
/// let strategy = RetryConfig::from_env()?.build_strategy();
/// # let call = || Ok::<_, paceline::Failure>(());
/// let answer = strategy.run(|_| call());
/// # Ok::<(), paceline::aws_config::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "super::text::ConfigText"))]
pub struct RetryConfig {
    pub(super) mode: Option<RetryMode>,
    pub(super) max_attempts: Option<NonZeroU32>,
    pub(super) generation: Option<RetryGeneration>,
}

impl RetryConfig {
    /// Looks the settings up in the environment of the process.
    ///
    /// # Errors
    ///
    /// The errors of [`RetryConfigLoader::load`].
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::loader().load()
    }

    /// Looks the settings up in the environment of the process, and in the profile `name` of its
    /// files.
    ///
    /// This profile replaces the profile of `AWS_PROFILE`. The variables `AWS_RETRY_MODE` and
    /// `AWS_MAX_ATTEMPTS` still come before the profile.
    ///
    /// # Errors
    ///
    /// The errors of [`RetryConfigLoader::load`]. A profile in neither file is an error if a
    /// setting is looked for there.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use paceline::aws_config::RetryConfig;
    ///
    /// let strategy = RetryConfig::from_profile("batch")?.build_strategy();
    /// # Ok::<(), paceline::aws_config::ConfigError>(())
    /// ```
    pub fn from_profile(name: impl Into<String>) -> Result<Self, ConfigError> {
        Self::loader().profile(name).load()
    }

    /// Starts with nothing set explicitly.
    pub fn loader() -> RetryConfigLoader {
        RetryConfigLoader::default()
    }

    /// Returns the mode, if one was chosen.
    #[must_use]
    pub const fn mode(&self) -> Option<RetryMode> {
        self.mode
    }

    /// Returns the most sends of an operation, the first included, if a number was chosen.
    #[must_use]
    pub const fn max_attempts(&self) -> Option<NonZeroU32> {
        self.max_attempts
    }

    /// Returns the generation of the rules, if one was chosen.
    #[must_use]
    pub const fn generation(&self) -> Option<RetryGeneration> {
        self.generation
    }
}

/// Finds retry settings where the AWS SDKs do.
///
/// | | 1. | 2. | 3. |
/// |---|---|---|---|
/// | mode | [`mode`](Self::mode) | `AWS_RETRY_MODE` | `retry_mode` of the profile |
/// | most sends | [`max_attempts`](Self::max_attempts) | `AWS_MAX_ATTEMPTS` | `max_attempts` of the profile |
/// | generation | [`generation`](Self::generation) | `AWS_NEW_RETRIES_2026`: `true` is 2.1, `false` 2.0 | |
/// | profile | [`profile`](Self::profile) | `AWS_PROFILE` | `default` |
/// | config file | [`config_file`](Self::config_file) | `AWS_CONFIG_FILE` | `~/.aws/config` |
/// | credentials file | [`credentials_file`](Self::credentials_file) | `AWS_SHARED_CREDENTIALS_FILE` | `~/.aws/credentials` |
///
/// Each setting is looked up from left to right until it is found. A wrong value further right is
/// not noticed, and the files are not read if nothing is left to find. If both files have a key,
/// the credentials file counts. Profiles do not inherit from `default`.
///
/// A mode is `standard`, `adaptive` or `legacy`, in any case. The most sends are a number from 1 to
/// `u32::MAX` in digits, with or without a `+`. Whitespace around both is ignored. The SDKs differ
/// on several of these rules:
///
/// | | here | as |
/// |---|---|---|
/// | mode in upper case, or between spaces | accepted | smithy-rs |
/// | `legacy` | accepted | botocore; an error in smithy-rs and Go |
/// | number between spaces | accepted | botocore, smithy-python |
/// | an empty value, or nothing but whitespace | not set | Go, smithy-python; an error in smithy-rs and botocore |
/// | a number of 0 | an error | all but Go and JavaScript |
/// | any other text | an error | smithy-rs |
/// | variables with an empty value: profile, files, home | not set | |
/// | `AWS_DEFAULT_PROFILE` | not looked at | smithy-rs; looked at in botocore |
/// | a profile that the program or `AWS_PROFILE` names and neither file has | an error | botocore; empty in smithy-rs |
/// | a profile's name with spaces or other special characters | found | botocore; not loaded in smithy-rs |
/// | `AWS_NEW_RETRIES_2026` with a text other than `true` and `false` | an error | `false` in smithy-rs and botocore 1.43; later versions of the SDKs do not read it |
/// | a file that the program names and that cannot be read | an error | smithy-rs |
/// | any other file that cannot be read | empty | smithy-rs |
/// | a file that is not in UTF-8 | an error | empty in smithy-rs, which can log it |
///
/// The home folder is `HOME`. On Windows `USERPROFILE` comes next, and then `HOMEDRIVE` with
/// `HOMEPATH`. The home folder replaces a leading `~/` of a file that a variable names. Without a
/// home folder that file is missing.
///
/// Source: "Retry behavior", "Shared config and credentials files" and "Location of the shared
/// files" in the AWS SDKs and Tools Reference Guide.
///
/// # Examples
///
/// ```
/// use std::num::NonZeroU32;
/// use paceline::aws_config::{RetryConfig, RetryMode};
///
/// let config = RetryConfig::loader()
///     .mode(RetryMode::Adaptive)
///     .max_attempts(NonZeroU32::MIN)
///     .load()?; // both are known, so nothing is read
/// assert_eq!(config.mode(), Some(RetryMode::Adaptive));
/// # Ok::<(), paceline::aws_config::ConfigError>(())
/// ```
#[derive(Debug, Default)]
#[must_use = "a loader does nothing until it loads"]
pub struct RetryConfigLoader {
    explicit: RetryConfig,
    profile: Option<String>,
    config_file: Option<PathBuf>,
    credentials_file: Option<PathBuf>,
}

impl RetryConfigLoader {
    /// Sets the mode, whatever is set elsewhere.
    pub fn mode(mut self, mode: RetryMode) -> Self {
        self.explicit.mode = Some(mode);
        self
    }

    /// Sends an operation at most `sends` times, the first included, whatever is set elsewhere.
    pub fn max_attempts(mut self, sends: NonZeroU32) -> Self {
        self.explicit.max_attempts = Some(sends);
        self
    }

    /// Sets the generation of the rules, whatever the environment says.
    pub fn generation(mut self, generation: RetryGeneration) -> Self {
        self.explicit.generation = Some(generation);
        self
    }

    /// Looks in the profile `name`, which has to be in one of the files.
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.profile = Some(name.into());
        self
    }

    /// Looks in this config file, which has to be there. A leading `~/` is not replaced.
    pub fn config_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.config_file = Some(path.into());
        self
    }

    /// Looks in this credentials file, which has to be there. A leading `~/` is not replaced.
    pub fn credentials_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.credentials_file = Some(path.into());
        self
    }

    /// Looks the settings up in the environment of the process.
    ///
    /// # Errors
    ///
    /// Returns [`ConfigError`] if a setting is invalid, if a file or profile that the program names
    /// is missing, or if the profile of `AWS_PROFILE` is missing. An invalid variable is an error
    /// whatever the profile says.
    pub fn load(&self) -> Result<RetryConfig, ConfigError> {
        self.load_from(&ProcessEnvironment)
    }

    /// Looks the settings up in `environment`. Not public API: for tests.
    ///
    /// # Errors
    ///
    /// The errors of [`load`](Self::load).
    #[doc(hidden)]
    pub fn load_from(&self, environment: &impl Environment) -> Result<RetryConfig, ConfigError> {
        self.look_up(environment)
    }

    fn look_up(&self, environment: &dyn Environment) -> Result<RetryConfig, ConfigError> {
        let mut found = self.explicit.clone();
        fill(&mut found.generation, || {
            from_variable(environment, &GENERATION)
        })?;
        fill(&mut found.mode, || from_variable(environment, &MODE))?;
        fill(&mut found.max_attempts, || {
            from_variable(environment, &MAX_ATTEMPTS)
        })?;
        if found.mode.is_some() && found.max_attempts.is_some() {
            return Ok(found);
        }
        let profile = Profile::open(self, environment)?;
        fill(&mut found.mode, || profile.find(&MODE))?;
        fill(&mut found.max_attempts, || profile.find(&MAX_ATTEMPTS))?;
        Ok(found)
    }
}

/// Looks for a setting unless it is known.
fn fill<T>(
    setting: &mut Option<T>,
    find: impl FnOnce() -> Result<Option<T>, ConfigError>,
) -> Result<(), ConfigError> {
    if setting.is_none() {
        *setting = find()?;
    }
    Ok(())
}

fn from_variable<T>(
    environment: &dyn Environment,
    setting: &Setting<T>,
) -> Result<Option<T>, ConfigError> {
    let Some(value) = environment.variable(setting.variable) else {
        return Ok(None);
    };
    let value = value.to_string_lossy();
    setting.read(&value).map_err(|fault| {
        let origin = SettingOrigin::Variable(setting.variable);
        let value = value.into_owned();
        ConfigFault::Setting {
            origin,
            value,
            fault,
        }
        .into()
    })
}

/// One profile, and the files that may contain it. The first file has precedence.
struct Profile {
    name: String,
    files: Vec<ProfileFile>,
}

impl Profile {
    fn open(
        loader: &RetryConfigLoader,
        environment: &dyn Environment,
    ) -> Result<Self, ConfigError> {
        use ProfileFileKind::{Config, Credentials};
        let credentials = open_file(environment, Credentials, loader.credentials_file.as_deref())?;
        let config = open_file(environment, Config, loader.config_file.as_deref())?;
        let files: Vec<_> = credentials.into_iter().chain(config).collect();
        let named = loader.profile.clone().or_else(|| {
            let name = variable(environment, "AWS_PROFILE")?;
            Some(name.to_string_lossy().into_owned())
        });
        match named {
            None => Ok(Self {
                name: "default".to_owned(),
                files,
            }),
            Some(name) if files.iter().any(|file| file.contains(&name)) => Ok(Self { name, files }),
            Some(profile) => Err(ConfigFault::NoProfile { profile }.into()),
        }
    }

    fn find<T>(&self, setting: &Setting<T>) -> Result<Option<T>, ConfigError> {
        let mut files = self.files.iter();
        let found = files.find_map(|file| Some((file, file.get(&self.name, setting.key)?)));
        let Some((file, value)) = found else {
            return Ok(None);
        };
        let (line, read) = match value.split_once('\n') {
            Some((first, _)) => (first, Err(SettingFault::Continued)),
            None => (value, setting.read(value)),
        };
        read.map_err(|fault| {
            let origin = SettingOrigin::Profile {
                file: file.path().to_owned(),
                profile: self.name.clone(),
                key: setting.key,
            };
            let value = line.to_owned();
            ConfigFault::Setting {
                origin,
                value,
                fault,
            }
            .into()
        })
    }
}

/// Reads the file that the program names, or else the file of the environment.
fn open_file(
    environment: &dyn Environment,
    kind: ProfileFileKind,
    named: Option<&Path>,
) -> Result<Option<ProfileFile>, ConfigError> {
    let Some(file) = named
        .map(Path::to_owned)
        .or_else(|| location::file(environment, kind))
    else {
        return Ok(None);
    };
    let bytes = match environment.read(&file) {
        Ok(bytes) => bytes,
        Err(error) if named.is_some() => return Err(ConfigFault::Unreadable { file, error }.into()),
        Err(_) => return Ok(None),
    };
    match core::str::from_utf8(&bytes) {
        Ok(text) => match ProfileFile::parse(kind, file, text) {
            Ok(file) => Ok(Some(file)),
            Err(error) => Err(ConfigFault::File(error).into()),
        },
        Err(_) => Err(ConfigFault::NotUtf8 { file }.into()),
    }
}
