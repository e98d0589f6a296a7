//! Discrete events in virtual time.

use std::collections::BinaryHeap;

use core::cmp::Reverse;
use core::time::Duration;

use fastrand::Rng;
use paceline::{
    ControlLaw, Reservation, SendPermit, SendRate, SendSet, Timestamp,
    law::{DeclaredSettings, LimitReports, PacedSettings},
};

use super::classes::Classes;
use super::oracle::{self, Fault, Played};
use super::service::Service;
use super::system::System;
use super::wait::Waiting;
use super::{MILLI, SECOND, bounds};
use super::{operations, pools, sets};

/// The clients' clocks at the start.
const START: u64 = 1_000 * SECOND;

pub(super) type Set<'a> = SendSet<&'a SendRate, 2>;

/// What a task does, all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Worker,
    Poller,
    SetPoller,
    Restart,
    Change,
    Jump,
    Amnesia,
    /// It settles once, later than the response.
    Settler,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Begin,
    Ask,
    Arrive,
    Hear,
}

/// How a place in line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Go,
    /// Forgotten, or dropped, at the next look.
    Forget,
    Drop,
}

#[derive(Debug)]
pub(super) struct Response {
    pub(super) is_refused: bool,
    pub(super) hint: Option<u64>,
    pub(super) reports: Option<LimitReports>,
}

#[derive(Debug)]
pub(super) struct Task<'a> {
    pub(super) client: usize,
    pub(super) role: Role,
    pub(super) step: Step,
    pub(super) weight: u64,
    /// The true cost.
    pub(super) cost: u64,
    pub(super) fate: Fate,
    pub(super) is_background: bool,
    /// Of background: the number of its place. Of foreground: what background had sent.
    pub(super) number: u64,
    pub(super) seat: Option<Reservation<'a>>,
    pub(super) permit: Option<SendPermit>,
    /// When it began to wait, and the tokens before it.
    pub(super) joined: u64,
    pub(super) ahead: u64,
    pub(super) back: u64,
    pub(super) sent_at: u64,
    /// When what was last heard had been counted, as it was sent; and what its response tells.
    pub(super) heard: u64,
    pub(super) tells: u64,
    pub(super) node: usize,
    pub(super) response: Option<Response>,
}

pub(super) struct World<'a> {
    pub(super) system: &'a System,
    pub(super) rates: &'a [SendRate],
    pub(super) sets: Vec<Set<'a>>,
    /// The nodes of the service.
    pub(super) nodes: Vec<Service>,
    pub(super) rng: Rng,
    pub(super) tasks: Vec<Task<'a>>,
    pub(super) waiting: Waiting,
    /// The two lines of each client.
    pub(super) classes: Vec<Classes>,
    pub(super) played: Played,
    /// Tokens on their way to the service, and requests that are not answered.
    pub(super) coming: u64,
    pub(super) in_flight: u64,
    /// What arrived out of order, whether that was over a reset, and its cost.
    pub(super) unheard: Vec<(u64, bool, u64)>,
    /// When the last one was sent of those that have arrived.
    pub(super) last_arrived: u64,
    /// When the first response was heard.
    pub(super) first_heard: u64,
    /// The last arrival that a response has been heard of, of requests sent in their window.
    pub(super) heard: u64,
    /// Requests that were refused, though the client had heard of all.
    pub(super) unexplained: u64,
    /// Until when the service has asked for silence.
    pub(super) pause: u64,
    /// By how much each client's clock is ahead.
    pub(super) ahead: Vec<u64>,
    pub(super) is_closing: bool,
    /// Whether the limit is the other one.
    pub(super) is_changed: bool,
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    serial: u64,
    free: Vec<usize>,
    measured: u64,
}

/// Plays `system`, and returns what came of it.
///
/// # Panics
///
/// If a fixed rate, or a weight, is out of range.
#[must_use]
pub fn play(system: &System) -> Played {
    match system.shape {
        1 | 2 => return sets::play(system),
        3 => return operations::play(system),
        4 => return pools::play(system),
        _ => {}
    }
    let start = Timestamp::from_nanos(START);
    let clients = usize::try_from(system.clients).unwrap_or(1);
    let rates: Vec<_> = (0..clients).map(|_| limiter(system, start)).collect();
    let slow = Duration::from_millis((system.window * 10).min(1_000_000));
    let slow = PacedSettings::fixed(1, slow).expect("in range");
    let others: Vec<_> = (0..clients).map(|_| SendRate::paced(slow, start)).collect();
    let sets = rates.iter().zip(&others).map(|(rate, other)| {
        if system.set_order == 0 {
            SendSet::new([rate, other])
        } else {
            SendSet::new([other, rate])
        }
    });
    let mut world = World {
        system,
        rates: &rates,
        sets: sets.collect(),
        nodes: (0..system.nodes)
            .map(|_| Service::new(system, system.limit / system.nodes, system.window))
            .collect(),
        rng: Rng::with_seed(system.seed),
        tasks: Vec::new(),
        waiting: Waiting::default(),
        classes: (0..clients).map(|_| Classes::default()).collect(),
        played: Played::default(),
        coming: 0,
        in_flight: 0,
        unheard: Vec::new(),
        last_arrived: 0,
        first_heard: u64::MAX,
        heard: 0,
        unexplained: 0,
        pause: 0,
        ahead: vec![0; clients],
        is_closing: false,
        is_changed: false,
        events: BinaryHeap::new(),
        serial: 0,
        free: Vec::new(),
        measured: 0,
    };
    world.run();
    let mut played = world.played;
    if system.unusable > 0 && system.law == 0 {
        let paced = play(&System {
            law: 2,
            ..system.clone()
        });
        played.paced = Some(paced.throttled());
        if oracle::is_throttled_more(&played, &paced) {
            let permille = |played: &Played| played.refused * 1_000 / played.sent.max(1);
            played.fault(Fault::Throttled(permille(&played), permille(&paced)));
        }
    }
    played
}

/// Returns the limiter of a client.
fn limiter(system: &System, start: Timestamp) -> SendRate {
    match system.law {
        0 => SendRate::declared(DeclaredSettings::new(), start),
        1 => SendRate::paced(fixed(system), start),
        2 => SendRate::new(ControlLaw::Paced, start),
        4 => SendRate::paced(PacedSettings::shared(), start),
        5 => SendRate::paced(PacedSettings::exclusive(), start),
        _ => SendRate::new(ControlLaw::Aws, start),
    }
}

/// Returns the settings of a fixed rate.
pub(super) fn fixed(system: &System) -> PacedSettings {
    let window = Duration::from_millis(system.window);
    let burst = Duration::from_millis(System::burst(system.window));
    let fixed = PacedSettings::fixed(to_u32(system.limit), window);
    let fixed = fixed.and_then(|fixed| fixed.to_builder().burst(burst).build());
    fixed.expect("in range")
}

impl World<'_> {
    fn run(&mut self) {
        self.begin();
        let end = self.system.run * MILLI;
        while let Some(Reverse((now, _, task))) = self.events.pop() {
            if now >= end && !self.is_closing {
                self.close(end);
            }
            self.watch(now);
            self.step(now, task);
        }
        self.is_closing = true;
        self.all_back();
    }

    fn begin(&mut self) {
        let system = self.system;
        for client in 0..self.rates.len() {
            for worker in 0..system.workers {
                let at = self.rng.u64(0..=(system.trip + system.pause) * 1_000);
                let task = self.spawn(client, Role::Worker, at);
                self.tasks[task].is_background = worker < system.background;
            }
            for (role, every) in [(Role::Poller, system.polls), (Role::SetPoller, system.sets)] {
                if every > 0 {
                    self.spawn(client, role, every * MILLI);
                }
            }
        }
        let every = [
            (Role::Restart, system.restart),
            (Role::Change, system.change),
            (Role::Jump, system.jump),
            (Role::Amnesia, system.amnesia),
        ];
        for (role, every) in every {
            if every > 0 {
                self.spawn(0, role, every * MILLI);
            }
        }
    }

    /// Nothing new begins: what is on its way comes to its end.
    fn close(&mut self, end: u64) {
        self.watch(end);
        self.measure(end);
        self.is_closing = true;
        if let Some(since) = self.waiting.could_since() {
            let since = end - since;
            if since >= oracle::stopped(self.system) {
                let windows = (end - self.waiting.last_send) / self.system.window_nanos();
                self.played.fault(Fault::Stopped(windows));
            }
        }
        let (gap, _) = self.waiting.gap;
        self.played.gap = gap / MILLI;
        if gap > oracle::longest_gap(self.system) {
            self.played.fault(Fault::Gap(gap / MILLI));
        }
        if self.system.is_exact() && self.unexplained > 0 {
            self.played.fault(Fault::Refused(self.unexplained));
        }
    }

    /// Looks whether a waiting request could go.
    fn watch(&mut self, now: u64) {
        if self.is_closing {
            return;
        }
        let could = now >= self.pause
            && self.waiting.lightest().is_some_and(|lightest| {
                let cost = lightest * self.system.cost_high.max(100) / 100;
                self.has(now, self.coming + cost)
            });
        let first = bounds::FIRST_CONTACT * MILLI + self.system.window_nanos();
        self.waiting.note(now, could, first);
    }

    /// Whether each node would let `tokens` go.
    fn has(&mut self, now: u64, tokens: u64) -> bool {
        self.nodes.iter_mut().all(|node| node.has(now, tokens))
    }

    /// Returns the limit of all nodes.
    pub(super) fn limit(&self) -> u64 {
        self.nodes.iter().map(Service::limit).sum()
    }

    /// From when on use is measured.
    pub(super) fn steady(&self) -> u64 {
        (4 * self.system.window_nanos()).max(bounds::FIRST_CONTACT * MILLI)
    }

    /// Counts what has been offered since the last call.
    pub(super) fn measure(&mut self, now: u64) {
        let from = self.measured.max(self.steady());
        if now > from {
            let tokens = u128::from(self.limit()) * u128::from(now - from);
            let tokens = tokens / u128::from(self.system.window_nanos());
            self.played.offered += u64::try_from(tokens).unwrap_or(u64::MAX);
            self.measured = now;
        }
    }

    /// After two silent windows a heaviest request of each client goes within two.
    fn all_back(&mut self) {
        let system = self.system;
        let (window, trip) = (system.window_nanos(), system.longest_trip());
        let weight = if system.heavies > 0 {
            system.heavy
        } else {
            system.light
        };
        let mut now = (self.system.run * MILLI).max(self.now()).max(self.pause);
        for client in 0..self.rates.len() {
            now += 2 * window + trip;
            // A wait of background is an estimate.
            let times = 1 + u64::from(system.background > 0);
            let end = now + times * oracle::longest_return(system);
            let rate = &self.rates[client];
            let at = self.at(client, now);
            let seat = if system.background > 0 {
                rate.background().reserve_n(at, to_u32(weight))
            } else {
                rate.reserve_n(at, to_u32(weight))
            };
            let Ok(mut seat) = seat else {
                if weight <= self.limit() {
                    self.played.fault(Fault::Door(weight));
                }
                continue;
            };
            let permit = loop {
                match seat.claim(self.at(client, now)) {
                    Ok(permit) => break Some(permit),
                    Err(_) if now > end => break None,
                    Err(wait) => now += nanos(wait).clamp(MILLI, self.longest_sleep()),
                }
            };
            let Some(permit) = permit else {
                self.played.fault(Fault::NotBack(client as u64));
                continue;
            };
            now += trip / 2;
            let node = self.rng.usize(..self.nodes.len());
            self.nodes[node].charge(now, weight);
            let reports = self.nodes[node].told(system, now).reports(system);
            now += trip / 2;
            let at = self.at(client, now);
            rate.observe(at, permit, &reports);
            rate.record(at, permit, paceline::Outcome::NotThrottled);
        }
    }

    /// Returns the time of the last event.
    fn now(&self) -> u64 {
        self.measured.max(self.waiting.last_send) + self.system.longest_trip()
    }

    /// Returns the time by the clock of `client`.
    pub(super) fn at(&self, client: usize, now: u64) -> Timestamp {
        Timestamp::from_nanos(START + now + self.ahead[client])
    }

    /// Returns the longest sleep of a waiter: limiters wake waiters whose turn comes sooner.
    pub(super) fn longest_sleep(&self) -> u64 {
        (self.system.window_nanos() / 100).max(10 * MILLI)
    }

    pub(super) fn spawn(&mut self, client: usize, role: Role, at: u64) -> usize {
        let task = Task {
            client,
            role,
            step: Step::Begin,
            weight: 0,
            cost: 0,
            fate: Fate::Go,
            is_background: false,
            number: 0,
            seat: None,
            permit: None,
            joined: 0,
            ahead: 0,
            back: 0,
            sent_at: 0,
            heard: 0,
            tells: 0,
            node: 0,
            response: None,
        };
        let index = if let Some(index) = self.free.pop() {
            self.tasks[index] = task;
            index
        } else {
            self.tasks.push(task);
            self.tasks.len() - 1
        };
        self.after(index, Step::Begin, at);
        index
    }

    /// The task has come to its end.
    pub(super) fn end(&mut self, task: usize) {
        self.free.push(task);
    }

    pub(super) fn after(&mut self, task: usize, step: Step, at: u64) {
        self.tasks[task].step = step;
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, task)));
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn to_u32(weight: u64) -> u32 {
    u32::try_from(weight).unwrap_or(u32::MAX)
}
