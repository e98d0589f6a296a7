//! The step of a retry budget at the engine, in virtual time.

use crate::{
    rig::script::{Refusal, ScriptEngine},
    step::Bench,
};

/// After so long, in microseconds, a silent member is forgotten; the scope after so many
/// milliseconds.
const ABSENT: u64 = 4_000_000;
const KEPT: u64 = 600_000;
const CAPACITY: u64 = 100;

/// A member's ask: its number, what it wants, and what it gives back.
#[derive(Clone, Copy, Debug)]
struct Ask {
    member: &'static str,
    seq: u64,
    leave: u8,
    want: u64,
    back: u64,
}

const ASK: Ask = Ask {
    member: "a",
    seq: 1,
    leave: 0,
    want: 0,
    back: 0,
};

/// Returns the ask of `member` with its number.
const fn ask(member: &'static str, seq: u64, want: u64, back: u64) -> Ask {
    Ask {
        member,
        seq,
        want,
        back,
        ..ASK
    }
}

fn bench() -> Bench {
    Bench::of(ScriptEngine::of(include_str!("../../src/quota.lua")))
}

impl Bench {
    /// Returns what is granted, what the pool holds, and how many members there are.
    fn step(&mut self, ask: Ask) -> Result<Vec<i64>, Refusal> {
        let Ask {
            member,
            seq,
            leave,
            want,
            back,
        } = ask;
        let words = format!("{seq} {leave} {want} {back} {CAPACITY} {ABSENT} {KEPT}");
        self.engine.take(self.micros, member, &words)
    }

    fn take(&mut self, ask: Ask) -> Vec<i64> {
        self.step(ask).expect("the step is taken")
    }
}

#[test]
fn what_is_paid_in_is_granted_once() {
    let mut bench = bench();
    assert_eq!(bench.take(ask("a", 1, 10, 0)), [0, 0, 1]);
    assert_eq!(bench.take(ask("a", 2, 0, 60)), [0, 60, 1]);
    assert_eq!(bench.take(ask("b", 1, 50, 0)), [50, 10, 2]);
    assert_eq!(bench.take(ask("a", 3, 50, 0)), [10, 0, 2]);
}

#[test]
fn an_ask_repeated_pays_in_and_out_once() {
    let mut bench = bench();
    for _ in 0..3 {
        assert_eq!(bench.take(ask("a", 1, 0, 60)), [0, 60, 1]);
    }
    // The answer is lost: asked again, whatever else has happened, it is the same lease.
    assert_eq!(bench.take(ask("a", 2, 20, 0)), [20, 40, 1]);
    assert_eq!(bench.take(ask("b", 1, 30, 0)), [30, 10, 2]);
    assert_eq!(bench.take(ask("a", 2, 20, 0)), [20, 10, 2]);
    assert_eq!(bench.take(ask("a", 3, 0, 0)), [0, 10, 2]);
    let error = bench.step(ask("a", 2, 20, 0)).unwrap_err();
    assert!(error.starts_with("STALE"), "{error}");
}

#[test]
fn the_pool_keeps_no_more_than_its_capacity() {
    let mut bench = bench();
    assert_eq!(bench.take(ask("a", 1, 0, 1_000)), [0, 100, 1]);
    bench.engine.write("s", "9e15");
    assert_eq!(bench.take(ask("a", 2, 10, 0)), [10, 90, 1]);
}

#[test]
fn a_member_with_a_smaller_capacity_does_not_cut_the_pool() {
    let mut bench = bench();
    assert_eq!(bench.take(ask("a", 1, 0, 100)), [0, 100, 1]);
    let mut small = |seq| {
        let words = format!("{seq} 0 0 0 60 {ABSENT} {KEPT}");
        bench.engine.take(bench.micros, "b", &words).unwrap()
    };
    assert_eq!(small(1), [0, 100, 2]);
    bench.pass(60_001);
    // Once no member says a larger one, the pool is as large as the smaller one.
    assert_eq!(small_after(&mut bench), [0, 60, 1]);
}

/// A step of the member with the smaller capacity, later.
fn small_after(bench: &mut Bench) -> Vec<i64> {
    let mut last = vec![];
    for seq in 2..6 {
        bench.pass(1);
        let words = format!("{seq} 0 0 0 60 {ABSENT} {KEPT}");
        last = bench.engine.take(bench.micros, "b", &words).unwrap();
    }
    last
}

#[test]
fn of_many_members_none_takes_all() {
    let mut bench = bench();
    for member in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        bench.take(ask(member, 1, 0, 0));
    }
    bench.take(ask("a", 2, 0, 100));
    // At most two equal parts... of eight, times two: a quarter of the members share it.
    assert_eq!(bench.take(ask("b", 2, 100, 0)), [50, 50, 8]);
    assert_eq!(bench.take(ask("c", 2, 100, 0)), [25, 25, 8]);
}

#[test]
fn silent_members_are_forgotten_and_busy_ones_are_not() {
    let mut bench = bench();
    for member in ["a", "b", "c", "d", "e", "f"] {
        bench.take(ask(member, 1, 0, 0));
    }
    bench.pass(3_000);
    bench.take(ask("b", 2, 0, 0));
    for seq in 2..12 {
        bench.pass(101);
        bench.take(ask("a", seq, 0, 0));
    }
    let mut last = vec![];
    for seq in 12..20 {
        bench.pass(101);
        last = bench.take(ask("a", seq, 0, 0));
    }
    assert_eq!(last, [0, 0, 2]);
}

#[test]
fn a_record_that_is_none_is_dropped_and_stops_no_other_member() {
    let mut bench = bench();
    bench.take(ask("a", 1, 0, 60));
    bench.engine.write("mz", "no record");
    for seq in 2..6 {
        bench.pass(1);
        bench.take(ask("a", seq, 0, 0));
    }
    assert_eq!(bench.take(ask("a", 6, 10, 0)), [10, 50, 1]);
    assert!(!bench.engine.stored()["scope"].contains_key("mz"));
}

#[test]
fn a_number_below_zero_is_no_number() {
    let mut bench = bench();
    bench.take(ask("a", 1, 0, 60));
    let words = format!("2 0 0 -10 {CAPACITY} {ABSENT} {KEPT}");
    let refused = bench.engine.take(bench.micros, "a", &words).unwrap_err();
    assert_eq!(refused, "BROKEN the ask");
    bench.engine.write("s", "-1");
    let refused = bench.step(ask("a", 2, 0, 0)).unwrap_err();
    assert_eq!(refused, "BROKEN the field s");
}

#[test]
fn one_that_leaves_gives_back_and_is_gone() {
    let mut bench = bench();
    bench.take(ask("a", 1, 0, 60));
    bench.take(ask("b", 1, 50, 0));
    let leave = Ask {
        leave: 1,
        ..ask("b", 2, 0, 45)
    };
    assert_eq!(bench.take(leave), [0, 55, 1]);
}

#[test]
fn a_clock_set_back_forgets_those_of_the_time_that_was_not() {
    let mut bench = bench();
    bench.take(ask("a", 1, 0, 60));
    bench.take(ask("b", 1, 10, 0));
    bench.micros -= 60_000_000;
    // The pool is not made of time: it stays.
    for seq in 2..8 {
        bench.pass(1);
        assert_eq!(bench.take(ask("a", seq, 0, 0))[1], 50);
    }
    assert_eq!(bench.take(ask("a", 8, 0, 0)), [0, 50, 1]);
    assert_eq!(bench.take(ask("b", 2, 10, 0)), [10, 40, 2]);
}

#[test]
fn a_pool_that_is_not_used_expires() {
    let mut bench = bench();
    bench.take(ask("a", 1, 0, 60));
    bench.pass(KEPT - 1);
    assert_eq!(bench.take(ask("a", 2, 0, 0))[1], 60);
    bench.pass(KEPT);
    assert_eq!(bench.take(ask("a", 3, 0, 0)), [0, 0, 1]);
}
