//! Limits that are windows of any length, and how clients fare that do not know them.
//!
//! `simulate --windows` plays [`SCENES`] with the laws of this crate, with sketches of a law that
//! counts whole cycles ([`crate::cycles`]), and with what others have published
//! ([`crate::sharing`]). Its table has medians.

#![expect(clippy::float_arithmetic, reason = "figures for people")]

mod minutes;

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use std::io;

use fastrand::Rng;
use paceline::{Class, RetryQuota, law::LimitReports};

use crate::cycles::{Cycles, Part, Third};
use crate::limiter::{Limiter, Reply, Retry, Unlimited, Want};
use crate::number::{jain, number, share};
use crate::options::Options;
use crate::policer::{Counting, Policer};
use crate::run;
use crate::sharing::{Aatb, Atb, Learner, Nall, Telemetry};
use crate::time::{self, MILLI, SECOND, now};
use crate::world::turn;

/// A limit: how it counts, how many a window of so many seconds, and what a bucket of it holds.
type Limit = (Counting, u64, u64, Option<u64>);

/// When a client wants to send. Its operations are a list, which its workers share.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    /// Always.
    Busy,
    /// So many operations, at times drawn from so many seconds.
    Within(u64, u64),
    /// So many operations at once every so many seconds.
    Each(u64, u64),
    /// So many operations a minute, at random.
    Random(u64),
    /// Each worker is an agent: so many turns, 50 ms apart. It dies at its first failure.
    Agents(u64),
}

/// What a service does from one second to another instead of answering.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Down {
    Throttles,
    Errors,
    /// Connections are refused, after 1 ms.
    Refuses,
}

/// What comes with a throttle.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Hint {
    None,
    /// When one request would be admitted.
    Exact,
    /// Always "1 s".
    Second,
}

/// Which figures are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Show {
    /// Share of the limit used / of requests throttled.
    Used,
    /// Refusals for each success / the end, in seconds.
    Ends,
    /// Agents that died, and the end.
    Dead,
    /// Operations lost in a job after the first.
    Lost,
    /// The most sends in a second while it is down / use afterwards.
    Peak,
    /// The median wait / the 99th percentile, in seconds, and throttled.
    Waits,
    /// Jain's index / throttled.
    Jain,
    /// Used / how many throttles / how many seconds until nine tenths after the last change.
    Race,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    limits: &'static [Limit],
    /// The first limit is changed by so many percent from these seconds on.
    changes: &'static [(u64, u64)],
    clients: u32,
    workers: u32,
    load: Load,
    /// A round trip takes from so many to so many milliseconds.
    trip: (u64, u64),
    /// How many of a thousand take five times that, and fail.
    slow: u64,
    errors: u64,
    hint: Hint,
    down: Option<(u64, u64, Down)>,
    /// More than so many at once are throttled.
    at_once: u32,
    /// Whether refused requests use up the limit, too.
    strict: bool,
    /// How often an operation is tried; 0: until it succeeds, for nothing.
    attempts: u32,
    /// Counted from the first of these seconds to the second.
    seconds: (u64, u64),
    show: Show,
}

const USUAL: Scene = Scene {
    name: "",
    limits: &[],
    changes: &[],
    clients: 1,
    workers: 16,
    load: Load::Busy,
    trip: (500, 500),
    slow: 0,
    errors: 0,
    hint: Hint::None,
    down: None,
    at_once: u32::MAX,
    strict: false,
    attempts: 0,
    seconds: (600, 7_800),
    show: Show::Used,
};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
use Counting::{FirstUse, Refill, Sliding, Steps, Window};

const SHARED: Scene = Scene {
    clients: 100,
    workers: 1,
    load: Load::Within(10, 600),
    trip: (50, 50),
    seconds: (0, 40_000),
    show: Show::Ends,
    ..USUAL
};
const AGENTS: Scene = Scene {
    limits: &[(Window, 50, MINUTE, None)],
    load: Load::Agents(8),
    trip: (60, 100),
    strict: true,
    attempts: 4,
    seconds: (0, 40_000),
    show: Show::Dead,
    ..USUAL
};
const OUTAGE: Scene = Scene {
    limits: &[(Refill, 100, 1, Some(10))],
    workers: 64,
    trip: (15, 25),
    attempts: 4,
    seconds: (60, 180),
    show: Show::Peak,
    ..USUAL
};
const JOBS: Scene = Scene {
    limits: &[(Refill, 100, 1, Some(10))],
    workers: 512,
    trip: (40, 60),
    attempts: 4,
    seconds: (0, 605),
    show: Show::Lost,
    ..USUAL
};
const BURSTS: Scene = Scene {
    workers: 30,
    load: Load::Each(30, 300),
    trip: (200, 500),
    seconds: (600, 15_600),
    show: Show::Waits,
    ..USUAL
};

/// The scenes of the law's table, and some of which its constants know nothing.
#[rustfmt::skip]
pub(crate) const SCENES: &[Scene] = &[
    Scene { name: "40 in 60 s, windows", limits: &[(Window, 40, MINUTE, None)], ..USUAL },
    Scene { name: "40 in 60 s, steady", limits: &[(Refill, 40, MINUTE, Some(6))], ..USUAL },
    Scene { name: "40 in 60 s, log", limits: &[(Sliding, 40, MINUTE, None)], ..USUAL },
    Scene { name: "10 in 60 s", limits: &[(Window, 10, MINUTE, None)], trip: (2_000, 2_000), ..USUAL },
    Scene { name: "15 in 900 s", limits: &[(Window, 15, 900, None)], trip: (500, 1_000), seconds: (3_600, 39_600), ..USUAL },
    Scene { name: "500 a day", limits: &[(Window, 500, DAY, None)], trip: (500, 1_000), seconds: (2 * DAY, 12 * DAY), ..USUAL },
    Scene { name: "500 in 60 s", limits: &[(Window, 500, MINUTE, None)], ..USUAL },
    Scene { name: "3,000 in 60 s", limits: &[(Window, 3_000, MINUTE, None)], trip: (200, 200), ..USUAL },
    Scene { name: "1,000 an hour", limits: &[(Window, 1_000, HOUR, None)], seconds: (3 * HOUR, 24 * HOUR), ..USUAL },
    Scene { name: "300 in 10 s", limits: &[(Window, 300, 10, None)], trip: (100, 300), ..USUAL },
    Scene { name: "5 in 1 s", limits: &[(Window, 5, 1, None)], trip: (100, 100), ..USUAL },
    Scene { name: "100/s, steady", limits: &[(Refill, 100, 1, Some(17))], trip: (100, 100), seconds: (120, 1_020), ..USUAL },
    Scene { name: "10/s and 300 a minute", limits: &[(Window, 10, 1, None), (Window, 300, MINUTE, None)], trip: (100, 300), ..USUAL },
    Scene { name: "40 in 60 s, exact hints", limits: &[(Window, 40, MINUTE, None)], hint: Hint::Exact, ..USUAL },
    Scene { name: "40 in 60 s, '1 s' always", limits: &[(Window, 40, MINUTE, None)], hint: Hint::Second, ..USUAL },
    Scene { name: "120 in 60 s, then 30, then 120", limits: &[(Window, 120, MINUTE, None)], changes: &[(1_800, 25), (3_600, 100)], ..USUAL },
    Scene { name: "100 clients, a minute", limits: &[(Steps, 40, MINUTE, Some(50))], ..SHARED },
    Scene { name: "100 clients, steady", limits: &[(Refill, 40, MINUTE, Some(50))], ..SHARED },
    Scene { name: "micro, 5 agents", workers: 5, ..AGENTS },
    Scene { name: "micro, 10 agents", workers: 10, ..AGENTS },
    Scene { name: "micro, 20 agents", workers: 20, ..AGENTS },
    Scene { name: "micro, 50 agents", workers: 50, load: Load::Agents(6), ..AGENTS },
    Scene { name: "replay, 11 agents", limits: &[(Window, 60, MINUTE, None)], workers: 11, trip: (60, 180), errors: 130, at_once: 5, ..AGENTS },
    Scene { name: "stress, 20 agents", limits: &[(Window, 20, MINUTE, None)], workers: 20, load: Load::Agents(10), trip: (150, 250), slow: 100, errors: 150, at_once: 3, ..AGENTS },
    Scene { name: "latency spikes, 10 agents", limits: &[(Window, 60, MINUTE, None)], workers: 10, load: Load::Agents(10), slow: 200, ..AGENTS },
    Scene { name: "jobs each 20 s", load: Load::Each(500, 20), ..JOBS },
    Scene { name: "jobs each 60 s", load: Load::Each(500, 60), ..JOBS },
    Scene { name: "500s for 20 s", down: Some((80, 100, Down::Errors)), ..OUTAGE },
    Scene { name: "refused for 20 s", down: Some((80, 100, Down::Refuses)), ..OUTAGE },
    Scene { name: "1 a minute, bucket of 20, 100 at once", limits: &[(Refill, 1, MINUTE, Some(20))], load: Load::Each(100, 100_000), seconds: (0, 99_000), show: Show::Ends, ..USUAL },
    Scene { name: "3 a minute, 100 at once", limits: &[(Refill, 3, MINUTE, Some(3))], load: Load::Each(100, 100_000), seconds: (0, 99_000), show: Show::Ends, ..USUAL },
    Scene { name: "30 each 300 s, windows", limits: &[(Window, 40, MINUTE, None)], ..BURSTS },
    Scene { name: "30 each 300 s, log", limits: &[(Sliding, 40, MINUTE, None)], ..BURSTS },
    Scene { name: "45 each 300 s, windows", limits: &[(Window, 40, MINUTE, None)], workers: 45, load: Load::Each(45, 300), ..BURSTS },
    Scene { name: "45 each 300 s, log", limits: &[(Sliding, 40, MINUTE, None)], workers: 45, load: Load::Each(45, 300), ..BURSTS },
    Scene { name: "10 clients, 100/s", limits: &[(Refill, 100, 1, Some(17))], clients: 10, workers: 4, trip: (100, 300), seconds: (120, 1_020), show: Show::Jain, ..USUAL },
    Scene { name: "100 clients, 200 a minute", limits: &[(Refill, 200, MINUTE, Some(33))], clients: 100, workers: 2, trip: (100, 300), show: Show::Jain, ..USUAL },
    Scene { name: "Nall's race", limits: &[(Refill, 3_000, MINUTE, Some(50))], changes: &[(420, 50), (480, 100)], clients: 2, workers: 64, load: Load::Random(2_000), trip: (40, 60), attempts: 4, seconds: (0, 900), show: Show::Race, ..USUAL },
    Scene { name: "100/s, throttled for 120 s", limits: &[(Refill, 100, 1, Some(17))], trip: (100, 100), down: Some((600, 720, Down::Throttles)), seconds: (600, 1_800), ..USUAL },
    Scene { name: "40 in 60 s, throttled for 120 s", limits: &[(Window, 40, MINUTE, None)], down: Some((600, 720, Down::Throttles)), seconds: (600, 1_800), ..USUAL },
    Scene { name: "7 in 30 s", limits: &[(Window, 7, 30, None)], trip: (300, 1_000), workers: 32, ..USUAL },
    Scene { name: "15 in 60 s, from first use", limits: &[(FirstUse, 15, MINUTE, None)], trip: (500, 1_000), ..USUAL },
    Scene { name: "100 in 10 s", limits: &[(Window, 100, 10, None)], trip: (100, 300), ..USUAL },
    Scene { name: "250 in 300 s, log", limits: &[(Sliding, 250, 300, None)], trip: (200, 600), ..USUAL },
    Scene { name: "40 in 60 s, 1 to 8 s away", limits: &[(Window, 40, MINUTE, None)], trip: (1_000, 8_000), ..USUAL },
    Scene { name: "40 in 60 s, a fifth fail", limits: &[(Window, 40, MINUTE, None)], errors: 200, ..USUAL },
    // Not looked at while the constants were chosen.
    Scene { name: "25 in 1 s", limits: &[(Window, 25, 1, None)], trip: (20, 60), ..USUAL },
    Scene { name: "600 in 600 s, steady", limits: &[(Refill, 600, 600, Some(100))], trip: (100, 1_000), ..USUAL },
    Scene { name: "3 in 10 s, from first use", limits: &[(FirstUse, 3, 10, None)], trip: (100, 400), ..USUAL },
    Scene { name: "2 in 60 s", limits: &[(Window, 2, MINUTE, None)], trip: (500, 1_000), ..USUAL },
    Scene { name: "1 in 60 s, steady", limits: &[(Refill, 1, MINUTE, Some(1))], trip: (500, 1_000), ..USUAL },
    Scene { name: "2,000 a day", limits: &[(Window, 2_000, DAY, None)], trip: (500, 1_000), seconds: (2 * DAY, 12 * DAY), ..USUAL },
    Scene { name: "30 in 60 s, log, 1 to 6 s away", limits: &[(Sliding, 30, MINUTE, None)], trip: (1_000, 6_000), ..USUAL },
    Scene { name: "180 in 900 s", limits: &[(Window, 180, 900, None)], trip: (200, 500), seconds: (3_600, 39_600), ..USUAL },
    Scene { name: "300/s, steady", limits: &[(Refill, 300, 1, Some(50))], workers: 32, trip: (30, 50), seconds: (120, 1_020), ..USUAL },
    Scene { name: "60 a minute and 1,000 an hour", limits: &[(Window, 60, MINUTE, None), (Window, 1_000, HOUR, None)], seconds: (3 * HOUR, 24 * HOUR), ..USUAL },
    Scene { name: "20 in 1 s, then 80, then 20", limits: &[(Window, 80, 1, None)], changes: &[(0, 25), (600, 100), (1_200, 25)], workers: 64, trip: (100, 150), seconds: (120, 1_800), ..USUAL },
    Scene { name: "200 in 60 s, log, then 50, then 200", limits: &[(Sliding, 200, MINUTE, None)], changes: &[(1_800, 25), (3_600, 100)], trip: (300, 450), ..USUAL },
    Scene { name: "3 clients, 30 in 60 s, log", limits: &[(Sliding, 30, MINUTE, None)], clients: 3, workers: 8, trip: (100, 400), show: Show::Jain, ..USUAL },
    Scene { name: "6 clients, 20/s", limits: &[(Refill, 20, 1, Some(3))], clients: 6, workers: 8, trip: (100, 400), show: Show::Jain, ..USUAL },
    Scene { name: "40 clients, 400 in 60 s, from first use", limits: &[(FirstUse, 400, MINUTE, None)], clients: 40, workers: 8, trip: (100, 400), show: Show::Jain, ..USUAL },
    Scene { name: "50 clients, a minute", limits: &[(Steps, 40, MINUTE, Some(50))], clients: 50, ..SHARED },
    Scene { name: "200 clients, a minute", limits: &[(Steps, 40, MINUTE, Some(50))], clients: 200, ..SHARED },
];

/// The limits, as a service keeps them.
#[derive(Debug)]
struct Service {
    counts: Vec<Policer>,
    in_flight: u32,
}

impl Scene {
    fn limit_at(&self, index: usize, now: u64) -> u64 {
        let limit = self.limits[index].1;
        let past = self.changes.iter().rev().find(|(at, _)| at * SECOND <= now);
        match past {
            Some((_, percent)) if index == 0 => limit * percent / 100,
            _ => limit,
        }
    }

    fn down_at(&self, now: u64) -> Option<Down> {
        let (from, to, what) = self.down?;
        (from * SECOND <= now && now < to * SECOND).then_some(what)
    }

    /// Returns what is allowed in the seconds that are counted, by the lowest of the limits.
    fn allowed(&self) -> f64 {
        let (from, to) = self.seconds;
        let each = (from..to).map(|second| {
            let limits = self.limits.iter().enumerate();
            let rates = limits.map(|(index, limit)| {
                number(self.limit_at(index, second * SECOND)) / number(limit.2)
            });
            if self.down_at(second * SECOND).is_some() {
                return 0.0;
            }
            let wanted = match self.load {
                Load::Random(a_minute) => number(a_minute * u64::from(self.clients)) / 60.0,
                _ => f64::INFINITY,
            };
            rates.fold(wanted, f64::min)
        });
        each.sum()
    }
}

impl Service {
    fn new(scene: &Scene) -> Self {
        let counts = scene.limits.iter().map(|(counting, limit, window, burst)| {
            Policer::new(*counting, window * SECOND, *burst, burst.unwrap_or(*limit))
        });
        Self {
            counts: counts.collect(),
            in_flight: 0,
        }
    }

    /// Answers a request that comes at `now`.
    fn answer(&mut self, scene: &Scene, now: u64, rng: &mut Rng) -> Reply {
        match scene.down_at(now) {
            Some(Down::Throttles) => return Reply::Throttled(None),
            Some(_) => return Reply::Failed,
            None => {}
        }
        let mut wait = 0;
        for (index, count) in self.counts.iter_mut().enumerate() {
            let limit = scene.limit_at(index, now);
            if count.look(now, limit) == 0 {
                wait = wait.max(count.until(1, limit));
            }
        }
        let admitted = wait == 0 && self.in_flight <= scene.at_once;
        if admitted || scene.strict {
            self.counts.iter_mut().for_each(|count| count.take(1));
        }
        match scene.hint {
            _ if admitted && rng.u64(0..1_000) < scene.errors => Reply::Failed,
            _ if admitted => Reply::Done,
            Hint::None => Reply::Throttled(None),
            Hint::Exact => Reply::Throttled(Some(wait)),
            Hint::Second => Reply::Throttled(Some(SECOND)),
        }
    }
}

/// What is counted in a run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    sent: u64,
    /// Accepted, of each client and in each second; and refused.
    parts: Vec<u64>,
    seconds: Vec<u64>,
    refused: Vec<u64>,
    sends: Vec<u64>,
    waits: Vec<u64>,
    end: u64,
    /// Given up, by the number of its job.
    lost: Vec<u64>,
    dead: u64,
}

/// A client: its limiter, its retry quota, and what its workers have to do.
pub(crate) struct Client {
    limiter: Box<dyn Limiter>,
    quota: RetryQuota,
    list: core::cell::RefCell<VecDeque<u64>>,
}

type World = crate::world::World<Scene, Client, Service, Tally>;

/// The limiters of all clients of a scene.
type Makes = fn(u32) -> Vec<Box<dyn Limiter>>;

/// Plays a scene, and returns what happened.
fn play(scene: &Scene, makes: Makes, seed: u64) -> Tally {
    let mut rng = Rng::with_seed(seed);
    let clients: Vec<_> = makes(scene.clients)
        .into_iter()
        .map(|limiter| Client {
            limiter,
            quota: RetryQuota::new(500),
            list: core::cell::RefCell::new(list(scene, &mut rng)),
        })
        .collect();
    let end = scene.seconds.1 * SECOND;
    let tally = Tally {
        parts: vec![0; scene.clients as usize],
        ..Tally::default()
    };
    World::play(
        (*scene, clients.into_iter()),
        (Service::new(scene), tally),
        (seed, end),
        World::enter,
    )
}

/// Returns when a client's operations come.
fn list(scene: &Scene, rng: &mut Rng) -> VecDeque<u64> {
    let end = scene.seconds.1;
    let mut list: Vec<u64> = match scene.load {
        Load::Busy | Load::Agents(_) => Vec::new(),
        Load::Within(count, seconds) => (0..count).map(|_| rng.u64(0..seconds * SECOND)).collect(),
        Load::Each(count, seconds) => (0..end / seconds)
            .chain(Some(0).filter(|_| seconds > end))
            .flat_map(|turn| (0..count).map(move |_| turn * seconds * SECOND))
            .collect(),
        Load::Random(a_minute) => (0..a_minute * end / 60)
            .map(|_| rng.u64(0..end * SECOND))
            .collect(),
    };
    list.sort_unstable();
    list.into()
}

impl World {
    fn enter(self: &Rc<Self>) {
        let spread = self.scene.trip.0 * MILLI;
        for client in 0..self.scene.clients {
            for _ in 0..self.scene.workers {
                let at = if self.scene.load == Load::Busy {
                    self.draw(0..=spread)
                } else {
                    0
                };
                time::spawn_at(at, Rc::clone(self).labour(client as usize));
            }
        }
    }

    async fn labour(self: Rc<Self>, client: usize) {
        let turns = match self.scene.load {
            Load::Agents(turns) => turns,
            _ => u64::MAX,
        };
        for _ in 0..turns {
            let mut wanted = now();
            if !matches!(self.scene.load, Load::Busy | Load::Agents(_)) {
                let Some(next) = self.limiters[client].list.borrow_mut().pop_front() else {
                    return;
                };
                wanted = next;
            }
            time::sleep_until(wanted.max(now())).await;
            if self.attempt(client).await {
                let mut tally = self.tally.borrow_mut();
                tally.end = now();
                if now() >= self.scene.seconds.0 * SECOND {
                    tally.waits.push(now() - wanted);
                }
            } else if matches!(self.scene.load, Load::Agents(_)) {
                self.tally.borrow_mut().dead += 1;
                return;
            } else if let Load::Each(_, seconds) = self.scene.load {
                add(
                    &mut self.tally.borrow_mut().lost,
                    wanted / (seconds * SECOND),
                );
            }
            if matches!(self.scene.load, Load::Agents(_)) {
                time::sleep_until(now() + 50 * MILLI).await;
            }
        }
    }

    /// Carries out an operation, and returns whether it succeeded.
    async fn attempt(&self, client: usize) -> bool {
        let Client { limiter, quota, .. } = &self.limiters[client];
        let want = Want {
            weight: 1,
            class: Class::Foreground,
        };
        let (mut attempt, mut paid) = (0, None);
        loop {
            let sleep =
                async |wait: u64| time::sleep_until(now().saturating_add(wait.max(1))).await;
            let permit = turn(&**limiter, want, sleep).await;
            attempt += 1;
            let reply = self.request(client).await;
            limiter.record(now(), permit, reply, &LimitReports::new());
            let (cost, first) = match reply {
                Reply::Done => {
                    match paid.take() {
                        Some(paid) => quota.release(paid),
                        None => quota.credit(1),
                    }
                    return true;
                }
                Reply::Throttled(_) => (5, SECOND),
                Reply::Failed => (14, 50 * MILLI),
            };
            if self.scene.attempts > 0 {
                paid = quota.try_acquire(cost);
                if paid.is_none() || attempt >= self.scene.attempts {
                    return false;
                }
            }
            if limiter.retry() == Retry::AtOnce {
                continue;
            }
            let mut sleep = self.draw(0..(first << attempt.min(6)).min(20 * SECOND));
            if let Reply::Throttled(Some(hint)) = reply {
                sleep = sleep.max(hint);
            }
            time::sleep_until(now() + sleep).await;
        }
    }

    /// Sends a request, and returns what the service answers.
    async fn request(&self, client: usize) -> Reply {
        let scene = &self.scene;
        add(&mut self.tally.borrow_mut().sends, now() / SECOND);
        let slow = if self.draw(0..1_000) < scene.slow {
            5
        } else {
            1
        };
        let (mut least, mut most) = (scene.trip.0 * MILLI * slow, scene.trip.1 * MILLI * slow);
        if scene.down_at(now()) == Some(Down::Refuses) {
            (least, most) = (MILLI, MILLI);
        }
        let way = || self.draw(least / 2..=most / 2);
        self.service.borrow_mut().in_flight += 1;
        time::sleep_until(now() + way()).await;
        let reply = self
            .service
            .borrow_mut()
            .answer(scene, now(), &mut self.rng.borrow_mut());
        if now() >= scene.seconds.0 * SECOND {
            let tally = &mut *self.tally.borrow_mut();
            tally.sent += 1;
            if matches!(reply, Reply::Throttled(_)) {
                add(&mut tally.refused, now() / SECOND);
            } else if scene.down_at(now()).is_none() {
                tally.parts[client] += 1;
                add(&mut tally.seconds, now() / SECOND);
            }
        }
        time::sleep_until(now() + way()).await;
        self.service.borrow_mut().in_flight -= 1;
        reply
    }
}

fn index(second: u64) -> usize {
    usize::try_from(second).expect("a run is short")
}

/// Counts one more of this number.
fn add(counts: &mut Vec<u64>, number: u64) {
    let index = index(number);
    if counts.len() <= index {
        counts.resize(index + 1, 0);
    }
    counts[index] += 1;
}

impl Tally {
    fn done(&self) -> u64 {
        self.parts.iter().sum()
    }

    fn refused(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// Returns the figures of a scene, at most three.
    fn figures(&mut self, scene: &Scene) -> Vec<f64> {
        let throttled = 100.0 * share(self.refused(), self.sent);
        let used = number(self.done()) / scene.allowed();
        let end = number(self.end / MILLI) / 1e3;
        match scene.show {
            Show::Used => vec![used, throttled],
            Show::Ends => vec![share(self.refused(), self.done()), end],
            Show::Dead => vec![number(self.dead), end],
            Show::Lost => vec![number(self.lost.iter().skip(1).copied().max().unwrap_or(0))],
            Show::Jain => vec![jain(&self.parts), throttled],
            Show::Race => {
                let back = scene.changes.last().map_or(0, |change| change.0);
                let goal = scene.limits[0].1 * 9 / 10 / scene.limits[0].2;
                let later = (back..scene.seconds.1).find(|at| {
                    let count = self.seconds.get(index(*at));
                    count.is_some_and(|count| *count >= goal)
                });
                vec![
                    used,
                    number(self.refused()),
                    number(later.unwrap_or(scene.seconds.1) - back),
                ]
            }
            Show::Peak => {
                let (from, to, _) = scene.down.expect("a scene with an outage");
                let sends = self.sends.iter().take(index(to)).skip(index(from));
                vec![number(sends.copied().max().unwrap_or(0)), used]
            }
            Show::Waits => {
                self.waits.sort_unstable();
                let at = |permille: usize| {
                    self.waits
                        .get(self.waits.len() * permille / 1_000)
                        .map_or(0.0, |wait| number(wait / MILLI) / 1e3)
                };
                vec![at(500), at(990), throttled]
            }
        }
    }
}

impl Show {
    fn cell(self, figures: &[f64]) -> String {
        let words = figures
            .iter()
            .enumerate()
            .map(|(index, figure)| match (self, index) {
                (Self::Used | Self::Jain | Self::Race, 0) | (Self::Peak, 1) => {
                    format!("{figure:.3}")
                }
                (Self::Ends, 0) => format!("{figure:.2}"),
                (Self::Used | Self::Jain, 1) | (Self::Waits, _) => format!("{figure:.1}"),
                _ => format!("{figure:.0}"),
            });
        words.collect::<Vec<_>>().join(" / ")
    }
}

fn each(clients: u32, make: impl Fn() -> Box<dyn Limiter>) -> Vec<Box<dyn Limiter>> {
    (0..clients).map(|_| make()).collect()
}

/// The limiters, in the order of the table.
#[rustfmt::skip]
pub(crate) const LAWS: &[(&str, Makes)] = &[
    ("backoff only", |n| each(n, || Box::new(Unlimited(Retry::Backoff)))),
    ("Aws", |n| each(n, || crate::laws::sdk_alone())),
    ("Paced", |n| each(n, || crate::laws::for_hours(false))),
    ("Paced, bulk", |n| each(n, || crate::laws::for_hours(true))),
    ("cycles alone", |n| each(n, || Box::new(Cycles::<Third>::default()))),
    ("cycles, half saved up", third::<{ Part::Saved as u8 }>),
    ("ATB", |n| each(n, || Box::new(Atb::default()))),
    ("AATB", |n| {
        let all = Telemetry::new(n);
        (0..n as usize).map(|client| Box::new(Aatb::new(client, Rc::clone(&all))) as Box<dyn Limiter>).collect()
    }),
    ("Effect", |n| each(n, || Box::new(Learner::default()))),
    ("Nall", |n| each(n, || Box::new(Nall::default()))),
];

fn third<const WITHOUT: u8>(clients: u32) -> Vec<Box<dyn Limiter>> {
    each(clients, || Box::new(Cycles::<Third<WITHOUT>>::default()))
}

/// Cycles alone, without a part: only if asked for.
#[rustfmt::skip]
const ABLATION: &[(&str, Makes)] = &[
    ("without idle", third::<{ Part::Idle as u8 }>),
    ("without errors", third::<{ Part::Errors as u8 }>),
    ("without memory", third::<{ Part::Memory as u8 }>),
    ("without half", third::<{ Part::Half as u8 }>),
    ("without leap", third::<{ Part::Leap as u8 }>),
    ("without line", third::<{ Part::Line as u8 }>),
    ("without share", third::<{ Part::Share as u8 }>),
    ("without flight", third::<{ Part::Flight as u8 }>),
    ("without count", third::<{ Part::Count as u8 }>),
    ("without knocks", third::<{ Part::Knocks as u8 }>),
    ("without late", third::<{ Part::Late as u8 }>),
    ("without own", third::<{ Part::Own as u8 }>),
    ("without few", third::<{ Part::Few as u8 }>),
    ("without dark", third::<{ Part::Dark as u8 }>),
];

/// Plays what was asked for, and returns the table: a row for each scene. Limits that count minutes
/// are drawn, too, if charts were asked for.
pub(crate) fn compare(options: &Options) -> io::Result<Vec<Vec<String>>> {
    let named = |law: &&(&str, Makes)| options.names(law.0);
    let parts = ABLATION.iter().filter(|_| options.chooses()).filter(named);
    let laws: Vec<_> = LAWS.iter().filter(named).chain(parts).collect();
    let heads = laws.iter().map(|law| law.0.to_owned());
    let mut table = vec![
        ["scene".to_owned()]
            .into_iter()
            .chain(heads)
            .collect::<Vec<_>>(),
    ];
    for scene in SCENES.iter().filter(|scene| options.plays(scene.name)) {
        let cells = laws.iter().map(|law| {
            let seeds = options.seed..options.seed + options.seeds;
            let runs: Vec<_> = seeds
                .map(|seed| play(scene, law.1, seed).figures(scene))
                .collect();
            let medians = (0..runs[0].len()).map(|index| {
                let mut of: Vec<_> = runs.iter().map(|run| run[index]).collect();
                of.sort_by(f64::total_cmp);
                of[of.len() / 2]
            });
            scene.show.cell(&medians.collect::<Vec<_>>())
        });
        let row: Vec<_> = [scene.name.to_owned()].into_iter().chain(cells).collect();
        table.push(row);
        if let Some(folder) = &options.svg
            && let Some(chart) = minutes::chart(scene, &laws, options.seed)
        {
            let name = scene.name.replace(", ", "-").replace(' ', "-");
            run::write(&folder.join(format!("{name}.svg")), &chart)?;
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::{Counting, LAWS, Load, MINUTE, SCENES, Scene, Service, USUAL, list, play};
    use crate::limiter::Reply;
    use crate::time::{MILLI, SECOND};
    use fastrand::Rng;

    const SHORT: Scene = Scene {
        limits: &[
            (Counting::Window, 10, 1, None),
            (Counting::Window, 12, MINUTE, None),
        ],
        seconds: (0, MINUTE),
        ..USUAL
    };

    fn replies<const N: usize>(scene: &Scene, millis: [u64; N]) -> [Reply; N] {
        let (mut service, mut rng) = (Service::new(scene), Rng::with_seed(1));
        millis.map(|at| service.answer(scene, at * MILLI, &mut rng))
    }

    fn count(replies: &[Reply]) -> usize {
        replies
            .iter()
            .filter(|reply| **reply == Reply::Done)
            .count()
    }

    #[test]
    fn of_two_limits_the_lower_binds_and_a_refusal_uses_up_neither() {
        // Ten in the first second, then two: what the first limit refused is not missing in the second.
        let done = |at: u64| {
            replies(
                &SHORT,
                core::array::from_fn::<_, 40, _>(|index| if index < 20 { 0 } else { at }),
            )
        };
        assert_eq!(count(&done(1_000)), 12);
        assert_eq!(count(&done(60_000)), 20);
    }

    #[test]
    fn a_strict_limit_counts_what_it_refuses() {
        let scene = Scene {
            strict: true,
            ..SHORT
        };
        assert_eq!(
            count(&replies(
                &scene,
                core::array::from_fn::<_, 40, _>(|index| if index < 20 { 0 } else { 1_000 })
            )),
            10
        );
    }

    #[test]
    fn a_limit_that_changes_is_the_new_one_from_then_on() {
        let limits = &[(Counting::Window, 4, 1, None)];
        let scene = Scene {
            limits,
            changes: &[(10, 50), (20, 200)],
            ..SHORT
        };
        let [before, after, later] = [0, 10_000, 20_000].map(|at| count(&replies(&scene, [at; 9])));
        assert_eq!([before, after, later], [4, 2, 8]);
        // 10 s of 4, 10 of 2 and 40 of 8.
        assert!((scene.allowed() - 380.0).abs() < 1e-9);
    }

    #[test]
    fn hints_say_when_one_is_admitted() {
        let hints = |hint| {
            replies(
                &Scene {
                    limits: &[(Counting::Window, 1, MINUTE, None)],
                    hint,
                    ..SHORT
                },
                [15_000, 17_500],
            )
        };
        assert_eq!(
            hints(super::Hint::Exact)[1],
            Reply::Throttled(Some(42_500 * MILLI))
        );
        assert_eq!(
            hints(super::Hint::Second)[1],
            Reply::Throttled(Some(SECOND))
        );
    }

    #[test]
    fn jobs_come_at_once_and_agents_die_of_their_first_failure() {
        let scene = Scene {
            load: Load::Each(3, 20),
            ..SHORT
        };
        let at: Vec<_> = list(&scene, &mut Rng::with_seed(1))
            .into_iter()
            .map(|at| at / SECOND)
            .collect();
        assert_eq!(at, [0, 0, 0, 20, 20, 20, 40, 40, 40]);
        let scene = Scene {
            load: Load::Agents(1),
            errors: 1_000,
            attempts: 4,
            workers: 5,
            ..SHORT
        };
        assert_eq!(play(&scene, LAWS[0].1, 1).dead, 5);
    }

    #[test]
    fn the_same_seed_gives_the_same_figures() {
        for (name, makes) in LAWS {
            let scene = Scene {
                seconds: (0, 200),
                ..SCENES[0]
            };
            let run = || format!("{:?}", play(&scene, *makes, 1));
            assert!(run() == run(), "{name}");
        }
    }
}
