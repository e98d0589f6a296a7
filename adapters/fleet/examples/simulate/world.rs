//! Plays a scene: members, the engine and a service, in steps of a few milliseconds.

use std::time::Duration;

use fastrand::Rng;
use paceline::Timestamp;

use crate::fault::EngineFault;
use crate::node::Node;
use crate::record::{Arrival, Record};
use crate::scenes::{Event, Kind, Scene, Want};
use crate::script::ScriptEngine;
use crate::settings::Settings;
use crate::tally::Tally;
use crate::wire::{Answer, Ask};

const TICK: Duration = Duration::from_millis(5);
/// What of a scene is not in the figures, in seconds.
pub(crate) const WARM_UP: u64 = 4;
/// How long the service takes, and how many it serves at once after a rest, as a time at its rate.
const TRIP: Duration = Duration::from_millis(20);
const BURST: f64 = 0.1;

#[derive(Debug)]
struct Service {
    limit: f64,
    tokens: f64,
}

/// How the engine is to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    There,
    Slow,
    Away,
}

#[derive(Debug)]
pub(crate) struct World {
    scene: &'static Scene,
    settings: Settings,
    random: Rng,
    engine: ScriptEngine,
    /// Where it is a file, in place of that.
    #[cfg(feature = "local")]
    disk: Option<crate::disk::Disk>,
    /// What a replica has heard.
    replica: Option<ScriptEngine>,
    nodes: Vec<Node>,
    names: u64,
    service: Service,
    elapsed: Duration,
    record: Record,
    churned: f64,
    /// Steps of the engine in each second.
    steps: Vec<u64>,
    /// The longest lease that a member has asked for, and the most that was to be kept.
    longest: [Duration; 2],
    /// The longest that a member's first request has waited; where members are replaced, theirs.
    first: Duration,
}

impl World {
    pub(crate) fn new(scene: &'static Scene, on_file: bool) -> Self {
        assert!(!on_file || cfg!(feature = "local"), "a file is a feature");
        // The members' own dice: how far their asks are from each other.
        fastrand::seed(7);
        let settings = Settings::new(scene.allowance, Duration::from_secs(1));
        Self {
            scene,
            settings: Settings {
                away: scene.away,
                ..settings.expect("in range")
            },
            random: Rng::with_seed(7),
            engine: ScriptEngine::new(),
            #[cfg(feature = "local")]
            disk: on_file.then(|| crate::disk::Disk::new(scene.name)),
            replica: None,
            nodes: Vec::new(),
            names: 0,
            service: Service {
                limit: f64::from(scene.allowance) * 10.0,
                tokens: 0.0,
            },
            elapsed: Duration::ZERO,
            record: Record::default(),
            churned: 0.0,
            steps: Vec::new(),
            longest: [Duration::ZERO; 2],
            first: Duration::ZERO,
        }
    }

    pub(crate) fn play(mut self) -> Tally {
        while self.elapsed < Duration::from_secs(self.scene.length) {
            self.join();
            self.happen();
            for index in 0..self.nodes.len() {
                self.act(index);
            }
            self.elapsed += TICK;
        }
        Tally::new(
            self.scene,
            &self.nodes,
            &self.record,
            &self.steps,
            self.longest.iter().sum(),
            self.first,
        )
    }

    fn now(&self) -> Timestamp {
        let nanos = (Duration::from_secs(1) + self.elapsed).as_nanos();
        Timestamp::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn later(&self, span: Duration) -> Timestamp {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Timestamp::from_nanos(self.now().as_nanos() + nanos)
    }

    /// All join in the first second.
    fn join(&mut self) {
        let millis = usize::try_from(self.elapsed.as_millis()).unwrap_or(usize::MAX);
        let joined = self.scene.members * (millis + 5).min(1_000) / 1_000;
        while millis < 1_000 && self.nodes.len() < joined {
            let member = self.nodes.len();
            let node = self.node(self.scene.wants(member), (self.scene.kind)(member).lease);
            self.nodes.push(node);
        }
    }

    fn node(&mut self, want: u64, lease: u64) -> Node {
        self.names += 1;
        let name = format!("{:x}", self.names);
        let settings = Settings {
            lease: Duration::from_millis(lease),
            ..self.settings
        };
        Node::new(name, want, settings, self.now())
    }

    /// Lets come what begins now, or goes on.
    fn happen(&mut self) {
        let elapsed = self.elapsed;
        let at = |second: u64| elapsed == Duration::from_secs(second);
        for event in self.scene.events {
            match *event {
                Event::Forgetful { to, .. } if at(to) => self.forget(),
                Event::FailOver { from, .. } if at(from - 1) => {
                    let replica = ScriptEngine::new();
                    replica.fall_back(self.engine.stored());
                    self.replica = Some(replica);
                }
                Event::FailOver { to, .. } if at(to) => {
                    let heard = self.replica.take().map(|replica| replica.stored());
                    self.engine.fall_back(heard.unwrap_or_default());
                }
                Event::Limit { from, percent } if at(from) => {
                    let allowance = u64::from(self.scene.allowance);
                    let limit = u32::try_from(allowance * percent / 100);
                    self.service.limit = f64::from(limit.unwrap_or(u32::MAX));
                }
                Event::KillAllBut { from, left } if at(from) => self.nodes.truncate(left),
                Event::Churn { from, to, each } if self.is_within(from, to) => {
                    let each = u32::try_from(each).unwrap_or(u32::MAX);
                    self.churned += f64::from(each) * TICK.as_secs_f64();
                    while self.churned >= 1.0 {
                        self.churned -= 1.0;
                        self.replace();
                    }
                }
                Event::Lease { from, each, lease } => {
                    for index in 0..self.nodes.len() {
                        let own = each * u64::try_from(index).unwrap_or(u64::MAX);
                        if elapsed == Duration::from_millis(1_000 * from + own) {
                            self.change(index, lease);
                        }
                    }
                }
                _ => {}
            }
        }
        let limit = self.service.limit;
        let minted = self.service.tokens + limit * TICK.as_secs_f64();
        self.service.tokens = minted.min(limit * BURST);
    }

    fn is_within(&self, from: u64, to: u64) -> bool {
        (Duration::from_secs(from)..Duration::from_secs(to)).contains(&self.elapsed)
    }

    /// One goes, with or without a word, and another one comes that wants as much.
    fn replace(&mut self) {
        let index = self.random.usize(..self.nodes.len());
        let now = self.now();
        if self.random.bool() {
            let ask = self.nodes[index].leave(now);
            let _unheard = self.step(index, &ask);
        }
        self.nodes[index] = self.node(self.nodes[index].want, (self.scene.kind)(index).lease);
        self.nodes[index].replaced = true;
    }

    /// One leaves, and comes again with another lease.
    fn change(&mut self, index: usize, lease: u64) {
        let now = self.now();
        let ask = self.nodes[index].leave(now);
        let _unheard = self.step(index, &ask);
        let served = self.nodes[index].served;
        self.nodes[index] = self.node(self.nodes[index].want, lease);
        self.nodes[index].served = served;
    }

    /// Returns how `member` finds the engine.
    fn engine_is(&self, member: usize) -> Engine {
        let mut found = Engine::There;
        for event in self.scene.events {
            match *event {
                Event::Outage { from, to }
                | Event::Forgetful { from, to }
                | Event::FailOver { from, to }
                    if self.is_within(from, to) =>
                {
                    found = Engine::Away;
                }
                Event::CutOff { from, to, each } => {
                    let own = each * u64::try_from(member).unwrap_or(u64::MAX);
                    let [from, to] = [from, to].map(|second| 1_000 * second + own);
                    let span = Duration::from_millis(from)..Duration::from_millis(to);
                    if span.contains(&self.elapsed) {
                        found = Engine::Away;
                    }
                }
                Event::Slow { from, to } if self.is_within(from, to) => found = Engine::Slow,
                _ => {}
            }
        }
        found
    }

    fn act(&mut self, index: usize) {
        let now = self.now();
        self.nodes[index].pass(now, TICK);
        while self.nodes[index].send(now) {
            self.serve(index);
        }
        let Kind { trip, jitter, .. } = (self.scene.kind)(index);
        let random = &mut self.random;
        let mut way = || {
            let more = if jitter == 0 {
                0
            } else {
                random.u64(0..=jitter)
            };
            Duration::from_millis(trip / 2 + more)
        };
        self.nodes[index].ask(now, || [way(), way().max(TICK)]);
        let Some(ask) = self.nodes[index].arrived(now) else {
            return;
        };
        let (result, ends) = match self.engine_is(index) {
            Engine::There => (self.step(index, &ask), None),
            Engine::Away => (Err(EngineFault::Unreachable), None),
            // The engine does what it was asked, and the answer is lost.
            Engine::Slow => {
                let _unheard = self.step(index, &ask);
                let late = self.later(self.settings.patience);
                (Err(EngineFault::TimedOut), Some(late))
            }
        };
        self.nodes[index].answered(result, ends);
    }

    fn step(&mut self, index: usize, ask: &Ask) -> Result<Answer, EngineFault> {
        let second = usize::try_from(self.elapsed.as_secs()).unwrap_or(usize::MAX);
        self.steps.resize(self.steps.len().max(second + 1), 0);
        self.steps[second] += 1;
        let [lease, burst] = self.longest;
        self.longest = [lease.max(ask.reach.lease), burst.max(ask.reach.burst)];
        let micros = u64::try_from(self.elapsed.as_micros()).unwrap_or(u64::MAX);
        let words = ask.words(&self.settings);
        let name = self.nodes[index].name.clone();
        ask.read(&self.take(micros, &name, &words)?)
    }

    fn take(&mut self, micros: u64, name: &str, words: &str) -> Result<Vec<i64>, EngineFault> {
        #[cfg(feature = "local")]
        if let Some(disk) = &self.disk {
            return disk.take(micros, name, words);
        }
        let answer = self.engine.take(micros, name, words);
        answer.map_err(|_| EngineFault::Broken)
    }

    fn forget(&mut self) {
        #[cfg(feature = "local")]
        if let Some(disk) = &self.disk {
            return disk.forget();
        }
        self.engine.forget();
    }

    fn serve(&mut self, index: usize) {
        let throttled = self.service.tokens < 1.0;
        if !throttled {
            self.service.tokens -= 1.0;
        }
        self.record.0.push(Arrival {
            at: self.elapsed,
            member: 0,
            throttled,
        });
        let (now, due) = (self.now(), self.later(TRIP));
        let measured = self.elapsed >= Duration::from_secs(WARM_UP) && !throttled;
        let node = &mut self.nodes[index];
        let waited = node.first(now).unwrap_or_default();
        if node.replaced || !self.scene.has_churn() {
            self.first = self.first.max(waited);
        }
        node.answer(now, due, throttled);
        node.served += u64::from(measured);
    }
}

impl Scene {
    /// Returns what a member would send, in thousandths of a request per second.
    fn wants(&self, member: usize) -> u64 {
        let rank = u64::try_from(member).unwrap_or(u64::MAX) + 1;
        match self.want {
            Want::Even(rate) => rate * 1_000,
            Want::Zipf(rate) => rate * 1_000 / rank,
            Want::Few(rate) if rank % 10 == 0 => rate * 1_000,
            Want::Few(_) => 100,
        }
    }
}
