//! The two laws, as the words know them.

use alloc::boxed::Box;

use super::throttle::Throttle;
use super::tuning::Tuning;
use crate::aws;
use crate::cubic::time_to_peak;
use crate::fixed::{Rate, SECOND};
use crate::paced::{self, Cut, Memory, PacedSettings};

/// The law of one limiter, with its settings.
#[derive(Debug)]
pub(super) enum Law {
    Aws,
    /// Its settings are elsewhere, so that a limiter stays small.
    Paced(Box<Tuning>),
}

/// What the paced law remembers of the last cut.
pub(super) const fn cut_of(throttle: Throttle) -> Cut {
    Cut {
        memory: Memory::from_bits(throttle.memory()),
        since: throttle.since(),
    }
}

impl Law {
    pub(super) fn paced(settings: PacedSettings) -> Self {
        Self::Paced(Box::new(Tuning::new(settings)))
    }

    /// Whether it is the published law, which moves the rate only when something is recorded.
    pub(super) const fn is_published(&self) -> bool {
        matches!(self, Self::Aws)
    }

    /// Returns which settings the law goes by: those of the published law never change.
    pub(super) fn edition(&self) -> u64 {
        match self {
            Self::Aws => 0,
            Self::Paced(tuning) => tuning.edition(),
        }
    }

    /// Returns how much a bucket holds, in nanoseconds at its rate.
    pub(super) fn burst(&self) -> u64 {
        match self {
            Self::Aws => SECOND,
            Self::Paced(tuning) => tuning.burst(),
        }
    }

    /// Returns the rate at `now`, of a limiter that has seen `throttle` last.
    ///
    /// Only the published law looks at what was `measured`, and asks for the time to a peak.
    pub(super) fn rate(
        &self,
        throttle: Throttle,
        now: u64,
        measured: impl FnOnce() -> Rate,
        time_to_peak: impl FnOnce(Rate) -> u64,
    ) -> Rate {
        match self {
            Self::Aws => {
                let elapsed = now.saturating_sub(throttle.since());
                let peak = throttle.peak();
                aws::after_success(peak, time_to_peak(peak), elapsed, measured())
            }
            Self::Paced(tuning) => {
                let cut = cut_of(throttle);
                if cut.memory.has_pause() && now < cut.since {
                    return Rate::LEAST;
                }
                paced::rate_at(&tuning.get(), cut.memory, cut.since, now)
            }
        }
    }

    /// Returns the rate that `throttle` brings, and the time from which it holds; to a caller at `now`.
    ///
    /// Zero if the law has ended.
    pub(super) fn first_rate(&self, throttle: Throttle, now: u64) -> (u64, Rate) {
        let since = throttle.since();
        match self {
            _ if !throttle.is_engaged() => (now, Rate::ZERO),
            Self::Aws => (since, aws::after_throttle(throttle.peak())),
            Self::Paced(_) => {
                let from = since.min(now);
                (from, self.rate(throttle, from, || Rate::MAX, time_to_peak))
            }
        }
    }

    /// Returns the rate that the paced law goes on with after a cut, or a pause.
    pub(super) fn resumed(&self, throttle: Throttle) -> Rate {
        self.rate(throttle, throttle.since(), || Rate::MAX, time_to_peak)
    }
}
