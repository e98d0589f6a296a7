//! Why paced settings are refused.

use core::error::Error;
use core::fmt;
use core::time::Duration;

/// A setting of [`PacedSettings`](super::PacedSettings) that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacedSettingsError {
    /// A rate that is not between one token a day and one in a nanosecond.
    #[non_exhaustive]
    Rate {
        /// Which one.
        setting: &'static str,
        /// The number of tokens.
        tokens: u32,
        /// The time that the tokens are for.
        per: Duration,
    },
    /// The rates are not in order: floor, initial rate, ceiling.
    #[non_exhaustive]
    Order {
        /// The rate that should be lower.
        above: &'static str,
        /// The rate that should be higher.
        below: &'static str,
    },
    /// β outside 50 % to 99 %.
    #[non_exhaustive]
    Beta {
        /// The value given, in thousandths.
        permille: u16,
    },
    /// A burst above 10 seconds.
    #[non_exhaustive]
    Burst {
        /// What was given.
        length: Duration,
    },
    /// A longest pause above a day.
    #[non_exhaustive]
    Pause {
        /// What was given.
        pause: Duration,
    },
    /// A cycle of no time, or above a year.
    #[non_exhaustive]
    Cycle {
        /// What was given.
        cycle: Duration,
    },
    /// A change of a setting that a limiter keeps for its life.
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
                "the {setting} of {tokens} tokens in {per:?} is not between one a day and one in 1 ns"
            ),
            Self::Order { above, below } => write!(f, "the {above} is above the {below}"),
            Self::Beta { permille } => {
                write!(f, "a beta of {permille}/1000 is not between 500 and 990")
            }
            Self::Burst { length } => write!(f, "a burst of {length:?} is longer than 10 s"),
            Self::Pause { pause } => write!(f, "a pause of {pause:?} is longer than a day"),
            Self::Cycle { cycle } => {
                write!(f, "a cycle of {cycle:?} is not between 1 ns and 366 days")
            }
            Self::Unchangeable { setting } => {
                write!(f, "the {setting} of a limiter stays as it was made")
            }
        }
    }
}

impl Error for PacedSettingsError {}
