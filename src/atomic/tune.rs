//! A change of the paced law's settings under way.

use super::law::Law;
use super::limit::Limited;
use super::send_rate::SendRate;
use crate::Timestamp;
use crate::paced::{PacedSettings, PacedSettingsError, started_at};

impl SendRate {
    /// Changes the settings of [`ControlLaw::Paced`](crate::ControlLaw::Paced): floor, ceiling and β. The state stays: what was
    /// measured, the peak, the time of the last cut, and all places in line.
    ///
    /// The fill rate is at once what the law makes of the same state with the new settings. With a ceiling, a limiter that
    /// limited nothing begins to limit, with an empty bucket; without one it may switch itself off again. A call that
    /// overlaps this one may go by the old settings, and leave the old rate, or none, until the first response after a second.
    ///
    /// # Errors
    ///
    /// [`PacedSettingsError::Unchangeable`] if the burst or the initial rate is another than the limiter was made with, or if
    /// its law is [`ControlLaw::Aws`](crate::ControlLaw::Aws), which has no settings. Nothing is changed then.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use paceline::{ControlLaw, PacedSettings, SendRate, Timestamp};
    ///
    /// let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    /// let second = Duration::from_secs(1);
    /// let now = Timestamp::from_nanos(5);
    /// rate.set_paced(PacedSettings::new().ceiling(100, second)?, now)?;
    /// let wait = rate.try_acquire(now).unwrap_err();
    /// assert_eq!(wait.as_millis(), 10);
    /// # Ok::<(), paceline::PacedSettingsError>(())
    /// ```
    pub fn set_paced(
        &self,
        settings: PacedSettings,
        now: Timestamp,
    ) -> Result<(), PacedSettingsError> {
        let Law::Paced(tuning) = &self.law else {
            return Err(PacedSettingsError::Unchangeable { setting: "law" });
        };
        tuning.set(&settings)?;
        let elapsed = self.elapsed(now);
        if settings.highest().is_some() {
            self.about_to_limit().hold_to_ceiling(&settings, elapsed);
        }
        if let Some(limited) = self.limited() {
            limited.follow_curve(elapsed);
            limited.nudge(elapsed);
        }
        Ok(())
    }

    /// Returns the settings of [`ControlLaw::Paced`](crate::ControlLaw::Paced) as they are, `None` under the published law.
    #[must_use]
    pub fn paced_settings(&self) -> Option<PacedSettings> {
        match &self.law {
            Law::Aws => None,
            Law::Paced(tuning) => Some(tuning.get()),
        }
    }
}

impl Limited<'_> {
    /// Begins to limit if there is a ceiling and nothing is limited: it has just been set, or somebody who had not seen it
    /// has switched the limiter off since.
    pub(super) fn hold_to_ceiling(&self, settings: &PacedSettings, elapsed: u64) {
        let Some(ceiling) = settings.highest() else {
            return;
        };
        self.gate.engage();
        self.replace_throttle(elapsed, |last, _| {
            let memory = started_at(settings, ceiling).to_bits();
            (!last.is_engaged()).then(|| last.next_with(elapsed, memory))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, SendPermit};
    use core::time::Duration;

    /// A response that had seen no ceiling switches the limiter off after one was set.
    #[test]
    fn a_ceiling_holds_whoever_switches_the_limiter_off_beside_it() {
        let at = Timestamp::from_nanos;
        let second = 1_000_000_000;
        let rate = SendRate::paced(PacedSettings::new(), Timestamp::ZERO);
        let ceiling = PacedSettings::new().ceiling(10, Duration::from_secs(1));
        assert_eq!(
            rate.set_paced(ceiling.expect("in range"), at(second)),
            Ok(())
        );
        let limited = rate.limited().expect("it has a ceiling");
        limited.replace_throttle(second, |last, _| Some(last.ended()));
        assert!(!rate.snapshot(at(second)).enabled);
        for millis in [1_500, 3_000, 4_500] {
            let now = at(millis * 1_000_000);
            rate.record(now, SendPermit::sent_at(now), Outcome::NotThrottled);
        }
        let now = at(5 * second);
        assert!(rate.snapshot(now).enabled);
        assert_eq!((0..20).filter(|_| rate.try_acquire(now).is_ok()).count(), 1);
    }
}
