//! What is seen of a service and its clients, and declared by no service.

use super::ledger::{amount, to_i64};
use crate::fixed::{Rate, SECOND};

/// What is taken is averaged over this time.
const TAU: u64 = 5 * SECOND;
/// How many others count for what is kept back, and how many of them for one more request.
const MOST_OTHERS: i128 = 8;
const FOR_ONE: i128 = 2;
/// Requests cost what they are estimated to, unless it is less by this part or more.
const COSTLY: i128 = 2;
/// They cost at least this part of it.
const LEAST_COST: i128 = 4;

/// What this limiter and others take, and what requests are like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// What others and what this limiter take, per second.
    pub(super) others: i64,
    pub(super) own: i64,
    /// What others take, less what requests of this limiter were estimated to cost in excess.
    pub(super) net: i64,
    /// Whether a request has cost far less than it was estimated to.
    pub(super) cheaper: bool,
    /// Whether one was refused while that was counted on.
    pub(super) dear: bool,
    pub(super) heaviest: u64,
    /// The mean time from a request to its report.
    pub(super) trip: u64,
}

/// Returns the amount that a rate of tokens per second brings in `nanos`.
pub(super) fn brought(rate: i64, nanos: u64) -> i128 {
    i128::from(rate) * i128::from(nanos) / (i128::from(SECOND) << 12)
}

/// Returns the square root of a fraction of 32 bits.
fn root(fraction: u128) -> u128 {
    (fraction << 32).isqrt()
}

impl Seen {
    /// Notes a request of `weight` that was answered after `trip`.
    pub(super) fn note_request(&mut self, trip: u64, weight: u32) {
        self.trip = match self.trip {
            0 => trip,
            mean => mean - mean / 8 + trip / 8,
        };
        self.heaviest = (self.heaviest - self.heaviest / 64).max(u64::from(weight));
    }

    /// Averages what this limiter and others took in the time that passed.
    pub(super) fn note_taken(&mut self, own: i128, others: i128, passed: u64) {
        self.others = Self::mean(self.others, others, passed).max(0);
        self.net = Self::mean(self.net, others, passed);
        self.own = Self::mean(self.own, own, passed);
    }

    /// Returns the average of a rate and of what was taken in the time that passed.
    pub(super) fn mean(rate: i64, tokens: i128, passed: u64) -> i64 {
        let gained = (tokens << 12) * i128::from(SECOND);
        let sum = i128::from(rate) * i128::from(TAU) + gained;
        to_i64(sum / i128::from(TAU + passed))
    }

    /// Returns `true` if others take less than a tenth of what this client takes.
    pub(super) const fn is_alone(&self) -> bool {
        self.others.saturating_mul(10) <= self.own
    }

    /// Returns what others are foreseen to take, per second: nothing if this client is as good as
    /// alone.
    pub(super) const fn foreseen(&self) -> i64 {
        if self.is_alone() { 0 } else { self.others }
    }

    /// Returns what is kept back where others may be quicker: the heaviest request, and more for
    /// more others.
    pub(super) fn kept_for_others(&self) -> i128 {
        if self.foreseen() <= 0 {
            return 0;
        }
        let one = amount(self.heaviest);
        let own = i128::from(self.own.max(1));
        // Of `n` that are equal the others make `n − 1` sends between two of this one.
        let others = i128::from(self.others).min(own * MOST_OTHERS);
        one + one * others / (own * FOR_ONE)
    }

    /// Returns this limiter's part of what is taken: σ, with 32 fraction bits.
    pub(super) fn share(&self) -> u128 {
        let own = u128::from(self.own.max(0).unsigned_abs());
        let others = u128::from(self.others.max(0).unsigned_abs());
        let share = (own << 32).checked_div(own + others);
        share.unwrap_or(1 << 32)
    }

    /// Returns σ^¾, with 32 fraction bits.
    pub(super) fn part(&self) -> u128 {
        let share = self.share();
        if share == 0 {
            return 1 << 30;
        }
        let half = root(share);
        (half * root(half)) >> 32
    }

    /// Returns what requests cost that were estimated to cost `estimate`: less, if reports say so.
    pub(super) fn cost_of(&self, estimate: i128) -> i128 {
        let (own, net) = (i128::from(self.own), i128::from(self.net));
        if !self.cheaper || self.dear || !self.is_alone() || net * COSTLY > -own || own == 0 {
            return estimate;
        }
        estimate * (own + net).max(own / LEAST_COST) / own
    }

    /// Returns a rate of what requests cost as one of what they are estimated to cost.
    pub(super) fn in_estimates(&self, rate: Rate) -> Rate {
        let one = 1_i128 << 20;
        let cost = u128::try_from(self.cost_of(one)).unwrap_or(1).max(1);
        Rate::from_raw((u128::from(rate.raw()) << 20) / cost)
    }
}
