//! The line of tokens in one word.
//!
//! `V(t) = origin + rate · t` numbers the tokens that have been minted by `t`. A change of the rate
//! at `end` is one compare-and-swap, to the line through the same point with the new slope:
//! `origin' = origin + (rate − rate') · end`. Nothing is left half done by a thread that stops, so
//! there is nothing to help with, and one load is one line.
//!
//! `since` is a time before which no change has been. It is raised before the swap, so that it is
//! never behind the line that a reader has loaded; it may be ahead of it, if the thread that raised
//! it has stopped or lost.
//!
//! Places wrap after 2⁴⁰ tokens. A line that has not been changed for 68 s is renewed: `since` is
//! moved along, and what no longer fits the bucket is written off. If so many tokens have been
//! minted meanwhile that they cannot be told from others, `since` is marked first, then the line is
//! moved to where the bucket is full, then the mark is taken away.

use crate::atomic::sync::{
    AtomicU64, AtomicU128,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crate::bits::Field;
use crate::fixed::Rate;
use crate::line::{Line, Minted, tokens_of};

/// Low bits first:
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
pub(super) struct Head(u128);

/// How far the origin's fraction bits are below the point in a minted count.
const DROPPED: u32 = 34;

impl Head {
    const ORIGIN: Field = Field::lowest(64);
    const RATE: Field = Self::ORIGIN.above(Rate::BITS);
    const THROTTLE: Field = Self::RATE.above(1);
    const FINER: Field = Self::THROTTLE.above(6);
    const CHANGED: Field = Self::FINER.above(8);

    /// Returns the line through `minted` at `end`, rounded to 2⁻³⁰ tokens.
    fn through(minted: Minted, end: u64, rate: Rate, throttle: u64) -> Self {
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

    const fn origin(self) -> Minted {
        let coarse = (Self::ORIGIN.get(self.0) as u128) << 40;
        let finer = (Self::FINER.get(self.0) as u128) << DROPPED;
        Minted::from_bits(coarse | finer)
    }

    /// Returns the rate; zero before the first change.
    pub(super) const fn rate(self) -> Rate {
        Self::RATE.rate(self.0)
    }

    /// Returns the lowest bit of the version of the law's state that the rate follows from.
    pub(super) const fn throttle(self) -> u64 {
        Self::THROTTLE.get(self.0)
    }

    /// Whether the rate follows from the state numbered `version`, given that it follows from that
    /// one or from the one before.
    pub(super) const fn follows(self, version: u64) -> bool {
        self.0 & Self::THROTTLE.put(u64::MAX) == Self::THROTTLE.put(version)
    }
}

const _: () = assert!(Head::CHANGED.is_last(), "the fields fill the word");

/// In `since`: the line has wrapped, and goes on with a full bucket from the time in the other
/// bits.
const WRAPPED: u64 = 1 << 63;

/// The words of the line.
#[derive(Debug)]
pub(super) struct LineWords {
    head: AtomicU128,
    since: AtomicU64,
    /// What the bucket holds, in nanoseconds at its rate.
    burst: u64,
}

// Orderings. `head` is loaded with acquire and swapped with release after `since` was raised, so
// that a thread that has loaded a line finds a `since` that is not behind it. No model shows this
// yet. `since` is loaded with acquire and raised with release for the sake of a line that has wrapped: a thread that finds it unmarked again must find
// the head that goes on. Model: `send_rate::a_wrapped_line_goes_on_with_a_full_bucket`.
impl LineWords {
    /// Creates the words of a line that mints nothing, and stands at `place`; of buckets that hold
    /// `burst` nanoseconds at their rate.
    pub(super) fn new(place: Minted, burst: u64) -> Self {
        Self {
            head: AtomicU128::new(Head::through(place, 0, Rate::ZERO, 0).0),
            since: AtomicU64::new(0),
            burst,
        }
    }

    #[inline]
    pub(super) fn head(&self) -> Head {
        Head(self.head.load(Acquire))
    }

    /// Returns the current head and its line. A line that has wrapped begins at a time that no
    /// clock shows.
    #[inline]
    pub(super) fn read(&self) -> (Head, Line) {
        let head = self.head();
        // After the head, see above.
        let since = self.since.load(Acquire);
        (head, self.line_of(head, since))
    }

    const fn line_of(&self, head: Head, since: u64) -> Line {
        Line {
            origin: head.origin(),
            since,
            rate: head.rate(),
            burst: self.burst,
        }
    }

    /// Returns the time that a line which has wrapped goes on from, `None` if it has not wrapped.
    pub(super) const fn wrapped_at(line: &Line) -> Option<u64> {
        if line.since >= WRAPPED {
            Some(line.since ^ WRAPPED)
        } else {
            None
        }
    }

    /// Raises the time of the last change to `now`, and returns when the next change begins: then,
    /// or later. `None` if the line has wrapped, and has to be [continued](Self::go_on) first.
    pub(super) fn raise(&self, now: u64) -> Option<u64> {
        let mut seen = self.since.load(Acquire);
        loop {
            if seen >= now {
                return (seen < WRAPPED).then_some(seen);
            }
            match self
                .since
                .compare_exchange_weak(seen, now, Release, Acquire)
            {
                Ok(_) => return Some(now),
                Err(actual) => seen = actual,
            }
        }
    }

    /// Takes the time of the last change back to `now`, if it is still `seen`.
    pub(super) fn bring_back(&self, seen: u64, now: u64) -> bool {
        self.since
            .compare_exchange(seen, now, Release, Relaxed)
            .is_ok()
    }

    /// Notes that `line` has wrapped by `now`. From then on no thread takes a token before it goes
    /// on.
    pub(super) fn wrap(&self, line: &Line, now: u64) {
        // A loss means that another thread has noted it, or has changed the line.
        let _ = self
            .since
            .compare_exchange(line.since, now | WRAPPED, Release, Relaxed);
    }

    /// Lets a line that has wrapped go on from `now` with `minted` tokens: with a full bucket. Any
    /// thread may do it for any other: nothing is granted meanwhile, so that all of them
    /// compute the same line, or one that is lower by places that have been given up in
    /// between.
    pub(super) fn go_on(&self, now: u64, minted: impl FnOnce(&Line) -> Minted) {
        let (head, line) = self.read();
        if line.since != now | WRAPPED {
            return;
        }
        let minted = minted(&line);
        // Looked at again, by a swap: it comes before the one that takes the mark away, which
        // acquires it. So what `minted` was computed from was loaded before any token was
        // granted after that.
        let marked = line.since;
        let looked = self
            .since
            .compare_exchange(marked, marked, Release, Relaxed);
        if looked.is_ok() {
            let _ = self.replace(head, minted, now, line.rate, head.throttle());
            let _ = self.since.compare_exchange(marked, now, AcqRel, Relaxed);
        }
    }

    /// Replaces `head` by the line that goes on from `minted` at `end` with `rate`. False if
    /// another thread has replaced it first. `end` comes from [`raise`](Self::raise).
    pub(super) fn replace(
        &self,
        head: Head,
        minted: Minted,
        end: u64,
        rate: Rate,
        throttle: u64,
    ) -> bool {
        let next = Head::through(minted, end, rate, throttle);
        // Strong: one caller alone must never fail, or a success of the published law would be
        // skipped. A thread that loses loads all again before it uses it.
        self.head
            .compare_exchange(head.0, next.0, Release, Relaxed)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

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
