//! Leases: tokens that a thread has taken ahead, and spends one by one.
//!
//! One swap of `issued` takes several tokens, and the thread spends them by plain loads and stores
//! of words that no other thread writes. A lease is a stretch of the line: the positions behind
//! `cursor`, up to `last`. All of them were due when it was taken. A spend moves `cursor` as a
//! grant moves `issued`: by one token, from where a full bucket stands if that is further on. So
//! tokens that a full bucket would have discarded are not spent, and what is left over can be given
//! back by taking `issued` back to `cursor`, as if the tokens had been granted one by one.
//!
//! A lease ends
//!
//! - when it is [`LONGEST`] old: so what is granted from `t1` to `t2` is at most what the bucket
//!   holds and `V(t2) − V(t1 − LONGEST)`;
//! - when the state or the settings change: `changes` is raised before that and after it. A lease
//!   keeps the count that was loaded before the head that its tokens are of, and is none if that
//!   head does not follow the state;
//! - when its thread does anything but take one token more: first it gives back what is left.
//!
//! The lease of a thread that has ended is given back by a thread that looks at the law: it takes
//! the number of the one that ended, which makes it the owner of the words for as long.
//!
//! # States of a lease
//!
//! | state | `cursor` and `last` | age | its `changes` |
//! |---|---|---|---|
//! | none | equal | any | any |
//! | good | `cursor < last` | below [`LONGEST`] | that of the limiter |
//! | too old | `cursor < last` | [`LONGEST`] or more | that of the limiter |
//! | ended | `cursor < last` | any | lower |
//!
//! | operation | before | after | `issued` |
//! |---|---|---|---|
//! | take | none | good, its first token spent | `i → last`, by one swap |
//! | spend | good | good or none, `cursor` a token further on | stays |
//! | give back, as the last | good or too old | none | `last → cursor`, by one swap |
//! | give back, not as the last | good or too old | none | stays; what the bucket has is written off |
//! | give back | ended | none | stays: the tokens are lost |
//!
//! A lease is the last if no token was promised behind it. One that is not the last stays where a
//! place is given up. Another thread changes none of these words: it ends a lease by `changes`.

use alloc::boxed::Box;

use crossbeam_utils::CachePadded;

use crate::atomic::counter::{number, own_words};
use crate::atomic::sync::{AtomicU64, Ordering::Relaxed};
use crate::fixed::Rate;
use crate::line::{FINER, Minted, Place, TOKEN};

/// How long a lease is good for, as a power of two of nanoseconds: 0.26 ms.
pub(super) const LONGEST_BITS: u32 = 18;
const LONGEST: u64 = 1 << LONGEST_BITS;

/// The most tokens of one lease.
pub(super) const MOST: u64 = 1 << 12;

/// A lease takes one of so many tokens that are there, so that threads find some to the last.
pub(super) const PART: u64 = 8;

/// How many tokens in a row are spent without a look at the clock, by callers who leave that to the
/// limiter.
const UNTIMED: u64 = 7;

/// A lease for each thread that has a number among the first.
pub(super) struct Leases(pub(super) Box<[CachePadded<Lease>]>);

impl Leases {
    /// No lease is taken at a lower rate: two tokens in [`LONGEST`].
    pub(super) const LEAST_RATE: u64 = 2 << (64 - LONGEST_BITS);

    pub(super) fn new() -> Self {
        let leases = (0..own_words()).map(|_| CachePadded::new(Lease::new()));
        Self(leases.collect())
    }

    /// Returns the lease of the calling thread.
    #[inline]
    pub(super) fn own(&self) -> Option<&Lease> {
        self.0.get(number()).map(|lease| &**lease)
    }
}

/// What of the line a lease is taken from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// How often leases had been ended before the line was loaded.
    pub(super) changes: u64,
    /// When it is taken.
    pub(super) from: u64,
    /// Where `issued` stands then when the bucket is full.
    pub(super) full: Place,
    /// What has been minted then.
    pub(super) minted: Minted,
    pub(super) rate: Rate,
}

/// The tokens that one thread has taken ahead.
pub(super) struct Lease {
    pub(super) changes: AtomicU64,
    from: AtomicU64,
    full: AtomicU64,
    /// What `minted` has beyond a place.
    fraction: AtomicU64,
    rate: AtomicU64,
    /// The last position that was spent.
    cursor: AtomicU64,
    /// The last position of the lease: at `cursor`, if there is nothing left.
    last: AtomicU64,
    /// How many tokens to take next, or 1 for no lease.
    batch: AtomicU64,
    /// When the clock was read last, and how many tokens may be spent before it is again.
    read_at: AtomicU64,
    untimed: AtomicU64,
}

// Relaxed throughout: only the thread that has the number writes, so that what it has loaded is
// still there when it stores. The next thread with the same number has seen all, see `Slots`.
// Model: `lease::a_lease_goes_from_thread_to_thread_and_is_spent_once`. What others read is only
// shown, or says that there may be something to collect.
impl Lease {
    pub(super) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            changes: zero(),
            from: zero(),
            full: zero(),
            fraction: zero(),
            rate: zero(),
            cursor: zero(),
            last: zero(),
            batch: zero(),
            read_at: zero(),
            untimed: zero(),
        }
    }

    /// Takes a token of the lease at `now`, if leases have been ended `changes` times.
    #[inline]
    pub(super) fn spend(&self, changes: u64, now: u64) -> bool {
        let age = now.wrapping_sub(self.from.load(Relaxed));
        // Also if `now` is before it was taken.
        if age >= LONGEST || self.changes.load(Relaxed) != changes {
            return false;
        }
        let minted = u128::from(self.rate.load(Relaxed)).wrapping_mul(u128::from(age));
        let minted = minted.wrapping_add(u128::from(self.fraction.load(Relaxed))) >> FINER;
        #[expect(clippy::cast_possible_truncation, reason = "2¹⁸ tokens at most")]
        let full = Place::from_bits(self.full.load(Relaxed)).plus(minted as u64);
        let cursor = self.cursor();
        let next = if full.since(cursor) > 0 { full } else { cursor };
        self.advance(next.plus(TOKEN))
    }

    /// Takes a token of the lease at the time that was read for one before, and returns that time;
    /// `None` if the clock has to be read again.
    #[inline]
    pub(super) fn spend_untimed(&self, changes: u64) -> Option<u64> {
        let untimed = self.untimed.load(Relaxed).checked_sub(1)?;
        let goes = self.changes.load(Relaxed) == changes && self.advance(self.cursor().plus(TOKEN));
        goes.then(|| {
            self.untimed.store(untimed, Relaxed);
            self.read_at.load(Relaxed)
        })
    }

    /// Notes that the clock has been read.
    pub(super) fn note_time(&self, now: u64) {
        self.read_at.store(now, Relaxed);
        self.untimed.store(UNTIMED, Relaxed);
    }

    /// Moves the cursor to `next`, unless that is past the end.
    #[inline]
    fn advance(&self, next: Place) -> bool {
        let goes = self.last().since(next) >= 0;
        if goes {
            self.cursor.store(next.to_bits(), Relaxed);
        }
        goes
    }

    pub(super) fn cursor(&self) -> Place {
        Place::from_bits(self.cursor.load(Relaxed))
    }

    pub(super) fn last(&self) -> Place {
        Place::from_bits(self.last.load(Relaxed))
    }

    /// Begins a lease of the positions behind `first`, which is spent already, up to `last`.
    pub(super) fn begin(&self, terms: Terms, first: Place, last: Place) {
        const FRACTION: u128 = (1 << FINER) - 1;
        let fraction = (terms.minted.to_bits() & FRACTION) as u64;
        self.changes.store(terms.changes, Relaxed);
        self.full.store(terms.full.to_bits(), Relaxed);
        self.fraction.store(fraction, Relaxed);
        self.rate.store(terms.rate.raw(), Relaxed);
        self.cursor.store(first.to_bits(), Relaxed);
        self.last.store(last.to_bits(), Relaxed);
        self.note_time(terms.from);
    }

    /// Returns how many tokens to take at `now`: twice as many as last time if those were used up
    /// soon, else as many as were used.
    pub(super) fn ask(&self, now: u64) -> u64 {
        let last = self.batch.load(Relaxed);
        let passed = now.wrapping_sub(self.from.load(Relaxed));
        let batch = if passed < LONGEST / 2 {
            last.wrapping_mul(2).clamp(1, MOST)
        } else if passed < LONGEST {
            last.max(1)
        } else {
            1
        };
        self.batch.store(batch, Relaxed);
        self.from.store(now, Relaxed);
        batch
    }

    /// Empties the lease, and returns what it spanned; `None` if nothing is left of it.
    pub(super) fn take_rest(&self) -> Option<(Place, Place)> {
        let (cursor, last) = (self.cursor(), self.last());
        if cursor == last {
            return None;
        }
        // First: a thread that stops afterwards loses tokens, and grants none twice.
        self.last.store(cursor.to_bits(), Relaxed);
        Some((cursor, last))
    }

    /// Goes on up to `last`, which was taken from it.
    pub(super) fn resume(&self, last: Place) {
        self.last.store(last.to_bits(), Relaxed);
    }
}

#[cfg(all(test, feature = "std"))]
mod tests;
