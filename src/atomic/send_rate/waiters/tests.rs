//! Those who wait, by one thread.

use alloc::{collections::BTreeSet, sync::Arc, task::Wake, vec::Vec};

use fastrand::Rng;

use super::*;

/// How often one waiter was woken.
#[derive(Debug, Default)]
struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

impl Woken {
    fn times(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The first number of a line whose places soon wrap.
const FIRST: u64 = (1 << NUMBER_BITS) - 70;

fn place(number: u64) -> Place {
    Place::from_bits(number.wrapping_mul(TOKEN))
}

struct Line {
    waiters: Waiters,
    last: u64,
}

impl Line {
    fn new() -> Self {
        let waiters = Waiters::new();
        Self {
            waiters,
            last: FIRST,
        }
    }

    fn stand(&mut self, number: u64, timer: u64) -> Option<(Stand, Arc<Woken>)> {
        self.last = self.last.max(number);
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let stand = self.waiters.stand(None, place(number), timer, &waker)?;
        Some((stand, woken))
    }

    /// Walks over those before `due`, and to the first one behind. Returns whom it looked at.
    fn walk(&self, due: u64, late: u64) -> Vec<u64> {
        let seen = core::cell::RefCell::new(Vec::new());
        let look = |place: Place, timer| {
            let number = FIRST.wrapping_add(behind(number_of(place), FIRST).unsigned_abs());
            seen.borrow_mut().push(number);
            if number < due {
                Look::Due
            } else if timer > late {
                Look::Late
            } else {
                Look::InTime
            }
        };
        self.waiters.walk(|| place(self.last), look);
        seen.into_inner()
    }
}

#[test]
fn a_walk_wakes_those_who_are_due_and_the_first_who_is_late() {
    let mut line = Line::new();
    let stands: Vec<_> = (0..100)
        .map(|number| line.stand(FIRST + number, 1_000 - number).expect("room"))
        .collect();
    let woken = || {
        let times = stands.iter().map(|(_, woken)| woken.times());
        times.collect::<Vec<_>>()
    };
    assert_eq!(line.walk(FIRST, 1_000), [FIRST], "nobody is due or late");
    assert_eq!(woken().iter().sum::<u64>(), 0);
    assert_eq!(line.walk(FIRST, 999), [FIRST]);
    assert_eq!(woken()[..2], [1, 0], "late");
    assert_eq!(line.walk(FIRST + 80, 999).len(), 81, "across the wrap");
    assert!(woken()[..80].iter().all(|times| *times == 1));
    assert_eq!(woken()[80..], [0; 20]);
    assert_eq!(line.walk(FIRST + 80, 999), [FIRST + 80], "not those before");
    for (number, (stand, woken)) in (FIRST..).zip(&stands) {
        line.waiters.leave(*stand, place(number));
        assert_eq!(Arc::strong_count(woken), 1, "its waker is let go");
    }
    assert!(line.walk(FIRST + 200, 0).is_empty(), "nobody is left");
    let front = Front(line.waiters.front.load(Relaxed));
    assert_eq!(front.number(), None);
}

/// A waiter who comes late, before those who were looked at, is looked at all the same.
#[test]
fn who_stands_before_the_front_becomes_the_front() {
    let mut line = Line::new();
    let _behind = line.stand(FIRST + 50, 0).expect("room");
    assert!(line.waiters.is_first(place(FIRST + 50)));
    assert!(!line.waiters.is_first(place(FIRST + 51)));
    assert_eq!(line.walk(FIRST, 0), [FIRST + 50]);
    let (stand, woken) = line.stand(FIRST + 3, 9).expect("room");
    assert_eq!(line.walk(FIRST, 0), [FIRST + 3]);
    assert_eq!(woken.times(), 1);
    let waker = Waker::from(Arc::clone(&woken));
    let again = line.waiters.stand(Some(stand), place(FIRST + 3), 0, &waker);
    assert!(again.is_some(), "it keeps its stand");
    assert_eq!(line.walk(FIRST, 0), [FIRST + 3]);
    assert_eq!(woken.times(), 1, "its new timer is in time");
}

#[test]
fn where_all_slots_are_taken_there_is_no_stand() {
    let mut line = Line::new();
    let lap = TABLES[TABLES.len() - 1];
    for turn in 0..TABLES.len() as u64 {
        assert!(line.stand(FIRST + turn * lap, 0).is_some());
    }
    let one_more = FIRST + TABLES.len() as u64 * lap;
    assert!(line.stand(one_more, 0).is_none());
    line.waiters.leave(Stand(2), place(FIRST + 2 * lap));
    assert!(line.stand(one_more, 0).is_some());
}

/// A walk finds the same as a plain list, whether the waiters stand close or far apart.
#[test]
fn walks_find_what_a_plain_list_has() {
    for seed in 0..60 {
        let mut random = Rng::with_seed(seed);
        let mut line = Line::new();
        let apart = 1 << random.u32(1..24);
        let (mut plain, mut end, mut due) = (BTreeSet::new(), FIRST, FIRST);
        let mut stands = Vec::new();
        for _ in 0..200 {
            end += random.u64(1..=apart);
            if let Some((stand, _)) = line.stand(end, 0) {
                stands.push((end, stand));
                plain.insert(end);
            }
            if random.bool() {
                let (number, stand) = stands.swap_remove(random.usize(..stands.len()));
                line.waiters.leave(stand, place(number));
                plain.remove(&number);
            }
            let before = due;
            due += random.u64(..=(end - due) / 8 + 1);
            let next = plain.range(due..).next();
            let want: Vec<u64> = plain.range(before..due).chain(next).copied().collect();
            let seen = line.walk(due, 0);
            let seen: Vec<u64> = seen.into_iter().filter(|at| *at >= before).collect();
            assert_eq!(seen, want, "seed {seed}");
        }
    }
}
