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
/// let costs = RetryCosts::of(RetryGeneration::V2_1).with_throttling(1);
/// let strategy = Standard::builder().costs(costs).build()?;
/// assert_eq!(strategy.costs().throttling(), 1);
/// # Ok::<(), paceline::config::SettingsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RetryCosts {
    throttling: u16,
    timeout: u16,
    other: u16,
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

    /// Replaces the cost of a retry after throttling.
    #[must_use]
    pub const fn with_throttling(self, tokens: u16) -> Self {
        Self {
            throttling: tokens,
            ..self
        }
    }

    /// Replaces the cost of a retry after a timeout.
    #[must_use]
    pub const fn with_timeout(self, tokens: u16) -> Self {
        Self {
            timeout: tokens,
            ..self
        }
    }

    /// Replaces the cost of a retry after any other failure.
    #[must_use]
    pub const fn with_other(self, tokens: u16) -> Self {
        Self {
            other: tokens,
            ..self
        }
    }

    /// Returns the cost of a retry after throttling.
    #[must_use]
    pub const fn throttling(self) -> u16 {
        self.throttling
    }

    /// Returns the cost of a retry after a timeout.
    #[must_use]
    pub const fn timeout(self) -> u16 {
        self.timeout
    }

    /// Returns the cost of a retry after any other failure.
    #[must_use]
    pub const fn other(self) -> u16 {
        self.other
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
    fn published_costs_are_those_of_the_generation() {
        for generation in [RetryGeneration::V2_0, RetryGeneration::V2_1] {
            for bits in 0..4 {
                let failure = Failure::transient()
                    .with_throttle(bits & 1 != 0)
                    .with_timeout(bits & 2 != 0);
                let cost = RetryCosts::of(generation).after(&failure, generation);
                assert_eq!(
                    cost,
                    generation.cost(&failure),
                    "{generation:?} {failure:?}"
                );
            }
        }
    }
}
