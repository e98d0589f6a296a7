//! The way back from a wrong timestamp.

use super::send_rate::SendRate;
use super::sync::Ordering::Relaxed;
use crate::Timestamp;
use crate::fixed::Rate;
use crate::line::{Place, TOKEN};

impl SendRate {
    /// Takes `now` for the present, whatever later timestamps the limiter has been given.
    ///
    /// A timestamp far in the future makes callers at true time wait until it has come. This brings the
    /// limiter back: the fill rate and the measured rate stay as they are, what is limited stays limited, and the
    /// bucket holds at most what it held. Tokens promised beyond those minted are written off: each place that
    /// is open may let one request go at once, whether it is claimed or given up.
    ///
    /// Calls that overlap it, with timestamps that it is meant to undo, may undo it in turn.
    pub fn reset(&self, now: Timestamp) {
        let elapsed = self.elapsed(now);
        self.throttle.bring_back(elapsed);
        self.gate.close_at(self.meter.restart(elapsed).end);
        loop {
            let (head, line) = self.segments.read();
            let next = |since| head.next(since, head.rate(), head.throttle());
            if head.rate() == Rate::ZERO || self.end_segment(head, &line, elapsed, next) {
                break;
            }
        }
        self.write_off(elapsed);
    }

    /// Gives back the tokens that were promised but not minted by `elapsed`.
    fn write_off(&self, elapsed: u64) {
        let (_, line) = self.segments.read();
        let cancelled = self.cancellations.total();
        // Relaxed, after `cancelled`: see `issue`.
        let issued = Place::from_bits(self.issued.load(Relaxed));
        let ahead = issued
            .less_tokens(cancelled)
            .since(line.minted_at(elapsed).to_place());
        if let Ok(ahead) = u64::try_from(ahead) {
            self.cancellations.write_off(ahead / TOKEN);
        }
    }
}
