//! Operations of a strategy: attempts, backoff and retry quota, with callers that give up.
//!
//! A service lets a rate through and now and then fails. Callers give up in a backoff, or while
//! they wait for the response; and at times there are none for a while.

use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use core::cmp::Reverse;
use core::time::Duration;

use fastrand::Rng;
use paceline::{
    Adaptive, Clock, Failure, Operation, RetryAfter, Timestamp,
    backoff::SeededRandom,
    law::PacedSettings,
    operation::{Attempts, Next, StopReason},
    strategy::Reports,
};

use super::oracle::{Fault, Played};
use super::service::Service;
use super::system::System;
use super::world::nanos;
use super::{MILLI, SECOND, bounds};

/// How long callers are busy before each idle time.
const BUSY: u64 = 60 * SECOND;
/// After an idle time nothing is refused as stalled for so long.
const FRESH: u64 = 20 * SECOND;

#[derive(Debug, Default)]
struct Virtual(AtomicU64);

impl Clock for Virtual {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Relaxed))
    }
}

enum Step {
    Begin,
    Go,
    Arrive,
    Hear,
}

struct Task {
    step: Step,
    attempts: Option<Attempts<Arc<Adaptive>>>,
    /// Whether its caller gives up in the first backoff, or while it waits for a response.
    gives_up: (bool, bool),
    is_retry: bool,
    back: u64,
    failure: Option<Failure>,
}

struct World<'a> {
    system: &'a System,
    strategy: Arc<Adaptive>,
    clock: Arc<Virtual>,
    service: Service,
    tasks: Vec<Task>,
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    serial: u64,
    rng: Rng,
    /// Retries that were sent and that did not succeed: what they paid is spent.
    spent: u64,
    last_send: u64,
    played: Played,
}

/// Plays a system of shape 3.
pub(super) fn play(system: &System) -> Played {
    let clock = Arc::new(Virtual::default());
    let builder = Adaptive::builder()
        .clock(clock.clone())
        .random(Arc::new(SeededRandom::new(system.seed)));
    let builder = match system.law {
        0 => builder.bulk(),
        2 => builder.paced(PacedSettings::new()),
        _ => builder,
    };
    let mut world = World {
        system,
        strategy: Arc::new(builder.build().expect("the settings go together")),
        clock,
        service: Service::new(system, system.limit, system.window),
        tasks: Vec::new(),
        events: BinaryHeap::new(),
        serial: 0,
        rng: Rng::with_seed(system.seed),
        spent: 0,
        last_send: 0,
        played: Played::default(),
    };
    world.run();
    world.played
}

impl World<'_> {
    fn run(&mut self) {
        for task in 0..usize::try_from(self.system.workers).unwrap_or(1) {
            self.tasks.push(Task {
                step: Step::Begin,
                attempts: None,
                gives_up: (false, false),
                is_retry: false,
                back: 0,
                failure: None,
            });
            let at = self.rng.u64(0..SECOND);
            self.after(task, Step::Begin, at);
        }
        let end = self.system.run * MILLI;
        while let Some(Reverse((now, _, task))) = self.events.pop() {
            if now >= end {
                break;
            }
            self.clock.0.store(now, Relaxed);
            match self.tasks[task].step {
                Step::Begin => self.begin(now, task),
                Step::Go => self.go(now, task),
                Step::Arrive => self.arrive(now, task),
                Step::Hear => self.hear(now, task),
            }
        }
        self.end(end);
    }

    fn end(&mut self, end: u64) {
        // What is on its way is spent, as what was cancelled on its way.
        let is_spent =
            |task: &&Task| task.is_retry && matches!(task.step, Step::Arrive | Step::Hear);
        self.spent += self.tasks.iter().filter(is_spent).count() as u64;
        self.tasks.clear();
        // An operation that is dropped gives back what a retry has paid that was not sent.
        let quota = self.strategy.quota();
        let costs = self.strategy.costs();
        let most = costs.throttling().max(costs.timeout()).max(14);
        let least = u64::from(quota.capacity()).saturating_sub(self.spent * u64::from(most));
        let left = u64::from(quota.available());
        if left < least {
            self.played.fault(Fault::Leak(least - left));
        }
        let cycle = BUSY + self.system.patience * MILLI;
        let busy = if self.system.patience == 0 {
            end
        } else {
            end / cycle * BUSY
        };
        let seconds = busy.saturating_sub(BUSY / 2) / SECOND;
        self.played.offered = self.system.limit * 1_000 * seconds / self.system.window;
        let busy = self.busy_until(end);
        let begun = end / cycle * cycle;
        if end == busy && end - self.last_send.max(begun) >= BUSY / 3 {
            self.played
                .fault(Fault::Stopped((end - self.last_send) / SECOND));
        }
        let least = if self.system.law == 3 {
            bounds::USED_PUBLISHED
        } else {
            bounds::USED_PACED
        };
        if self.played.share() < least {
            let hundredths = self.played.share() * 100.0;
            self.played.fault(Fault::Unused(hundredths));
        }
    }

    /// Returns when callers are next busy: now, or after the idle time.
    fn busy_until(&self, now: u64) -> u64 {
        let idle = self.system.patience * MILLI;
        let into = now % (BUSY + idle);
        if idle == 0 || into < BUSY {
            now
        } else {
            now - into + BUSY + idle
        }
    }

    fn after(&mut self, task: usize, step: Step, at: u64) {
        self.tasks[task].step = step;
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, task)));
    }

    fn rest(&mut self, now: u64, task: usize) {
        self.tasks[task].attempts = None;
        let pause = self.rng.u64(0..=self.system.pause * 1_000);
        let begin = self.busy_until(now + pause + 1);
        self.after(task, Step::Begin, begin);
    }

    fn begin(&mut self, now: u64, task: usize) {
        let system = self.system;
        let gives_up = (
            system.cancel > self.rng.u64(0..1_000),
            system.forget > self.rng.u64(0..1_000),
        );
        let this = &mut self.tasks[task];
        this.attempts = Some(Operation::new(self.strategy.clone()).start());
        (this.gives_up, this.is_retry) = (gives_up, false);
        self.go(now, task);
    }

    fn go(&mut self, now: u64, task: usize) {
        // At the end of a busy time all go.
        if self.busy_until(now) > now {
            return self.rest(now, task);
        }
        let clock = self.clock.clone();
        let this = &mut self.tasks[task];
        let Some(attempts) = &mut this.attempts else {
            return;
        };
        match attempts.next(&*clock, None) {
            Next::Sleep(_) if this.gives_up.0 => self.rest(now, task),
            Next::Sleep(rest) | Next::InLine(rest) => {
                let span = nanos(rest.span()).clamp(MILLI, SECOND);
                self.after(task, Step::Go, now + span);
            }
            Next::Send(attempt) => {
                this.is_retry = attempt.number() > 1;
                let half = self.system.trip * 500;
                let (there, back) = (half + self.rng.u64(0..=half), half + self.rng.u64(0..=half));
                self.tasks[task].back = back;
                self.last_send = now;
                self.after(task, Step::Arrive, now + there);
            }
            Next::Stop(stop) => {
                let idle = self.system.patience * MILLI;
                let into = now % (BUSY + idle);
                let is_stalled = matches!(stop.why(), StopReason::Stalled { .. });
                if is_stalled && idle > 0 && into < FRESH && now > BUSY + idle {
                    self.played.fault(Fault::Drought(idle / SECOND));
                }
                self.rest(now, task);
            }
            _ => self.rest(now, task),
        }
    }

    fn arrive(&mut self, now: u64, task: usize) {
        self.played.sent += 1;
        let cycle = BUSY + self.system.patience * MILLI;
        let is_out = now % cycle + self.system.outage * MILLI >= BUSY;
        let failure = if is_out || !self.service.has(now, 1) {
            self.played.refused += 1;
            let failure = Failure::throttling();
            Some(if self.system.no_hint == 0 {
                let hint = self.service.back_in(now, 1);
                failure.with_retry_after(RetryAfter::AtLeast(Duration::from_nanos(hint)))
            } else {
                failure
            })
        } else if self.system.lost > self.rng.u64(0..1_000) {
            Some(Failure::transient())
        } else {
            self.service.charge(now, 1);
            None
        };
        if failure.is_none() && now >= BUSY / 2 {
            self.played.used += 1;
        }
        let back = self.tasks[task].back;
        self.tasks[task].failure = failure;
        self.after(task, Step::Hear, now + back);
    }

    fn hear(&mut self, now: u64, task: usize) {
        let this = &mut self.tasks[task];
        let failure = this.failure.take();
        let Some(attempts) = &mut this.attempts else {
            return;
        };
        if this.is_retry && (failure.is_some() || this.gives_up.1) {
            self.spent += 1;
        }
        if this.gives_up.1 {
            return self.rest(now, task);
        }
        let reports = Reports::new();
        match failure {
            None => {
                let _sending = attempts.succeeded(reports);
                self.rest(now, task);
            }
            Some(failure) => {
                let _verdict = attempts.failed(&failure, reports);
                self.after(task, Step::Go, now + 1);
            }
        }
    }
}
