//! Quotas in the headers of a response.

use alloc::borrow::Cow;
use core::time::Duration;

use http::{HeaderMap, HeaderValue, header};

use super::RateLimit;
use crate::{
    Failure,
    classify::{Classifier, HttpResponseParts},
    headers::{HintError, age},
};

/// Pairs of headers for what is left and the reset, the most official first.
const PAIRS: [[&str; 2]; 3] = [
    ["ratelimit-remaining", "ratelimit-reset"],
    ["x-ratelimit-remaining", "x-ratelimit-reset"],
    ["x-rate-limit-remaining", "x-rate-limit-reset"],
];

impl RateLimit {
    /// Reads the headers of a response: `RateLimit`, all lines of it as one value; else the first
    /// pair of `RateLimit-Remaining` and `RateLimit-Reset`, `X-RateLimit-…` and
    /// `X-Rate-Limit-…` that is there.
    ///
    /// A response from a cache says nothing of what is left now: with an `Age` of more than zero
    /// the result is `None` ("`RateLimit` header fields for HTTP", IETF draft 08 and later, on
    /// intermediaries).
    ///
    /// `now` is as for [`parse_pair`](Self::parse_pair).
    ///
    /// # Errors
    ///
    /// Returns [`HintError`] if those headers are invalid. No others are tried then.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "http")] {
    /// use std::time::Duration;
    /// use paceline::classify::RateLimit;
    ///
    /// let response = http::Response::builder()
    ///     .header("x-ratelimit-remaining", "3")
    ///     .header("x-ratelimit-reset", "60")
    ///     .body(())
    ///     .unwrap();
    /// let limit = RateLimit::from_headers(response.headers(), Duration::ZERO).unwrap();
    /// assert_eq!(limit.map(|limit| limit.remaining()), Some(3));
    /// # }
    /// ```
    pub fn from_headers(headers: &HeaderMap, now: Duration) -> Result<Option<Self>, HintError> {
        let cached = headers.get(header::AGE).and_then(age);
        if cached > Some(Duration::ZERO) {
            return Ok(None);
        }
        if let Some(field) = combined(headers, "ratelimit") {
            return Self::parse(field).map(Some);
        }
        for [remaining, reset] in PAIRS {
            if let (Some(remaining), Some(reset)) = (headers.get(remaining), headers.get(reset)) {
                return Self::parse_pair(remaining, reset, now).map(Some);
            }
        }
        Ok(None)
    }
}

/// Returns the lines of a header as one value (RFC 9110, section 5.3; RFC 9651, section 4.2), or
/// `None` if there are none.
pub(in crate::classify) fn combined<'a>(
    headers: &'a HeaderMap,
    name: &str,
) -> Option<Cow<'a, [u8]>> {
    let mut lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let mut value = Cow::Borrowed(lines.next()?);
    for line in lines {
        let value = value.to_mut();
        value.extend_from_slice(b", ");
        value.extend_from_slice(line);
    }
    Some(value)
}

/// Classifies as throttling a response of status 403, 429 or 503 by which nothing is left of a
/// quota.
///
/// To be asked before [`HttpClassifier`](crate::classify::HttpClassifier), for which a bare 403 is
/// final, and which does not read the reset. The hint is `x-amz-retry-after` or `Retry-After` if
/// one is there, else the reset as a floor. Invalid headers are ignored;
/// [`RateLimit::from_headers`] says what is wrong with them.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "http")] {
/// use std::time::Duration;
/// use paceline::{RetryAfter, classify::{Chain, Classifier, HttpClassifier, HttpResponseParts, RateLimitClassifier}};
///
/// let response = http::Response::builder()
///     .status(403)
///     .header("ratelimit", r#""hourly";r=0;t=90"#)
///     .body(())
///     .unwrap();
/// let chain = Chain::new(RateLimitClassifier, HttpClassifier::new());
/// let failure = chain.classify(&HttpResponseParts::of(&response)).unwrap();
/// assert!(failure.is_throttle());
/// assert_eq!(failure.retry_after(), Some(RetryAfter::AtLeast(Duration::from_secs(90))));
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RateLimitClassifier;

impl Classifier<HttpResponseParts<'_>> for RateLimitClassifier {
    fn classify(&self, parts: &HttpResponseParts<'_>) -> Option<Failure> {
        if !matches!(parts.status().as_u16(), 403 | 429 | 503) {
            return None;
        }
        let limit = RateLimit::from_headers(parts.headers(), parts.now());
        let limit = limit
            .ok()
            .flatten()
            .filter(|limit| limit.remaining() == 0)?;
        let failure = Failure::throttling().with_fault(parts.fault());
        let hint = parts.retry_after().or(limit.hint());
        Some(hint.map_or(failure, |hint| failure.with_retry_after(hint)))
    }
}
