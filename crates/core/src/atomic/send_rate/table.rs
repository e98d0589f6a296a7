//! The slots that waiters stand in, in tables. Slots are taken in turn, by ticket. See
//! [`waiters`](super::waiters).

use alloc::boxed::Box;
use core::ops::ControlFlow;

use crate::atomic::sync::{
    AtomicU32, AtomicU64, AtomicU128, AtomicWaker,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::bits::Field;
use crate::line::Place;

/// The number of slots of each table. A waiter takes a slot in the last table made, and makes the
/// next table if the last is full.
pub(super) const TABLES: &[u32] = if cfg!(all(loom, feature = "loom")) {
    &[4]
} else {
    &[8, 64, 512, 4_096, 32_768, 262_144]
};

/// How many taken slots a waiter passes over before it considers a table full.
pub(super) const TRIES: u32 = 64;

/// The first ticket of a table: tickets wrap soon, so that every test crosses the wrap.
pub(super) const FIRST: u32 = 3_u32.wrapping_neg();

/// A slot's word. Low bits first: 64 of the place, 32 of its weight, 30 of the ticket that it was
/// taken with, 2 of the state. 0 is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub(super) u128);

impl Word {
    const PLACE: Field = Field::lowest(64);
    const WEIGHT: Field = Self::PLACE.above(32);
    const TICKET: Field = Self::WEIGHT.above(30);
    const STATE: Field = Self::TICKET.above(2);
    pub(super) const FREE: Self = Self(0);
    const WAITS: u64 = 1;
    const GIVEN_UP: u64 = 2;

    pub(super) fn new(place: Place, weight: u32) -> Self {
        let weight = Self::WEIGHT.put(u64::from(weight));
        Self(Self::PLACE.put(place.to_bits()) | weight)
    }

    pub(super) fn waiting(self, ticket: u32) -> Self {
        let ticket = Self::TICKET.put(u64::from(ticket));
        Self(self.0 | ticket | Self::STATE.put(Self::WAITS))
    }

    pub(super) fn given_up(self) -> Self {
        Self(self.0 | Self::STATE.put(Self::GIVEN_UP))
    }

    /// Returns `true` if the slot was taken with `ticket`.
    pub(super) fn is_of(self, ticket: u32) -> bool {
        Self::TICKET.get(self.0) == Self::TICKET.wrapped(u64::from(ticket))
    }

    pub(super) const fn place(self) -> Place {
        Place::from_bits(Self::PLACE.get(self.0))
    }

    pub(super) const fn weight(self) -> u64 {
        Self::WEIGHT.get(self.0)
    }

    /// Returns where the tokens of the place begin.
    pub(super) const fn start(self) -> Place {
        self.place().less_tokens(self.weight())
    }

    pub(super) const fn is_given_up(self) -> bool {
        Self::STATE.get(self.0) == Self::GIVEN_UP
    }
}

const _: () = assert!(Word::STATE.is_last(), "the fields fill the word");

/// What was given up before every place. Low bits first: 64 of the last place retired, 40 of the
/// tokens, which wrap as places do, 24 of the slot of that place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retired(pub(super) u128);

impl Retired {
    const PLACE: Field = Field::lowest(64);
    const TOKENS: Field = Self::PLACE.above(40);
    const SLOT: Field = Self::TOKENS.above(24);

    pub(super) fn new(tokens: u64, place: Place, slot: WaiterSlot) -> Self {
        let slot = Self::SLOT.put(u64::from(slot.0));
        Self(Self::PLACE.put(place.to_bits()) | Self::TOKENS.put(tokens) | slot)
    }

    pub(super) const fn tokens(self) -> u64 {
        Self::TOKENS.get(self.0)
    }

    /// Returns the same with `tokens` more.
    pub(super) const fn with_more(self, tokens: u64) -> Self {
        let others = self.0 & !Self::TOKENS.put(u64::MAX);
        Self(others | Self::TOKENS.put(self.tokens().wrapping_add(tokens)))
    }

    #[expect(clippy::cast_possible_truncation, reason = "24 bits")]
    pub(super) const fn slot(self) -> WaiterSlot {
        WaiterSlot(Self::SLOT.get(self.0) as u32)
    }

    /// Returns `true` if the tokens of the gap in `slot`, with this `word`, are counted already.
    pub(super) fn names(self, slot: WaiterSlot, word: Word) -> bool {
        self.slot() == slot && Self::PLACE.get(self.0) == word.place().to_bits()
    }

    /// Returns `true` if all places before `start` are due once `minted` tokens have been minted.
    pub(super) const fn has_passed(self, start: Place, minted: Place) -> bool {
        minted.since(start.less_tokens(self.tokens())) >= 0
    }
}

const _: () = assert!(Retired::SLOT.is_last(), "the fields fill the word");

/// Where one waiter stands: its table, above 20 bits of the slot's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaiterSlot(pub(super) u32);

impl WaiterSlot {
    const INDEX_BITS: u32 = 20;
    /// No slot: there are fewer tables.
    pub(super) const NONE: Self = Self((1 << 24) - 1);

    pub(super) fn new(table: usize, index: u32) -> Self {
        let table = u32::try_from(table).unwrap_or(u32::MAX);
        Self((table << Self::INDEX_BITS) | index)
    }

    pub(super) const fn table(self) -> usize {
        (self.0 >> Self::INDEX_BITS) as usize
    }

    pub(super) const fn index(self) -> u32 {
        self.0 & ((1 << Self::INDEX_BITS) - 1)
    }
}

pub(super) struct Slot {
    pub(super) word: AtomicU128,
    /// When the waiter's timer fires, in nanoseconds after the limiter's start. 0 if the waiter
    /// cannot be woken, or was woken since it set the timer.
    pub(super) timer: AtomicU64,
    pub(super) waker: AtomicWaker,
}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU128::new(Word::FREE.0),
            timer: AtomicU64::new(0),
            waker: AtomicWaker::new(),
        }
    }

    pub(super) fn word(&self) -> Word {
        // Acquire, with the release in `finish`. If the swap is first, the load finds the slot
        // free, together with the `retired` that counts its tokens. If this load is first, it finds
        // the gap, and the second load of `retired` finds whether the gap was counted meanwhile.
        // Models: `line::a_place_is_retired_once`, `line::a_count_beside_a_retirement_is_exact`.
        Word(self.word.load(Acquire))
    }

    /// Returns when the waiter's timer fires, 0 if the waiter is not to be woken.
    pub(super) fn timer(&self) -> u64 {
        // Acquire, with the release in `stand`. If the store is first, the waker is there. If this
        // load is first, it finds no waiter to wake, and the waiter looks once more (rule 6).
        self.timer.load(Acquire)
    }

    /// Wakes the waiter, if its timer is still `timer` and not 0: stands → taken.
    pub(super) fn wake(&self, timer: u64) {
        // Relaxed: a loss means that the waiter has looked, or that another thread wakes it.
        let swapped = |timer| self.timer.compare_exchange(timer, 0, Relaxed, Relaxed);
        if timer != 0 && swapped(timer).is_ok() {
            // If a waker panics, other waiters and the waking thread go on. The panic hook has
            // reported the panic.
            let wake = core::panic::AssertUnwindSafe(|| self.waker.wake());
            #[cfg(all(feature = "std", not(any(loom, shuttle))))]
            drop(std::panic::catch_unwind(wake));
            #[cfg(not(all(feature = "std", not(any(loom, shuttle)))))]
            wake();
        }
    }

    /// Returns `true` if the slot has to be looked at (rule 5).
    pub(super) fn is_held(&self) -> bool {
        self.timer() != 0 || self.word().is_given_up()
    }

    /// Clears the timer, and drops the waker.
    pub(super) fn hush(&self) {
        self.timer.store(0, Relaxed); // only a hint to others: the word says who waits
        drop(self.waker.take());
    }
}

/// The first ticket that has to be looked at, in the low 32 bits. The high bits count the waiters
/// who noted themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Front(pub(super) u64);

impl Front {
    const ONE_MORE: u64 = 1 << 32;

    #[expect(clippy::cast_possible_truncation, reason = "the low half")]
    pub(super) const fn ticket(self) -> u32 {
        self.0 as u32
    }

    pub(super) fn with(self, ticket: u32) -> Self {
        Self((self.0 & !u64::from(u32::MAX)) | u64::from(ticket))
    }

    pub(super) const fn with_one_more(self) -> Self {
        Self(self.0.wrapping_add(Self::ONE_MORE))
    }
}

/// Slots that are taken in turn, by ticket.
pub(super) struct Table {
    pub(super) slots: Box<[Slot]>,
    pub(super) front: AtomicU64,
    /// The next ticket.
    pub(super) tail: AtomicU32,
    /// The last ticket whose slot may be out of order by more than a few. Its waiter of an earlier
    /// lap was passed over, or its place was overtaken before the slot was taken.
    pub(super) lapped: AtomicU32,
}

impl Table {
    pub(super) fn new(slots: u32) -> Self {
        Self {
            slots: (0..slots).map(|_| Slot::new()).collect(),
            front: AtomicU64::new(Front(0).with(FIRST).0),
            tail: AtomicU32::new(FIRST),
            lapped: AtomicU32::new(FIRST.wrapping_sub(1)),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "under 2²⁰")]
    pub(super) const fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(super) const fn index(&self, ticket: u32) -> u32 {
        ticket & self.len().wrapping_sub(1)
    }

    pub(super) fn slot(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index as usize)
    }

    pub(super) fn tail(&self) -> u32 {
        // Relaxed: a thread that takes a slot checks the slot itself. A thread that looks for
        // waiters finds them by `front`, whose acquire comes first.
        self.tail.load(Relaxed)
    }

    /// Takes a slot for `word`, and returns its index; `None` if the table is full.
    ///
    /// | | before | after |
    /// |---|---|---|
    /// | slot | free | taken |
    /// | `tail` | the slot's ticket | the next ticket |
    pub(super) fn join(&self, word: Word) -> Option<u32> {
        for _ in 0..TRIES {
            let tail = self.tail();
            let front = || Front(self.front.load(Relaxed)).ticket();
            // Not full if the front is past a tail that was read too early.
            let is_full = || (self.len()..=u32::MAX / 2).contains(&tail.wrapping_sub(front()));
            if is_full() {
                let _ = self.scan(|_, _| ControlFlow::Continue(()));
                if is_full() {
                    return None;
                }
            }
            let index = self.index(tail);
            let slot = self.slot(index)?;
            // Acquire, with the release in `leave`. If the store is first, this swap takes the
            // slot, and the last waiter's waker is gone from it. If this swap is first, it finds
            // the last waiter still there, and the loop tries the next ticket. Model:
            // `waiters::two_who_come_at_once_are_both_found`.
            let next = word.waiting(tail).0;
            let taken = slot
                .word
                .compare_exchange(Word::FREE.0, next, Acquire, Relaxed);
            let is_lapped = taken.is_err_and(|actual| !Word(actual).is_of(tail));
            if is_lapped || (taken.is_ok() && self.is_overtaken(tail, word.place())) {
                self.lapped.store(tail, Relaxed); // a hint
            }
            // Relaxed, as in `tail`. A loss means that another thread, which saw the slot taken,
            // has moved the tail. Model: as above.
            let _ = self
                .tail
                .compare_exchange(tail, tail.wrapping_add(1), Relaxed, Relaxed);
            if taken.is_ok() {
                return Some(index);
            }
        }
        None
    }

    /// Returns `true` if the slot that was taken [`TRIES`] tickets before `ticket` holds a place
    /// behind `place`.
    fn is_overtaken(&self, ticket: u32, place: Place) -> bool {
        let earlier = ticket.wrapping_sub(TRIES);
        let slot = self.slot(self.index(earlier));
        let word = slot.map_or(Word::FREE, Slot::word);
        word != Word::FREE && word.place().since(place) > 0
    }

    /// Returns `true` if no slot that has to be looked at is known to be out of order by more than
    /// a few.
    pub(super) fn is_in_order(&self) -> bool {
        // Relaxed: hints.
        let front = Front(self.front.load(Relaxed)).ticket();
        let lapped = self.lapped.load(Relaxed);
        front.wrapping_sub(lapped.wrapping_add(1)) <= u32::MAX / 2
    }

    /// Makes threads look at the slot at `index` from now on (rule 5).
    pub(super) fn note(&self, index: u32) {
        let mut seen = self.front.load(Relaxed);
        loop {
            let front = Front(seen);
            let last = self.tail().wrapping_sub(1);
            let ticket = last.wrapping_sub(self.index(last.wrapping_sub(index)));
            let is_passed = ticket.wrapping_sub(front.ticket()) > u32::MAX / 2;
            let first = if is_passed { ticket } else { front.ticket() };
            let next = front.with(first).with_one_more();
            // Release, with the acquire in `scan`. If this swap is first, the scan finds the slot
            // as it is now. If the scan's load is first, the scan's own swap of the front fails,
            // and the slot is not passed over. Model:
            // `waiters::a_walk_finds_who_came_before_it_or_walks_again`.
            match self
                .front
                .compare_exchange_weak(seen, next.0, Release, Relaxed)
            {
                Ok(_) => return,
                Err(actual) => seen = actual,
            }
        }
    }

    /// Visits the slots in order, and moves the front to the first that has to be looked at again.
    pub(super) fn scan(
        &self,
        mut visit: impl FnMut(u32, &Slot) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // Acquire: see `note`. The front is loaded before the tail, which is then at least as new.
        // Model: `line::a_place_given_up_beside_a_look_is_found`.
        let seen = Front(self.front.load(Acquire));
        let tail = self.tail();
        let mut ticket = seen.ticket();
        if tail.wrapping_sub(ticket) > self.len() {
            ticket = tail.wrapping_sub(self.len()); // all there are
        }
        let mut held = None;
        let mut flow = ControlFlow::Continue(());
        while ticket != tail && flow.is_continue() {
            let index = self.index(ticket);
            if let Some(slot) = self.slot(index) {
                flow = visit(index, slot);
                if held.is_none() && (flow.is_break() || slot.is_held()) {
                    held = Some(ticket);
                }
            }
            ticket = ticket.wrapping_add(1);
        }
        let next = seen.with(held.unwrap_or(tail));
        if next != seen {
            // Release, with the acquire above. If this swap is first, a thread that passes over a
            // slot because of it finds the slot as free as this thread has. If the other thread's
            // load is first, that thread looks at the slot itself. A loss means that a waiter has
            // come, or that another thread has moved the front. Model:
            // `line::a_count_beside_a_retirement_is_exact`.
            let _ = self
                .front
                .compare_exchange(seen.0, next.0, Release, Relaxed);
        }
        flow
    }
}
