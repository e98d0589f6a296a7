//! What a service reports as left of its quota.

#[cfg(feature = "structured-fields")]
pub(super) mod field;
#[cfg(feature = "http")]
pub(super) mod headers;
#[cfg(feature = "http")]
pub(super) mod partition;

use core::time::Duration;

#[cfg(feature = "http")]
pub use self::headers::RateLimitClassifier;
use crate::{
    RetryAfter,
    headers::{HintError, HintFault, is_digits, number},
};

#[cfg(feature = "structured-fields")]
const FIELD: &str = "RateLimit";
const REMAINING: &str = "RateLimit-Remaining";
const RESET: &str = "RateLimit-Reset";

/// From this number on a reset is a time and not a span: the year 2001, or 31 years.
const FIRST_TIME: u64 = 1_000_000_000;
/// From this number on it is a time in milliseconds: again 2001.
const FIRST_TIME_IN_MILLIS: u64 = 1_000_000_000_000;

/// What is left of a service's quota, and when there will be more: the headers `RateLimit` and
/// `RateLimit-Remaining` with `RateLimit-Reset`.
///
/// Of several quotas it is the one of which the least is left, and of those the one that lasts the
/// longest.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "structured-fields")] {
/// use std::time::Duration;
/// use paceline::{RetryAfter, classify::RateLimit};
///
/// let limit = RateLimit::parse(r#""burst";r=0;t=2, "daily";r=0;t=600, "total";r=7;t=9999"#)?;
/// assert_eq!((limit.remaining(), limit.reset()), (0, Some(Duration::from_secs(600))));
/// assert_eq!(limit.hint(), Some(RetryAfter::AtLeast(Duration::from_secs(600))));
/// # }
/// # Ok::<(), paceline::headers::HintError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RateLimit {
    remaining: u64,
    reset: Option<Duration>,
}

impl RateLimit {
    /// Reads the value of the header `RateLimit`. Several lines of it are one value, with `, `
    /// between them.
    ///
    /// | form | value | source |
    /// |---|---|---|
    /// | list | `"name";r=50;t=30` | "`RateLimit` header fields for HTTP" (IETF), drafts 08 to 11 |
    /// | list | `"name";a=50;w=30` | the names that the working group considers since |
    /// | dictionary | `limit=100, remaining=50, reset=30` | draft 07 |
    ///
    /// Times are seconds from now. Other parameters and keys are ignored, and so is a quota that
    /// does not say what is left of it. The value is a structured field (RFC 9651): one that is
    /// not well formed is an error as a whole.
    ///
    /// # Errors
    ///
    /// Returns [`HintError`] if it is neither form, if nothing says what is left, or if a number
    /// that counts is negative, a fraction or of more than 15 digits.
    #[cfg(feature = "structured-fields")]
    pub fn parse(value: impl AsRef<[u8]>) -> Result<Self, HintError> {
        let value = value.as_ref().trim_ascii();
        let error = || HintError::new(FIELD, value, HintFault::NotRateLimit);
        field::parse(value).ok_or_else(error)
    }

    /// Reads the values of the headers `RateLimit-Remaining` and `RateLimit-Reset`, by whatever
    /// prefix a service has them (`X-RateLimit-Remaining`).
    ///
    /// Services do not agree on what a reset is, so its size tells: up to 999,999,999 it is seconds
    /// from now, beyond it is a time in seconds since 1970, and from 10¹² on one in
    /// milliseconds. `now` is the time since 1970-01-01 00:00 UTC, best taken from the answer's
    /// own `Date`. A time that has passed is a reset of zero.
    ///
    /// # Errors
    ///
    /// Returns [`HintError`] if one is not a number in digits, or more than `u64::MAX`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::classify::RateLimit;
    ///
    /// let now = Duration::from_secs(1_800_000_000);
    /// let limit = RateLimit::parse_pair("0", "1800000060", now)?;
    /// assert_eq!(limit.reset(), Some(Duration::from_secs(60)));
    /// assert_eq!(limit, RateLimit::parse_pair("0", "60", now)?);
    /// # Ok::<(), paceline::headers::HintError>(())
    /// ```
    pub fn parse_pair(
        remaining: impl AsRef<[u8]>,
        reset: impl AsRef<[u8]>,
        now: Duration,
    ) -> Result<Self, HintError> {
        let reset = digits(reset.as_ref(), RESET, HintFault::NotReset)?;
        let reset = match reset {
            0..FIRST_TIME => Duration::from_secs(reset),
            FIRST_TIME..FIRST_TIME_IN_MILLIS => Duration::from_secs(reset).saturating_sub(now),
            FIRST_TIME_IN_MILLIS.. => Duration::from_millis(reset).saturating_sub(now),
        };
        Ok(Self {
            remaining: digits(remaining.as_ref(), REMAINING, HintFault::NotCount)?,
            reset: Some(reset),
        })
    }

    /// Returns how much is left, in the service's own unit, often requests.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Returns the time from now until there is more, or `None` if the service did not say.
    #[must_use]
    pub const fn reset(&self) -> Option<Duration> {
        self.reset
    }

    /// Returns the hint not to come back before the reset, if nothing is left.
    #[must_use]
    pub const fn hint(&self) -> Option<RetryAfter> {
        match *self {
            Self {
                remaining: 0,
                reset: Some(reset),
            } => Some(RetryAfter::AtLeast(reset)),
            _ => None,
        }
    }

    /// Returns the tighter of two quotas.
    #[cfg(feature = "structured-fields")]
    fn tighter(self, other: Self) -> Self {
        let key = |limit: &Self| (core::cmp::Reverse(limit.remaining), limit.reset);
        core::cmp::max_by_key(self, other, key)
    }
}

fn digits(value: &[u8], header: &'static str, fault: HintFault) -> Result<u64, HintError> {
    let value = value.trim_ascii();
    let number = is_digits(value).then(|| number(value)).flatten();
    number.ok_or_else(|| HintError::new(header, value, fault))
}
