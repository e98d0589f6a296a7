//! The service's hint about when to retry, and the headers that have it.

use core::time::Duration;

use super::{
    is_digits, number,
    time::{SECOND, when},
};

/// The service's hint about when to retry.
///
/// A hint changes the delay of a retry. It does not make a failure retryable, nor lift a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryAfter {
    /// A hint that the backoff bounds: the header `x-amz-retry-after`, in milliseconds. In
    /// generation 2.1 the delay is at least the backoff and at most 5 s more. In 2.0 the hint
    /// replaces the backoff, up to the longest backoff. [`parse_amz`](Self::parse_amz) reads it.
    Clamped(Duration),
    /// A hint that the delay never falls below: the header `Retry-After`, in seconds or as a date
    /// (RFC 9110, 10.2.3).
    ///
    /// The delay is the hint plus the backoff with its jitter. A service gives the same hint to all
    /// requests that it refuses at one instant; the jitter spreads their retries after it.
    /// [`RetryToken::with_max_retry_after`](crate::RetryToken::with_max_retry_after) bounds the
    /// hint. [`parse_http`](Self::parse_http) reads it.
    AtLeast(Duration),
}

impl RetryAfter {
    /// Returns the time that the service asked for.
    pub(crate) const fn span(self) -> Duration {
        match self {
            Self::AtLeast(span) | Self::Clamped(span) => span,
        }
    }

    /// Reads the value of the header `x-amz-retry-after`: milliseconds in digits, `u64::MAX` at
    /// most.
    ///
    /// An invalid value is `None`. The AWS SDKs ignore it ("Retry behavior", AWS SDKs and Tools
    /// Reference Guide).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::RetryAfter;
    ///
    /// let hint = RetryAfter::parse_amz("1500");
    /// assert_eq!(hint, Some(RetryAfter::Clamped(Duration::from_millis(1_500))));
    /// assert_eq!(RetryAfter::parse_amz("soon"), None);
    /// ```
    pub fn parse_amz(value: impl AsRef<[u8]>) -> Option<Self> {
        let value = value.as_ref().trim_ascii();
        let millis = number(value).filter(|_| is_digits(value))?;
        Some(Self::Clamped(Duration::from_millis(millis)))
    }

    /// Reads the value of the header `Retry-After` in every form that services send. Anything else is
    /// `None`.
    ///
    /// | value | read as |
    /// |---|---|
    /// | digits below 10^9, with a fraction or without | seconds; RFC 9110 has no fractions |
    /// | digits below 10^12, with a fraction or without | a time: seconds since 1970 |
    /// | digits below 10^14 | a time: milliseconds since 1970 |
    /// | `1500ms`, `6m0s` | a span |
    /// | `2026-11-27T08:30:00Z`, with an offset or `Z` | a time of RFC 3339 |
    /// | a date in the three forms of RFC 9110, section 5.6.7 | a time |
    ///
    /// `now` is the time since 1970-01-01 00:00 UTC. If `now` is the response's `Date` plus its
    /// [age](crate::headers::age), the two clocks need not agree. A time that has passed is a hint
    /// of zero. Fractions are rounded up to a nanosecond.
    ///
    /// Dates are understood with the feature `http-date`; years of two digits are 1970 to 2069.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use paceline::RetryAfter;
    ///
    /// let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    /// let hint = RetryAfter::parse_http("120", now);
    /// assert_eq!(hint, Some(RetryAfter::AtLeast(Duration::from_secs(120))));
    ///
    /// # #[cfg(feature = "http-date")] {
    /// let sent = Duration::from_secs(784_111_747);
    /// let hint = RetryAfter::parse_http("Sun, 06 Nov 1994 08:49:37 GMT", sent);
    /// assert_eq!(hint, Some(RetryAfter::AtLeast(Duration::from_secs(30))));
    /// # }
    /// ```
    pub fn parse_http(value: impl AsRef<[u8]>, now: Duration) -> Option<Self> {
        let when = when(value.as_ref(), SECOND)?;
        Some(Self::AtLeast(when.from(now)))
    }
}
