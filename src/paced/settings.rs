//! What a caller may choose about the law.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::fixed::{Rate, SECOND};

/// Settings of [`ControlLaw::Paced`](crate::ControlLaw::Paced).
///
/// Each setter returns the settings changed, or an error that names what is wrong, with nothing changed. Rates are
/// given as so many tokens in a span of time, and rounded to nearest: to 44 significant bits.
///
/// | setting | default | range |
/// |---|---|---|
/// | floor | 0.5 tokens/s | one token in 1,000 s to 10⁹/s, at most the ceiling |
/// | ceiling | none | the same, at least the floor |
/// | initial rate | none: unlimited until the first throttle | between floor and ceiling |
/// | β, what a cut leaves of the rate | 90 % | 50 % to 99 % |
/// | burst, the capacity as a time at the fill rate | 50 ms, and at least one token | up to 10 s |
///
/// # Examples
///
/// A limiter that never goes above 100/s, whatever the service allows:
///
/// ```
/// use core::time::Duration;
/// use paceline::{PacedSettings, SendRate, Timestamp};
///
/// # fn main() -> Result<(), paceline::PacedSettingsError> {
/// let settings = PacedSettings::new().ceiling(100, Duration::from_secs(1))?;
/// let rate = SendRate::paced(settings, Timestamp::ZERO);
/// assert!(rate.snapshot(Timestamp::ZERO).enabled);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "text::PacedText", into = "text::PacedText")
)]
pub struct PacedSettings {
    floor: Rate,
    ceiling: Option<Rate>,
    initial: Option<Rate>,
    /// 32 fraction bits.
    beta: u64,
    burst: u64,
}

const LONGEST_BURST: Duration = Duration::from_secs(10);

impl Default for PacedSettings {
    fn default() -> Self {
        Self::new()
    }
}

impl PacedSettings {
    /// Returns the settings that [`ControlLaw::Paced`](crate::ControlLaw::Paced) has by itself.
    #[must_use]
    pub fn new() -> Self {
        Self {
            floor: Rate::from_ratio(1, SECOND << 1),
            ceiling: None,
            initial: None,
            beta: fraction(900),
            burst: SECOND.wrapping_div(20),
        }
    }

    /// Returns the settings of a plain limiter: always `tokens` in each `per`, whatever is throttled.
    ///
    /// # Errors
    ///
    /// If the rate is out of range.
    pub fn fixed(tokens: u32, per: Duration) -> Result<Self, PacedSettingsError> {
        let rate = rate("fixed rate", tokens, per)?;
        Ok(Self {
            floor: rate,
            ceiling: Some(rate),
            ..Self::new()
        })
    }

    /// Sets the lowest fill rate.
    ///
    /// # Errors
    ///
    /// If the rate is out of range, above the ceiling, or above the initial rate.
    pub fn floor(self, tokens: u32, per: Duration) -> Result<Self, PacedSettingsError> {
        let floor = rate("floor", tokens, per)?;
        Self { floor, ..self }.ordered("floor")
    }

    /// Sets the highest fill rate. The limiter limits from the start, and never switches itself off.
    ///
    /// # Errors
    ///
    /// If the rate is out of range, under the floor, or under the initial rate.
    pub fn ceiling(self, tokens: u32, per: Duration) -> Result<Self, PacedSettingsError> {
        let ceiling = Some(rate("ceiling", tokens, per)?);
        Self { ceiling, ..self }.ordered("ceiling")
    }

    /// Sets the fill rate to start with. The limiter limits from the start.
    ///
    /// # Errors
    ///
    /// If the rate is out of range, under the floor, or above the ceiling.
    pub fn initial_rate(self, tokens: u32, per: Duration) -> Result<Self, PacedSettingsError> {
        let initial = Some(rate("initial rate", tokens, per)?);
        Self { initial, ..self }.ordered("initial rate")
    }

    /// Sets what a cut leaves of the rate, in thousandths. At peaks under 100/s a cut takes more.
    ///
    /// # Errors
    ///
    /// Outside 500 to 990.
    pub fn beta_permille(self, beta: u16) -> Result<Self, PacedSettingsError> {
        if !(500..=990).contains(&beta) {
            return Err(PacedSettingsError::Beta { permille: beta });
        }
        let beta = fraction(beta);
        Ok(Self { beta, ..self })
    }

    /// Sets how much the bucket holds, as a time at the fill rate. It always holds one token.
    ///
    /// # Errors
    ///
    /// Above 10 seconds.
    pub fn burst(self, length: Duration) -> Result<Self, PacedSettingsError> {
        if length > LONGEST_BURST {
            return Err(PacedSettingsError::Burst { length });
        }
        let burst = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        Ok(Self { burst, ..self })
    }

    fn ordered(self, setting: &'static str) -> Result<Self, PacedSettingsError> {
        let ceiling = self.ceiling.unwrap_or(Rate::MAX);
        let initial = self.initial.unwrap_or(self.floor);
        if self.floor <= initial && initial <= ceiling {
            return Ok(self);
        }
        Err(PacedSettingsError::Order { setting })
    }

    /// Returns the rate that is limited to from the start, if any.
    pub(crate) fn start(&self) -> Option<Rate> {
        self.initial.or(self.ceiling)
    }

    /// Whether the limiter may switch itself off.
    pub(crate) const fn may_end(&self) -> bool {
        self.ceiling.is_none()
    }

    /// Returns the highest fill rate, if there is one.
    pub(crate) const fn highest(&self) -> Option<Rate> {
        self.ceiling
    }

    /// Returns β in thousandths.
    pub(crate) fn permille(&self) -> u16 {
        // A fraction of thousandths was rounded down.
        let permille = self.beta.wrapping_mul(1_000).div_ceil(1 << 32);
        u16::try_from(permille).unwrap_or(u16::MAX)
    }

    /// Returns the settings with these in place of its own, which other settings have had.
    pub(crate) fn tuned(self, floor: Rate, ceiling: Option<Rate>, permille: u16) -> Self {
        Self {
            floor,
            ceiling,
            beta: fraction(permille),
            ..self
        }
    }

    /// Looks whether a limiter made with `other` starts like one made with these settings.
    pub(crate) fn starts_like(&self, other: &Self) -> Result<(), PacedSettingsError> {
        let setting = if self.burst != other.burst {
            "burst"
        } else if self.initial != other.initial {
            "initial rate"
        } else {
            return Ok(());
        };
        Err(PacedSettingsError::Unchangeable { setting })
    }

    /// Returns β, with 32 fraction bits.
    pub(crate) const fn beta(&self) -> u64 {
        self.beta
    }

    /// Returns the capacity in nanoseconds at the fill rate.
    pub(crate) const fn burst_nanos(&self) -> u64 {
        self.burst
    }

    /// Returns the lowest fill rate.
    pub(crate) const fn lowest(&self) -> Rate {
        self.floor
    }

    /// Returns `rate`, or the limit that it is beyond.
    pub(crate) fn within(&self, rate: Rate) -> Rate {
        rate.max(self.floor).min(self.ceiling.unwrap_or(Rate::MAX))
    }
}

/// Returns thousandths with 32 fraction bits.
fn fraction(permille: u16) -> u64 {
    (u64::from(permille) << 32).wrapping_div(1_000)
}

fn rate(setting: &'static str, tokens: u32, per: Duration) -> Result<Rate, PacedSettingsError> {
    Rate::settable(tokens, per).ok_or(PacedSettingsError::Rate {
        setting,
        tokens,
        per,
    })
}

/// A setting of [`PacedSettings`] that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PacedSettingsError {
    /// A rate outside one token in 1,000 s to one in each nanosecond.
    #[non_exhaustive]
    Rate {
        /// Which one.
        setting: &'static str,
        /// So many tokens ...
        tokens: u32,
        /// ... in this time.
        per: Duration,
    },
    /// The rates are not in order: floor, initial rate, ceiling.
    #[non_exhaustive]
    Order {
        /// The one that was to be set.
        setting: &'static str,
    },
    /// β outside 50 % to 99 %.
    #[non_exhaustive]
    Beta {
        /// What was given, in thousandths.
        permille: u16,
    },
    /// A burst above 10 seconds.
    #[non_exhaustive]
    Burst {
        /// What was given.
        length: Duration,
    },
    /// A setting that a limiter keeps as it was made, was to be changed.
    #[non_exhaustive]
    Unchangeable {
        /// Which one.
        setting: &'static str,
    },
}

impl fmt::Display for PacedSettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Rate {
                setting,
                tokens,
                per,
            } => write!(
                f,
                "the {setting} of {tokens} tokens in {per:?} is not between one in 1000 s and one in 1 ns"
            ),
            Self::Order { setting } => write!(
                f,
                "with this {setting} the floor, the initial rate and the ceiling are out of order"
            ),
            Self::Beta { permille } => {
                write!(f, "a beta of {permille}/1000 is not between 500 and 990")
            }
            Self::Burst { length } => write!(f, "a burst of {length:?} is longer than 10 s"),
            Self::Unchangeable { setting } => {
                write!(f, "the {setting} of a limiter stays as it was made")
            }
        }
    }
}

impl Error for PacedSettingsError {}

#[cfg(feature = "serde")]
mod text;

#[cfg(test)]
mod tests;
