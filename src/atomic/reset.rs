//! The way back from a wrong timestamp.

use super::law::Law;
use super::limit::Limited;
use super::send_rate::SendRate;
use crate::Timestamp;
use crate::fixed::Rate;
use crate::line::TOKEN;

impl SendRate {
    /// Takes `now` for the present, whatever later timestamps the limiter has been given.
    ///
    /// A timestamp far in the future makes callers at true time wait until it has come. This brings the
    /// limiter back: the fill rate and the measured rate stay as they are (under
    /// [`ControlLaw::Paced`](crate::ControlLaw::Paced) the fill rate is the law's at `now`), what is limited stays
    /// limited, and the bucket holds at most what it held. Tokens promised beyond those minted are written off: each
    /// place that is open may let one request go at once, whether it is claimed or given up.
    ///
    /// Calls that overlap it, with timestamps that it is meant to undo, may undo it in turn.
    pub fn reset(&self, now: Timestamp) {
        let elapsed = self.elapsed(now);
        let limited = self.limited();
        if let Some(limited) = limited {
            limited.throttle.bring_back(elapsed);
        }
        let window_end = match self.law {
            Law::Aws => self.meter.restart(self.windows, elapsed).end,
            Law::Paced(_) => self.meter.restart_delivery(elapsed),
        };
        self.gate.close_at(window_end);
        if let Some(limited) = limited {
            limited.reset(elapsed);
            limited.nudge(elapsed);
        }
    }
}

impl Limited<'_> {
    /// Begins a segment at `elapsed`, and writes off what was promised beyond.
    fn reset(&self, elapsed: u64) {
        loop {
            let (head, line) = self.segments.read();
            let next = |since| head.next(since, head.rate(), head.throttle());
            if head.rate() == Rate::ZERO || self.end_segment(head, &line, elapsed, next) {
                break;
            }
        }
        if !self.law.is_published() {
            // What that time made of the rate must not stay, nor a bucket as large.
            self.follow_curve(elapsed);
        }
        self.write_off(elapsed);
    }

    /// Gives back the tokens that were promised but not minted by `elapsed`.
    pub(super) fn write_off(&self, elapsed: u64) {
        let (_, line) = self.segments.read();
        let ahead = self.last_rank().since(line.minted_at(elapsed).to_place());
        if let Ok(ahead) = u64::try_from(ahead) {
            self.cancellations.write_off(ahead / TOKEN);
        }
    }
}
