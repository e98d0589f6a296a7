//! The settings in a deserialized text, with the keys and the faults of profile files.

use serde::Deserialize;

use super::{
    error::{ConfigError, ConfigFault, SettingOrigin},
    loader::RetryConfig,
    setting::{MAX_ATTEMPTS, MODE, RetryMode, sends},
};
use crate::config::RetryGeneration;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfigText {
    retry_mode: Option<String>,
    max_attempts: Option<u64>,
    generation: Option<RetryGeneration>,
}

impl TryFrom<ConfigText> for RetryConfig {
    type Error = ConfigError;

    fn try_from(text: ConfigText) -> Result<Self, ConfigError> {
        let wrong = |key, value: String| {
            move |fault| {
                let origin = SettingOrigin::Field(key);
                ConfigError::from(ConfigFault::Setting {
                    origin,
                    value,
                    fault,
                })
            }
        };
        let mode = text.retry_mode.map(|mode| {
            let read = RetryMode::read(&mode);
            read.map_err(wrong(MODE.key, mode))
        });
        let max_attempts = text.max_attempts.map(|count| {
            let error = wrong(MAX_ATTEMPTS.key, count.to_string());
            sends(count).map_err(error)
        });
        Ok(Self {
            mode: mode.transpose()?,
            max_attempts: max_attempts.transpose()?,
            generation: text.generation,
        })
    }
}
