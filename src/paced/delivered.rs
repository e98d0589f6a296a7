//! The rate delivered: responses that were not throttled, per second.

use crate::fixed::{Rate, SECOND};

/// How long a window lasts at least, in nanoseconds.
pub(crate) const WINDOW: u64 = SECOND;
/// How long a window lasts at most, if responses come.
const LONGEST_WINDOW: u64 = SECOND.wrapping_mul(8);
/// How many responses end a window that is long enough.
const ENOUGH: u64 = 32;
/// So many responses right after the start may be what the service had saved up for the first who ask,
const SAVED_UP: u64 = 64;
/// if they took less time than this.
const SAVED_SPAN: u64 = SECOND.wrapping_div(10);
/// How many halvings of their rate are in doubt at most: each halving of the time is one.
const MOST_DOUBT: u32 = 3;

/// What has been counted: the rate of the window before, and the current window so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// The rate of the last whole window; zero if there was none.
    pub(crate) before: Rate,
    /// Responses in the current window.
    pub(crate) count: u64,
    /// How long it has lasted, in nanoseconds.
    pub(crate) elapsed: u64,
}

/// What the end of a window makes known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowEnd {
    /// It is not over.
    NotYet,
    /// It lasted over a silence: what it counted is no rate.
    Interrupted,
    /// It counted this rate.
    Counted(Rate),
}

impl Delivered {
    /// Returns the rate of the window before and the current one together, with `more` responses on top.
    pub(crate) fn rate(&self, more: u64) -> Rate {
        let count = u128::from(self.count.saturating_add(more)) << 64;
        let (span, kept) = if self.before == Rate::ZERO {
            (self.elapsed, 0)
        } else {
            let kept = u128::from(self.before.raw()).wrapping_mul(u128::from(WINDOW));
            (self.elapsed.saturating_add(WINDOW), kept)
        };
        let raw = count
            .saturating_add(kept)
            .checked_div(u128::from(span.max(1)));
        Rate::from_raw(raw.unwrap_or(0))
    }

    /// Returns about how many responses that rate is made of.
    pub(crate) fn responses(&self) -> u64 {
        self.count.saturating_add(self.before.tokens_in(WINDOW))
    }

    /// Returns by how many halvings the rate may lie below that of the responses, if they are the first of all.
    pub(crate) fn doubt(&self) -> u32 {
        if self.before != Rate::ZERO || self.count < SAVED_UP {
            return 0;
        }
        let shorter = |halvings: u32| self.elapsed < SAVED_SPAN.wrapping_shr(halvings);
        (0..MOST_DOUBT)
            .map(|halvings| u32::from(shorter(halvings)))
            .sum()
    }

    /// Looks whether the current window is over. At low rates it lasts longer, for there to be something to count.
    pub(crate) fn end(&self, starved: bool) -> WindowEnd {
        if self.elapsed < WINDOW || (self.count < ENOUGH && self.elapsed < LONGEST_WINDOW) {
            return WindowEnd::NotYet;
        }
        let long = self.elapsed >= WINDOW << 1;
        // A long window that has many responses, or few while the law is starved, had a gap in between.
        if self.before != Rate::ZERO && long && (starved || self.count > ENOUGH) {
            return WindowEnd::Interrupted;
        }
        let count = u32::try_from(self.count).unwrap_or(u32::MAX);
        WindowEnd::Counted(Rate::from_ratio(count, self.elapsed))
    }
}

#[cfg(test)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]
mod tests;
