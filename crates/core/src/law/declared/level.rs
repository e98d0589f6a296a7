//! What is left of a declared limit at a time, and which requests may go then.

use super::ledger::{Kind, LONGEST_SPAN, Ledger, after, amount, to_u64};
use super::seen::brought;

/// All of a limit but `1 / NEARLY` is enough for a request of that weight.
pub(super) const NEARLY: i128 = 32;
/// What is left of a sliding window is spread over `1 / SLIDING_PARTS` of the window. A client
/// alone comes to rest with a 17th of the limit left. A burst is spread wider each time its tokens
/// come back.
const SLIDING_PARTS: u64 = 16;

/// A limit at the time `now`, after all sends up to the position `sent`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) ledger: Ledger,
    pub(crate) now: u64,
    pub(super) sent: u64,
}

impl Ledger {
    /// Returns the limit at `now`, after the sends up to `sent`, in the window that was told last.
    pub(crate) const fn as_told(&self, now: u64, sent: u64) -> Standing {
        let ledger = *self;
        Standing { ledger, now, sent }
    }

    /// Returns the limit at `now`, after the sends up to `sent`, in the window of that time.
    pub(crate) fn standing(&self, now: u64, sent: u64) -> Standing {
        self.rolled(now, sent).unwrap_or(*self).as_told(now, sent)
    }
}

impl Standing {
    /// Returns how long a request of `weight` is barred, in nanoseconds; `None` if it may go.
    ///
    /// This function alone decides how much may go. Promised tokens do not count.
    pub(crate) fn barred(&self, weight: u32) -> Option<u64> {
        let Self { ledger, now, .. } = self;
        if !ledger.is_declared() {
            return None;
        }
        if *now < ledger.pause {
            return Some(ledger.pause - now);
        }
        let whole = amount(ledger.limit);
        let own = amount(weight.into());
        let most = own.max(whole - whole / NEARLY).min(whole);
        let need = (own + ledger.kept_back()).min(most);
        let (level, _) = self.level();
        (level < need).then(|| self.until(need - level))
    }

    /// Returns the nanoseconds after which the amount `lacking` may be back, at least 1.
    pub(super) fn until(&self, lacking: i128) -> u64 {
        let Self { ledger, now, .. } = self;
        let ends = ledger.ends_at();
        let at = if ledger.comes_back() {
            let nanos = lacking * i128::from(ledger.window) / amount(ledger.limit).max(1);
            ends.min(now.saturating_add(to_u64(nanos)))
        } else {
            ends
        };
        at.saturating_sub(*now).max(1)
    }

    /// Returns whether the limit comes back little by little, if that is known.
    pub(crate) const fn refills(&self) -> Option<bool> {
        match self.ledger.kind {
            Kind::Refill => Some(true),
            Kind::Window => Some(false),
            Kind::Unknown | Kind::Sliding => None,
        }
    }

    /// Returns the most nanoseconds to the reset; `None` if no reset is ahead.
    pub(crate) fn resets_in(&self) -> Option<u64> {
        let reset = Some(self.ledger.reset.hi).filter(|_| self.ledger.resets())?;
        let span = u64::try_from(reset).ok()?.checked_sub(self.now);
        span.filter(|span| *span > 0)
    }

    /// Returns the position up to which requests may go, now and later.
    pub(crate) fn edge(&self) -> u64 {
        let Self { ledger, now, sent } = self;
        if *now < ledger.pause {
            return *sent;
        }
        let (mut level, _) = self.level();
        if !ledger.comes_back() {
            // What others are still foreseen to take.
            let trips = ledger.seen.trip * 4;
            let age = now.saturating_sub(ledger.at).min(trips);
            level -= brought(ledger.seen.foreseen(), trips - age);
        }
        sent.saturating_add(to_u64((level - ledger.kept_back()).max(0)) >> 20)
    }

    /// Returns what is left, and the time until the limit is whole.
    pub(crate) fn level(&self) -> (i128, u64) {
        let Self { ledger, now, sent } = self;
        let seen = &ledger.seen;
        let age = now.saturating_sub(ledger.at).min(LONGEST_SPAN);
        let unseen = seen.cost_of(amount(after(*sent, ledger.position).max(0).unsigned_abs()));
        let whole = amount(ledger.limit);
        if ledger.comes_back() {
            let trips = age.min(seen.trip * 2);
            // Others are foreseen for two trips only, and never to take more than comes back.
            let taken = brought(seen.foreseen(), trips).min(ledger.back(trips));
            let back = i128::from(ledger.left) + ledger.back(age);
            let level = (back - taken).min(whole) - unseen;
            let rest = if ledger.kind == Kind::Sliding {
                i128::from(ledger.window / SLIDING_PARTS)
            } else {
                (whole - level).max(0) * i128::from(ledger.window) / whole.max(1)
            };
            return (level, to_u64(rest).min(LONGEST_SPAN));
        }
        let taken = brought(seen.foreseen(), age.min(seen.trip * 4));
        let level = i128::from(ledger.left) - taken - unseen;
        let rest = i128::from(ledger.reset.lo) - i128::from(*now);
        (level, to_u64(rest).min(LONGEST_SPAN))
    }

    /// Returns the part of the limit that is left, in 2⁻³².
    pub(crate) fn share_left(&self) -> u64 {
        let (level, _) = self.level();
        to_u64((level.max(0) << 32) / amount(self.ledger.limit).max(1))
    }
}
