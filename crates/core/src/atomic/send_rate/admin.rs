//! Operations apart from requests: changes of settings, resets, and whether a limiter has state to
//! keep.
//!
//! A thread may stop in a reset:
//!
//! - Between `since` and `head`: the line is extended backwards, which mints less. The next reset
//!   mends the line.
//! - Between `retired` and `total`: waiters may go, but tries do not see the tokens written off.

use super::SendRate;
use crate::Timestamp;
use crate::law::paced::{PacedSettings, PacedSettingsError};
use crate::time::LONG_UNUSED;

impl SendRate {
    /// Changes the settings of [`ControlLaw::Paced`](crate::ControlLaw::Paced): floor, ceiling and
    /// β. The state stays: what was measured, the peak, the time of the last cut, and all
    /// places in line.
    ///
    /// The law at once computes the fill rate from the same state with the new settings. A ceiling
    /// makes a limiter that limited nothing begin to limit, with an empty bucket. Without a
    /// ceiling, the limiter may stop limiting again. A call that overlaps this one may go by the
    /// old settings. The old rate, or no limit, then stays until the first response after a second.
    ///
    /// # Errors
    ///
    /// [`PacedSettingsError::Unchangeable`] if the preset, the burst, the slow start or the longest
    /// slope differs from what the limiter was made with. Also if a given initial rate differs from
    /// the old initial rate, as the new floor and ceiling move it. Always under
    /// [`ControlLaw::Aws`](crate::ControlLaw::Aws), which has no settings. Nothing is changed then.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use paceline::{ControlLaw, SendRate, Timestamp, law::PacedSettings};
    ///
    /// let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    /// let second = Duration::from_secs(1);
    /// let now = Timestamp::from_nanos(5);
    /// rate.set_paced(PacedSettings::builder().ceiling(100, second).build()?, now)?;
    /// let wait = rate.try_acquire(now).unwrap_err();
    /// assert_eq!(wait.as_millis(), 10);
    /// # Ok::<(), paceline::law::PacedSettingsError>(())
    /// ```
    pub fn set_paced(
        &self,
        settings: PacedSettings,
        now: Timestamp,
    ) -> Result<(), PacedSettingsError> {
        let elapsed = self.law.elapsed(now);
        self.words()
            .inspect(|engaged| engaged.lending().end(elapsed));
        // Before and after: see `Gate`.
        self.gate.disturb();
        self.law.set_paced(settings)?;
        self.gate.disturb();
        if self.law.get().unthrottled().later.is_some() {
            self.about_to_limit().adaptation().hold(elapsed);
        }
        if let Some(engaged) = self.words() {
            engaged.adaptation().follow(elapsed);
            // After the line has changed: see `lease`.
            engaged.end_leases();
            engaged
                .second_line_if_made()
                .inspect(|second| second.restart());
            engaged.waking().all(elapsed);
        }
        Ok(())
    }

    /// Returns the settings of [`ControlLaw::Paced`](crate::ControlLaw::Paced) as they are, `None`
    /// under the published law.
    #[must_use]
    pub fn paced_settings(&self) -> Option<PacedSettings> {
        self.law.get().paced()
    }

    /// Takes `now` for the present, whatever later timestamps the limiter has been given.
    ///
    /// A timestamp far in the future makes callers at true time wait until it has come. A reset
    /// brings the limiter back. The fill rate and the measured rate stay as they are; under
    /// [`ControlLaw::Paced`](crate::ControlLaw::Paced) the fill rate is the law's at `now`. A
    /// limiter that limits goes on limiting, and the bucket holds at most what it held. Promised
    /// tokens that are not minted are written off. So each open place may let one request go at
    /// once, whether the place is claimed or given up.
    ///
    /// Calls that overlap the reset, with the timestamps to be undone, may undo the reset.
    pub fn reset(&self, now: Timestamp) {
        let elapsed = self.law.elapsed(now);
        let engaged = self.words();
        engaged.inspect(|engaged| engaged.lending().end(elapsed));
        self.gate.disturb();
        if let Some(engaged) = engaged {
            engaged.state.bring_back(elapsed);
            // Its times were counted from the state before.
            engaged.beside().drain.clear();
            // The times of declared limits may be ahead too. The next report declares the limits
            // again.
            engaged.reports().forget();
        }
        let law = self.law.get();
        let seen = self.gate.look();
        let window_end = self.meter.restart(&law, elapsed);
        if let Some(engaged) = engaged {
            engaged.line().bring_back(elapsed);
            // The rate that the later time brought must not stay, nor its larger bucket.
            if self.law.moves_with_time() {
                engaged.adaptation().follow(elapsed);
            }
            engaged
                .second_line_if_made()
                .inspect(|second| second.restart());
            let line = engaged.line();
            line.give_back(line.ahead(elapsed));
            // After the line has changed: see `lease`.
            engaged.end_leases();
            engaged.waking().all(elapsed);
        } else {
            self.gate.quiet_until(seen, window_end, false);
        }
    }

    /// Forgets every throttle. Until the next throttle the limiter limits nothing, or as at its
    /// start if it has a ceiling or an initial rate.
    ///
    /// For a client that knows better than the law, such as after a limit was raised or a wrong
    /// hint paused all requests. The measured rate stays. Whole tokens that are promised and not
    /// minted are written off, at most as many as the open places ask for. The requests of these
    /// places may go at once, even after the next throttle. So each call lets the requests that
    /// wait at that moment go above the rate, even above a fixed rate or a ceiling. Repeated calls
    /// let 20 % more than the rate go. Call it once for each change, not on a schedule. After a
    /// wrong timestamp, call [`reset`](Self::reset) instead. The debit of a settlement
    /// ([`settle`](Self::settle)) stays owed.
    ///
    /// A throttle that overlaps this call counts as before or after the call. A place taken during
    /// the call may keep its token, and callers after the next throttle then wait for that token.
    /// If the thread stops within this call, requests may be limited by the old rate until the next
    /// response is recorded.
    ///
    /// Two calls at once may each write off what is owed. Each writes off at most what the open
    /// places ask for. So a second call, or a call with an older clock, grants at most that many
    /// tokens again.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp};
    ///
    /// let now = Timestamp::ZERO;
    /// let rate = SendRate::new(ControlLaw::Aws, now);
    /// rate.record(now, SendPermit::sent_at(now), Outcome::Throttled);
    /// assert!(rate.try_acquire(now).is_err());
    /// rate.forget_throttles(now);
    /// assert!(!rate.snapshot(now).enabled);
    /// assert!(rate.try_acquire(now).is_ok());
    /// ```
    pub fn forget_throttles(&self, now: Timestamp) {
        // No atomic operation is in this function itself. Models:
        // `forget::a_throttle_beside_it_counts_before_or_after`,
        // `forget::no_waiter_is_left_behind`.
        let Some(engaged) = self.words() else {
            return; // there was none
        };
        let elapsed = self.law.elapsed(now);
        engaged.lending().hand_back(elapsed);
        engaged.reports().forget();
        let initial = self.law.get().unthrottled().start;
        let _effect = engaged
            .adaptation()
            .replace_state(elapsed, |last, _| match initial {
                Some(memory) => Some(last.begun_anew(elapsed, memory)),
                None => last.is_engaged().then(|| last.forgotten(elapsed)),
            });
        self.meter.forget_cycle();
        engaged
            .second_line_if_made()
            .inspect(|second| second.restart());
        let line = engaged.line();
        line.give_back(line.ahead(elapsed).min(line.open_tokens()));
        engaged.waking().all(elapsed);
    }

    /// Returns `true` if the limiter limits nothing, or its bucket is full. At another rate than
    /// its first, the bucket must have been full for [`LONG_UNUSED`]. A limiter is not idle in a
    /// pause, under a declared limit, or with settings that it was not made with.
    ///
    /// The measured rate does not matter: a new limiter measures it within a window. The answer is
    /// exact while no other thread is at work.
    #[doc(hidden)]
    #[must_use]
    pub fn is_idle(&self, now: Timestamp) -> bool {
        if !self.law.is_as_made() {
            return false;
        }
        let Some(engaged) = self.words() else {
            return true;
        };
        let state = engaged.state.load();
        if engaged.is_background_waiting() {
            return false;
        }
        if !state.is_engaged() {
            return true;
        }
        let now = self.law.elapsed(now);
        let is_at_start = self.law.get().is_at_start(state, now);
        let full_for = if is_at_start { 0 } else { LONG_UNUSED };
        let Some(then) = now.checked_sub(full_for) else {
            return false;
        };
        let (_, mut line) = engaged.line().read();
        let since = line.since.max(state.since());
        let limits = self.law.limits();
        if since > then || limits.is_some_and(|limits| !limits.is_over(now)) {
            return false;
        }
        // In the line, a pause that is over goes on until the next look.
        if line.is_paused() {
            line = line.changed(since, self.law.get().resumed(state));
        }
        let cancelled = engaged.line().waiters.total();
        let issued = engaged.lending().unspent(&line, then, cancelled);
        line.is_full(then, issued, cancelled)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::fixed::SECOND;
    use crate::{ControlLaw, Outcome, SendPermit};

    /// A response that had seen no ceiling switches the limiter off after one was set.
    #[test]
    fn a_ceiling_outlives_a_limiter_that_is_switched_off() {
        let at = Timestamp::from_nanos;
        let second = 1_000_000_000;
        let rate = SendRate::paced(PacedSettings::new(), Timestamp::ZERO);
        let ceiling = PacedSettings::builder()
            .ceiling(10, Duration::from_secs(1))
            .build();
        assert_eq!(
            rate.set_paced(ceiling.expect("in range"), at(second)),
            Ok(())
        );
        let limited = rate.words().expect("it has a ceiling");
        limited
            .adaptation()
            .replace_state(second, |last, _| Some(last.ended()));
        assert!(!rate.snapshot(at(second)).enabled);
        for millis in [1_500, 3_000, 4_500] {
            let now = at(millis * 1_000_000);
            rate.record(now, SendPermit::sent_at(now), Outcome::NotThrottled);
        }
        let now = at(5 * second);
        assert!(rate.snapshot(now).enabled);
        assert_eq!((0..20).filter(|_| rate.try_acquire(now).is_ok()).count(), 1);
    }

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    const PER: Duration = Duration::from_secs(1);

    fn throttle(rate: &SendRate, nanos: u64) {
        rate.record(
            at(nanos),
            SendPermit::sent_at(at(nanos)),
            Outcome::Throttled,
        );
    }

    #[test]
    fn what_was_throttled_is_idle_once_its_bucket_was_full_for_long_or_its_law_has_ended() {
        for law in [ControlLaw::Aws, ControlLaw::Paced] {
            let rate = SendRate::new(law, at(0));
            rate.record(at(0), SendPermit::sent_at(at(0)), Outcome::NotThrottled);
            assert!(rate.is_idle(at(0)) && rate.is_idle(at(SECOND)));
            throttle(&rate, SECOND);
            assert!(!rate.is_idle(at(SECOND)));
            assert!(
                !rate.is_idle(at(SECOND.wrapping_add(LONG_UNUSED))),
                "the token came later"
            );
            assert!(rate.is_idle(at(SECOND.wrapping_mul(3).wrapping_add(LONG_UNUSED))));
        }
        let rate = SendRate::new(ControlLaw::Paced, at(0));
        throttle(&rate, SECOND);
        let engaged = rate.about_to_limit();
        let last = engaged.state.load();
        assert!(engaged.state.replace(last, last.ended()));
        assert!(rate.is_idle(at(SECOND)), "nothing is limited any more");
    }

    #[test]
    fn what_limits_from_the_start_is_idle_while_its_bucket_is_full()
    -> Result<(), PacedSettingsError> {
        let rate = SendRate::paced(PacedSettings::builder().ceiling(10, PER).build()?, at(0));
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
    -> Result<(), PacedSettingsError> {
        let settings = PacedSettings::new();
        let rate = SendRate::paced(settings, at(0));
        rate.set_paced(settings.to_builder().beta_permille(800).build()?, at(0))?;
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
    fn what_has_risen_since_it_began_is_not_idle() -> Result<(), PacedSettingsError> {
        let rate = SendRate::paced(
            PacedSettings::builder().initial_rate(10, PER).build()?,
            at(0),
        );
        assert!(rate.is_idle(at(0)));
        let later = at(SECOND.wrapping_mul(60));
        assert!(!rate.is_idle(later), "a new one would be slower");
        rate.record(later, SendPermit::sent_at(later), Outcome::NotThrottled);
        assert!(!rate.is_idle(later));
        let next = later.as_nanos().wrapping_add(LONG_UNUSED);
        assert!(!rate.is_idle(at(next.wrapping_sub(SECOND))));
        assert!(
            rate.is_idle(at(next.wrapping_add(SECOND))),
            "not used for long"
        );
        Ok(())
    }
}
