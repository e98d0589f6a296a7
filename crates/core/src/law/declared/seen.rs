//! What a limiter sees of a service and its clients, and what no service declares.

use super::ledger::{amount, to_i64};
use crate::fixed::{Rate, SECOND};

/// The time over which the rates of what is taken are averaged.
const TAU: u64 = 5 * SECOND;
/// The most others that count for what is kept back, and the others for each additional request.
const MOST_OTHERS: i128 = 8;
const FOR_ONE: i128 = 2;
/// Requests count as estimated, unless the true costs are less by `1 / COSTLY` or more.
const COSTLY: i128 = 2;
/// Requests cost at least `1 / LEAST_COST` of the estimate.
const LEAST_COST: i128 = 4;

/// What this limiter and others take, and the weight, trip and cost of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// What others take, and what this limiter takes, per second.
    pub(super) others: i64,
    pub(super) own: i64,
    /// What others take, less the excess of this limiter's estimates over true costs.
    pub(super) net: i64,
    /// Whether a request has cost far less than its estimate.
    pub(super) cheaper: bool,
    /// Whether a request was refused while requests counted as less than estimated.
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

    /// Averages in what this limiter and others took in the time `passed`.
    pub(super) fn note_taken(&mut self, own: i128, others: i128, passed: u64) {
        self.others = Self::mean(self.others, others, passed).max(0);
        self.net = Self::mean(self.net, others, passed);
        self.own = Self::mean(self.own, own, passed);
    }

    /// Returns the average of `rate`, and of `tokens` taken in the time `passed`.
    pub(super) fn mean(rate: i64, tokens: i128, passed: u64) -> i64 {
        let gained = (tokens << 12) * i128::from(SECOND);
        let sum = i128::from(rate) * i128::from(TAU) + gained;
        to_i64(sum / i128::from(TAU + passed))
    }

    /// Returns `true` if others take less than a tenth of what this client takes.
    pub(super) const fn is_alone(&self) -> bool {
        self.others.saturating_mul(10) <= self.own
    }

    /// Returns what others are foreseen to take, per second: 0 if this client is as good as alone.
    pub(super) const fn foreseen(&self) -> i64 {
        if self.is_alone() { 0 } else { self.others }
    }

    /// Returns what is kept back where others may be quicker: the weight of the heaviest request,
    /// and more for more others.
    pub(super) fn kept_for_others(&self) -> i128 {
        if self.foreseen() <= 0 {
            return 0;
        }
        let one = amount(self.heaviest);
        let own = i128::from(self.own.max(1));
        // Of `n` equal clients, the others make `n − 1` sends between two of this client.
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

    /// Returns the cost of requests estimated at `estimate`: less than that, if reports say so.
    pub(super) fn cost_of(&self, estimate: i128) -> i128 {
        let (own, net) = (i128::from(self.own), i128::from(self.net));
        if !self.cheaper || self.dear || !self.is_alone() || net * COSTLY > -own || own == 0 {
            return estimate;
        }
        estimate * (own + net).max(own / LEAST_COST) / own
    }

    /// Converts a rate in true costs to a rate in estimates.
    pub(super) fn in_estimates(&self, rate: Rate) -> Rate {
        let one = 1_i128 << 20;
        let cost = u128::try_from(self.cost_of(one)).unwrap_or(1).max(1);
        Rate::from_raw((u128::from(rate.raw()) << 20) / cost)
    }
}
