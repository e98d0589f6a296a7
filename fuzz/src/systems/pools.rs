//! Pools: members with a limit each, and workers whose requests go by any of them.
//!
//! The first member has the first limit, the others have the second. A member is refused by its own
//! service alone.

use std::collections::BinaryHeap;

use core::cmp::Reverse;
use core::mem;
use core::time::Duration;

use fastrand::Rng;
use paceline::{
    Outcome, SendPermit, SendPool, SendRate, Timestamp,
    law::{Dimension, LimitReports},
    pool::{PoolPermit, PoolReservation},
};

use super::oracle::{Fault, Played};
use super::service::Service;
use super::system::System;
use super::wait::Waiting;
use super::world::{nanos, to_u32};
use super::{MILLI, SECOND, bounds, sets};

type Pool<'a> = SendPool<&'a SendRate, 8>;

#[expect(clippy::large_enum_variant, reason = "few are made at a time")]
enum Step {
    Begin,
    Ask,
    Arrive,
    Hear(Option<u64>, LimitReports),
}

struct Worker<'a> {
    step: Step,
    weight: u64,
    place: Option<PoolReservation<&'a SendRate, 8>>,
    permit: Option<PoolPermit<SendPermit>>,
}

struct World<'a> {
    system: &'a System,
    pool: &'a Pool<'a>,
    services: Vec<Service>,
    /// Tokens on their way to each.
    coming: Vec<u64>,
    waiting: Waiting,
    workers: Vec<Worker<'a>>,
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    serial: u64,
    rng: Rng,
    /// Until when a member is paused.
    pauses: Vec<u64>,
    played: Played,
    is_closing: bool,
}

/// Plays a system of shape 4.
pub(super) fn play(system: &System) -> Played {
    let count = usize::try_from(system.clients).unwrap_or(2).clamp(1, 8);
    let number = |member: usize| usize::from(member > 0);
    let rates: Vec<_> = (0..count)
        .map(|member| sets::limiter(system, number(member), Dimension::Requests))
        .collect();
    let pool = Pool::of(&rates).expect("one to eight");
    let services = (0..count).map(|member| {
        let (limit, window) = sets::size(system, number(member));
        Service::new(system, limit, window)
    });
    let mut world = World {
        system,
        pool: &pool,
        services: services.collect(),
        coming: vec![0; count],
        waiting: Waiting::default(),
        workers: Vec::new(),
        events: BinaryHeap::new(),
        serial: 0,
        rng: Rng::with_seed(system.seed),
        pauses: vec![0; count],
        played: Played::default(),
        is_closing: false,
    };
    world.run();
    world.played
}

impl World<'_> {
    fn run(&mut self) {
        for _ in 0..self.system.workers {
            self.workers.push(Worker {
                step: Step::Begin,
                weight: 0,
                place: None,
                permit: None,
            });
            let at = self.rng.u64(0..=SECOND);
            self.after(self.workers.len() - 1, Step::Begin, at);
        }
        let end = self.system.run * MILLI;
        let mut last = 0;
        while let Some(Reverse((now, _, worker))) = self.events.pop() {
            if now >= end && !self.is_closing {
                self.close(end);
            }
            self.watch(now);
            last = now;
            match mem::replace(&mut self.workers[worker].step, Step::Begin) {
                Step::Arrive => self.arrive(now, worker),
                Step::Hear(hint, reports) => self.hear(now, worker, hint, &reports),
                _ if self.is_closing => self.workers[worker].place = None,
                Step::Begin => self.queue_up(now, worker),
                Step::Ask => self.ask(now, worker),
            }
        }
        self.all_back(
            self.pauses
                .iter()
                .fold(last, |last, until| last.max(*until)),
        );
    }

    fn after(&mut self, worker: usize, step: Step, at: u64) {
        self.workers[worker].step = step;
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, worker)));
    }

    fn rest(&mut self, now: u64, worker: usize) {
        let rest = self.rng.u64(0..=self.system.pause * 1_000);
        self.after(worker, Step::Begin, now + rest);
    }

    fn longest_window(&self) -> u64 {
        self.system.window.max(self.system.window2) * MILLI
    }

    fn queue_up(&mut self, now: u64, worker: usize) {
        let system = self.system;
        let weight = if system.heavies > self.rng.u64(0..1_000) {
            self.rng.u64(system.light..=system.heavy)
        } else {
            system.light
        };
        let place = self
            .pool
            .reserve(Timestamp::from_nanos(now), to_u32(weight));
        let Ok(place) = place else {
            self.played.fault(Fault::Door(weight));
            return self.after(worker, Step::Begin, now + SECOND);
        };
        if system.forget + system.cancel > self.rng.u64(0..1_000) {
            if system.forget > self.rng.u64(0..system.forget + system.cancel) {
                mem::forget(place);
            }
            return self.rest(now, worker);
        }
        let this = &mut self.workers[worker];
        (this.place, this.weight) = (Some(place), weight);
        self.waiting.join(weight);
        self.ask(now, worker);
    }

    fn ask(&mut self, now: u64, worker: usize) {
        let this = &mut self.workers[worker];
        let Some(place) = &mut this.place else {
            return;
        };
        match place.claim(Timestamp::from_nanos(now)) {
            Ok(permit) => {
                (this.place, this.permit) = (None, Some(permit));
                self.coming[permit.index()] += this.weight;
                self.waiting.leave(this.weight);
                self.waiting.sent(now);
                let trip = self.trip();
                self.after(worker, Step::Arrive, now + trip);
            }
            Err(wait) => {
                let longest = (self.system.window * 10_000).max(20 * MILLI);
                let wait = nanos(wait).clamp(longest / 50, longest);
                let late = self.rng.u64(0..=MILLI);
                self.after(worker, Step::Ask, now + wait + late);
            }
        }
    }

    /// Returns what a half of a round trip takes.
    fn trip(&mut self) -> u64 {
        self.system.trip * 5 * (100 + self.rng.u64(0..=self.system.spread))
    }

    fn arrive(&mut self, now: u64, worker: usize) {
        let Some(permit) = self.workers[worker].permit else {
            return;
        };
        let (member, weight) = (permit.index(), self.workers[worker].weight);
        self.coming[member] -= weight;
        let service = &mut self.services[member];
        let is_done = service.has(now, weight);
        let hint = (!is_done).then(|| service.back_in(now, weight));
        self.played.sent += 1;
        if is_done {
            service.charge(now, weight);
            self.played.used += weight;
        } else {
            self.played.refused += 1;
        }
        let told = service.told(self.system, now);
        let reports = LimitReports::from(told.report(self.system, Dimension::Requests));
        let reports = reports.with_date(Duration::from_secs(told.date / SECOND));
        let trip = self.trip();
        self.after(worker, Step::Hear(hint, reports), now + trip);
    }

    fn hear(&mut self, now: u64, worker: usize, hint: Option<u64>, reports: &LimitReports) {
        let Some(permit) = self.workers[worker].permit.take() else {
            return;
        };
        let at = Timestamp::from_nanos(now);
        self.pool.observe(at, permit, reports);
        let throttled = |hint| Outcome::ThrottledFor(Duration::from_nanos(hint));
        let outcome = hint.map_or(Outcome::NotThrottled, throttled);
        self.pool.record(at, permit, outcome);
        if let Some(hint) = hint {
            let until = &mut self.pauses[permit.index()];
            *until = (*until).max(now + hint);
        }
        self.rest(now, worker);
    }

    /// Notes whether the service of a member that is not paused would let a request in line go.
    fn watch(&mut self, now: u64) {
        if self.is_closing {
            return;
        }
        let lightest = self.waiting.lightest();
        let could = lightest.is_some_and(|weight| {
            let members = self.services.iter_mut().zip(&self.coming).zip(&self.pauses);
            let mut members = members.map(|((service, coming), until)| {
                now >= *until && service.has(now, coming + weight)
            });
            members.any(|could| could)
        });
        let first = bounds::FIRST_CONTACT * MILLI + self.longest_window();
        self.waiting.note(now, could, first);
    }

    fn close(&mut self, end: u64) {
        self.watch(end);
        self.is_closing = true;
        let (gap, window) = (self.waiting.gap.0, self.longest_window());
        self.played.gap = gap / MILLI;
        let slack = 2 * self.system.longest_trip() + bounds::GAP_SLACK * MILLI;
        if gap > bounds::GAP_WINDOWS * window + slack {
            self.played.fault(Fault::Gap(gap / MILLI));
        }
        let stopped = self.waiting.could_since();
        if stopped.is_some_and(|since| end - since >= bounds::STOP_WINDOWS * window) {
            let windows = (end - self.waiting.last_send) / window;
            self.played.fault(Fault::Stopped(windows));
        }
        let offered = (0..self.services.len()).map(|member| {
            let (limit, window) = sets::size(self.system, usize::from(member > 0));
            limit * self.system.run / window
        });
        self.played.offered = offered.sum();
        if self.played.share() < bounds::USED_POOL {
            let used = self.played.share() * 100.0;
            self.played.fault(Fault::Unused(used));
        }
    }

    /// After two silent windows the heaviest request of each member, alone in its line, goes within
    /// two.
    fn all_back(&mut self, mut now: u64) {
        for (number, member) in self.pool.members().iter().enumerate() {
            now += 2 * self.longest_window();
            let end = now + bounds::GAP_WINDOWS * self.longest_window() + bounds::GAP_SLACK * MILLI;
            let (at, weight) = (Timestamp::from_nanos(now), to_u32(self.system.heavy));
            let Ok(mut place) = member.reserve_n(at, weight) else {
                self.played.fault(Fault::Door(self.system.heavy));
                continue;
            };
            while let Err(wait) = place.claim(Timestamp::from_nanos(now)) {
                if now > end {
                    self.played.fault(Fault::NotBack(number as u64));
                    break;
                }
                now += nanos(wait).clamp(MILLI, 10 * MILLI);
            }
        }
    }
}
