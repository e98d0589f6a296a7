//! How many retries a share of the requests allows: the sum that a retry budget does.

use core::{error::Error, fmt, time::Duration};

use crate::fixed::to_signed;

/// The parts that a window is counted in.
pub(crate) const SLOTS: u64 = 10;

/// What one retry takes, in thousandths of it.
const RETRY: i64 = 1_000;

const SHORTEST_WINDOW: Duration = Duration::from_secs(1);
const LONGEST_WINDOW: Duration = Duration::from_secs(3_600);

/// The share, the minimum and the window.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    /// What a request allows, in thousandths of a retry.
    permille: u16,
    /// What a window allows without any request, in thousandths of a retry.
    minimum: i64,
    slot_nanos: u64,
}

impl Budget {
    /// Returns the budget of `permille` thousandths of the requests, and `minimum` retries a
    /// second, over `window`.
    pub(crate) fn new(
        permille: u16,
        minimum: u32,
        window: Duration,
    ) -> Result<Self, QuotaSettingsError> {
        if permille > 1_000 {
            return Err(QuotaSettingsError::Ratio { permille });
        }
        if !(SHORTEST_WINDOW..=LONGEST_WINDOW).contains(&window) {
            return Err(QuotaSettingsError::Window { length: window });
        }
        let nanos = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        // Cannot overflow: 2³² retries a second for 3,600 s, in thousandths, are under 2⁵⁴.
        let minimum = u128::from(minimum)
            .wrapping_mul(u128::from(nanos))
            .wrapping_div(1_000_000); // nanoseconds in a thousandth of a second
        Ok(Self {
            permille,
            minimum: i64::try_from(minimum).unwrap_or(i64::MAX),
            slot_nanos: nanos.div_ceil(SLOTS),
        })
    }

    /// Returns the number of the slot that holds the time `nanos`.
    pub(crate) fn slot(&self, nanos: u64) -> u64 {
        nanos.checked_div(self.slot_nanos).unwrap_or(0)
    }

    /// Returns the balance of a client that has made so many requests and retries since its
    /// beginning: it wraps, and only differences count.
    pub(crate) fn balance(&self, requests: u64, retries: u64) -> u64 {
        requests
            .wrapping_mul(u64::from(self.permille))
            .wrapping_sub(retries.wrapping_mul(RETRY.unsigned_abs()))
    }

    /// Returns the retries that are left, by the balance when the window began and the one now;
    /// none if overdrawn.
    pub(crate) fn left(&self, then: u64, now: u64) -> u32 {
        let gained = to_signed(now.wrapping_sub(then));
        let left = gained.saturating_add(self.minimum).wrapping_div(RETRY);
        u32::try_from(left.max(0)).unwrap_or(u32::MAX)
    }
}

/// The settings that it was made with, but that the minimum is for a window.
impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let window = self.slot_nanos.saturating_mul(SLOTS);
        f.debug_struct("Budget")
            .field("permille", &self.permille)
            .field("minimum", &self.minimum.wrapping_div(RETRY))
            .field("window", &Duration::from_nanos(window))
            .finish()
    }
}

/// Why a [`RetryBudget`](crate::RetryBudget) could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QuotaSettingsError {
    /// A ratio of more than one retry for each request.
    #[non_exhaustive]
    Ratio {
        /// What was given, in thousandths.
        permille: u16,
    },
    /// A window outside 1 s to an hour.
    #[non_exhaustive]
    Window {
        /// What was given.
        length: Duration,
    },
}

impl fmt::Display for QuotaSettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Ratio { permille } => {
                write!(
                    f,
                    "a ratio of {permille}/1000 is more than one retry for each request"
                )
            }
            Self::Window { length } => {
                write!(f, "a window of {length:?} is not between 1 s and 3600 s")
            }
        }
    }
}

impl Error for QuotaSettingsError {}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_SECONDS: Duration = Duration::from_secs(10);

    #[test]
    fn what_is_left_is_the_share_of_the_requests_and_the_minimum_less_the_retries() {
        let budget = Budget::new(200, 1, TEN_SECONDS).expect("in range");
        for (requests, retries, left) in [
            (0_u64, 0_u64, 10),
            (4, 0, 10), // 0.8 is no retry
            (5, 0, 11),
            (5, 11, 0),
            (5, 12, 0),
            (1_000, 11, 199),
        ] {
            // The counts wrap, like those they are compared with.
            let then = budget.balance(u64::MAX - 2, u64::MAX - 3);
            let now = budget.balance(requests.wrapping_sub(3), retries.wrapping_sub(4));
            assert_eq!(
                budget.left(then, now),
                left,
                "{requests} requests, {retries} retries"
            );
        }
    }

    #[test]
    fn a_thousandth_is_not_rounded_away() {
        let budget = Budget::new(1, 0, TEN_SECONDS).expect("in range");
        let left = |requests| budget.left(budget.balance(0, 0), budget.balance(requests, 0));
        assert_eq!((left(999), left(1_000), left(1_999)), (0, 1, 1));
    }

    #[test]
    fn the_ends_of_the_ranges_are_in_them_and_nothing_overflows() {
        let none = Budget::new(0, 0, SHORTEST_WINDOW).expect("in range");
        assert_eq!(none.left(none.balance(0, 0), none.balance(u64::MAX, 0)), 0);
        let most = Budget::new(1_000, u32::MAX, LONGEST_WINDOW).expect("in range");
        assert_eq!(most.left(0, i64::MAX.unsigned_abs()), u32::MAX);
        assert_eq!(most.left(i64::MAX.unsigned_abs(), 0), 0);
        assert_eq!(
            (most.slot(359_999_999_999), most.slot(360_000_000_000)),
            (0, 1)
        );
        assert_eq!(
            (none.slot(99_999_999), none.slot(u64::MAX)),
            (0, 184_467_440_737)
        );
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let error = |permille, window| {
            let wrong = Budget::new(permille, 0, window).expect_err("out of range");
            wrong.to_string()
        };
        assert_eq!(
            error(1_001, TEN_SECONDS),
            "a ratio of 1001/1000 is more than one retry for each request"
        );
        assert_eq!(
            error(0, Duration::from_millis(999)),
            "a window of 999ms is not between 1 s and 3600 s"
        );
        assert_eq!(
            error(0, Duration::from_millis(3_600_001)),
            "a window of 3600.001s is not between 1 s and 3600 s"
        );
    }
}
