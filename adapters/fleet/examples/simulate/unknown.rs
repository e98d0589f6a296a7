//! A limit that no member knows: 40 requests a minute, shared by separate members, in virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use fastrand::Rng;
use paceline::Timestamp;
use paceline::backoff::{BackoffStrategy, ExponentialBackoff};

use crate::common::chart::{Chart, Panel, Step};
use crate::fault::EngineFault;
use crate::node::Node;
use crate::record::{Arrival, Record, number};
use crate::script::ScriptEngine;
use crate::settings::Settings;
use crate::wire::Ask;

const TICK: Duration = Duration::from_millis(10);
const TRIP: Duration = Duration::from_millis(50);
/// What the service gives in a minute, and what it saves up.
const LIMIT: f64 = 40.0;
const BURST: f64 = 50.0;
const MINUTE: Duration = Duration::from_secs(60);

/// How the service gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refill {
    /// All of it with each minute.
    Minute,
    /// Evenly.
    Steady,
}

/// What happens to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    There,
    /// Members lose it one after the other from the tenth minute on, each 2 s.
    Lost,
    /// It is emptied in the fifth minute and in the tenth.
    Emptied,
    /// For a minute, each answer comes after the members' patience.
    Slow,
}

/// Members with ten requests each, that come within ten minutes; or with requests without end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unknown {
    members: usize,
    refill: Refill,
    /// For so many minutes, with requests without end; or until ten of each are done.
    minutes: Option<u64>,
    /// Whether each member has plain backoff alone, and no engine. Not for requests without end.
    alone: bool,
    engine: Engine,
    /// How many members are killed in each minute, and replaced.
    killed: u32,
    /// The most refusals for each success, and the latest end in seconds.
    refused: f64,
    end: u64,
}

const fn jobs(members: usize, refill: Refill, refused: f64, end: u64) -> Unknown {
    Unknown {
        members,
        refill,
        minutes: None,
        alone: false,
        engine: Engine::There,
        killed: 0,
        refused,
        end,
    }
}

const fn fault(engine: Engine, killed: u32) -> Unknown {
    Unknown {
        minutes: Some(20),
        engine,
        killed,
        ..jobs(12, Refill::Minute, 0.3, u64::MAX)
    }
}

/// What is printed, beside the faults.
const SCENES: [Unknown; 6] = [
    jobs(50, Refill::Minute, 0.3, 745),
    jobs(50, Refill::Steady, 0.3, 695),
    jobs(100, Refill::Minute, 0.5, 1_500),
    jobs(100, Refill::Steady, 0.5, 1_480),
    Unknown {
        minutes: Some(30),
        ..jobs(50, Refill::Minute, 0.3, u64::MAX)
    },
    Unknown {
        minutes: Some(30),
        ..jobs(50, Refill::Steady, 0.3, u64::MAX)
    },
];

/// Each scene is played with so many.
const SEEDS: u64 = 3;

pub(crate) const FAULTS: [Unknown; 4] = [
    fault(Engine::Lost, 0),
    fault(Engine::Emptied, 0),
    fault(Engine::Slow, 0),
    fault(Engine::There, 4),
];

/// Prints a line for each scene and seed, and returns those that did not keep their promises.
pub(crate) fn table() -> Vec<String> {
    let mut wrong = Vec::new();
    println!("refused   end    Jain   used   in a minute");
    for scene in FAULTS.into_iter().chain(SCENES) {
        for seed in 1..=SEEDS {
            let came = scene.play(seed);
            let Came {
                refused,
                jain,
                used,
                most,
                ..
            } = came;
            let end = came.end.as_secs();
            let name = scene.name();
            let alone = scene.minutes.map_or_else(
                || {
                    let Came { refused, end, .. } = scene.alone().play(seed);
                    format!("; alone {refused:.2}, {} s", end.as_secs())
                },
                |_| String::new(),
            );
            println!("{refused:.3}  {end:5} s  {jain:.3}  {used:.3}  {most:.2}  {name}{alone}");
            wrong.extend(came.wrong(scene));
        }
    }
    println!(
        "\nrefused: for each success; in a minute: the most sent from the tenth on, of the limit\n"
    );
    wrong
}

/// Returns a chart of the first scene, as an SVG document.
pub(crate) fn chart() -> String {
    let scene = SCENES[0];
    let panels = [
        (
            "Each alone",
            "exponential backoff with full jitter",
            scene.alone(),
        ),
        ("A fleet", "the limit is found together", scene),
    ];
    let panels = panels.map(|(name, means, scene)| {
        let world = scene.run(1);
        let minutes = 0..=world.elapsed.as_secs() / 60;
        let steps = minutes.map(|minute| {
            let [from, to] = [minute, minute + 1].map(|at| Duration::from_secs(60 * at));
            let seen = world.record.within(from, to);
            Step {
                from: from.as_secs_f64() / 60.0,
                to: to.as_secs_f64() / 60.0,
                admitted: number(seen.delivered()),
                sent: number(seen.sent()),
                allowed: None,
            }
        });
        let Came { refused, end, .. } = world.came();
        let (name, end) = (name.to_owned(), end.as_secs());
        Panel {
            name,
            steps: steps.collect(),
            lines: [
                means.to_owned(),
                format!("{refused:.2} refused for each success, done after {end} s"),
            ],
            bars: Default::default(),
        }
    });
    let ends = panels.iter().flat_map(|panel| &panel.steps);
    let (end, highest) = ends.fold((0.0_f64, LIMIT), |(end, highest), step| {
        (end.max(step.to), highest.max(step.sent))
    });
    Chart {
        title: "50 processes, and 40 requests a minute that none of them knows".to_owned(),
        setting: format!(
            "Each has {REQUESTS} requests, which come within ten minutes. The service gives {LIMIT} with each minute, and saves up {BURST}."
        ),
        columns: 2,
        rate: ["requests", "minute"],
        across: "Across: minutes since the start.".to_owned(),
        end,
        highest: highest * 1.05,
        limit: vec![(0.0, end, LIMIT)],
        bars: None,
    }
    .draw(&panels)
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    /// Refusals for each success.
    refused: f64,
    end: Duration,
    /// Jain's index of what the members got.
    jain: f64,
    /// Of the limit.
    used: f64,
    /// The most that was sent in a minute from the tenth on, of the limit.
    most: f64,
}

impl Came {
    /// Returns which promises were not kept.
    pub(crate) fn wrong(self, scene: Unknown) -> Option<String> {
        let is_well = self.refused <= scene.refused
            && self.end <= Duration::from_secs(scene.end)
            && (scene.engine == Engine::Lost || self.used >= 0.9)
            && (scene.killed > 0 || self.jain >= 0.95)
            && self.most <= 2.0;
        (!is_well).then(|| format!("{}: {self:?}", scene.name()))
    }
}

#[derive(Debug)]
struct World {
    scene: Unknown,
    settings: Settings,
    engine: ScriptEngine,
    nodes: Vec<Node>,
    /// When the next sends of each member are due, and how often each was sent before.
    arrivals: Vec<VecDeque<(Duration, u32)>>,
    names: u64,
    tokens: f64,
    elapsed: Duration,
    record: Record,
    sent: Vec<Duration>,
}

const REQUESTS: usize = 10;

impl Unknown {
    fn name(self) -> String {
        let Self {
            members,
            refill,
            engine,
            killed,
            ..
        } = self;
        match self.minutes {
            None => format!("{members} with ten requests each, {refill:?}"),
            Some(_) => {
                format!("{members}, {refill:?}, engine {engine:?}, {killed} killed a minute")
            }
        }
    }

    /// Returns the same with plain backoff.
    const fn alone(self) -> Self {
        Self {
            alone: true,
            ..self
        }
    }

    /// Plays it.
    pub(crate) fn play(self, seed: u64) -> Came {
        self.run(seed).came()
    }

    fn run(self, seed: u64) -> World {
        fastrand::seed(seed);
        let mut random = Rng::with_seed(seed);
        let settings = Settings::unknown();
        let mut world = World {
            scene: self,
            settings,
            engine: ScriptEngine::new(),
            nodes: Vec::new(),
            arrivals: Vec::new(),
            names: 0,
            tokens: BURST,
            elapsed: Duration::ZERO,
            record: Record::default(),
            sent: Vec::new(),
        };
        for _ in 0..self.members {
            let mut times: Vec<_> = (0..REQUESTS)
                .map(|_| (Duration::from_millis(random.u64(0..600_000)), 0))
                .collect();
            times.sort_unstable();
            world.arrivals.push(times.into());
            let node = world.node();
            world.nodes.push(node);
        }
        while !world.is_over() {
            world.step(&mut random);
        }
        world
    }
}

impl World {
    fn now(&self) -> Timestamp {
        Timestamp::ZERO.saturating_add(Duration::from_secs(1) + self.elapsed)
    }

    fn node(&mut self) -> Node {
        self.names += 1;
        Node::new(format!("{:x}", self.names), 0, self.settings, self.now())
    }

    fn is_over(&self) -> bool {
        match self.scene.minutes {
            Some(minutes) => self.elapsed.as_secs() >= 60 * minutes,
            None => self.record.delivered() >= self.nodes.len() * REQUESTS,
        }
    }

    fn step(&mut self, random: &mut Rng) {
        let minute = |elapsed: Duration| elapsed.as_millis() / MINUTE.as_millis();
        let next = self.elapsed + TICK;
        match self.scene.refill {
            Refill::Minute if minute(next) > minute(self.elapsed) => self.tokens += LIMIT,
            Refill::Steady => self.tokens += LIMIT * TICK.as_secs_f64() / MINUTE.as_secs_f64(),
            Refill::Minute => {}
        }
        self.tokens = self.tokens.min(BURST);
        self.elapsed = next;
        let empties = [300, 600].map(Duration::from_secs).contains(&self.elapsed);
        if self.scene.engine == Engine::Emptied && empties {
            self.engine.forget();
        }
        let each = self.scene.killed;
        if each > 0 && self.elapsed.as_millis() % (MINUTE.as_millis() / u128::from(each)) == 0 {
            let index = random.usize(..self.nodes.len());
            let served = self.nodes[index].served;
            self.nodes[index] = self.node();
            self.nodes[index].served = served;
        }
        for index in 0..self.nodes.len() {
            if self.scene.alone {
                self.back_off(index, random);
            } else {
                self.act(index);
            }
        }
    }

    /// Lets a member send what is due, and again after a backoff.
    fn back_off(&mut self, index: usize, random: &mut Rng) {
        let backoff = ExponentialBackoff::new(Duration::from_secs(1), Duration::from_secs(20));
        let due = |(time, _): &(Duration, u32)| *time <= self.elapsed;
        let due = self.arrivals[index].iter().filter(|send| due(send)).count();
        for (_, sent) in self.arrivals[index].drain(..due).collect::<Vec<_>>() {
            if self.is_throttled(index) {
                let wait = backoff.delay(sent + 1, true, random.u64(..));
                let again = (self.elapsed + TRIP + wait, sent + 1);
                self.arrivals[index].push_back(again);
            }
        }
        self.arrivals[index].make_contiguous().sort_unstable();
    }

    /// Returns what the service says to a request of now.
    fn is_throttled(&mut self, index: usize) -> bool {
        let throttled = self.tokens < 1.0;
        let served = u8::from(!throttled);
        self.tokens -= f64::from(served);
        self.nodes[index].served += u64::from(served);
        self.sent.push(self.elapsed);
        self.record.0.push(Arrival {
            at: self.elapsed,
            member: 0,
            throttled,
        });
        throttled
    }

    fn act(&mut self, index: usize) {
        let now = self.now();
        let due = |(time, _): &(Duration, u32)| *time <= self.elapsed;
        match self.scene.minutes {
            Some(_) => self.nodes[index].waits_for(1),
            None => {
                while self.arrivals[index].front().is_some_and(due) {
                    self.arrivals[index].pop_front();
                    self.nodes[index].comes();
                }
            }
        }
        self.nodes[index].pass(now, Duration::ZERO);
        while self.nodes[index].send(now) {
            let throttled = self.is_throttled(index);
            self.nodes[index].answer(now, now.saturating_add(TRIP), throttled);
            if throttled && self.scene.minutes.is_none() {
                self.arrivals[index].push_front((self.elapsed + TRIP, 0));
            }
        }
        self.nodes[index].ask(now, || [TICK, TICK]);
        let Some(ask) = self.nodes[index].arrived(now) else {
            return;
        };
        let seconds = self.elapsed.as_secs();
        let lost = u64::try_from(index).unwrap_or(0) * 2 + 600;
        let (result, ends) = match self.scene.engine {
            Engine::Lost if seconds >= lost => (Err(EngineFault::Unreachable), None),
            Engine::Slow if (600..660).contains(&seconds) => {
                let _unheard = self.take(index, &ask);
                let late = now.saturating_add(self.settings.patience);
                (Err(EngineFault::TimedOut), Some(late))
            }
            _ => (self.take(index, &ask), None),
        };
        self.nodes[index].answered(result, ends);
    }

    fn take(&mut self, index: usize, ask: &Ask) -> Result<crate::wire::Answer, EngineFault> {
        // The engine's clock is hours from the members'.
        let micros = u64::try_from(self.elapsed.as_micros()).unwrap_or(u64::MAX) + 3_600_000_000;
        let name = self.nodes[index].name.clone();
        let taken = self.engine.take(micros, &name, &ask.words(&self.settings));
        ask.read(&taken.map_err(|_| EngineFault::Broken)?)
    }

    fn came(&self) -> Came {
        let delivered = number(self.record.delivered());
        let got: Vec<f64> = self
            .nodes
            .iter()
            .map(|node| f64::from(u32::try_from(node.served).unwrap_or(u32::MAX)))
            .collect();
        let (sum, squares) = got.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        let given = BURST + LIMIT * self.elapsed.as_secs_f64() / MINUTE.as_secs_f64();
        let late: Vec<_> = self
            .sent
            .iter()
            .filter(|at| at.as_secs() >= 600)
            .copied()
            .collect();
        let within = |(index, from): (usize, &Duration)| {
            late.partition_point(|at| *at < *from + MINUTE) - index
        };
        let most = late.iter().enumerate().map(within).max().unwrap_or(0);
        Came {
            refused: number(self.record.sent()) / delivered - 1.0,
            end: self.elapsed,
            jain: sum * sum / (number(got.len()) * squares),
            used: delivered / given,
            most: number(most) / LIMIT,
        }
    }
}
