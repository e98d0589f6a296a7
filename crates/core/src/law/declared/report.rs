//! What a service declares about a limit.

mod list;
mod name;

use core::{fmt, time::Duration};

pub use self::{list::LimitReports, name::LimitName};

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Dimension {
    /// Requests. Also the unit of a service that names none.
    #[default]
    Requests,
    /// The cost of a request: tokens of a language model, points of a query, weights.
    Tokens,
    /// Another unit, by the service's name for it.
    Named(LimitName),
}

impl Dimension {
    /// Requests under way at the same time, `concurrent-requests` in the IETF draft. Such a limit
    /// is no rate, and no send rate can keep to it. Bound the number of workers instead.
    pub const CONCURRENT_REQUESTS: Self = Self::Named(LimitName::of(CONCURRENT.as_bytes()));
}

const CONCURRENT: &str = "concurrent-requests";

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests => f.write_str("requests"),
            Self::Tokens => f.write_str("tokens"),
            _ if *self == Self::CONCURRENT_REQUESTS => f.write_str(CONCURRENT),
            Self::Named(name) => name.fmt(f),
        }
    }
}

/// When a limit is reset, as a service declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reset {
    /// After this time, counted from the response.
    In(Duration),
    /// At this time since 1970-01-01 00:00 UTC, by the service's clock. Such a reset counts only
    /// beside a [date](LimitReports::with_date), because the local clock may be hours off.
    At(Duration),
}

/// One limit as a service declares it in a response.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use paceline::law::{LimitReport, Reset};
///
/// let report = LimitReport::new(4_987)
///     .limit(5_000)
///     .reset(Reset::In(Duration::from_secs(1_790)));
/// assert_eq!(report.to_string(), "4987 of 5000 requests left, reset in 1790s");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a report is for a limiter"]
pub struct LimitReport {
    dimension: Dimension,
    policy: LimitName,
    limit: Option<u64>,
    remaining: u64,
    window: Option<Duration>,
    reset: Option<Reset>,
    refills: Option<bool>,
    cost: Option<u64>,
}

impl LimitReport {
    /// Creates the report of a limit of requests of which `remaining` are left.
    pub const fn new(remaining: u64) -> Self {
        Self {
            dimension: Dimension::Requests,
            policy: LimitName::EMPTY,
            limit: None,
            remaining,
            window: None,
            reset: None,
            refills: None,
            cost: None,
        }
    }

    /// Sets what the limit counts.
    pub const fn dimension(mut self, dimension: Dimension) -> Self {
        self.dimension = dimension;
        self
    }

    /// Names the policy, which distinguishes several limits of one dimension.
    pub const fn policy(mut self, policy: LimitName) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the limit.
    pub const fn limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Sets the window: the time in which the limit may be used once.
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = Some(window);
        self
    }

    /// Sets whether the limit comes back little by little, or (`false`) all at once at a reset. If
    /// unset, the limiter infers this from the reports.
    pub const fn refills(mut self, refills: bool) -> Self {
        self.refills = Some(refills);
        self
    }

    /// Sets what the request cost, in the unit of the limit.
    pub const fn cost(mut self, cost: u64) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Sets when the limit is whole again.
    pub const fn reset(mut self, reset: Reset) -> Self {
        self.reset = Some(reset);
        self
    }

    /// Returns what the limit counts.
    #[must_use]
    pub const fn counts(&self) -> Dimension {
        self.dimension
    }

    /// Returns the name of the policy, which may be empty.
    #[must_use]
    #[doc(hidden)]
    pub const fn policy_name(&self) -> LimitName {
        self.policy
    }

    /// Returns how much is left.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Returns the limit, if the service said.
    #[must_use]
    #[doc(hidden)]
    pub const fn declared_limit(&self) -> Option<u64> {
        self.limit
    }

    /// Returns the window, if the service said.
    #[must_use]
    pub(crate) const fn declared_window(&self) -> Option<Duration> {
        self.window
    }

    /// Returns whether the limit comes back little by little, if the service said.
    #[must_use]
    #[doc(hidden)]
    pub const fn declared_refills(&self) -> Option<bool> {
        self.refills
    }

    /// Returns what the request cost, if the service said.
    #[must_use]
    #[cfg(test)]
    const fn declared_cost(&self) -> Option<u64> {
        self.cost
    }

    /// Returns when the limit is whole again, if the service said.
    #[must_use]
    pub const fn declared_reset(&self) -> Option<Reset> {
        self.reset
    }
}

impl fmt::Display for LimitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.remaining)?;
        if let Some(limit) = self.limit {
            write!(f, " of {limit}")?;
        }
        write!(f, " {} left", self.dimension)?;
        match self.reset {
            Some(Reset::In(time)) => write!(f, ", reset in {time:?}")?,
            Some(Reset::At(time)) => write!(f, ", reset at {} s of 1970", time.as_secs())?,
            None => {}
        }
        match self.window {
            Some(window) => write!(f, ", window of {window:?}"),
            None => Ok(()),
        }
    }
}

/// What a report did to the limiter: [`SendRate::observe`](crate::SendRate::observe).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Observed {
    /// Nothing: no report was of a limit that is obeyed, or all were wrong or old.
    Nothing,
    /// The limiter took what is left from the report.
    Taken,
    /// The service has changed its limit.
    Changed,
    /// The service declares a limit that was not known before.
    Declared,
    /// The reports have another meaning than they seem to: twice in a row a reset brought nothing
    /// back. For an hour the limiter ignores the limit, and the paced law decides.
    GivenUp,
}

#[cfg(feature = "serde")]
impl serde::Serialize for Dimension {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests;
