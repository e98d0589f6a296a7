//! The settings of the declared law.

use core::time::Duration;

use super::{Declared, Dimension};
use crate::law::paced::PacedSettings;

/// The default of the longest pause that a service may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

/// How the rest of a window is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spend {
    /// Evenly until the reset: the shortest waits, and no throttles.
    Even,
    /// Quickly: at a rate that would spend the rest in a second, or in two trips if these are
    /// longer. Half of the rest goes in 0.7 s; later requests wait for the reset. In windows of a
    /// second or two this is nearly [`Even`](Self::Even).
    Fast,
}

/// Settings of [`ControlLaw::Declared`](crate::ControlLaw::Declared).
///
/// # Examples
///
/// ```
/// use paceline::{SendRate, Timestamp, law::{DeclaredSettings, Spend}};
///
/// let settings = DeclaredSettings::new().first_burst(4).spend(Spend::Fast);
/// let rate = SendRate::declared(settings, Timestamp::ZERO);
/// assert!(rate.try_acquire(Timestamp::ZERO).is_ok());
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "settings are for a limiter"]
pub struct DeclaredSettings {
    otherwise: PacedSettings,
    dimension: Dimension,
    first: Option<u32>,
    spend: Spend,
    max_pause: Duration,
}

impl DeclaredSettings {
    /// Creates the settings that [`ControlLaw::Declared`](crate::ControlLaw::Declared) has by
    /// default: limits of requests, spent evenly, and one request before the first report.
    pub fn new() -> Self {
        Self {
            otherwise: PacedSettings::new(),
            dimension: Dimension::Requests,
            first: None,
            spend: Spend::Even,
            max_pause: LONGEST_PAUSE,
        }
    }

    /// Sets how many requests of any weight go at once before the first report; 0 means all. As
    /// many again go in each ten seconds, and all after the first answer without a report. In a set
    /// the least burst of its rates holds.
    ///
    /// The default is one request. If the paced law of [`otherwise`](Self::otherwise) has a
    /// ceiling, as a fixed rate does, the default is all, because the ceiling limits from the
    /// start.
    pub const fn first_burst(mut self, requests: u32) -> Self {
        self.first = Some(requests);
        self
    }

    /// Sets how the rest of a window is spent.
    pub const fn spend(mut self, spend: Spend) -> Self {
        self.spend = spend;
        self
    }

    /// Sets the longest pause that a service may ask for with a throttle: an hour by default. A
    /// longer pause counts as this long. During the pause nothing is sent. An operation that
    /// accepts only a shorter pause is refused, and shortens no other's. Before the first report a
    /// pause is a minute at most.
    pub const fn max_pause(mut self, pause: Duration) -> Self {
        self.max_pause = pause;
        self
    }

    /// Sets the dimension of the limits that are obeyed, the unit of the limiter's tokens. Limits
    /// of other dimensions are ignored.
    pub const fn dimension(mut self, dimension: Dimension) -> Self {
        self.dimension = dimension;
        self
    }

    /// Sets the paced law that decides where nothing is declared. Its ceiling always holds.
    pub const fn otherwise(mut self, paced: PacedSettings) -> Self {
        self.otherwise = paced;
        self
    }

    /// Returns the dimension of the limits that are obeyed.
    #[must_use]
    pub(crate) const fn obeyed(&self) -> Dimension {
        self.dimension
    }

    /// Returns the settings of the law that decides where nothing is declared.
    #[must_use]
    pub const fn paced(&self) -> PacedSettings {
        self.otherwise
    }

    pub(crate) const fn law(&self) -> Declared {
        Declared {
            otherwise: self.otherwise,
            first: self.first,
            spend: self.spend,
            max_pause: self.max_pause,
        }
    }
}
