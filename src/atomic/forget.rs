//! The way back from throttles.

use super::send_rate::SendRate;
use crate::Timestamp;
use crate::paced::started_at;

impl SendRate {
    /// Forgets every throttle: the limiter limits nothing until the next one, or as from the start if it has a ceiling or an
    /// initial rate.
    ///
    /// For a client that knows better than the law, such as after a limit was raised or a wrong hint paused all. What
    /// was measured stays. Whole tokens promised beyond those minted are written off: who stands in line may go at once, even
    /// after the next throttle.
    ///
    /// A throttle that overlaps it counts as one before it or after it. A place taken while it goes on may keep its token, for
    /// which those wait who come after the next throttle. If the thread stops for ever within this call, requests may be limited
    /// by the old rate until the next response is recorded.
    ///
    /// Of two calls at once each may write off what was owed, so that up to the bucket's capacity is granted once more.
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
        // No atomic of its own. Models: `forget::a_throttle_beside_it_counts_before_or_after`, `forget::nobody_is_left_behind`.
        let Some(limited) = self.limited() else {
            return; // there was none
        };
        let elapsed = self.elapsed(now);
        let settings = self.paced_settings();
        let start = settings.and_then(|settings| Some(started_at(&settings, settings.start()?)));
        limited.replace_throttle(elapsed, |last, _| match start {
            Some(memory) => Some(last.begun_anew(elapsed, memory.to_bits())),
            None => last.is_engaged().then(|| last.forgotten(elapsed)),
        });
        limited.write_off(elapsed);
        limited.nudge(elapsed);
    }
}
