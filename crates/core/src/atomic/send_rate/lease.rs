//! Leases: tokens that a thread has taken ahead, and spends one by one.
//!
//! One swap of `issued` takes several tokens, and the thread spends them by plain loads and stores
//! of words that no other thread writes. A lease is a stretch of the line: the positions behind
//! `cursor`, up to `last`. All of these positions were due when the lease was taken. A spend moves
//! `cursor` on by one token, as a grant moves `issued`. If a full bucket stands further on, the
//! spend starts from there. So tokens that a full bucket would have discarded are not spent. The
//! rest is given back by moving `issued` back to `cursor`, as if the tokens had been granted one by
//! one.
//!
//! The position of a full bucket is a product of two words. A spend does not compute this product.
//! It compares the age of the lease with one of two times, and computes the position only if the
//! comparison fails.
//!
//! | the lease | its next token | holds |
//! |---|---|---|
//! | counts | one of `left`, if its age is below `turn` | `cursor = base − left`; a full bucket stands no further on before `turn` |
//! | overflows | if its age is `turn` or more, and below `overflows` | `cursor` is one token past where a full bucket stood a `gap` before `turn`; in a `gap` the rate brings a token |
//!
//! A lease ends
//!
//! - when it is [`LONGEST`] old. So the grants from `t1` to `t2` are at most the bucket's tokens
//!   plus `V(t2) − V(t1 − LONGEST)`;
//! - when the state or the settings change: see `lend`;
//! - when its thread does anything but take one more token. The thread first gives back the rest.
//!
//! A thread that looks at the law gives back the leases of threads that have ended. Meanwhile the
//! thread has the number of the ended thread, and so owns the words.
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
//! | give back, not as the last | good or too old | none | stays; what a full bucket has kept is written off |
//! | give back | ended | none | stays: the tokens are lost |
//!
//! A lease is the last if no token was promised behind it. A thread that gives up a place first
//! gives back its lease, but only if the lease is the last. No other thread changes these words.
//! Other threads end a lease by raising `changes`.
//!
//! # Why leases grant no token twice
//!
//! All tokens of a lease come from one swap, and were due by the clock of that take. A lease is
//! spent by clock readings less than [`LONGEST`] after the take. So readings in `[t1, t2]` spend
//! only tokens that readings in `[t1 − LONGEST, t2]` took. `try_acquire_with` spends up to seven
//! tokens at the reading of the token before them. So each thread may be granted seven more. A
//! lease that goes back and is not the last is written off in whole tokens. Tests:
//! `ages_decide_as_a_full_bucket_does`, `linearizability`. Models:
//! `lease::leases_that_come_and_go_grant_each_token_once`,
//! `lease::a_lease_goes_from_thread_to_thread_and_is_spent_once`.
//!
//! # What a full bucket keeps
//!
//! Let `c(p)` be the tokens given up before the token at `p`. A full bucket keeps that token until
//! `V(now) − capacity` reaches its rank, `p − c(p)`. Tokens given up behind `p` do not change this
//! rank. So `C`, the count of all tokens given up, is too large in place of `c(p)`. With `C`,
//! tokens would be lost if a later lease went back first.
//!
//! A lease knows a lower bound of the part of `C` behind it. The upper bits of `total` count the
//! tokens given up at places of their own: of leases and of places in line, not of credits. Let `D`
//! be the growth of this count since the take, and `h` how far the bucket was from full at the
//! take. At most `h` of the `D` tokens stood before the lease. The reason is that all promised
//! tokens that come back fit a bucket. So there are no more of them than positions from where a
//! full bucket stands up to `issued`. So at least `D − h` of the `D` tokens are behind the lease.
//! `C` is loaded before `issued` is swapped, and both counts are one word. So no token in `D` is in
//! the `C` from which `h` was computed.
//!
//! The rest is an induction over the takes. Let `p` be the lowest token that comes back later, and
//! `b` the tokens given up behind `p`. Then `p − 1 >= V − capacity + C − b`. The positions from `p`
//! to `issued` are these `b` tokens and all tokens that come back. So `issued − (V − capacity + C)`
//! is at least the number that come back. The grants from then on are at most what the bucket
//! holds.
//!
//! If `h` is too large, tokens are lost, but never more than were minted since the take. A place
//! may be given up although a full bucket would have discarded its token. Such a place had come due
//! before, and was not claimed. Tests: `leases_of_a_full_bucket_go_back_in_any_order`,
//! `a_lease_before_another_leaves_room_for_fewer_of_its_tokens`. Model:
//! `lease::leases_given_back_out_of_order_bring_what_fits`.

use alloc::boxed::Box;

use super::waiters::placed_between;
use crate::atomic::counter::own_words;
use crate::atomic::sync::{AtomicU64, Ordering::Relaxed};
use crate::fixed::Rate;
use crate::line::{FINER, Minted, Place, TOKEN};
use crate::padded::Padded;

/// How long a lease is good for, as a power of two of nanoseconds: 0.26 ms.
pub(super) const LONGEST_BITS: u32 = 18;
const LONGEST: u64 = 1 << LONGEST_BITS;

/// The most tokens of one lease.
pub(super) const MOST: u64 = 1 << 12;

/// A lease takes at most one in so many of the tokens there, so that other threads find some too.
pub(super) const PART: u64 = 8;

/// How many tokens in a row `try_acquire_with` spends without a look at the clock.
const UNTIMED: u64 = 7;

/// A lease for each thread whose number is below [`own_words`].
pub(super) struct Leases {
    /// An array in place, with no pointer or length to load. This saves 1 ns of 10 for a caller
    /// that has just read the clock.
    first: [Padded<Lease>; FIRST],
    rest: Box<[Padded<Lease>]>,
}

/// On any machine, at least so many threads have words to themselves.
const FIRST: usize = if cfg!(all(loom, feature = "loom")) {
    2
} else {
    16
};

impl Leases {
    /// The least rate at which leases are taken: two tokens in [`LONGEST`].
    pub(super) const LEAST_RATE: u64 = 2 << (64 - LONGEST_BITS);

    pub(super) fn new() -> Self {
        let lease = || Padded::new(Lease::default());
        Self {
            first: core::array::from_fn(|_| lease()),
            rest: (FIRST..own_words()).map(|_| lease()).collect(),
        }
    }

    /// Returns the lease of the thread with `number`.
    #[inline]
    pub(super) fn of(&self, number: usize) -> Option<&Lease> {
        let lease = match self.first.get(number) {
            None => self.rest.get(number.wrapping_sub(FIRST))?,
            Some(lease) => lease,
        };
        Some(lease)
    }

    /// Returns all leases, in the order of their threads' numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = &Lease> {
        self.first.iter().chain(&self.rest).map(|lease| &**lease)
    }
}

/// The state of the line from which a lease is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// How often leases had been ended before the line was loaded.
    pub(super) changes: u64,
    /// When the lease is taken: the caller's time, or the start of the limiter if the start is
    /// later.
    pub(super) from: u64,
    /// Where `issued` would stand at `from` if the bucket were full.
    pub(super) full: Place,
    /// The position minted by `from`.
    pub(super) minted: Minted,
    pub(super) rate: Rate,
    /// How many tokens had been given up before the take.
    pub(super) cancelled: u64,
}

/// The tokens that one thread has taken ahead.
#[derive(Default)]
pub(super) struct Lease {
    pub(super) changes: AtomicU64,
    from: AtomicU64,
    /// If the lease counts, the age at which it must be reckoned again. If it overflows, the age at
    /// which it may spend the next token.
    turn: AtomicU64,
    /// How many tokens may be spent before `turn`.
    left: AtomicU64,
    /// The age below which the lease overflows; 0 if it counts.
    overflows: AtomicU64,
    /// The nanoseconds in which the rate mints a token, rounded up.
    gap: AtomicU64,
    /// How many more tokens may be spent at the time in `read_at`.
    untimed: AtomicU64,
    /// The last clock reading that [`note_time`](Self::note_time) noted.
    read_at: AtomicU64,
    /// If the lease counts, where the cursor stands once all of `left` is spent.
    base: AtomicU64,
    /// The last position of the lease; equal to the cursor if nothing is left.
    last: AtomicU64,
    full: AtomicU64,
    /// The bits of `minted` below the unit of a place.
    fraction: AtomicU64,
    rate: AtomicU64,
    cancelled: AtomicU64,
    /// How many tokens before the lease may be given up later, at most.
    before: AtomicU64,
    /// What [`ask`](Self::ask) returned last: how many tokens to take, or 1 for no lease.
    batch: AtomicU64,
}

// Relaxed throughout. Only the thread that has the number writes, so a value that it has loaded is
// still there when it stores. The next thread with the same number has seen all stores: see
// `Slots`. Model: `lease::a_lease_goes_from_thread_to_thread_and_is_spent_once`. Other threads read
// these words only to show them, or to find leases to collect.
impl Lease {
    /// Takes a token of the lease at `now`, if its `changes` is current and its age alone decides.
    /// If this fails, [`reckon`](Self::reckon) may still take a token.
    #[inline]
    pub(super) fn spend(&self, changes: u64, now: u64) -> bool {
        if self.changes.load(Relaxed) != changes {
            return false;
        }
        let age = now.wrapping_sub(self.from.load(Relaxed));
        let turn = self.turn.load(Relaxed);
        if age >= turn {
            if age < self.overflows.load(Relaxed) {
                let turn = age.wrapping_add(self.gap.load(Relaxed));
                self.turn.store(turn, Relaxed);
                return true;
            }
            return false;
        }
        self.count_down()
    }

    /// Takes a token of the lease at an earlier clock reading, and returns that reading; `None` if
    /// the clock has to be read again.
    #[inline]
    pub(super) fn spend_untimed(&self, changes: u64) -> Option<u64> {
        let untimed = self.untimed.load(Relaxed).checked_sub(1)?;
        if self.changes.load(Relaxed) != changes || !self.count_down() {
            return None;
        }
        self.untimed.store(untimed, Relaxed);
        Some(self.read_at.load(Relaxed))
    }

    /// Notes a clock reading at which the next few tokens may be spent.
    pub(super) fn note_time(&self, now: u64) {
        self.read_at.store(now, Relaxed);
        self.untimed.store(UNTIMED, Relaxed);
    }

    #[inline]
    fn count_down(&self) -> bool {
        let left = self.left.load(Relaxed).checked_sub(1);
        if let Some(left) = left {
            self.left.store(left, Relaxed);
        }
        left.is_some()
    }

    /// Takes a token as [`spend`](Self::spend) does, but computes where the cursor and a full
    /// bucket stand. If the bucket is full, and `may` is true, the lease overflows from then on.
    pub(super) fn reckon(&self, changes: u64, now: u64, may: bool) -> bool {
        let age = now.wrapping_sub(self.from.load(Relaxed));
        // Also if `now` is before the take: the age wraps.
        if age >= LONGEST || self.changes.load(Relaxed) != changes {
            return false;
        }
        let (full, cursor) = (self.full_at(age), self.cursor());
        let is_full = full.since(cursor) > 0;
        let next = if is_full { full } else { cursor }.plus(TOKEN);
        let goes = self.last().since(next) >= 0;
        if goes {
            self.go_on(age, next, full, is_full && may);
        }
        goes
    }

    /// Goes on from `cursor` at `age`, when a full bucket stands at `full`. If the lease is to
    /// overflow, `full` is one token before `cursor`.
    fn go_on(&self, age: u64, cursor: Place, full: Place, overflows: bool) {
        let rate = self.rate.load(Relaxed);
        if overflows {
            // Below the age `end`, a token past a full bucket is at most the last position.
            let first = Place::from_bits(self.full.load(Relaxed)).plus(TOKEN);
            let end = nanos_within(self.last().since(first).max(0).unsigned_abs(), rate);
            if age < end {
                self.left.store(0, Relaxed);
                self.overflows.store(end, Relaxed);
                let turn = age.wrapping_add(self.gap.load(Relaxed));
                self.turn.store(turn, Relaxed);
                return;
            }
        }
        self.count(cursor);
        let ahead = cursor.since(full).max(0).unsigned_abs();
        let turn = age.saturating_add(nanos_within(ahead, rate));
        self.turn.store(turn.min(LONGEST), Relaxed);
    }

    /// Lets the lease count down the whole tokens from `cursor` to `last`.
    fn count(&self, cursor: Place) {
        let left = self.last().since(cursor).max(0).unsigned_abs() / TOKEN;
        self.left.store(left, Relaxed);
        let base = cursor.plus(left.wrapping_mul(TOKEN));
        self.base.store(base.to_bits(), Relaxed);
        self.overflows.store(0, Relaxed);
    }

    /// Returns where a full bucket stands when the lease is `age` old.
    fn full_at(&self, age: u64) -> Place {
        let minted = u128::from(self.rate.load(Relaxed)).wrapping_mul(u128::from(age));
        let minted = minted.wrapping_add(u128::from(self.fraction.load(Relaxed))) >> FINER;
        #[expect(clippy::cast_possible_truncation, reason = "2¹⁸ tokens at most")]
        Place::from_bits(self.full.load(Relaxed)).plus(minted as u64)
    }

    /// Returns the last position that was spent.
    pub(super) fn cursor(&self) -> Place {
        if self.overflows.load(Relaxed) > 0 {
            let turn = self.turn.load(Relaxed);
            let age = turn.wrapping_sub(self.gap.load(Relaxed));
            return self.full_at(age).plus(TOKEN);
        }
        Place::from_bits(self.base.load(Relaxed)).less_tokens(self.left.load(Relaxed))
    }

    pub(super) fn last(&self) -> Place {
        Place::from_bits(self.last.load(Relaxed))
    }

    /// Begins a lease of the positions behind `first`, which is spent already, up to `last`.
    pub(super) fn begin(&self, terms: Terms, first: Place, last: Place) {
        const FRACTION: u128 = (1 << FINER) - 1;
        let fraction = (terms.minted.to_bits() & FRACTION) as u64;
        let rate = terms.rate.raw();
        self.changes.store(terms.changes, Relaxed);
        self.full.store(terms.full.to_bits(), Relaxed);
        self.fraction.store(fraction, Relaxed);
        self.rate.store(rate, Relaxed);
        self.gap.store(nanos_for_one(rate), Relaxed);
        self.last.store(last.to_bits(), Relaxed);
        let before = first.since(terms.full.plus(TOKEN)).max(0).unsigned_abs();
        self.cancelled.store(terms.cancelled, Relaxed);
        self.before.store(before / TOKEN, Relaxed);
        self.go_on(0, first, terms.full, before == 0);
        self.note_time(terms.from);
    }

    /// Returns how many tokens to take at `now`. Within half of [`LONGEST`] after the last call
    /// this is twice the last number, within [`LONGEST`] the last number, else 1.
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

    /// Empties the lease, and returns its cursor and its last position; `None` if nothing was left.
    pub(super) fn take_rest(&self) -> Option<(Place, Place)> {
        let (cursor, last) = (self.cursor(), self.last());
        if cursor == last {
            return None;
        }
        // Before the tokens go back: a thread that stops in between loses tokens, and grants none
        // twice.
        self.last.store(cursor.to_bits(), Relaxed);
        self.count(cursor);
        Some((cursor, last))
    }

    /// Returns how many of `cancelled` tokens given up may have stood before the lease: all but the
    /// tokens that certainly stood behind it. Tokens behind the lease do not change its rank.
    pub(super) fn cancelled_before(&self, cancelled: u64) -> u64 {
        let given_up = placed_between(self.cancelled.load(Relaxed), cancelled);
        cancelled.wrapping_sub(given_up.saturating_sub(self.before.load(Relaxed)))
    }

    /// Puts back the `last` that [`take_rest`](Self::take_rest) returned.
    pub(super) fn resume(&self, last: Place) {
        self.last.store(last.to_bits(), Relaxed);
    }
}

/// Returns the nanoseconds in which `rate` mints a token, rounded up.
const fn nanos_for_one(rate: u64) -> u64 {
    match u64::MAX.checked_div(rate) {
        Some(nanos) => nanos.saturating_add(1), // 2⁶⁴ is one more than that
        None => u64::MAX,
    }
}

/// Returns a time in which `rate` mints at most `units` of a place. The time is nearly the longest
/// such, and at most [`LONGEST`].
fn nanos_within(units: u64, rate: u64) -> u64 {
    // No rate mints so much in `LONGEST`.
    if units >= TOKEN << LONGEST_BITS {
        return LONGEST;
    }
    // The rate is rounded up, with 46 fraction bits in place of 64.
    let rate = (rate >> LONGEST_BITS).saturating_add(1);
    let units = units << (FINER.saturating_sub(LONGEST_BITS));
    units
        .checked_div(rate)
        .map_or(0, |nanos| nanos.min(LONGEST))
}

#[cfg(all(test, feature = "std"))]
mod tests;
