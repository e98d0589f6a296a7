//! Sets over several limits: two limits that sets name in either order, and tenants with a limit
//! each under one that they share.
//!
//! A service lets a request go if each of its limits does. Of tenants the first is busy, and the
//! others ask now and then: they are not to wait in the line of the first.

use std::collections::BinaryHeap;

use core::cmp::Reverse;
use core::time::Duration;

use fastrand::Rng;
use paceline::{
    Outcome, SendRate, SendSet, Timestamp,
    law::{DeclaredSettings, Dimension, LimitReports, PacedSettings},
    set::{SetPermit, SetReservation},
};

use super::oracle::{Fault, Played};
use super::service::Service;
use super::system::System;
use super::wait::Waiting;
use super::world::{nanos, to_u32};
use super::{MILLI, SECOND, bounds};

type Set<'a> = SendSet<&'a SendRate, 2>;

pub(super) enum Step {
    Begin,
    Ask,
    Arrive,
    Hear,
}

/// A worker, or a poller, of a set.
pub(super) struct Task<'a> {
    pub(super) set: usize,
    pub(super) is_poller: bool,
    pub(super) step: Step,
    pub(super) weights: [u64; 2],
    pub(super) place: Option<SetReservation<'a, 2>>,
    pub(super) permit: Option<SetPermit<2>>,
    pub(super) joined: u64,
    pub(super) back: u64,
    pub(super) response: Option<(Option<u64>, LimitReports)>,
}

pub(super) struct World<'a> {
    pub(super) system: &'a System,
    /// The sets, and which limits theirs are.
    pub(super) sets: &'a [Set<'a>],
    pub(super) limits: Vec<[usize; 2]>,
    pub(super) services: Vec<Service>,
    /// Tokens on their way to each.
    pub(super) coming: Vec<u64>,
    pub(super) waiting: Vec<Waiting>,
    pub(super) tasks: Vec<Task<'a>>,
    pub(super) events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    pub(super) serial: u64,
    pub(super) rng: Rng,
    pub(super) pause: u64,
    pub(super) played: Played,
    pub(super) is_closing: bool,
}

/// Returns limit and window of the limit with this number.
pub(super) fn size(system: &System, number: usize) -> (u64, u64) {
    match number {
        0 => (system.limit, system.window),
        _ => (system.limit2, system.window2),
    }
}

pub(super) fn dimension(number: usize) -> Dimension {
    match number {
        0 => Dimension::Requests,
        _ => Dimension::Tokens,
    }
}

pub(super) fn limiter(system: &System, number: usize, counts: Dimension) -> SendRate {
    let (limit, window) = size(system, number);
    let start = Timestamp::ZERO;
    if system.law == 0 {
        let settings = DeclaredSettings::new().dimension(counts);
        return SendRate::declared(settings, start);
    }
    let fixed = PacedSettings::fixed(to_u32(limit), Duration::from_millis(window));
    let burst = Duration::from_millis(System::burst(window));
    let fixed = fixed.and_then(|fixed| fixed.to_builder().burst(burst).build());
    SendRate::paced(fixed.expect("in range"), start)
}

/// Plays a system of shape 1 or 2.
pub(super) fn play(system: &System) -> Played {
    let is_pair = system.shape == 1;
    let count = if is_pair { 2 } else { system.clients + 1 };
    let count = usize::try_from(count).unwrap_or(2);
    let rates: Vec<_> = (0..count)
        .map(|number| limiter(system, number, dimension(number)))
        .collect();
    let limits: Vec<_> = if is_pair {
        vec![[0, 1], [1, 0]]
    } else if system.set_order == 0 {
        (1..count).map(|own| [0, own]).collect()
    } else {
        (1..count).map(|own| [own, 0]).collect()
    };
    let sets = limits
        .iter()
        .map(|[first, second]| SendSet::new([&rates[*first], &rates[*second]]));
    let sets: Vec<Set<'_>> = sets.collect();
    let services = (0..count).map(|number| {
        let (limit, window) = size(system, number);
        Service::new(system, limit, window)
    });
    let mut world = World {
        system,
        sets: &sets,
        limits,
        services: services.collect(),
        coming: vec![0; count],
        waiting: sets.iter().map(|_| Waiting::default()).collect(),
        tasks: Vec::new(),
        events: BinaryHeap::new(),
        serial: 0,
        rng: Rng::with_seed(system.seed),
        pause: 0,
        played: Played::default(),
        is_closing: false,
    };
    world.run();
    world.played
}

impl World<'_> {
    fn run(&mut self) {
        for set in 0..self.sets.len() {
            // Tenants but the first are quiet: one worker each.
            let is_quiet = self.system.shape == 2 && set > 0;
            let workers = if is_quiet { 1 } else { self.system.workers };
            for _ in 0..workers {
                self.spawn(set, false);
            }
            if self.system.sets > 0 {
                self.spawn(set, true);
            }
        }
        let end = self.system.run * MILLI;
        let mut last = 0;
        while let Some(Reverse((now, _, task))) = self.events.pop() {
            if now >= end && !self.is_closing {
                self.close(end);
            }
            self.watch(now, self.tasks[task].set);
            last = now;
            match self.tasks[task].step {
                Step::Arrive => self.arrive(now, task),
                Step::Hear => self.hear(now, task),
                _ if self.is_closing => self.tasks[task].place = None,
                Step::Begin if self.tasks[task].is_poller => self.poll(now, task),
                Step::Begin => self.queue_up(now, task),
                Step::Ask => self.ask(now, task),
            }
        }
        self.all_back(last.max(self.pause));
    }

    fn spawn(&mut self, set: usize, is_poller: bool) {
        self.tasks.push(Task {
            set,
            is_poller,
            step: Step::Begin,
            weights: [0; 2],
            place: None,
            permit: None,
            joined: 0,
            back: 0,
            response: None,
        });
        let at = self.rng.u64(0..=SECOND);
        self.after(self.tasks.len() - 1, Step::Begin, at);
    }

    pub(super) fn after(&mut self, task: usize, step: Step, at: u64) {
        self.tasks[task].step = step;
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, task)));
    }

    fn longest_window(&self) -> u64 {
        self.system.window.max(self.system.window2) * MILLI
    }

    /// Returns the longest gap of a set. Quiet tenants answer to the shared limit alone.
    fn longest_gap(&self, set: usize) -> u64 {
        let slack = 2 * self.system.longest_trip() + bounds::GAP_SLACK * MILLI;
        if self.system.shape == 2 && set > 0 {
            let own = self.system.window2 * MILLI / self.system.limit2;
            let own = if self.system.law == 0 { own } else { 0 };
            return bounds::GAP_WINDOWS * self.system.window * MILLI + own + slack;
        }
        bounds::GAP_WINDOWS * self.longest_window() + slack
    }

    /// Returns the weight in the limit with this number that belongs to `weight` in the first.
    fn weight_of(&self, number: usize, weight: u64) -> u64 {
        if number == 0 || self.system.shape == 2 {
            return weight;
        }
        (weight * self.system.limit2 / self.system.limit).clamp(1, self.system.limit2)
    }

    pub(super) fn weigh(&self, set: usize, weight: u64) -> [u64; 2] {
        self.limits[set].map(|number| self.weight_of(number, weight))
    }

    fn has(&mut self, now: u64, set: usize, weights: [u64; 2]) -> bool {
        let pairs = self.limits[set].into_iter().zip(weights);
        pairs.fold(true, |all, (number, weight)| {
            let coming = self.coming[number];
            self.services[number].has(now, coming + weight) && all
        })
    }

    fn watch(&mut self, now: u64, set: usize) {
        if self.is_closing {
            return;
        }
        let lightest = self.waiting[set].lightest();
        let could = now >= self.pause
            && lightest.is_some_and(|weight| self.has(now, set, self.weigh(set, weight)));
        let first = bounds::FIRST_CONTACT * MILLI + self.longest_window();
        self.waiting[set].note(now, could, first);
    }

    fn close(&mut self, end: u64) {
        for set in 0..self.sets.len() {
            self.watch(end, set);
            let waiting = &self.waiting[set];
            let (gap, stopped) = (waiting.gap.0, waiting.could_since());
            self.played.gap = self.played.gap.max(gap / MILLI);
            if stopped
                .is_some_and(|since| end - since >= bounds::STOP_WINDOWS * self.longest_window())
            {
                let windows = (end - waiting.last_send) / self.longest_window();
                self.played.fault(Fault::Stopped(windows));
            }
            if gap > self.longest_gap(set) {
                self.played.fault(Fault::Gap(gap / MILLI));
            }
        }
        self.is_closing = true;
        if self.system.shape == 1 {
            self.played.offered = self.offered();
            if self.played.share() < bounds::USED_PAIR {
                self.played
                    .fault(Fault::Unused(self.played.share() * 100.0));
            }
        }
    }

    /// Returns what could have been used of the first limit of a pair, by the one that is less.
    fn offered(&self) -> u64 {
        let system = self.system;
        let whole = |limit: u64, window| limit * system.run / window;
        let second = whole(system.limit.min(system.limit2), system.window2);
        whole(system.limit, system.window).min(second)
    }

    /// After two silent windows a heaviest request of each set goes within two.
    fn all_back(&mut self, mut now: u64) {
        for set in 0..self.sets.len() {
            now += 2 * self.longest_window();
            let weights = self.weigh(set, self.system.heavy);
            let end = now + bounds::GAP_WINDOWS * self.longest_window() + bounds::GAP_SLACK * MILLI;
            let place = self.sets[set].reserve(Timestamp::from_nanos(now), &weights.map(to_u32));
            let Ok(mut place) = place else {
                self.played.fault(Fault::Door(self.system.heavy));
                continue;
            };
            let permit = loop {
                match place.claim(Timestamp::from_nanos(now)) {
                    Ok(permit) => break Some(permit),
                    Err(_) if now > end => break None,
                    Err(binding) => now += nanos(binding.wait).clamp(MILLI, 10 * MILLI),
                }
            };
            match permit {
                Some(permit) => {
                    let at = Timestamp::from_nanos(now);
                    self.sets[set].record(at, &permit, Outcome::NotThrottled);
                }
                None => self.played.fault(Fault::NotBack(set as u64)),
            }
        }
    }
}
