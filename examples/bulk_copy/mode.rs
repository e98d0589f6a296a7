//! The six ways of retrying that a run compares.

use clap::ValueEnum;

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

    /// Returns `true` if sends are held back: everything should be copied then.
    pub(crate) const fn paces_sends(self) -> bool {
        matches!(self, Self::Adaptive | Self::Paced | Self::Bulk)
    }

    /// Returns a heading for people who have not read the flags.
    pub(crate) fn title(self, attempts: u32) -> String {
        let what = match self {
            Self::None => return "none: every object is sent once".to_owned(),
            Self::Legacy => "plain backoff",
            Self::Standard => "backoff and a retry quota",
            Self::Adaptive => "backoff, a retry quota and a send rate that adapts",
            Self::Paced => "the same, with the crate's own law",
            Self::Bulk => {
                return "bulk: the same, from a slow start, until the service lets it through"
                    .to_owned();
            }
        };
        format!("{}: up to {attempts} sends, {what}", self.name())
    }
}
