//! The line of tokens: how many tokens have been minted, and which of them a caller may have.
//!
//! Tokens are numbered as the bucket mints them. `V(t)` is the number minted by `t`, a straight
//! line between two changes of the rate. `issued` is the number of the last token promised, and
//! `cancelled` counts the promises given back. A caller may have the next token if `issued −
//! cancelled + 1 <= V(now)`. The bucket holds at most its capacity because `issued − cancelled` is
//! raised to `V − capacity` first.

mod head;

use crate::fixed::{Rate, SECOND, shift_right_rounding, to_signed};

pub(crate) use head::Head;

/// One token, in the units of a [`Place`]: 24 fraction bits.
pub(crate) const TOKEN: u64 = 1 << 24;

/// The fraction bits that a minted count has beyond those of a place.
pub(crate) const FINER: u32 = 40;

/// The bits of a minted count: 40 of whole tokens, which wrap, above 64 of fraction.
const MINTED_BITS: u32 = 104;
const MINTED_MASK: u128 = (1 << MINTED_BITS) - 1;

/// The longest time that a line is used before it is renewed, in nanoseconds: 68 s.
///
/// Places wrap after 2⁴⁰ tokens and are compared by signed differences, so no two places may be
/// more than 2³⁹ tokens apart. In this time at most 2³⁶ tokens are minted, so one comparison of
/// times is enough.
pub(crate) const LONGEST: u64 = 1 << 36;

/// More tokens than a bucket holds and all that may be promised together, in the units of a minted
/// count.
const WRAPPED: u128 = 1 << (64 + 38);

/// The most tokens that may be promised ahead of minting, in the units of a place.
pub(crate) const LONGEST_QUEUE: u64 = TOKEN << 37;

/// How far a caller's clock may be behind the start of the line, and still take tokens.
/// Nanoseconds.
pub(crate) const SKEW: u64 = SECOND;

/// A count of minted tokens: Q40.64, wrapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Minted(u128);

impl Minted {
    pub(crate) const fn from_bits(bits: u128) -> Self {
        Self(bits & MINTED_MASK)
    }

    pub(crate) const fn to_bits(self) -> u128 {
        self.0
    }

    /// Returns the count `tokens` further on, with 64 fraction bits.
    pub(crate) const fn plus(self, tokens: u128) -> Self {
        Self::from_bits(self.0.wrapping_add(tokens))
    }

    /// Returns the count `tokens` further back, with 64 fraction bits.
    pub(crate) const fn less(self, tokens: u128) -> Self {
        Self::from_bits(self.0.wrapping_sub(tokens))
    }

    /// Returns the count of a whole place.
    pub(crate) const fn from_place(place: Place) -> Self {
        Self((place.0 as u128) << FINER)
    }

    /// Returns the count in the units of a place, rounded down.
    #[expect(clippy::cast_possible_truncation, reason = "places wrap at 2⁴⁰ tokens")]
    pub(crate) const fn to_place(self) -> Place {
        Place((self.0 >> FINER) as u64)
    }

    /// Returns how far the count is ahead of `place`, with 64 fraction bits; negative if it is
    /// behind.
    const fn since(self, place: Place) -> i128 {
        let unused = u128::BITS.wrapping_sub(MINTED_BITS);
        let difference = self.0.wrapping_sub((place.0 as u128) << FINER) << unused;
        i128::from_ne_bytes(difference.to_ne_bytes()) >> unused
    }
}

/// A position in the line: Q40.24 tokens, wrapping. Only differences mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u64);

impl Place {
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }

    /// Returns the place `units` further on.
    pub(crate) const fn plus(self, units: u64) -> Self {
        Self(self.0.wrapping_add(units))
    }

    /// Returns the place `units` further back.
    pub(crate) const fn less(self, units: u64) -> Self {
        Self(self.0.wrapping_sub(units))
    }

    /// Returns the place `count` tokens further back.
    pub(crate) const fn less_tokens(self, count: u64) -> Self {
        Self(self.0.wrapping_sub(count.wrapping_mul(TOKEN)))
    }

    /// Returns how far `self` is ahead of `other`, negative if behind.
    pub(crate) const fn since(self, other: Self) -> i64 {
        to_signed(self.0.wrapping_sub(other.0))
    }
}

/// A straight piece of `V`: `V(t) = origin + rate · t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The count that the line would have had at time 0.
    pub(crate) origin: Minted,
    /// The line holds from this time on, in nanoseconds after the limiter's start.
    pub(crate) since: u64,
    pub(crate) rate: Rate,
    /// The capacity, in nanoseconds at the rate.
    pub(crate) burst: u64,
    /// The least capacity, in the units of a place.
    pub(crate) least: u64,
}

impl Line {
    /// Returns `V` at `now`; before the start of the piece, `V` at its start.
    pub(crate) fn minted_at(&self, now: u64) -> Minted {
        self.extended_to(now.max(self.since))
    }

    /// Returns `V` at `now`, even before the start of the piece.
    pub(crate) fn extended_to(&self, now: u64) -> Minted {
        self.origin.plus(tokens_of(self.rate, now))
    }

    /// Returns the line that goes on from `end` with `rate`, rounded as a word holds it.
    pub(crate) fn changed(&self, end: u64, rate: Rate) -> Self {
        let line = Head::through(self.extended_to(end), end, rate, 0).line(end, self.burst);
        Self {
            least: self.least,
            ..line
        }
    }

    /// Returns `true` if the line is so old that the next caller to take a token renews it.
    pub(crate) const fn is_old(&self, now: u64) -> bool {
        now.saturating_sub(self.since) >= LONGEST
    }

    /// Returns `true` if so many tokens have been minted since the start of the line that the line
    /// must be renewed before places alias.
    pub(crate) fn is_stale(&self, now: u64) -> bool {
        tokens_of(self.rate, now.saturating_sub(self.since)) >= WRAPPED >> 1
    }

    /// Returns `true` if so many tokens have been minted since the start of the line that places
    /// have aliased. The bucket is full then, whatever had been promised.
    pub(crate) fn has_wrapped(&self, now: u64) -> bool {
        tokens_of(self.rate, now.saturating_sub(self.since)) >= WRAPPED
    }

    /// Returns `true` in a pause: nothing is granted, not even what the bucket holds.
    pub(crate) const fn is_paused(&self) -> bool {
        self.rate.raw() == Rate::LEAST.raw()
    }

    /// Returns the most tokens that the bucket holds.
    pub(crate) const fn capacity(&self) -> u64 {
        let capacity = capacity(self.rate, self.burst);
        if capacity < self.least && capacity > 0 {
            self.least
        } else {
            capacity
        }
    }

    /// Returns `true` if the whole tokens of the capacity have room for all that has been `minted`
    /// and is not promised. If `false`, the exact capacity decides.
    #[inline]
    const fn holds(&self, minted: Minted, issued: Place, cancelled: u64) -> bool {
        // Fewer than 2³⁴ tokens. In a pause this number and the capacity are 0; otherwise the
        // capacity is at least one token.
        let whole = self.rate.tokens_in(self.burst).wrapping_mul(TOKEN);
        minted.to_place().since(issued.less_tokens(cancelled)) <= to_signed(whole)
    }

    /// Returns the tokens in the bucket at `now`, with 64 fraction bits; 0 if more are promised.
    pub(crate) fn available(&self, now: u64, issued: Place, cancelled: u64) -> u128 {
        if self.has_wrapped(now) {
            return u128::from(self.capacity()) << FINER;
        }
        let balance = self.minted_at(now).since(issued.less_tokens(cancelled));
        let capacity = i128::from(self.capacity()) << FINER;
        u128::try_from(balance.min(capacity)).unwrap_or(0)
    }

    /// Returns `true` if the bucket is full at `now`.
    pub(crate) fn is_full(&self, now: u64, issued: Place, cancelled: u64) -> bool {
        let minted = self.minted_at(now).to_place();
        self.has_wrapped(now)
            || minted.since(issued.less_tokens(cancelled)) >= to_signed(self.capacity())
    }

    /// Returns how far `rank` is ahead of `V(now)`, in units of a place; 0 if it is not.
    pub(crate) fn ahead(&self, now: u64, rank: Place) -> u64 {
        if self.has_wrapped(now) {
            return 0;
        }
        u64::try_from(rank.since(self.minted_at(now).to_place())).unwrap_or(0)
    }

    /// Returns `issued` with the tokens that do not fit the bucket at `now` written off.
    ///
    /// A piece of the line ends with this, before a larger capacity could bring those tokens back.
    /// Writing tokens off at any other moment changes no answer.
    pub(crate) fn spilled(&self, now: u64, issued: Place, cancelled: u64) -> Place {
        let minted = self.minted_at(now);
        if self.holds(minted, issued, cancelled) {
            return issued; // by far the cheaper comparison
        }
        let past = minted.to_place().since(issued.less_tokens(cancelled));
        let excess = past.saturating_sub(to_signed(self.capacity()));
        if excess > 0 {
            issued.plus(excess.unsigned_abs())
        } else {
            issued
        }
    }

    /// Returns the nanoseconds until the next token, at least 1, after a take that found none.
    pub(crate) fn wait_for_next(&self, now: u64, issued: Place, cancelled: u64) -> u64 {
        let next = self.spilled(now, issued, cancelled).plus(TOKEN);
        self.wait_for(now, next.less_tokens(cancelled)).unwrap_or(1)
    }

    /// Returns the level for a take at `now`, with `cancelled` tokens given back.
    #[inline]
    pub(crate) fn level(&self, now: u64, cancelled: u64) -> Level {
        if self.since.saturating_sub(now) > SKEW || self.is_paused() {
            return Level::NOTHING;
        }
        Level::new(self.minted_at(now), self.capacity(), cancelled)
    }

    /// Returns the nanoseconds from `now` until `V` reaches `place`, or `None` if it has.
    ///
    /// The wait is exact: one nanosecond less is not enough. It saturates at 584 years after the
    /// start, also where no tokens are minted.
    pub(crate) fn wait_for(&self, now: u64, place: Place) -> Option<u64> {
        let behind = self.since.saturating_sub(now);
        let balance = self.minted_at(now).since(place);
        if balance >= 0 {
            return behind.checked_sub(SKEW).filter(|wait| *wait > 0);
        }
        let wait = nanos_for(balance.unsigned_abs(), self.rate).saturating_add(behind);
        Some(wait.min(u64::MAX.saturating_sub(now)))
    }
}

/// Returns the tokens that `rate` mints in `nanos`, with 64 fraction bits.
pub(crate) const fn tokens_of(rate: Rate, nanos: u64) -> u128 {
    (rate.raw() as u128).wrapping_mul(nanos as u128)
}

/// What a take compares `issued` with, computed once for all tries of the take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// The last place that has come due.
    due: Place,
    /// Where `issued` stands when the bucket is full.
    full: Place,
    holds_any: bool,
}

/// Where `issued` moves when a token is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// The bucket was full: `issued` moves to this place, wherever it was.
    Full(Place),
    /// `issued` moves on by one token, to this place.
    Next(Place),
    /// There is no token.
    Empty,
}

impl Level {
    /// Nothing may be taken, whatever has been minted.
    const NOTHING: Self = Self {
        due: Place(0),
        full: Place(0),
        holds_any: false,
    };

    /// Returns the level of a bucket that holds `capacity`, once `minted` tokens have been minted
    /// and `cancelled` given back.
    #[inline]
    pub(crate) const fn new(minted: Minted, capacity: u64, cancelled: u64) -> Self {
        let due = minted.to_place().plus(cancelled.wrapping_mul(TOKEN));
        Self {
            due,
            full: due.less(capacity),
            holds_any: true,
        }
    }

    /// Takes the next token.
    ///
    /// `Full` and `Next` are two cases on purpose. A caller that swaps in two branches lets the
    /// processor predict the branch, and the swap need not wait for the comparison.
    #[inline]
    pub(crate) const fn take(self, issued: Place) -> Take {
        if !self.holds_any {
            Take::Empty
        } else if self.full.since(issued) > 0 {
            Take::Full(self.full.plus(TOKEN))
        } else if self.due.since(issued) >= to_signed(TOKEN) {
            Take::Next(issued.plus(TOKEN))
        } else {
            Take::Empty
        }
    }

    /// Returns where `issued` moves when a token is taken, `None` if there is none.
    pub(crate) const fn next(self, issued: Place) -> Option<Place> {
        match self.take(issued) {
            Take::Full(next) | Take::Next(next) => Some(next),
            Take::Empty => None,
        }
    }

    /// Returns the whole tokens that are left once `issued` has been promised.
    pub(crate) const fn held(self, issued: Place) -> u64 {
        match self.due.since(issued) {
            units @ 1.. => units.unsigned_abs() / TOKEN,
            _ => 0,
        }
    }

    /// Returns where `issued` stands when the bucket is full.
    pub(crate) const fn full(self) -> Place {
        self.full
    }

    /// Takes up to `most` whole tokens, but leaves `left` units. Returns where `issued` moves, and
    /// how many tokens it took; `None` for fewer than `least`.
    pub(crate) fn take_spare(
        self,
        issued: Place,
        left: u64,
        least: u64,
        most: u64,
    ) -> Option<(Place, u64)> {
        let from = if self.full.since(issued) > 0 {
            self.full
        } else {
            issued
        };
        let held = u64::try_from(self.due.since(from)).unwrap_or(0);
        let spare = (held.saturating_sub(left) / TOKEN).min(most);
        let is_enough = self.holds_any && spare >= least.max(1);
        is_enough.then(|| (from.plus(spare.wrapping_mul(TOKEN)), spare))
    }

    /// Returns `true` if there is no further token once `issued` has been promised.
    #[inline]
    pub(crate) const fn is_dry(self, issued: Place) -> bool {
        self.due.since(issued) < to_signed(TOKEN)
    }
}

/// Returns the nanoseconds that `needed` tokens, with 64 fraction bits, take at `rate`, rounded up;
/// [`u64::MAX`] if nothing is minted.
fn nanos_for(needed: u128, rate: Rate) -> u64 {
    let rate = rate.raw();
    // Nearly all callers need a fraction of a token, for which the division is far cheaper.
    if let (Ok(needed), true) = (u64::try_from(needed), rate > 0) {
        return needed.div_ceil(rate);
    }
    let elapsed = needed
        .saturating_add(u128::from(rate.saturating_sub(1)))
        .checked_div(u128::from(rate));
    elapsed.map_or(u64::MAX, |e| u64::try_from(e).unwrap_or(u64::MAX))
}

/// Returns the most tokens that a bucket holds: what `burst` nanoseconds at `rate` bring, and at
/// least one, but none in a pause.
///
/// The capacity follows from the rate, so that no word has to store it.
#[expect(clippy::cast_possible_truncation, reason = "under 2³⁴ tokens")]
pub(crate) const fn capacity(rate: Rate, burst: u64) -> u64 {
    let exact = tokens_of(rate, burst);
    // A rate is off by 2⁻⁴⁴ of itself at most, and so is the capacity. A capacity that lacks no
    // more to a whole token is whole.
    let whole = (exact.wrapping_add(exact >> 43) >> 64) << 64;
    let nearest = if whole > exact { whole } else { exact };
    let units = shift_right_rounding(nearest, FINER) as u64;
    if rate.raw() == Rate::LEAST.raw() {
        0
    } else if units > TOKEN {
        units
    } else {
        TOKEN
    }
}

#[cfg(test)]
mod tests;
