//! How leases are taken, given back and ended: see `lease`.
//!
//! `changes` is raised before the state is replaced, and once more after that. A lease keeps the
//! count that was loaded before the head. A lease is taken only if the head follows the state,
//! which is loaded after both. A lease that is taken before the second raise ends with that raise.
//! A lease that is taken after that raise is of a head that follows the new state. New settings and
//! a reset raise `changes` once more after the head was replaced. Models:
//! `lease::a_cut_ends_the_lease_of_another_thread`,
//! `lease::a_lease_taken_beside_a_pause_ends_with_it`,
//! `lease::a_lease_taken_beside_two_changes_ends_with_them`.
//!
//! A thread may stop while there are leases:
//!
//! - With a lease, or while it gives a lease back: the tokens are lost, like those that a full
//!   bucket discards.
//! - Between the swap of the state and the second raise of `changes`: leases taken since the first
//!   raise live on until they are too old.
//! - With the number of a thread that has ended: the next thread that would have that number gets
//!   another number.

use super::acquire::{Engaged, Words};
use super::lease::{LONGEST_BITS, Lease, Leases, MOST, PART, Terms};
use crate::atomic::counter::{cores, known_number, number, own_words, stand_in};
use crate::atomic::sync::Ordering::{Acquire, Relaxed, Release};
use crate::fixed::Rate;
use crate::line::{LONGEST as LONGEST_LINE, Level, Line, Place, TOKEN};

impl Words {
    /// Returns the lease of the calling thread, and how often leases have been ended. Also `None`
    /// if the thread has yet to ask for its number, and so has no lease.
    #[inline]
    pub(super) fn lease(&self) -> Option<(&Lease, u64)> {
        let lease = self.leases.get()?.of(known_number())?;
        // Relaxed: see `end_leases`.
        Some((lease, self.changes.load(Relaxed)))
    }

    /// Ends all leases: what is granted is about to change, or has just changed.
    pub(super) fn end_leases(&self) {
        // Release, with the acquire of a thread that takes a lease. If this addition is first, the
        // taking thread finds the state that was replaced before, and takes nothing of a head that
        // does not follow this state. If the load is first, the lease has the old count and ends
        // here. Model: `lease::a_cut_ends_the_lease_of_another_thread`. A spending thread loads the
        // count relaxed. If the thread has learned of the change, it finds the count raised before
        // the change, by coherence.
        self.changes.fetch_add(1, Release);
    }
}

/// The view of a limiter for threads that take tokens ahead.
#[derive(Clone, Copy)]
pub(super) struct Lending<'a>(&'a Engaged<'a>);

impl Engaged<'_> {
    /// Returns what threads have taken ahead.
    #[inline]
    pub(super) const fn lending(&self) -> Lending<'_> {
        Lending(self)
    }
}

impl<'a> Lending<'a> {
    /// Returns the lease of the calling thread, if any thread has had a lease.
    #[inline]
    pub(super) fn own(self) -> Option<&'a Lease> {
        self.0.leases.get()?.of(number())
    }

    /// Takes several tokens at once and spends the first, if the calling thread may do so and will
    /// soon spend the others. `false` if it is to take a single token.
    #[inline(never)]
    pub(super) fn take_ahead(self, now: u64) -> bool {
        let Self(engaged) = self;
        if number() >= own_words() {
            return false;
        }
        // `changes` before the head, with acquire: see `end_leases`.
        let changes = engaged.changes.load(Acquire);
        let (head, line) = engaged.line().look();
        if now.wrapping_sub(line.since) >= LONGEST_LINE || line.rate <= Rate::LEAST {
            return false;
        }
        let minted = line.extended_to(now);
        let level = |cancelled| Level::new(minted, line.capacity(), cancelled);
        let most = line.rate.raw() >> (64_u32.saturating_sub(LONGEST_BITS)) >> cores().ilog2();
        let has_many = level(engaged.line().waiters.total()).held(engaged.line().issued())
            >= PART.wrapping_mul(2);
        if most < 2 || !has_many {
            return false;
        }
        let Some(lease) = engaged.leases.get_or_make(Leases::new).of(number()) else {
            return false;
        };
        // The lease may be left over from an ended thread, whose number the calling thread has just
        // got. It goes back before the tokens given up are counted.
        self.hand_back_of(lease, now);
        let cancelled = engaged.line().waiters.total();
        let level = level(cancelled);
        let from = engaged.law.start.as_nanos().saturating_add(now);
        let batch = lease.ask(from).min(most);
        // The state after the head and `changes`: see `end_leases`.
        if batch < 2 || !head.follows(engaged.state.load().version()) {
            return false;
        }
        let mut first = Place::from_bits(0);
        let taken = engaged.line().issue(|issued| {
            first = level.next(issued).ok_or(())?;
            let more = (level.held(first) / PART).min(batch.wrapping_sub(1));
            Ok::<_, ()>(first.plus(more.wrapping_mul(TOKEN)))
        });
        let Ok(last) = taken else { return false };
        let terms = Terms {
            changes,
            from,
            full: level.full(),
            minted,
            rate: line.rate,
            cancelled,
        };
        lease.begin(terms, first, last);
        true
    }

    /// Gives back what is left of the lease of the calling thread.
    pub(super) fn hand_back(self, elapsed: u64) {
        if let Some(lease) = self.own() {
            self.hand_back_of(lease, elapsed);
        }
    }

    /// Gives back what the calling thread has taken ahead, and ends the leases of others.
    pub(super) fn end(self, elapsed: u64) {
        self.hand_back(elapsed);
        self.0.end_leases();
    }

    /// Gives back the rest of the calling thread's lease, if no other thread has taken a token
    /// since. Called before tokens ahead of the lease are given up, since the lease would not know
    /// that a full bucket then loses more. Else the lease stays, and may bring what its age allows
    /// (see `lease`).
    pub(super) fn hand_back_last(self) {
        let Some(lease) = self.own() else { return };
        let Some((cursor, last)) = lease.take_rest() else {
            return;
        };
        let is_current = lease.changes.load(Relaxed) == self.0.changes.load(Relaxed);
        if is_current && self.0.line().take_back(last, cursor) {
            self.0.line().forget_hint();
        } else {
            lease.resume(last);
        }
    }

    /// Gives back what is left of `lease`, whose number the calling thread has.
    #[inline]
    pub(super) fn hand_back_of(self, lease: &Lease, elapsed: u64) {
        if let Some((cursor, last)) = lease.take_rest() {
            // After a change the rest is lost: a pause has emptied the bucket.
            if lease.changes.load(Relaxed) == self.0.changes.load(Relaxed) {
                self.put_back(lease, cursor, last, elapsed);
            }
        }
    }

    /// Gives back the positions of `lease` behind `cursor`, up to `last`.
    #[inline(never)]
    fn put_back(self, lease: &Lease, cursor: Place, last: Place, elapsed: u64) {
        // If no other thread has taken a token since, it is as if these had never been taken.
        if !self.0.line().take_back(last, cursor) {
            let Some(line) = self.0.line_at(elapsed) else {
                return;
            };
            let cancelled = lease.cancelled_before(self.0.line().waiters.total());
            let left = kept(&line, elapsed, cancelled, cursor, last);
            // At most what a full bucket has kept of these tokens, so that there is room. The gate
            // is not disturbed: tokens that come back end no lease.
            self.0.line().waiters.write_off_placed(left / TOKEN);
        }
        self.0.line().forget_hint();
    }

    /// Gives back the leases of threads that have ended.
    pub(super) fn collect(self, elapsed: u64) {
        let Some(leases) = self.0.leases.get() else {
            return;
        };
        for (number, lease) in leases.all().enumerate() {
            if lease.cursor() != lease.last() {
                stand_in(number, || self.hand_back_of(lease, elapsed));
            }
        }
    }

    /// Returns the last token promised, less the unspent tokens of leases that have not ended.
    pub(super) fn unspent(self, line: &Line, elapsed: u64, cancelled: u64) -> Place {
        let (mut issued, changes) = (self.0.line().issued(), self.0.changes.load(Relaxed));
        for lease in self.0.leases.get().into_iter().flat_map(Leases::all) {
            let cancelled = lease.cancelled_before(cancelled);
            let left = kept(line, elapsed, cancelled, lease.cursor(), lease.last());
            // Relaxed: only shown. A lease that seems too large was read while it was taken.
            if lease.changes.load(Relaxed) == changes && left <= MOST.wrapping_mul(TOKEN) {
                issued = issued.less(left);
            }
        }
        issued
    }
}

/// Returns how much of the positions behind `cursor`, up to `last`, the bucket of `line` has kept
/// until `elapsed`, with so many tokens `cancelled` before these.
fn kept(line: &Line, elapsed: u64, cancelled: u64, cursor: Place, last: Place) -> u64 {
    let from = line.spilled(elapsed, cursor, cancelled);
    last.since(from).max(0).unsigned_abs()
}
