//! The waiters, by one thread.

use alloc::{collections::BTreeMap, vec::Vec};

use fastrand::Rng;

use super::super::table::{FIRST, Front};
use super::*;
use crate::line::TOKEN;

/// The first token of a line whose positions soon wrap.
const ORIGIN: u64 = (1 << 40) - 70;

fn place(token: u64) -> Place {
    Place::from_bits(token.wrapping_mul(TOKEN))
}

/// A plain line: the weights given up, by where the tokens end.
#[derive(Default)]
struct Plain {
    waiting: BTreeMap<u64, (u32, Option<WaiterSlot>)>,
    given_up: BTreeMap<u64, u64>,
    written_off: u64,
}

impl Plain {
    fn before(&self, token: u64) -> u64 {
        let given_up = self.given_up.range(..token).map(|(_, weight)| weight);
        self.written_off.wrapping_add(given_up.sum::<u64>())
    }
}

/// How many tokens were given up, whether they stood at places or not.
fn given_up(waiters: &Waiters) -> u64 {
    waiters.total() % (1 << PLACED)
}

#[test]
fn counts_are_those_of_a_plain_line() {
    for seed in 0..40 {
        let mut rng = Rng::with_seed(seed);
        let waiters = Waiters::new(5);
        let mut plain = Plain {
            written_off: 5,
            ..Plain::default()
        };
        let (mut end, mut due) = (ORIGIN, ORIGIN);
        for _ in 0..1_500 {
            if rng.u8(..4) > 0 {
                let weight = if rng.bool() { 1 } else { rng.u32(1..1 << 20) };
                end += u64::from(weight);
                let slot = waiters.join(place(end), weight);
                plain.waiting.insert(end, (weight, slot));
            }
            let chosen = plain.waiting.keys().nth(rng.usize(..=plain.waiting.len()));
            if let Some(token) = chosen.copied() {
                let (weight, slot) = plain.waiting.remove(&token).expect("it waits");
                if token - plain.before(token) <= due {
                    waiters.leave(slot);
                } else {
                    waiters.give_up(slot, place(token), weight, place(due));
                    plain.given_up.insert(token, u64::from(weight));
                }
            }
            if rng.u8(..8) == 0 {
                let next = plain.waiting.keys().nth(rng.usize(..20));
                due = next.map_or(due, |token| due.max(token - plain.before(*token)));
                waiters.retire(place(due));
            }
            for token in plain.waiting.keys() {
                let (got, want) = (waiters.before(place(*token)), plain.before(*token));
                let is_due = token - want <= due;
                assert!(
                    got == want || (is_due && got > want),
                    "seed {seed}: {got}, {want}"
                );
            }
            assert_eq!(given_up(&waiters), plain.before(u64::MAX));
        }
    }
}

/// Slots of places given up behind waiters are free again once those waiters are due.
#[test]
fn places_given_up_are_retired_in_order_and_leave_their_slots() {
    let waiters = Waiters::new(0);
    let mut slots: Vec<_> = (1..=6).map(|token| waiters.join(place(token), 1)).collect();
    for number in [4, 2, 1] {
        waiters.give_up(slots[number], place(number as u64 + 1), 1, place(0));
    }
    assert!(waiters.has_gaps());
    assert_eq!(waiters.retired().tokens(), 0, "the first is not due");
    assert_eq!(waiters.before(place(6)), 3);
    waiters.retire(place(1));
    assert_eq!(waiters.retired().tokens(), 2, "the fourth is not due");
    assert_eq!((waiters.before(place(1)), waiters.before(place(6))), (2, 3));
    waiters.retire(place(2));
    assert!(!waiters.has_gaps());
    assert_eq!((waiters.before(place(4)), given_up(&waiters)), (3, 3));
    for number in [0, 3, 5] {
        waiters.leave(slots[number].take());
    }
    let table = waiters.table(0).expect("there were waiters");
    assert!(table.slots.iter().all(|slot| slot.word() == Word::FREE));
}

#[test]
fn a_place_without_a_slot_is_given_up_all_the_same() {
    let waiters = Waiters::new(0);
    waiters.give_up(None, place(3), 2, place(1));
    assert_eq!(
        (waiters.before(place(1)), given_up(&waiters)),
        (2, 2),
        "due"
    );
    assert!(waiters.table(0).is_none());
    waiters.give_up(None, place(9), 4, place(2));
    assert_eq!(
        (waiters.before(place(5)), waiters.before(place(10))),
        (2, 6)
    );
    waiters.write_off(7);
    assert_eq!(
        (waiters.before(place(5)), waiters.before(place(10))),
        (9, 13)
    );
    waiters.retire(place(0));
    assert!(
        !waiters.has_gaps(),
        "what was written off brings it forward"
    );
}

/// As if the retiring thread had stopped before it freed the slot.
#[test]
fn a_slot_that_is_retired_and_not_freed_counts_once() {
    let waiters = Waiters::new(0);
    let slots: Vec<_> = (1..=3).map(|token| waiters.join(place(token), 1)).collect();
    for number in [1, 2] {
        waiters.give_up(slots[number], place(number as u64 + 1), 1, place(0));
    }
    let slot = slots[1].expect("there is room");
    let seen = waiters.retired();
    assert!(waiters.advance(seen, Retired::new(1, place(2), slot)));
    assert_eq!((waiters.before(place(3)), waiters.before(place(4))), (1, 2));
    assert!(waiters.retire_slot(slot, place(10)), "it is retired");
    waiters.retire(place(10));
    assert_eq!((waiters.before(place(4)), waiters.has_gaps()), (2, false));
}

#[test]
fn tables_grow_when_they_are_full_and_are_used_again() {
    let waiters = Waiters::new(0);
    let join = |token| waiters.join(place(token), 1).expect("there is room");
    let mut slots: Vec<_> = (1..=8).map(join).collect();
    assert!(slots.iter().all(|slot| slot.table() == 0));
    slots.extend((9..=72).map(join));
    assert!(slots[8..].iter().all(|slot| slot.table() == 1));
    assert_eq!(join(73).table(), 2);
    slots.drain(8..).for_each(|slot| waiters.leave(Some(slot)));
    for token in 74..10_000 {
        let slot = join(token);
        assert_eq!(slot.table(), 2, "the last one there is");
        waiters.leave(Some(slot));
    }
    assert!(waiters.table(3).is_none());
}

/// Waiters that are never seen again take their slots with them, and no more.
#[test]
fn slots_that_are_never_left_are_passed_over() {
    let waiters = Waiters::new(0);
    for token in 1..=5 {
        assert!(waiters.join(place(token), 1).is_some());
    }
    for token in 6..1_000 {
        let slot = waiters.join(place(token), 1).expect("there is room");
        assert_eq!(slot.table(), 0);
        waiters.leave(Some(slot));
    }
}

/// Rule 4: a waiter takes its slot after others that came later, and gives up.
#[test]
fn a_place_that_others_overtook_is_counted() {
    // Its slot comes after as many slots as a look passes over, or after more.
    for (others, is_in_order) in [(8 + 56, true), (8 + 64 + 65, false)] {
        let waiters = Waiters::new(0);
        for token in 0..others {
            let slot = waiters.join(place(100 + token), 1).expect("there is room");
            waiters.stand(slot, 1, core::task::Waker::noop());
        }
        let slot = waiters.join(place(10), 1).expect("there is room");
        waiters.give_up(Some(slot), place(10), 1, place(8));
        let table = waiters.table(slot.table()).expect("the slot is in it");
        assert_eq!(table.is_in_order(), is_in_order);
        for token in [100, 101, 100 + others] {
            assert_eq!(waiters.before(place(token)), 1, "{token} of {others}");
        }
        waiters.retire(place(9));
        assert!(!waiters.has_gaps());
    }
}

/// A long walk counts the gaps for all its waiters at once.
#[test]
fn a_gap_is_counted_for_each_waiter_behind_it() {
    let mut rng = Rng::with_seed(7);
    let waiters = Waiters::new(3);
    let mut order: Vec<u64> = (0..600).collect();
    order.chunks_mut(30).for_each(|few| rng.shuffle(few));
    for token in order {
        let token = ORIGIN.wrapping_add(token * 4);
        let slot = waiters.join(place(token), 3).expect("there is room");
        waiters.stand(slot, 1, core::task::Waker::noop());
        if rng.u8(..8) < 3 {
            waiters.give_up(Some(slot), place(token), 3, place(ORIGIN - 9));
        }
    }
    let gaps = waiters.gaps();
    for token in 0..2_400 {
        let at = place(ORIGIN.wrapping_add(token));
        assert_eq!(gaps.before(at), waiters.before(at), "{token}");
    }
    let behind = place(ORIGIN.wrapping_add(2_400));
    assert_eq!(waiters.before(behind), given_up(&waiters));
}

#[test]
fn a_word_is_of_the_ticket_that_it_was_taken_with() {
    let word = Word::new(place(9), 3).waiting(FIRST);
    assert!(word.is_of(FIRST) && !word.is_of(FIRST.wrapping_add(1)));
    assert_eq!(
        (word.place(), word.weight(), word.is_given_up()),
        (place(9), 3, false)
    );
}

/// Between the loads of the front and of the tail, other threads may move both along.
#[test]
fn a_scan_from_an_old_front_visits_each_slot_once() {
    let table = Table::new(4);
    table.tail.store(FIRST.wrapping_add(7), Relaxed);
    let mut seen = Vec::new();
    let _ = table.scan(|index, _| {
        seen.push(index);
        ControlFlow::Continue(())
    });
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3]);
}

#[test]
fn the_earliest_time_of_64_calls_is_agreed_on() {
    let agreed = Agreed::new();
    for call in 0..63 {
        assert_eq!(agreed.note((1 << 40) + call), 0);
    }
    assert_eq!(agreed.note(6_400), 6_400, "one of them is behind");
    for call in 0..63 {
        assert_eq!(agreed.note((1 << 41) - call), 6_400);
    }
    assert_eq!(agreed.note(1 << 41), (1 << 41) - 64, "in units of 64 ns");
}

mod waking {
    use alloc::{sync::Arc, task::Wake};
    use core::{cell::RefCell, task::Waker};

    use super::*;

    /// How often one waiter was woken.
    #[derive(Debug, Default)]
    struct Woken(AtomicU64);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    struct Line {
        waiters: Waiters,
        stands: Vec<(WaiterSlot, Arc<Woken>)>,
    }

    impl Line {
        fn of(waiters: usize) -> Self {
            let mut line = Self {
                waiters: Waiters::new(0),
                stands: Vec::new(),
            };
            for number in 0..waiters {
                let token = ORIGIN.wrapping_add(number as u64);
                let slot = line.waiters.join(place(token), 1);
                let woken = Arc::new(Woken::default());
                line.stands.push((slot.expect("there is room"), woken));
                line.stand(number, 1_000_u64.wrapping_sub(number as u64));
            }
            line
        }

        fn stand(&self, number: usize, timer: u64) {
            let (slot, woken) = &self.stands[number];
            let waker = Waker::from(Arc::clone(woken));
            self.waiters.stand(*slot, timer, &waker);
        }

        fn leave(&self, number: usize) {
            self.waiters.leave(Some(self.stands[number].0));
        }

        /// Walks over the waiters before `due`, and over `most` behind. Returns the waiters looked
        /// at.
        fn walk(&self, most: usize, due: u64, late: u64) -> Vec<u64> {
            let seen = RefCell::new(Vec::new());
            self.waiters.walk(most, |ahead, at, timer| {
                let number = at.since(place(ORIGIN)).unsigned_abs() / TOKEN;
                seen.borrow_mut().push(number);
                assert!(ahead as u64 <= number.saturating_sub(due));
                if number < due {
                    Look::Due
                } else if timer > late {
                    Look::Late
                } else if timer == 5 {
                    Look::LateEnough
                } else {
                    Look::InTime
                }
            });
            seen.into_inner()
        }

        fn woken(&self) -> Vec<u64> {
            let times = self.stands.iter().map(|(_, woken)| woken.0.load(Relaxed));
            times.collect()
        }
    }

    #[test]
    fn a_walk_wakes_those_that_are_due_and_the_first_that_are_late() {
        let line = Line::of(100);
        assert_eq!(line.walk(4, 0, 1_000), [0, 1, 2, 3], "none is due or late");
        assert_eq!(line.woken().iter().sum::<u64>(), 0);
        assert_eq!(line.walk(2, 0, 999), [0, 1]);
        assert_eq!(line.woken()[..2], [1, 0], "late");
        assert_eq!(line.walk(2, 80, 0).len(), 81, "the first was woken already");
        assert!(line.woken()[..82].iter().all(|times| *times == 1));
        assert_eq!(line.woken()[82..], [0; 18]);
        assert_eq!(line.walk(1, 80, 1_000), [82], "the others have been woken");
        line.stand(3, 1_000);
        assert_eq!(line.walk(1, 3, 0), [3], "it stands again, and is late");
        assert_eq!(line.woken()[3], 2);
        assert_eq!(line.walk(usize::MAX, 0, 1_000).len(), 18);
        for number in 0..100 {
            line.leave(number);
            let (_, woken) = &line.stands[number];
            assert_eq!(Arc::strong_count(woken), 1, "its waker is let go");
        }
        assert!(line.walk(4, 200, 0).is_empty());
        let table = line.waiters.table(2).expect("there were 100");
        let front = Front(table.front.load(Relaxed)).ticket();
        assert_eq!(front, table.tail(), "there is none to look at");
    }

    #[test]
    fn a_waiter_that_does_not_answer_holds_up_no_other() {
        let line = Line::of(30);
        for round in 0..7 {
            let first = round * 4;
            assert_eq!(line.walk(4, 0, 0), [first, first + 1, first + 2, first + 3]);
        }
        assert_eq!(line.woken()[..28], [1; 28]);
    }

    #[test]
    fn the_first_is_known() {
        let line = Line::of(6);
        let is_first = |number| line.waiters.is_first(place(ORIGIN + number));
        assert_eq!([0, 1, 5].map(is_first), [true, false, false]);
        line.leave(0);
        assert_eq!([1, 2].map(is_first), [true, false]);
        line.walk(4, 2, 0);
        assert!(is_first(5), "those before it have been woken");
    }

    /// Otherwise a waiter behind it, which sets a better timer, would go first.
    #[test]
    fn a_waiter_in_time_is_woken_with_one_behind_it() {
        let line = Line::of(3);
        line.stand(0, 5);
        line.walk(2, 0, 998);
        assert_eq!(line.woken(), [1, 1, 0]);
        line.stand(0, 5);
        line.stand(1, 5);
        line.walk(2, 0, 998);
        assert_eq!(line.woken(), [1, 1, 0], "neither is to be woken");
        line.stand(0, 4);
        line.stand(1, 1_000);
        line.walk(2, 0, 998);
        assert_eq!(line.woken(), [1, 2, 0], "the first is in time");
    }

    /// A thread that moves the front past a slot does not see the waiter that comes meanwhile.
    #[test]
    fn a_front_that_was_passed_comes_back() {
        let line = Line::of(3);
        line.walk(4, 2, 0);
        let table = line.waiters.table(0).expect("there are waiters");
        let before = table.front.load(Relaxed);
        line.stand(1, 7);
        let after = Front(table.front.load(Relaxed));
        assert_ne!(before >> 32, after.0 >> 32, "a swap from the old one fails");
        assert_eq!(after.ticket(), FIRST.wrapping_add(1));
        assert_eq!(line.walk(4, 0, 0), [1]);
    }
}
