//! The line of tokens in three words, changed by one compare-and-swap and read without a lock.
//!
//! Rules, cited by number below and in the models:
//!
//! 1. `head` names the current segment: when it began and at which rate it mints. Replacing it by
//!    the next segment is the change of rate, and the only step that changes an answer.
//! 2. `anchor` holds `V` at the beginning of segment `head` or of the one before it, `previous` is the head
//!    of one of these two segments. Each says of which by a sequence number.
//! 3. Before segment `n` is replaced, `anchor` is moved to `n`, then `previous` is. Anyone may do this for
//!    anyone: the values follow from the words, so that who does it and when changes no answer.
//! 4. A reader takes `head`, then `anchor`, and `previous` if the anchor is one behind, then
//!    looks whether `head` is still the same. If so, all were of the same or the preceding segment.
//!
//! A thread that stops between any two of these steps leaves words that rule 4 can read and rule 3
//! can finish. When it goes on, its compare-and-swaps expect whole words that it loaded while its segment was
//! the current one. Such a word comes back only if 2¹⁶ changes happen at one reading of the clock: `head` and
//! `previous` hold times and `anchor` the tokens minted, and none of them goes back.

use super::bits::{Field, TIME_BITS};
use super::sync::{
    AtomicU128,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::fixed::Rate;
use crate::line::{Line, MINTED_BITS, Minted};

/// Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 62 | when the segment began, ns after the limiter's start |
/// | 49 | the rate it mints at |
/// | 1 | the version of the throttle that the rate follows from, its lowest bit |
/// | 16 | sequence number |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head(u128);

impl Head {
    const SINCE: Field = Field::lowest(TIME_BITS);
    const RATE: Field = Self::SINCE.above(Rate::BITS);
    const THROTTLE: Field = Self::RATE.above(1);
    const SEQUENCE: Field = Self::THROTTLE.above(16);

    /// The first sequence number, just before the wrap so that every test crosses it.
    const FIRST: u64 = 0xfffe;

    const fn initial() -> Self {
        Self(Self::SEQUENCE.put(Self::FIRST))
    }

    /// Returns the segment after this one.
    pub(super) const fn next(self, since: u64, rate: Rate, throttle: u64) -> Self {
        Self(
            Self::SINCE.put(since)
                | Self::RATE.put(rate.to_bits())
                | Self::THROTTLE.put(throttle)
                | Self::SEQUENCE.put(Self::SEQUENCE.next(self.0)),
        )
    }

    pub(super) const fn since(self) -> u64 {
        Self::SINCE.get(self.0)
    }

    /// Returns the rate; zero before the first change.
    pub(super) const fn rate(self) -> Rate {
        Self::RATE.rate(self.0)
    }

    /// Returns the lowest bit of the version of the throttle that the rate follows from.
    pub(super) const fn throttle(self) -> u64 {
        Self::THROTTLE.get(self.0)
    }

    /// Whether the rate follows from the throttle numbered `version`, given that it follows from that one or
    /// from the one before.
    pub(super) const fn follows(self, version: u64) -> bool {
        self.0 & Self::THROTTLE.put(u64::MAX) == Self::THROTTLE.put(version)
    }

    const fn sequence(self) -> u64 {
        Self::SEQUENCE.get(self.0)
    }

    /// Whether this is the segment right before `head`.
    const fn is_before(self, head: Self) -> bool {
        Self::SEQUENCE.next(self.0) == head.sequence()
    }

    const fn line(self, minted: Minted, burst: u64) -> Line {
        Line {
            minted,
            since: self.since(),
            rate: self.rate(),
            burst,
        }
    }
}

/// Low bits first: 112 of `V` at the beginning of a segment, 16 of the segment's sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Anchor(u128);

impl Anchor {
    const SEQUENCE: Field = Field::lowest(64)
        .above(MINTED_BITS.wrapping_sub(64))
        .above(16);

    const fn new(minted: Minted, sequence: u64) -> Self {
        Self(minted.to_bits() | Self::SEQUENCE.put(sequence))
    }

    const fn minted(self) -> Minted {
        Minted::from_bits(self.0)
    }

    const fn sequence(self) -> u64 {
        Self::SEQUENCE.get(self.0)
    }

    /// Whether this is `V` at the beginning of `head`.
    const fn is_of(self, head: Head) -> bool {
        self.sequence() == head.sequence()
    }

    /// Returns `V` at the beginning of `head` if this is the anchor of `previous`, the segment before it.
    const fn folded(self, previous: Head, head: Head) -> Option<Minted> {
        if self.is_of(previous) && previous.is_before(head) {
            return Some(previous.line(self.minted(), 0).minted_at(head.since()));
        }
        None
    }
}

const _: () = assert!(
    Head::SEQUENCE.is_last() && Anchor::SEQUENCE.is_last(),
    "the fields fill the words"
);

/// The words of the line; see the rules above.
#[derive(Debug)]
pub(super) struct Segments {
    head: AtomicU128,
    anchor: AtomicU128,
    previous: AtomicU128,
    /// Of every segment, in nanoseconds at its rate.
    burst: u64,
}

// Orderings. Loads acquire, successful compare-and-swaps release, in all three words: a reader that sees
// segment `n` in `head` must see `anchor` and `previous` at `n − 1` or later (rule 3 put them there before), and
// one that sees them at `n` must see `head` at `n` when it looks again (rule 4). A compare-and-swap
// that loses hands nothing on: what it wanted is done, and the words are loaded again before they are used.
// Models: `send_rate::a_reader_sees_one_line`; stopped writers: `ci/stall.sh`.
impl Segments {
    /// Creates the words of a line that mints nothing, and stands at `minted`; of buckets that hold `burst` nanoseconds
    /// at their rate.
    pub(super) fn new(minted: Minted, burst: u64) -> Self {
        let head = Head::initial();
        Self {
            head: AtomicU128::new(head.0),
            anchor: AtomicU128::new(Anchor::new(minted, head.sequence()).0),
            previous: AtomicU128::new(head.0),
            burst,
        }
    }

    pub(super) fn head(&self) -> Head {
        Head(self.head.load(Acquire))
    }

    fn anchor(&self) -> Anchor {
        Anchor(self.anchor.load(Acquire))
    }

    fn previous(&self) -> Head {
        Head(self.previous.load(Acquire))
    }

    /// Returns the current segment and its line, as they were together at some moment of the call.
    ///
    /// Repeats only when another thread has moved the words in the meantime.
    #[inline]
    pub(super) fn read(&self) -> (Head, Line) {
        loop {
            let head = self.head();
            let anchor = self.anchor();
            let minted = if anchor.is_of(head) {
                Some(anchor.minted())
            } else {
                anchor.folded(self.previous(), head)
            };
            if self.head() != head {
                continue;
            }
            if let Some(minted) = minted {
                return (head, head.line(minted, self.burst));
            }
        }
    }

    /// Replaces segment `head` by `next`. False if another thread has replaced it first.
    pub(super) fn replace(&self, head: Head, next: Head) -> bool {
        let replaced = self.exchange(head, next);
        if replaced {
            // The next change would do it. Until then each reader would compute it for itself.
            self.fold(next);
        }
        replaced
    }

    fn exchange(&self, head: Head, next: Head) -> bool {
        self.fold(head);
        // Strong: one caller alone must never fail, or a success of the published law would be skipped.
        self.head
            .compare_exchange(head.0, next.0, Release, Relaxed)
            .is_ok()
    }

    /// Moves `anchor`, then `previous`, to segment `head` (rule 3). Does nothing if they are there.
    fn fold(&self, head: Head) {
        let anchor = self.anchor();
        let previous = self.previous();
        let folded = anchor.folded(previous, head);
        // After both loads: if the segment is still the current one, they are of it or of the one before.
        // Without this look, a thread that stopped for 2¹⁶ changes could mistake what it loads.
        if self.head() != head {
            return;
        }
        // A loss means that another thread has moved the word: to the same value, or past it.
        if let Some(minted) = folded {
            let next = Anchor::new(minted, head.sequence());
            let _ = self
                .anchor
                .compare_exchange(anchor.0, next.0, Release, Relaxed);
        }
        if previous.is_before(head) {
            let _ = self
                .previous
                .compare_exchange(previous.0, head.0, Release, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
