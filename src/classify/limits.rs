//! What services declare about their limits in the headers of a response.
//!
//! Each family is named beside its code, with the public document that it is from. A value that is
//! wrong is ignored and counted.

mod counts;
mod families;
mod field;
mod plain;
mod reader;
mod structured;

use core::time::Duration;

use http::header;

use self::reader::Reader;
use super::HttpResponseParts;
use crate::headers::age;
use crate::law::LimitReports;

/// Reads what a service declares about its limits from the headers of a response.
///
/// A response from a cache (`Age` above zero) says nothing. Every family that is there is read.
/// Where two of them declare one limit, by the same name, the first counts.
///
/// [The guide](crate::guide::declared#formats) has the families and what each of them says.
///
/// A count may have a fraction, which is left off, and commas between thousands. A reset may also
/// be milliseconds since 1970, a date as in the header `Date`, or ISO 8601 with a zone. A reset
/// that is a time needs the header `Date`. What cannot be read is ignored and
/// [counted](LimitReports::ignored), value by value: the rest of its report counts. A report of a
/// limit of zero is ignored whole.
///
/// Some services repeat the limit of which the least is left under one name: `RateLimit-Limit` of
/// Kong, `anthropic-ratelimit-tokens`. Where each limit has headers, or the policies are listed,
/// they are told apart. Otherwise they look like one limit that changes, and cannot be kept well.
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
#[derive(Clone, Copy, Debug)]
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
        let mut reader = Reader::new(headers);
        structured::read(&mut reader);
        families::read(&mut reader);
        plain::read(&mut reader);
        families::shopify(&mut reader);
        families::strava(&mut reader);
        families::selling_partner(&mut reader);
        if let Some(limit) = self.mbx_weight {
            families::binance(&mut reader, limit);
        }
        reader.reports()
    }
}

#[cfg(test)]
mod tests;
