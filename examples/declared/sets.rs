//! Scenes of several limits at once: a service that counts requests and tokens, as those of
//! language models do, and clients that take both together and settle the true cost.

use alloc::collections::BTreeMap;
use core::time::Duration;

use fastrand::Rng;
use paceline::{
    Outcome, SendRate, SendSet, Timestamp,
    law::{DeclaredSettings, Dimension, LimitReport, LimitReports, Reset},
    set::{SetPermit, SetReservation},
};

use crate::policer::{Counting, Policer};
use crate::scene::SECOND;

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

type Set<'a> = SendSet<&'a SendRate, 2>;

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
    fn arrive(&mut self, now: u64, estimate: u64) -> Option<(u64, Box<LimitReports>)> {
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
        Some((hint, Box::new(self.reports())))
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
        let report = |policer: &Policer, limit, dimension| {
            LimitReport::new(policer.left(limit))
                .dimension(dimension)
                .limit(limit)
                .window(Duration::from_nanos(MINUTE))
                .reset(Reset::In(Duration::from_nanos(policer.until(limit, limit))))
                .refills(true)
        };
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

/// What a worker does next.
enum Next {
    Ask,
    Arrive(Flight),
    /// When to come back, and what is left, if it was throttled.
    Return(Flight, Option<(u64, Box<LimitReports>)>),
}

struct Worker<'a> {
    client: usize,
    place: Option<SetReservation<'a, 2>>,
    /// The estimate and the true cost of its request, and how often it was sent.
    request: (u64, u64, u32),
}

/// Plays a scene.
pub(crate) fn play_set(scene: &SetScene, seed: u64) -> SetTally {
    let mut rng = Rng::with_seed(seed);
    let rate = |dimension| {
        let settings = DeclaredSettings::new().dimension(dimension);
        SendRate::declared(settings, Timestamp::ZERO)
    };
    let rates: Vec<_> = (0..scene.clients)
        .map(|_| [rate(Dimension::Requests), rate(Dimension::Tokens)])
        .collect();
    let sets: Vec<_> = rates
        .iter()
        .map(|rates| SendSet::new(rates.each_ref()))
        .collect();
    let mut service = Service::new();
    let mut workers: Vec<_> = (0..scene.clients * WORKERS)
        .map(|worker| Worker {
            client: worker % scene.clients,
            place: None,
            request: (0, 0, 0),
        })
        .collect();
    let mut tally = SetTally::default();
    // When, and the number of the event: in order, whatever the seed.
    let mut events = BTreeMap::new();
    for worker in 0..workers.len() {
        events.insert((rng.u64(0..SECOND), worker as u64), (worker, Next::Ask));
    }
    let mut number = workers.len() as u64;
    while let Some(((now, _), (id, next))) = events.pop_first() {
        if now >= END {
            break;
        }
        let worker = &mut workers[id];
        let (set, at) = (&sets[worker.client], Timestamp::from_nanos(now));
        let (when, next) = match next {
            Next::Ask => {
                if worker.request.2 == 0 {
                    worker.request = request(scene, now, &mut rng);
                }
                let (estimate, cost, sends) = worker.request;
                if worker.place.is_none() {
                    let place = set.reserve(at, &[1, estimate as u32]);
                    worker.place = Some(place.expect("in range"));
                }
                match worker.place.as_mut().expect("it is there").claim(at) {
                    Ok(permit) => {
                        (worker.place, worker.request.2) = (None, sends + 1);
                        let flight = Flight {
                            permit,
                            estimate,
                            cost,
                        };
                        (now + WAY, Next::Arrive(flight))
                    }
                    Err(binding) => {
                        let wait = u64::try_from(binding.wait.as_nanos()).unwrap_or(u64::MAX);
                        (now + wait.min(LOOK), Next::Ask)
                    }
                }
            }
            Next::Arrive(flight) => {
                let throttled = service.arrive(now, flight.estimate);
                if now >= STEADY {
                    tally.sent += 1;
                    tally.throttled += u64::from(throttled.is_some());
                }
                let took = match throttled {
                    None => rng.u64(SECOND / 2..2 * SECOND),
                    Some(_) => WAY,
                };
                (now + took, Next::Return(flight, throttled))
            }
            Next::Return(flight, None) => {
                let reports = service.end(now, &flight);
                answered(set, at, &flight, &reports);
                if now >= STEADY {
                    tally.used += if binding(scene, now) == 0 {
                        1.0 / REQUESTS as f64
                    } else {
                        flight.cost as f64 / TOKENS as f64
                    };
                }
                worker.request.2 = 0;
                (now, Next::Ask)
            }
            Next::Return(flight, Some((hint, reports))) => {
                refused(set, at, &flight, hint, &reports);
                if worker.request.2 == SENDS {
                    tally.failed += 1;
                    worker.request.2 = 0;
                }
                (now + hint, Next::Ask)
            }
        };
        events.insert((when, number), (id, next));
        number += 1;
    }
    tally.offered = ((END - STEADY) / MINUTE) as f64;
    tally
}

/// Takes in the end of a request: what is left, its true cost, its outcome.
fn answered(set: &Set<'_>, at: Timestamp, flight: &Flight, reports: &LimitReports) {
    set.observe(at, &flight.permit, reports);
    let costs = [1, flight.cost as u32];
    set.settle(at, flight.permit, &costs)
        .expect("there is room");
    set.record(at, &flight.permit.costing(&costs), Outcome::NotThrottled);
}

/// Takes in a throttle: what is left, that it cost nothing, its outcome.
fn refused(set: &Set<'_>, at: Timestamp, flight: &Flight, hint: u64, reports: &LimitReports) {
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

/// Returns the estimate of a request, its true cost, and that it was never sent.
fn request(scene: &SetScene, now: u64, rng: &mut Rng) -> (u64, u64, u32) {
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
    (estimate, cost, 0)
}
