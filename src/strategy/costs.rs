//! What a retry costs.

use super::{failure::Failure, settings::RetryGeneration};

/// What retries take from the quota, by the failure that they follow.
///
/// | generation | throttling | timeout | other |
/// |---|---|---|---|
/// | 2.0 | 5 | 10 | 5 |
/// | 2.1 | 5 | 14 | 14 |
///
/// After a failure that is both a timeout and throttling, generation 2.0 takes the one for timeouts
/// and 2.1 the one for throttling. A cost of 0 lets such retries pass whatever the quota holds.
///
/// # Examples
///
/// ```
/// use paceline::{Standard, config::{RetryCosts, RetryGeneration}};
///
/// // A client with provisioned capacity, whose throttles are no sign of trouble.
/// let costs = RetryCosts { throttling: 1, ..RetryCosts::of(RetryGeneration::V2_1) };
/// let strategy = Standard::builder().costs(costs).build()?;
/// assert_eq!(strategy.costs().timeout, 14);
/// # Ok::<(), paceline::config::SettingsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RetryCosts {
    /// The cost of a retry after throttling.
    pub throttling: u16,
    /// The cost of a retry after a timeout.
    pub timeout: u16,
    /// The cost of a retry after any other failure.
    pub other: u16,
}

impl RetryCosts {
    /// Returns the published costs of `generation`.
    #[must_use]
    pub const fn of(generation: RetryGeneration) -> Self {
        let (throttling, timeout, other) = match generation {
            RetryGeneration::V2_0 => (5, 10, 5),
            RetryGeneration::V2_1 => (5, 14, 14),
        };
        Self {
            throttling,
            timeout,
            other,
        }
    }

    /// Returns the cost of a retry after `failure`, by the rules of `generation`.
    pub(super) const fn after(self, failure: &Failure, generation: RetryGeneration) -> u32 {
        let timeout_first = matches!(generation, RetryGeneration::V2_0);
        let cost = if failure.is_timeout() && (timeout_first || !failure.is_throttle()) {
            self.timeout
        } else if failure.is_throttle() {
            self.throttling
        } else {
            self.other
        };
        cost as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_that_was_throttling_too_costs_what_the_generation_says() {
        for (generation, costs) in [
            (RetryGeneration::V2_0, [5, 5, 10, 10]),
            (RetryGeneration::V2_1, [14, 5, 14, 5]),
        ] {
            for (bits, cost) in (0..4).zip(costs) {
                let failure = Failure::transient()
                    .with_throttle(bits & 1 != 0)
                    .with_timeout(bits & 2 != 0);
                let after = RetryCosts::of(generation).after(&failure, generation);
                assert_eq!(after, cost, "{generation:?} {failure:?}");
            }
        }
    }
}
