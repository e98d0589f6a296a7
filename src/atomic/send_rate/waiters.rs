//! Those who wait in line, so that they can be woken when their turn comes sooner than they were
//! told.
//!
//! Rules, cited by number below and in the models:
//!
//! 1. Each waiter has a timer of its own, set to when its turn came as it last looked. That alone
//!    serves it: waking is for those whose timer has become late, and whoever stops halfway through
//!    it leaves them as late as that.
//! 2. A waiter stands in the slot of its place's number, in the smallest table where that is free.
//!    Only it leaves it.
//! 3. `front` is the first number at which a waiter may stand, and counts those who take their
//!    stand. A waiter takes it, then sees to it that `front` is not behind it; so that of a walk
//!    and a waiter who comes meanwhile either the walk finds the waiter, or its step from `front`
//!    fails and it walks again.
//! 4. A waiter looks at the line once more after it has taken its stand, one who changes the line
//!    walks after that; with a fence between the two on either side, so that one of them sees the
//!    other.

use alloc::boxed::Box;
use core::{array, task::Waker};

use crate::atomic::lazy::Lazy;
use crate::atomic::sync::{
    AtomicU64, AtomicWaker,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use crate::fixed::to_signed;
use crate::line::{Place, TOKEN};

/// How many bits of a place number it, above the fraction.
const NUMBER_BITS: u32 = 40;

/// The slots of each table: room for 87,360 waiters, and for few in little memory.
const TABLES: &[u64] = if cfg!(any(
    all(loom, feature = "loom"),
    all(shuttle, feature = "shuttle")
)) {
    &[1, 2]
} else {
    &[64, 256, 1_024, 4_096, 16_384, 65_536]
};

const fn number_of(place: Place) -> u64 {
    place.to_bits() >> TOKEN.trailing_zeros()
}

/// Returns how far number `a` is behind number `b` in line; negative if it is ahead.
const fn behind(a: u64, b: u64) -> i64 {
    let unused = u64::BITS.wrapping_sub(NUMBER_BITS);
    to_signed(a.wrapping_sub(b) << unused) >> unused
}

/// The first number at which somebody may stand. Low bits first: 40 of the number, one that says
/// that nobody does, 23 that count those who took their stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Front(u64);

impl Front {
    const NUMBER: u64 = (1 << NUMBER_BITS) - 1;
    const NOBODY: u64 = 1 << NUMBER_BITS;
    const ONE_MORE: u64 = 1 << (NUMBER_BITS + 1);

    const fn number(self) -> Option<u64> {
        if self.0 & Self::NOBODY == 0 {
            Some(self.0 & Self::NUMBER)
        } else {
            None
        }
    }

    const fn with(self, number: Option<u64>) -> Self {
        let count = self.0 & !(Self::NOBODY | Self::NUMBER);
        match number {
            Some(number) => Self(count | (number & Self::NUMBER)),
            None => Self(count | Self::NOBODY),
        }
    }

    const fn with_one_more(self) -> Self {
        Self(self.0.wrapping_add(Self::ONE_MORE))
    }

    /// Whether nobody stands before `number`.
    const fn is_before_all(self, number: u64) -> bool {
        match self.number() {
            Some(first) => behind(number, first) <= 0,
            None => true,
        }
    }
}

/// Where a waiter may stand.
#[derive(Debug)]
struct Slot {
    /// The place of who stands there, its lowest bit set, or 0.
    place: AtomicU64,
    /// When that one's timer fires, in nanoseconds after the limiter's start.
    timer: AtomicU64,
    waker: AtomicWaker,
}

impl Slot {
    fn new() -> Self {
        Self {
            place: AtomicU64::new(0),
            timer: AtomicU64::new(0),
            waker: AtomicWaker::new(),
        }
    }

    /// Returns what stands for `place`: a 2⁻²⁴th of a token is nothing.
    const fn tag(place: Place) -> u64 {
        place.to_bits() | 1
    }

    fn place(&self) -> Option<Place> {
        // Relaxed, as the timer: who walks finds both of all who joined before, by `front`, and of
        // others it is as good as if it had come earlier (rules 3 and 4).
        match self.place.load(Relaxed) {
            0 => None,
            tag => Some(Place::from_bits(tag)),
        }
    }
}

/// Where one waiter stands: its table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stand(usize);

/// What is known about a waiter who may have to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Its turn has come. All such are woken, in order, or those with a better timer would go
    /// first.
    Due,
    /// Its turn comes, and its timer is set too late for that.
    Late,
    /// Its turn comes, and so does its timer.
    InTime,
}

/// All who wait in one line.
#[derive(Debug)]
pub(super) struct Waiters {
    front: AtomicU64,
    tables: [Lazy<Box<[Slot]>>; TABLES.len()],
}

fn table(slots: u64) -> Box<[Slot]> {
    (0..slots).map(|_| Slot::new()).collect()
}

/// Returns the slot of `number` in a table, whose length is a power of two.
fn slot_of(table: &[Slot], number: u64) -> Option<&Slot> {
    #[expect(clippy::cast_possible_truncation, reason = "masked to the length")]
    let index = (number as usize) & table.len().wrapping_sub(1);
    table.get(index)
}

impl Waiters {
    pub(super) fn new() -> Self {
        Self {
            front: AtomicU64::new(Front(0).with(None).0),
            tables: array::from_fn(|index| Lazy::new(|| table(TABLES[index]))),
        }
    }

    /// Whether nobody stands before `place`.
    pub(super) fn is_first(&self, place: Place) -> bool {
        // Relaxed: a hint.
        Front(self.front.load(Relaxed)).is_before_all(number_of(place))
    }

    /// Takes a stand at `place`, or keeps it, until `timer`. `None` if all its slots are taken.
    ///
    /// The caller has to look at the line once more afterwards (rule 4).
    pub(super) fn stand(
        &self,
        stand: Option<Stand>,
        place: Place,
        timer: u64,
        waker: &Waker,
    ) -> Option<Stand> {
        let number = number_of(place);
        let stand = stand.or_else(|| self.find_stand(place))?;
        let slot = slot_of(self.tables.get(stand.0)?.get()?, number)?;
        slot.waker.register(waker);
        slot.timer.store(timer, Relaxed); // see `Slot::place`
        self.join(number);
        fence(SeqCst); // rule 4; model: `waiters::a_rise_is_seen_by_the_waiter_or_wakes_it`
        Some(stand)
    }

    fn find_stand(&self, place: Place) -> Option<Stand> {
        TABLES.iter().enumerate().find_map(|(index, slots)| {
            let table = self.tables.get(index)?.get_or_make(|| table(*slots));
            let slot = slot_of(table, number_of(place))?;
            let tag = Slot::tag(place);
            // Acquire, with the release in `leave`: what the last one left in the slot is gone.
            let taken = slot.place.compare_exchange(0, tag, Acquire, Relaxed);
            taken.is_ok().then_some(Stand(index))
        })
    }

    /// Sees to it that `front` is not behind `number`, and that whoever walks at this moment walks
    /// again (rule 3).
    fn join(&self, number: u64) {
        let mut seen = self.front.load(Relaxed);
        loop {
            let front = Front(seen);
            let first = if front.is_before_all(number) {
                Some(number)
            } else {
                front.number()
            };
            let next = front.with(first).with_one_more();
            // Release: the slot is there for whoever finds the waiter counted.
            // Model: `waiters::a_walk_finds_who_came_before_it_or_walks_again`.
            match self
                .front
                .compare_exchange_weak(seen, next.0, Release, Relaxed)
            {
                Ok(_) => return,
                Err(actual) => seen = actual,
            }
        }
    }

    /// Leaves the stand at `place`.
    pub(super) fn leave(&self, stand: Stand, place: Place) {
        let table = self.tables.get(stand.0).and_then(Lazy::get);
        if let Some(slot) = table.and_then(|table| slot_of(table, number_of(place))) {
            drop(slot.waker.take());
            slot.place.store(0, Release); // only by who stands there: rule 2
        }
    }

    /// Wakes those whose timers are late, from the front to the first whose turn has not come.
    ///
    /// `last` returns the last place in line, `look` what there is to know about who stands at a
    /// place with a timer.
    pub(super) fn walk(&self, last: impl Fn() -> Place, look: impl Fn(Place, u64) -> Look) {
        fence(SeqCst); // rule 4
        loop {
            // Acquire: finds the slots of all who are counted in it, and `last` the places of all
            // of them.
            let seen = Front(self.front.load(Acquire));
            let Some(first) = seen.number() else {
                return;
            };
            let next = self.walk_from(first, number_of(last()), &look);
            if next == Some(first) {
                return;
            }
            // Relaxed: it hands on nothing of its own, and what those who joined have released
            // stays so.
            let moved = self
                .front
                .compare_exchange(seen.0, seen.with(next).0, Relaxed, Relaxed);
            if moved.is_ok() {
                return;
            }
        }
    }

    /// Returns the number of the first whose turn has not come, from `first` on.
    fn walk_from(&self, first: u64, last: u64, look: &impl Fn(Place, u64) -> Look) -> Option<u64> {
        let mut number = first;
        while let Some((found, slot)) = self.next(number, last) {
            if let Some(place) = slot.place() {
                let look = look(place, slot.timer.load(Relaxed));
                if look != Look::InTime {
                    slot.waker.wake();
                }
                if look != Look::Due {
                    return Some(found);
                }
            }
            number = found.wrapping_add(1) & Front::NUMBER;
        }
        None
    }

    /// Returns the first who stands at `first` or behind, but not behind `last`.
    ///
    /// Place by place for as many places as there are slots; if the line is longer, slot by slot.
    fn next(&self, first: u64, last: u64) -> Option<(u64, &Slot)> {
        let slots = || self.tables.iter().filter_map(Lazy::get);
        let count = slots().fold(0_u64, |sum, table| sum.wrapping_add(table.len() as u64));
        for step in 0..=count {
            let number = first.wrapping_add(step) & Front::NUMBER;
            if behind(number, last) > 0 {
                return None;
            }
            let stands = |slot: &&Slot| slot.place().is_some_and(|at| number_of(at) == number);
            let found = slots().find_map(|table| slot_of(table, number).filter(stands));
            if let Some(slot) = found {
                return Some((number, slot));
            }
        }
        slots()
            .flat_map(|table| table.iter())
            .filter_map(|slot| slot.place().map(|place| (number_of(place), slot)))
            .filter(|(number, _)| behind(*number, first) >= 0)
            .min_by_key(|(number, _)| behind(*number, first))
    }
}

#[cfg(test)]
mod tests;
