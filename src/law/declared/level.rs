//! What is left of a declared limit, and what follows from it: who may go now, and at which rate.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "amounts and times are below 2⁶², spans below 2⁵⁶, and products are made in 128 bits"
)]

use super::ledger::{Kind, LONGEST_SPAN, Ledger, after, amount, to_i64, to_u64};
use crate::fixed::SECOND;

/// How many others count for what is kept back, and how many of them for one more request.
const MOST_OTHERS: i128 = 8;
const FOR_ONE: i128 = 2;
/// At most this part of a limit is kept back.
const MOST_KEPT: i128 = 4;
/// Requests cost what they are estimated to, unless it is less by this part or more.
const COSTLY: i128 = 2;
/// They cost at least this part of it.
const LEAST_COST: i128 = 4;
/// All but this part of a limit is enough for any request.
pub(super) const NEARLY: i128 = 32;
/// What is left of a sliding window is spread over this part of it. A client alone comes to rest
/// with a 17th of the limit left, and what went as a burst is spread wider each time it comes back.
const SLIDING_PARTS: u64 = 16;
/// A report stops a client for no longer: then one request asks again.
pub(super) const LONGEST_STOP: u64 = 3_600 * SECOND;

/// Returns the amount that a rate of tokens per second brings in `nanos`.
pub(super) fn brought(rate: i64, nanos: u64) -> i128 {
    i128::from(rate) * i128::from(nanos) / (i128::from(SECOND) << 12)
}

impl Ledger {
    /// Returns how long a request of `weight` is barred at `now` with `sent` sent, in nanoseconds;
    /// `None` if it may go.
    ///
    /// This is all that decides how much may go. What is promised to others does not count.
    pub(crate) fn barred(&self, now: u64, sent: u64, weight: u32) -> Option<u64> {
        if !self.is_declared() {
            return None;
        }
        if now < self.pause {
            return Some(self.pause - now);
        }
        let this = self.rolled(now, sent).unwrap_or(*self);
        let whole = amount(this.limit);
        let own = amount(weight.into());
        let most = own.max(whole - whole / NEARLY).min(whole);
        let need = (own + this.kept_back()).min(most);
        let (level, _) = this.level(now, sent);
        (level < need).then(|| this.until(now, need - level))
    }

    /// Returns the nanoseconds after which `lacking` may be back, at least 1.
    pub(super) fn until(&self, now: u64, lacking: i128) -> u64 {
        let ends = self.ends_at();
        let at = if self.comes_back() {
            let nanos = lacking * i128::from(self.window) / amount(self.limit).max(1);
            ends.min(now.saturating_add(to_u64(nanos)))
        } else {
            ends
        };
        at.saturating_sub(now).max(1)
    }

    /// Returns the time to the reset, at most; `None` if there is none ahead.
    pub(crate) fn resets_in(&self, now: u64) -> Option<u64> {
        if self.comes_back() || !self.reset.is_known() {
            return None;
        }
        let at = u64::try_from(self.reset.hi).ok()?;
        at.checked_sub(now).filter(|span| *span > 0)
    }

    /// Returns when the window ends, or when an hour without a report does.
    pub(crate) fn ends_at(&self) -> u64 {
        let end = if !self.comes_back() && self.reset.is_known() {
            u64::try_from(self.reset.hi).unwrap_or(0)
        } else {
            self.at.saturating_add(self.window)
        };
        end.min(
            self.quiet_since()
                .saturating_add(LONGEST_STOP.max(self.trip)),
        )
    }

    /// Returns `true` if nothing that was told holds any more: the window has ended, or an hour
    /// without a report, and the service asks for no pause.
    #[cfg(feature = "std")]
    pub(crate) fn is_over(&self, now: u64) -> bool {
        now >= self.pause.max(self.ends_at())
    }

    /// Returns when the last report came, or when a window or an hour began since.
    fn quiet_since(&self) -> u64 {
        self.at.max(self.heard_at)
    }

    /// Returns the ledger once an hour has passed without a report: as much is left as one request
    /// takes. What others took before is too old to be foreseen, or it would bar that request.
    pub(super) fn probed(&self, now: u64, sent: u64) -> Option<Self> {
        let passed = now.saturating_sub(self.quiet_since()) / LONGEST_STOP;
        let one = amount(self.heaviest.max(1));
        if passed == 0 || self.level(now, sent).0 >= one + self.kept_back() {
            return None;
        }
        let alone = Self { others: 0, ..*self };
        Some(Self {
            left: to_i64((one + alone.kept_back()).min(amount(self.limit))),
            position: sent,
            at: self.quiet_since() + passed * LONGEST_STOP,
            ..alone
        })
    }

    /// Returns the position up to which requests may go at `now` and later, whatever time does.
    pub(crate) fn edge(&self, now: u64, sent: u64) -> u64 {
        if now < self.pause {
            return sent;
        }
        let this = self.rolled(now, sent).unwrap_or(*self);
        let (mut level, _) = this.level(now, sent);
        if !this.comes_back() {
            // What others are yet foreseen to take.
            let age = now.saturating_sub(this.at).min(this.trip * 4);
            level -= brought(this.foreseen(), this.trip * 4 - age);
        }
        sent.saturating_add(to_u64((level - this.kept_back()).max(0)) >> 20)
    }

    /// Returns what is left at `now`, and the time until the limit is whole.
    pub(crate) fn level(&self, now: u64, sent: u64) -> (i128, u64) {
        let age = now.saturating_sub(self.at).min(LONGEST_SPAN);
        let unseen = self.cost_of(amount(after(sent, self.position).max(0).unsigned_abs()));
        let whole = amount(self.limit);
        if self.comes_back() {
            let seen = age.min(self.trip * 2);
            // Others are foreseen for two trips only, and never to take more than comes back.
            let taken = brought(self.foreseen(), seen).min(self.back(seen));
            let level = (i128::from(self.left) + self.back(age) - taken).min(whole) - unseen;
            let rest = if self.kind == Kind::Sliding {
                i128::from(self.window / SLIDING_PARTS)
            } else {
                (whole - level).max(0) * i128::from(self.window) / whole.max(1)
            };
            return (level, to_u64(rest).min(LONGEST_SPAN));
        }
        let taken = brought(self.foreseen(), age.min(self.trip * 4));
        let level = i128::from(self.left) - taken - unseen;
        let rest = i128::from(self.reset.lo) - i128::from(now);
        (level, to_u64(rest).min(LONGEST_SPAN))
    }

    /// Returns what comes back in `nanos` after the anchor.
    pub(super) fn back(&self, nanos: u64) -> i128 {
        let of = match self.kind {
            Kind::Unknown | Kind::Window => 0,
            Kind::Refill => amount(self.limit),
            // As if it had been used evenly.
            Kind::Sliding => amount(self.limit) - i128::from(self.left),
        };
        of.max(0) * i128::from(nanos) / i128::from(self.window.max(1))
    }

    /// Returns what others are foreseen to take, per second: nothing if this client is as good as
    /// alone.
    fn foreseen(&self) -> i64 {
        if self.is_alone() { 0 } else { self.others }
    }

    /// Returns what requests cost that were estimated to cost `estimate`: less, if reports say so.
    pub(super) fn cost_of(&self, estimate: i128) -> i128 {
        let (own, net) = (i128::from(self.own), i128::from(self.net));
        if !self.cheaper || self.dear || !self.is_alone() || net * COSTLY > -own || own == 0 {
            return estimate;
        }
        estimate * (own + net).max(own / LEAST_COST) / own
    }

    /// Returns `true` if others take less than a tenth of what this client takes.
    pub(super) fn is_alone(&self) -> bool {
        self.others.saturating_mul(10) <= self.own
    }

    /// Returns what is kept back: the heaviest request where others may be quicker, and what
    /// reports say too much.
    pub(super) fn kept_back(&self) -> i128 {
        let others = if self.foreseen() > 0 {
            let one = amount(self.heaviest);
            let own = i128::from(self.own.max(1));
            // Of `n` that are equal the others make `n − 1` sends between two of this one.
            let others = i128::from(self.others).min(own * MOST_OTHERS);
            one + one * others / (own * FOR_ONE)
        } else {
            0
        };
        (others + i128::from(self.kept)).min(amount(self.limit) / MOST_KEPT)
    }

    /// Returns how much of the limit is left, in 2⁻³² of it.
    pub(crate) fn share_left(&self, now: u64, sent: u64) -> u64 {
        let (level, _) = self.level(now, sent);
        to_u64((level.max(0) << 32) / amount(self.limit).max(1))
    }
}
