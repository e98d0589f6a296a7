//! The pace: the rate at which a limiter's line mints because of a declared limit (rules 4 and 5).

use super::Spend;
use super::ledger::{LONGEST_STOP, Ledger, Source, UNIT, amount, to_u64};
use super::level::Standing;
use crate::fixed::{Rate, SECOND};

/// The least time over which the rest of a limit is spread.
const LEAST_SPREAD: u64 = 50_000_000;
/// The least rate while something is left: one token in 6 days, which is no pause.
const SLOWEST: Rate = Rate::from_bits(1 << 15);
/// Until the second report, one token goes in this time at least.
const FIRST: u64 = 10 * SECOND;
/// The least rate of a limit without a report for the longest stop: the next request goes at once.
const UNHEARD: Rate = Rate::from_bits(u64::MAX / SECOND);

/// The rate at which a limiter's line mints because of a declared limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The rate from now on, or from `until` on.
    pub(crate) rate: Rate,
    /// Until when nothing may go.
    pub(crate) until: Option<u64>,
    /// The nanoseconds until one more token goes: at `rate`, or at the end of the window, or after
    /// an hour without a report.
    pub(crate) one_more: u64,
}

impl Plan {
    /// Returns the plan that allows less.
    pub(crate) fn stricter(self, other: Self) -> Self {
        let rate = match (self.until, other.until) {
            (Some(_), None) => self.rate,
            (None, Some(_)) => other.rate,
            _ => self.rate.min(other.rate),
        };
        Self {
            rate,
            until: self.until.max(other.until),
            one_more: self.one_more.max(other.one_more),
        }
    }

    /// Returns the plan with a rate of at most `most`.
    pub(crate) fn at_most(self, most: Rate) -> Self {
        Self {
            rate: self.rate.min(most),
            one_more: self.one_more.max(most.nanos_per_token()),
            ..self
        }
    }

    /// Returns the rate from now on, [`Rate::LEAST`] while nothing may go.
    pub(crate) fn rate_now(&self) -> Rate {
        self.until.map_or(self.rate, |_| Rate::LEAST)
    }
}

impl Standing {
    /// Returns the rate, and until when nothing may go, if anything has to wait.
    fn plan(&self, spend: Spend, promised: i128) -> (Rate, Option<u64>) {
        let Self { ledger, now, sent } = self;
        let (level, rest) = self.level();
        let promised = ledger.seen.cost_of(promised);
        let free = level - ledger.kept_back() - promised.min(amount(ledger.limit));
        if free >= UNIT {
            return (ledger.rate(spend, *now, free, rest), None);
        }
        let (rate, until) = if ledger.comes_back() {
            let until = now + self.until(UNIT - free);
            (ledger.rate(spend, until, UNIT, rest), until)
        } else {
            let until = ledger.ends_at().max(now + 1);
            let next = ledger.standing(until, *sent);
            let (level, rest) = next.level();
            let free = (level - next.ledger.kept_back()).max(UNIT);
            (next.ledger.rate(spend, until, free, rest), until)
        };
        // Waits over a pause are estimated by this rate, at least one token in a window. Places
        // that the pace has not reached within a window move up, when one of them asks.
        let least = Rate::from_ratio(1, ledger.window.max(1));
        (rate.max(least), Some(until))
    }
}

impl Ledger {
    /// Returns the plan at `now`, after the sends up to `sent`. `promised` is the amount minted for
    /// requests that have not gone yet.
    pub(crate) fn plan(&self, spend: Spend, now: u64, sent: u64, promised: i128) -> Plan {
        let from = now.max(self.pause);
        let (rate, until) = self.standing(from, sent).plan(spend, promised);
        let until = until.or((from > now).then_some(from));
        let paced = until.map_or_else(|| rate.nanos_per_token(), |until| until - now);
        let one_more = match self.ends_at().saturating_sub(now) {
            0 => paced,
            ends => paced.min(ends),
        };
        Plan {
            rate,
            until,
            one_more,
        }
    }

    /// Returns the rate that spends `free` of what is left before the limit is whole.
    fn rate(&self, spend: Spend, now: u64, free: i128, rest: u64) -> Rate {
        let spread = match spend {
            Spend::Even => rest,
            Spend::Fast => rest.min(SECOND.max(self.seen.trip * 2)),
        };
        let spread = spread.max(self.seen.trip / 4).max(LEAST_SPREAD);
        let free = u128::try_from(free).unwrap_or(0);
        let rate = Rate::from_raw(((free * self.seen.part()) << 12) / u128::from(spread));
        let is_blind = !self.comes_back() && self.reset.width() >= self.window / 2;
        let most = if is_blind {
            // The end of the window is not known. If the window is used up early, the client has to
            // wait until it has ended for sure, which costs two windows.
            self.even().scaled(15, 16)
        } else if now < self.early_until() {
            self.even()
        } else if self.is_contradicted(now) && !self.unhelped {
            // What another limit has refused is left of this limit. An eighth by `σ^¾`, so that
            // parts become equal.
            let part = self.seen.share() * 7 + self.seen.part();
            Rate::from_raw((u128::from(self.even().raw()) * part) >> 35)
        } else {
            Rate::MAX
        };
        let unheard = now >= self.heard_at.saturating_add(LONGEST_STOP);
        let is_new = self.first && now < self.at.saturating_add(2 * FIRST);
        let is_guess = is_new && self.source == Source::Guessed;
        let least = match (unheard, is_guess) {
            (true, _) => UNHEARD,
            // The pace as before the first report: that report may have another meaning than it
            // seems to.
            (false, true) => Rate::from_ratio(1, FIRST),
            (false, false) => SLOWEST,
        };
        self.seen.in_estimates(rate.min(most)).max(least)
    }

    /// Returns until when, after the first report, no more goes than `L/W`; 0 after a second
    /// report.
    pub(crate) const fn early_until(&self) -> u64 {
        if self.first {
            self.heard_at.saturating_add(self.seen.trip * 2)
        } else {
            0
        }
    }

    /// Returns when a pause ended that is over at `now`. The first token of a window that has begun
    /// is there at once, so minting at `rate` begins that much earlier.
    pub(crate) fn resumed_at(&self, now: u64, rate: Rate) -> u64 {
        let begun = if self.fresh {
            self.at.saturating_sub(self.lead(rate))
        } else {
            0
        };
        match self.pause.max(begun) {
            0 => now,
            end => end.min(now),
        }
    }

    /// Returns `true` if most of a window's first token is missing, because the line changed at
    /// `since`, too late to mint the token in time.
    pub(crate) fn lacks_first(&self, since: u64, rate: Rate) -> bool {
        self.fresh && self.seen.is_alone() && self.at < since.saturating_add(self.lead(rate) / 2)
    }

    /// Returns the time in which `rate` mints the first token of a window, or a part of a token
    /// where many share the limit.
    fn lead(&self, rate: Rate) -> u64 {
        let share = (u128::from(self.limit) * self.seen.part()) >> 2;
        let token = if self.seen.is_alone() {
            1 << 64
        } else {
            (share << 32).min(1 << 64)
        };
        let nanos = token.checked_div(u128::from(rate.raw())).unwrap_or(0);
        to_u64(i128::try_from(nanos).unwrap_or(0)).min(self.window)
    }

    /// Returns the limit as a rate.
    fn even(&self) -> Rate {
        Rate::from_raw((u128::from(self.limit) << 64) / u128::from(self.window.max(1)))
    }
}
