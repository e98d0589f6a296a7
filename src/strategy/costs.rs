//! What a retry costs: three numbers that may be changed while others go by them.

use super::{failure::Failure, settings::RetryGeneration};
use crate::atomic::cells::Setting;

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
/// strategy.set_costs(costs.with_other(20)); // from now on; what was paid comes back as it was
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

    fn to_bits(self) -> u64 {
        u64::from(self.throttling) | u64::from(self.timeout) << 16 | u64::from(self.other) << 32
    }

    fn from_bits(bits: u64) -> Self {
        let field = |shift: u32| u16::try_from((bits >> shift) & 0xffff).unwrap_or(u16::MAX);
        Self {
            throttling: field(0),
            timeout: field(16),
            other: field(32),
        }
    }
}

/// The costs that a strategy goes by at the moment.
pub(super) struct SharedCosts(Setting);

impl SharedCosts {
    pub(super) fn new(costs: RetryCosts) -> Self {
        Self(Setting::new(costs.to_bits()))
    }

    pub(super) fn get(&self) -> RetryCosts {
        RetryCosts::from_bits(self.0.get())
    }

    pub(super) fn set(&self, costs: RetryCosts) {
        self.0.set(costs.to_bits());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_costs_keep_each_cost_apart() {
        let costs = RetryCosts::of(RetryGeneration::V2_1);
        let kept = SharedCosts::new(costs);
        assert_eq!(kept.get(), costs);
        let other = costs
            .with_throttling(u16::MAX)
            .with_timeout(0x102)
            .with_other(0);
        kept.set(other);
        assert_eq!(kept.get(), other);
        let got = kept.get();
        assert_eq!(
            (got.throttling(), got.timeout(), got.other()),
            (65_535, 258, 0)
        );
    }

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
