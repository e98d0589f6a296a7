//! Operations of a strategy: attempts, backoff, retry quota, deadlines and lines, under every law.
//!
//! A service lets a rate through, fails now and then, falls silent, has an outage or restarts. The
//! client crashes and begins anew. Callers give up in a backoff, in line, or while they wait for
//! the response; and at times there are none for a while.
//!
//! What each step does stands in `operations_steps.rs`, what operations are held to in
//! `promises.rs`.

use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use core::cmp::Reverse;
use core::time::Duration;

use fastrand::Rng;
use paceline::{
    Adaptive, Class, Clock, ControlLaw, Failure, Operation, RetryStrategy, Timestamp,
    backoff::SeededRandom,
    law::{DeclaredSettings, LimitReports, PacedSettings},
    operation::{Attempts, Next},
};

use super::classes::Classes;
use super::oracle::{Fault, Played};
use super::promises::{Ledger, Line};
use super::service::Service;
use super::system::System;
use super::wait::Waiting;
use super::world::{fixed, nanos, to_u32};
use super::{MILLI, SECOND, bounds};

/// How long callers are busy before each idle time.
pub(super) const BUSY: u64 = 60 * SECOND;
/// After an idle time nothing is refused as stalled for so long.
pub(super) const FRESH: u64 = 20 * SECOND;

#[derive(Debug, Default)]
pub(super) struct Virtual(AtomicU64);

impl Clock for Virtual {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Relaxed))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Begin,
    Go,
    Arrive,
    Hear,
    /// Not of a worker: the service restarts, and the client.
    Restart,
    Crash,
}

/// When a caller gives up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GivesUp {
    pub(super) in_backoff: bool,
    pub(super) in_line: bool,
    pub(super) under_way: bool,
}

/// What comes back of a request.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) failure: Option<Failure>,
    pub(super) reports: Option<LimitReports>,
}

pub(super) struct Task {
    pub(super) step: Step,
    /// The number of its next event. Others have been overtaken by a crash.
    due: u64,
    pub(super) attempts: Option<Attempts<Arc<Adaptive>>>,
    pub(super) gives_up: GivesUp,
    pub(super) begun: u64,
    pub(super) weight: u64,
    pub(super) is_background: bool,
    /// Since when it has been in line, and when its turn was to come.
    pub(super) in_line: Option<(u64, u64)>,
    /// In line, of background: the number of its place. Of foreground: what background had sent,
    /// once that is known.
    pub(super) number: u64,
    pub(super) sends: u64,
    /// Attempts that were throttled.
    pub(super) throttled: u64,
    /// What the last retry has paid, and whether its request was sent.
    pub(super) paid: u64,
    pub(super) is_sent: bool,
    pub(super) back: u64,
    pub(super) answer: Option<Answer>,
}

pub(super) struct World<'a> {
    pub(super) system: &'a System,
    pub(super) strategy: Arc<Adaptive>,
    pub(super) clock: Arc<Virtual>,
    pub(super) service: Service,
    pub(super) tasks: Vec<Task>,
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    serial: u64,
    pub(super) rng: Rng,
    pub(super) ledger: Ledger,
    pub(super) line: Line,
    pub(super) classes: Classes,
    /// When background went lately, and its tokens.
    pub(super) behind: Vec<(u64, u64)>,
    pub(super) waiting: Waiting,
    /// Tokens on their way to the service.
    pub(super) coming: u64,
    /// When nothing was limited last, of systems with background.
    pub(super) unlimited: u64,
    /// Until when the service has asked for silence.
    pub(super) pause: u64,
    /// When the client began, and whether an answer has come since that tells it how fast to send.
    pub(super) begun: u64,
    pub(super) is_answered: bool,
    /// How long none had come while use was measured, and when that was looked at last.
    unanswered: u64,
    looked: u64,
    pub(super) heard: u64,
    pub(super) played: Played,
}

/// Returns a strategy that begins now.
fn strategy(system: &System, clock: &Arc<Virtual>, seed: u64) -> Arc<Adaptive> {
    let builder = Adaptive::builder()
        .clock(clock.clone())
        .random(Arc::new(SeededRandom::new(seed)));
    let builder = match system.law {
        0 => builder.declared(DeclaredSettings::new()),
        1 => builder.paced(fixed(system)),
        2 => builder.paced(PacedSettings::new()),
        3 => builder.law(ControlLaw::Aws),
        4 => builder.paced(PacedSettings::shared()),
        5 => builder.paced(PacedSettings::exclusive()),
        _ => builder.bulk(),
    };
    let builder = match system.max_wait {
        0 => builder,
        longest => builder.max_wait(Duration::from_millis(longest)),
    };
    Arc::new(builder.build().expect("the settings go together"))
}

/// Plays a system of shape 3.
pub(super) fn play(system: &System) -> Played {
    let clock = Arc::new(Virtual::default());
    let strategy = strategy(system, &clock, system.seed);
    let mut world = World {
        system,
        ledger: Ledger::of(&strategy),
        strategy,
        clock,
        service: Service::new(system, system.limit, system.window),
        tasks: Vec::new(),
        events: BinaryHeap::new(),
        serial: 0,
        rng: Rng::with_seed(system.seed),
        line: Line::default(),
        classes: Classes::default(),
        behind: Vec::new(),
        waiting: Waiting::default(),
        coming: 0,
        unlimited: 0,
        pause: 0,
        begun: 0,
        is_answered: false,
        unanswered: 0,
        looked: 0,
        heard: 0,
        played: Played::default(),
    };
    world.run();
    world.played
}

impl World<'_> {
    fn run(&mut self) {
        for worker in 0..self.system.workers {
            let task = self.spawn(worker < self.system.background);
            let at = self.rng.u64(0..SECOND.min(self.system.run * MILLI / 4));
            self.after(task, Step::Begin, at);
        }
        for (step, every) in [
            (Step::Restart, self.system.restart),
            (Step::Crash, self.system.crash),
        ] {
            if every > 0 {
                let task = self.spawn(false);
                self.after(task, step, every * MILLI);
            }
        }
        let end = self.system.run * MILLI;
        while let Some(Reverse((now, serial, task))) = self.events.pop() {
            if now >= end {
                break;
            }
            if serial != self.tasks[task].due {
                continue;
            }
            self.clock.0.store(now, Relaxed);
            self.watch(now);
            match self.tasks[task].step {
                Step::Begin => self.begin(now, task),
                Step::Go => self.go(now, task),
                Step::Arrive => self.arrive(now, task),
                Step::Hear => self.hear(now, task),
                Step::Restart => {
                    self.service.restart();
                    self.after(task, Step::Restart, now + self.system.restart * MILLI);
                }
                Step::Crash => {
                    self.crash(now);
                    self.after(task, Step::Crash, now + self.system.crash * MILLI);
                }
            }
        }
        self.end(end);
    }

    fn spawn(&mut self, is_background: bool) -> usize {
        self.tasks.push(Task {
            step: Step::Begin,
            due: 0,
            attempts: None,
            gives_up: GivesUp::default(),
            begun: 0,
            weight: 1,
            is_background,
            in_line: None,
            number: 0,
            sends: 0,
            throttled: 0,
            paid: 0,
            is_sent: false,
            back: 0,
            answer: None,
        });
        self.tasks.len() - 1
    }

    pub(super) fn after(&mut self, task: usize, step: Step, at: u64) {
        self.serial += 1;
        let this = &mut self.tasks[task];
        (this.step, this.due) = (step, self.serial);
        self.events.push(Reverse((at, self.serial, task)));
    }

    /// Every operation is dropped, and holds nothing any more.
    fn drop_all(&mut self, now: u64) {
        for task in 0..self.tasks.len() {
            self.give_up(task);
        }
        let shown = self.strategy.snapshot();
        if let Some(rate) = shown.rate {
            if rate.waiting + rate.background.waiting > 0 {
                self.played.fault(Fault::Snapshot(format!(
                    "{} and {} wait, though none does, at {now}",
                    rate.waiting, rate.background.waiting
                )));
            }
        }
        self.check_quota();
    }

    /// The client stops and begins anew. What was on its way to the service arrives.
    fn crash(&mut self, now: u64) {
        for task in 0..self.tasks.len() {
            if self.tasks[task].step == Step::Arrive {
                self.service.charge(now, self.tasks[task].weight);
            }
        }
        self.drop_all(now);
        let seed = self.rng.u64(..);
        self.strategy = strategy(self.system, &self.clock, seed);
        self.ledger = Ledger::of(&self.strategy);
        (self.line, self.classes) = (Line::default(), Classes::default());
        (self.coming, self.heard) = (0, 0);
        (self.begun, self.is_answered) = (now, false);
        for task in 0..self.tasks.len() {
            if !matches!(self.tasks[task].step, Step::Restart | Step::Crash) {
                self.rest(now, task);
            }
        }
    }

    fn end(&mut self, end: u64) {
        self.watch(end);
        self.drop_all(end);
        self.played.offered = self.offered(end);
        let (gap, _) = self.waiting.gap;
        self.played.gap = gap / MILLI;
        if gap > bounds::STOP_LEAST * MILLI {
            self.played.fault(Fault::Stopped(gap / SECOND));
        } else if gap > bounds::GAP_OPERATIONS * MILLI {
            self.played.fault(Fault::Gap(gap / MILLI));
        }
        let least = match self.system.law {
            3 => bounds::USED_PUBLISHED,
            _ => bounds::USED_PACED,
        };
        if self.played.share() < least {
            let hundredths = self.played.share() * 100.0;
            self.played.fault(Fault::Unused(hundredths));
        }
        self.all_back(end.max(self.pause));
    }

    /// After two silent seconds an operation goes.
    fn all_back(&mut self, now: u64) {
        self.service.restart();
        let mut now = now + 2 * SECOND + 2 * self.system.window_nanos();
        let end = now + bounds::GAP_OPERATIONS * MILLI + self.first_wait();
        let class = if self.system.background > 0 {
            Class::Background
        } else {
            Class::Foreground
        };
        let mut attempts = Operation::new(self.strategy.clone()).class(class).start();
        loop {
            self.clock.0.store(now, Relaxed);
            match attempts.next(&*self.clock, None) {
                Next::Send(_) => return,
                Next::Sleep(rest) | Next::InLine(rest) if now <= end => {
                    now += nanos(rest.span()).clamp(MILLI, bounds::LOOK * MILLI);
                }
                // It was throttled for so long that one has to succeed first.
                Next::Stop(_) if self.system.law == 6 || self.system.max_wait > 0 => return,
                _ => return self.played.fault(Fault::NotBack(0)),
            }
        }
    }

    /// Returns when use begins to be measured.
    pub(super) fn steady(&self) -> u64 {
        (BUSY / 2).min(self.system.run * MILLI / 2)
    }

    /// Returns what could have been used from then on: what the service offers, or what callers
    /// want if that is less, in the time in which an answer had come.
    fn offered(&self, end: u64) -> u64 {
        let system = self.system;
        let cycle = BUSY + system.patience * MILLI;
        let busy = if system.patience == 0 {
            end
        } else {
            end / cycle * BUSY
        };
        let span = busy.saturating_sub(self.steady() + self.unanswered);
        let offered = u128::from(system.limit) * u128::from(span);
        let offered = offered / u128::from(system.window_nanos());
        // A trip takes three quarters of its span more than half, and a pause half of its own.
        let each = system.trip * 2_000 + system.pause * 1_000;
        let wanted = u128::from(system.workers * system.light) * u128::from(span);
        let wanted = wanted / u128::from(each.max(1));
        u64::try_from(offered.min(wanted)).unwrap_or(u64::MAX)
    }

    /// Returns when callers are next busy: now, or after the idle time.
    pub(super) fn busy_until(&self, now: u64) -> u64 {
        let idle = self.system.patience * MILLI;
        let into = now % (BUSY + idle);
        if idle == 0 || into < BUSY {
            now
        } else {
            now - into + BUSY + idle
        }
    }

    /// Whether there is an outage.
    pub(super) fn is_out(&self, now: u64) -> bool {
        let cycle = BUSY + self.system.patience * MILLI;
        now % cycle + self.system.outage * MILLI >= BUSY
    }

    /// Looks whether a request in line could go.
    fn watch(&mut self, now: u64) {
        let lightest = self.waiting.lightest();
        let could = now >= self.pause
            && !self.is_out(now)
            && lightest.is_some_and(|weight| self.service.has(now, self.coming + weight));
        let is_first = self.first_wait() > 0;
        let since = self.looked.max(self.steady());
        if is_first {
            self.unanswered += now.saturating_sub(since);
        }
        self.looked = now;
        let first = if is_first {
            self.begun.max(self.waiting.last_send) + self.first_wait()
        } else {
            0
        };
        self.waiting.note(now, could, first);
    }

    /// Returns for how long a client sends nothing that knows nothing of the service yet.
    const fn first_wait(&self) -> u64 {
        match self.system.law {
            _ if self.is_answered => 0,
            0 => bounds::FIRST_BURSTS * MILLI,
            2 | 4 | 5 => bounds::UNHEARD * MILLI,
            _ => 0,
        }
    }

    pub(super) fn one_in_thousand(&mut self, share: u64) -> bool {
        share > 0 && self.rng.u64(0..1_000) < share
    }

    /// Returns an operation of `task`, which begins now.
    pub(super) fn operation(&self, task: usize) -> Attempts<Arc<Adaptive>> {
        let this = &self.tasks[task];
        let class = if this.is_background {
            Class::Background
        } else {
            Class::Foreground
        };
        let operation = Operation::new(self.strategy.clone())
            .weight(to_u32(this.weight))
            .class(class);
        match self.system.deadline {
            0 => operation.start(),
            span => operation.deadline(Duration::from_millis(span)).start(),
        }
    }
}
