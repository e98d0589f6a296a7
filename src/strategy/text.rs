//! Builders out of a text, and what was chosen back into one.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::{
    adaptive::Adaptive, builder::StrategyBuilder, choices::Choices, settings::SettingsError,
    standard::Standard,
};
use crate::{ControlLaw, text::by_name};

/// Everything that was chosen, by the names of the methods, but for objects (`backoff`, `quota`,
/// `random`, `clock`), which no text can hold. Spans are `{ secs, nanos }`.
impl<M> Serialize for StrategyBuilder<M> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.choices.serialize(to)
    }
}

/// Fields are named like the methods, and are all optional. What [`build`](Self::build) would
/// refuse is refused here already, and so are fields of adaptive mode.
///
/// # Examples
///
/// ```
/// use paceline::{Standard, config::StrategyBuilder};
///
/// let text = r#"{ "generation": "2.0", "max_attempts": 5, "costs": { "throttling": 1, "timeout": 10, "other": 5 } }"#;
/// let builder: StrategyBuilder<Standard> = serde_json::from_str(text)?;
/// assert_eq!(builder.build()?.settings().max_attempts, 5);
///
/// let wrong = serde_json::from_str::<StrategyBuilder<Standard>>(r#"{ "max_attempts": 0 }"#);
/// assert!(wrong.unwrap_err().to_string().starts_with("max_attempts must be at least 1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<'de> Deserialize<'de> for StrategyBuilder<Standard> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let choices = checked(from)?;
        let adaptive = [
            ("law", choices.law.is_some()),
            ("paced", choices.paced.is_some()),
            ("fail_fast", choices.fail_fast),
            ("max_wait", choices.max_wait.is_some()),
            ("exact_timing", choices.exact_timing),
            ("bulk", choices.bulk),
        ];
        if let Some((name, _)) = adaptive.iter().find(|(_, chosen)| *chosen) {
            return Err(D::Error::custom(format_args!(
                "{name} is a setting of adaptive mode"
            )));
        }
        Ok(Self::of(choices))
    }
}

/// Fields are named like the methods, and are all optional. What [`build`](Self::build) would
/// refuse is refused here already; `paced` settings with another law, too.
impl<'de> Deserialize<'de> for StrategyBuilder<Adaptive> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut choices = checked(from)?;
        if choices.paced.is_some()
            && *choices.law.get_or_insert(ControlLaw::Paced) == ControlLaw::Aws
        {
            return Err(D::Error::custom("paced has no effect on the law aws"));
        }
        Ok(Self::of(choices))
    }
}

fn checked<'de, D: Deserializer<'de>>(from: D) -> Result<Choices, D::Error> {
    let choices: Choices = by_name(from)?;
    let wrong: Result<(), SettingsError> = choices.check();
    wrong.map_err(D::Error::custom)?;
    Ok(choices)
}
