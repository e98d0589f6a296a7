//! The users of a scope, and the places of a bounded store of scopes.

use crate::cells::{halves, whole};
use crate::seam::sync::{
    AtomicU64, AtomicU128,
    Ordering::{Acquire, Relaxed, Release},
};

/// A count of users that decides, in one word, whether a thing is used again or retired for good.
///
/// Bits 0 to 60 count the users. Bit 61 is set once, when the thing has its place in the store.
/// Every user that enters sets bit 62, and every look clears it. So a look notices a user that has
/// come and gone. Bit 63 is set once, when the thing is retired. From then on the count means
/// nothing.
///
/// | state | users | bit 61 | bit 62 | bit 63 |
/// |---|---|---|---|---|
/// | made | 1 or more | 0 | any | 0 |
/// | in use | 1 or more | 1 | any | 0 |
/// | left | 0 | 1 | 1 | 0 |
/// | idle | 0 | 1 | 0 | 0 |
/// | retired | any | any | any | 1 |
///
/// | call | before | after |
/// |---|---|---|
/// | `enter` | made | made |
/// | `enter` | in use, left, idle | in use |
/// | `enter` | retired | retired, and the call is refused |
/// | `place` | made | in use |
/// | `leave`, the last | in use | left, or idle if a look came after the last `enter` |
/// | `leave_unplaced`, the last | made | retired |
/// | `look` | left | idle |
/// | `retire` | idle | retired |
/// | `retire_unlooked` | left, idle | retired |
///
/// At most one thread may be between [`look`](Self::look) and [`retire`](Self::retire).
#[derive(Debug)]
pub(crate) struct Usage(AtomicU64);

const RETIRED: u64 = 1 << 63;
const TOUCHED: u64 = 1 << 62;
const PLACED: u64 = 1 << 61;
const USERS: u64 = PLACED.wrapping_sub(1);

impl Usage {
    /// Creates the usage of a thing that has no place yet, and one user, its maker.
    #[must_use]
    pub(crate) fn entered() -> Self {
        Self(AtomicU64::new(1))
    }

    /// Begins to use the thing, or returns false if it has been retired.
    #[must_use]
    pub(crate) fn enter(&self) -> bool {
        // Relaxed, here and below: read-modify-writes of one word are totally ordered at any
        // ordering. If this call comes before a retirement, the retirement fails. If it comes
        // after, it finds the thing retired. The map published the thing itself. Models:
        // `usage::what_is_used_is_never_retired`, `usage::a_user_in_between_is_noticed`.
        let before = self.0.fetch_add(1, Relaxed);
        if before & TOUCHED == 0 {
            // No look clears the bit before this user leaves.
            self.0.fetch_or(TOUCHED, Relaxed);
        }
        before & RETIRED == 0
    }

    /// Notes that the thing has its place, and returns true to the first caller.
    pub(crate) fn place(&self) -> bool {
        // Relaxed: the word of the places orders this call, see `Occupancy::take`.
        self.0.fetch_or(PLACED, Relaxed) & PLACED == 0
    }

    /// Returns `true` if the thing's place is noted.
    #[must_use]
    pub(crate) fn is_placed(&self) -> bool {
        // Relaxed: as in `place`.
        self.0.load(Relaxed) & PLACED != 0
    }

    /// Ends a use.
    pub(crate) fn leave(&self) {
        // Release pairs with the acquire of `look`. If the look comes first, it finds a user, and
        // nothing is retired. If this call comes first, the retiring thread sees the user's writes.
        // Model: `usage::what_a_user_did_is_seen_before_it_is_retired`.
        self.0.fetch_sub(1, Release);
    }

    /// Ends a use of a thing that got no place. The last use retires the thing, and then returns
    /// `true`.
    ///
    /// If the thing has its place by now, this call only ends the use.
    #[must_use]
    pub(crate) fn leave_unplaced(&self) -> bool {
        let mut seen = self.0.load(Relaxed);
        loop {
            if seen & PLACED != 0 {
                self.leave();
                return false;
            }
            let last = seen & USERS == 1;
            let next = if last { RETIRED } else { seen.wrapping_sub(1) };
            // Relaxed: no user has done anything to a thing without a place.
            // Model: `usage::what_has_its_place_is_not_withdrawn`.
            match self.0.compare_exchange(seen, next, Relaxed, Relaxed) {
                Ok(_) => return last,
                Err(actual) => seen = actual,
            }
        }
    }

    /// Returns `None` if the thing is in use, retired or without a place. Otherwise returns whether
    /// it was used since the last look.
    ///
    /// If it is unused, its state can be read from then on. [`retire`](Self::retire) fails if that
    /// state may have changed.
    #[must_use]
    pub(crate) fn look(&self) -> Option<bool> {
        // Acquire: see `leave`. The load and the swap acquire, since a user may have come and gone
        // between them. Models: those of `leave` and `enter`, and
        // `usage::what_its_maker_did_is_seen_too`.
        let seen = self.0.load(Acquire);
        if seen & !TOUCHED != PLACED {
            return None;
        }
        if seen == PLACED {
            return Some(false);
        }
        let cleared = self
            .0
            .compare_exchange(seen, PLACED, Acquire, Relaxed)
            .is_ok();
        cleared.then_some(true)
    }

    /// Retires the thing for good, or returns false if a user has entered since the look.
    #[must_use]
    pub(crate) fn retire(&self) -> bool {
        // Relaxed: `look` has seen the users' writes.
        self.0
            .compare_exchange(PLACED, PLACED | RETIRED, Relaxed, Relaxed)
            .is_ok()
    }

    /// Retires the thing without a look, unless it is in use, retired or without a place. Any
    /// thread may call this at any time.
    #[must_use]
    pub(crate) fn retire_unlooked(&self) -> bool {
        // Relaxed: the caller does not read the thing's state. Model: `usage::it_is_retired_once`.
        let seen = self.0.load(Relaxed);
        seen & !TOUCHED == PLACED
            && self
                .0
                .compare_exchange(seen, PLACED | RETIRED, Relaxed, Relaxed)
                .is_ok()
    }

    /// Returns `true` if the thing has been retired, which never ends.
    #[must_use]
    pub(crate) fn is_retired(&self) -> bool {
        // Relaxed: the bit publishes no other data.
        self.0.load(Relaxed) & RETIRED != 0
    }

    /// Returns `true` if the thing is in use at the moment.
    #[must_use]
    pub(crate) fn is_used(&self) -> bool {
        let seen = self.0.load(Relaxed);
        seen & RETIRED == 0 && seen & USERS != 0
    }
}

/// The places of a bounded store, and counts of evictions and refusals.
///
/// One word holds how many places are taken, and which thing took the last place. A thing takes its
/// place by one swap, which counts the thing and names it. If a thread stops after the swap, any
/// other thread can note at the thing that it has its place. This happens before another name
/// replaces the thing's. No thing takes two places, however many threads take a place for it.
#[derive(Debug)]
pub(crate) struct Occupancy {
    taken: AtomicU128,
    most: u64,
    evicted: AtomicU64,
    refused: AtomicU64,
}

/// The places taken, and which thing took the last place. Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 64 | the number of places |
/// | 64 | the thing's number; 0 before the first |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken(u128);

impl Taken {
    fn new(count: u64, last: u64) -> Self {
        Self(whole(count, last))
    }

    pub(crate) fn count(self) -> u64 {
        halves(self.0).0
    }

    pub(crate) fn last(self) -> u64 {
        halves(self.0).1
    }
}

impl Occupancy {
    /// Creates the occupancy of `most` places, all free.
    pub(crate) fn new(most: u64) -> Self {
        Self {
            taken: AtomicU128::new(0),
            most,
            evicted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Returns the places taken.
    pub(crate) fn taken(&self) -> Taken {
        // Acquire pairs with the release of `take`. If the load comes first, a swap that expects
        // the loaded word fails. If the take comes first, the notes at all things named before the
        // last are seen. Model: `occupancy::a_thing_takes_one_place`.
        Taken(self.taken.load(Acquire))
    }

    /// Returns `true` if no place is free.
    pub(crate) fn is_full(&self, taken: Taken) -> bool {
        taken.count() >= self.most
    }

    /// Takes a place for the thing with `number`, or returns false if `seen` is out of date or
    /// full.
    ///
    /// Each number is given out once. Between the load of `seen` and this call, the caller checks
    /// that the thing has no place, and notes the place of the last thing.
    pub(crate) fn take(&self, seen: Taken, number: u64) -> bool {
        let next = Taken::new(seen.count().saturating_add(1), number);
        // Release: see `taken`. A word never comes back, since a name comes once, and the count
        // only falls until the next name. Models: `occupancy::a_thing_takes_one_place`,
        // `occupancy::two_things_never_share_a_place`.
        !self.is_full(seen)
            && self
                .taken
                .compare_exchange(seen.0, next.0, Release, Relaxed)
                .is_ok()
    }

    /// Gives a place back.
    pub(crate) fn give_back(&self) {
        // Relaxed: this call notes nothing, and its swap continues the release sequence of `take`.
        // Model: `occupancy::no_place_is_lost`.
        let mut seen = Taken(self.taken.load(Relaxed));
        loop {
            let next = Taken::new(seen.count().saturating_sub(1), seen.last());
            match self
                .taken
                .compare_exchange(seen.0, next.0, Relaxed, Relaxed)
            {
                Ok(_) => return,
                Err(actual) => seen = Taken(actual),
            }
        }
    }

    /// Counts a thing that was dropped.
    pub(crate) fn note_eviction(&self) {
        // Relaxed, here and below: the counts are only shown.
        self.evicted.fetch_add(1, Relaxed);
    }

    /// Counts a caller that got no place.
    pub(crate) fn note_refusal(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    pub(crate) const fn most(&self) -> u64 {
        self.most
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_not_retired_and_what_is_retired_is_not_used() {
        let usage = Usage::entered();
        assert!(usage.place() && !usage.place());
        assert!(usage.is_used());
        assert_eq!(usage.look(), None);
        assert!(!usage.retire() && !usage.retire_unlooked());
        assert!(usage.enter());
        usage.leave();
        assert!(usage.is_used(), "one of two has left");
        usage.leave();
        assert!(!usage.is_used());
        assert_eq!(usage.look(), Some(true), "a user had entered");
        assert_eq!(usage.look(), Some(false), "no user since");
        assert!(usage.retire());
        assert!(usage.is_retired() && !usage.is_used());
        assert!(!usage.enter() && !usage.enter());
        assert!(usage.is_retired() && !usage.is_used());
        assert_eq!(usage.look(), None);
        assert!(!usage.retire() && !usage.retire_unlooked());
    }

    #[test]
    fn who_comes_and_goes_between_the_look_and_the_retirement_prevents_it() {
        let usage = Usage::entered();
        assert!(usage.place() && !usage.place());
        usage.leave();
        assert_eq!(usage.look(), Some(false), "its maker does not count");
        assert!(usage.enter());
        usage.leave();
        assert!(!usage.retire());
        assert!(usage.retire_unlooked(), "whatever was done to it");
        assert!(usage.is_retired() && !usage.enter());
    }

    #[test]
    fn the_last_user_of_a_thing_without_a_place_retires_it() {
        let usage = Usage::entered();
        assert!(usage.enter());
        assert!(!usage.leave_unplaced() && usage.is_used(), "one is left");
        assert!(usage.leave_unplaced() && usage.is_retired());
        let usage = Usage::entered();
        assert!(usage.enter() && usage.place());
        assert!(!usage.leave_unplaced() && usage.is_used());
        assert!(!usage.leave_unplaced() && !usage.is_retired());
        assert_eq!(usage.look(), Some(true), "it has its place, and no user");
    }
}
