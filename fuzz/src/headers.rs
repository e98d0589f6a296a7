//! `headers`: hints and limits of any text, against plain arithmetic.

use core::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use paceline::{
    RetryAfter,
    classify::{HeaderLimits, HttpResponseParts},
    law::Reset,
};

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
/// The first of January 1970 was the first of these.
const WEEKDAYS: [&str; 7] = [
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
];

#[derive(Arbitrary, Debug)]
enum Value {
    Bytes(Vec<u8>),
    Number {
        zeros: u8,
        number: u128,
    },
    /// Around the largest number that 64 bits hold.
    NearLargest(i8),
    Damaged {
        number: u64,
        at: u8,
        with: u8,
    },
    Date(Date),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Form {
    Preferred,
    Rfc850,
    Asctime,
}

/// A date by its fields, which may be out of range.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Date {
    form: Form,
    year: u16,
    month: u8,
    day: u8,
    hour: u8,
    minute: u8,
    second: u8,
    /// Days that the name of the day is off.
    off: u8,
}

#[derive(Arbitrary, Debug)]
struct Input {
    value: Value,
    now: Duration,
    later: Duration,
}

/// Reads the header that `data` encodes as either of the two.
///
/// # Panics
///
/// Panics if an answer is not the model's, or a later `now` asks for a longer wait.
pub fn headers(data: &[u8]) {
    let Ok(input) = Input::arbitrary(&mut Unstructured::new(data)) else {
        return;
    };
    let value = input.value.text();
    let number = number(&value);
    check_amz(&value, number);
    match (&input.value, number) {
        (_, Some(number)) => {
            let want = reset_of(number).map(|reset| match reset {
                Reset::At(time) => time.saturating_sub(input.now),
                Reset::In(span) => span,
                _ => unreachable!("the two kinds"),
            });
            assert_eq!(wait(&value, input.now), want);
        }
        (Value::Date(fields), None) => {
            let want = fields.seconds().map(Duration::from_secs);
            let want = want.map(|at| RetryAfter::AtLeast(at.saturating_sub(input.now)));
            let got = RetryAfter::parse_http(&value, input.now);
            assert_eq!(got, want, "{fields:?}, {}", String::from_utf8_lossy(&value));
        }
        (_, None) => check_any(&value, input.now),
    }
    check_limit(&input.value, &value, number);
    check_families(&value);
    let later = input.now.saturating_add(input.later);
    assert!(wait(&value, later) <= wait(&value, input.now));
}

fn check_amz(value: &[u8], number: Option<u128>) {
    let millis = number.and_then(|millis| u64::try_from(millis).ok());
    let want = millis.map(|millis| RetryAfter::Clamped(Duration::from_millis(millis)));
    assert_eq!(RetryAfter::parse_amz(value), want);
}

/// Of text that is no whole number only this is known: it is a span, a time, or nothing.
fn check_any(value: &[u8], now: Duration) {
    let Some(read) = wait(value, Duration::ZERO) else {
        return;
    };
    let got = wait(value, now);
    let is_time = got == Some(read.saturating_sub(now));
    assert!(is_time || got == Some(read), "{read:?}, {got:?}");
}

/// What is left and when it is more are each read, or counted as wrong.
fn check_limit(from: &Value, value: &[u8], number: Option<u128>) {
    let Ok(header) = HeaderValue::from_bytes(value) else {
        return;
    };
    let read = |names: [&'static str; 2], values: [HeaderValue; 2]| {
        let mut headers: HeaderMap = names.into_iter().zip(values).map(named).collect();
        let date = HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT");
        headers.insert("date", date);
        let parts = HttpResponseParts::new(StatusCode::OK, &headers);
        let reports = HeaderLimits::new().read(&parts);
        let report = reports.iter().next().copied();
        assert!(report.is_some() || reports.ignored() > 0, "{reports:?}");
        (report, reports.ignored())
    };
    let names = ["x-ratelimit-remaining", "x-ratelimit-reset"];
    let three = HeaderValue::from_static("3");
    let (left, _) = read(names, [header.clone(), three.clone()]);
    if let Some(number) = number {
        let left = left.map(|report| u128::from(report.remaining()));
        assert_eq!(left, Some(number).filter(|left| *left <= u64::MAX.into()));
    }
    let (report, ignored) = read(names, [three, header]);
    let reset = report.and_then(|report| report.declared_reset());
    assert_eq!(reset.is_none(), ignored == 1, "{reset:?}");
    match (from, number) {
        (Value::Date(fields), None) => {
            let want = fields.seconds().map(Duration::from_secs);
            assert_eq!(reset, want.map(Reset::At), "{fields:?}");
        }
        (_, Some(number)) => assert_eq!(reset, reset_of(number)),
        _ => {}
    }
}

/// Headers that say a limit alone, or beside a list of limits.
const ALONE: [&str; 6] = [
    "anthropic-ratelimit-unified-5h-utilization",
    "x-amzn-ratelimit-limit",
    "x-codex-primary-used-percent",
    "x-ratelimit-remaining-requests-day",
    "x-ratelimit-usage",
    "x-shopify-shop-api-call-limit",
];

/// Each of these is read, or counted as wrong. What is left is never more than the limit.
fn check_families(value: &[u8]) {
    let Ok(header) = HeaderValue::from_bytes(value) else {
        return;
    };
    for name in ALONE {
        let limit = HeaderValue::from_static("200,2000");
        let both = [("x-ratelimit-limit", limit), (name, header.clone())];
        let headers: HeaderMap = both.into_iter().map(named).collect();
        let parts = HttpResponseParts::new(StatusCode::OK, &headers);
        let reports = HeaderLimits::new().read(&parts);
        assert!(!reports.is_empty() || reports.ignored() > 0, "{name}");
        for report in reports.iter() {
            let limit = report.declared_limit();
            assert!(
                limit.is_none_or(|limit| report.remaining() <= limit),
                "{name}"
            );
        }
    }
}

fn named((name, value): (&'static str, HeaderValue)) -> (HeaderName, HeaderValue) {
    (HeaderName::from_static(name), value)
}

/// By its size a number is a span in seconds, a time in seconds or milliseconds, or wrong.
fn reset_of(number: u128) -> Option<Reset> {
    let number = u64::try_from(number).ok()?;
    match number.checked_ilog10().unwrap_or(0) {
        0..9 => Some(Reset::In(Duration::from_secs(number))),
        9..12 => Some(Reset::At(Duration::from_secs(number))),
        12..14 => Some(Reset::At(Duration::from_millis(number))),
        _ => None,
    }
}

fn wait(value: &[u8], now: Duration) -> Option<Duration> {
    match RetryAfter::parse_http(value, now) {
        Some(RetryAfter::AtLeast(span)) => Some(span),
        _ => None,
    }
}

/// The number that a text of digits makes, as far as 128 bits go.
fn number(value: &[u8]) -> Option<u128> {
    let text = core::str::from_utf8(value).ok()?;
    let text = text.trim_matches([' ', '\t', '\n', '\r', '\x0c']);
    let digits = text.chars().map(|c| c.to_digit(10).map(u128::from));
    let digits: Vec<u128> = digits.collect::<Option<_>>()?;
    let append = |sum: u128, digit: &u128| sum.saturating_mul(10).saturating_add(*digit);
    (!digits.is_empty()).then(|| digits.iter().fold(0, append))
}

impl Value {
    fn text(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Number { zeros, number } => {
                format!("{}{number}", "0".repeat(usize::from(*zeros))).into_bytes()
            }
            Self::NearLargest(off) => {
                let number = i128::from(u64::MAX) + i128::from(*off);
                number.to_string().into_bytes()
            }
            Self::Damaged { number, at, with } => {
                let mut text = number.to_string().into_bytes();
                text.insert(usize::from(*at) % (text.len() + 1), *with);
                text
            }
            Self::Date(date) => date.text().into_bytes(),
        }
    }
}

impl Date {
    /// Brings most fields near their ranges, so that most dates exist.
    fn near(self) -> (u64, usize, u64, [u64; 3]) {
        let year = match self.form {
            Form::Rfc850 => 1970 + u64::from(self.year) % 100,
            Form::Preferred | Form::Asctime => u64::from(self.year) % 10_000,
        };
        let clock = [self.hour % 25, self.minute % 61, self.second % 61].map(u64::from);
        let month = usize::from(self.month) % 12;
        (year, month, u64::from(self.day) % 33, clock)
    }

    /// Days since 1970, counted year by year and month by month; none for a day that never was.
    fn days(self) -> Option<u64> {
        let (year, month, day, _) = self.near();
        if year < 1970 || day == 0 || day > days_in(year, month) {
            return None;
        }
        let years = (1970..year).map(|year| 365 + u64::from(is_leap(year)));
        let months = (0..month).map(|month| days_in(year, month));
        Some(years.chain(months).sum::<u64>() + day - 1)
    }

    fn seconds(self) -> Option<u64> {
        let (_, _, _, [hour, minute, second]) = self.near();
        let in_range = hour < 24 && minute < 60 && second < 60 && self.off % 7 == 0;
        let days = self.days().filter(|_| in_range)?;
        Some(((days * 24 + hour) * 60 + minute) * 60 + second)
    }

    fn text(self) -> String {
        let (year, month, day, [h, m, s]) = self.near();
        let weekday = self.days().unwrap_or(0) + u64::from(self.off) % 7;
        let weekday = WEEKDAYS[usize::try_from(weekday % 7).expect("below 7")];
        let (short, month) = (&weekday[..3], MONTHS[month]);
        match self.form {
            Form::Preferred => {
                format!("{short}, {day:02} {month} {year:04} {h:02}:{m:02}:{s:02} GMT")
            }
            Form::Rfc850 => {
                let year = year % 100;
                format!("{weekday}, {day:02}-{month}-{year:02} {h:02}:{m:02}:{s:02} GMT")
            }
            Form::Asctime => format!("{short} {month} {day:2} {h:02}:{m:02}:{s:02} {year:04}"),
        }
    }
}

fn days_in(year: u64, month: usize) -> u64 {
    let february = 28 + u64::from(is_leap(year));
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month]
}

fn is_leap(year: u64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}
