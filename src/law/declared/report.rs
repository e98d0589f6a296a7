//! What a service declares about a limit.

use core::{fmt, time::Duration};

/// A name of at most sixteen bytes, in lower case; a longer one is cut.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct LimitName([u8; Self::LONGEST]);

impl LimitName {
    const LONGEST: usize = 16;

    /// Creates a name from text. Letters become small, and bytes that are no printable ASCII become
    /// `?`.
    #[must_use]
    pub fn new(text: impl AsRef<[u8]>) -> Self {
        let mut name = Self::default();
        for (to, from) in name.0.iter_mut().zip(text.as_ref()) {
            *to = if from.is_ascii_graphic() {
                from.to_ascii_lowercase()
            } else {
                b'?'
            };
        }
        name
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|byte| *byte == 0);
        let bytes = self.0.get(..length.unwrap_or(Self::LONGEST));
        core::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
    }

    pub(crate) const fn bits(self) -> u128 {
        u128::from_le_bytes(self.0)
    }

    pub(crate) const fn from_bits(bits: u128) -> Self {
        Self(bits.to_le_bytes())
    }
}

impl fmt::Debug for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dimension {
    /// Requests, or the service did not say.
    #[default]
    Requests,
    /// Tokens of a language model, points of a query, weights: what a request costs.
    Tokens,
    /// Something else, by the service's own name.
    Named(LimitName),
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests => f.write_str("requests"),
            Self::Tokens => f.write_str("tokens"),
            Self::Named(name) => name.fmt(f),
        }
    }
}

/// When a limit is reset, as a service declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reset {
    /// In this time, counted from the response.
    In(Duration),
    /// At this time since 1970-01-01 00:00 UTC, by the service's clock. It counts only beside a
    /// [date](LimitReports::with_date), because the local clock may be hours off.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a report is for a limiter"]
pub struct LimitReport {
    dimension: Dimension,
    policy: LimitName,
    limit: Option<u64>,
    remaining: u64,
    window: Option<Duration>,
    reset: Option<Reset>,
    refills: Option<bool>,
}

impl LimitReport {
    /// Creates the report of a limit of requests of which `remaining` are left.
    pub const fn new(remaining: u64) -> Self {
        Self {
            dimension: Dimension::Requests,
            policy: LimitName([0; LimitName::LONGEST]),
            limit: None,
            remaining,
            window: None,
            reset: None,
            refills: None,
        }
    }

    /// Says what the limit counts.
    pub const fn dimension(mut self, dimension: Dimension) -> Self {
        self.dimension = dimension;
        self
    }

    /// Names the policy, which distinguishes several limits of one dimension.
    pub const fn policy(mut self, policy: LimitName) -> Self {
        self.policy = policy;
        self
    }

    /// Says how much the limit is.
    pub const fn limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Says in what time the limit may be used once.
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = Some(window);
        self
    }

    /// Says that the limit comes back all the time, or (false) all at once at a reset. Unless it is
    /// said it is found out from the reports.
    pub const fn refills(mut self, refills: bool) -> Self {
        self.refills = Some(refills);
        self
    }

    /// Says when the limit is whole again.
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
    pub const fn policy_name(&self) -> LimitName {
        self.policy
    }

    /// Returns how much is left.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Returns how much the limit is, if the service said.
    #[must_use]
    pub const fn declared_limit(&self) -> Option<u64> {
        self.limit
    }

    /// Returns in what time the limit may be used once, if the service said.
    #[must_use]
    pub const fn declared_window(&self) -> Option<Duration> {
        self.window
    }

    /// Returns whether the limit comes back all the time, if that was said.
    #[must_use]
    pub const fn declared_refills(&self) -> Option<bool> {
        self.refills
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Observed {
    /// Nothing: there was no report of a limit that is obeyed, or only wrong or old ones.
    Nothing,
    /// What is left was taken from it.
    Taken,
    /// The service has changed its limit.
    Changed,
    /// The service declares a limit that was not known before.
    Declared,
}

/// All limits that one response declares.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use paceline::law::{LimitReport, LimitReports, Reset};
///
/// let minute = LimitReport::new(59).limit(60).reset(Reset::In(Duration::from_secs(60)));
/// let reports = LimitReports::from(minute);
/// assert_eq!(reports.iter().count(), 1);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[must_use = "reports are for a limiter"]
pub struct LimitReports {
    reports: [Option<LimitReport>; Self::MOST],
    date: Option<Duration>,
    ignored: u32,
}

impl fmt::Debug for LimitReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { date, ignored, .. } = self;
        f.write_str("LimitReports(")?;
        f.debug_list().entries(self.iter()).finish()?;
        write!(f, ", date: {date:?}, ignored: {ignored})")
    }
}

impl LimitReports {
    /// The most limits of one response that count.
    pub const MOST: usize = 4;

    /// Creates an empty list.
    pub const fn new() -> Self {
        Self {
            reports: [None; Self::MOST],
            date: None,
            ignored: 0,
        }
    }

    /// Adds a report. One beyond [`MOST`](Self::MOST) is ignored and counted.
    pub fn push(&mut self, report: LimitReport) {
        match self.reports.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(report),
            None => self.ignore(),
        }
    }

    /// Counts a value that was ignored because it was wrong.
    pub const fn ignore(&mut self) {
        self.ignored = self.ignored.saturating_add(1);
    }

    /// Says what the time was by the service's clock, since 1970-01-01 00:00 UTC, in whole seconds:
    /// the header `Date` of the response.
    pub const fn with_date(mut self, date: Duration) -> Self {
        self.date = Some(date);
        self
    }

    /// Returns the reports.
    pub fn iter(&self) -> impl Iterator<Item = &LimitReport> {
        self.reports.iter().flatten()
    }

    /// Tells whether there is nothing to say: no report, and no value that was ignored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ignored == 0 && self.reports.iter().all(Option::is_none)
    }

    /// Returns the time by the service's clock.
    #[must_use]
    pub const fn date(&self) -> Option<Duration> {
        self.date
    }

    /// Returns how many values were ignored because they were wrong.
    #[must_use]
    pub const fn ignored(&self) -> u32 {
        self.ignored
    }
}

impl From<LimitReport> for LimitReports {
    fn from(report: LimitReport) -> Self {
        let mut reports = Self::new();
        reports.push(report);
        reports
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for LimitName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Dimension {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
