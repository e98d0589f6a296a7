//! A service that lets nothing through is asked by one member for all.

use crate::rig::script::ScriptEngine;
use crate::step::{ASK, Step};

/// A scope whose service is shut, and the time in microseconds.
struct Shut {
    engine: ScriptEngine,
    now: u64,
    /// The numbers of the members' last asks.
    seqs: [u64; 3],
}

const NAMES: [&str; 3] = ["a", "b", "c"];

impl Shut {
    /// Members that were refused all that they sent.
    fn new() -> Self {
        let mut shut = Self {
            engine: ScriptEngine::new(),
            now: 1_000_000_000,
            seqs: [0; 3],
        };
        for member in [0, 1, 2, 0, 1, 2] {
            shut.ask(member, 0, 0);
            shut.now += 100_000;
        }
        // A cut, with which the law begins; and after it nothing comes through.
        shut.told(0, 20, 10, 0);
        for _ in 0..6 {
            shut.now += 100_000;
            shut.told(1, 0, 0, 0);
        }
        let answer = shut.told(1, 20, 20, 0);
        assert!(answer[10] > 0, "the service is not shut: {answer:?}");
        shut
    }

    fn told(&mut self, member: usize, spent: u64, throttled: u64, done: u64) -> Vec<i64> {
        self.seqs[member] += 1;
        let step = Step {
            seq: self.seqs[member],
            want: 5,
            spent,
            throttled,
            age: 10_000,
            ..ASK
        };
        let words = format!("{} 0 {done}", step.words());
        let answer = self.engine.take(self.now, NAMES[member], &words);
        answer.expect("the step is taken")
    }

    /// Asks with nothing to tell, after so many microseconds: what is granted.
    fn ask(&mut self, member: usize, after: u64, done: u64) -> i64 {
        self.now += after;
        self.told(member, 0, 0, done)[0]
    }

    fn last_leaves(&mut self) {
        let leaves = Step {
            seq: self.seqs[2] + 1,
            leave: 1,
            ..ASK
        };
        let left = self.engine.take(self.now, NAMES[2], &leaves.words());
        left.expect("the step is taken");
    }

    /// Waits until the next knock may go.
    fn wait(&mut self) -> u64 {
        let until = self.told(0, 0, 0, 0)[10] - 1;
        let until = u64::try_from(until).expect("it is shut");
        self.now += until;
        until
    }
}

#[test]
fn one_member_knocks_for_all_and_its_success_opens_for_all() {
    let mut shut = Shut::new();
    let wait = shut.wait();
    assert!(wait > 0);
    shut.now -= 1;
    assert_eq!(shut.ask(1, 0, 0), 0);
    let knock = {
        shut.now += 1;
        shut.told(1, 0, 0, 0)
    };
    assert_eq!((knock[0], knock[11]), (1, 1));
    let other = shut.told(2, 0, 0, 0);
    assert_eq!((other[0], other[11]), (0, 0));
    // What was sent before the knock opens nothing.
    shut.now += 20_000;
    assert!(shut.told(1, 1, 0, 30_000)[10] > 0);
    assert_eq!(shut.told(1, 0, 0, 15_000)[10], 0);
    let granted: i64 = (0..10).map(|_| shut.ask(2, 100_000, 0)).sum();
    assert!(granted > 0);
}

#[test]
fn a_refused_knock_comes_later_each_time_and_what_was_sent_before_changes_nothing() {
    let mut shut = Shut::new();
    let mut waits = Vec::new();
    for _ in 0..6 {
        waits.push(shut.wait());
        assert_eq!(shut.ask(1, 0, 0), 1);
        shut.now += 15_000;
        shut.told(1, 1, 1, 0);
        let before = shut.engine.stored();
        // Another member's, sent before the knock was.
        shut.now -= 10_000;
        shut.told(2, 1, 1, 0);
        shut.now += 10_000;
        let due = |stored: &std::collections::BTreeMap<String, _>| {
            let fields: &std::collections::BTreeMap<String, String> = &stored["scope"];
            fields["s"].split(' ').nth(46).map(str::to_owned)
        };
        assert_eq!(due(&shut.engine.stored()), due(&before));
    }
    assert!(waits.windows(2).all(|two| two[0] <= two[1]), "{waits:?}");
    assert!(waits[5] > waits[1], "{waits:?}");
}

#[test]
fn an_engine_that_forgot_begins_at_the_rate_that_a_member_knows() {
    let rate = |ceiling, known: &str| {
        let step = Step { ceiling, ..ASK };
        let words = format!("{} 0 0 {known}", step.words());
        let answer = ScriptEngine::new().take(1_000_000_000, "a", &words);
        answer.expect("the step is taken")[2]
    };
    // Of a limit that is not known; another one is what was said.
    assert_eq!(rate(1_000_000_000, "7.5"), 7_500);
    assert_eq!(rate(1_000, "7.5"), 1_000_000);
}

#[test]
fn a_knocker_that_dies_costs_the_others_one_wait() {
    let mut shut = Shut::new();
    shut.wait();
    assert_eq!(shut.ask(1, 0, 0), 1);
    let next = shut.wait();
    shut.now -= 1;
    assert_eq!(shut.ask(2, 0, 0), 0);
    assert_eq!((shut.ask(2, 1, 0), next > 0), (1, true));
    // One that leaves without having sent costs none.
    shut.last_leaves();
    assert_eq!(shut.ask(0, 0, 0), 1);
}

#[test]
fn a_knock_whose_success_nobody_recorded_opens_when_the_next_would_go() {
    let mut shut = Shut::new();
    shut.wait();
    assert_eq!(shut.ask(1, 0, 0), 1);
    shut.now += 1_000;
    assert!(shut.told(1, 1, 0, 0)[10] > 0);
    let _next = shut.wait();
    assert_eq!(shut.told(2, 0, 0, 0)[10], 0);
}

#[test]
fn who_leaves_while_no_knock_is_out_hastens_none() {
    let mut shut = Shut::new();
    shut.wait();
    assert_eq!(shut.ask(1, 0, 0), 1);
    shut.now += 15_000;
    shut.told(1, 1, 1, 0);
    let due = shut.told(0, 0, 0, 0)[10];
    shut.last_leaves();
    assert_eq!(shut.told(0, 0, 0, 0)[10], due);
    assert_eq!(shut.ask(1, 0, 0), 0);
}

/// A knock is a request, whatever it weighs.
#[test]
fn a_heavy_request_knocks_with_all_its_tokens() {
    let mut shut = Shut::new();
    shut.wait();
    for (head, granted) in [(3, 3), (0, 1)] {
        shut.seqs[1] += 1;
        let step = Step {
            seq: shut.seqs[1],
            want: 5,
            ..ASK
        };
        let words = format!("{} 0 0 0 0 {head}", step.words());
        let answer = shut.engine.take(shut.now, "b", &words);
        assert_eq!(answer.expect("the step is taken")[0], granted, "{head}");
        shut.wait();
    }
}

/// Asks of one member for all there is, each so many milliseconds for a minute: the rate at the
/// end, of a limit that is not known.
fn grown(period: u64, shut: u64) -> i64 {
    let mut engine = ScriptEngine::new();
    let mut rate = 0;
    for seq in 1..=60_000 / period {
        let told = if seq == 1 { shut } else { 0 };
        let words = format!(
            "{seq} 0 1000 0 0 1000.000 0 0 0 0 0 1000000000 10 0.001 100000 200000 2000000 600000 1 0 0 0 {told} 0"
        );
        let now = 1_000_000_000 + 1_000 * seq * period;
        rate = engine.take(now, "a", &words).expect("the step is taken")[2];
    }
    rate / 1_000
}

#[test]
fn an_unknown_rate_doubles_while_it_is_used_up_however_often_a_member_asks() {
    for period in [50, 100, 300] {
        let rate = grown(period, 0);
        assert!(rate >= 1_000, "{rate}/s, asked each {period} ms");
    }
}

#[test]
fn a_spent_plan_is_no_use_of_an_unknown_rate() {
    assert_eq!(grown(100, 70_000_000), 10);
}
