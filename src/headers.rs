//! Headers about time and attempts: when to come back, how old a response is, which attempt this
//! is.

pub(crate) mod retry_after;
mod status_details;
pub(crate) mod time;

use core::time::Duration;

/// A header that tells the service which attempt of a request it gets.
///
/// Services and proxies use the header to count retries. By default no such header is sent; the
/// adapters for HTTP have `tell_attempts`. A loop inside of an [outer
/// attempt](crate::operation::OuterAttempt) sends the number of the outer attempt, or nothing if
/// that number is not known.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
/// An age above zero means that the response comes from a cache. Then its `Date` is not the time
/// now, and its counts are out of date. A value that is not digits gives `None`. Of a list the
/// first member counts. Seconds beyond `u64::MAX` count as `u64::MAX` (RFC 9111, sections 1.2.2 and
/// 5.1).
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

/// Returns the number that `digits` spell, if it fits a `u64`.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.wrapping_sub(b'0');
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Reads a decimal number of units, with or without a fraction. `unit` is the nanoseconds of a
/// unit. The result is rounded up to a nanosecond. It is `None` for other text, and beyond
/// `u64::MAX` nanoseconds.
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
