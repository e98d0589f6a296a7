//! What a retry costs.

use super::{failure::Failure, settings::RetryGeneration};

/// Returns the tokens of the quota that a retry after `failure` takes, by the rules of
/// `generation`.
///
/// | generation | throttling | timeout | other |
/// |---|---|---|---|
/// | 2.0 | 5 | 10 | 5 |
/// | 2.1 | 5 | 14 | 14 |
///
/// After a failure that is both a timeout and throttling, generation 2.0 takes the cost of timeouts
/// and 2.1 the cost of throttling.
//= Smithy: This strategy adds extra cost for timeout errors since they may indicate a more degraded
//= service.
pub(super) const fn cost_after(failure: &Failure, generation: RetryGeneration) -> u32 {
    match generation {
        RetryGeneration::V2_0 if failure.is_timeout() => 10,
        RetryGeneration::V2_1 if !failure.is_throttle() => 14,
        RetryGeneration::V2_0 | RetryGeneration::V2_1 => 5,
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
                let after = cost_after(&failure, generation);
                assert_eq!(after, cost, "{generation:?} {failure:?}");
            }
        }
    }
}
