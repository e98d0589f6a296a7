//! One member of a scope, as a state machine: no clock, no network. The task feeds it both.

use core::time::Duration;

use paceline::Timestamp;

use crate::alone::{Alone, left_of};
use crate::demand::Demand;
use crate::fault::EngineFault;
use crate::pool::{Backlog, Pool, Throttles, after, since};
use crate::pour::Pour;
use crate::settings::{Away, Reach, Settings, in_milli};
use crate::snapshot::{BudgetSnapshot, Standing};
use crate::wire::{Answer, Ask, Milli, Report};

/// How often the pool is looked at while requests come.
const TICK: Duration = Duration::from_millis(10);
/// How long tokens that a member granted itself are good: a member that is stopped wakes up with
/// none.
const ALONE_FOR: Duration = Duration::from_millis(250);
/// How much of its share a pool holds at once.
const POOLED: Duration = Duration::from_millis(50);
/// How soon a new member asks again, or an eighth of the time between two asks if that is longer.
const FIRST_PERIOD: Duration = Duration::from_millis(100);
/// The first wait after a fault, and the longest.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const LAST_BACKOFF: Duration = Duration::from_millis(250);
/// How many round trips are remembered. The shortest counts: a late one may be late for reasons of
/// this process.
const TRIPS: usize = 8;
/// An engine that forgets a member twice within this time is emptied again and again.
const FORGETFUL: Duration = Duration::from_secs(2);
/// For how long an engine that forgot a member has to know it again, before the member takes its
/// word for what it may send alone.
const AGREED: Duration = Duration::from_secs(60);
/// After how long without a token a member with requests says so.
const STARVED: Duration = Duration::from_secs(1);

/// An ask that has no answer yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    ask: Ask,
    made: Timestamp,
    throttles: Throttles,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Member {
    settings: Settings,
    standing: Standing,
    seq: u64,
    pending: Option<Pending>,
    /// What the pool would hold if nothing had been spent since it was last looked at.
    expected: u32,
    /// Tokens that were taken and put back: they are spent once, when they are taken again.
    put_back: u32,
    spent: u64,
    pour: Pour,
    demand: Demand,
    alone: Alone,
    answer: Option<Answer>,
    /// What it may send alone, by the last answer of an engine that knew it for long enough.
    part: Milli,
    agrees_from: Timestamp,
    answered_at: Timestamp,
    lease_until: Timestamp,
    next_ask: Timestamp,
    /// The engine's load allows no ask before this.
    free_from: Timestamp,
    last_ask: Timestamp,
    busy_until: Timestamp,
    failures: u32,
    trips: [Duration; TRIPS],
    /// Until when a plan is spent, as the engine was told.
    shut_told: Timestamp,
    heard: usize,
    reach: Reach,
    /// How many times it has asked since it joined, or was idle.
    young: u32,
    /// Since it was last forgotten, and until when an engine that forgets is not believed.
    forgotten_at: Option<Timestamp>,
    doubted_until: Timestamp,
    /// When a token was last spent, or no request waited.
    served_at: Timestamp,
    pub(crate) told: BudgetSnapshot,
}

impl Member {
    pub(crate) fn new(settings: Settings, now: Timestamp) -> Self {
        Self {
            settings,
            standing: Standing::Joining,
            seq: 0,
            pending: None,
            expected: 0,
            put_back: 0,
            spent: 0,
            pour: Pour::default(),
            demand: Demand::new(now),
            alone: Alone::new(now, settings.unseen()),
            answer: None,
            part: 0,
            agrees_from: Timestamp::ZERO,
            answered_at: now,
            lease_until: Timestamp::ZERO,
            next_ask: now,
            free_from: now,
            last_ask: now,
            busy_until: now,
            failures: 0,
            trips: [Duration::MAX; TRIPS],
            shut_told: Timestamp::ZERO,
            heard: 0,
            reach: settings.reach(Duration::ZERO, Duration::ZERO),
            young: 0,
            forgotten_at: None,
            doubted_until: Timestamp::ZERO,
            served_at: now,
            told: BudgetSnapshot::default(),
        }
    }

    /// Returns until when the service is shut, and nothing is granted.
    fn shut_until(&self) -> Option<Timestamp> {
        let shut = self.answer.and_then(|answer| answer.shut)?;
        Some(after(self.answered_at, shut))
    }

    /// Returns whether a token of an equal part takes longer than a lease is good, or none is
    /// minted. Then it holds none that no request waits for: others may need it.
    fn is_scarce(&self) -> bool {
        self.answer.is_some_and(|answer| {
            tokens_in(equal_part(answer), self.reach.valid) <= 1 || answer.shut.is_some()
        })
    }

    fn share(&self) -> Milli {
        self.answer.map_or(0, |answer| answer.share)
    }

    /// Looks at the pool: counts what was spent, ends a lease that has run out, and pours what is
    /// due.
    pub(crate) fn tick(&mut self, now: Timestamp, pool: &Pool) {
        let available = pool.available();
        let spent = self.expected.saturating_sub(available);
        let back = available.saturating_sub(self.expected);
        self.put_back = self.put_back.saturating_add(back);
        let again = spent.min(self.put_back);
        self.put_back = self.put_back.saturating_sub(again);
        let spent = spent.saturating_sub(again);
        self.expected = available;
        self.spent = self.spent.saturating_add(u64::from(spent));
        self.told.spent = self.told.spent.saturating_add(u64::from(spent));
        self.demand.took(spent);
        if spent > 0 || pool.has_backlog() {
            self.busy_until = after(now, self.reach.heartbeat());
        }
        if spent > 0 || now >= self.busy_until {
            self.served_at = now;
        }
        if let Standing::Leased = self.standing {
            if now >= self.lease_until || self.is_spent(now, available) {
                self.discard(pool);
                self.standing = Standing::Joining;
            }
        }
        self.decide(now, pool);
        let room = self.level().saturating_sub(pool.available());
        let poured = match self.standing {
            Standing::Alone => self.alone_tick(now, room, pool),
            _ => self.pour.due(now, room),
        };
        if let Standing::Open = self.standing {
            if now < pool.shut_until() {
                pool.close();
            } else {
                pool.open();
            }
        }
        pool.pour(poured);
        self.expected = self.expected.saturating_add(poured);
        pool.set_hint(self.hint(now));
        pool.set_rate(self.rate());
    }

    /// Returns `true` if there is nothing left of the lease, and for twice the length that it would
    /// have without the engine's load the engine has not answered.
    fn is_spent(&self, now: Timestamp, available: u32) -> bool {
        self.failures > 0
            && available == 0
            && self.pour.reserve() == 0
            && since(self.answered_at, now) >= self.reach.near.saturating_mul(2)
    }

    /// Goes its own way if the engine is away.
    fn decide(&mut self, now: Timestamp, pool: &Pool) {
        if self.standing != Standing::Joining || self.failures == 0 {
            return;
        }
        self.standing = match self.settings.away {
            Away::Alone => {
                self.alone = Alone::new(now, self.alone_share(now));
                Standing::Alone
            }
            Away::Closed => {
                pool.close();
                Standing::Closed
            }
            Away::Open => {
                pool.open();
                Standing::Open
            }
        };
    }

    /// Returns what is left of the part that it may send alone.
    fn part_left(&self, now: Timestamp) -> Milli {
        left_of(self.part, since(self.answered_at, now))
    }

    /// Returns what it sends alone: what is left of its part, and no less than its safe rate.
    fn alone_share(&self, now: Timestamp) -> Milli {
        if self.answer.is_none() {
            return self.settings.unseen();
        }
        let safe = self.settings.safe.map_or(1, in_milli);
        self.part_left(now).max(safe)
    }

    fn alone_tick(&mut self, now: Timestamp, room: u32, pool: &Pool) -> u32 {
        if pool.has_throttles() {
            self.alone.throttle(now);
            let told = pool.throttles();
            self.told.throttled = self.told.throttled.saturating_add(told.count);
        }
        self.alone.set_share(self.alone_share(now));
        pool.good_until(after(now, ALONE_FOR));
        let minted = self.alone.mint(now).min(room);
        if now < pool.shut_until() { 0 } else { minted }
    }

    /// Takes back all that is not spent. It goes to no one: its time is over.
    fn discard(&mut self, pool: &Pool) {
        pool.close();
        let reserve = self.pour.withdraw(u32::MAX);
        let pooled = pool.withdraw(u32::MAX);
        let lost = u64::from(reserve).saturating_add(u64::from(pooled));
        self.told.expired = self.told.expired.saturating_add(lost);
        self.expected = self.expected.saturating_sub(pooled);
    }

    /// Returns how many tokens may be in the pool at once.
    fn level(&self) -> u32 {
        let share = match self.standing {
            Standing::Alone => self.alone.rate(),
            _ => self.share().max(self.demand.rate()),
        };
        tokens_in(share, POOLED).max(1)
    }

    /// Returns what requests may expect: the share, and if that is not what limits them no less
    /// than an equal part of the fleet's rate.
    fn rate(&self) -> Milli {
        match (self.standing, self.answer) {
            (Standing::Alone, _) => self.alone.rate(),
            (Standing::Leased, Some(answer)) => answer.share.max(equal_part(answer)),
            _ => 0,
        }
    }

    fn hint(&self, now: Timestamp) -> Duration {
        match self.standing {
            Standing::Alone => self.alone.next().max(TICK),
            Standing::Leased => {
                let opens = self.shut_until().map(|until| since(now, until));
                opens.unwrap_or_default().max(TICK)
            }
            _ => since(now, self.next_ask).max(TICK),
        }
    }

    /// Returns `true` if it is time to ask.
    pub(crate) fn is_due(&self, now: Timestamp, pool: &Pool) -> bool {
        if now < self.free_from {
            return false;
        }
        if now >= self.next_ask {
            return true;
        }
        let is_shut = self.shut_until().is_some_and(|until| now < until);
        let starved =
            !is_shut && pool.has_backlog() && self.pour.reserve() == 0 && pool.available() == 0;
        let period = if pool.has_throttles() || !self.is_scarce() {
            self.reach.period()
        } else {
            self.reach.heartbeat()
        };
        let is_late = || since(self.last_ask, now).saturating_mul(2) >= self.first_period(period);
        self.failures == 0
            && (pool.has_opened()
                || pool.shut_until() > self.shut_told
                || ((pool.has_throttles() || starved) && is_late()))
    }

    /// Returns the ask to make now: the last one again, if that is not too old and has no answer.
    pub(crate) fn ask(&mut self, now: Timestamp, pool: &Pool) -> Ask {
        self.last_ask = now;
        self.free_from = after(now, self.reach.gap);
        self.young = if now >= self.busy_until {
            0
        } else {
            self.young.saturating_add(1)
        };
        let fresh = |pending: &Pending| since(pending.made, now) < pending.ask.reach.valid;
        let mut pending = match self.pending.filter(fresh) {
            Some(pending) => pending,
            None => self.make(now, pool),
        };
        if pending.throttles.count > 0 {
            pending.ask.report.age = since(pending.throttles.last_sent, now);
        }
        if pending.throttles.done > Timestamp::ZERO {
            let done = since(pending.throttles.done, now);
            pending.ask.report.done = done.max(Duration::from_micros(1));
        }
        self.pending = Some(pending);
        self.told.asks = self.told.asks.saturating_add(1);
        pending.ask
    }

    fn make(&mut self, now: Timestamp, pool: &Pool) -> Pending {
        let backlog = pool.backlog();
        let demand = self.demand.look(now, backlog, self.share());
        let leased = self.standing == Standing::Leased;
        let held = if leased {
            pool.available().saturating_add(self.pour.reserve())
        } else {
            0
        };
        // A quarter more than is needed, so that the next lease comes ahead of need.
        let target = tokens_in(demand.saturating_add(demand.div_ceil(4)), self.reach.lease).max(1);
        let shut_until = pool.shut_until();
        let first = pool.line.head_weight();
        let (target, most) = if now < shut_until {
            (0, 0)
        } else if self.is_scarce() {
            let Backlog { waiting, refused } = backlog;
            let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
            let needed = target.min(waiting.max(refused.into()));
            // All of the request that may knock.
            let shut = self.answer.is_some_and(|answer| answer.shut.is_some());
            let needed = needed.max(if shut { first } else { 0 });
            (needed, needed)
        } else {
            (target, target.saturating_mul(2).saturating_add(1))
        };
        let back = if leased && held > most {
            self.withdraw(held.saturating_sub(target), pool)
        } else {
            0
        };
        let throttles = pool.throttles();
        self.told.throttled = self.told.throttled.saturating_add(throttles.count);
        let is_told = shut_until == self.shut_told;
        self.shut_told = shut_until;
        let report = Report {
            spent: core::mem::take(&mut self.spent),
            throttled: throttles.count,
            age: Duration::ZERO,
            trip: throttles.trip,
            pause: since(now, throttles.pause_until),
            done: Duration::ZERO,
            shut: if is_told {
                Duration::ZERO
            } else {
                since(now, shut_until)
            },
        };
        self.seq = self.seq.saturating_add(1);
        let ask = Ask {
            seq: self.seq,
            leave: false,
            want: target.saturating_sub(held),
            held: held.saturating_sub(back),
            back,
            demand,
            allowance: pool.allowance().unwrap_or(self.settings.allowance),
            report,
            reach: self.reach,
            alone: self.part_left(now),
            known: self.answer.map_or(0, |answer| answer.rate),
            head: first,
        };
        Pending {
            ask,
            made: now,
            throttles,
        }
    }

    fn withdraw(&mut self, tokens: u32, pool: &Pool) -> u32 {
        let reserve = self.pour.withdraw(tokens);
        let pooled = pool.withdraw(tokens.saturating_sub(reserve));
        self.expected = self.expected.saturating_sub(pooled);
        reserve.saturating_add(pooled)
    }

    /// Returns the last word of a member that leaves: what it did not spend goes back.
    pub(crate) fn leave(&mut self, now: Timestamp, pool: &Pool) -> Ask {
        pool.close();
        self.pending = None;
        let mut pending = self.make(now, pool);
        if let Standing::Leased = self.standing {
            let more = self.withdraw(u32::MAX, pool);
            pending.ask.back = pending.ask.back.saturating_add(more);
        }
        Ask {
            leave: true,
            want: 0,
            held: 0,
            ..pending.ask
        }
    }

    /// Takes the lease that was asked for at `asked`. Its time began then, whenever the answer was
    /// read.
    pub(crate) fn answered(
        &mut self,
        now: Timestamp,
        asked: Timestamp,
        answer: Answer,
        pool: &Pool,
    ) {
        if self.is_forgotten(now, answer) {
            self.pending = None;
            self.failed(now, EngineFault::Forgets, pool);
            return;
        }
        self.tick(now, pool);
        self.pending = None;
        self.failures = 0;
        self.told.fault = None;
        self.answer = Some(answer);
        if now >= self.agrees_from {
            self.part = answer.alone;
        }
        self.answered_at = now;
        self.trips[self.heard % TRIPS] = since(asked, now);
        self.heard = self.heard.wrapping_add(1);
        // Three of the leases that the engine asks for: it counts them for as long.
        let valid = self.reach.valid.max(answer.lease.saturating_mul(3));
        let until = after(asked, valid);
        let trip = self.trips.iter().min().copied().unwrap_or_default();
        self.reach = self.settings.reach(trip, answer.lease);
        if answer.joined {
            self.young = 0;
            self.shut_told = Timestamp::ZERO;
        }
        self.free_from = after(asked, answer.wait.min(self.reach.gap.saturating_mul(2)));
        if now >= until {
            self.told.expired = self.told.expired.saturating_add(u64::from(answer.granted));
            self.next_ask = now;
            return;
        }
        if self.standing != Standing::Leased {
            // What it granted itself is not the fleet's.
            self.discard(pool);
            self.standing = Standing::Leased;
        }
        self.told.granted = self.told.granted.saturating_add(u64::from(answer.granted));
        self.lease_until = until;
        pool.good_until(until);
        let period = self.next_period(now);
        match answer.shut {
            Some(_) if answer.granted > 0 => pool.set_knock(Some(now)),
            Some(_) => {}
            None => pool.set_knock(None),
        }
        self.next_ask = if let Some(shut) = answer.shut.filter(|_| now < self.busy_until) {
            after(asked, shut.min(self.reach.heartbeat()))
        } else if answer.start > Duration::ZERO {
            after(asked, answer.start) // it stands in line
        } else {
            after(asked, jittered(period))
        };
        let idle = now >= self.busy_until;
        let over = if idle { self.reach.period() } else { period };
        self.pour.load(now, answer.granted, over);
        self.tick(now, pool);
    }

    /// Returns `true` if the engine was emptied since the last answer, or is emptied again and
    /// again.
    ///
    /// Then it has little to grant, and a member that goes on alone does better at the share that
    /// it had before. One that would be closed or open takes what there is.
    fn is_forgotten(&mut self, now: Timestamp, answer: Answer) -> bool {
        let forgotten = answer.joined && answer.granted == 0 && self.answer.is_some();
        if answer.joined && self.answer.is_some() {
            self.young = 0;
            self.agrees_from = after(now, AGREED);
        }
        if forgotten {
            let last = self.forgotten_at.replace(now);
            if last.is_some_and(|last| since(last, now) < FORGETFUL) {
                self.doubted_until = after(now, FORGETFUL);
            }
        }
        forgotten || (self.settings.away == Away::Alone && now < self.doubted_until)
    }

    /// Returns what is left of `period` for a member that is new, or was idle: it asks soon, and
    /// then twice as late each time.
    fn first_period(&self, period: Duration) -> Duration {
        let eighth = period.checked_div(8).unwrap_or(period);
        let first = FIRST_PERIOD.max(eighth);
        period.min(first.saturating_mul(1_u32.checked_shl(self.young).unwrap_or(u32::MAX)))
    }

    /// Returns the time to the next ask: seldom if idle, or if the share is a token in a long time.
    fn next_period(&self, now: Timestamp) -> Duration {
        let (period, heartbeat) = (self.reach.period(), self.reach.heartbeat());
        if now >= self.busy_until {
            return heartbeat;
        }
        let (period, heartbeat) = (self.first_period(period), self.first_period(heartbeat));
        let token = 1_000_000_000_000_u64.checked_div(self.share().max(1));
        let token = Duration::from_nanos(token.unwrap_or(u64::MAX));
        token.clamp(period.min(heartbeat), heartbeat)
    }

    /// Takes note of an ask that came to nothing.
    pub(crate) fn failed(&mut self, now: Timestamp, fault: EngineFault, pool: &Pool) {
        self.failures = self.failures.saturating_add(1);
        self.shut_told = Timestamp::ZERO;
        self.told.fault = Some(fault);
        self.told.faults = self.told.faults.saturating_add(1);
        if let EngineFault::Broken = fault {
            self.pending = None;
        }
        let doublings = self.failures.saturating_sub(1).min(8);
        let wait = FIRST_BACKOFF
            .saturating_mul(1 << doublings)
            .min(LAST_BACKOFF);
        self.next_ask = after(now, jittered(wait));
        self.tick(now, pool);
    }

    /// Returns how long nothing is to be done, unless a request says so.
    pub(crate) fn pause(&self, now: Timestamp) -> Duration {
        let heartbeat = self.reach.heartbeat();
        let most = match (self.standing, self.pour.next(now)) {
            _ if now >= self.busy_until => heartbeat,
            (Standing::Leased, next) => next.map_or(heartbeat, |next| next.max(TICK)),
            _ => TICK,
        };
        let ask = since(now, self.next_ask.max(self.free_from));
        ask.min(most).max(Duration::from_millis(1))
    }

    /// Returns what a snapshot shows.
    pub(crate) fn snapshot(&self, now: Timestamp, pool: &Pool) -> BudgetSnapshot {
        let starved = self.standing == Standing::Leased && since(self.served_at, now) >= STARVED;
        BudgetSnapshot {
            standing: if starved {
                Standing::Starved
            } else {
                self.standing
            },
            fault: self
                .told
                .fault
                .or(starved.then_some(EngineFault::GrantsNothing)),
            member: pool.member(),
            share: self.share(),
            rate: self.answer.map_or(0, |answer| answer.rate),
            allowance: self.answer.map_or(0, |answer| answer.allowance),
            shut: self.answer.and_then(|answer| answer.shut),
            knocks: self.answer.is_some_and(|answer| answer.knocks),
            members: self.answer.map_or(0, |answer| answer.members),
            held: pool.available().saturating_add(self.pour.reserve()),
            demand: self.demand.rate(),
            ..self.told
        }
    }
}

/// Returns an equal part of the fleet's rate.
fn equal_part(answer: Answer) -> Milli {
    let equal = answer.rate.checked_div(u64::from(answer.members));
    equal.unwrap_or(0)
}

/// Returns the tokens of `span` at `rate`, rounded up.
fn tokens_in(rate: Milli, span: Duration) -> u32 {
    let tokens = u128::from(rate)
        .saturating_mul(span.as_nanos())
        .div_ceil(1_000_000_000_000);
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

/// Returns nine to eleven tenths of `span`: members that ask in step would find the same of them
/// first each time.
pub(crate) fn jittered(span: Duration) -> Duration {
    let percent = fastrand::u32(90..=110);
    span.saturating_mul(percent)
        .checked_div(100)
        .unwrap_or(span)
}

#[cfg(test)]
#[path = "member/tests.rs"]
mod tests;
