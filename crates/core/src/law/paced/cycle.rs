//! Cycles from opening to opening: their counts, and the growth of the rate (rules 17 to 20).

#![allow(
    clippy::arithmetic_side_effects,
    reason = "times are below 2⁶², counts and factors below 2⁴⁵, and products are made in 128 bits"
)]

use core::num::NonZeroU64;

use super::coarse::{OF_CALM, OF_RATE, ONE, narrow, pack, pack_up, power, three_quarters, unpack};
use super::cut_state::CutState;
use crate::bits::{Field, TIME_BITS};
use crate::fixed::{Rate, SECOND};
use crate::law::Event;

/// The answers until growth is felt (a calm), at one a second and more.
const CALM: u64 = 40;
/// The longest calm that the state holds, in quarters of an answer.
pub(super) const MOST_CALM: u64 = 63 << 30;
/// The least growth in a calm, as a part of the rate, 16 fraction bits.
const GROWTH: u64 = ONE / 100;
/// The most calms that are counted, 10 fraction bits.
pub(super) const MOST_CALMS: u64 = 64 << 10;
/// The number of steps in a calm; the rate grows with each step.
const STEPS: u64 = 16;
/// Growth by [`BEYOND`] after [`ENOUGH`] answers shows that no window holds the rate back.
const BEYOND: u64 = ONE / 2;
const ENOUGH: u64 = 32;
/// At fewer tokens a second, a law of seconds has too few answers.
pub(super) const FEW_A_SECOND: u32 = 1;
/// The rate from which on the law of seconds may take over again.
const ENOUGH_A_SECOND: Rate = Rate::from_ratio(FEW_A_SECOND * 2, SECOND);

/// The unit of waits, and of the time for which earlier cycles count: 2²⁰ ns.
pub(super) const WAIT_BITS: u32 = 20;

/// What the law remembers while the service is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Open {
    /// The rate at the opening.
    pub(super) rate: Rate,
    /// The calm, in quarters of an answer.
    pub(super) calm: u64,
}

pub(super) const RATE: Field = Field::lowest(20);
const CALMS: Field = RATE.above(10);

pub(super) fn rate_of(memory: CutState) -> Rate {
    Rate::from_raw(unpack(RATE.get(memory.to_bits().into()), OF_RATE).into())
}

pub(super) fn rate_bits(rate: Rate) -> u128 {
    RATE.put(pack(rate.raw(), OF_RATE))
}

impl Open {
    pub(super) fn of(memory: CutState) -> Option<Self> {
        memory.is_open().then(|| Self {
            rate: rate_of(memory),
            calm: unpack(CALMS.get(memory.to_bits().into()), OF_CALM).max(1),
        })
    }

    /// Returns the state after an opening, with the calm of rule 20. `count` is what the cycle
    /// before accepted, if cycles were counted then.
    pub(super) fn at(rate: Rate, count: Option<u64>, seen: &Seen) -> Self {
        // The requests under way, in quarters. As many are refused before the first refusal is
        // heard.
        let flight = rate.tokens_in(seen.trip().saturating_mul(4));
        Self::new(rate, count, flight.saturating_add(4 * seen.weight))
    }

    /// Returns the state at the first request, after learned cycles of this length.
    pub(super) fn learned(rate: Rate, length: NonZeroU64) -> Self {
        Self::new(rate, Some(rate.tokens_in(length.get())), 4)
    }

    fn new(rate: Rate, count: Option<u64>, flight: u64) -> Self {
        let usual = CALM.saturating_mul(flight);
        let share = narrow((u128::from(usual) * u128::from(three_quarters(rate))) >> 16);
        let calm = count.map_or(share, |count| {
            share.max((count * 8 / 3).min(usual)).max(count * 2)
        });
        Self {
            rate,
            calm: calm.clamp(4, MOST_CALM),
        }
    }

    pub(super) fn memory(self) -> CutState {
        CutState::open(rate_bits(self.rate) | CALMS.put(pack_up(self.calm, OF_CALM)))
    }

    /// Returns by what part the rate has grown after `calms`: 16 fraction bits, from 10.
    pub(super) fn grown(self, calms: u64) -> u64 {
        let (growth, line) = (GROWTH.max(ONE * 4 / self.calm), self.cube());
        let power = power(calms << 6, ONE + 2 * line);
        narrow((u128::from(growth) * u128::from(power)) >> 16)
    }

    /// Returns how much of the growth is a cube rather than a line, 16 fraction bits.
    fn cube(self) -> u64 {
        ONE.min(self.calm * ONE / (4 * CALM))
    }

    /// Returns the rate after `calms`.
    pub(super) fn rate_after(self, calms: u64) -> Rate {
        more(self.rate, self.grown(calms))
    }

    /// Returns the tokens that end a step.
    pub(super) fn step(self) -> u64 {
        (self.calm / (4 * STEPS)).max(1)
    }

    /// Returns how many calms `answers` make, 10 fraction bits.
    pub(super) fn calms(self, answers: u64) -> u64 {
        answers.saturating_mul(4 << 10) / self.calm
    }

    /// Returns whether the rate has grown beyond what a window can hide: rule 21.
    pub(super) fn is_beyond(self, calms: u64, cycle: Cycle, sum: u64, now: u64) -> bool {
        let open = now.saturating_sub(cycle.start().unwrap_or(now));
        cycle.count(sum) >= ENOUGH
            && self.rate >= ENOUGH_A_SECOND
            && self.grown(calms) >= BEYOND
            && open > 2 * cycle.before()
    }

    /// Returns the memory of growth from `rate`, or `None` if the law of seconds takes over.
    pub(super) fn anew(self, rate: Rate) -> Option<CutState> {
        let grows = self.rate < ENOUGH_A_SECOND && rate < ENOUGH_A_SECOND;
        grows.then(|| Self::new(rate, None, 4).memory())
    }

    /// Returns the memory after time without use: the rate keeps the mean of its growth.
    pub(super) fn rested(self, calms: u64) -> Option<CutState> {
        let mean = (self.grown(calms) << 16) / (2 * ONE + 2 * self.cube());
        (calms > 1 << 10).then(|| {
            let rate = more(self.rate, mean.min(ONE));
            Self { rate, ..self }.memory()
        })
    }
}

pub(super) fn more(rate: Rate, grown: u64) -> Rate {
    let factor = u128::from(grown.saturating_add(ONE));
    Rate::from_raw((u128::from(rate.raw()) * factor) >> 16)
}

/// The cycle: when it began, what had been counted then, and what is known of earlier cycles.
///
/// | bits | field |
/// |---|---|
/// | 46 | when it began, in 2¹⁶ ns |
/// | 45 | the sum of the counts then, wrapping |
/// | 11 | how long the cycles before count, 6 significant bits, in 2²⁰ ns |
/// | 11 | the calm, 6 significant bits, in quarters of an answer |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cycle(u128);

const START: Field = Field::lowest(TIME_BITS - 16);
const FROM: Field = START.above(45);
const BEFORE: Field = FROM.above(11);
const LAST_CALM: Field = BEFORE.above(11);
const MOST_COARSE: u64 = (1 << 11) - 1;

impl Cycle {
    pub(super) const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    pub(super) const fn to_bits(self) -> u128 {
        self.0
    }

    pub(super) fn new(start: u64, from: u64) -> Self {
        Self(START.put((start >> 16).max(1)) | FROM.put(from))
    }

    /// Returns when the cycle began; `None` if nothing was counted yet.
    pub(super) fn start(self) -> Option<u64> {
        let start = START.get(self.0);
        (start > 0).then_some(start << 16)
    }

    /// Returns what was counted in the cycle; 0 if it has not begun.
    pub(super) fn count(self, sum: u64) -> u64 {
        if self.start().is_none() {
            return 0;
        }
        let count = FROM.wrapped(sum.wrapping_sub(FROM.get(self.0)));
        // A `sum` from before the cycle counts as 0.
        if count >> 44 == 0 { count } else { 0 }
    }

    /// Returns the cycle with earlier cycles that count for the time `before`, and with a calm.
    pub(super) fn after(self, before: u64, calm: u64) -> Self {
        let rest = self.0 & !(BEFORE.put(u64::MAX) | LAST_CALM.put(u64::MAX));
        // Rounded down, or the weight of earlier cycles would never fade; 0 means none.
        let before = pack((before >> WAIT_BITS).max(1), OF_CALM).min(MOST_COARSE);
        let calm = pack_up(calm, OF_CALM).min(MOST_COARSE);
        Self(rest | BEFORE.put(before) | LAST_CALM.put(calm))
    }

    /// Returns the cycle under the law of seconds, after the service was open for `light`.
    pub(super) fn dark_after(self, light: u64) -> Self {
        let rest = self.0 & !LAST_CALM.put(u64::MAX);
        Self(rest | LAST_CALM.put(pack(light >> WAIT_BITS, OF_CALM).min(MOST_COARSE)))
    }

    /// Returns the first cycle after learned cycles of this length.
    pub(super) fn learned(self, open: Open, length: NonZeroU64) -> Self {
        self.after(length.get(), open.calm)
    }

    /// Returns the time for which earlier cycles count.
    pub(super) fn before(self) -> u64 {
        unpack(BEFORE.get(self.0), OF_CALM) << WAIT_BITS
    }

    pub(super) fn calm(self) -> u64 {
        unpack(LAST_CALM.get(self.0), OF_CALM).clamp(1, MOST_CALM)
    }

    /// Returns how long the service was open, in a cycle under the law of seconds.
    pub(super) fn light(self) -> u64 {
        unpack(LAST_CALM.get(self.0), OF_CALM) << WAIT_BITS
    }

    /// Returns a cycle that begins now, after the same earlier cycles.
    pub(super) fn anew(self, now: u64, sum: u64) -> Self {
        let rest = self.0 & !(START.put(u64::MAX) | FROM.put(u64::MAX));
        Self(rest | Self::new(now, sum).0)
    }

    /// Returns the cycle without the unused time `idle`.
    pub(super) fn moved(self, idle: u64) -> Self {
        let start = START.get(self.0);
        let moved = if start == 0 { 0 } else { start + (idle >> 16) };
        Self((self.0 & !START.put(u64::MAX)) | START.put(moved))
    }
}

/// A response, and the cycle at that time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) now: u64,
    pub(super) sent: u64,
    /// When the pause ends that the service asked for; `now` if the service asked for none.
    pub(super) until: u64,
    pub(super) cycle: Cycle,
    /// The sum of all counts, without a knock that was just done.
    pub(super) sum: u64,
    /// The tokens of the request.
    pub(super) weight: u64,
}

impl Seen {
    pub(super) fn of(event: &Event<'_>, weight: u32) -> Self {
        Self {
            now: event.now,
            sent: event.sent,
            until: event.until,
            cycle: Cycle::from_bits(event.counted.cycle),
            sum: event.counted.sum,
            weight: weight.into(),
        }
    }

    pub(super) fn trip(&self) -> u64 {
        self.now.saturating_sub(self.sent)
    }

    pub(super) fn span(&self) -> u64 {
        self.now
            .saturating_sub(self.cycle.start().unwrap_or(self.now))
    }
}
