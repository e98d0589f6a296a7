//! What services declare about their limits in the headers of a response.
//!
//! Each family is named beside its code, with the public document that it is from. A value that is
//! wrong is ignored and counted.

use core::{str, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::HttpResponseParts;
use super::rate_limit::field::{self, Member, Number};
use super::rate_limit::headers::combined;
use crate::headers::{age, is_digits, number};
use crate::law::{Dimension, LimitName, LimitReport, LimitReports, Reset};

/// From this number on a reset is a time and not a span: the year 2001, or 31 years.
const FIRST_TIME: u64 = 1_000_000_000;
/// From this number on it is a time in milliseconds.
const FIRST_TIME_IN_MILLIS: u64 = 1_000_000_000_000;
/// Shopify's bucket is whole again after this time, whatever the plan.
const SHOPIFY_WINDOW: Duration = Duration::from_secs(20);

/// Reads what a service declares about its limits from the headers of a response.
///
/// A response from a cache (`Age` above zero) says nothing. Of the families below every one that is
/// there is read:
///
/// | headers | reset | source |
/// |---|---|---|
/// | `RateLimit`, `RateLimit-Policy` | seconds | IETF drafts 07 to 11, and the names `a` and `w` |
/// | `RateLimit-Limit`, `-Remaining`, `-Reset` | seconds | IETF drafts 03 to 06, Docker Hub |
/// | `X-RateLimit-Limit`, `-Remaining`, `-Reset`, `-Reset-After` | seconds or time since 1970 | GitHub, Discord, many |
/// | `X-Rate-Limit-Limit`, `-Remaining`, `-Reset` | time since 1970 | X |
/// | `X-RateLimit-Limit-Requests`, `-Tokens` and so on | `6m0s`, `120ms` | `OpenAI`, Groq |
/// | `X-RateLimit-Limit-Req-Minute`, `-Tokens-Minute` and so on | none: a minute | Mistral |
/// | `anthropic-ratelimit-requests-limit`, `-tokens-` and so on | RFC 3339 | Anthropic |
/// | `X-Shopify-Shop-Api-Call-Limit` | none: it leaks | Shopify |
/// | `X-MBX-Used-Weight-1M` | none: whole minutes | Binance, with [`mbx_weight`](Self::mbx_weight) |
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "http")] {
/// use paceline::classify::{HeaderLimits, HttpResponseParts};
///
/// let response = http::Response::builder()
///     .header("date", "Sun, 06 Nov 1994 08:49:37 GMT")
///     .header("x-ratelimit-limit", "5000")
///     .header("x-ratelimit-remaining", "4987")
///     .header("x-ratelimit-reset", "1700000000")
///     .body(())
///     .unwrap();
/// let reports = HeaderLimits::new().read(&HttpResponseParts::of(&response));
/// assert_eq!(reports.iter().next().map(|report| report.remaining()), Some(4_987));
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[must_use = "it reads nothing until it is asked"]
pub struct HeaderLimits {
    mbx_weight: Option<u64>,
}

impl HeaderLimits {
    /// Creates the reader.
    pub const fn new() -> Self {
        Self { mbx_weight: None }
    }

    /// Sets the weight that may be used in a minute, which Binance's headers do not say: the
    /// `REQUEST_WEIGHT` of `exchangeInfo`.
    pub const fn mbx_weight(mut self, a_minute: u64) -> Self {
        self.mbx_weight = Some(a_minute);
        self
    }

    /// Returns what the headers of a response declare.
    pub fn read(&self, parts: &HttpResponseParts<'_>) -> LimitReports {
        let headers = parts.headers();
        let cached = headers.get(header::AGE).and_then(age);
        if cached > Some(Duration::ZERO) {
            return LimitReports::new();
        }
        let mut reports = LimitReports::new();
        structured(headers, &mut reports);
        families(headers, &mut reports);
        shopify(headers, &mut reports);
        self.binance(headers, &mut reports);
        let date = headers.get(header::DATE).map(HeaderValue::as_bytes);
        match date.and_then(|value| crate::headers::date(value.trim_ascii())) {
            Some(date) => reports.with_date(date),
            None => reports,
        }
    }

    /// "Request weight", Binance Spot API: `X-MBX-USED-WEIGHT-(intervalNum)(intervalLetter)`.
    fn binance(&self, headers: &HeaderMap, reports: &mut LimitReports) {
        let Some(limit) = self.mbx_weight else { return };
        let Some(used) = single(headers, "x-mbx-used-weight-1m", reports) else {
            return;
        };
        match count(used) {
            Some(used) => reports.push(
                LimitReport::new(limit.saturating_sub(used))
                    .limit(limit)
                    .window(Duration::from_secs(60))
                    .dimension(Dimension::Tokens),
            ),
            None => reports.ignore(),
        }
    }
}

fn count(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    is_digits(value).then(|| number(value)).flatten()
}

/// Returns the value of a header. Two that differ, of a service and a gateway before it, are wrong:
/// which one holds is not known.
fn single<'a>(headers: &'a HeaderMap, name: &str, reports: &mut LimitReports) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.any(|value| value != first) {
        reports.ignore();
        return None;
    }
    Some(first.as_bytes())
}

/// Returns the number in a parameter, and counts it if it is wrong.
fn known(number: Number, reports: &mut LimitReports) -> Option<u64> {
    number.get().unwrap_or_else(|_| {
        reports.ignore();
        None
    })
}

/// "`RateLimit` header fields for HTTP", IETF drafts 07 to 11.
fn structured(headers: &HeaderMap, reports: &mut LimitReports) {
    let Some(value) = combined(headers, "ratelimit") else {
        return;
    };
    let policies = combined(headers, "ratelimit-policy");
    let policies = match policies.as_deref().map(field::list) {
        None => Vec::new(),
        Some(Ok(policies)) => policies,
        Some(Err(_)) => {
            reports.ignore();
            Vec::new()
        }
    };
    if let Ok(members) = field::list(&value) {
        for member in &members {
            let policy = policies.iter().find(|policy| policy.name == member.name);
            match member.left() {
                Ok(Some((remaining, reset))) => {
                    let report = of_member(remaining, reset, member, policy, reports);
                    reports.push(report);
                }
                Ok(None) => {}
                Err(_) => reports.ignore(),
            }
        }
        return;
    }
    let Ok(found) = field::dictionary(&value) else {
        return reports.ignore();
    };
    let numbers = (found.remaining.get(), found.limit.get(), found.reset.get());
    let (Ok(Some(remaining)), Ok(limit), Ok(reset)) = numbers else {
        return reports.ignore();
    };
    // Draft 07 names the policy by its quota: `100;w=60`.
    let same = |policy: &&Member| limit.is_some() && policy.value.get() == Ok(limit);
    let window = policies.iter().find(same);
    let window = window.and_then(|policy| known(policy.window, reports));
    let report = plain(remaining, limit, reset);
    reports.push(window.map_or(report, |window| report.window(Duration::from_secs(window))));
}

fn plain(remaining: u64, limit: Option<u64>, reset: Option<u64>) -> LimitReport {
    let report = LimitReport::new(remaining);
    let report = limit.map_or(report, |limit| report.limit(limit));
    reset.map_or(report, |seconds| {
        report.reset(Reset::In(Duration::from_secs(seconds)))
    })
}

fn of_member(
    remaining: u64,
    reset: Option<u64>,
    member: &Member,
    policy: Option<&Member>,
    reports: &mut LimitReports,
) -> LimitReport {
    let quota = policy.and_then(|policy| known(policy.quota, reports));
    let window = policy.and_then(|policy| known(policy.window, reports));
    let unit = policy.and_then(|policy| policy.unit.as_deref());
    let mut report = plain(remaining, quota, reset);
    if let Some(name) = &member.name {
        report = report.policy(LimitName::new(name));
    }
    if let Some(window) = window {
        report = report.window(Duration::from_secs(window));
    }
    report.dimension(match unit {
        None | Some("requests") => Dimension::Requests,
        Some(unit) => Dimension::Named(LimitName::new(unit)),
    })
}

/// A family of headers: for the limit, what remains, and the reset.
struct Family {
    limit: &'static str,
    remaining: &'static str,
    reset: &'static str,
    dimension: Named,
    window: u64,
}

#[derive(Clone, Copy)]
enum Named {
    Requests,
    Tokens,
    Other(&'static str),
}

const fn family(
    limit: &'static str,
    remaining: &'static str,
    reset: &'static str,
    dimension: Named,
) -> Family {
    Family {
        limit,
        remaining,
        reset,
        dimension,
        window: 0,
    }
}

#[rustfmt::skip]
const FAMILIES: [Family; 11] = [
    // "RateLimit Fields for HTTP", IETF drafts 03 to 06.
    family("ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", Named::Requests),
    // "Rate limits for the REST API", GitHub Docs; "Rate Limits", Discord Developer Docs.
    family("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", Named::Requests),
    // "Rate limits", X Developer Platform.
    family("x-rate-limit-limit", "x-rate-limit-remaining", "x-rate-limit-reset", Named::Requests),
    // "Rate limits", OpenAI API; "Rate Limits", GroqDocs.
    family("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests", Named::Requests),
    family("x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens", Named::Tokens),
    // "Rate limits", Claude Docs.
    family("anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset", Named::Requests),
    family("anthropic-ratelimit-tokens-limit", "anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset", Named::Tokens),
    family("anthropic-ratelimit-input-tokens-limit", "anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset", Named::Other("input-tokens")),
    family("anthropic-ratelimit-output-tokens-limit", "anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset", Named::Other("output-tokens")),
    // "Rate limits and usage tiers", Mistral AI: the name says the window.
    Family { window: 60, ..family("x-ratelimit-limit-req-minute", "x-ratelimit-remaining-req-minute", "x-ratelimit-reset-req-minute", Named::Requests) },
    Family { window: 60, ..family("x-ratelimit-limit-tokens-minute", "x-ratelimit-remaining-tokens-minute", "x-ratelimit-reset-tokens-minute", Named::Tokens) },
];

fn families(headers: &HeaderMap, reports: &mut LimitReports) {
    for family in &FAMILIES {
        let Some(remaining) = single(headers, family.remaining, reports) else {
            continue;
        };
        let Some((remaining, _)) = limit_and_window(remaining) else {
            reports.ignore();
            continue;
        };
        let mut report = LimitReport::new(remaining).dimension(match family.dimension {
            Named::Requests => Dimension::Requests,
            Named::Tokens => Dimension::Tokens,
            Named::Other(name) => Dimension::Named(LimitName::new(name)),
        });
        match single(headers, family.limit, reports).map(limit_and_window) {
            Some(Some((limit, window))) => {
                report = report.limit(limit);
                let window = if window == 0 { family.window } else { window };
                if window > 0 {
                    report = report.window(Duration::from_secs(window));
                }
            }
            Some(None) => reports.ignore(),
            None => {}
        }
        // Discord's span is exact to milliseconds, its time is not.
        let after = (family.reset == "x-ratelimit-reset")
            .then(|| single(headers, "x-ratelimit-reset-after", reports))
            .flatten();
        let resets = [after, single(headers, family.reset, reports)];
        for value in resets.into_iter().flatten() {
            if let Some(reset) = reset(value) {
                report = report.reset(reset);
                break;
            }
            reports.ignore();
        }
        let names = ["x-ratelimit-bucket", "x-ratelimit-resource"];
        let names = names.map(HeaderName::from_static);
        if family.remaining == "x-ratelimit-remaining" {
            if let Some(name) = names.iter().find_map(|name| headers.get(name)) {
                report = report.policy(LimitName::new(name.as_bytes()));
            }
        }
        reports.push(report);
    }
}

/// Reads `100`, `100, 100;w=60` of drafts 03 to 06, and `100;w=21600` ("Docker Hub pull usage and
/// limits", Docker Docs).
fn limit_and_window(value: &[u8]) -> Option<(u64, u64)> {
    let mut parts = value.split(|byte| *byte == b',').map(|part| {
        let mut part = part.split(|byte| *byte == b';');
        let number = part.next().and_then(count);
        let window = part.find_map(|parameter| parameter.trim_ascii().strip_prefix(b"w="));
        (number, window.and_then(count))
    });
    let (limit, window) = parts.next()?;
    let same = |(number, window)| if number == limit { window } else { None };
    let window = window.or_else(|| parts.find_map(same));
    Some((limit?, window.unwrap_or(0)))
}

/// "REST Admin API rate limits", Shopify: `32/40`, a bucket that leaks a twentieth each second.
fn shopify(headers: &HeaderMap, reports: &mut LimitReports) {
    let Some(value) = single(headers, "x-shopify-shop-api-call-limit", reports) else {
        return;
    };
    let mut parts = value.split(|byte| *byte == b'/');
    let numbers = (parts.next().and_then(count), parts.next().and_then(count));
    match (numbers, parts.next()) {
        ((Some(used), Some(limit)), None) if limit > 0 => reports.push(
            LimitReport::new(limit.saturating_sub(used))
                .limit(limit)
                .window(SHOPIFY_WINDOW)
                .refills(true),
        ),
        _ => reports.ignore(),
    }
}

/// Reads when a limit is whole again: seconds or a time since 1970, with or without a fraction, a
/// span like `6m0s`, or a time of RFC 3339.
fn reset(value: &[u8]) -> Option<Reset> {
    let value = value.trim_ascii();
    if let Some(seconds) = decimal(value) {
        let nanos = |unit: u128| u64::try_from(seconds.checked_mul(unit)? / 1_000).ok();
        return Some(match u64::try_from(seconds / 1_000).ok()? {
            0..FIRST_TIME => Reset::In(Duration::from_nanos(nanos(1_000_000_000)?)),
            FIRST_TIME..FIRST_TIME_IN_MILLIS => {
                Reset::At(Duration::from_nanos(nanos(1_000_000_000)?))
            }
            FIRST_TIME_IN_MILLIS.. => Reset::At(Duration::from_nanos(nanos(1_000_000)?)),
        });
    }
    if let Some(span) = span(value) {
        return Some(Reset::In(span));
    }
    rfc3339(value).map(Reset::At)
}

/// Reads a number with up to eighteen digits after its point, in thousandths, rounded up.
fn decimal(value: &[u8]) -> Option<u128> {
    let mut parts = value.splitn(2, |byte| *byte == b'.');
    let whole = parts
        .next()
        .filter(|whole| is_digits(whole))
        .and_then(number)?;
    let mut thousandths = 0_u128;
    if let Some(fraction) = parts.next() {
        if !is_digits(fraction) || fraction.len() > 18 {
            return None;
        }
        let mut digits = fraction
            .iter()
            .map(|digit| u128::from(digit.wrapping_sub(b'0')));
        for _ in 0..3 {
            thousandths = thousandths
                .saturating_mul(10)
                .saturating_add(digits.next().unwrap_or(0));
        }
        thousandths = thousandths.saturating_add(u128::from(digits.any(|digit| digit > 0)));
    }
    u128::from(whole)
        .checked_mul(1_000)?
        .checked_add(thousandths)
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
        // From large to small, each once.
        if millis >= largest {
            return None;
        }
        largest = millis;
        let micros = decimal(digits)?.checked_mul(u128::from(millis))?;
        sum = sum.checked_add(Duration::from_micros(u64::try_from(micros).ok()?))?;
        rest = next;
    }
    (largest < u64::MAX).then_some(sum)
}

/// Reads `2026-11-22T08:30:00Z`, with a fraction of seconds and an offset.
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
        .and(sign(13, b":"))
        .and(sign(16, b":"))?;
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
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
    let rest = text.get(19..).filter(|_| in_range)?;
    let digits = rest.strip_prefix('.').map_or(0, |rest| {
        1 + rest.bytes().take_while(u8::is_ascii_digit).count()
    });
    let (fraction, zone) = (rest.get(..digits)?, rest.get(digits..)?);
    if fraction.len() == 1 {
        return None;
    }
    let shift = match zone.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (zone.get(1..3)?, zone.get(4..6)?);
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
    // Days of years that begin in March.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let seconds = (days - 719_468) * 86_400 + hour * 3_600 + minute * 60 + second;
    let seconds = seconds.checked_add_signed(shift)?;
    let millis = decimal(&[b"0", fraction.as_bytes()].concat())?;
    Some(Duration::from_secs(seconds) + Duration::from_millis(u64::try_from(millis).ok()?))
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    fn read(headers: &[(&str, &str)]) -> LimitReports {
        let mut response = Response::new(());
        for (name, value) in headers {
            let name = HeaderName::try_from(*name).unwrap();
            let value = HeaderValue::try_from(*value).unwrap();
            response.headers_mut().append(name, value);
        }
        let limits = HeaderLimits::new().mbx_weight(6_000);
        limits.read(&HttpResponseParts::of(&response))
    }

    fn texts(headers: &[(&str, &str)]) -> Vec<String> {
        let reports = read(headers);
        assert_eq!(reports.ignored(), 0, "{headers:?}");
        reports.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_ietf_fields_are_read_with_their_policies() {
        let policy = (
            "ratelimit-policy",
            r#""burst";q=100;w=60,"daily";q=1000;w=86400"#,
        );
        assert_eq!(
            texts(&[
                ("ratelimit", r#""burst";r=50;t=30, "daily";r=7;t=9"#),
                policy
            ]),
            [
                "50 of 100 requests left, reset in 30s, window of 60s",
                "7 of 1000 requests left, reset in 9s, window of 86400s",
            ]
        );
        assert_eq!(
            texts(&[("ratelimit", r#""burst";a=50;w=30"#), policy]),
            ["50 of 100 requests left, reset in 30s, window of 60s"]
        );
        assert_eq!(
            texts(&[
                ("ratelimit", "limit=100, remaining=50, reset=5"),
                ("ratelimit-policy", "100;w=10"),
            ]),
            ["50 of 100 requests left, reset in 5s, window of 10s"]
        );
        assert_eq!(
            texts(&[
                ("ratelimit", "limit=100, remaining=50, reset=5"),
                ("ratelimit-policy", "10;w=1, 100;w=10"),
            ]),
            ["50 of 100 requests left, reset in 5s, window of 10s"]
        );
        assert_eq!(
            texts(&[("ratelimit", "limit=100, remaining=50, reset=5")]),
            ["50 of 100 requests left, reset in 5s"]
        );
        assert_eq!(
            texts(&[
                ("ratelimit-limit", "100, 100;w=60"),
                ("ratelimit-remaining", "99"),
                ("ratelimit-reset", "50"),
            ]),
            ["99 of 100 requests left, reset in 50s, window of 60s"]
        );
        assert_eq!(
            texts(&[
                ("ratelimit-limit", "100;w=21600"),
                ("ratelimit-remaining", "76;w=21600"),
            ]),
            ["76 of 100 requests left, window of 21600s"]
        );
    }

    #[test]
    fn each_family_is_read_as_its_service_documents_it() {
        assert_eq!(
            texts(&[
                ("x-ratelimit-limit", "5000"),
                ("x-ratelimit-remaining", "4987"),
                ("x-ratelimit-reset", "1700000000"),
                ("x-ratelimit-resource", "core"),
            ]),
            ["4987 of 5000 requests left, reset at 1700000000 s of 1970"]
        );
        assert_eq!(
            texts(&[
                ("x-ratelimit-limit", "5"),
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-reset", "1470173023.123"),
                ("x-ratelimit-reset-after", "1.5"),
            ]),
            ["0 of 5 requests left, reset in 1.5s"]
        );
        assert_eq!(
            texts(&[
                ("x-ratelimit-limit-requests", "500"),
                ("x-ratelimit-remaining-requests", "499"),
                ("x-ratelimit-reset-requests", "120ms"),
                ("x-ratelimit-limit-tokens", "1500000"),
                ("x-ratelimit-remaining-tokens", "1495621"),
                ("x-ratelimit-reset-tokens", "4m12.172s"),
            ]),
            [
                "499 of 500 requests left, reset in 120ms",
                "1495621 of 1500000 tokens left, reset in 252.172s",
            ]
        );
        assert_eq!(
            texts(&[
                ("anthropic-ratelimit-requests-limit", "50"),
                ("anthropic-ratelimit-requests-remaining", "49"),
                ("anthropic-ratelimit-requests-reset", "2023-11-14T22:13:20Z"),
            ]),
            ["49 of 50 requests left, reset at 1700000000 s of 1970"]
        );
        assert_eq!(
            texts(&[
                ("x-ratelimit-limit-req-minute", "60"),
                ("x-ratelimit-remaining-req-minute", "59"),
            ]),
            ["59 of 60 requests left, window of 60s"]
        );
        assert_eq!(
            texts(&[("x-shopify-shop-api-call-limit", "32/40")]),
            ["8 of 40 requests left, window of 20s"]
        );
        assert_eq!(
            texts(&[("x-mbx-used-weight-1m", "17")]),
            ["5983 of 6000 tokens left, window of 60s"]
        );
    }

    #[test]
    fn resets_are_read_in_every_form() {
        let second = Duration::from_secs(1);
        for (text, want) in [
            ("0", Reset::In(Duration::ZERO)),
            ("6m0s", Reset::In(second * 360)),
            ("23h18m29s", Reset::In(second * 83_909)),
            ("1d2h", Reset::In(second * 93_600)),
            ("1.0001", Reset::In(Duration::from_millis(1_001))),
            ("1.0000", Reset::In(second)),
            (
                "1.000000000000000001",
                Reset::In(Duration::from_millis(1_001)),
            ),
            (
                "1700000000.25",
                Reset::At(Duration::from_millis(1_700_000_000_250)),
            ),
            (
                "1700000000250",
                Reset::At(Duration::from_millis(1_700_000_000_250)),
            ),
            (
                "2023-11-14T23:13:20.5+01:00",
                Reset::At(Duration::from_millis(1_700_000_000_500)),
            ),
            (
                "2023-11-15T22:12:20+23:59",
                Reset::At(second * 1_700_000_000),
            ),
            ("2024-02-29T00:00:00Z", Reset::At(second * 1_709_164_800)),
            ("2000-02-29T00:00:00Z", Reset::At(second * 951_782_400)),
        ] {
            assert_eq!(reset(text.as_bytes()), Some(want), "{text}");
        }
        for wrong in [
            "",
            "-1",
            "1e3",
            "6m6m",
            "1s2m",
            "soon",
            "1,700,000,000",
            "99999999999999999999",
            "6m0",
            "0x10",
            "+5",
            "2023-13-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2023-04-31T00:00:00Z",
            "2023-11-14T24:00:00Z",
            "2023-11-14T23:60:20Z",
            "2023-11-14T23:13:20+24:00",
            "2023-11-14T23:13:20+01:60",
            "2023-11-14T23:13:20",
            "1970-01-01T00:00:00+01:00",
            ".5",
            "1.",
            "1.0000000000000000001",
        ] {
            assert_eq!(reset(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn wrong_values_are_ignored_and_counted() {
        let wrong = read(&[
            ("x-ratelimit-limit", "many"),
            ("x-ratelimit-remaining", "3"),
            ("x-ratelimit-reset", "soon"),
            ("x-shopify-shop-api-call-limit", "40"),
            ("ratelimit", "=="),
        ]);
        assert_eq!((wrong.iter().count(), wrong.ignored()), (1, 4));
        let none = read(&[("x-shopify-shop-api-call-limit", "0/0")]);
        assert_eq!((none.iter().count(), none.ignored()), (0, 1));
        for remaining in ["-3", "2.5", "", "99999999999999999999", "3, 4;", "\u{661}"] {
            let wrong = read(&[("x-ratelimit-remaining", remaining)]);
            let expected = usize::from(remaining.starts_with("3,"));
            assert_eq!(wrong.iter().count(), expected, "{remaining}");
            assert_eq!(wrong.ignored(), u32::from(expected == 0), "{remaining}");
        }
    }

    #[test]
    fn wrong_parameters_of_a_policy_are_counted() {
        let policy = ("ratelimit-policy", r#""burst";q=-1;w=soon"#);
        let wrong = read(&[("ratelimit", r#""burst";r=50;t=30"#), policy]);
        let left: Vec<_> = wrong.iter().map(ToString::to_string).collect();
        assert_eq!(left, ["50 requests left, reset in 30s"]);
        assert_eq!(wrong.ignored(), 2);
        let wrong = read(&[
            ("ratelimit", "limit=100, remaining=50, reset=5"),
            ("ratelimit-policy", "100;w=soon"),
        ]);
        let left: Vec<_> = wrong.iter().map(ToString::to_string).collect();
        assert_eq!(left, ["50 of 100 requests left, reset in 5s"]);
        assert_eq!(wrong.ignored(), 1);
    }

    #[test]
    fn a_header_that_contradicts_itself_is_ignored() {
        let twice = read(&[
            ("x-ratelimit-remaining", "3"),
            ("x-ratelimit-remaining", "4987"),
        ]);
        assert_eq!((twice.iter().count(), twice.ignored()), (0, 1));
        assert_eq!(
            texts(&[
                ("x-ratelimit-remaining", "3"),
                ("x-ratelimit-remaining", "3"),
            ]),
            ["3 requests left"]
        );
    }

    #[test]
    fn a_wrong_span_leaves_the_time_beside_it() {
        let reports = read(&[
            ("x-ratelimit-remaining", "3"),
            ("x-ratelimit-reset", "1700000000"),
            ("x-ratelimit-reset-after", "soon"),
        ]);
        let left: Vec<_> = reports.iter().map(ToString::to_string).collect();
        assert_eq!(left, ["3 requests left, reset at 1700000000 s of 1970"]);
        assert_eq!(reports.ignored(), 1);
    }

    #[test]
    fn a_response_from_a_cache_declares_nothing() {
        let cached = read(&[("x-ratelimit-remaining", "3"), ("age", "7")]);
        assert!(cached.is_empty());
        let fresh = texts(&[("x-ratelimit-remaining", "3"), ("age", "0")]);
        assert_eq!(fresh, ["3 requests left"]);
    }

    #[test]
    fn a_report_bears_the_name_of_its_policy() {
        let named = |headers: &[(&str, &str)]| {
            let reports = read(headers);
            let report = reports.iter().next().copied();
            format!("{:?}", report.expect("it is one"))
        };
        let bucket = ("x-ratelimit-bucket", "abcd1234");
        let plain = named(&[("x-ratelimit-remaining", "3"), bucket]);
        assert!(plain.contains(r#"policy: "abcd1234""#), "{plain}");
        let tokens = named(&[("x-ratelimit-remaining-tokens", "3"), bucket]);
        assert!(!tokens.contains("abcd1234"), "{tokens}");
        let unit = |unit: &str| {
            let policy = format!(r#""p";q=9;qu={unit}"#);
            texts(&[("ratelimit", r#""p";r=5"#), ("ratelimit-policy", &policy)])
        };
        assert_eq!(unit(r#""content-bytes""#), unit("content-bytes"));
        assert_ne!(unit(r#""content-bytes""#), unit(r#""requests""#));
    }

    #[test]
    fn the_date_goes_with_the_reports() {
        let dated = read(&[
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("x-ratelimit-remaining", "3"),
        ]);
        assert_eq!(dated.date(), Some(Duration::from_secs(784_111_777)));
    }
}
