//! What a throttle does to a ledger (rule 11).

use super::ledger::{LONGEST_SPAN, Ledger, UNIT, amount, signed, to_i64};
use crate::fixed::SECOND;

/// A request sent this long after a pause was sent within rule 5.
const CALM: u64 = 10 * SECOND;

/// A throttle of the send at `order`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(crate) now: u64,
    pub(crate) order: u64,
    /// When the pause ends that the service asked for; `now` if the service asked for none.
    pub(crate) until: u64,
    /// Whether this limit explains the throttle.
    pub(crate) blamed: bool,
}

impl Ledger {
    /// Returns the ledger after a throttle, and whether the throttle contradicts the reports.
    pub(crate) fn throttle(&self, refused: &Refused) -> (Self, bool) {
        let mut next = *self;
        let until = refused.until.min(refused.now.saturating_add(LONGEST_SPAN));
        next.pause = next.pause.max(until);
        // The service may refuse requests by their estimated costs.
        next.seen.dear |= self.seen.cost_of(UNIT) < UNIT;
        if !refused.blamed {
            return (next, false);
        }
        let Some(left) = self.told_left(refused.order) else {
            // A service that no longer declares its limit may have changed the limit.
            let silent = refused.now > self.heard_at.saturating_add(self.window);
            if silent {
                next.contradict(self, refused.now);
            }
            return (next, silent);
        };
        if left < self.seen.heaviest.max(1) {
            return (next, false);
        }
        if left > self.limit / 4 {
            next.contradict(self, refused.now);
            return (next, true);
        }
        // Reports say too much, or there is another limit. A refusal by this limit asks to wait for
        // its reset.
        if self.resets() && signed(until) >= self.reset.lo {
            let more = amount(left.saturating_add(self.seen.heaviest));
            next.kept = next.kept.max(to_i64(more.min(amount(self.limit / 4))));
        }
        (next, true)
    }

    fn contradict(&mut self, last: &Self, now: u64) {
        // `L/W` does not help against the other limit if a request sent at no more than `L/W` is
        // refused.
        let calm = now
            > last
                .pause
                .saturating_add(CALM.max(self.seen.trip.saturating_mul(4)));
        self.unhelped = calm && self.seen.is_alone() && self.is_contradicted(now);
        let long = self.window.saturating_mul(10).max(60 * SECOND);
        self.contradicted = now.saturating_add(long.min(LONGEST_SPAN));
    }
}
