//! All limits of one response.

use core::{fmt, time::Duration};

use super::LimitReport;

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
#[derive(Clone, Copy, PartialEq, Eq)]
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
    pub const MOST: usize = 6;

    /// Creates an empty list.
    pub const fn new() -> Self {
        Self {
            reports: [None; Self::MOST],
            date: None,
            ignored: 0,
        }
    }

    /// Adds a report. A report beyond [`MOST`](Self::MOST) is ignored and counted.
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

    /// Sets the time by the service's clock, since 1970-01-01 00:00 UTC, in whole seconds: the
    /// header `Date` of the response.
    pub const fn with_date(mut self, date: Duration) -> Self {
        self.date = Some(date);
        self
    }

    /// Returns the reports.
    pub fn iter(&self) -> impl Iterator<Item = &LimitReport> {
        self.reports.iter().flatten()
    }

    /// Returns `true` if the list has no report, and no value was ignored.
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
