//! The waiters of a line: one slot for each, which holds its place, its timer and its waker.
//!
//! Rules, cited by number below and in the models:
//!
//! 1. A place's rank is its position less the tokens given up before it. A thread's count of these
//!    tokens may be too small, which delays a waiter. The count is never too large before the place
//!    is due.
//! 2. A slot's word holds the place of its waiter, and whether the place was given up. Until then
//!    only the waiter changes the word.
//! 3. A place given up is *retired* once all places before it are due. One swap of `retired` then
//!    counts its tokens before every place, and names its slot. A slot that `retired` names is not
//!    counted again, and any thread may free it.
//! 4. The slots of a table are taken in turn, so their order is roughly the order of the places.
//!    The slot order is only a hint. Counts compare the places themselves.
//! 5. `front` is the first ticket whose slot threads must look at. The waiter of such a slot can be
//!    woken, or has given up. Each such waiter raises a count in `front`, and moves `front` back to
//!    its ticket if needed. So a thread fails to move `front` past a slot whose waiter comes
//!    meanwhile.
//! 6. A waiter sets its timer, and then looks at the line once more. A thread that changes the line
//!    walks over the waiters afterwards. Each has a fence between its two steps, so at least one of
//!    them sees the other's first step. A response that moves the published law along its curve has
//!    no fence. There the swap of the head orders the two threads: see `HeadWords::touch`.
//! 7. A waiter relies on its own timer. Other threads wake a waiter only if its timer has become
//!    late.
//!
//! loom and shuttle check that no bad state is reached. Rules 4 to 7 together ensure that no waiter
//! sleeps for good. `waiters.pml` models these rules for a liveness checker.
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
//! There are no other states. At most one slot of all tables is retired. The tokens given up before
//! a place are the tokens in `retired` plus the gaps before the place. The comment of each
//! operation lists the words that it changes.
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
//! gap, the slot of the last gap has been freed. A thread that loads the later `retired` sees that
//! slot free. So a thread that loads the same `retired` twice has counted exactly once each gap
//! that existed throughout.
//!
//! A gap is retired when `V >= start − retired`. Each live place before the gap ends at `start` or
//! sooner, and has at least `retired` tokens given up before it. So that place is due, and no harm
//! is done if the gap is counted before that place, too. `V` is taken at a time that a record, or
//! 63 calls in a row, vouch for. So one wrong clock moves no waiter. A place that is given up
//! without a slot was due when it was taken. Models: `line::a_place_is_retired_once`,
//! `line::a_count_beside_a_retirement_is_exact`.
//!
//! # Memory
//!
//! A gap keeps its slot until it is retired. There are 299,592 slots of 48 bytes. A table of slots
//! is made when the table before it is full; tables stay, and are used again. A waiter without a
//! slot looks at the line every 50 ms. If such a waiter gives up before its turn, its tokens are
//! lost, and none is granted twice.
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

/// A walk counts the gaps separately for up to so many waiters. For more waiters, it lists the gaps
/// once.
const FEW: u32 = 8;

/// What a walk finds out about a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// The turn has come, or comes long before the timer. All such waiters are woken in order.
    /// Otherwise a waiter with a better timer would go first.
    Due,
    /// The timer fires so late after the turn that the waiter is woken.
    Late,
    /// The timer fires after the turn, but too little to wake the waiter.
    LateEnough,
    /// The timer fires at the turn or sooner.
    InTime,
}

/// So many calls in a row vouch together for the earliest of their times.
const CALLS: u64 = 63;

/// A time that many calls in a row agree has come.
pub(super) struct Agreed {
    /// The earliest time of the calls since `time` was set, in 2⁶ ns, above 6 bits that count them.
    calls: AtomicU64,
    /// The earliest time of the last [`CALLS`] calls before these.
    time: AtomicU64,
}

impl Agreed {
    pub(super) fn new() -> Self {
        Self {
            calls: AtomicU64::new(u64::MAX << 6),
            time: AtomicU64::new(0),
        }
    }

    /// Notes a call at `now`, and returns the last time that many calls in a row have agreed on.
    pub(super) fn note(&self, now: u64) -> u64 {
        // A relaxed load and store suffice: a lost call only delays the agreement.
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

/// The places that were given up at one moment. Like [`Waiters::before`], the count may be too
/// small.
struct Gaps {
    /// In the order of the line. Each place has the tokens given up to its end.
    places: Vec<(Place, u64)>,
    /// Places wrap, so they are sorted by their distance from this place.
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

/// Above so many bits, `total` counts the tokens given up at places of their own.
const PLACED: u32 = 40;

/// Returns how much `total` grows when `tokens` at places of their own are given up. One addition
/// raises both counts, so no thread sees only one of them raised. Model:
/// `lease::leases_given_back_out_of_order_bring_what_fits`.
const fn placed(tokens: u64) -> u64 {
    tokens.wrapping_add(tokens << PLACED)
}

/// Returns how many tokens at places of their own were given up between two totals. The count has
/// 24 bits, so the true number may be larger.
pub(super) const fn placed_between(from: u64, to: u64) -> u64 {
    // A carry out of the lower count is in both totals, or the subtraction borrows it back.
    to.wrapping_sub(from) >> PLACED
}

/// The waiters of one line, and the tokens given up in the line.
pub(super) struct Waiters {
    retired: AtomicU128,
    /// How many tokens were ever given up, in 40 bits, which wrap as places do. The 24 bits above
    /// count those tokens that stood at places of their own; credits did not. Only differences have
    /// a meaning.
    total: AtomicU64,
    /// How many places are given up and not retired.
    gaps: AtomicU64,
    tables: Lazy<Tables>,
}

type Tables = [Lazy<Table>; TABLES.len()];

fn tables() -> Tables {
    array::from_fn(|table| Lazy::new(|| Table::new(TABLES[table])))
}

// Orderings of `retired`. A thread loads `retired` with acquire before the slots. A thread swaps
// `retired` with release, after freeing the slot that the old `retired` named. If the swap is
// first, the loading thread finds that slot free, and counts its tokens in `retired` alone. If the
// load is first, the thread may find the slot as a gap, which the loaded `retired` does not count.
// Its second load then finds the swap. So no thread counts tokens in both. Models:
// `line::a_place_is_retired_once`, `line::a_count_beside_a_retirement_is_exact`.
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

    /// Returns how many tokens were ever given up, or fewer. For the upper bits see
    /// [`placed_between`].
    pub(super) fn total(&self) -> u64 {
        // Acquire, with the release in `count`. A thread that subtracts the total loads `issued`
        // after the total. If the addition is first, the `issued` loaded then includes the place
        // given up. If this load is first, the place is not subtracted yet. So the total may be
        // late, never ahead. Model: `send_rate::live_places_never_run_backwards`.
        self.total.load(Acquire)
    }

    /// Adds `tokens` to the total, after they were noted elsewhere. So the total is late rather
    /// than early (rule 1).
    fn count(&self, tokens: u64) {
        // Release: see `total`. Model: `line::places_given_up_at_once_are_both_counted`.
        self.total.fetch_add(tokens, Release);
    }

    fn retired(&self) -> Retired {
        Retired(self.retired.load(Acquire))
    }

    fn advance(&self, seen: Retired, next: Retired) -> bool {
        // Release: see the orderings of `retired`. Model of two at once:
        // `line::two_that_write_off_at_once_both_do`.
        self.retired
            .compare_exchange(seen.0, next.0, Release, Relaxed)
            .is_ok()
    }

    /// Returns `true` if places are given up that are not retired.
    pub(super) fn has_gaps(&self) -> bool {
        // Acquire, with the release in `finish`. If the subtraction is first, a thread that finds
        // no gap also finds the `retired` that counts it. If this load is first, the thread finds
        // the gap, and looks at the slots. A thread that does not see the newest gap yet counts
        // that gap late.
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
            // Only the owner stores here: rule 2. Release: see `join`.
            slot.word.store(Word::FREE.0, Release);
        }
    }

    /// Gives up `place`. The line has certainly minted up to `minted`.
    ///
    /// A place that is not due needs a slot. If there are too many waiters for it to get one, its
    /// tokens are forgotten.
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
        // Relaxed: the release of the slot's word below orders this addition before the retirement.
        // Model of two at once: `line::places_given_up_at_once_are_both_counted`.
        self.gaps.fetch_add(1, Relaxed);
        slot.word.store(word.0, Release); // only by its owner: rule 2
        if let Some(table) = self.table(number.table()) {
            table.note(number.index());
        }
        self.count(placed(word.weight()));
        self.retire_slot(number, minted);
    }

    /// Counts `tokens` more as given up before every place, in `retired` and then in `total`.
    /// Writes nothing for 0 tokens, which a lease that time has used up brings back.
    pub(super) fn write_off(&self, tokens: u64) {
        self.write_off_as(tokens, tokens);
    }

    /// Does the same as [`write_off`](Self::write_off), for tokens at places of their own.
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

    /// Returns how many tokens were given up before `place`, or fewer (rule 1).
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
                        // Slots further on hold later places, except for a few waiters that came at
                        // once (rule 4).
                        behind = u32::wrapping_add(behind, 1);
                        if behind > TRIES && table.is_in_order() {
                            return ControlFlow::Break(());
                        }
                        ControlFlow::Continue(())
                    });
                }
            }
            // A gap retired meanwhile may be missing.
            if self.retired() == retired {
                return tokens;
            }
        }
    }

    /// Returns the gaps of this moment, to count the tokens before many places.
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
            // A gap retired meanwhile may be missing.
            if self.retired() == retired {
                return Gaps::new(retired.tokens(), places);
            }
        }
    }

    /// Retires the gaps whose turn has come by `minted`.
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
                // Slots further on hold later places, except for a few out of order (rule 4).
                others = others.saturating_add(1);
                let is_yet_to_come = !self.retired().has_passed(word.start(), minted);
                if others > TRIES && is_yet_to_come && table.is_in_order() {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            });
        }
    }

    /// Retires the gap in the slot `number`, if `minted` has reached the start of its tokens. False
    /// if it has not.
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
            // Loaded after `retired`, and after the slot that `retired` names was freed. So
            // `retired` does not count a gap found here.
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
        // A loss means that another thread has freed the slot. A waiter that has taken the slot
        // since keeps it.
        let freed = slot
            .word
            .compare_exchange(word.0, Word::FREE.0, Release, Relaxed);
        if freed.is_ok() {
            // Release: see `has_gaps`. Model: `line::places_given_up_at_once_are_both_counted`.
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
        // the walk's fence is first, the waiter's next look finds the changed line. Model:
        // `waiters::a_faster_rate_is_seen_by_the_waiter_or_wakes_it`.
        fence(SeqCst);
    }

    /// Wakes the waiters whose timers are late. Stops after `most` waiters that are not due.
    ///
    /// `look` gets the number of waiters ahead that are not due, the waiter's rank, and its timer.
    /// A waiter that was woken and has not looked since is passed over, so that it delays no other.
    pub(super) fn walk(&self, most: usize, look: impl Fn(usize, Place, u64) -> Look) {
        // Rule 6: see `stand`. Model of a change that swaps no word of the waiter's:
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
            // Each call of `before` visits all slots. A long walk visits them once for all its
            // waiters.
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
        // A woken waiter sets a better timer. The waiters before it are woken to do the same.
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
