//! The crate's strategies, as each mode configures them.

use alloc::sync::Arc;
use core::num::NonZeroU32;

use paceline::{
    Adaptive, Legacy, RetryStrategy, Standard, config::SettingsError, law::PacedSettings,
};

use crate::mode::Mode;

/// A mode's strategy.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) strategy: Arc<dyn RetryStrategy>,
    /// The most sends for one operation; in bulk of those that are not throttled.
    pub(crate) attempts: u32,
}

impl Plan {
    /// Configures `mode`; `attempts` overrides its own number.
    pub(crate) fn new(mode: Mode, attempts: Option<NonZeroU32>) -> Result<Self, SettingsError> {
        let sends = match mode {
            Mode::None => 1,
            Mode::Legacy => attempts.map_or(5, NonZeroU32::get),
            Mode::Standard => attempts.map_or(3, NonZeroU32::get),
            Mode::Adaptive | Mode::Paced | Mode::Bulk => attempts.map_or(4, NonZeroU32::get),
        };
        let adaptive = || Adaptive::builder().max_attempts(sends);
        Ok(Self {
            strategy: match mode {
                Mode::None | Mode::Legacy => {
                    Arc::new(Legacy::builder().max_attempts(sends).build()?)
                }
                Mode::Standard => Arc::new(Standard::builder().max_attempts(sends).build()?),
                Mode::Adaptive => Arc::new(adaptive().build()?),
                Mode::Paced => Arc::new(adaptive().paced(PacedSettings::new()).build()?),
                Mode::Bulk => Arc::new(adaptive().bulk().build()?),
            },
            attempts: sends,
        })
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU32;

    use super::Plan;
    use crate::{mode::Mode, run};

    fn modes(flag: Option<u32>) -> Vec<(u32, Option<u32>)> {
        let sends = |mode| sends(mode, flag);
        run::modes(&[]).into_iter().map(sends).collect()
    }

    fn sends(mode: Mode, flag: Option<u32>) -> (u32, Option<u32>) {
        let flag = flag.and_then(NonZeroU32::new);
        let plan = Plan::new(mode, flag).expect("the settings are good");
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
}
