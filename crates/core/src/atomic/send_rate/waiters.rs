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

use alloc::vec::Vec;
use core::{array, ops::ControlFlow};

use super::table::{Retired, Slot, TABLES, TRIES, Table, WaiterSlot, Word};
use crate::atomic::lazy::Lazy;
use crate::atomic::sync::{
    AtomicU64, AtomicU128,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use crate::fixed::SECOND;
use crate::line::Place;

/// How late a timer may be, in nanoseconds, before its waiter is woken.
pub(super) const LATE: u64 = SECOND.wrapping_div(100);

/// How many waiters a walk counts the places given up for one by one.
const FEW: u32 = 8;

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
