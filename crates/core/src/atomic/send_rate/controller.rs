//! A law with the settings that may change while it is at work.

use alloc::boxed::Box;

use super::limits::{Limits, Unheard};
use crate::atomic::lazy::Lazy;
use crate::atomic::sync::{AtomicU128, Ordering::Relaxed};
use crate::bits::LAST_TIME;
use crate::law::paced::{PacedSettings, PacedSettingsError};
use crate::law::{Controller, Dimension};
use crate::{ControlLaw, Outcome, SendPermit, Timestamp};

/// The law of one limiter, with the settings that may change while it is at work.
pub(crate) struct BoundLaw {
    pub(super) start: Timestamp,
    /// Boxed, so that a limiter stays small. `None` is a law that has only its kind.
    tuned: Option<Box<Tuned>>,
    kind: ControlLaw,
    /// Whether declared limits are obeyed.
    listens: bool,
    /// Whether threads may take tokens ahead.
    lends: bool,
}

struct Tuned {
    made_with: Controller,
    /// The settings in force, as the law packs them.
    word: AtomicU128,
    /// Made by the first report. `None` under laws that do not listen.
    limits: Option<Lazy<Limits>>,
    /// The dimension of the declared limits that are obeyed.
    obeyed: Dimension,
    unheard: Unheard,
}

// Orderings of `word`. Relaxed: the word holds all settings, so a load always returns the settings
// of one call. A thread that loads the word twice gets no older settings the second time. A rate
// computed by older settings does not get past the gate, whose version is raised on both sides of a
// change. Models: `paced::a_lower_ceiling_is_obeyed`,
// `paced::two_changes_at_once_leave_the_rate_of_one`.
impl BoundLaw {
    pub(super) fn new(law: Controller, obeyed: Dimension, start: Timestamp) -> Self {
        let tuned = (!law.is_plain()).then(|| {
            Box::new(Tuned {
                made_with: law,
                word: AtomicU128::new(law.tunable_bits()),
                limits: law.declared().map(|_| Lazy::new(Limits::new)),
                obeyed,
                unheard: Unheard::new(),
            })
        });
        Self {
            start,
            tuned,
            kind: law.kind(),
            listens: law.declared().is_some(),
            lends: law.lends(),
        }
    }

    /// Returns the time from the start to `now`, as words hold it.
    pub(super) fn elapsed(&self, now: Timestamp) -> u64 {
        now.as_nanos()
            .saturating_sub(self.start.as_nanos())
            .min(LAST_TIME)
    }

    /// Returns when the request of `permit`, answered at `at`, was sent. This is `at` if no clock
    /// was read for it.
    pub(super) fn sent_at(&self, permit: SendPermit, at: u64) -> u64 {
        if permit.is_timed() {
            self.elapsed(permit.time()).min(at)
        } else {
            at
        }
    }

    /// Lets no thread take tokens ahead.
    #[cfg(test)]
    pub(super) fn lend_nothing(&mut self) {
        self.lends = false;
    }

    /// Returns `true` if threads may take tokens ahead: not where sends are counted in order, nor
    /// where each response moves the rate.
    #[inline]
    pub(super) const fn lends(&self) -> bool {
        self.lends
    }

    /// Returns `true` if declared limits are obeyed. Then each send counts, and a refused send may
    /// count.
    #[inline]
    pub(crate) const fn listens(&self) -> bool {
        self.listens
    }

    /// Returns which declared limits are obeyed, if the law listens.
    pub(crate) fn obeys(&self) -> Option<Dimension> {
        let tuned = self.tuned.as_ref().filter(|_| self.listens)?;
        Some(tuned.obeyed)
    }

    /// Returns the count of answers before the first report, if the law listens.
    #[inline]
    pub(super) fn unheard(&self) -> Option<&Unheard> {
        if !self.listens {
            return None;
        }
        Some(&self.tuned.as_ref()?.unheard)
    }

    /// Notes an answer, for a limiter that may have heard no report yet.
    #[inline]
    pub(super) fn note_answer(&self) {
        self.unheard().inspect(|unheard| unheard.answer());
    }

    /// Notes a request that failed or was given up, and returns the outcome as the law takes it.
    /// The published law takes a failure as an answer.
    #[cold]
    pub(super) fn note_unserved(&self, outcome: Outcome) -> Outcome {
        if outcome == Outcome::Unknown {
            return outcome;
        }
        self.note_answer();
        if self.moves_with_time() {
            outcome
        } else {
            Outcome::NotThrottled
        }
    }

    /// Returns `true` if declared limits are obeyed, and several answers came without a report.
    pub(crate) fn is_unheard(&self) -> bool {
        self.unheard().is_some_and(Unheard::is_so)
    }

    /// Returns the declared limits, if there has been a report.
    pub(super) fn limits(&self) -> Option<&Limits> {
        if !self.listens {
            return None;
        }
        self.tuned.as_ref()?.limits.as_ref()?.get()
    }

    /// Returns the declared limits, of a law that listens.
    pub(super) fn make_limits(&self) -> Option<&Limits> {
        let limits = self.tuned.as_ref()?.limits.as_ref()?;
        Some(limits.get_or_make(Limits::new))
    }

    /// Returns the law with the settings that are in force.
    pub(super) fn get(&self) -> Controller {
        match &self.tuned {
            None => Controller::new(self.kind, self.start.as_nanos()),
            Some(tuned) => tuned.made_with.with_tunable_bits(tuned.word.load(Relaxed)),
        }
    }

    /// Returns the kind of the law.
    pub(super) const fn kind(&self) -> ControlLaw {
        self.kind
    }

    /// Returns `true` if time alone moves the rate.
    pub(super) fn moves_with_time(&self) -> bool {
        let tuned = self.tuned.as_ref();
        tuned.is_some_and(|tuned| tuned.made_with.moves_with_time())
    }

    /// Returns `true` if the settings are those that the limiter was made with.
    pub(super) fn is_as_made(&self) -> bool {
        let tuned = self.tuned.as_ref();
        tuned.is_none_or(|tuned| tuned.made_with.tunable_bits() == tuned.word.load(Relaxed))
    }

    /// Replaces the settings of the paced law, unless they change a setting that must stay.
    pub(super) fn set_paced(&self, settings: PacedSettings) -> Result<(), PacedSettingsError> {
        let unchangeable = PacedSettingsError::Unchangeable { setting: "law" };
        let tuned = self.tuned.as_ref().ok_or(unchangeable)?;
        let made_with = tuned.made_with.paced().ok_or(unchangeable)?;
        settings.starts_like(&made_with)?;
        // The declared law packs the settings of the paced one.
        tuned.word.store(settings.tunable_bits(), Relaxed);
        Ok(())
    }
}
