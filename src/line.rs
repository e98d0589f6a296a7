//! The line of tokens: how many have been minted, and which of them a caller may have.
//!
//! Number the tokens that a bucket has ever minted. `V(t)` is how many there are at `t`: a straight line
//! between two changes of the rate. `issued` numbers the last one promised, `cancelled` counts the
//! promises given back. A caller may have the next token if `issued − cancelled + 1 <= V(now)`. The
//! bucket holds at most its capacity because `issued − cancelled` is raised to `V − capacity` first.

use crate::fixed::{Rate, SECOND, shift_right_rounding, to_signed};

/// One token, in the units of a [`Place`]: 24 fraction bits.
pub(crate) const TOKEN: u64 = 1 << 24;

/// The fraction bits that a minted count has beyond those of a place.
const FINER: u32 = 40;

/// The bits of a minted count: 48 of whole tokens, which wrap, above 64 of fraction.
pub(crate) const MINTED_BITS: u32 = 112;
/// The mask of a minted count.
const MINTED_MASK: u128 = (1 << MINTED_BITS) - 1;

/// How far `V` may run ahead of its start before the line has to be started anew: 2³⁷ tokens.
///
/// Places wrap after 2⁴⁰ tokens and are compared by signed differences, so that no two of them may
/// be more than 2³⁹ tokens apart.
const LONGEST: u64 = TOKEN << 37;

/// Where `V` stops until the line is started anew: 2³⁸ tokens, in the units of a minted count.
const LIMIT: u128 = (LONGEST as u128) << (FINER + 1);

/// How far behind the start of the line a caller's clock may be and still take what is there.
pub(crate) const SKEW: u64 = SECOND;

/// A count of minted tokens: Q48.64, wrapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Minted(u128);

impl Minted {
    pub(crate) const fn from_bits(bits: u128) -> Self {
        Self(bits & MINTED_MASK)
    }

    pub(crate) const fn to_bits(self) -> u128 {
        self.0
    }

    const fn plus(self, tokens: u128) -> Self {
        Self::from_bits(self.0.wrapping_add(tokens))
    }

    /// Returns the count in the units of a place, rounded down.
    #[expect(clippy::cast_possible_truncation, reason = "places wrap at 2⁴⁰ tokens")]
    pub(crate) const fn to_place(self) -> Place {
        Place((self.0 >> FINER) as u64)
    }

    /// Returns what [`to_place`](Self::to_place) rounds away.
    const fn below_place(self) -> u128 {
        self.0 & ((1 << FINER) - 1)
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

    /// Returns the place once `count` of those before it are gone.
    pub(crate) const fn less_tokens(self, count: u64) -> Self {
        Self(self.0.wrapping_sub(count.wrapping_mul(TOKEN)))
    }

    /// Returns how far `self` is ahead of `other`, negative if behind.
    pub(crate) const fn since(self, other: Self) -> i64 {
        to_signed(self.0.wrapping_sub(other.0))
    }
}

/// A straight piece of `V`: from `since` on, tokens are minted at `rate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// `V` at the start of the piece.
    pub(crate) minted: Minted,
    /// The start of the piece, in nanoseconds after the limiter's start.
    pub(crate) since: u64,
    pub(crate) rate: Rate,
    /// The capacity, in nanoseconds at the rate.
    pub(crate) burst: u64,
}

impl Line {
    /// Returns `V` at `now`; before the start of the piece, `V` at its start.
    pub(crate) const fn minted_at(&self, now: u64) -> Minted {
        self.minted.plus(self.gain(now))
    }

    /// Returns the tokens minted from the start of the piece to `now`, with 64 fraction bits.
    const fn gain(&self, now: u64) -> u128 {
        // At most 62 bits of time and 64 of rate.
        let gain = (now.saturating_sub(self.since) as u128).wrapping_mul(self.rate.raw() as u128);
        if gain < LIMIT { gain } else { LIMIT }
    }

    /// Returns the whole units of a place that `V` has moved by since the start, at most 2³⁸ tokens.
    #[expect(clippy::cast_possible_truncation, reason = "the gain is limited")]
    const fn gain_units(&self, now: u64) -> u64 {
        (self.minted.below_place().wrapping_add(self.gain(now)) >> FINER) as u64
    }

    /// Whether the piece is so long that it must be started anew before places alias.
    pub(crate) const fn is_too_long(&self, now: u64) -> bool {
        self.gain_units(now) >= LONGEST
    }

    /// Returns how far `V(now)` is past `place`, in units of a place; negative if it is not there yet.
    const fn past(&self, now: u64, place: Place) -> i64 {
        // The first term is within 2³⁸ tokens, by the settling at each change, and so is the second.
        self.minted
            .to_place()
            .since(place)
            .wrapping_add(to_signed(self.gain_units(now)))
    }

    /// Whether nothing is granted for a while, not even what the bucket holds.
    pub(crate) const fn is_paused(&self) -> bool {
        self.rate.raw() == Rate::LEAST.raw()
    }

    /// Returns the most tokens that the bucket holds.
    pub(crate) const fn capacity(&self) -> u64 {
        capacity(self.rate, self.burst)
    }

    /// Returns the tokens in the bucket at `now`, with 64 fraction bits; 0 if more are promised.
    pub(crate) fn available(&self, now: u64, issued: Place, cancelled: u64) -> u128 {
        let live = issued.less_tokens(cancelled);
        let past = i128::from(self.minted.to_place().since(live)) << FINER;
        let exact = self.minted.below_place().wrapping_add(self.gain(now));
        let balance = past.wrapping_add(i128::try_from(exact).unwrap_or(i128::MAX >> 1));
        let capacity = i128::from(self.capacity()) << FINER;
        u128::try_from(balance.min(capacity)).unwrap_or(0)
    }

    /// Whether the bucket holds at `now` what it can.
    #[cfg(feature = "std")]
    pub(crate) const fn is_full(&self, now: u64, issued: Place, cancelled: u64) -> bool {
        self.past(now, issued.less_tokens(cancelled)) >= to_signed(self.capacity())
    }

    /// Returns `issued` with the tokens that do not fit the bucket at `now` written off.
    ///
    /// This is what ends a piece, before a larger capacity could bring them back. Writing them off at
    /// any other moment changes no answer.
    pub(crate) const fn settled(&self, now: u64, issued: Place, cancelled: u64) -> Place {
        let past = self.past(now, issued.less_tokens(cancelled));
        let excess = past.saturating_sub(to_signed(self.capacity()));
        if excess > 0 {
            issued.plus(excess.unsigned_abs())
        } else {
            issued
        }
    }

    /// Returns the nanoseconds until there is another token, after a take that found none. At least 1.
    pub(crate) fn wait_for_next(&self, now: u64, issued: Place, cancelled: u64) -> u64 {
        let behind = self.since.saturating_sub(now);
        if behind > SKEW {
            let next = self.settled(now, issued, cancelled).plus(TOKEN);
            return self.wait_for(now, next.less_tokens(cancelled)).unwrap_or(1);
        }
        // A bucket that has no token has none to write off.
        self.time_until(now, issued.plus(TOKEN).less_tokens(cancelled))
    }

    /// Returns what of the line a take at `now` goes by, or `None` if the piece
    /// [is too long](Self::is_too_long).
    #[inline]
    pub(crate) const fn level(&self, now: u64) -> Option<Level> {
        let gain = self.gain_units(now);
        if gain >= LONGEST {
            return None;
        }
        Some(Level {
            minted: self.minted.to_place().plus(gain),
            capacity: self.capacity(),
            too_early: self.since.saturating_sub(now) > SKEW,
        })
    }

    /// Returns the nanoseconds from `now` until `V` reaches `place`, or `None` if it has.
    ///
    /// Exact: one nanosecond less is not enough. Saturates at 584 years after the start, also where
    /// no tokens are minted.
    pub(crate) fn wait_for(&self, now: u64, place: Place) -> Option<u64> {
        let behind = self.since.saturating_sub(now);
        if self.past(now, place) >= 0 {
            return behind.checked_sub(SKEW).filter(|wait| *wait > 0);
        }
        Some(self.time_until(now, place))
    }

    /// Returns the nanoseconds from `now` until `V` reaches `place`, which it has not.
    fn time_until(&self, now: u64, place: Place) -> u64 {
        let missing = place.since(self.minted.to_place());
        let target = u128::from(u64::try_from(missing).unwrap_or(0)) << FINER;
        let needed = target.saturating_sub(self.minted.below_place());
        nanos_for(needed, self.rate)
            .saturating_add(self.since)
            .saturating_sub(now)
    }
}

/// What a take goes by, computed once however often it is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    minted: Place,
    capacity: u64,
    /// Whether the caller's clock is too far behind for anything to be had.
    too_early: bool,
}

impl Level {
    /// Takes the next token: returns where `issued` moves, or `None` if there is no token.
    #[inline]
    pub(crate) const fn take(self, issued: Place, cancelled: u64) -> Option<Place> {
        match self.held(issued, cancelled) {
            (excess, TOKEN..) => Some(issued.plus(excess.wrapping_add(TOKEN))),
            _ => None,
        }
    }

    /// Takes as many of the next `most` tokens as there are, and returns where `issued` moves and how many they are.
    pub(crate) fn take_up_to(
        self,
        issued: Place,
        cancelled: u64,
        most: u32,
    ) -> Option<(Place, u32)> {
        let (excess, held) = self.held(issued, cancelled);
        let tokens = u32::try_from(held / TOKEN).unwrap_or(u32::MAX).min(most);
        let moved = excess.wrapping_add(TOKEN.wrapping_mul(u64::from(tokens)));
        (tokens > 0).then(|| (issued.plus(moved), tokens))
    }

    /// Returns what does not fit the bucket, which is written off first, and what may be taken from it.
    #[inline]
    const fn held(self, issued: Place, cancelled: u64) -> (u64, u64) {
        let past = self.minted.since(issued.less_tokens(cancelled));
        let excess = past.saturating_sub(to_signed(self.capacity));
        if self.too_early || past <= 0 {
            (0, 0)
        } else if excess > 0 {
            (excess.unsigned_abs(), self.capacity)
        } else {
            (0, past.unsigned_abs())
        }
    }
}

/// Returns the nanoseconds that `needed` tokens, with 64 fraction bits, take at `rate`, rounded up; all there are if
/// nothing is minted.
fn nanos_for(needed: u128, rate: Rate) -> u64 {
    let rate = rate.raw();
    // A fraction of a token is what nearly all ask for, and by far the cheaper division.
    if let (Ok(needed), true) = (u64::try_from(needed), rate > 0) {
        return needed.div_ceil(rate);
    }
    let elapsed = needed
        .saturating_add(u128::from(rate.saturating_sub(1)))
        .checked_div(u128::from(rate));
    elapsed.map_or(u64::MAX, |e| u64::try_from(e).unwrap_or(u64::MAX))
}

/// Returns the most tokens that a bucket holds: what `burst` nanoseconds at `rate` bring, and at least one, but none in a
/// pause.
///
/// A function of the rate alone, so that it needs no word of its own.
#[expect(clippy::cast_possible_truncation, reason = "under 2³⁴ tokens")]
pub(crate) const fn capacity(rate: Rate, burst: u64) -> u64 {
    // Rounded to nearest: a whole number of tokens must not lose one to the rounding of the rate.
    let exact = (rate.raw() as u128).wrapping_mul(burst as u128);
    let burst = shift_right_rounding(exact, FINER) as u64;
    if rate.raw() == Rate::LEAST.raw() {
        0
    } else if burst > TOKEN {
        burst
    } else {
        TOKEN
    }
}

#[cfg(test)]
mod tests;
