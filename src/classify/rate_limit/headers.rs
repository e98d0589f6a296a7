//! Quotas in the headers of an answer.

use core::time::Duration;

use http::HeaderMap;

use super::RateLimit;
use crate::{Classifier, Failure, HintError, HttpAnswer};

/// Pairs of headers for what is left and the reset, the most official first.
const PAIRS: [[&str; 2]; 3] = [
    ["ratelimit-remaining", "ratelimit-reset"],
    ["x-ratelimit-remaining", "x-ratelimit-reset"],
    ["x-rate-limit-remaining", "x-rate-limit-reset"],
];

impl RateLimit {
    /// Reads the headers of an answer: `RateLimit`, all of them; else the first pair of `RateLimit-Remaining` and
    /// `RateLimit-Reset`, `X-RateLimit-…` and `X-Rate-Limit-…` that is there.
    ///
    /// `now` is as for [`parse_pair`](Self::parse_pair).
    ///
    /// # Errors
    ///
    /// Returns [`HintError`] if those headers mean nothing. No others are tried then.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "http")] {
    /// use std::time::Duration;
    /// use paceline::RateLimit;
    ///
    /// let answer = http::Response::builder()
    ///     .header("x-ratelimit-remaining", "3")
    ///     .header("x-ratelimit-reset", "60")
    ///     .body(())
    ///     .unwrap();
    /// let limit = RateLimit::from_headers(answer.headers(), Duration::ZERO).unwrap();
    /// assert_eq!(limit.map(|limit| limit.remaining()), Some(3));
    /// # }
    /// ```
    pub fn from_headers(headers: &HeaderMap, now: Duration) -> Result<Option<Self>, HintError> {
        let mut tightest: Option<Self> = None;
        for value in headers.get_all("ratelimit") {
            let limit = Self::parse(value)?;
            tightest = Some(tightest.map_or(limit, |other| limit.tighter(other)));
        }
        if tightest.is_some() {
            return Ok(tightest);
        }
        for [remaining, reset] in PAIRS {
            if let (Some(remaining), Some(reset)) = (headers.get(remaining), headers.get(reset)) {
                return Self::parse_pair(remaining, reset, now).map(Some);
            }
        }
        Ok(None)
    }
}

/// Classifies as throttling an answer of status 403, 429 or 503 by which nothing is left of a quota.
///
/// To be asked before [`HttpResponses`](crate::HttpResponses), which knows a bare 403 for final, and no reset.
/// The hint is `x-amz-retry-after` or `Retry-After` if one is there, else the reset as a floor. Headers that
/// mean nothing are as good as none; [`RateLimit::from_headers`] says what is wrong with them.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "http")] {
/// use std::time::Duration;
/// use paceline::{Chain, Classifier, HttpAnswer, HttpResponses, RateLimits, RetryAfter};
///
/// let answer = http::Response::builder()
///     .status(403)
///     .header("ratelimit", r#""hourly";r=0;t=90"#)
///     .body(())
///     .unwrap();
/// let failure = Chain::new(RateLimits, HttpResponses::new()).classify(&HttpAnswer::of(&answer)).unwrap();
/// assert!(failure.is_throttle());
/// assert_eq!(failure.retry_after(), Some(RetryAfter::Floor(Duration::from_secs(90))));
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RateLimits;

impl Classifier<HttpAnswer<'_>> for RateLimits {
    fn classify(&self, answer: &HttpAnswer<'_>) -> Option<Failure> {
        if !matches!(answer.status().as_u16(), 403 | 429 | 503) {
            return None;
        }
        let limit = RateLimit::from_headers(answer.headers(), answer.now());
        let limit = limit
            .ok()
            .flatten()
            .filter(|limit| limit.remaining() == 0)?;
        let failure = Failure::throttling().with_fault(answer.fault());
        let hint = answer.retry_after().or(limit.hint());
        Some(hint.map_or(failure, |hint| failure.with_retry_after(hint)))
    }
}
