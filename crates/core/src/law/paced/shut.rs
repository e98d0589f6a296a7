//! A service that is shut: the knocks, and what follows from its opening (rules 16 to 21).

#![allow(
    clippy::arithmetic_side_effects,
    reason = "times are below 2⁶², counts and factors below 2⁴⁵, and products are made in 128 bits"
)]

use super::coarse::{OF_GROWTH, OF_WAIT, ONE, narrow, pack_up, power, ratio, unpack};
use super::cut::{Cut, STARVED_STEP, remember};
use super::cut_state::CutState;
use super::cycle::{Cycle, FEW_A_SECOND, Open, RATE, Seen, WAIT_BITS, more, rate_bits, rate_of};
use super::settings::PacedSettings;
use crate::bits::Field;
use crate::fixed::{Rate, SECOND};

/// With this many answers in a cycle, each wait is half as long again as the last.
const KNOCKS: u64 = 400;
/// The longest wait, unless the cycle is long.
const LONGEST: u64 = SECOND * 100;
/// The longest first wait after the curve.
const FIRST: u64 = SECOND * 60;
/// The first wait of a client that got nothing yet.
const UNHEARD: u64 = SECOND * 4;
/// The part of a wait in which nothing is minted.
const PAUSE: u64 = 16;
/// The code in place of growth: the shut began under the law of seconds, and the rate is its peak.
const SECONDS: u64 = (1 << 7) - 1;
/// A shorter shut than this is left to the law of seconds.
const SHORT_DARK: u64 = SECOND;
/// The shortest cycle.
const SHORTEST_CYCLE: u64 = SECOND / 1_000;
/// This few answers say less than the gap between two knocks.
const FEW: u64 = 2;
/// The mean may lag in a cycle of more calms than [`LONG_CYCLE`], 10 fraction bits, and of
/// [`ENOUGH_TO_LAG`] answers.
const LONG_CYCLE: u64 = 4 << 10;
const ENOUGH_TO_LAG: u64 = 20;
/// In a cycle of this many answers the calm falls by an eighth at most.
const ENOUGH_TO_KEEP: u64 = 5;
/// This many answers between two shuts are enough for the law of seconds.
const ENOUGH_TO_GO: u64 = 8;

/// What the law remembers while the service is shut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shut {
    /// The rate at the last opening, or the peak of the law of seconds.
    pub(super) rate: Rate,
    /// The growth since the opening, 16 fraction bits; `None` under the law of seconds.
    pub(super) grown: Option<u64>,
    /// Whether a knock was refused.
    pub(super) knocked: bool,
    /// The time from the last refusal to the next knock, in nanoseconds.
    pub(super) wait: u64,
    /// The tokens of a knock: those of the refused request, rounded up to a power of two.
    pub(super) weight: u64,
    /// Whether the service has said when it opens.
    pub(super) hinted: bool,
}

const WAIT: Field = RATE.above(9);
const KNOCKED: Field = WAIT.above(1);
const GROWN: Field = KNOCKED.above(7);
const MOST_WAIT: u64 = (1 << 9) - 1;
const WEIGHT: Field = GROWN.above(5);

impl Shut {
    pub(super) fn of(memory: CutState) -> Option<Self> {
        let bits = memory.to_bits().into();
        memory.is_shut().then(|| Self {
            rate: rate_of(memory),
            grown: Some(GROWN.get(bits))
                .filter(|code| *code != SECONDS)
                .map(|code| unpack(code, OF_GROWTH) << 9),
            knocked: KNOCKED.get(bits) == 1,
            wait: unpack(WAIT.get(bits), OF_WAIT) << WAIT_BITS,
            weight: 1 << WEIGHT.get(bits),
            hinted: memory.has_pause(),
        })
    }

    /// Returns `true` if cycles were counted before the service shut.
    pub(super) fn is_of_windows(self) -> bool {
        self.grown.is_some()
    }

    /// Returns the memory, and the time from which on a knock is minted.
    fn limit(self, settings: &PacedSettings, seen: &Seen) -> (u64, CutState) {
        let longest = LONGEST.max(seen.span() / 32);
        let floor = settings.lowest().nanos_per_token();
        let weight = seen.weight.clamp(1, 1 << 31).next_power_of_two();
        let wait = self.wait.min(longest).min(floor.saturating_mul(weight));
        let wait = pack_up(wait.div_ceil(1 << WAIT_BITS).max(1), OF_WAIT).min(MOST_WAIT);
        let nanos = unpack(wait, OF_WAIT) << WAIT_BITS;
        let growth = |grown: u64| pack_up(grown.div_ceil(1 << 9), OF_GROWTH).min(SECONDS - 1);
        let bits = rate_bits(self.rate)
            | WAIT.put(wait)
            | KNOCKED.put(self.knocked.into())
            | GROWN.put(self.grown.map_or(SECONDS, growth))
            | WEIGHT.put(weight.ilog2().into());
        let memory = CutState::shut(bits);
        if seen.until > seen.now {
            (seen.until, memory.with_pause())
        } else {
            (seen.now.saturating_add(nanos / PAUSE), memory)
        }
    }

    /// Returns when the last refusal was heard, in the state that began at `since`.
    fn heard(self, since: u64) -> u64 {
        if self.hinted {
            since
        } else {
            since.saturating_sub(self.wait / PAUSE)
        }
    }

    /// Returns for how long the knock sent at `sent` could have gone, but no request came.
    fn unasked(self, since: u64, sent: u64) -> u64 {
        let due = self.heard(since).saturating_add(self.wait);
        sent.saturating_sub(due)
    }

    /// Returns whether a knock was refused, and the wait is the longest.
    fn has_missed(self) -> bool {
        self.knocked && self.wait >= LONGEST
    }

    /// Returns the rate at which knocks are minted after the pause.
    pub(super) fn rate(self) -> Rate {
        let pause = if self.hinted { 0 } else { self.wait / PAUSE };
        ratio(self.weight, self.wait - pause)
    }

    /// Returns the state after the first refusal, while the rate is not known.
    pub(super) fn first(
        settings: &PacedSettings,
        peak: Rate,
        seen: &Seen,
    ) -> (u64, CutState, Cycle) {
        let own = match seen.cycle.count(seen.sum) {
            0 if seen.until > seen.now => 0, // a hint says enough
            0 => UNHEARD,
            count => narrow(u128::from(seen.span()) * u128::from(seen.weight) / u128::from(count)),
        };
        let shut = Self {
            rate: peak,
            grown: None,
            knocked: false,
            wait: own.max(seen.trip() / 2).min(FIRST),
            weight: 1,
            hinted: false,
        };
        let (since, memory) = shut.limit(settings, seen);
        // Where nothing was ever delivered, the cycle begins with the refusal.
        let cycle = match seen.cycle.start() {
            Some(_) => seen.cycle,
            None => seen.cycle.anew(seen.now, seen.sum),
        };
        (since, memory, cycle.dark_after(seen.span()))
    }

    /// Returns the state after the refusal of a request that was sent since the opening, at `rate`.
    pub(super) fn after(
        settings: &PacedSettings,
        open: Open,
        rate: Rate,
        seen: &Seen,
    ) -> (u64, CutState) {
        let grown = (u128::from(rate.raw()) << 16) / u128::from(open.rate.raw().max(1));
        let own = open.rate.nanos_per_token().saturating_mul(seen.weight);
        let shut = Self {
            rate: open.rate,
            grown: Some(narrow(grown).saturating_sub(ONE)),
            knocked: false,
            wait: own.max(seen.trip() / 2),
            weight: 1,
            hinted: false,
        };
        shut.limit(settings, seen)
    }

    /// Returns the memory with a longer pause, if the service asked for it when it refused a
    /// request that was no knock.
    pub(super) fn paused(last: Cut, seen: &Seen) -> Option<(u64, CutState)> {
        let is_later = seen.until > seen.now && seen.until > last.since;
        is_later.then(|| (seen.until, last.memory.with_pause()))
    }

    /// Returns `true` if the request was sent after the last refusal was heard, or from the end of
    /// a pause on. The state began at `since`.
    fn is_knock(self, since: u64, sent: u64) -> bool {
        let heard = self.heard(since);
        sent > heard || (self.hinted && sent == heard)
    }

    /// Returns the state after a refused knock; `None` if the request was no knock. The cycle goes
    /// on without the time in which no request came.
    pub(super) fn knocked(
        self,
        settings: &PacedSettings,
        since: u64,
        seen: &Seen,
    ) -> Option<(u64, CutState, Cycle)> {
        if !self.is_knock(since, seen.sent) {
            return None;
        }
        // A larger count says nothing while the cycle is not known.
        let count = seen.cycle.count(seen.sum) / seen.weight.max(1);
        let count = self.grown.map_or(count.min(3 * KNOCKS), |_| count);
        let doubles = !self.knocked || (self.grown.is_none() && self.wait < SECOND / 2);
        let longer = if doubles {
            self.wait
        } else {
            narrow(u128::from(self.wait) * u128::from(KNOCKS) / u128::from(KNOCKS + count))
        };
        let next = Self {
            knocked: true,
            wait: self.wait.saturating_add(longer),
            ..self
        };
        let cycle = seen.cycle.moved(self.unasked(since, seen.sent));
        // A heavy request may be next in line. If none is, the knocks become lighter.
        let weight = seen.weight.max(self.weight / 2);
        let next_seen = Seen {
            cycle,
            weight,
            ..*seen
        };
        let (since, memory) = next.limit(settings, &next_seen);
        Some((since, memory, cycle))
    }

    /// Returns the memory after a knock that was done, and the cycle that begins at the opening;
    /// `None` if the request was no knock.
    pub(super) fn opened(
        self,
        settings: &PacedSettings,
        since: u64,
        seen: &Seen,
    ) -> Option<(CutState, Cycle)> {
        // A knock that is far lighter than the refused request opens nothing before its time.
        let due = self.heard(since).saturating_add(self.wait);
        let is_light = seen.weight < self.weight / 2 && seen.sent < due;
        if is_light || !self.is_knock(since, seen.sent) {
            return None;
        }
        let heard = self.heard(since);
        let unasked = self.unasked(since, seen.sent);
        let asked = seen.sent - unasked;
        // The last refused knock was sent a trip before the refusal was heard. After a pause that
        // time is not known.
        let (refused, gap) = if self.hinted {
            (heard, u64::MAX)
        } else {
            let refused = heard.saturating_sub(seen.trip());
            (refused, asked.saturating_sub(refused))
        };
        let start = seen.cycle.start().unwrap_or(heard);
        let at = refused.midpoint(asked).max(start);
        let from = seen.sum;
        let lasted = Lasted {
            count: seen.cycle.count(from).max(seen.weight),
            span: (at - start).max(SHORTEST_CYCLE),
            gap: if self.has_missed() { gap / 2 } else { gap },
            weight: seen.weight.max(1),
        };
        let at = at.saturating_add(unasked);
        let Some(grown) = self.grown else {
            if let Some(cycle) = self.of_seconds(&lasted, Cycle::new(at, from), seen) {
                return Some((
                    remember(settings, self.rate, STARVED_STEP, seen.trip()),
                    cycle,
                ));
            }
            // If the cycle has been forgotten, only the peak is known.
            let mean = seen.cycle.start().map_or(self.rate, |_| lasted.mean());
            // A service that was open for a good part had an outage, which looks like a cycle at
            // such rates.
            let light = seen.cycle.light();
            let is_window =
                mean < Rate::from_ratio(FEW_A_SECOND, SECOND) && light < lasted.span / 8;
            let open = Open::at(
                settings.within(mean),
                is_window.then_some(lasted.count),
                seen,
            );
            return Some((
                open.memory(),
                Cycle::new(at, from).after(lasted.span, open.calm),
            ));
        };
        let (mean, time) = self.mean(&lasted, grown, seen.cycle);
        let mut open = Open::at(settings.within(mean), Some(lasted.count), seen);
        // Without this, the echo of a log would move the rate: its cycles are longer and shorter in
        // turn.
        if lasted.answers() >= ENOUGH_TO_KEEP {
            open.calm = open.calm.max(seen.cycle.calm() / 8 * 7);
        }
        Some((open.memory(), Cycle::new(at, from).after(time, open.calm)))
    }

    /// Returns the cycle with which the law of seconds goes on, if no window was shut: rule 21.
    fn of_seconds(self, lasted: &Lasted, next: Cycle, seen: &Seen) -> Option<Cycle> {
        let light = seen.cycle.light();
        let dark = lasted.span.saturating_sub(light);
        let is_fast = self.rate >= Rate::from_ratio(FEW_A_SECOND, SECOND);
        let is_short = !self.knocked && (dark < SHORT_DARK || lasted.answers() <= FEW);
        // Without this, the law would go to and fro where few requests get through.
        let is_first = seen.cycle.before() == 0 || lasted.answers() >= ENOUGH_TO_GO;
        let is_same = seen.cycle.before().abs_diff(lasted.span) < lasted.span / 4;
        let is_outage = dark < light && !is_same;
        let goes = is_outage || (is_fast && is_short && is_first);
        goes.then(|| next.after(lasted.span, 1))
    }

    /// Returns the next rate, the mean over this cycle and earlier ones, and the time for which
    /// they will count: rules 17 and 18.
    fn mean(self, lasted: &Lasted, grown: u64, cycle: Cycle) -> (Rate, u64) {
        let calm = cycle.calm();
        // A short cycle says little.
        let answers = lasted.count.max(self.rate.tokens_in(lasted.span));
        let kept = ONE.saturating_sub(answers.saturating_mul(2 * ONE) / calm);
        let before = narrow((u128::from(cycle.before()) * u128::from(kept)) >> 16);
        let time = lasted.span.saturating_add(before);
        let tokens = (u128::from(lasted.count) << 64)
            .saturating_add(u128::from(self.rate.raw()) * u128::from(before));
        let mean = Rate::from_raw(tokens / u128::from(time.max(1)));
        let (own, last) = (lasted.own(), more(self.rate, grown));
        let usual = Open {
            rate: self.rate,
            calm,
        }
        .grown(LONG_CYCLE);
        let lags = grown > usual || own > self.rate.scaled(13, 10);
        let next = if lasted.answers() >= ENOUGH_TO_LAG && lags && last > own {
            let ratio = (u128::from(last.raw()) << 16) / u128::from(own.raw().max(1));
            let root = power(narrow(ratio), ONE / 2);
            Rate::from_raw((u128::from(own.raw()) * u128::from(root)) >> 16)
        } else {
            lasted.at_least_a_gap(mean)
        };
        let next = next.max(self.rate.half()).min(last);
        (next, time)
    }
}

/// A cycle that is over: what was accepted, its length, and the gap. The gap is the time from the
/// last refused knock to the accepted one, or half of that.
#[derive(Clone, Copy, Debug)]
struct Lasted {
    count: u64,
    span: u64,
    gap: u64,
    /// The tokens of the knock.
    weight: u64,
}

impl Lasted {
    fn answers(&self) -> u64 {
        self.count / self.weight
    }

    fn own(&self) -> Rate {
        ratio(self.count, self.span)
    }

    fn mean(&self) -> Rate {
        self.at_least_a_gap(self.own())
    }

    /// Returns `mean`, or after few answers at least one knock in the gap.
    fn at_least_a_gap(&self, mean: Rate) -> Rate {
        if self.answers() > FEW {
            return mean;
        }
        mean.max(ratio(self.weight, self.gap))
    }
}

#[cfg(test)]
mod tests;
