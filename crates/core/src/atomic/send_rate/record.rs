//! What is recorded: an outcome is counted, and looked at if there may be something to do.

use core::time::Duration;

use super::SendRate;
use crate::law::{Recorded, State};
use crate::{Outcome, SendPermit, Timestamp};

impl SendRate {
    /// Records the outcome of a request, and returns what that did to the send rate.
    ///
    /// Call it once for every response, throttled or not, and for every attempt that failed without
    /// a response. A request that was sent and then given up is [`Outcome::Unknown`].
    #[allow(
        clippy::must_use_candidate,
        reason = "called for its effect, which the models' atomics hide"
    )]
    pub fn record(&self, now: Timestamp, permit: SendPermit, outcome: Outcome) -> Recorded {
        let elapsed = self.law.elapsed(now);
        let mut refused = permit.weight();
        let hint = match outcome {
            Outcome::NotThrottled => {
                self.law.note_answer();
                self.meter.count(permit.weight());
                return self.look(elapsed, permit, outcome);
            }
            Outcome::Failed | Outcome::Unknown => {
                let outcome = self.law.note_unserved(outcome);
                self.meter.count_unserved(permit.weight(), outcome);
                return self.look(elapsed, permit, outcome);
            }
            Outcome::Throttled => Duration::ZERO,
            Outcome::ThrottledFor(hint) => hint,
            Outcome::PauseAfter(span) => {
                refused = 0;
                span
            }
            Outcome::PartlyThrottled(part) => {
                refused = part.of(refused);
                Duration::ZERO
            }
        };
        self.law.note_answer();
        self.gate.engage();
        self.about_to_limit()
            .adaptation()
            .throttled(elapsed, permit, refused, hint)
    }

    /// Records the outcome of a request like [`record`](Self::record), and asks for the time only
    /// if it matters.
    ///
    /// Reading the clock costs more than the rest of an unlimited request. So while nothing is
    /// limited, a thread reads the clock once for as many requests as came in a millisecond, at
    /// most 255. A thread whose requests come evenly reads the clock every 2 ms or more often. A
    /// slow thread reads it for each request.
    ///
    /// # What it costs in exactness
    ///
    /// No count is lost or late. Only the end of a window, in which the rate is measured, is
    /// noticed late. The delay is 2 ms if requests come evenly, and up to 255 requests of each
    /// thread if their rate drops. So at the first throttle the measured rate may be off by 1/250,
    /// and by more if the traffic had just subsided. From then on every request reads the clock.
    /// Threads beyond 256, and all threads without the feature `std`, read the clock each time.
    #[allow(
        clippy::must_use_candidate,
        reason = "called for its effect, which the models' atomics hide"
    )]
    pub fn record_with(
        &self,
        now: impl FnOnce() -> Timestamp,
        permit: SendPermit,
        outcome: Outcome,
    ) -> Recorded {
        if outcome != Outcome::NotThrottled || permit.weight() != 1 {
            return self.record(now(), permit, outcome);
        }
        if self.count_untimed() {
            return Recorded::Counted;
        }
        let elapsed = self.law.elapsed(now());
        self.law.note_answer();
        if self.gate.load().is_engaged() {
            self.meter.count(1);
        } else {
            self.meter.count_at(elapsed);
        }
        self.look(elapsed, permit, Outcome::NotThrottled)
    }

    /// Looks at the limiter after a response was counted. There is nothing to do while the gate is
    /// quiet.
    #[inline]
    fn look(&self, elapsed: u64, permit: SendPermit, outcome: Outcome) -> Recorded {
        let gate = self.gate.load();
        if gate.is_quiet_for_responses(elapsed) {
            return Recorded::Counted;
        }
        self.look_closely(elapsed, permit, outcome)
    }

    #[inline(never)]
    fn look_closely(&self, elapsed: u64, permit: SendPermit, outcome: Outcome) -> Recorded {
        if let Some(engaged) = self.words() {
            return engaged.adaptation().answered(elapsed, permit, outcome);
        }
        let gate = self.gate.look();
        let sent = self.law.sent_at(permit, elapsed);
        let window = self.meter.turn(&self.law.get(), State::NONE, elapsed, sent);
        self.gate.quiet_until(gate, window.end, false);
        Recorded::Counted
    }
}
