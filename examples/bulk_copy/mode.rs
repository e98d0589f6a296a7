//! The six ways of retrying that a run compares.

use alloc::sync::Arc;
use core::num::NonZeroU32;

use clap::ValueEnum;
use paceline::{
    Adaptive, ControlLaw, Legacy, RetryStrategy, Standard, config::SettingsError,
    law::PacedSettings,
};

use crate::run;

/// A way of retrying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// One send, no retries
    None,
    /// Plain backoff, up to five sends: what many SDKs did for years, and some still do by default
    Legacy,
    /// Up to three sends, and retries paid from a quota
    Standard,
    /// Up to four sends, a quota, and a send rate that follows what the service admits, by the
    /// published law
    Adaptive,
    /// The same, by the crate's own law
    Paced,
    /// The same for pipelines: throttled sends are repeated until they succeed, and the rate begins
    /// low
    Bulk,
}

impl Mode {
    /// Returns the name, as the flag has it.
    pub(crate) fn name(self) -> String {
        run::name(&self)
    }

    /// Returns the most sends for one operation; in bulk of those that are not throttled.
    pub(crate) const fn sends(self) -> u32 {
        match self {
            Self::None => 1,
            Self::Legacy => 5,
            Self::Standard => 3,
            Self::Adaptive | Self::Paced | Self::Bulk => 4,
        }
    }

    /// Configures the crate's strategy.
    pub(crate) fn strategy(self) -> Result<Arc<dyn RetryStrategy>, SettingsError> {
        let sends = self.sends();
        let adaptive = Adaptive::builder().max_attempts(sends);
        Ok(match self {
            Self::None => Arc::new(Legacy::new().max_attempts(NonZeroU32::MIN)),
            Self::Legacy => Arc::new(Legacy::new()),
            Self::Standard => Arc::new(Standard::builder().max_attempts(sends).build()?),
            Self::Adaptive => Arc::new(adaptive.law(ControlLaw::Aws).build()?),
            Self::Paced => Arc::new(adaptive.paced(PacedSettings::new()).build()?),
            Self::Bulk => Arc::new(adaptive.bulk().build()?),
        })
    }

    /// Returns whether sends are held back: everything should be copied then.
    pub(crate) const fn paces_sends(self) -> bool {
        matches!(self, Self::Adaptive | Self::Paced | Self::Bulk)
    }

    /// Returns what it is for people who have not read the flags.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::None => "every object is sent once",
            Self::Legacy => "up to 5 sends, plain backoff",
            Self::Standard => "up to 3 sends, backoff and a retry quota",
            Self::Adaptive => "up to 4 sends, backoff, a quota and a send rate that adapts",
            Self::Paced => "the same, with the crate's own law",
            Self::Bulk => "the same, from a slow start, until the service lets it through",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Mode;
    use crate::run;

    #[test]
    fn each_mode_sends_as_often_as_the_story_has_it() {
        let sends = |mode: Mode| {
            let strategy = mode.strategy().expect("the settings are good");
            let token = strategy.acquire_initial_token(None);
            let token = token.expect("a first token is always given");
            (mode.sends(), token.max_attempts())
        };
        let told: Vec<_> = run::modes(&[]).into_iter().map(sends).collect();
        let expected = [1, 5, 3, 4, 4].map(|sends| (sends, Some(sends)));
        assert_eq!(told, [&expected[..], &[(4, None)]].concat()[..]);
    }
}
