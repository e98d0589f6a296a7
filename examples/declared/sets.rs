//! Scenes of several limits at once: a service that counts requests and tokens, as those of
//! language models do, and clients that take both together and settle the true cost.

use alloc::{rc::Rc, sync::Arc};
use core::{cell::RefCell, time::Duration};

use fastrand::Rng;
use paceline::{
    Outcome, SendRate, SendSet, Timestamp,
    law::{DeclaredSettings, Dimension, LimitReports},
    set::SetPermit,
};

use crate::policer::{Counting, Policer};
use crate::time::{self, SECOND, now};

/// The limits a minute.
const REQUESTS: u64 = 600;
const TOKENS: u64 = 100_000;
const MINUTE: u64 = 60 * SECOND;
/// How long a request is on its way to the service.
const WAY: u64 = SECOND / 20;
/// How often a waiter looks that is not woken.
const LOOK: u64 = SECOND / 20;
/// The workers of each client.
const WORKERS: usize = 32;
/// How often an operation is sent before it fails.
const SENDS: u32 = 5;

/// What is asked of clients and service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetScene {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    clients: usize,
    /// How long the requests are small, and then large, in turn; 0 for large ones only.
    phase: u64,
    /// How many times too small or too large an estimate is.
    wrong: u64,
}

#[rustfmt::skip]
pub(crate) const SET_SCENES: &[SetScene] = &[
    SetScene { name: "set-turn", what: "requests bind, then tokens, in turn", clients: 1, phase: 5 * MINUTE, wrong: 1 },
    SetScene { name: "set-wrong", what: "costs three times the estimate, or a third", clients: 1, phase: 0, wrong: 3 },
    SetScene { name: "set-four", what: "four clients, costs wrong likewise", clients: 4, phase: 0, wrong: 3 },
];

const END: u64 = 20 * MINUTE;
const STEADY: u64 = 2 * MINUTE;

/// What came of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SetTally {
    /// What was used of the limit that binds at the time, in limits, and how many there were.
    used: f64,
    offered: f64,
    sent: u64,
    throttled: u64,
    pub(crate) failed: u64,
}

impl SetTally {
    pub(crate) fn used(&self) -> f64 {
        self.used / self.offered
    }

    pub(crate) fn throttled(&self) -> f64 {
        self.throttled as f64 / self.sent.max(1) as f64
    }
}

type Set = SendSet<Arc<SendRate>, 2>;

/// A service that charges the estimate when a request comes, and its true cost when it ends.
struct Service {
    requests: Policer,
    tokens: Policer,
}

impl Service {
    fn new() -> Self {
        let bucket = |limit| Policer::new(Counting::Refill, MINUTE, None, limit);
        Self {
            requests: bucket(REQUESTS),
            tokens: bucket(TOKENS),
        }
    }

    /// Takes a request in, or returns when to come back and what is left.
    fn arrive(&mut self, now: u64, estimate: u64) -> Option<(u64, LimitReports)> {
        self.requests.look(now, REQUESTS);
        self.tokens.look(now, TOKENS);
        if self.requests.left(REQUESTS) >= 1 && self.tokens.left(TOKENS) >= estimate {
            self.requests.take(1_u8);
            self.tokens.take(estimate);
            return None;
        }
        let waits = [
            self.requests.until(1, REQUESTS),
            self.tokens.until(estimate, TOKENS),
        ];
        let hint = waits[0].max(waits[1]).div_ceil(SECOND).max(1) * SECOND;
        Some((hint, self.reports()))
    }

    /// Ends a request, and returns what is left.
    fn end(&mut self, now: u64, flight: &Flight) -> LimitReports {
        self.requests.look(now, REQUESTS);
        self.tokens.look(now, TOKENS);
        self.tokens
            .take(i128::from(flight.cost) - i128::from(flight.estimate));
        self.reports()
    }

    fn reports(&self) -> LimitReports {
        let report =
            |policer: &Policer, limit, dimension| policer.report(limit).dimension(dimension);
        let mut reports = LimitReports::from(report(&self.requests, REQUESTS, Dimension::Requests));
        reports.push(report(&self.tokens, TOKENS, Dimension::Tokens));
        reports
    }
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    permit: SetPermit<2>,
    estimate: u64,
    cost: u64,
}

struct World {
    scene: SetScene,
    sets: Vec<Set>,
    service: RefCell<Service>,
    rng: RefCell<Rng>,
    tally: RefCell<SetTally>,
}

/// Plays a scene.
pub(crate) fn play_set(scene: &SetScene, seed: u64) -> SetTally {
    let rate = |dimension| {
        let settings = DeclaredSettings::new().dimension(dimension);
        Arc::new(SendRate::declared(settings, Timestamp::ZERO))
    };
    let set = |_| SendSet::new([Dimension::Requests, Dimension::Tokens].map(rate));
    let world = Rc::new(World {
        scene: *scene,
        sets: (0..scene.clients).map(set).collect(),
        service: RefCell::new(Service::new()),
        rng: RefCell::new(Rng::with_seed(seed)),
        tally: RefCell::default(),
    });
    time::run(seed, END, || {
        for worker in 0..scene.clients * WORKERS {
            let begin = world.rng.borrow_mut().u64(0..SECOND);
            let world = Rc::clone(&world);
            time::spawn_at(begin, async move {
                loop {
                    world.operate(&world.sets[worker % world.sets.len()]).await;
                }
            });
        }
    });
    let mut tally = world.tally.take();
    tally.offered = ((END - STEADY) / MINUTE) as f64;
    tally
}

impl World {
    /// Sends one request until it is done, or often enough.
    async fn operate(&self, set: &Set) {
        let (estimate, cost) = request(&self.scene, now(), &mut self.rng.borrow_mut());
        for sends in 1..=SENDS {
            let permit = turn(set, estimate).await;
            let flight = Flight {
                permit,
                estimate,
                cost,
            };
            time::sleep_until(now() + WAY).await;
            let throttled = self.service.borrow_mut().arrive(now(), estimate);
            if now() >= STEADY {
                let mut tally = self.tally.borrow_mut();
                tally.sent += 1;
                tally.throttled += u64::from(throttled.is_some());
            }
            let Some((hint, reports)) = throttled else {
                let took = self.rng.borrow_mut().u64(SECOND / 2..2 * SECOND);
                time::sleep_until(now() + took).await;
                self.end(set, &flight);
                return time::sleep_until(now()).await;
            };
            time::sleep_until(now() + WAY).await;
            refused(set, &flight, hint, &reports);
            self.tally.borrow_mut().failed += u64::from(sends == SENDS);
            time::sleep_until(now() + hint).await;
        }
    }

    /// Takes in the end of a request: what is left, its true cost, its outcome.
    fn end(&self, set: &Set, flight: &Flight) {
        let (at, costs) = (Timestamp::from_nanos(now()), [1, flight.cost as u32]);
        let reports = self.service.borrow_mut().end(now(), flight);
        set.observe(at, &flight.permit, &reports);
        let settled = set.settle(at, flight.permit, &costs);
        settled.expect("there is room");
        set.record(at, &flight.permit.costing(&costs), Outcome::NotThrottled);
        if now() >= STEADY {
            self.tally.borrow_mut().used += if binding(&self.scene, now()) == 0 {
                1.0 / REQUESTS as f64
            } else {
                flight.cost as f64 / TOKENS as f64
            };
        }
    }
}

/// Waits for the turn of a request.
async fn turn(set: &Set, estimate: u64) -> SetPermit<2> {
    let at = || Timestamp::from_nanos(now());
    let place = set.reserve(at(), &[1, estimate as u32]);
    let mut place = place.expect("in range");
    loop {
        match place.claim(at()) {
            Ok(permit) => return permit,
            Err(binding) => {
                let wait = u64::try_from(binding.wait.as_nanos()).unwrap_or(u64::MAX);
                time::sleep_until(now() + wait.min(LOOK)).await;
            }
        }
    }
}

/// Takes in a throttle: what is left, that it cost nothing, its outcome.
fn refused(set: &Set, flight: &Flight, hint: u64, reports: &LimitReports) {
    let at = Timestamp::from_nanos(now());
    set.observe(at, &flight.permit, reports);
    set.settle(at, flight.permit, &[0, 0]).expect("a credit");
    let outcome = Outcome::ThrottledFor(Duration::from_nanos(hint));
    set.record(at, &flight.permit, outcome);
}

/// Returns the limit that binds at `now`.
const fn binding(scene: &SetScene, now: u64) -> usize {
    if scene.phase > 0 && (now / scene.phase) % 2 == 0 {
        0
    } else {
        1
    }
}

/// Returns the estimate of a request, and its true cost.
fn request(scene: &SetScene, now: u64, rng: &mut Rng) -> (u64, u64) {
    let estimate = if binding(scene, now) == 0 {
        rng.u64(20..80)
    } else {
        rng.u64(300..700)
    };
    let cost = if rng.bool() {
        estimate * scene.wrong
    } else {
        estimate / scene.wrong
    };
    (estimate, cost)
}
