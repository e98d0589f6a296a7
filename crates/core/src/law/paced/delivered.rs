//! The rate delivered: responses that were not throttled, per second.

use crate::bits::{Field, TIME_BITS};
use crate::fixed::{Rate, SECOND};

/// The shortest window, in nanoseconds.
pub(crate) const WINDOW: u64 = SECOND;
/// The longest window, if responses come.
const LONGEST_WINDOW: u64 = SECOND.wrapping_mul(8);
/// The window before counts for this many responses, within [`LONGEST_WINDOW`].
const KEPT: u64 = 8;
/// This many responses end a window that is long enough.
const ENOUGH: u64 = 32;
/// The service may have saved up the first responses, if they are [`SAVED_UP`] or more
const SAVED_UP: u64 = 64;
/// and took less time than [`SAVED_SPAN`].
const SAVED_SPAN: u64 = SECOND.wrapping_div(10);
/// The most halvings of their rate that are in doubt: one for each halving of the time.
pub(super) const MOST_DOUBT: u32 = 3;

/// The counts: the rate of the window before, and the current window so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// The rate of the last whole window, or zero.
    pub(crate) before: Rate,
    /// Responses in the current window.
    pub(crate) count: u64,
    /// How long the current window has lasted, in nanoseconds.
    pub(crate) elapsed: u64,
}

/// What is known when a window may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowEnd {
    /// The window is not over.
    NotYet,
    /// The window lasted over a silence, so its mean is too low, or no rate at all.
    Interrupted,
    /// The window counted this rate.
    Counted(Rate),
}

impl Delivered {
    /// Returns for how long the window before counts: the time of eight responses at its rate, from
    /// one second to eight. A few responses close together are no rate: at 1/s, what a service
    /// saved up for two seconds looks like 2/s.
    fn kept_span(&self) -> u64 {
        // Rounded up, so that the span has eight responses.
        let span = (u128::from(KEPT) << 64).div_ceil(u128::from(self.before.raw().max(1)));
        u64::try_from(span)
            .unwrap_or(u64::MAX)
            .clamp(WINDOW, LONGEST_WINDOW)
    }

    /// Returns the rate of the window before and the current one together, with `more` responses on
    /// top.
    pub(crate) fn rate(&self, more: u64) -> Rate {
        let count = u128::from(self.count.saturating_add(more)) << 64;
        let (span, kept) = if self.before == Rate::ZERO {
            (self.elapsed, 0)
        } else {
            let span = self.kept_span();
            let kept = u128::from(self.before.raw()).wrapping_mul(u128::from(span));
            (self.elapsed.saturating_add(span), kept)
        };
        let raw = count
            .saturating_add(kept)
            .checked_div(u128::from(span.max(1)));
        Rate::from_raw(raw.unwrap_or(0))
    }

    /// Returns about how many responses `rate` is made of.
    pub(crate) fn responses(&self) -> u64 {
        self.count
            .saturating_add(self.before.tokens_in(self.kept_span()))
    }

    /// Returns how many halvings of the rate are in doubt, if these are the first responses.
    pub(crate) fn doubt(&self) -> u32 {
        if self.before != Rate::ZERO || self.count < SAVED_UP {
            return 0;
        }
        let shorter = |halvings: u32| self.elapsed < SAVED_SPAN.wrapping_shr(halvings);
        (0..MOST_DOUBT)
            .map(|halvings| u32::from(shorter(halvings)))
            .sum()
    }

    /// Returns the rate of the first responses, and one on top, if the service may have saved them
    /// up. The responses count as if they had taken [`SAVED_SPAN`].
    pub(crate) fn at_once(&self) -> Option<Rate> {
        let saved = self.before == Rate::ZERO && self.elapsed < SAVED_SPAN;
        let elapsed = SAVED_SPAN;
        saved.then(|| Self { elapsed, ..*self }.rate(1))
    }

    /// Returns the same window without its failures.
    pub(crate) const fn without(self, failed: u64) -> Self {
        Self {
            count: self.count.saturating_sub(failed),
            ..self
        }
    }

    /// Returns the rate of the current window alone.
    pub(crate) fn mean(&self) -> Rate {
        let count = u32::try_from(self.count).unwrap_or(u32::MAX);
        Rate::from_ratio(count, self.elapsed)
    }

    /// Returns `true` if less than half of what was allowed was delivered, and not by chance.
    pub(crate) fn is_unused(&self, allowed: Rate) -> bool {
        let expected = allowed.tokens_in(self.elapsed);
        expected >= ENOUGH && self.count < expected >> 1
    }

    /// Checks whether the current window is over. At low rates a window lasts longer, so that there
    /// is something to count.
    pub(crate) fn end(&self, starved: bool, unused: bool) -> WindowEnd {
        let is_enough = self.count >= ENOUGH || unused || self.elapsed >= LONGEST_WINDOW;
        if self.elapsed < WINDOW || !is_enough {
            return WindowEnd::NotYet;
        }
        let long = self.elapsed >= WINDOW << 1;
        // A long window had a gap if it has many responses, or if the law is starved.
        if self.before != Rate::ZERO && long && (starved || self.count > ENOUGH) {
            return WindowEnd::Interrupted;
        }
        WindowEnd::Counted(self.mean())
    }
}

/// The law's reading. Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 36 | the rate of the last whole window, 31 significant bits; 0 if there was none. Or calms |
/// | 1 | whether the field before is calms |
/// | 46 | when the current one began, in 2¹⁶ ns after the start, at least 1; 0 before the first |
/// | 45 | base: the sum of the counts when it began, wrapping |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading(u128);

/// The low bits that a packed rate drops.
const DROPPED: u32 = Rate::BITS.wrapping_sub(36);
/// The low bits that a time drops.
const COARSER: u32 = 16;

impl Reading {
    pub(super) const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Returns the reading before the first window, of counts that begin at `sum`.
    pub(super) const fn before_the_first(sum: u64) -> Self {
        Self(Self::BASE.put(sum))
    }

    pub(super) const fn to_bits(self) -> u128 {
        self.0
    }

    /// Returns the sum of the counts when the window began, wrapped to 45 bits.
    pub(super) const fn base(self) -> u64 {
        Self::BASE.get(self.0)
    }

    const BEFORE: Field = Field::lowest(36);
    const CALM: Field = Self::BEFORE.above(1);
    const BEGAN: Field = Self::CALM.above(TIME_BITS.wrapping_sub(COARSER));
    const BASE: Field = Self::BEGAN.above(45);

    pub(super) fn new(before: Rate, began: u64, base: u64) -> Self {
        Self(
            Self::BEFORE.put(before.to_bits() >> DROPPED)
                | Self::BEGAN.put((began >> COARSER).max(1))
                | Self::BASE.put(base),
        )
    }

    /// Returns the reading of a window in a cycle, after `calms`.
    pub(super) fn of_cycle(calms: u64, began: u64, base: u64) -> Self {
        let window = Self::new(Rate::ZERO, began, base);
        Self(window.0 | Self::BEFORE.put(calms) | Self::CALM.put(1))
    }

    /// Returns when the window began and the calms before it, if the window belongs to the cycle
    /// that opened at `since`.
    pub(super) fn calms(self, since: u64) -> Option<(u64, u64)> {
        let began = Self::BEGAN.get(self.0);
        let is_of_it = Self::CALM.get(self.0) == 1 && began >= since >> COARSER;
        is_of_it.then(|| (began << COARSER, Self::BEFORE.get(self.0)))
    }

    pub(super) const fn before(self) -> Rate {
        if Self::CALM.get(self.0) == 1 {
            return Rate::ZERO;
        }
        Rate::from_bits(Self::BEFORE.get(self.0) << DROPPED)
    }

    /// Returns when the current window began, or `None` before the first.
    pub(super) fn began(self) -> Option<u64> {
        let began = Self::BEGAN.get(self.0);
        (began > 0).then_some(began << COARSER)
    }

    pub(super) fn delivered(self, now: u64, sum: u64) -> Option<Delivered> {
        self.began().map(|began| Delivered {
            before: self.before(),
            count: Self::BASE.wrapped(sum.wrapping_sub(Self::BASE.get(self.0))),
            elapsed: now.saturating_sub(began),
        })
    }
}

const _: () = assert!(Reading::BASE.is_last(), "the fields fill the word");

#[cfg(test)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]
mod tests;
