//! When to come back, in every form that services send: spans, times and dates.

use core::{str, time::Duration};

use super::{date, decimal, is_digits, number};

/// Nanoseconds of a second.
pub(crate) const SECOND: u64 = 1_000_000_000;
/// Seconds from this number on are a time in or after 2001, and not a span of 31 years.
const FIRST_TIME: u64 = 1_000_000_000;
/// Numbers from here on are a time in milliseconds, whatever the unit.
const FIRST_TIME_IN_MILLIS: u64 = 1_000_000_000_000;
/// Numbers from here on are wrong. In milliseconds they begin in the year 5138.
const FIRST_TIME_IN_MICROS: u64 = 100_000_000_000_000;

/// When to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// In this time, counted from the response.
    In(Duration),
    /// At this time since 1970.
    At(Duration),
}

impl When {
    /// Returns the wait from `now`, which counts from 1970. It is zero for a time that has passed.
    pub(crate) const fn from(self, now: Duration) -> Duration {
        match self {
            Self::In(span) => span,
            Self::At(time) => time.saturating_sub(now),
        }
    }
}

/// Reads a value that says when to come back. The value is a number of units or a time since 1970,
/// with or without a fraction. Else it is a span like `6m0s`, a time of RFC 3339, or a date as in
/// `Date`. `unit` is the nanoseconds of a unit.
///
/// All such values are read here, since services mix the forms.
pub(crate) fn when(value: &[u8], unit: u64) -> Option<When> {
    let value = value.trim_ascii();
    if let Some(thousandths) = thousandths(value) {
        return match thousandths / 1_000 {
            FIRST_TIME_IN_MICROS.. => None,
            FIRST_TIME_IN_MILLIS.. => Some(When::At(Duration::from_micros(thousandths))),
            FIRST_TIME.. if unit >= SECOND => Some(When::At(Duration::from_millis(thousandths))),
            _ => decimal(value, unit).map(When::In),
        };
    }
    let time = || rfc3339(value).or_else(|| date(value)).map(When::At);
    span(value).map(When::In).or_else(time)
}

/// Reads a number with or without a fraction, in thousandths, rounded up.
fn thousandths(value: &[u8]) -> Option<u64> {
    u64::try_from(decimal(value, 1_000)?.as_nanos()).ok()
}

/// Reads a span as Go prints it: `6m0s`, `120ms`, `23h18m29.5s`, `1d2h`.
fn span(value: &[u8]) -> Option<Duration> {
    let mut rest = value;
    let mut sum = Duration::ZERO;
    let mut largest = u64::MAX;
    while !rest.is_empty() {
        let end = rest
            .iter()
            .position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
        let (digits, unit) = rest.split_at(end);
        let end = unit.iter().position(|byte| !byte.is_ascii_alphabetic());
        let (unit, next) = unit.split_at(end.unwrap_or(unit.len()));
        let millis: u64 = match unit {
            b"d" => 86_400_000,
            b"h" => 3_600_000,
            b"m" => 60_000,
            b"s" => 1_000,
            b"ms" => 1,
            _ => return None,
        };
        // Units stand from large to small, each once.
        if millis >= largest {
            return None;
        }
        largest = millis;
        sum = sum.checked_add(decimal(digits, millis.checked_mul(1_000_000)?)?)?;
        rest = next;
    }
    (largest < u64::MAX).then_some(sum)
}

/// Reads `2026-11-22T08:30:00Z`, with a fraction of seconds and an offset. Two more forms of ISO
/// 8601 are read: `2026-11-22T08:30Z`, and an offset of `+0100`.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "fields have at most four digits"
)]
fn rfc3339(value: &[u8]) -> Option<Duration> {
    let text = str::from_utf8(value).ok()?;
    let part = |from: usize, to: usize| {
        let digits = text.get(from..to)?.as_bytes();
        is_digits(digits).then(|| number(digits)).flatten()
    };
    let sign = |at: usize, any: &[u8]| text.as_bytes().get(at).filter(|byte| any.contains(byte));
    sign(4, b"-")
        .and(sign(7, b"-"))
        .and(sign(10, b"Tt "))
        .and(sign(13, b":"))?;
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute) = (part(11, 13)?, part(14, 16)?);
    let (second, end) = match sign(16, b":") {
        Some(_) => (part(17, 19)?, 19),
        None => (0, 16),
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let in_range = (1_970..=9_999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    let rest = text.get(end..).filter(|_| in_range)?;
    let digits = rest.strip_prefix('.').map_or(0, |rest| {
        1 + rest.bytes().take_while(u8::is_ascii_digit).count()
    });
    let (fraction, zone) = (rest.get(..digits)?, rest.get(digits..)?);
    if fraction.len() == 1 || (end == 16 && digits > 0) {
        return None;
    }
    let shift = match zone.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] | [sign @ (b'+' | b'-'), _, _, _, _] => {
            let (hours, minutes) = (zone.get(1..3)?, zone.get(zone.len() - 2..)?);
            let of = |digits: &str| is_digits(digits.as_bytes()).then(|| number(digits.as_bytes()));
            let (hours, minutes) = (of(hours)??, of(minutes)??);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = i64::try_from(hours * 3_600 + minutes * 60).ok()?;
            if *sign == b'+' { -seconds } else { seconds }
        }
        _ => return None,
    };
    // Counts the days in years that begin in March, where a leap day comes last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let seconds = (days - 719_468) * 86_400 + hour * 3_600 + minute * 60 + second;
    let seconds = seconds.checked_add_signed(shift)?;
    let millis = thousandths(&[b"0", fraction.as_bytes()].concat())?;
    Some(Duration::from_secs(seconds) + Duration::from_millis(millis))
}
