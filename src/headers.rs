//! Headers about time and attempts: when to come back, how old a response is, which attempt this
//! is.

mod status_details;
pub(crate) mod time;

use core::time::Duration;

/// The service's hint about when to retry.
///
/// A hint changes the delay of a retry. It does not make a failure retryable, nor lift a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RetryAfter {
    /// A hint that the backoff bounds: the header `x-amz-retry-after`, in milliseconds. In
    /// generation 2.1 the delay is at least the backoff and at most 5 s more. In 2.0 the hint
    /// replaces the backoff, up to the longest. [`parse_amz`](Self::parse_amz) reads it.
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
    /// `now` is the time since 1970-01-01 00:00 UTC. Taken from the response's own `Date`, and its
    /// [age](age) added, `now` spares the difference between two clocks. A time that has passed is a
    /// hint of zero. Fractions are rounded up to a nanosecond.
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
        let when = time::when(value.as_ref(), time::SECOND)?;
        Some(Self::AtLeast(when.from(now)))
    }
}

/// A header that tells the service which attempt of a request it gets.
///
/// Services and proxies count retries by it. Nothing sends one unless it is asked to: the adapters
/// for HTTP have `tell_attempts`. A loop inside of an
/// [outer attempt](crate::operation::OuterAttempt) tells the number of that one, or nothing if the
/// number is not known.
///
/// # Examples
///
/// ```
/// use paceline::{Failure, RetryStrategyExt, Standard, headers::AttemptHeader};
///
/// let mut values = Vec::new();
/// let _stopped = Standard::new().run(|attempt| {
///     values.push(AttemptHeader::EnvoyAttemptCount.value(&attempt).unwrap());
///     Err::<(), _>(Failure::transient())
/// });
/// assert_eq!(values, ["1", "2", "3"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttemptHeader {
    /// `grpc-previous-rpc-attempts`: the attempts before this one. The first attempt has none
    /// ("gRPC Retry Design", A6).
    GrpcPreviousRpcAttempts,
    /// `x-envoy-attempt-count`: 1 for the first attempt (Envoy, "HTTP header manipulation").
    EnvoyAttemptCount,
    /// `amz-sdk-request`: `attempt=1; max=3`. The SDKs of AWS send it themselves.
    AmzSdkRequest,
}

/// Reads the value of the header `Age`: how long ago the response was made or checked by its
/// origin.
///
/// More than zero means that the response comes from a cache, so that its `Date` says nothing of
/// the time now, and counts in it are out of date. A value that is not seconds in digits is as good
/// as none; of a list the first member counts; seconds beyond `u64::MAX` count as that many (RFC
/// 9111, sections 1.2.2 and 5.1).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::headers::age;
///
/// assert_eq!(age("17280"), Some(Duration::from_secs(17_280)));
/// assert_eq!(age("-1"), None);
/// ```
#[must_use]
pub fn age(value: impl AsRef<[u8]>) -> Option<Duration> {
    let first = value.as_ref().split(|byte| *byte == b',').next()?;
    let first = first.trim_ascii();
    is_digits(first).then(|| Duration::from_secs(number(first).unwrap_or(u64::MAX)))
}

pub(crate) fn is_digits(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(u8::is_ascii_digit)
}

/// Returns the number that `digits` make, if it fits.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.wrapping_sub(b'0');
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Returns the time that is written as a decimal number of units of so many nanoseconds: digits,
/// and a point with more of them or without. Rounded up to a nanosecond; `None` if it is not that,
/// or more than a `u64` of nanoseconds.
pub(crate) fn decimal(value: &[u8], unit: u64) -> Option<Duration> {
    let value = value.trim_ascii();
    let point = value.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = value.split_at_checked(point.unwrap_or(value.len()))?;
    let fraction = fraction.get(1..).unwrap_or_default();
    if !is_digits(whole) || (point.is_some() && !is_digits(fraction)) {
        return None;
    }
    let whole = number(whole)?.checked_mul(unit)?;
    let (mut part, mut left) = (0_u64, unit);
    let mut rest = 0_u64; // of a nanosecond
    for digit in fraction {
        let digit = u64::from(digit.wrapping_sub(b'0'));
        rest |= left.wrapping_rem(10).wrapping_mul(digit);
        left = left.wrapping_div(10);
        part = part.saturating_add(left.saturating_mul(digit));
        rest |= u64::from(left == 0).wrapping_mul(digit);
    }
    let nanos = whole.checked_add(part)?;
    Some(Duration::from_nanos(
        nanos.checked_add(u64::from(rest > 0))?,
    ))
}

/// Returns the time from 1970 to a date.
#[cfg(feature = "http-date")]
pub(crate) fn date(value: &[u8]) -> Option<Duration> {
    let text = core::str::from_utf8(value).ok()?;
    let date = httpdate::parse_http_date(text).ok()?;
    date.duration_since(std::time::UNIX_EPOCH).ok()
}

#[cfg(not(feature = "http-date"))]
const fn date(_: &[u8]) -> Option<Duration> {
    None
}
