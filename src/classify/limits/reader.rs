//! The headers of one response, and what was read from them.

use http::{HeaderMap, HeaderValue, header};

use super::counts;
use super::field::Number;
use crate::headers::{
    decimal,
    time::{SECOND, When, when},
};
use crate::law::{LimitReport, LimitReports, Reset};

/// Reads when a limit is whole again. `unit` is the nanoseconds of a unit.
pub(super) fn reset(value: &[u8], unit: u64) -> Option<Reset> {
    Some(match when(value, unit)? {
        When::In(span) => Reset::In(span),
        When::At(time) => Reset::At(time),
    })
}

#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) headers: &'a HeaderMap,
    reports: LimitReports,
}

impl<'a> Reader<'a> {
    pub(super) fn new(headers: &'a HeaderMap) -> Self {
        let date = headers.get(header::DATE).map(HeaderValue::as_bytes);
        let date = date.and_then(|value| crate::headers::date(value.trim_ascii()));
        let reports = LimitReports::new();
        Self {
            headers,
            reports: date.map_or(reports, |date| reports.with_date(date)),
        }
    }

    pub(super) fn reports(self) -> LimitReports {
        self.reports
    }

    /// Counts a value that is wrong.
    pub(super) fn ignore(&mut self) {
        self.reports.ignore();
    }

    /// Adds a report, unless there is a report with its name. Two reports with one name are one
    /// limit in several families, or two limits that cannot be told apart. Returns `false` for a
    /// second report.
    ///
    /// A limit of zero is counted as wrong. Okta sends such a limit for concurrent requests ("Rate
    /// limits", Okta).
    pub(super) fn push(&mut self, report: LimitReport) -> bool {
        if report.declared_limit() == Some(0) {
            self.ignore();
            return true;
        }
        let name = |report: &LimitReport| (report.counts(), report.policy_name());
        let is_new = self.reports.iter().all(|had| name(had) != name(&report));
        if is_new {
            self.reports.push(report);
        }
        is_new
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.headers.contains_key(name)
    }

    /// Returns the value of a header. Two different values, of a service and a gateway before it,
    /// are wrong, since either may hold.
    pub(super) fn single(&mut self, name: &str) -> Option<&'a [u8]> {
        let mut values = self.headers.get_all(name).iter();
        let first = values.next()?;
        if values.any(|value| value != first) {
            self.ignore();
            return None;
        }
        Some(first.as_bytes())
    }

    /// Reads the value of a header by `read`, and counts the value as wrong if `read` returns
    /// `None`.
    pub(super) fn read<T>(&mut self, name: &str, read: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        let value = self.single(name)?;
        let known = read(value);
        if known.is_none() {
            self.ignore();
        }
        known
    }

    pub(super) fn count(&mut self, name: &str) -> Option<u64> {
        self.read(name, counts::count)
    }

    /// Returns an amount with or without a fraction, in nanoseconds. `unit` is the nanoseconds of a
    /// unit.
    pub(super) fn amount(&mut self, name: &str, unit: u64) -> Option<u64> {
        let nanos = |value: &[u8]| u64::try_from(decimal(value, unit)?.as_nanos()).ok();
        self.read(name, nanos)
    }

    /// Returns the reset in the first of these headers with a valid reset.
    pub(super) fn reset(&mut self, names: &[&str], unit: u64) -> Option<Reset> {
        let mut names = names.iter();
        names.find_map(|name| {
            let reset = self.read(name, |value| reset(value, unit))?;
            self.dated(reset)
        })
    }

    /// Reads a reset, and counts the value if it is wrong.
    pub(super) fn reset_of(&mut self, value: &[u8]) -> Option<Reset> {
        let known = reset(value, SECOND);
        if known.is_none() {
            self.ignore();
        }
        self.dated(known?)
    }

    /// Rejects a time without `Date`, since the local clock may be hours off.
    fn dated(&mut self, reset: Reset) -> Option<Reset> {
        if matches!(reset, Reset::At(_)) && self.reports.date().is_none() {
            self.ignore();
            return None;
        }
        Some(reset)
    }

    /// Returns the number in a parameter, and counts it if it is wrong.
    pub(super) fn known(&mut self, number: Number) -> Option<u64> {
        number.get().unwrap_or_else(|_| {
            self.ignore();
            None
        })
    }

    /// Returns the seconds of a window in a parameter. A window of zero is wrong.
    pub(super) fn window(&mut self, number: Number) -> Option<u64> {
        self.known(match number {
            Number::Is(0) => Number::Wrong,
            number => number,
        })
    }
}
