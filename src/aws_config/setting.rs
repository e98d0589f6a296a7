//! The settings: where they stand, and which texts they accept.

use core::{
    fmt,
    num::{IntErrorKind, NonZeroU32},
};

use super::error::SettingFault;
use crate::config::RetryGeneration;

/// A mode of retrying, by the name that the AWS SDKs share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryMode {
    /// [`Standard`](crate::Standard).
    #[default]
    Standard,
    /// [`Adaptive`](crate::Adaptive).
    Adaptive,
    /// [`Legacy`](crate::Legacy).
    Legacy,
}

impl RetryMode {
    const ALL: [Self; 3] = [Self::Standard, Self::Adaptive, Self::Legacy];

    /// Reads a name in any case.
    pub(super) fn read(text: &str) -> Result<Self, SettingFault> {
        let mut all = Self::ALL.into_iter();
        all.find(|mode| text.eq_ignore_ascii_case(mode.as_str()))
            .ok_or(SettingFault::UnknownMode)
    }

    /// Returns the name, in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Adaptive => "adaptive",
            Self::Legacy => "legacy",
        }
    }
}

impl fmt::Display for RetryMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A setting.
#[derive(Debug)]
pub(super) struct Setting<T> {
    pub(super) variable: &'static str,
    /// The key in profile files.
    pub(super) key: &'static str,
    parse: fn(&str) -> Result<T, SettingFault>,
}

pub(super) const MODE: Setting<RetryMode> = Setting {
    variable: "AWS_RETRY_MODE",
    key: "retry_mode",
    parse: RetryMode::read,
};

pub(super) const MAX_ATTEMPTS: Setting<NonZeroU32> = Setting {
    variable: "AWS_MAX_ATTEMPTS",
    key: "max_attempts",
    parse: parse_count,
};

/// The variable by which the SDKs let users try generation 2.1 before it was their default.
pub(super) const GENERATION: Setting<RetryGeneration> = Setting {
    variable: "AWS_NEW_RETRIES_2026",
    key: "generation", // in a text that is deserialized; profile files have none
    parse: parse_generation,
};

impl<T> Setting<T> {
    /// Reads a setting's text. Whitespace alone sets nothing.
    pub(super) fn read(&self, text: &str) -> Result<Option<T>, SettingFault> {
        match text.trim_ascii() {
            "" => Ok(None),
            text => (self.parse)(text).map(Some),
        }
    }
}

/// Returns `count` as a number of sends.
#[cfg(feature = "serde")]
pub(super) fn sends(count: u64) -> Result<NonZeroU32, SettingFault> {
    let count = u32::try_from(count).map_err(|_| SettingFault::TooLarge)?;
    NonZeroU32::new(count).ok_or(SettingFault::Zero)
}

fn parse_generation(text: &str) -> Result<RetryGeneration, SettingFault> {
    if text.eq_ignore_ascii_case("true") {
        Ok(RetryGeneration::V2_1)
    } else if text.eq_ignore_ascii_case("false") {
        Ok(RetryGeneration::V2_0)
    } else {
        Err(SettingFault::NotABoolean)
    }
}

fn parse_count(text: &str) -> Result<NonZeroU32, SettingFault> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(SettingFault::NotANumber);
    }
    let count = digits.parse::<NonZeroU32>();
    count.map_err(|error| match error.kind() {
        IntErrorKind::Zero => SettingFault::Zero,
        IntErrorKind::PosOverflow => SettingFault::TooLarge,
        _ => SettingFault::NotANumber,
    })
}
