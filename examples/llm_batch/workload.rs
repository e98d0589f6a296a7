//! The requests of a batch: how large each is estimated to be, and what it truly costs.

#![expect(clippy::float_arithmetic, reason = "sizes are drawn from curves")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes are thousands of tokens"
)]

use fastrand::Rng;

/// The smallest and the largest estimate.
const ESTIMATES: (f64, f64) = (150.0, 4_000.0);
/// The true cost is between the estimate divided by this and multiplied by it.
const WRONG: f64 = 3.0;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// What the client and the service take it for: the prompt and `max_tokens`.
    pub(crate) estimate: u32,
    /// What it turns out to cost.
    pub(crate) cost: u32,
}

/// Returns the `count` requests of a `seed`: sizes and errors are spread evenly over their
/// logarithms.
pub(crate) fn jobs(seed: u64, count: usize) -> Vec<Job> {
    let mut rng = Rng::with_seed(seed);
    let mut between = |low: f64, high: f64| low * (high / low).powf(rng.f64());
    let job = |_| {
        let estimate = between(ESTIMATES.0, ESTIMATES.1) as u32;
        let factor = between(1.0 / WRONG, WRONG);
        Job {
            estimate,
            cost: (f64::from(estimate) * factor).round() as u32,
        }
    };
    (0..count).map(job).collect()
}

/// Returns what `jobs` cost in all.
pub(crate) fn cost(jobs: &[Job]) -> u64 {
    jobs.iter().map(|job| u64::from(job.cost)).sum()
}

#[cfg(test)]
mod tests {
    use super::jobs;

    #[test]
    fn estimates_are_wrong_by_a_factor_of_three_at_most() {
        let jobs = jobs(1, 2_000);
        let wrong = |factor: u32| {
            let low = jobs.iter().any(|job| job.cost > job.estimate * factor);
            let high = jobs
                .iter()
                .any(|job| (job.cost + 1) * factor < job.estimate);
            (low, high)
        };
        assert_eq!((wrong(2), wrong(3)), ((true, true), (false, false)));
    }
}
