//! What operations do at each step.

use core::time::Duration;

use paceline::{
    Failure, RetryAfter, RetryStrategy,
    operation::{Next, StopReason, Verdict},
    strategy::Reports,
};

use super::operations::{Answer, BUSY, FRESH, GivesUp, Step, World};
use super::oracle::Fault;
use super::promises::ATTEMPTS;
use super::{MILLI, SECOND, bounds};

impl World<'_> {
    /// The operation of `task` is dropped, wherever it stands.
    pub(super) fn give_up(&mut self, task: usize) {
        self.leave_line(task);
        let this = &mut self.tasks[task];
        let is_open = this.attempts.take().is_some();
        let paid = core::mem::take(&mut this.paid);
        if is_open && !this.is_sent {
            self.ledger.put(paid);
        }
    }

    /// The operation of `task` has ended: the next one begins some time later.
    pub(super) fn rest(&mut self, now: u64, task: usize) {
        self.give_up(task);
        let pause = self.rng.u64(0..=self.system.pause * 1_000);
        let begin = self.busy_until(now + pause + 1);
        self.after(task, Step::Begin, begin);
    }

    pub(super) fn begin(&mut self, now: u64, task: usize) {
        let system = self.system;
        let gives_up = GivesUp {
            in_backoff: self.one_in_thousand(system.cancel),
            in_line: self.one_in_thousand(system.leave),
            under_way: self.one_in_thousand(system.forget),
        };
        let weight = if self.one_in_thousand(system.heavies) {
            self.rng.u64(system.light..=system.heavy)
        } else {
            system.light
        };
        let this = &mut self.tasks[task];
        (this.gives_up, this.begun, this.weight) = (gives_up, now, weight);
        (this.sends, this.throttled, this.paid, this.is_sent) = (0, 0, 0, false);
        self.tasks[task].attempts = Some(self.operation(task));
        self.go(now, task);
    }

    /// Returns when the time of the operation of `task` is up.
    fn deadline(&self, task: usize) -> u64 {
        match self.system.deadline {
            0 => u64::MAX,
            span => self.tasks[task].begun + span * MILLI,
        }
    }

    pub(super) fn go(&mut self, now: u64, task: usize) {
        // At the end of a busy time all go.
        if self.busy_until(now) > now {
            return self.rest(now, task);
        }
        let deadline = self.deadline(task);
        let clock = self.clock.clone();
        let this = &mut self.tasks[task];
        let Some(attempts) = &mut this.attempts else {
            return;
        };
        let next = attempts.next(&*clock, None);
        let until = match &next {
            Next::Sleep(rest) | Next::InLine(rest) => rest.until().as_nanos(),
            _ => now,
        };
        let gives_up = this.gives_up;
        match next {
            Next::Sleep(_) if gives_up.in_backoff => self.rest(now, task),
            Next::InLine(_) if gives_up.in_line => self.rest(now, task),
            Next::Sleep(_) | Next::InLine(_) => {
                if until > deadline {
                    self.played.fault(Fault::Late((until - deadline) / MILLI));
                }
                if matches!(next, Next::InLine(_)) {
                    self.wait(now, task, until);
                }
                let at = until.clamp(now + MILLI, now + SECOND);
                self.after(task, Step::Go, at);
            }
            Next::Send(_) => {
                if now >= deadline {
                    self.played.fault(Fault::Late((now - deadline) / MILLI));
                }
                self.send(now, task);
            }
            Next::Stop(stop) => {
                let idle = self.system.patience * MILLI;
                let into = now % (BUSY + idle);
                let is_stalled = matches!(stop.why(), StopReason::Stalled { .. });
                if is_stalled && idle > 0 && into < FRESH && now > BUSY + idle {
                    self.played.fault(Fault::Drought(idle / SECOND));
                }
                // A caller that is refused waits a little.
                let later = now + self.rng.u64(0..=bounds::REFUSED * MILLI);
                self.rest(later, task);
            }
            _ => self.rest(now, task),
        }
        self.check_quota();
    }

    /// The request of `task` is in line, and its turn is to come at `until`.
    fn wait(&mut self, now: u64, task: usize, until: u64) {
        let this = &mut self.tasks[task];
        if let Some((joined, due)) = &mut this.in_line {
            *due = until;
            let wait = now - *joined;
            self.played.wait = self.played.wait.max(wait / MILLI);
            if this.is_background {
                self.classes.looked(this.number);
            } else if this.number == u64::MAX && wait > 2 * bounds::LOOK * MILLI {
                // What had been released when it came is claimed by now.
                this.number = self.classes.background();
            }
            let longest = match self.system.max_wait {
                0 => u64::MAX,
                longest => (longest + 2 * bounds::LOOK) * MILLI,
            };
            if wait > longest {
                self.played.fault(Fault::Late((wait - longest) / MILLI));
            }
            return;
        }
        this.in_line = Some((now, until));
        self.waiting.join(this.weight);
        this.number = if this.is_background {
            self.classes.behind(this.weight)
        } else {
            self.classes.ahead(this.weight);
            u64::MAX
        };
    }

    /// The request of `task` leaves the line without its tokens, if it is in line.
    fn leave_line(&mut self, task: usize) {
        let this = &mut self.tasks[task];
        if this.in_line.take().is_some() {
            let number = this.is_background.then_some(this.number);
            self.classes.gone(number, this.weight);
            self.waiting.leave(this.weight);
        }
    }

    fn send(&mut self, now: u64, task: usize) {
        let system = self.system;
        let this = &mut self.tasks[task];
        this.sends += 1;
        this.is_sent = true;
        let counted = match system.law {
            6 => this.sends - this.throttled,
            _ => this.sends,
        };
        if counted > ATTEMPTS {
            self.played.fault(Fault::Attempts(counted));
        }
        let (weight, place) = (this.weight, this.in_line.take());
        let due = place.map_or(now, |(_, due)| due.min(now));
        if system.law == 1 && system.cost == 0 {
            if let Some(tokens) = self.line.goes(system, due, now, weight) {
                self.played.fault(Fault::Minted(tokens));
            }
        }
        self.hold_to_class(now, task, place);
        if place.is_some() {
            self.waiting.leave(weight);
        }
        self.waiting.sent(now);
        self.coming += weight;
        let half = system.trip * 500;
        let (there, back) = (half + self.rng.u64(0..=half), half + self.rng.u64(0..=half));
        self.tasks[task].back = back;
        self.after(task, Step::Arrive, now + there);
    }

    /// Holds a request that goes to the promises of its class.
    fn hold_to_class(&mut self, now: u64, task: usize, place: Option<(u64, u64)>) {
        if self.system.background == 0 {
            return;
        }
        let waited = place.is_some();
        // While nothing is limited there are no lines, and those in line are not called.
        let rate = self.strategy.snapshot().rate;
        if !rate.is_some_and(|rate| rate.enabled) {
            self.unlimited = now;
        }
        let this = &self.tasks[task];
        let (weight, mut number) = (this.weight, this.number);
        if this.is_background {
            if !waited {
                number = self.classes.behind(weight);
            }
            self.classes.looked(number);
            self.classes.background_goes(number, weight);
            let past = now.saturating_sub(bounds::LOOK * MILLI);
            self.behind.retain(|(at, _)| *at >= past);
            self.behind.push((now, weight));
            return;
        }
        let late = self.classes.foreground_goes(weight, waited);
        // What went after its turn had come, before it looked, has not overtaken it.
        let due = place.map_or(now, |(_, due)| due);
        let later = self.behind.iter().filter(|(at, _)| *at >= due);
        let later: u64 = later.map(|(_, weight)| weight).sum();
        let before = self.classes.background().saturating_sub(number);
        let before = before.saturating_sub(later);
        let is_declared = self.system.law == 0;
        let is_limited = place.is_some_and(|(joined, _)| joined > self.unlimited);
        let overtaken = (is_limited && before > self.classes.saved_up(is_declared))
            .then_some(Fault::Overtaken(before));
        for fault in [late, overtaken].into_iter().flatten() {
            self.played.fault(fault);
        }
    }

    pub(super) fn arrive(&mut self, now: u64, task: usize) {
        let system = self.system;
        let weight = self.tasks[task].weight;
        self.coming -= weight;
        self.played.sent += 1;
        let is_refused = self.is_out(now) || !self.service.has(now, weight);
        let is_lost = self.one_in_thousand(system.lost);
        let is_silent = !is_refused && self.one_in_thousand(system.silent);
        let failure = if is_refused {
            self.played.refused += 1;
            let failure = Failure::throttling();
            Some(if system.no_hint == 0 {
                let hint = self.service.back_in(now, weight);
                self.pause = self.pause.max(now + hint);
                failure.with_retry_after(RetryAfter::AtLeast(Duration::from_nanos(hint)))
            } else {
                failure
            })
        } else if is_lost {
            Some(Failure::transient())
        } else {
            self.service.charge(now, weight);
            is_silent.then(Failure::timeout)
        };
        if failure.is_none() && now >= self.steady() {
            self.played.used += weight;
        }
        let reports = (system.law == 0 && !is_lost && !is_silent)
            .then(|| self.service.told(system, now).reports(system));
        let this = &mut self.tasks[task];
        this.answer = Some(Answer { failure, reports });
        let back = if is_silent {
            bounds::CUT_OFF * MILLI
        } else {
            this.back
        };
        self.after(task, Step::Hear, now + back);
    }

    pub(super) fn hear(&mut self, now: u64, task: usize) {
        let clock = self.clock.clone();
        let this = &mut self.tasks[task];
        let (Some(answer), Some(attempts)) = (this.answer.take(), &mut this.attempts) else {
            return;
        };
        if this.gives_up.under_way {
            self.rest(now, task);
            return self.check_quota();
        }
        // The paced law knows no rate by a refusal, nor by what comes after it of a first burst.
        let is_known = self.system.law == 0 || now > self.begun + bounds::CUT_OFF * MILLI;
        self.is_answered |= answer.failure.as_ref().map_or(is_known, |failure| {
            !failure.is_timeout() && (self.system.law == 0 || is_known && !failure.is_throttle())
        });
        let mut reports = Reports::at(&*clock);
        if let Some(limits) = &answer.reports {
            reports = reports.declaring(limits);
        }
        match answer.failure {
            None => {
                let _sending = attempts.succeeded(reports);
                this.attempts = None;
                let paid = core::mem::take(&mut this.paid);
                self.ledger.succeed(paid);
                self.rest(now, task);
            }
            Some(failure) => {
                let verdict = attempts.failed(&failure, reports);
                let is_free = self.system.law == 6 && failure.is_throttle();
                this.throttled += u64::from(failure.is_throttle());
                match verdict {
                    Ok(Verdict::Again(_)) => {
                        this.is_sent = false;
                        if !is_free {
                            this.paid = self.ledger.pay(&failure);
                        }
                    }
                    // What it had paid is spent.
                    _ => this.is_sent = true,
                }
                self.after(task, Step::Go, now + 1);
            }
        }
        self.heard += 1;
        self.check_quota();
        if self.heard % 64 == 0 {
            self.look();
        }
    }

    /// Compares the quota with the ledger.
    pub(super) fn check_quota(&mut self) {
        let (is, known) = (self.strategy.quota().available(), self.ledger.available());
        if u64::from(is) != known {
            self.played.fault(Fault::Quota(is.into(), known));
        }
    }

    /// Looks at a snapshot.
    fn look(&mut self) {
        let Some(rate) = self.strategy.snapshot().rate else {
            return;
        };
        if !(rate.fill_rate.is_finite() && rate.fill_rate >= 0.0 && rate.available >= 0.0) {
            let text = format!("{}/s, {} left", rate.fill_rate, rate.available);
            self.played.fault(Fault::Snapshot(text));
        }
        let untrue = self.classes.shown(rate.waiting, rate.background, false);
        if self.system.background > 0 {
            if let Some(fault) = untrue {
                self.played.fault(fault);
            }
        } else if rate.waiting > self.waiting.sum {
            let text = format!("{} wait, not {}", rate.waiting, self.waiting.sum);
            self.played.fault(Fault::Snapshot(text));
        }
    }
}
