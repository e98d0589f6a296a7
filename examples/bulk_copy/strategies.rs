//! The crate's strategies, as each mode configures them.

use alloc::sync::Arc;
use core::num::NonZeroU32;

use paceline::{
    Adaptive, Failure, Legacy, RetryQuota, RetryStrategy, Standard,
    config::{Settings, SettingsError},
    law::PacedSettings,
};

use crate::mode::Mode;

/// A mode's strategy, and what is to be said about it beforehand.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) strategy: Arc<dyn RetryStrategy>,
    /// The most sends for one operation; in bulk of those that are not throttled.
    pub(crate) attempts: u32,
    /// That the quota may be too small for so many workers.
    pub(crate) warning: Option<String>,
}

impl Plan {
    /// Configures `mode` for `workers` operations at a time; `attempts` overrides its own number.
    pub(crate) fn new(
        mode: Mode,
        attempts: Option<NonZeroU32>,
        workers: u32,
    ) -> Result<Self, SettingsError> {
        let attempts = |default| attempts.map_or(default, NonZeroU32::get);
        match mode {
            Mode::None => Self::legacy(1),
            Mode::Bulk => Self::bulk(attempts(4)),
            Mode::Legacy => Self::legacy(attempts(5)),
            Mode::Standard => {
                let sends = attempts(3);
                let strategy = Standard::builder().max_attempts(sends).build()?;
                let warning = warning(strategy.settings(), strategy.quota(), workers);
                Ok(Self::quoted(strategy, sends, warning))
            }
            Mode::Adaptive | Mode::Paced => {
                let sends = attempts(4);
                let mut builder = Adaptive::builder().max_attempts(sends);
                if mode == Mode::Paced {
                    builder = builder.paced(PacedSettings::new());
                }
                let strategy = builder.build()?;
                let warning = warning(strategy.settings(), strategy.quota(), workers);
                Ok(Self::quoted(strategy, sends, warning))
            }
        }
    }

    /// What is throttled costs nothing, so that no number of workers is too large for the quota.
    fn bulk(attempts: u32) -> Result<Self, SettingsError> {
        let strategy = Adaptive::builder().bulk().max_attempts(attempts).build()?;
        Ok(Self::quoted(strategy, attempts, None))
    }

    fn legacy(attempts: u32) -> Result<Self, SettingsError> {
        let strategy = Legacy::builder().max_attempts(attempts).build()?;
        Ok(Self::quoted(strategy, attempts, None))
    }

    fn quoted(
        strategy: impl RetryStrategy + 'static,
        attempts: u32,
        warning: Option<String>,
    ) -> Self {
        Self {
            strategy: Arc::new(strategy),
            attempts,
            warning,
        }
    }
}

fn warning(settings: &Settings, quota: &RetryQuota, workers: u32) -> Option<String> {
    let cost = settings.generation().cost(&Failure::throttling());
    let retries = settings.max_attempts().saturating_sub(1);
    overshoot(workers, cost, retries, quota.capacity())
}

/// Returns what to say if retries that are all refused can use up the quota.
fn overshoot(workers: u32, cost: u32, retries: u32, capacity: u32) -> Option<String> {
    let round = workers.saturating_mul(cost);
    let numbers =
        format!("{workers} workers x {cost} tokens = {round}, the retry quota is {capacity}");
    if retries > 0 && round > capacity {
        Some(format!("{numbers}: one overshoot can empty it"))
    } else if round.saturating_mul(retries) > capacity {
        let rounds = capacity.div_ceil(round.max(1));
        Some(format!(
            "{numbers}: an overshoot that lasts for {rounds} rounds of retries can empty it"
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU32;

    use super::{Plan, overshoot};
    use crate::{mode::Mode, run};

    fn modes(flag: Option<u32>) -> Vec<(u32, Option<u32>)> {
        let sends = |mode| sends(mode, flag);
        run::modes(&[]).into_iter().map(sends).collect()
    }

    fn sends(mode: Mode, flag: Option<u32>) -> (u32, Option<u32>) {
        let flag = flag.and_then(NonZeroU32::new);
        let plan = Plan::new(mode, flag, 1).expect("the settings are good");
        let token = plan.strategy.acquire_initial_token(None);
        let token = token.expect("a first token is always given");
        (plan.attempts, token.max_attempts())
    }

    #[test]
    fn each_mode_sends_as_often_as_the_story_has_it() {
        let told = modes(None);
        let expected = [1, 5, 3, 4, 4].map(|sends| (sends, Some(sends)));
        assert_eq!(told, [&expected[..], &[(4, None)]].concat()[..]);
    }

    #[test]
    fn the_flag_overrides_the_sends_of_the_modes_that_retry() {
        let told = modes(Some(7));
        let expected = [1, 7, 7, 7, 7].map(|sends| (sends, Some(sends)));
        assert_eq!(told, [&expected[..], &[(7, None)]].concat()[..]);
    }

    #[test]
    fn one_overshoot_can_empty_a_quota_of_less_than_workers_times_cost() {
        let said = overshoot(101, 5, 2, 500).expect("505 exceeds 500");
        assert!(said.ends_with("one overshoot can empty it"), "{said}");
        let said = overshoot(100, 5, 2, 500).expect("twice 500 exceeds 500");
        assert!(!said.contains("one overshoot"), "{said}");
    }

    #[test]
    fn a_quota_that_outlasts_every_retry_is_not_mentioned() {
        assert_eq!(overshoot(50, 5, 2, 500), None);
        assert_eq!(overshoot(1_000, 5, 0, 500), None);
    }
}
