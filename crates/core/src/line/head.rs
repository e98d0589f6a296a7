//! A line in the word that holds it.
//!
//! # Rounding
//!
//! The origin has 30 fraction bits and is rounded to nearest. So a change moves `V` by at most 2⁻³¹
//! token, up or down. A place has 24 fraction bits, and may step back by one unit. So a full bucket
//! of one token may refuse at the very nanosecond of a change. As long as the bucket is never full,
//! errors add up like a random walk: to about 3·10⁻⁶ token after 10⁸ changes.

use super::{Line, Minted, TOKEN, tokens_of};
use crate::bits::Field;
use crate::fixed::Rate;

/// A line in one word. Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 64 | where the line would have been at time 0: Q40.24 tokens, wrapping |
/// | 49 | the rate |
/// | 1 | the version of the law's state that the rate follows from, its lowest bit |
/// | 6 | six more fraction bits of the origin |
/// | 8 | when the rate was changed, in 2¹⁰ ns, wrapping |
///
/// The last field keeps a word from coming back: two lines that are equal in all the others are one
/// function unless they were changed within a microsecond of each other, or 2¹⁸ ns apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head(u128);

/// How far the origin's fraction bits are below the point in a minted count.
const DROPPED: u32 = 34;

impl Head {
    const ORIGIN: Field = Field::lowest(64);
    const RATE: Field = Self::ORIGIN.above(Rate::BITS);
    const THROTTLE: Field = Self::RATE.above(1);
    const FINER: Field = Self::THROTTLE.above(6);
    const CHANGED: Field = Self::FINER.above(8);

    /// Returns the line through `minted` at `end`, rounded to 2⁻³⁰ tokens.
    #[inline]
    pub(crate) fn through(minted: Minted, end: u64, rate: Rate, throttle: u64) -> Self {
        let half = 1_u128 << (DROPPED - 1);
        let origin = minted.less(tokens_of(rate, end)).plus(half).to_bits() >> DROPPED;
        #[expect(clippy::cast_possible_truncation, reason = "cut to the fields")]
        let (coarse, finer) = ((origin >> 6) as u64, origin as u64);
        Self(
            Self::ORIGIN.put(coarse)
                | Self::RATE.put(rate.to_bits())
                | Self::THROTTLE.put(throttle)
                | Self::FINER.put(finer)
                | Self::CHANGED.put(end >> 10),
        )
    }

    pub(crate) const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    pub(crate) const fn to_bits(self) -> u128 {
        self.0
    }

    /// Returns the line that holds from `since` on, of buckets that hold `burst` nanoseconds at
    /// their rate, and one token at least.
    #[inline]
    pub(crate) const fn line(self, since: u64, burst: u64) -> Line {
        Line {
            origin: self.origin(),
            since,
            rate: self.rate(),
            burst,
            least: TOKEN,
        }
    }

    const fn origin(self) -> Minted {
        let coarse = (Self::ORIGIN.get(self.0) as u128) << 40;
        let finer = (Self::FINER.get(self.0) as u128) << DROPPED;
        Minted::from_bits(coarse | finer)
    }

    /// Returns the rate; zero before the first change.
    pub(crate) const fn rate(self) -> Rate {
        Rate::from_bits(Self::RATE.get(self.0))
    }

    /// Returns the lowest bit of the version of the law's state that the rate follows from.
    pub(crate) const fn throttle(self) -> u64 {
        Self::THROTTLE.get(self.0)
    }

    /// Returns `true` if the rate follows from the state numbered `version`, given that it follows
    /// from that one or from the one before.
    pub(crate) const fn follows(self, version: u64) -> bool {
        self.0 & Self::THROTTLE.put(u64::MAX) == Self::THROTTLE.put(version)
    }
}

const _: () = assert!(Head::CHANGED.is_last(), "the fields fill the word");

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::super::{Minted, tokens_of};
    use super::Head;
    use crate::fixed::Rate;

    /// Rounding errors of changes add up like a random walk: 10⁸ of them are off by a few
    /// millionths of a token.
    #[test]
    fn many_changes_drift_by_millionths() {
        let changes = if cfg!(debug_assertions) {
            1_000_000
        } else {
            100_000_000
        };
        let mut rng = Rng::with_seed(1);
        let mut exact = Minted::from_bits(0);
        let mut head = Head::through(exact, 0, Rate::ZERO, 0);
        let mut now = 0_u64;
        for _ in 0..changes {
            let end = now.wrapping_add(rng.u64(..1_000_000));
            exact = exact.plus(tokens_of(head.rate(), end.wrapping_sub(now)));
            let line = head.origin().plus(tokens_of(head.rate(), end));
            let rate = Rate::from_ratio(rng.u32(1..1_000_000), 1_000_000_000);
            head = Head::through(line, end, rate, 0);
            now = end;
        }
        let line = head.origin().plus(tokens_of(head.rate(), now));
        let drift = line.less(exact.to_bits()).to_bits();
        let drift = drift.min(exact.less(line.to_bits()).to_bits());
        println!("{changes} changes: off by {drift} of 2^64 units to a token");
        assert!(drift < (1 << 64) / 100_000, "{drift}");
    }
}
