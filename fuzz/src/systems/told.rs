//! What a response says of a limit: as a report, or as the headers of a family of services.

use core::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use paceline::classify::{HeaderLimits, HttpResponseParts};
use paceline::law::{Dimension, LimitReport, LimitReports, Reset};

use super::system::System;
use super::{MILLI, SECOND};

/// A limit at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) limit: u64,
    pub(super) left: u64,
    pub(super) window: u64,
    /// Whether it comes back all the time or at a reset, as far as that can be told.
    pub(super) refills: Option<bool>,
    /// The time until it is whole.
    pub(super) whole_in: u64,
    /// The time by the service's clock, in nanoseconds since 1970.
    pub(super) date: u64,
}

impl Told {
    /// Returns what a response says.
    pub(super) fn reports(&self, system: &System) -> LimitReports {
        if system.family > 0 {
            return self.headers(system.family);
        }
        if system.unusable > 0 {
            return self.unusable(system.unusable);
        }
        LimitReports::from(self.report(system, Dimension::Requests))
            .with_date(Duration::from_secs(self.date / SECOND))
    }

    /// Returns a report of which nothing can be made: no law keeps to it.
    fn unusable(&self, form: u64) -> LimitReports {
        let date = Duration::from_secs(self.date / SECOND);
        let report = LimitReport::new(self.left).limit(self.limit);
        let report = match form {
            1 => report,
            // Without a date.
            2 => {
                let whole = Duration::from_secs(self.whole_at());
                return report.reset(Reset::At(whole)).into();
            }
            3 => report.reset(Reset::At(date.saturating_sub(Duration::from_secs(1_504)))),
            4 => report
                .reset(Reset::In(Duration::ZERO))
                .window(Duration::ZERO),
            5 => report.reset(Reset::In(Duration::MAX)).window(Duration::MAX),
            6 => LimitReport::new(self.left),
            // Something else each time.
            _ => {
                let odd = self.date / MILLI % 7;
                let span = Duration::from_nanos(self.window * odd);
                report.limit(self.limit * (1 + odd)).reset(Reset::In(span))
            }
        };
        LimitReports::from(report).with_date(date)
    }

    pub(super) fn report(&self, system: &System, dimension: Dimension) -> LimitReport {
        let report = LimitReport::new(self.left).limit(self.limit);
        let mut report = report.dimension(dimension).reset(match system.reset {
            0 => Reset::In(Duration::from_secs(self.seconds())),
            1 => Reset::In(Duration::from_millis(self.whole_in.div_ceil(MILLI))),
            _ => Reset::At(Duration::from_secs(self.whole_at())),
        });
        if system.no_window == 0 {
            report = report.window(Duration::from_nanos(self.window));
        }
        match self.refills {
            Some(refills) if system.no_kind == 0 => report.refills(refills),
            _ => report,
        }
    }

    const fn seconds(&self) -> u64 {
        self.whole_in.div_ceil(SECOND)
    }

    /// Returns when it is whole, in whole seconds since 1970.
    const fn whole_at(&self) -> u64 {
        (self.date + self.whole_in).div_ceil(SECOND)
    }

    fn headers(&self, family: u64) -> LimitReports {
        let (limit, left, seconds) = (self.limit, self.left, self.seconds());
        let window = self.window / SECOND;
        let millis = self.whole_in.div_ceil(MILLI);
        let x = |reset: String| {
            vec![
                ("x-ratelimit-limit", limit.to_string()),
                ("x-ratelimit-remaining", left.to_string()),
                ("x-ratelimit-reset", reset),
            ]
        };
        let lines = match family {
            1 => vec![
                ("ratelimit", format!("\"all\";r={left};t={seconds}")),
                ("ratelimit-policy", format!("\"all\";q={limit};w={window}")),
            ],
            2 => x(seconds.to_string()),
            3 => x(self.whole_at().to_string()),
            4 => {
                let mut lines = x(self.whole_at().to_string());
                let after = format!("{}.{:03}", millis / 1_000, millis % 1_000);
                lines.push(("x-ratelimit-reset-after", after));
                lines.push(("x-ratelimit-bucket", "abcd1234".to_owned()));
                lines
            }
            5 => vec![
                ("x-ratelimit-limit-requests", limit.to_string()),
                ("x-ratelimit-remaining-requests", left.to_string()),
                ("x-ratelimit-reset-requests", span(millis)),
            ],
            6 => vec![
                ("anthropic-ratelimit-requests-limit", limit.to_string()),
                ("anthropic-ratelimit-requests-remaining", left.to_string()),
                (
                    "anthropic-ratelimit-requests-reset",
                    rfc3339(self.whole_at()),
                ),
            ],
            7 => vec![
                ("x-ratelimit-used", (limit - left.min(limit)).to_string()),
                ("x-ratelimit-remaining", format!("{left}.0")),
                ("x-ratelimit-reset", seconds.to_string()),
            ],
            8 => vec![
                ("x-ratelimit-limit-req-minute", limit.to_string()),
                ("x-ratelimit-remaining-req-minute", left.to_string()),
            ],
            9 => {
                let used = limit - left.min(limit);
                vec![("x-shopify-shop-api-call-limit", format!("{used}/{limit}"))]
            }
            10 => vec![
                ("ratelimit-limit", format!("{limit}, {limit};w={window}")),
                ("ratelimit-remaining", left.to_string()),
                ("ratelimit-reset", seconds.to_string()),
            ],
            _ => x(http_date(self.whole_at())),
        };
        let mut map = HeaderMap::new();
        let date = ("date", http_date(self.date / SECOND));
        for (name, value) in lines.into_iter().chain([date]) {
            if let Ok(value) = HeaderValue::from_str(&value) {
                map.insert(HeaderName::from_static(name), value);
            }
        }
        HeaderLimits::new().read(&HttpResponseParts::new(StatusCode::OK, &map))
    }
}

/// Returns a span as Go prints it.
fn span(millis: u64) -> String {
    let (minutes, rest) = (millis / 60_000, millis % 60_000);
    match (minutes, rest) {
        (0, 0..1_000) => format!("{rest}ms"),
        (0, _) => format!("{}.{:03}s", rest / 1_000, rest % 1_000),
        _ => format!("{minutes}m{}.{:03}s", rest / 1_000, rest % 1_000),
    }
}

/// Returns year, month and day of the day so many days after 1970 began.
fn civil(mut days: u64) -> (u64, usize, u64) {
    let mut year = 1970;
    loop {
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let february = 28 + u64::from(is_leap);
        let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        for (month, length) in lengths.into_iter().enumerate() {
            if days < length {
                return (year, month, days + 1);
            }
            days -= length;
        }
        year += 1;
    }
}

fn clock(at: u64) -> String {
    let second = at % 86_400;
    format!(
        "{:02}:{:02}:{:02}",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

fn rfc3339(at: u64) -> String {
    let (year, month, day) = civil(at / 86_400);
    format!("{year:04}-{:02}-{day:02}T{}Z", month + 1, clock(at))
}

fn http_date(at: u64) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let (year, month, day) = civil(at / 86_400);
    let weekday = DAYS[usize::try_from(at / 86_400 % 7).unwrap_or(0)];
    format!(
        "{weekday}, {day:02} {} {year:04} {} GMT",
        MONTHS[month],
        clock(at)
    )
}
