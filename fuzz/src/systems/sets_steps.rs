//! What the workers and pollers of sets do at each step.

use core::mem;
use core::time::Duration;

use paceline::{Outcome, Timestamp, law::LimitReports, set::SetError};

use super::oracle::Fault;
use super::sets::{Step, World, dimension};
use super::world::{nanos, to_u32};
use super::{MILLI, SECOND};

impl World<'_> {
    pub(super) fn queue_up(&mut self, now: u64, task: usize) {
        let system = self.system;
        let set = self.tasks[task].set;
        let weight = if system.heavies > self.rng.u64(0..1_000) {
            self.rng.u64(system.light..=system.heavy)
        } else {
            system.light
        };
        let weights = self.weigh(set, weight);
        let at = Timestamp::from_nanos(now);
        let Ok(place) = self.sets[set].reserve(at, &weights.map(to_u32)) else {
            self.played.fault(Fault::Door(weight));
            return self.after(task, Step::Begin, now + SECOND);
        };
        self.tasks[task].place = Some(place);
        self.tasks[task].joined = now;
        self.tasks[task].weights = weights;
        self.waiting[set].join(weight);
        if system.forget + system.cancel > self.rng.u64(0..1_000) {
            let place = self.tasks[task].place.take();
            self.waiting[set].leave(weight);
            if system.forget > self.rng.u64(0..system.forget + system.cancel) {
                mem::forget(place);
            }
            return self.rest(now, task);
        }
        self.ask(now, task);
    }

    /// Returns the weight in the first limit, or the shared one.
    fn first_weight(&self, task: usize) -> u64 {
        let this = &self.tasks[task];
        this.weights[usize::from(self.limits[this.set][0] != 0)]
    }

    pub(super) fn ask(&mut self, now: u64, task: usize) {
        let system = self.system;
        let set = self.tasks[task].set;
        let Some(place) = &mut self.tasks[task].place else {
            return;
        };
        match place.claim(Timestamp::from_nanos(now)) {
            Ok(permit) => {
                self.tasks[task].place = None;
                self.tasks[task].permit = Some(permit);
                let weight = self.first_weight(task);
                self.waiting[set].leave(weight);
                self.go(now, task);
            }
            Err(_) if self.is_out_of_patience(now, task) => {
                self.tasks[task].place = None;
                let weight = self.first_weight(task);
                self.waiting[set].leave(weight);
                // All give up before the first one asks again.
                let patience = system.patience * MILLI;
                let begun = now / patience * patience;
                self.after(task, Step::Begin, now.max(begun + SECOND) + 1);
            }
            Err(binding) => {
                let longest = if system.shape == 2 { 250 } else { 20 };
                let longest = (system.window * 10_000).max(longest * MILLI);
                let wait = nanos(binding.wait).clamp(longest / 50, longest);
                let late = self.rng.u64(0..=MILLI);
                self.after(task, Step::Ask, now + wait + late);
            }
        }
    }

    /// Whether a waiter has stood in line since before the last time that all give up.
    fn is_out_of_patience(&self, now: u64, task: usize) -> bool {
        let this = &self.tasks[task];
        let patience = self.system.patience * MILLI;
        patience > 0 && this.set == 0 && now / patience > this.joined / patience
    }

    pub(super) fn poll(&mut self, now: u64, task: usize) {
        let set = self.tasks[task].set;
        let weights = self.weigh(set, self.system.set_weight);
        let taken = self.sets[set].try_acquire(Timestamp::from_nanos(now), &weights.map(to_u32));
        match taken {
            Ok(permit) => {
                (self.tasks[task].weights, self.tasks[task].permit) = (weights, Some(permit));
                self.go(now, task);
            }
            Err(SetError::Limit { .. }) => self.rest(now, task),
            Err(error) => self.played.fault(Fault::Panic(error.to_string())),
        }
    }

    fn go(&mut self, now: u64, task: usize) {
        let system = self.system;
        let mut half = || system.trip * 5 * (100 + self.rng.u64(0..=system.spread));
        let (there, back) = (half(), half());
        let set = self.tasks[task].set;
        for (number, weight) in self.limits[set].into_iter().zip(self.tasks[task].weights) {
            self.coming[number] += weight;
        }
        for (other, waiting) in self.waiting.iter_mut().enumerate() {
            // Of two limits that all share, any send is one.
            if other == set || system.shape == 1 {
                waiting.sent(now);
            }
        }
        self.tasks[task].back = back;
        self.after(task, Step::Arrive, now + there);
    }

    pub(super) fn arrive(&mut self, now: u64, task: usize) {
        let (set, weights) = (self.tasks[task].set, self.tasks[task].weights);
        let pairs: Vec<_> = self.limits[set].into_iter().zip(weights).collect();
        let (mut is_refused, mut hint) = (false, 0);
        for (number, weight) in &pairs {
            self.coming[*number] -= weight;
            let service = &mut self.services[*number];
            if !service.has(now, *weight) {
                is_refused = true;
                hint = hint.max(service.back_in(now, *weight));
            }
        }
        let mut reports = LimitReports::new();
        for (number, weight) in &pairs {
            let service = &mut self.services[*number];
            if !is_refused {
                service.charge(now, *weight);
            }
            let told = service.told(self.system, now);
            reports.push(told.report(self.system, dimension(*number)));
            reports = reports.with_date(Duration::from_secs(told.date / SECOND));
        }
        self.played.sent += 1;
        if is_refused {
            self.played.refused += 1;
        } else {
            self.played.used += self.first_weight(task);
        }
        if self.system.lost > self.rng.u64(0..1_000) {
            reports = LimitReports::new();
        }
        let back = self.tasks[task].back;
        self.tasks[task].response = Some((is_refused.then_some(hint), reports));
        self.after(task, Step::Hear, now + back);
    }

    pub(super) fn hear(&mut self, now: u64, task: usize) {
        let this = &mut self.tasks[task];
        let (Some((hint, reports)), Some(permit)) = (this.response.take(), this.permit) else {
            return;
        };
        let (set, at) = (&self.sets[this.set], Timestamp::from_nanos(now));
        set.observe(at, &permit, &reports);
        let outcome = match hint {
            Some(hint) => Outcome::ThrottledFor(Duration::from_nanos(hint)),
            None => Outcome::NotThrottled,
        };
        set.record(at, &permit, outcome);
        if let Some(hint) = hint {
            self.pause = self.pause.max(now + hint);
            let more = self.rng.u64(0..=SECOND);
            return self.after(task, Step::Begin, now + hint + more);
        }
        self.rest(now, task);
    }

    fn rest(&mut self, now: u64, task: usize) {
        let this = &self.tasks[task];
        let rest = if this.is_poller {
            self.system.sets * MILLI
        } else if self.system.shape == 2 && this.set > 0 {
            // A quiet tenant asks half as often as it may.
            let each = self.system.window2 * MILLI / self.system.limit2;
            2 * each + self.rng.u64(0..=each)
        } else {
            self.rng.u64(0..=self.system.pause * 1_000)
        };
        self.after(task, Step::Begin, now + rest);
    }
}
