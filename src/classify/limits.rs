//! What services declare about their limits in the headers of a response.
//!
//! The code of each family names the public document that describes it. A wrong value is ignored
//! and counted.

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
/// A response from a cache (`Age` above zero) gives no report. All families are read. If two
/// families declare a limit with the same name, the first counts.
///
/// [The guide](crate::guide::declared#formats) lists the families and their values.
///
/// A count may have commas between thousands, and a fraction, which is dropped. A reset may also be
/// milliseconds since 1970, a date as in the header `Date`, or ISO 8601 with a zone. A reset that
/// is a time needs the header `Date`. A value that cannot be read is ignored and
/// [counted](LimitReports::ignored); the other values of its report count. A report with a limit of
/// zero is ignored.
///
/// Some services repeat their tightest limit under one name, such as `RateLimit-Limit` of Kong and
/// `anthropic-ratelimit-tokens`. The limits can be told apart if each has headers, or if the
/// policies are listed. Otherwise they look like one limit that changes, and a client cannot obey
/// them well.
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

    /// Sets the weight that Binance allows in a minute, the `REQUEST_WEIGHT` of `exchangeInfo`.
    /// Binance's headers do not contain this limit.
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
