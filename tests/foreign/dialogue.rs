//! palantir/dialogue, `simulation/src/test/java/com/palantir/dialogue/core/SimulationTest.java`: a
//! client of a few nodes, of which one fails, slows down or falls silent.
//!
//! Dialogue chooses the node. Paceline does not: here requests go to the nodes in turn. Each test
//! asserts what retries and limits add to that.

use paceline::{
    Adaptive, Clock, ControlLaw, Standard, backoff::SeededRandom, config::StrategyBuilder,
    law::PacedSettings,
};

use crate::play::{Answer, Client, Load, MILLI, Played, SECOND, Service};
use crate::support::{Arc, Hands, http};

/// Until when a node answers how: with which status, after how many milliseconds.
type Phase = (u64, u16, u64);

const NEVER: u64 = u64::MAX;
const ALWAYS: u64 = u64::MAX;

/// A node whose answers take longer in proportion once more than `capacity` are under way.
struct Node {
    phases: &'static [Phase],
    capacity: u64,
    under_way: u64,
}

/// Nodes that are asked in turn.
struct Nodes {
    each: Vec<Node>,
    turn: usize,
    /// The node that has each operation's last request.
    asked: Vec<usize>,
    /// With more requests under way than that a node refuses.
    errs_above: u64,
    /// How many of ten thousand requests are answered 500.
    flakes: u64,
    rng: fastrand::Rng,
    sends: Vec<u64>,
}

fn nodes(capacity: u64, all: &[&'static [Phase]]) -> Nodes {
    let node = |phases: &&'static [Phase]| Node {
        phases,
        capacity,
        under_way: 0,
    };
    Nodes {
        each: all.iter().map(node).collect(),
        turn: 0,
        asked: vec![0; 20_000],
        errs_above: u64::MAX,
        flakes: 0,
        rng: fastrand::Rng::with_seed(4),
        sends: Vec::new(),
    }
}

impl Service for Nodes {
    fn answer(&mut self, now: u64, number: usize) -> Answer {
        self.turn = (self.turn + 1) % self.each.len();
        self.asked[number] = self.turn;
        self.sends.push(now);
        let node = &mut self.each[self.turn];
        node.under_way += 1;
        let phase = node
            .phases
            .iter()
            .find(|(until, ..)| now < until.saturating_mul(SECOND));
        let (_, status, millis) = *phase.expect("the last has no end");
        if millis == NEVER {
            return (None, Ok(()));
        }
        let after = millis * MILLI * node.under_way.max(node.capacity) / node.capacity;
        let flakes = self.rng.u64(0..10_000) < self.flakes;
        let is_full = node.under_way > self.errs_above;
        match if is_full || flakes { 500 } else { status } {
            200 => (Some(after), Ok(())),
            status => (Some(after), Err(http(status))),
        }
    }

    fn answered(&mut self, number: usize) {
        self.each[self.asked[number]].under_way -= 1;
    }
}

/// Which strategy a client has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Standard,
    Published,
    Paced,
}

const MODES: [Mode; 3] = [Mode::Standard, Mode::Published, Mode::Paced];

/// What came of a scene.
struct Outcome {
    all: Vec<Played>,
    sends: usize,
    /// What is left of the quota of 500.
    quota: u32,
}

impl Outcome {
    fn lost(&self) -> usize {
        self.all.iter().filter(|one| !one.succeeded).count()
    }

    fn retries(&self) -> usize {
        self.sends - self.all.len()
    }

    /// The longest wait before a first request, and the longest operation, in milliseconds.
    fn longest(&self) -> (u64, u64) {
        let waited = self.all.iter().map(|one| one.waited / MILLI).max();
        let took = self
            .all
            .iter()
            .map(|one| (one.ended - one.begun) / MILLI)
            .max();
        (waited.unwrap_or(0), took.unwrap_or(0))
    }

    /// Whether all that began from `seconds` on succeeded at once.
    fn is_well_from(&self, seconds: u64) -> bool {
        let late = self.all.iter().filter(|one| one.begun >= seconds * SECOND);
        late.clone().count() > 0 && late.clone().all(|one| one.succeeded && one.sends == 1)
    }
}

/// Plays so many operations a second for some seconds.
fn play(mode: Mode, rate: u64, seconds: u64, patience: u64, service: &mut Nodes) -> Outcome {
    let hands = Arc::new(Hands::default());
    let load = Load::Open {
        each: SECOND / rate,
        until: seconds * SECOND,
    };
    let random = Arc::new(SeededRandom::new(7));
    let (all, quota) = if mode == Mode::Standard {
        let builder = Standard::builder().clock(hands.clone() as Arc<dyn Clock>);
        let strategy = builder.random(random).build().expect("in range");
        let client = Client {
            patience,
            ..Client::new(&strategy, &hands)
        };
        (client.play(load, service), strategy.quota().available())
    } else {
        let builder: StrategyBuilder<Adaptive> = Adaptive::builder().random(random);
        let builder = match mode {
            Mode::Paced => builder.paced(PacedSettings::new()),
            _ => builder.law(ControlLaw::Aws),
        };
        let strategy = builder.clock(hands.clone()).build().expect("in range");
        let client = Client {
            patience,
            ..Client::new(&strategy, &hands)
        };
        (client.play(load, service), strategy.quota().available())
    };
    let sends = service.sends.len();
    Outcome { all, sends, quota }
}

const GOOD: &[Phase] = &[(ALWAYS, 200, 60)];
const DISTANT: &[Phase] = &[(ALWAYS, 200, 600)];
const MINUTE: u64 = 60 * SECOND;

// simplest_possible_case
#[test]
fn nodes_of_different_speed_are_asked_once_each() {
    for mode in MODES {
        let speeds: [&'static [Phase]; 3] =
            [DISTANT, &[(ALWAYS, 200, 800)], &[(ALWAYS, 200, 1_000)]];
        let mut service = nodes(1_000_000, &speeds);
        let played = play(mode, 11, 20 * 60, MINUTE, &mut service);
        assert_eq!((played.lost(), played.retries()), (0, 0), "{mode:?}");
        assert_eq!(played.longest(), (0, 1_000), "{mode:?}");
    }
}

// slow_503s_then_revert
#[test]
fn a_node_with_slow_503s_costs_few_retries() {
    for mode in MODES {
        let slow: &[Phase] = &[(3, 200, 60), (10, 503, 1_000), (ALWAYS, 200, 60)];
        let mut service = nodes(60, &[GOOD, slow]);
        let played = play(mode, 200, 15, MINUTE, &mut service);
        // One in two fails for seven seconds. A retry that succeeds is paid back.
        assert_eq!((played.lost(), played.retries()), (243, 544), "{mode:?}");
        assert_eq!((played.quota, played.longest().0), (500, 0), "{mode:?}");
    }
}

// fast_500s_then_revert
#[test]
fn a_node_with_fast_500s_costs_few_retries() {
    for mode in MODES {
        let fast: &[Phase] = &[(3, 200, 60), (10, 500, 10), (ALWAYS, 200, 60)];
        let mut service = nodes(60, &[GOOD, fast]);
        let played = play(mode, 250, 15, MINUTE, &mut service);
        assert_eq!((played.lost(), played.retries()), (778, 194), "{mode:?}");
        assert!(played.is_well_from(10), "{mode:?}");
        assert_eq!(
            (played.quota, played.longest()),
            (500, (0, 200)),
            "{mode:?}"
        );
    }
}

// drastic_slowdown
#[test]
fn a_node_that_slows_down_holds_nothing_back() {
    for mode in MODES {
        let slow: &[Phase] = &[(3, 200, 60), (10, 200, 10_000), (ALWAYS, 200, 60)];
        let mut service = nodes(60, &[GOOD, slow]);
        let played = play(mode, 200, 20, 600 * SECOND, &mut service);
        // No law goes by the time that answers take.
        assert_eq!((played.lost(), played.retries()), (0, 0), "{mode:?}");
        assert_eq!(played.longest().0, 0, "{mode:?}");
    }
}

// all_nodes_500
#[test]
fn nodes_that_all_fail_are_asked_once_each_until_they_recover() {
    for mode in MODES {
        let fails: &[Phase] = &[(10, 500, 600), (ALWAYS, 200, 600)];
        let mut service = nodes(1_000_000, &[fails, fails]);
        let played = play(mode, 100, 20, MINUTE, &mut service);
        // Of a thousand operations that fail, 35 have a retry that the quota of 500 pays.
        assert_eq!((played.lost(), played.retries()), (1_000, 35), "{mode:?}");
        assert!(played.is_well_from(10), "{mode:?}");
        assert_eq!(played.quota, 500, "{mode:?}");
    }
}

// black_hole
#[test]
fn a_node_that_falls_silent_holds_up_no_other_request() {
    for mode in MODES {
        let silent: &[Phase] = &[(3, 200, 600), (ALWAYS, 200, NEVER)];
        let mut service = nodes(1_000_000, &[DISTANT, silent]);
        let played = play(mode, 200, 10, 30 * SECOND, &mut service);
        // What falls silent is lost when its client gives up, and 69 of 700 are sent again.
        assert_eq!((played.lost(), played.retries()), (666, 69), "{mode:?}");
        let others = played
            .all
            .iter()
            .filter(|one| one.succeeded && one.sends == 1);
        let took = others.map(|one| (one.waited, one.ended - one.begun)).max();
        assert_eq!(took, Some((0, 600 * MILLI)), "{mode:?}");
    }
}

// uncommon_flakes
#[test]
fn one_failure_in_a_hundred_is_repeated_and_not_seen() {
    for mode in MODES {
        let near: &[Phase] = &[(ALWAYS, 200, 1)];
        let mut service = Nodes {
            flakes: 100,
            ..nodes(1_000_000, &[near, near])
        };
        let played = play(mode, 1_000, 10, MINUTE, &mut service);
        assert_eq!((played.lost(), played.retries()), (0, 107), "{mode:?}");
        assert_eq!((played.quota, played.longest()), (500, (0, 51)), "{mode:?}");
    }
}

// slowdown_and_error_thresholds
#[test]
fn nodes_that_err_under_load_are_not_asked_more() {
    let speeds: [&'static [Phase]; 3] = [DISTANT, &[(ALWAYS, 200, 800)], &[(ALWAYS, 200, 1_000)]];
    for mode in MODES {
        let mut service = Nodes {
            errs_above: 40,
            ..nodes(30, &speeds)
        };
        let played = play(mode, 500, 20, MINUTE, &mut service);
        // Requests come at four times what the nodes can do: nearly all is lost, and retries add
        // 0.4 %.
        assert_eq!((played.lost(), played.retries()), (9_880, 38), "{mode:?}");
    }
}

// one_endpoint_dies_on_each_server
#[test]
fn an_endpoint_that_fails_costs_the_other_no_quota() {
    let hands = Arc::new(Hands::default());
    let template = Standard::builder().clock(hands.clone() as Arc<dyn Clock>);
    let template = template.random(Arc::new(SeededRandom::new(7)));
    let scopes = template.scopes().max_scopes(2).build().expect("in range");
    let mut client = Client::new(&scopes, &hands);
    client.scope = |number| Some(["dies", "lives"][number / 2 % 2]);
    let load = Load::Open {
        each: SECOND / 250,
        until: 10 * SECOND,
    };
    let played = client.play(load, &mut Endpoints { sends: 0 });
    let lost = |endpoint: usize| {
        let all = played.iter().enumerate();
        let its = all.filter(|(number, _)| number / 2 % 2 == endpoint);
        its.filter(|(_, one)| !one.succeeded).count()
    };
    let quota = |key| scopes.get(key).expect("there is room").quota().available();
    assert_eq!((lost(0), quota("dies")), (874, 10));
    assert_eq!((lost(1), quota("lives")), (6, 500));
}

/// Two endpoints 600 ms away. From three seconds on the first fails always, and the other once in
/// five times.
struct Endpoints {
    sends: u32,
}

impl Service for Endpoints {
    fn answer(&mut self, now: u64, number: usize) -> Answer {
        self.sends += 1;
        let fails = now >= 3 * SECOND && (number / 2 % 2 == 0 || self.sends % 5 == 0);
        let result = if fails { Err(http(500)) } else { Ok(()) };
        (Some(600 * MILLI), result)
    }

    fn answered(&mut self, _: usize) {}
}
