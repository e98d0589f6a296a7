//! Whether a limiter is as good as new.

use super::law::Law;
use super::limit::Limited;
use super::send_rate::SendRate;
use super::sync::Ordering::Relaxed;
use crate::Timestamp;
use crate::line::Place;
use crate::paced::{rate_at, started_at};

impl SendRate {
    /// Tells whether the limiter limits nothing; or if it is to limit from the start, as a new one would: its bucket is
    /// full, and its rate where it began. One whose settings were changed under way is not.
    ///
    /// What it measures is left out: a new limiter has that within a window. Exact while nobody else is at work.
    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        let as_made = match &self.law {
            Law::Aws => true,
            Law::Paced(tuning) => tuning.is_as_made(),
        };
        as_made && self.limited().is_none_or(|limited| limited.is_idle(now))
    }
}

impl Limited<'_> {
    fn is_idle(&self, now: Timestamp) -> bool {
        let throttle = self.throttle.load();
        if !throttle.is_engaged() {
            return true;
        }
        let Law::Paced(tuning) = self.law else {
            return false;
        };
        let settings = &tuning.get();
        let Some(initial) = settings.start() else {
            return false;
        };
        let elapsed = self.elapsed(now);
        let began = rate_at(settings, started_at(settings, initial), 0, 0);
        // It begins a rounding error below.
        let rate = self.law.rate(throttle, elapsed, || began, |_| 0);
        if rate < began || rate > initial {
            return false;
        }
        let (_, line) = self.segments.read();
        let cancelled = self.cancellations.total();
        // Relaxed, after `cancelled`: see `issue`.
        let issued = Place::from_bits(self.issued.load(Relaxed));
        line.is_full(elapsed, issued, cancelled)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::fixed::SECOND;
    use crate::{ControlLaw, Outcome, PacedSettings, SendPermit};

    const PER: Duration = Duration::from_secs(1);

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn throttle(rate: &SendRate, nanos: u64) {
        rate.record(
            at(nanos),
            SendPermit::sent_at(at(nanos)),
            Outcome::Throttled,
        );
    }

    #[test]
    fn what_was_throttled_is_not_idle_until_its_law_has_ended() {
        for law in [ControlLaw::Aws, ControlLaw::Paced] {
            let rate = SendRate::new(law, at(0));
            rate.record(at(0), SendPermit::sent_at(at(0)), Outcome::NotThrottled);
            assert!(rate.is_idle(at(0)) && rate.is_idle(at(SECOND)));
            throttle(&rate, SECOND);
            assert!(!rate.is_idle(at(SECOND)));
            assert!(!rate.is_idle(at(SECOND.wrapping_mul(10_000))));
        }
        let rate = SendRate::new(ControlLaw::Paced, at(0));
        throttle(&rate, SECOND);
        let limited = rate.about_to_limit();
        let last = limited.throttle.load();
        assert!(limited.throttle.replace(last, last.ended()));
        assert!(rate.is_idle(at(SECOND)), "nothing is limited any more");
    }

    #[test]
    fn what_limits_from_the_start_is_idle_while_its_bucket_is_full()
    -> Result<(), crate::PacedSettingsError> {
        let rate = SendRate::paced(PacedSettings::new().ceiling(10, PER)?, at(0));
        assert!(rate.is_idle(at(0)) && rate.is_idle(at(SECOND.wrapping_mul(100))));
        assert!(rate.try_acquire(at(SECOND)).is_ok());
        assert!(!rate.is_idle(at(SECOND)));
        assert!(!rate.is_idle(at(SECOND.wrapping_add(99_999_900))));
        assert!(
            rate.is_idle(at(SECOND.wrapping_add(100_000_001))),
            "refilled"
        );
        throttle(&rate, SECOND.wrapping_mul(2));
        assert!(!rate.is_idle(at(SECOND.wrapping_mul(2))), "cut");
        assert!(
            rate.is_idle(at(SECOND.wrapping_mul(10_000))),
            "back at its ceiling"
        );
        Ok(())
    }

    #[test]
    fn what_was_changed_under_way_is_not_idle_until_it_is_changed_back()
    -> Result<(), crate::PacedSettingsError> {
        let settings = PacedSettings::new();
        let rate = SendRate::paced(settings, at(0));
        rate.set_paced(settings.beta_permille(800)?, at(0))?;
        assert!(!rate.is_idle(at(0)), "a new one would be cut by less");
        rate.set_paced(settings, at(0))?;
        assert!(rate.is_idle(at(0)));
        Ok(())
    }

    #[test]
    fn what_has_forgotten_its_throttles_is_idle() {
        for law in [ControlLaw::Aws, ControlLaw::Paced] {
            let rate = SendRate::new(law, at(0));
            throttle(&rate, SECOND);
            assert!(!rate.is_idle(at(SECOND)));
            rate.forget_throttles(at(SECOND));
            assert!(rate.is_idle(at(SECOND)));
        }
    }

    #[test]
    fn what_has_risen_since_it_began_is_not_idle() -> Result<(), crate::PacedSettingsError> {
        let rate = SendRate::paced(PacedSettings::new().initial_rate(10, PER)?, at(0));
        assert!(rate.is_idle(at(0)));
        let later = at(SECOND.wrapping_mul(60));
        assert!(!rate.is_idle(later), "a new one would be slower");
        rate.record(later, SendPermit::sent_at(later), Outcome::NotThrottled);
        assert!(!rate.is_idle(later));
        Ok(())
    }
}
