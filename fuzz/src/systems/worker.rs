//! What workers, pollers and trouble do at each step.

use core::mem;

use paceline::Outcome;
use paceline::law::PacedSettings;

use super::oracle::{self, Fault};
use super::service::Service;
use super::world::{Fate, Response, Role, Step, World, nanos, to_u32};
use super::{MILLI, SECOND, bounds};

impl World<'_> {
    pub(super) fn step(&mut self, now: u64, task: usize) {
        match (self.tasks[task].role, self.tasks[task].step) {
            (_, Step::Arrive) => self.arrive(now, task),
            (_, Step::Hear) => self.hear(now, task),
            (Role::Settler, _) => {
                self.settle(now, task);
                self.end(task);
            }
            _ if self.is_closing => self.tasks[task].seat = None,
            (Role::Worker, Step::Begin) => self.queue_up(now, task),
            (Role::Worker, Step::Ask) => self.ask(now, task),
            (Role::Poller | Role::SetPoller, _) => self.poll(now, task),
            (Role::Restart, _) => {
                self.nodes.iter_mut().for_each(Service::restart);
                self.again(now, task, self.system.restart);
            }
            (Role::Change, _) => {
                self.measure(now);
                let other = (self.system.limit * self.system.change_to / 100).max(1);
                self.is_changed ^= true;
                let limit = if self.is_changed {
                    other
                } else {
                    self.system.limit
                };
                for node in &mut self.nodes {
                    node.change(now, (limit / self.system.nodes).max(1));
                }
                self.again(now, task, self.system.change);
            }
            (Role::Amnesia, _) => {
                let client = self.rng.usize(..self.rates.len());
                let (rate, at) = (&self.rates[client], self.at(client, now));
                match self.rng.u8(0..3) {
                    0 => rate.reset(at),
                    1 => rate.forget_throttles(at),
                    _ => {
                        // As they are: to set them forgets, too.
                        let set = rate.set_paced(PacedSettings::new(), at);
                        set.expect("the law is paced where nothing is declared");
                    }
                }
                self.again(now, task, self.system.amnesia);
            }
            (Role::Jump, _) => {
                let by = self.system.jump_by * MILLI;
                if self.rng.bool() {
                    let client = self.rng.usize(..self.rates.len());
                    self.ahead[client] += by;
                } else {
                    self.nodes.iter_mut().for_each(|node| node.jump(by));
                }
                self.again(now, task, self.system.jump);
            }
        }
    }

    fn again(&mut self, now: u64, task: usize, every: u64) {
        self.after(task, Step::Begin, now + every * MILLI);
    }

    fn one_in_thousand(&mut self, share: u64) -> bool {
        share > 0 && self.rng.u64(0..1_000) < share
    }

    fn true_cost(&mut self, weight: u64) -> u64 {
        let system = self.system;
        if system.cost == 0 {
            return weight;
        }
        let hundredths = self
            .rng
            .u64(system.cost_low..=system.cost_high.max(system.cost_low));
        (weight * hundredths / 100).clamp(1, self.limit().max(1))
    }

    fn queue_up(&mut self, now: u64, task: usize) {
        let system = self.system;
        let client = self.tasks[task].client;
        let weight = if self.one_in_thousand(system.heavies) {
            self.rng.u64(system.light..=system.heavy.max(system.light))
        } else {
            system.light
        };
        if self.one_in_thousand(system.above) {
            self.ask_too_much(now, client);
        }
        let (rate, at) = (&self.rates[client], self.at(client, now));
        let is_background = self.tasks[task].is_background;
        let seat = if is_background {
            rate.background().reserve_n(at, to_u32(weight))
        } else {
            rate.reserve_n(at, to_u32(weight))
        };
        let Ok(seat) = seat else {
            if system.change == 0 && weight <= system.limit {
                self.played.fault(Fault::Door(weight));
            }
            self.after(task, Step::Begin, now + system.window_nanos() / 10);
            return;
        };
        let fate = if self.one_in_thousand(system.forget) {
            Fate::Forget
        } else if self.one_in_thousand(system.cancel) {
            Fate::Drop
        } else {
            Fate::Go
        };
        let cost = self.true_cost(weight);
        self.waiting.join(weight);
        let lines = &mut self.classes[client];
        let number = if is_background {
            lines.behind(weight)
        } else {
            lines.ahead(weight);
            u64::MAX
        };
        let ahead = self.waiting.sum + self.coming;
        let this = &mut self.tasks[task];
        (this.weight, this.cost, this.fate) = (weight, cost, fate);
        this.number = number;
        (this.joined, this.ahead, this.seat) = (now, ahead, Some(seat));
        if fate == Fate::Go {
            self.ask(now, task);
        } else {
            // Due or not, it ends some time later.
            let later = self.rng.u64(0..=system.window_nanos() / 4);
            self.after(task, Step::Ask, now + later);
        }
    }

    /// Asks for what can never go, as the client has heard.
    fn ask_too_much(&mut self, now: u64, client: usize) {
        let (rate, at) = (&self.rates[client], self.at(client, now));
        let declared = rate.snapshot(at).declared;
        let declared = declared.filter(|declared| !declared.given_up);
        let limit = declared.map(|declared| declared.limit);
        let Some(limit) = limit.filter(|limit| *limit > 0) else {
            return;
        };
        if rate.reserve_n(at, to_u32(2 * limit)).is_ok() {
            self.played.fault(Fault::Accepted(2 * limit));
        }
    }

    fn ask(&mut self, now: u64, task: usize) {
        let at = self.at(self.tasks[task].client, now);
        let longest = self.longest_sleep();
        let this = &mut self.tasks[task];
        let Some(mut seat) = this.seat.take() else {
            return;
        };
        if this.fate != Fate::Go {
            let (weight, client) = (this.weight, this.client);
            let number = this.is_background.then_some(this.number);
            if this.fate == Fate::Forget {
                mem::forget(seat);
                self.classes[client].forgotten(number);
            } else {
                self.classes[client].gone(number, weight);
            }
            self.waiting.leave(weight);
            return self.rest(now, task);
        }
        match seat.claim(at) {
            Ok(permit) => {
                this.permit = Some(permit);
                let weight = this.weight;
                self.waiting.leave(weight);
                self.turn_came(task);
                self.go(now, task);
            }
            Err(wait) => {
                this.seat = Some(seat);
                let (joined, lines) = (this.joined, &mut self.classes[this.client]);
                if this.is_background {
                    lines.looked(this.number);
                } else if this.number == u64::MAX && now > joined + 2 * (longest + MILLI) {
                    // What had been released when it came is claimed by now.
                    this.number = lines.background();
                }
                let wait = nanos(wait).clamp(longest / 50, longest);
                let late = self.rng.u64(0..=MILLI);
                self.waited(now, task);
                self.after(task, Step::Ask, now + wait + late);
            }
        }
    }

    /// Holds a request that goes to the promises of its class.
    fn turn_came(&mut self, task: usize) {
        let this = &self.tasks[task];
        let (weight, number) = (this.weight, this.number);
        let lines = &mut self.classes[this.client];
        if this.is_background {
            lines.looked(number);
            lines.background_goes(number, weight);
            return;
        }
        let late = lines.foreground_goes(weight, true);
        let before = lines.background().saturating_sub(number);
        let overtaken =
            (before > lines.saved_up(self.system.law == 0)).then_some(Fault::Overtaken(before));
        for fault in [late, overtaken].into_iter().flatten() {
            self.played.fault(fault);
        }
    }

    /// Notes how long a waiter has waited.
    fn waited(&mut self, now: u64, task: usize) {
        let this = &self.tasks[task];
        let wait = now - this.joined;
        self.played.wait = self.played.wait.max(wait / MILLI);
        // A wait of background has no bound but its trickle.
        if !this.is_background && wait > oracle::longest_wait(self.system, this.ahead, self.limit())
        {
            let windows = wait / self.system.window_nanos();
            self.played.fault(Fault::Starved(windows));
        }
    }

    fn poll(&mut self, now: u64, task: usize) {
        let system = self.system;
        let client = self.tasks[task].client;
        let at = self.at(client, now);
        let is_set = self.tasks[task].role == Role::SetPoller;
        let (weight, every) = if is_set {
            (system.set_weight, system.sets)
        } else {
            (system.poll_weight, system.polls)
        };
        let permit = if is_set {
            let (place, weights) = match system.set_order {
                0 => (0, [to_u32(weight), 1]),
                _ => (1, [1, to_u32(weight)]),
            };
            let taken = self.sets[client].try_acquire(at, &weights).ok();
            taken.and_then(|permit| permit.get(place))
        } else {
            self.rates[client].try_acquire_n(at, to_u32(weight)).ok()
        };
        let every = every * MILLI;
        let next = now + every / 2 + self.rng.u64(0..=every);
        if let Some(permit) = permit {
            let late = self.classes[client].foreground_goes(weight, false);
            if let Some(fault) = late {
                self.played.fault(fault);
            }
            let cost = self.true_cost(weight);
            let this = &mut self.tasks[task];
            (this.weight, this.cost, this.permit) = (weight, cost, Some(permit));
            self.go(now, task);
        } else {
            self.after(task, Step::Begin, next);
        }
    }

    /// The request goes.
    fn go(&mut self, now: u64, task: usize) {
        let system = self.system;
        let mut half = || system.trip * 5 * (100 + self.rng.u64(0..=system.spread));
        let (there, back) = (half(), half());
        self.waiting.sent(now);
        self.coming += self.tasks[task].cost.max(self.tasks[task].weight);
        self.in_flight += 1;
        let this = &mut self.tasks[task];
        (this.back, this.sent_at, this.heard) = (back, now, self.heard);
        self.after(task, Step::Arrive, now + there);
    }

    fn arrive(&mut self, now: u64, task: usize) {
        let system = self.system;
        let (weight, cost) = (self.tasks[task].weight, self.tasks[task].cost);
        self.coming -= cost.max(weight);
        // What is settled at the end is let go by its estimate.
        let asked = if system.cost == 2 { weight } else { cost };
        let index = self.rng.usize(..self.nodes.len());
        let unheard = self.out_of_order(now, task);
        let node = &mut self.nodes[index];
        let is_refused = !node.has(now, asked);
        let hint = (is_refused && system.no_hint == 0).then(|| node.back_in(now, asked));
        if is_refused {
            self.played.refused += 1;
            let is_first = self.tasks[task].sent_at < self.first_heard;
            let could = node.has(now, asked.saturating_sub(unheard));
            self.unexplained += u64::from(!is_first && !could);
        } else {
            node.charge(now, asked);
            if now >= self.steady() && now < system.run * MILLI {
                self.played.used += cost;
            }
        }
        self.played.sent += 1;
        let is_lost = self.one_in_thousand(system.lost);
        let reports = self.nodes[index].told(system, now).reports(system);
        let this = &mut self.tasks[task];
        this.node = index;
        this.response = Some(Response {
            is_refused,
            hint,
            reports: (!is_lost).then_some(reports),
        });
        let back = this.back;
        self.after(task, Step::Hear, now + back);
    }

    /// Returns what the client has sent that reports may not have in them by the order of sends: it
    /// was in flight over a reset, or overtaken by a later request. The request of `task` arrives.
    fn out_of_order(&mut self, now: u64, task: usize) -> u64 {
        let system = self.system;
        let (sent, cost) = (self.tasks[task].sent_at, self.tasks[task].cost);
        let begun = self.nodes[0].begun(now);
        let known = begun + bounds::RESETS * (system.rounding() + system.longest_trip());
        let is_over = system.kind == 0 && sent < known;
        let trips = bounds::RESETS * system.longest_trip();
        // What a report has in it that was heard before this request was sent.
        let heard = self.tasks[task].heard;
        let late = self.unheard.iter().rev().take_while(|(at, is_over, _)| {
            now - at <= trips || (*is_over && *at >= begun && *at >= heard)
        });
        let sum = late.map(|(_, _, cost)| cost).sum();
        self.tasks[task].tells = if is_over { 0 } else { now };
        if is_over || sent < self.last_arrived {
            self.unheard.push((now, is_over, cost));
        }
        self.last_arrived = self.last_arrived.max(sent);
        sum
    }

    fn hear(&mut self, now: u64, task: usize) {
        let system = self.system;
        let this = &mut self.tasks[task];
        let (Some(response), Some(permit)) = (this.response.take(), this.permit) else {
            return;
        };
        let (client, weight, cost) = (this.client, this.weight, this.cost);
        let node = this.node;
        self.in_flight -= 1;
        self.first_heard = self.first_heard.min(now);
        self.heard = self.heard.max(this.tells);
        let (rate, at) = (&self.rates[client], self.at(client, now));
        let is_settled = system.cost > 0 && !response.is_refused;
        if is_settled && system.cost == 2 {
            let node = &mut self.nodes[node];
            node.refund(now, weight.saturating_sub(cost));
            let more = cost.saturating_sub(weight);
            if more > 0 {
                node.charge(now, more);
            }
        }
        let is_before = match system.settle {
            0 => true,
            1 => false,
            _ => self.rng.bool(),
        };
        let is_late = system.settle_late > 0;
        if is_settled && is_before && !is_late {
            self.settle(now, task);
        }
        if let Some(reports) = &response.reports {
            rate.observe(at, permit, reports);
        }
        let outcome = match (response.is_refused, response.hint) {
            (false, _) => Outcome::NotThrottled,
            (true, Some(hint)) => {
                self.pause = self.pause.max(now + hint);
                Outcome::ThrottledFor(core::time::Duration::from_nanos(hint))
            }
            (true, None) => Outcome::Throttled,
        };
        rate.record(at, permit, outcome);
        if is_settled && is_late {
            let later = now + self.rng.u64(0..=system.settle_late * MILLI);
            let settler = self.spawn(client, Role::Settler, later);
            let this = &mut self.tasks[settler];
            (this.cost, this.permit) = (cost, Some(permit));
        } else if is_settled && !is_before {
            self.settle(now, task);
        }
        if response.reports.is_some() {
            self.check(now, client);
        }
        if response.is_refused {
            let hint = response.hint.unwrap_or(0);
            let more = SECOND.max(system.window_nanos() / 20);
            let sleep = hint + self.rng.u64(0..=more);
            self.after(task, Step::Begin, now + sleep);
        } else {
            self.rest(now, task);
        }
    }

    /// The pause between two requests.
    fn rest(&mut self, now: u64, task: usize) {
        let pause = self.rng.u64(0..=self.system.pause * 1_000);
        let least = match self.tasks[task].role {
            Role::Poller => self.system.polls * MILLI,
            Role::SetPoller => self.system.sets * MILLI,
            _ => 0,
        };
        self.after(task, Step::Begin, now + pause.max(least));
    }

    fn settle(&mut self, now: u64, task: usize) {
        let this = &self.tasks[task];
        let (client, cost) = (this.client, this.cost);
        if let Some(permit) = this.permit {
            let at = self.at(client, now);
            // A line that is full settles nothing: the next report says it.
            let _full = self.rates[client].settle(at, permit, to_u32(cost));
        }
    }

    /// Looks at a snapshot.
    fn check(&mut self, now: u64, client: usize) {
        let system = self.system;
        let shown = self.rates[client].snapshot(self.at(client, now));
        let lines = &self.classes[client];
        let is_whole = system.law == 1 && system.cost == 0 && system.sets == 0;
        let untrue = lines.shown(shown.waiting, shown.background, is_whole);
        if let Some(fault) = untrue {
            self.played.fault(fault);
        }
        let declared = shown.declared.filter(|declared| !declared.given_up);
        let Some(declared) = declared else {
            return;
        };
        let other = (system.limit * system.change_to / 100 / system.nodes).max(1) * system.nodes;
        let limit = declared.limit;
        let is_known =
            system.family == 7 || system.unusable > 0 || [system.limit, other].contains(&limit);
        if !is_known || !(0.0..=limit as f64).contains(&declared.remaining) {
            let text = format!("{} of {limit} left", declared.remaining);
            self.played.fault(Fault::Snapshot(text));
        }
        if shown.fill_rate > oracle::highest_rate(limit) {
            let text = format!("{}/s of {limit}", shown.fill_rate);
            self.played.fault(Fault::Snapshot(text));
        }
        // In tokens as requests are estimated to cost, of which each may cost less.
        let most = limit as f64 * if system.cost > 0 { 4.0 } else { 1.0 };
        if shown.available > most + 1.0 {
            let text = format!("{} of {limit} at once", shown.available);
            self.played.fault(Fault::Snapshot(text));
        }
        if self.in_flight == 0 && system.is_counted() && self.nodes[0].is_settled(system, now) {
            let left = self.nodes[0].left(now) as f64;
            let off = (left - declared.remaining).abs();
            self.played.off = self.played.off.max(off);
            if off > oracle::longest_off(system, limit) {
                self.played.fault(Fault::Account(left, declared.remaining));
            }
        }
    }
}
