//! The waiters of a line: a slot for each, where it can be woken and its place given up.
//!
//! Rules, cited by number below and in the models:
//!
//! 1. A place's rank is its position less the tokens given up before it. A count of these may be
//!    late, which delays a waiter. None is too large while the place has yet to come due.
//! 2. A slot's word says at which place its waiter stands, and whether that was given up. Only the
//!    waiter changes it, until it gives up.
//! 3. A place given up is *retired* once all places before it are due: one swap of `retired` counts
//!    its tokens before every place and names its slot. What `retired` names counts for nothing in
//!    its slot, which any thread may free.
//! 4. The slots of a table are taken in turn, so that their order is about that of the places. It
//!    is a hint: what is counted before a place is decided by comparing places.
//! 5. `front` is the first ticket whose slot has to be looked at: its waiter can be woken, or has
//!    given up. Each such waiter counts itself in `front`, and takes `front` back if need be. So a
//!    thread that moves `front` past a slot loses to the waiter who comes meanwhile.
//! 6. A waiter takes its stand and then looks at the line once more. A thread that changes the line
//!    walks afterwards. Each has a fence between its two steps, so that one of them sees the other.
//!    A response that moves the published law along its curve has no fence: the swap of the head
//!    orders the two, see `HeadWords::touch`.
//! 7. A waiter's timer serves it: it is woken only if the timer has become late.
//!
//! loom and shuttle check that no bad state comes up. That no waiter sleeps for good follows from
//! rules 4 to 7 together: `waiters.pml` is a model of them for a checker of liveness.
//!
//! # States of a slot
//!
//! | state | word | timer | named by `retired` | changed by |
//! |---|---|---|---|---|
//! | free | 0 | 0 | — | a waiter that joins |
//! | taken | place, waits | 0 | no | its waiter |
//! | stands | place, waits | a time | no | its waiter; a thread that wakes it |
//! | gap | place, given up | 0 | no | a thread that retires it |
//! | retired | place, given up | 0 | yes | a thread that frees it |
//!
//! There are no others. At most one slot of all tables is retired. The tokens given up before a
//! place are those in `retired`, and those of the gaps before it. Above each operation stands what
//! it changes, from what to what.
//!
//! # Why a place given up counts once
//!
//! A gap stands in its slot, with its place and weight in one word. Gaps are counted by comparing
//! places, so that the order in which waiters took their slots does not matter. `retired` counts
//! the tokens of all other places given up. A thread loads `retired` before the slots, and once
//! more after them.
//!
//! One swap of `retired` retires a gap: the swap adds the gap's tokens, and names its slot and
//! place. A gap that `retired` names is not counted in its slot. Before `retired` names another
//! gap, the slot of the last gap has been freed, and a thread that loads the later `retired` sees
//! that slot free. So a thread that loads the same `retired` twice has counted each gap exactly
//! once that was there all the while.
//!
//! A gap is retired when `V >= start − retired`. Each live place before the gap ends at `start` or
//! sooner, and has at least `retired` tokens given up before it. So that place is due, and no harm
//! is done if the gap is counted before that place, too. `V` is taken at a time that a record, or
//! 63 calls in a row, vouch for: one wrong clock moves no waiter. A place that is given up without
//! a slot was due when it was taken. Models: `line::a_place_is_retired_once`,
//! `line::a_count_beside_a_retirement_is_exact`.
//!
//! # Memory
//!
//! A gap keeps its slot until it is retired. There are 299,592 slots of 48 bytes. A table of slots
//! is made when the table before it is full; tables stay, and are used again. A waiter for whom
//! there is no slot looks every 50 ms. If such a waiter gives up before it is due, its tokens are
//! lost: none is granted twice for it.
//!
//! # Threads that stop
//!
//! - After a gap was retired, before its slot is freed: the next thread that retires a gap frees
//!   the slot.
//! - After a slot was taken, before `tail` moves: the next waiter moves `tail`.
//! - While a waiter is being woken: the waiter's own timer serves it.
//! - Between a gap's slot and `total`: the place is out of the line, and its tokens are lost to
//!   callers who try.

use alloc::{boxed::Box, vec::Vec};
use core::{array, ops::ControlFlow};

use crate::atomic::lazy::Lazy;
use crate::atomic::sync::{
    AtomicU32, AtomicU64, AtomicU128, AtomicWaker,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use crate::bits::Field;
use crate::fixed::SECOND;
use crate::line::Place;

/// The slots of each table. A waiter takes one in the last table that there is, and makes the next
/// if that is full.
const TABLES: &[u32] = if cfg!(all(loom, feature = "loom")) {
    &[4]
} else {
    &[8, 64, 512, 4_096, 32_768, 262_144]
};

/// How late a timer may be, in nanoseconds, before its waiter is woken.
pub(super) const LATE: u64 = SECOND.wrapping_div(100);

/// How many taken slots a waiter passes over before it takes a table for full.
const TRIES: u32 = 64;

/// How many waiters a walk counts the places given up for one by one.
const FEW: u32 = 8;

/// The first ticket of a table: tickets wrap soon, so that every test crosses it.
const FIRST: u32 = 3_u32.wrapping_neg();

/// A slot's word. Low bits first: 64 of the place, 32 of its weight, 30 of the ticket that it was
/// taken with, 2 of the state. 0 is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word(u128);

impl Word {
    const PLACE: Field = Field::lowest(64);
    const WEIGHT: Field = Self::PLACE.above(32);
    const TICKET: Field = Self::WEIGHT.above(30);
    const STATE: Field = Self::TICKET.above(2);
    const FREE: Self = Self(0);
    const WAITS: u64 = 1;
    const GIVEN_UP: u64 = 2;

    fn new(place: Place, weight: u32) -> Self {
        let weight = Self::WEIGHT.put(u64::from(weight));
        Self(Self::PLACE.put(place.to_bits()) | weight)
    }

    fn waiting(self, ticket: u32) -> Self {
        let ticket = Self::TICKET.put(u64::from(ticket));
        Self(self.0 | ticket | Self::STATE.put(Self::WAITS))
    }

    fn given_up(self) -> Self {
        Self(self.0 | Self::STATE.put(Self::GIVEN_UP))
    }

    /// Returns `true` if the slot was taken with `ticket`.
    fn is_of(self, ticket: u32) -> bool {
        Self::TICKET.get(self.0) == Self::TICKET.wrapped(u64::from(ticket))
    }

    const fn place(self) -> Place {
        Place::from_bits(Self::PLACE.get(self.0))
    }

    const fn weight(self) -> u64 {
        Self::WEIGHT.get(self.0)
    }

    /// Returns where the tokens of the place begin.
    const fn start(self) -> Place {
        self.place().less_tokens(self.weight())
    }

    const fn is_given_up(self) -> bool {
        Self::STATE.get(self.0) == Self::GIVEN_UP
    }
}

const _: () = assert!(Word::STATE.is_last(), "the fields fill the word");

/// What was given up before every place. Low bits first: 64 of the last place retired, 40 of the
/// tokens, which wrap as places do, 24 of the slot of that place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Retired(u128);

impl Retired {
    const PLACE: Field = Field::lowest(64);
    const TOKENS: Field = Self::PLACE.above(40);
    const SLOT: Field = Self::TOKENS.above(24);

    fn new(tokens: u64, place: Place, slot: WaiterSlot) -> Self {
        let slot = Self::SLOT.put(u64::from(slot.0));
        Self(Self::PLACE.put(place.to_bits()) | Self::TOKENS.put(tokens) | slot)
    }

    const fn tokens(self) -> u64 {
        Self::TOKENS.get(self.0)
    }

    /// Returns the same with `tokens` more.
    const fn with_more(self, tokens: u64) -> Self {
        let others = self.0 & !Self::TOKENS.put(u64::MAX);
        Self(others | Self::TOKENS.put(self.tokens().wrapping_add(tokens)))
    }

    #[expect(clippy::cast_possible_truncation, reason = "24 bits")]
    const fn slot(self) -> WaiterSlot {
        WaiterSlot(Self::SLOT.get(self.0) as u32)
    }

    /// Returns `true` if the tokens of the place in `slot`, which has been given up, are counted
    /// already.
    fn names(self, slot: WaiterSlot, word: Word) -> bool {
        self.slot() == slot && Self::PLACE.get(self.0) == word.place().to_bits()
    }

    /// Returns `true` if all places before `start` are due once `minted` tokens have been minted.
    const fn has_passed(self, start: Place, minted: Place) -> bool {
        minted.since(start.less_tokens(self.tokens())) >= 0
    }
}

const _: () = assert!(Retired::SLOT.is_last(), "the fields fill the word");

/// Where one waiter stands: its table, above 20 bits of the slot's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaiterSlot(u32);

impl WaiterSlot {
    const INDEX_BITS: u32 = 20;
    /// No slot: there are fewer tables.
    const NONE: Self = Self((1 << 24) - 1);

    fn new(table: usize, index: u32) -> Self {
        let table = u32::try_from(table).unwrap_or(u32::MAX);
        Self((table << Self::INDEX_BITS) | index)
    }

    const fn table(self) -> usize {
        (self.0 >> Self::INDEX_BITS) as usize
    }

    const fn index(self) -> u32 {
        self.0 & ((1 << Self::INDEX_BITS) - 1)
    }
}

struct Slot {
    word: AtomicU128,
    /// When the waiter's timer fires, in nanoseconds after the limiter's start; 0 if it cannot be
    /// woken, or has been since it set the timer.
    timer: AtomicU64,
    waker: AtomicWaker,
}

impl Slot {
    fn new() -> Self {
        Self {
            word: AtomicU128::new(Word::FREE.0),
            timer: AtomicU64::new(0),
            waker: AtomicWaker::new(),
        }
    }

    fn word(&self) -> Word {
        // Acquire, with the release in `finish`. If that swap is first, the slot is found free,
        // with the `retired` that counts what was there. If this load is first, the gap is found
        // here, and the second load of `retired` finds whether it was counted meanwhile. Models:
        // `line::a_place_is_retired_once`, `line::a_count_beside_a_retirement_is_exact`.
        Word(self.word.load(Acquire))
    }

    /// Returns when the waiter's timer fires, 0 if it is not to be woken.
    fn timer(&self) -> u64 {
        // Acquire, with the release in `stand`. If that store is first, the waker is there. If this
        // load is first, there is none to wake, and the waiter looks once more (rule 6).
        self.timer.load(Acquire)
    }

    /// Wakes the waiter, unless it has set another timer since it was seen with `timer`, or none:
    /// stands → taken.
    fn wake(&self, timer: u64) {
        // Relaxed: a loss means that the waiter has looked, or that another thread wakes it.
        let swapped = |timer| self.timer.compare_exchange(timer, 0, Relaxed, Relaxed);
        if timer != 0 && swapped(timer).is_ok() {
            // A waker that panics holds up no other waiter, nor the thread that wakes it. The panic
            // hook has reported it.
            let wake = core::panic::AssertUnwindSafe(|| self.waker.wake());
            #[cfg(all(feature = "std", not(any(loom, shuttle))))]
            drop(std::panic::catch_unwind(wake));
            #[cfg(not(all(feature = "std", not(any(loom, shuttle)))))]
            wake();
        }
    }

    /// Returns `true` if the slot has to be looked at (rule 5).
    fn is_held(&self) -> bool {
        self.timer() != 0 || self.word().is_given_up()
    }

    /// Lets the waker go.
    fn hush(&self) {
        self.timer.store(0, Relaxed); // only a hint to others: the word says who waits
        drop(self.waker.take());
    }
}

/// The first ticket that has to be looked at, in the low 32 bits. The others count the waiters who
/// noted themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Front(u64);

impl Front {
    const ONE_MORE: u64 = 1 << 32;

    #[expect(clippy::cast_possible_truncation, reason = "the low half")]
    const fn ticket(self) -> u32 {
        self.0 as u32
    }

    fn with(self, ticket: u32) -> Self {
        Self((self.0 & !u64::from(u32::MAX)) | u64::from(ticket))
    }

    const fn with_one_more(self) -> Self {
        Self(self.0.wrapping_add(Self::ONE_MORE))
    }
}

/// Slots that are taken in turn, by ticket.
struct Table {
    slots: Box<[Slot]>,
    front: AtomicU64,
    /// The next ticket.
    tail: AtomicU32,
    /// The last ticket of a slot that may be out of order by more than a few: tickets passed over
    /// its waiter, of an earlier lap, or its place was overtaken before the slot was taken.
    lapped: AtomicU32,
}

impl Table {
    fn new(slots: u32) -> Self {
        Self {
            slots: (0..slots).map(|_| Slot::new()).collect(),
            front: AtomicU64::new(Front(0).with(FIRST).0),
            tail: AtomicU32::new(FIRST),
            lapped: AtomicU32::new(FIRST.wrapping_sub(1)),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "under 2²⁰")]
    const fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    const fn index(&self, ticket: u32) -> u32 {
        ticket & self.len().wrapping_sub(1)
    }

    fn slot(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index as usize)
    }

    fn tail(&self) -> u32 {
        // Relaxed: who takes a slot asks the slot, and who looks for waiters finds them by `front`,
        // whose acquire comes first.
        self.tail.load(Relaxed)
    }

    /// Takes a slot for `word`, and returns its index; `None` if the table is full.
    ///
    /// | | before | after |
    /// |---|---|---|
    /// | slot | free | taken |
    /// | `tail` | the slot's ticket | the next ticket |
    fn join(&self, word: Word) -> Option<u32> {
        for _ in 0..TRIES {
            let tail = self.tail();
            let front = || Front(self.front.load(Relaxed)).ticket();
            // Not if the front is past a tail that was read too early.
            let is_full = || (self.len()..=u32::MAX / 2).contains(&tail.wrapping_sub(front()));
            if is_full() {
                let _ = self.scan(|_, _| ControlFlow::Continue(()));
                if is_full() {
                    return None;
                }
            }
            let index = self.index(tail);
            let slot = self.slot(index)?;
            // Acquire, with the release in `leave`. If that store is first, the slot is taken, and
            // the last waiter's waker is gone from it. If this swap is first, it finds the last
            // waiter, and goes on. Model: `waiters::two_who_come_at_once_are_both_found`.
            let next = word.waiting(tail).0;
            let taken = slot
                .word
                .compare_exchange(Word::FREE.0, next, Acquire, Relaxed);
            let is_lapped = taken.is_err_and(|actual| !Word(actual).is_of(tail));
            if is_lapped || (taken.is_ok() && self.is_overtaken(tail, word.place())) {
                self.lapped.store(tail, Relaxed); // a hint
            }
            // Relaxed, as in `tail`. A loss means that another thread has seen that the slot is
            // taken. Model: as above.
            let _ = self
                .tail
                .compare_exchange(tail, tail.wrapping_add(1), Relaxed, Relaxed);
            if taken.is_ok() {
                return Some(index);
            }
        }
        None
    }

    /// Returns `true` if the slot that was taken [`TRIES`] tickets before `ticket` is of a place
    /// behind this one.
    fn is_overtaken(&self, ticket: u32, place: Place) -> bool {
        let earlier = ticket.wrapping_sub(TRIES);
        let slot = self.slot(self.index(earlier));
        let word = slot.map_or(Word::FREE, Slot::word);
        word != Word::FREE && word.place().since(place) > 0
    }

    /// Returns `true` if no slot that has to be looked at is known to be out of order by more than
    /// a few.
    fn is_in_order(&self) -> bool {
        // Relaxed: hints.
        let front = Front(self.front.load(Relaxed)).ticket();
        let lapped = self.lapped.load(Relaxed);
        front.wrapping_sub(lapped.wrapping_add(1)) <= u32::MAX / 2
    }

    /// Sees to it that threads look at the slot at `index` from now on (rule 5).
    fn note(&self, index: u32) {
        let mut seen = self.front.load(Relaxed);
        loop {
            let front = Front(seen);
            let last = self.tail().wrapping_sub(1);
            let ticket = last.wrapping_sub(self.index(last.wrapping_sub(index)));
            let is_passed = ticket.wrapping_sub(front.ticket()) > u32::MAX / 2;
            let first = if is_passed { ticket } else { front.ticket() };
            let next = front.with(first).with_one_more();
            // Release, with the acquire in `scan`. If this swap is first, the scan finds the slot
            // as it is now. If that load is first, its own swap of the front fails, and the slot
            // is not passed over. Model: `waiters::a_walk_finds_who_came_before_it_or_walks_again`.
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
    fn scan(&self, mut visit: impl FnMut(u32, &Slot) -> ControlFlow<()>) -> ControlFlow<()> {
        // Acquire: see `note`. Before the tail, which is then at least as new. Model:
        // `line::a_place_given_up_beside_a_look_is_found`.
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
            // slot by it finds the slot as free as this one has. If that load is first, it looks
            // at the slot itself. A loss means that a waiter has come, or that another thread has
            // moved it. Model: `line::a_count_beside_a_retirement_is_exact`.
            let _ = self
                .front
                .compare_exchange(seen.0, next.0, Release, Relaxed);
        }
        flow
    }
}

/// What is known about a waiter that may have to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Its turn has come, or comes long before its timer. All such are woken, in order, or those
    /// with a better timer would go first.
    Due,
    /// Its turn comes, and its timer is set too late for that.
    Late,
    /// As above, but too little to be woken for it.
    LateEnough,
    /// Its turn comes, and so does its timer.
    InTime,
}

/// How many calls vouch together for the earliest of their times.
const CALLS: u64 = 63;

/// The time, as far as many calls in a row agree that it has come.
pub(super) struct Agreed {
    /// The earliest time of the last few calls, in 2⁶ ns, above 6 bits of how many they are.
    calls: AtomicU64,
    /// The earliest time of the calls counted before them.
    time: AtomicU64,
}

impl Agreed {
    pub(super) fn new() -> Self {
        Self {
            calls: AtomicU64::new(u64::MAX << 6),
            time: AtomicU64::new(0),
        }
    }

    /// Notes a call at `now`, and returns a time that many calls in a row have found in the past.
    pub(super) fn note(&self, now: u64) -> u64 {
        // Relaxed, and a store: a call that is lost only makes it later.
        let seen = self.calls.load(Relaxed);
        let earliest = (seen >> 6).min(now >> 6);
        let next = if seen & CALLS == CALLS {
            self.time.store(earliest << 6, Relaxed);
            u64::MAX << 6
        } else {
            (earliest << 6) | (seen & CALLS).wrapping_add(1)
        };
        self.calls.store(next, Relaxed);
        self.time.load(Relaxed)
    }
}

/// The places that were given up at one moment. As [`Waiters::before`], it may count too few.
struct Gaps {
    /// In the order of the line, each with the tokens given up up to it.
    places: Vec<(Place, u64)>,
    /// Places wrap: they are in order as they are ahead of this one.
    from: Place,
    retired: u64,
}

impl Gaps {
    fn new(retired: u64, mut places: Vec<(Place, u64)>) -> Self {
        let from = places.first().map_or(Place::from_bits(0), |(gap, _)| *gap);
        places.sort_unstable_by_key(|(gap, _)| gap.since(from));
        let mut tokens = retired;
        for (_, given_up) in &mut places {
            tokens = tokens.wrapping_add(*given_up);
            *given_up = tokens;
        }
        Self {
            places,
            from,
            retired,
        }
    }

    fn before(&self, place: Place) -> u64 {
        let ahead = place.since(self.from);
        let is_before = |(gap, _): &(Place, u64)| gap.since(self.from) < ahead;
        let count = self.places.partition_point(is_before);
        let last = count.checked_sub(1).and_then(|last| self.places.get(last));
        last.map_or(self.retired, |(_, tokens)| *tokens)
    }
}

/// Above so many bits the total counts the tokens that stood at places of their own.
const PLACED: u32 = 40;

/// Returns what the total grows by when `tokens` are given up that stood at places of their own.
/// Both counts grow by one addition, so that no thread sees one of them alone. Model:
/// `lease::leases_given_back_out_of_order_bring_what_fits`.
const fn placed(tokens: u64) -> u64 {
    tokens.wrapping_add(tokens << PLACED)
}

/// Returns how many tokens at places of their own were given up between two totals: at least so
/// many, as they are counted in 24 bits.
pub(super) const fn placed_between(from: u64, to: u64) -> u64 {
    // A carry of the lower count is in both totals, or in the difference of the lower counts.
    to.wrapping_sub(from) >> PLACED
}

/// The waiters of one line, and what was given up in it.
pub(super) struct Waiters {
    retired: AtomicU128,
    /// How many tokens were ever given up: 40 bits, as places wrap. Above them 24 bits of how many
    /// of these stood at places of their own, as credits do not. Only differences mean anything.
    total: AtomicU64,
    /// How many places are given up and not retired.
    gaps: AtomicU64,
    tables: Lazy<Tables>,
}

type Tables = [Lazy<Table>; TABLES.len()];

fn tables() -> Tables {
    array::from_fn(|table| Lazy::new(|| Table::new(TABLES[table])))
}

// Orderings of `retired`: it is loaded with acquire before the slots, and swapped with release
// after the slot that it named before was freed. If the swap is first, the thread that loads finds
// that slot free, and counts its tokens in `retired` alone. If the load is first, it may find the
// slot as a gap, which the `retired` that it has loaded does not count; and its second load finds
// the swap. So no thread counts tokens in both. Models: `line::a_place_is_retired_once`,
// `line::a_count_beside_a_retirement_is_exact`.
impl Waiters {
    /// Creates a line of no waiters in which `total` tokens have been given up.
    pub(super) fn new(total: u64) -> Self {
        let none = Retired::new(total, Place::from_bits(0), WaiterSlot::NONE);
        Self {
            retired: AtomicU128::new(none.0),
            total: AtomicU64::new(total),
            gaps: AtomicU64::new(0),
            tables: Lazy::new(tables),
        }
    }

    /// Returns how many tokens were ever given up, perhaps too few: see [`placed_between`] for its
    /// upper bits.
    pub(super) fn total(&self) -> u64 {
        // Acquire, with the release in `count`; a thread that subtracts it loads `issued` after it.
        // If that addition is first, the place given up is in the `issued` that is loaded then. If
        // this load is first, the place is not subtracted yet: the total is late, never ahead.
        // Model: `send_rate::live_places_never_run_backwards`.
        self.total.load(Acquire)
    }

    /// Adds `tokens` to the total, after they were noted: it is late rather than early (rule 1).
    fn count(&self, tokens: u64) {
        // Release: see `total`. Model: `line::places_given_up_at_once_are_both_counted`.
        self.total.fetch_add(tokens, Release);
    }

    fn retired(&self) -> Retired {
        Retired(self.retired.load(Acquire))
    }

    fn advance(&self, seen: Retired, next: Retired) -> bool {
        // Release: see above. Model of two at once: `line::two_that_write_off_at_once_both_do`.
        self.retired
            .compare_exchange(seen.0, next.0, Release, Relaxed)
            .is_ok()
    }

    /// Returns `true` if places are given up that are not retired.
    pub(super) fn has_gaps(&self) -> bool {
        // Acquire, with the release in `finish`. If that subtraction is first, a thread that finds
        // no gap finds what was retired. If this load is first, it finds the gap, and looks at the
        // slots. One that does not see the last gap yet counts it late.
        self.gaps.load(Acquire) != 0
    }

    fn table(&self, table: usize) -> Option<&Table> {
        self.tables.get()?.get(table)?.get()
    }

    fn slot(&self, slot: WaiterSlot) -> Option<&Slot> {
        self.table(slot.table())?.slot(slot.index())
    }

    /// Returns the tables that there are, by number.
    fn made(&self) -> impl Iterator<Item = (usize, &Table)> {
        let tables = self.tables.get().into_iter().flatten().enumerate();
        tables.filter_map(|(number, table)| Some((number, table.get()?)))
    }

    /// Visits the slots of all tables, in order.
    fn scan(&self, mut visit: impl FnMut(WaiterSlot, &Slot) -> ControlFlow<()>) {
        for (number, table) in self.made() {
            let visit = |index, slot: &Slot| visit(WaiterSlot::new(number, index), slot);
            if table.scan(visit).is_break() {
                return;
            }
        }
    }

    /// Takes a slot for the waiter at `place`; `None` if there are too many waiters.
    pub(super) fn join(&self, place: Place, weight: u32) -> Option<WaiterSlot> {
        let tables = self.tables.get_or_make(tables);
        let last = tables.iter().rposition(|table| table.get().is_some());
        let word = Word::new(place, weight);
        (last.unwrap_or(0)..TABLES.len()).find_map(|number| {
            let table = tables.get(number)?;
            let table = table.get_or_make(|| Table::new(TABLES[number]));
            Some(WaiterSlot::new(number, table.join(word)?))
        })
    }

    /// Leaves the slot of a place that has been claimed, or taken back: taken or stands → free.
    pub(super) fn leave(&self, slot: Option<WaiterSlot>) {
        if let Some(slot) = slot.and_then(|slot| self.slot(slot)) {
            slot.hush();
            // Only by its owner: rule 2. Release: see `join`.
            slot.word.store(Word::FREE.0, Release);
        }
    }

    /// Gives up `place`, when `minted` tokens have been minted for certain.
    ///
    /// Forgets the tokens of one that has no slot, is not due, and gets none: there are too many
    /// waiters.
    ///
    /// | | before | after |
    /// |---|---|---|
    /// | slot | taken or stands | gap |
    /// | `gaps` | `n` | `n + 1`, before the slot |
    /// | `total` | `t` | `t + weight`, after the slot |
    pub(super) fn give_up(
        &self,
        slot: Option<WaiterSlot>,
        place: Place,
        weight: u32,
        minted: Place,
    ) {
        let word = Word::new(place, weight).given_up();
        if slot.is_none() && self.retired().has_passed(word.start(), minted) {
            return self.write_off_placed(word.weight());
        }
        let number = slot.or_else(|| self.join(place, weight));
        let Some((number, slot)) = number.and_then(|number| Some((number, self.slot(number)?)))
        else {
            return;
        };
        slot.hush();
        // Relaxed: before the slot's word, whose release orders it before it is retired. Model of
        // two at once: `line::places_given_up_at_once_are_both_counted`.
        self.gaps.fetch_add(1, Relaxed);
        slot.word.store(word.0, Release); // only by its owner: rule 2
        if let Some(table) = self.table(number.table()) {
            table.note(number.index());
        }
        self.count(placed(word.weight()));
        self.retire_slot(number, minted);
    }

    /// Counts `tokens` more as given up before every place there is: in `retired`, then in `total`.
    /// Of none it writes nothing: leases that time has used up come back without any.
    pub(super) fn write_off(&self, tokens: u64) {
        self.write_off_as(tokens, tokens);
    }

    /// As [`write_off`](Self::write_off), of tokens that stood at places of their own.
    pub(super) fn write_off_placed(&self, tokens: u64) {
        self.write_off_as(tokens, placed(tokens));
    }

    fn write_off_as(&self, tokens: u64, counted: u64) {
        while let Some(retired) = (tokens > 0).then(|| self.retired()) {
            if self.advance(retired, retired.with_more(tokens)) {
                return self.count(counted);
            }
        }
    }

    /// Returns how many tokens were given up before `place`, perhaps too few (rule 1).
    pub(super) fn before(&self, place: Place) -> u64 {
        loop {
            let retired = self.retired();
            let mut tokens = retired.tokens();
            if self.has_gaps() {
                for (number, table) in self.made() {
                    let mut behind = 0;
                    let _ = table.scan(|index, slot| {
                        let word = slot.word();
                        if word == Word::FREE {
                            return ControlFlow::Continue(());
                        }
                        if place.since(word.place()) > 0 {
                            let slot = WaiterSlot::new(number, index);
                            if word.is_given_up() && !retired.names(slot, word) {
                                tokens = tokens.wrapping_add(word.weight());
                            }
                            return ControlFlow::Continue(());
                        }
                        // Those further on come later, but for a few that have met (rule 4).
                        behind = u32::wrapping_add(behind, 1);
                        if behind > TRIES && table.is_in_order() {
                            return ControlFlow::Break(());
                        }
                        ControlFlow::Continue(())
                    });
                }
            }
            // What was retired meanwhile may be missing.
            if self.retired() == retired {
                return tokens;
            }
        }
    }

    /// Returns the places that are given up now, to count those before many places.
    fn gaps(&self) -> Gaps {
        loop {
            let retired = self.retired();
            let mut places = Vec::new();
            self.scan(|number, slot| {
                let word = slot.word();
                if word.is_given_up() && !retired.names(number, word) {
                    places.push((word.place(), word.weight()));
                }
                ControlFlow::Continue(())
            });
            // What was retired meanwhile may be missing.
            if self.retired() == retired {
                return Gaps::new(retired.tokens(), places);
            }
        }
    }

    /// Retires the places given up whose turn has come once `minted` tokens have been minted.
    pub(super) fn retire(&self, minted: Place) {
        for (number, table) in self.made() {
            let mut others = 0_u32;
            let _ = table.scan(|index, slot| {
                let word = slot.word();
                if word == Word::FREE {
                    return ControlFlow::Continue(());
                }
                let slot = WaiterSlot::new(number, index);
                if word.is_given_up() && self.retire_slot(slot, minted) {
                    return ControlFlow::Continue(());
                }
                // Those behind come later, but for a few that are out of order (rule 4).
                others = others.saturating_add(1);
                let is_yet_to_come = !self.retired().has_passed(word.start(), minted);
                if others > TRIES && is_yet_to_come && table.is_in_order() {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            });
        }
    }

    /// Retires the place given up in `slot`, if `minted` is where its tokens begin. False if it is
    /// not.
    ///
    /// | | before | after | freed |
    /// |---|---|---|---|
    /// | slot | gap | retired | free |
    /// | `retired` | `r`, which names a free slot | `r + weight`, which names this one | the same |
    /// | `gaps` | `n` | `n` | `n − 1` |
    fn retire_slot(&self, number: WaiterSlot, minted: Place) -> bool {
        let Some(slot) = self.slot(number) else {
            return false;
        };
        loop {
            let retired = self.retired();
            self.finish(retired);
            // After `retired`, and after the slot that it names was freed: what is given up here is
            // not counted in it.
            let word = slot.word();
            if !word.is_given_up() {
                return true;
            }
            if !retired.has_passed(word.start(), minted) {
                return false;
            }
            let tokens = retired.tokens().wrapping_add(word.weight());
            let next = Retired::new(tokens, word.place(), number);
            if self.advance(retired, next) {
                self.finish(next);
                return true;
            }
        }
    }

    /// Frees the slot that `retired` names: retired → free, and one gap less.
    fn finish(&self, retired: Retired) {
        let Some(slot) = self.slot(retired.slot()) else {
            return;
        };
        let word = slot.word();
        if !(word.is_given_up() && retired.names(retired.slot(), word)) {
            return;
        }
        // A loss means that another thread has freed it: a slot that is taken again keeps its
        // place.
        let freed = slot
            .word
            .compare_exchange(word.0, Word::FREE.0, Release, Relaxed);
        if freed.is_ok() {
            // See `has_gaps`. Model: `line::places_given_up_at_once_are_both_counted`.
            self.gaps.fetch_sub(1, Release);
        }
    }
}

impl Waiters {
    /// Returns `true` if no waiter that can be woken stands before `place`.
    #[cfg(any(feature = "std", test))]
    pub(super) fn is_first(&self, place: Place) -> bool {
        let mut is_first = true;
        self.scan(|_, slot| {
            if slot.timer() == 0 {
                return ControlFlow::Continue(());
            }
            is_first = slot.word().place().since(place) >= 0;
            ControlFlow::Break(())
        });
        is_first
    }

    /// Lets `waker` be woken if the turn of the waiter in `slot` comes before `timer`: taken →
    /// stands, and one waiter more in `front`.
    ///
    /// The caller has to look at the line once more afterwards (rule 6).
    #[cfg(any(feature = "std", test))]
    pub(super) fn stand(&self, slot: WaiterSlot, timer: u64, waker: &core::task::Waker) {
        let (Some(table), Some(at)) = (self.table(slot.table()), self.slot(slot)) else {
            return;
        };
        at.waker.register(waker);
        at.timer.store(timer.max(1), Release); // see `Slot::timer`
        table.note(slot.index());
        // Rule 6, with the fence in `walk`. If this fence is first, the walk finds the timer. If
        // that one is first, the waiter's next look finds the line as it was changed. Model:
        // `waiters::a_faster_rate_is_seen_by_the_waiter_or_wakes_it`.
        fence(SeqCst);
    }

    /// Wakes the waiters that are late: those that are due, and of the others among the first
    /// `most`.
    ///
    /// `look` returns what there is to know about a waiter: how many stand before it whose turn has
    /// not come, its rank, and its timer. One that was woken and has not looked since is passed
    /// over, so that it holds up no other.
    pub(super) fn walk(&self, most: usize, look: impl Fn(usize, Place, u64) -> Look) {
        // Rule 6: see `stand`. Model, of a change that swaps no word which the waiter swaps too:
        // `waiters::a_place_given_up_ahead_goes_to_background_or_wakes_it`.
        fence(SeqCst);
        let (mut ahead, mut is_any_late) = (0_usize, false);
        let mut overtaken = None;
        let (mut looks, mut gaps) = (0_u32, None);
        self.scan(|number, slot| {
            let (timer, word) = (slot.timer(), slot.word());
            if timer == 0 || word == Word::FREE {
                return ControlFlow::Continue(());
            }
            looks = looks.saturating_add(1);
            let place = word.place();
            // Each `before` visits all slots: a long walk visits them once for all its waiters.
            let before = if looks > FEW && self.has_gaps() {
                gaps.get_or_insert_with(|| self.gaps()).before(place)
            } else {
                self.before(place)
            };
            let look = look(ahead, place.less_tokens(before), timer);
            match look {
                Look::InTime => {}
                Look::LateEnough => is_any_late = true,
                Look::Due | Look::Late => {
                    slot.wake(timer);
                    overtaken = is_any_late.then_some(number).or(overtaken);
                }
            }
            ahead = ahead.saturating_add(usize::from(look != Look::Due));
            if ahead < most {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        // Those before a waiter that sets a better timer now set theirs as well.
        if let Some(last) = overtaken {
            self.scan(|number, slot| {
                if number == last {
                    return ControlFlow::Break(());
                }
                slot.wake(slot.timer());
                ControlFlow::Continue(())
            });
        }
    }
}

#[cfg(test)]
mod tests;
