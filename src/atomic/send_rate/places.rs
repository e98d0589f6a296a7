//! Which places in the line were given up: one bit each, in a ring of words.
//!
//! Rules, cited by number below and in the models:
//!
//! 1. A waiter's rank is its place less the places before it that were given up. Counts of these
//!    only grow, are never too large, and may be late: a late one delays a waiter, none lets too
//!    many go.
//! 2. Places are taken together in blocks of 32. `front` says which block is the first one not
//!    retired, and how many places were given up in all the retired ones.
//! 3. A block is retired once every place in it is due: its word is closed, so that its bits are
//!    final, then `front` moves past it and adds them. Both steps follow from the words, so that
//!    anyone may finish them.
//! 4. A place given up sets its bit while its block's word is open, and is added to `front` once
//!    the block is retired: never both, because either is a compare-and-swap on the word that rules
//!    it out.
//! 5. A word belongs to one block of each lap around the ring, and says which lap it is in. A
//!    thread that stopped before its compare-and-swap finds another lap, looks at `front` and goes
//!    by that.
//!
//! A place given up more than a ring's length behind the front is forgotten: its token is lost,
//! nobody is let go early, and those behind it do not move up.

use alloc::boxed::Box;

use crate::atomic::sync::{
    AtomicU64, AtomicU128,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::bits::Field;
use crate::fixed::to_signed;
use crate::line::{Place, TOKEN};

/// How many places a block has.
const BLOCK: u64 = 32;
/// The bits of a block's number: places have 40 bits above the fraction, blocks 5 fewer.
const BLOCK_BITS: u32 = 35;

/// The first unretired block and what was given up before it. Low bits first: 35 of the block's
/// number, 64 of the count of places given up in retired blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Front(u128);

impl Front {
    const FIRST: Field = Field::lowest(BLOCK_BITS);
    const RETIRED: Field = Self::FIRST.above(64);

    const fn new(first: u64, retired: u64) -> Self {
        Self(Self::FIRST.put(first) | Self::RETIRED.put(retired))
    }

    const fn first(self) -> u64 {
        Self::FIRST.get(self.0)
    }

    const fn retired(self) -> u64 {
        Self::RETIRED.get(self.0)
    }

    /// Returns how many blocks `block` is behind the first unretired one; negative if it is
    /// retired.
    const fn offset(self, block: u64) -> i64 {
        signed(block.wrapping_sub(self.first()), BLOCK_BITS)
    }
}

/// One block's word. Low bits first: a bit for each of 32 places, one that says closed, 31 of the
/// lap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word(u64);

impl Word {
    const CLOSED: u64 = 1 << BLOCK;
    const LAP_SHIFT: u32 = 33;

    const fn blank(lap: u64) -> Self {
        Self(lap << Self::LAP_SHIFT)
    }

    const fn lap(self) -> u64 {
        self.0 >> Self::LAP_SHIFT
    }

    const fn is_closed(self) -> bool {
        self.0 & Self::CLOSED != 0
    }

    /// Returns how many of the first `places` were given up.
    const fn count(self, places: u64) -> u64 {
        (self.0 & first_bits(places)).count_ones() as u64
    }
}

/// The places given up.
#[derive(Debug)]
pub(super) struct Cancellations {
    ring: Box<[AtomicU64]>,
    front: AtomicU128,
    total: AtomicU64,
    /// The block that lap 1 began with.
    origin: u64,
}

/// Returns the low `bits` of `value` as a signed number.
const fn signed(value: u64, bits: u32) -> i64 {
    let unused = u64::BITS.wrapping_sub(bits);
    to_signed(value << unused) >> unused
}

/// Returns a word with the lowest `count` bits set, at most 63.
const fn first_bits(count: u64) -> u64 {
    (1_u64 << count).wrapping_sub(1)
}

const fn block_of(place: Place) -> u64 {
    place.to_bits() / (TOKEN * BLOCK)
}

const fn bit_of(place: Place) -> u64 {
    place.to_bits() / TOKEN % BLOCK
}

// Orderings. A word is loaded with acquire and swapped with release: who finds a word of a later
// lap must see the `front` that had moved by then, or it would look again for nothing. `front`
// itself is relaxed: what is counted follows from its own chain of swaps and from the words' final
// values, and a stale one makes the swaps fail. Models: `line::a_place_given_up_is_counted_once`,
// `line::a_lap_later_the_front_has_moved`.
impl Cancellations {
    /// Creates the bits for a line that begins at `place`, with `total` given up so far, 32 places
    /// for each of `words`, rounded up to a power of two.
    pub(super) fn new(place: Place, total: u64, words: usize) -> Self {
        let origin = block_of(place);
        let words = words.next_power_of_two();
        Self {
            ring: (0..words).map(|_| AtomicU64::new(0)).collect(),
            front: AtomicU128::new(Front::new(origin, total).0),
            total: AtomicU64::new(total),
            origin,
        }
    }

    /// Returns how many places were ever given up, perhaps too few.
    pub(super) fn total(&self) -> u64 {
        // Acquire, with the release in `cancel`: read before `issued` by everyone who subtracts it,
        // it is never ahead of it. Model: `send_rate::live_places_never_run_backwards`.
        self.total.load(Acquire)
    }

    /// Adds `places` to the total, after they were noted: it is late rather than early (rule 1).
    fn count(&self, places: u64) {
        // Release: see `total`.
        self.total.fetch_add(places, Release);
    }

    fn front(&self) -> Front {
        Front(self.front.load(Relaxed))
    }

    /// Returns the lap of the ring that `block` is in, from 1, wrapping.
    fn lap(&self, block: u64) -> u64 {
        let from_origin = block.wrapping_sub(self.origin);
        let lap = (from_origin >> self.ring.len().trailing_zeros()).wrapping_add(1);
        // Also rids it of what a block number has not.
        lap & (u64::MAX >> u64::BITS.wrapping_sub(self.lap_bits()))
    }

    fn lap_bits(&self) -> u32 {
        BLOCK_BITS
            .wrapping_sub(self.ring.len().trailing_zeros())
            .min(31)
    }

    /// Returns the word of `block`'s slot and how many laps it is ahead of `block`.
    fn word(&self, block: u64) -> Option<(&AtomicU64, Word, i64)> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "masked to the ring's length"
        )]
        let slot = (block.wrapping_sub(self.origin) as usize) & self.ring.len().wrapping_sub(1);
        let atomic = self.ring.get(slot)?;
        let word = Word(atomic.load(Acquire));
        Some((
            atomic,
            word,
            signed(word.lap().wrapping_sub(self.lap(block)), self.lap_bits()),
        ))
    }

    /// Whether `block` is further behind the front than the ring reaches.
    fn is_beyond(&self, front: Front, block: u64) -> bool {
        u64::try_from(front.offset(block)).is_ok_and(|offset| offset >= self.ring.len() as u64)
    }

    /// Whether `place` is at least half the ring's length behind the front.
    pub(super) fn is_half_full(&self, place: Place) -> bool {
        let half = (self.ring.len() as u64) >> 1;
        u64::try_from(self.front().offset(block_of(place))).is_ok_and(|offset| offset >= half)
    }

    /// Gives up `place` and those right before it, `weight` in all.
    ///
    /// Those of different blocks are not given up at once, which rule 1 allows.
    pub(super) fn cancel(&self, place: Place, weight: u32) {
        let noted = self.note(place, weight);
        if noted > 0 {
            self.count(noted);
        }
    }

    /// Counts `tokens` more places as given up, before every place there is.
    pub(super) fn write_off(&self, tokens: u64) {
        loop {
            let front = self.front();
            let retired = front.retired().wrapping_add(tokens);
            if self.advance(front, Front::new(front.first(), retired)) {
                return self.count(tokens);
            }
        }
    }

    /// Writes down that `place` and those right before it were given up. Returns how many of the
    /// `weight` are not too far back to be remembered.
    ///
    /// Passes over a block of the ring once at most, and over all retired ones together.
    fn note(&self, place: Place, weight: u32) -> u64 {
        let weight = u64::from(weight);
        let mut noted = 0;
        while noted < weight {
            let left = weight.wrapping_sub(noted);
            let next = place.less_tokens(left.wrapping_sub(1));
            let (block, bit) = (block_of(next), bit_of(next));
            let front = self.front();
            if self.is_beyond(front, block) {
                break;
            }
            let behind = front.offset(block);
            if behind < 0 {
                let retired = behind.unsigned_abs().wrapping_mul(BLOCK).wrapping_sub(bit);
                let some = left.min(retired);
                let counted = Front::new(front.first(), front.retired().wrapping_add(some));
                if self.advance(front, counted) {
                    noted = noted.wrapping_add(some);
                }
                continue;
            }
            let some = left.min(BLOCK.wrapping_sub(bit));
            match self.mark(block, first_bits(some) << bit) {
                Mark::Done => noted = noted.wrapping_add(some),
                Mark::Again => {}
                Mark::Closed => self.retire_through(block),
            }
        }
        noted
    }

    /// Tries to set `bits` of `block`'s word.
    fn mark(&self, block: u64, bits: u64) -> Mark {
        let Some((atomic, word, ahead)) = self.word(block) else {
            return Mark::Again;
        };
        let open = match ahead {
            0 if word.is_closed() => return Mark::Closed,
            0 => word,
            // The slot was last used a lap ago or more: rule 5.
            ..0 => Word::blank(self.lap(block)),
            // The front has moved on since it was read.
            1.. => return Mark::Again,
        };
        let marked = open.0 | bits;
        match atomic.compare_exchange(word.0, marked, Release, Relaxed) {
            Ok(_) => Mark::Done,
            Err(_) => Mark::Again,
        }
    }

    fn advance(&self, front: Front, next: Front) -> bool {
        self.front
            .compare_exchange(front.0, next.0, Relaxed, Relaxed)
            .is_ok()
    }

    /// Retires every block that lies wholly before `due`, where `due(retired)` is the place that
    /// has come due once `retired` places were given up.
    pub(super) fn retire(&self, due: impl Fn(u64) -> Place) {
        let front = self.front();
        let first_left = block_of(due(front.retired()));
        if front.offset(first_left) > 0 {
            self.retire_through(first_left.wrapping_sub(1));
        }
    }

    /// Retires the blocks up to `last`, or as many as no other thread has retired meanwhile (rule
    /// 3).
    fn retire_through(&self, last: u64) {
        let front = self.front();
        let Ok(behind) = u64::try_from(front.offset(last)) else {
            return;
        };
        let mut retired = front.retired();
        // Blocks beyond the ring have no word; what was given up there was forgotten.
        for step in 0..behind.saturating_add(1).min(self.ring.len() as u64) {
            let Some(closed) = self.close(front.first().wrapping_add(step)) else {
                return;
            };
            retired = retired.wrapping_add(closed.count(BLOCK));
        }
        let next = Front::new(last.wrapping_add(1), retired);
        // A loss means that another thread has moved it, and that it will be looked at again.
        let _ = self.advance(front, next);
    }

    /// Closes `block`'s word and returns it, or `None` if the block is long retired.
    fn close(&self, block: u64) -> Option<Word> {
        loop {
            let (atomic, word, ahead) = self.word(block)?;
            let open = match ahead {
                0 if word.is_closed() => return Some(word),
                0 => word,
                ..0 => Word::blank(self.lap(block)),
                1.. => return None,
            };
            let closed = Word(open.0 | Word::CLOSED);
            if atomic
                .compare_exchange(word.0, closed.0, Release, Relaxed)
                .is_ok()
            {
                return Some(closed);
            }
        }
    }

    /// Returns how many places before `place` were given up, perhaps too few (rule 1).
    ///
    /// In a retired block, where all are due, it counts those given up in all retired blocks.
    pub(super) fn before(&self, place: Place) -> u64 {
        let block = block_of(place);
        loop {
            let front = self.front();
            if front.offset(block) < 0 {
                return front.retired();
            }
            if let Some(marked) = self.marked_before(front, block, bit_of(place)) {
                return front.retired().wrapping_add(marked);
            }
        }
    }

    /// Counts the bits between the front and `bit` of `block`; `None` if the front has moved on.
    fn marked_before(&self, front: Front, block: u64, bit: u64) -> Option<u64> {
        let whole = u64::try_from(front.offset(block)).ok()?;
        let mut marked = 0_u64;
        for step in 0..=whole.min((self.ring.len() as u64).wrapping_sub(1)) {
            let (_, word, ahead) = self.word(front.first().wrapping_add(step))?;
            match ahead {
                0 => {
                    let places = if step == whole { bit } else { BLOCK };
                    marked = marked.wrapping_add(word.count(places));
                }
                ..0 => {}
                1.. => return None,
            }
        }
        Some(marked)
    }
}

enum Mark {
    Done,
    Again,
    Closed,
}

#[cfg(test)]
mod tests;
