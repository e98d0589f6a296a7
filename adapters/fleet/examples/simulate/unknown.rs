//! A limit that no member knows: 40 requests a minute, shared by separate members, in virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use fastrand::Rng;
use paceline::Timestamp;

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

/// What becomes of the engine.
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
    engine: Engine,
    /// How many members are killed in each minute, and replaced.
    killed: u32,
    /// The most refusals for each success, and the latest end in seconds: plain backoff ends at 730, 682, 1,450
    /// and 1,433.
    refused: f64,
    end: u64,
}

const fn jobs(members: usize, refill: Refill, refused: f64, end: u64) -> Unknown {
    Unknown {
        members,
        refill,
        minutes: None,
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
            println!("{refused:.3}  {end:5} s  {jain:.3}  {used:.3}  {most:.2}  {name}");
            wrong.extend(came.wrong(scene));
        }
    }
    println!(
        "\nrefused: for each success; in a minute: the most sent from the tenth on, of the limit\n"
    );
    wrong
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
    arrivals: Vec<VecDeque<Duration>>,
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

    /// Plays it.
    pub(crate) fn play(self, seed: u64) -> Came {
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
                .map(|_| Duration::from_millis(random.u64(0..600_000)))
                .collect();
            times.sort_unstable();
            world.arrivals.push(times.into());
            let node = world.node();
            world.nodes.push(node);
        }
        while !world.is_over() {
            world.step(&mut random);
        }
        world.came()
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
            self.act(index);
        }
    }

    fn act(&mut self, index: usize) {
        let now = self.now();
        let due = |time: &Duration| *time <= self.elapsed;
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
            let throttled = self.tokens < 1.0;
            self.tokens -= f64::from(u8::from(!throttled));
            self.sent.push(self.elapsed);
            self.record.0.push(Arrival {
                at: self.elapsed,
                member: 0,
                throttled,
            });
            let node = &mut self.nodes[index];
            node.served += u64::from(!throttled);
            node.answer(now, now.saturating_add(TRIP), throttled);
            if throttled && self.scene.minutes.is_none() {
                self.arrivals[index].push_front(self.elapsed + TRIP);
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
        let within = |from: &Duration| {
            let to = *from + MINUTE;
            late.iter().filter(|at| (*from..to).contains(at)).count()
        };
        let most = late.iter().map(within).max().unwrap_or(0);
        Came {
            refused: number(self.record.sent()) / delivered - 1.0,
            end: self.elapsed,
            jain: sum * sum / (number(got.len()) * squares),
            used: delivered / given,
            most: number(most) / LIMIT,
        }
    }
}
