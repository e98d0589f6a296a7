//! Time as a number that the caller supplies.

use core::{fmt, time::Duration};

/// The time after which an unused bucket or quota is not worth keeping, in nanoseconds: half an
/// hour. At the lowest rate of a law a bucket of one token is full within 17 minutes, so everything
/// used is idle within an hour.
pub const LONG_UNUSED: u64 = 1_800_000_000_000;

/// An instant, in nanoseconds since an origin of the caller's choosing.
///
/// Everything below the strategies takes the time as an argument, so that tests, models and
/// simulations can choose it. The timestamps given to one limiter must come from one monotonic
/// clock. A caller whose clock leads by `d` may take `d × rate` tokens early, and makes the others
/// wait up to `d`. The range is 2⁶⁴ ns, 584 years.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use paceline::Timestamp;
///
/// let t = Timestamp::from_nanos(1_500);
/// assert_eq!(t.as_nanos(), 1_500);
/// assert_eq!(t.checked_add(Duration::from_nanos(500)), Some(Timestamp::from_nanos(2_000)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// Returns the instant `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the instant `span` later, or `None` past the end of the range.
    #[must_use]
    pub const fn checked_add(self, span: Duration) -> Option<Self> {
        let nanos = span.as_nanos();
        if nanos > u64::MAX as u128 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "checked above")]
        match self.0.checked_add(nanos as u64) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// Returns the instant `span` later, or the last instant of the range.
    #[must_use]
    pub const fn saturating_add(self, span: Duration) -> Self {
        match self.checked_add(span) {
            Some(sum) => sum,
            None => Self(u64::MAX),
        }
    }
}

/// The time since the origin.
impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.saturating_since(Self::ZERO);
        f.debug_tuple("Timestamp").field(&since).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_past_the_end_of_the_range_is_none_and_the_last_one_is_the_last() {
        let last = Timestamp::from_nanos(u64::MAX);
        let whole = Duration::from_nanos(u64::MAX);
        assert_eq!(Timestamp::ZERO.checked_add(whole), Some(last));
        assert_eq!(Timestamp::from_nanos(1).checked_add(whole), None);
        // 2⁶⁴ ns and more would wrap to next to nothing.
        for more in 1..4 {
            let span = whole.saturating_add(Duration::from_nanos(more));
            assert_eq!(Timestamp::ZERO.checked_add(span), None);
            assert_eq!(Timestamp::ZERO.saturating_add(span), last);
        }
        assert_eq!(last.checked_add(Duration::ZERO), Some(last));
        assert_eq!(last.as_nanos(), u64::MAX);
    }
}
