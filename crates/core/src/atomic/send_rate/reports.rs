//! Declared limits: what a service reports, which requests it bars, and what rate follows from it.
//!
//! A limiter that limits is seen through [`Reports`] where declared limits have a say. Of a law
//! that does not listen each function says that nothing is declared.
//!
//! # States
//!
//! | state | law's state | limits declared | a request goes |
//! |---|---|---|---|
//! | first contact | as at the start | none | with the first burst, or in its turn |
//! | unbound | limits as good as nothing | none | as it comes |
//! | declared | any | one or more | in its turn, if each limit has room |
//! | given up | any other | none | in its turn |
//!
//! | operation | `sent` | `first` | limits |
//! |---|---|---|---|
//! | send `n` | `+ n`, by one swap, if each limit has room | | those that a new window makes are begun |
//! | take the last send back | `− n`, unless there was one since | | |
//! | go before the turn | | `+ 1`, before the request goes | |
//! | settle | `+` what it cost more, unless a report has counted it | | cheaper, if it cost half |
//! | report, throttle | | | each replaced as a whole |
//! | forget | | 0 | none |
//!
//! A send is one compare-and-swap of `sent`, from the position that was compared with the limits.
//! After a lost swap the new position is compared again. So of two sends with room for one, one
//! goes. The permit carries the position, so that reports are compared by the order of their sends.
//!
//! The rate follows from the limits, `sent` and the time, so any thread that looks may install the
//! rate. The gate makes threads look every 50 ms and after each report. A thread that stops between
//! a report and the change of rate leaves that change to the next recorder or waiter.

use core::time::Duration;

use super::SendRate;
use super::acquire::{Engaged, FIRST_SEND};
use super::behind::Behind;
use super::gate::{GateWord, LONGEST_QUIET};
use super::limits::{Limits, Phase};
use super::permit::{Order, SendPermit, WeightError};
use super::snapshot::{DeclaredLimit, whole};
use crate::Timestamp;
use crate::atomic::sync::Ordering::Relaxed;
use crate::bits::LAST_TIME;
use crate::fixed::{Rate, SECOND};
use crate::law::declared::{Declared, Plan, Refused, ResetAt, Standing, Told};
use crate::law::{Ledger, LimitReports, Observed, Reset, State};
use crate::line::{Head, Line, Place, TOKEN};

/// So long after the start a request goes for which others have left no turn.
const FIRST_SILENCE: u64 = 20 * SECOND;

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl SendRate {
    /// Takes in what a service declares in a response to the request of `permit`.
    ///
    /// Call it when the headers of the response come, before its outcome is
    /// [recorded](Self::record), which may be much later: at the end of a long body, say. Only a
    /// limiter of [`ControlLaw::Declared`](crate::ControlLaw::Declared) listens. Reports may come
    /// in any order; wrong ones are ignored and counted.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use paceline::{
    ///     ControlLaw, SendRate, Timestamp, law::{LimitReport, LimitReports, Observed, Reset},
    /// };
    ///
    /// let rate = SendRate::new(ControlLaw::Declared, Timestamp::ZERO);
    /// let permit = rate.try_acquire(Timestamp::ZERO).expect("the first one goes");
    /// let now = Timestamp::from_nanos(200_000_000);
    /// let report = LimitReport::new(59).limit(60).reset(Reset::In(Duration::from_secs(60)));
    /// let observed = rate.observe(now, permit, &LimitReports::from(report));
    /// assert_eq!(observed, Observed::Declared);
    /// assert!((0.9..1.1).contains(&rate.snapshot(now).fill_rate));
    /// ```
    #[allow(
        clippy::must_use_candidate,
        reason = "called for its effect, which the models' atomics hide"
    )]
    pub fn observe(&self, now: Timestamp, permit: SendPermit, reports: &LimitReports) -> Observed {
        let (Some(obeyed), false) = (self.law.obeys(), reports.is_empty()) else {
            return Observed::Nothing;
        };
        let elapsed = self.law.elapsed(now);
        let engaged = self.about_to_limit();
        let mut observed = Observed::Nothing;
        for report in reports.iter().filter(|report| report.counts() == obeyed) {
            let Some(limits) = self.law.make_limits() else {
                break;
            };
            let sent = engaged.sent();
            let told = Told {
                now: elapsed,
                sent_at: self.law.sent_at(permit, elapsed),
                order: permit.order(sent),
                weight: permit.weight(),
                sent,
                policy: report.policy_name(),
                limit: report.declared_limit(),
                remaining: report.remaining(),
                window: report.declared_window().map(nanos),
                reset: report.declared_reset().map(|reset| match reset {
                    Reset::In(time) => ResetAt::In(nanos(time)),
                    Reset::At(time) => ResetAt::At(nanos(time).min(LAST_TIME)),
                }),
                refills: report.declared_refills(),
                date: reports.date().map(|date| nanos(date).min(LAST_TIME)),
            };
            let taken = limits.report(elapsed, told.policy, |ledger| ledger.report(&told));
            observed = observed.max(taken.unwrap_or(Observed::Nothing));
        }
        let ignored = u64::from(reports.ignored());
        if ignored > 0 {
            let limits = self.law.make_limits();
            limits.inspect(|limits| limits.ignore(ignored));
        }
        if observed > Observed::Nothing {
            self.law.unheard().inspect(|unheard| unheard.hear());
            // After the change, so that no thread notes that the rate before stays: for 50 ms,
            // where this one finds the same rate. No test and no model sees that.
            self.gate.disturb();
            engaged.adaptation().follow(elapsed);
            engaged.waking().due(elapsed);
        }
        observed
    }

    /// Returns the declared limit of which the least is left, if a service has declared one.
    pub(crate) fn declared_limit(&self, now: Timestamp) -> Option<DeclaredLimit> {
        let (now, sent) = (self.law.elapsed(now), self.words()?.sent());
        let limits = self.law.limits()?;
        // One that was given up is shown if there is no other.
        let all = !limits.is_any_declared();
        let ledgers = limits.known().filter(|ledger| all || ledger.is_declared());
        let standings = ledgers.map(|ledger| ledger.standing(now, sent));
        let least = standings.min_by_key(Standing::share_left)?;
        let Standing { ledger, .. } = &least;
        Some(DeclaredLimit {
            dimension: self.law.obeys()?,
            policy: ledger.policy,
            limit: ledger.limit,
            window: Duration::from_nanos(ledger.window),
            refills: least.refills(),
            remaining: whole(least.level().0),
            resets_in: least.resets_in().map(Duration::from_nanos),
            heard_ago: Duration::from_nanos(now.saturating_sub(ledger.heard_at)),
            contradicted: ledger.is_contradicted(now),
            given_up: ledger.given_up,
        })
    }

    /// Returns how much is left of the declared limit of which the least is, in 2⁻³² of it; 0 if
    /// the report on the request of `permit` says that it was too much. `None` without a limit.
    pub(crate) fn share_left(&self, now: Timestamp, permit: SendPermit) -> Option<u64> {
        let (now, sent) = (self.law.elapsed(now), self.words()?.sent());
        let shares = self.law.limits()?.ledgers().map(|ledger| {
            let told = ledger.told_left(permit.order(sent));
            match told {
                Some(left) if left < u64::from(permit.weight()) => 0,
                _ => ledger.as_told(now, sent).share_left().max(1),
            }
        });
        shares.min()
    }

    /// Returns how many reports were ignored: wrong values, limits beyond the fourth, and reports
    /// that lost to others a thousand times.
    #[must_use]
    pub fn ignored_reports(&self) -> u64 {
        self.law.limits().map_or(0, Limits::ignored)
    }
}

/// A limiter that limits, as declared limits see it.
#[derive(Clone, Copy)]
pub(super) struct Reports<'a>(&'a Engaged<'a>);

impl Engaged<'_> {
    /// Returns what a service has declared, and what follows from it.
    #[inline]
    pub(super) const fn reports(&self) -> Reports<'_> {
        Reports(self)
    }
}

impl<'a> Reports<'a> {
    fn limits(self) -> Option<&'a Limits> {
        self.0.law.limits()
    }

    /// Returns the tokens that declared limits leave over for background, and the nanoseconds until
    /// they leave `tokens` over.
    pub(super) fn spare(self, now: u64, tokens: u64) -> (u64, u64) {
        let all = (u64::MAX, 0);
        let Some(limits) = self.limits() else {
            return all;
        };
        let (sent, promised) = (self.0.sent(), limits.charged(self.asked_for()));
        limits.ledgers().fold(all, |(spare, wait), ledger| {
            let standing = ledger.standing(now, sent);
            let until = standing.until_spare(promised, tokens);
            (spare.min(standing.spare(promised)), wait.max(until))
        })
    }

    /// Returns the tokens that belong to requests which have not gone yet, in line or behind it.
    fn asked_for(self) -> u64 {
        let open = self.0.line().open_tokens();
        let behind = self.0.beside().behind.get();
        open.saturating_add(behind.map_or(0, Behind::unclaimed))
    }

    /// Counts a request that took `weight` tokens as sent, and returns its order; or how long it is
    /// barred, in nanoseconds. Then nothing is counted. If its turn `has_come`, a bar is looked at
    /// once more, since time may have lifted it.
    ///
    /// A limiter that obeys no declared limits counts no sends and bars none.
    #[inline]
    pub(super) fn sent(self, elapsed: u64, weight: u32, has_come: bool) -> Result<Order, u64> {
        if !self.0.law.listens() {
            return Ok(Order::CHARGED);
        }
        let sent = self.send(elapsed, weight);
        if sent.is_ok() || !has_come {
            return sent;
        }
        self.0.adaptation().catch_up(elapsed);
        let sent = self.send(elapsed, weight);
        if let (Err(_), Some(limits)) = (sent, self.limits()) {
            let others = self.unclaimed(elapsed).saturating_sub(weight.into());
            limits.note_barred(elapsed, others);
        }
        sent
    }

    fn send(self, elapsed: u64, weight: u32) -> Result<Order, u64> {
        // Relaxed: a chain of swaps, which is totally ordered, each from the position that the
        // limits were compared with. So of two sends of which one has room one goes. A report is
        // compared with positions that its own request was sent after. Models:
        // `declared::two_sends_at_the_edge_do_not_both_go`,
        // `declared::a_report_beside_a_send_counts_it_or_not`.
        let word = &self.0.beside().sent;
        let Some(limits) = self.limits() else {
            let before = word.fetch_add(weight.into(), Relaxed);
            return Ok(Order::at(before.wrapping_add(weight.into())));
        };
        let mut sent = word.load(Relaxed);
        loop {
            if let Some(wait) = limits.barred(elapsed, sent, weight) {
                return Err(wait);
            }
            let next = sent.wrapping_add(weight.into());
            match word.compare_exchange_weak(sent, next, Relaxed, Relaxed) {
                Ok(_) => return Ok(Order::at(next)),
                Err(actual) => sent = actual,
            }
        }
    }

    /// Takes the send of `permit` back, which has not been made. Once there is a later one, the
    /// send stays counted until the next report.
    pub(super) fn unsend(self, permit: SendPermit) {
        if permit.is_ordered() {
            let sent = self.0.sent();
            let before = sent.wrapping_sub(permit.weight().into());
            if permit.order(sent) == sent {
                // Relaxed: see `send`. Model:
                // `declared::a_set_that_takes_back_beside_a_send_is_not_counted`.
                let word = &self.0.beside().sent;
                let _ = word.compare_exchange(sent, before, Relaxed, Relaxed);
            }
        }
    }

    /// Returns `Ok` if the declared limits let a request of `weight` go, and else how long they bar
    /// the request, in nanoseconds. Writes nothing that counts.
    pub(super) fn may_go(self, elapsed: u64, weight: u32) -> Result<(), u64> {
        let barred = |limits: &Limits| limits.barred(elapsed, self.0.sent(), weight);
        self.limits().and_then(barred).map_or(Ok(()), Err)
    }

    /// Refuses a weight above a limit that the service has declared: it can never go.
    pub(super) fn check(self, weight: u32) -> Result<(), WeightError> {
        match self.limits().and_then(|limits| limits.least(true)) {
            Some(capacity) if weight > capacity => {
                Err(WeightError::AboveCapacity { weight, capacity })
            }
            _ => Ok(()),
        }
    }

    /// Returns how many tokens of a place for `weight` its turn does not wait for: what it takes
    /// beyond the least limit that is declared, which may have shrunk since the place was taken.
    /// Before the first report (rule 1) a token stands for a request of any weight.
    pub(super) fn over(self, weight: u32) -> u64 {
        if weight == 1 {
            return 0;
        }
        let first = (self.phase() == Phase::FirstContact).then_some(1);
        let least = first.or_else(|| self.limits()?.least(false));
        least.map_or(0, |least| weight.saturating_sub(least.max(1)).into())
    }

    /// Corrects the sends once the request of `permit` has turned out to cost `more` tokens than it
    /// took. Returns whether the bucket is to be left alone: any limit is declared, so that the
    /// rate follows from what is left, or nothing has been heard yet.
    ///
    /// A report of that request or a later one has the true cost in it. Until one has been taken, a
    /// debit counts as a send of as much now; a credit waits for the report.
    pub(super) fn settle(self, permit: SendPermit, more: i64) -> bool {
        let is_unheard = self.phase() == Phase::FirstContact;
        let Some(limits) = self.limits() else {
            return is_unheard;
        };
        let order = permit.order(self.0.sent());
        let (mut is_any_declared, mut is_counted) = (false, true);
        for ledger in limits.ledgers() {
            is_any_declared = true;
            is_counted &= ledger.counts(order);
        }
        if more.saturating_mul(2) <= 0_i64.saturating_sub(permit.weight().into()) {
            limits.each(Ledger::cheaper);
        }
        if let (true, false, Ok(more)) = (permit.is_ordered(), is_counted, u64::try_from(more)) {
            // Relaxed: see `send`. Model: `sets::two_declared_settlements_both_count`.
            self.0.beside().sent.fetch_add(more, Relaxed);
        }
        is_any_declared || is_unheard
    }

    /// Lets the rate follow what has changed of the declared limits, if there are any.
    pub(super) fn follow(self, elapsed: u64) {
        if self.limits().is_some() {
            // After the change: see `observe`.
            self.0.gate.disturb();
            self.0.adaptation().follow(elapsed);
        }
    }

    /// Returns what declared limits make of the rate at `now`, `None` if the law decides alone.
    pub(super) fn pace(self, state: State, now: u64) -> Option<Plan> {
        let limits = self.limits()?;
        let law = self.0.law.get();
        let spend = law.declared()?.spend();
        let sent = self.0.sent();
        let promised = i128::from(limits.charged(self.unclaimed(now))) << 20; // an amount
        let (mut plan, mut contradicted) = (None::<Plan>, false);
        // One that is not told any more may have got another name. It still bars.
        let heard = limits.ledgers().map(|ledger| ledger.heard_at).max()?;
        for ledger in limits.ledgers().filter(|ledger| !ledger.is_old(heard)) {
            let this = ledger.plan(spend, now, sent, promised);
            contradicted |= ledger.is_contradicted(now);
            plan = Some(plan.map_or(this, |plan| plan.stricter(this)));
        }
        let highest = law.paced().and_then(|paced| paced.highest());
        let mut most = highest.unwrap_or(Rate::MAX);
        if contradicted {
            let paced = self.0.adaptation().curve_at(state, now);
            most = most.min(paced);
        }
        Some(plan?.at_most(most))
    }

    /// Returns the whole tokens that were minted for requests which have not gone yet.
    fn unclaimed(self, now: u64) -> u64 {
        let (_, line) = self.0.line().read();
        let open = self.asked_for().wrapping_mul(TOKEN);
        let taken = self.0.line().last_rank().less(open);
        let unclaimed = line.minted_at(now).to_place().since(taken);
        u64::try_from(unclaimed).unwrap_or(0).min(open) / TOKEN
    }

    /// Begins the windows that have begun by `now`.
    fn roll(self, now: u64) {
        let Self(engaged) = self;
        if let Some(limits) = self.limits() {
            let sent = engaged.sent();
            limits.roll(now, sent);
            let stuck =
                limits.note_open(now, sent, engaged.line().open_tokens(), self.unclaimed(now));
            // Places that were forgotten, or that the pace has not come to in a whole window: all
            // places move up. The bar is by what is left.
            if stuck > 0 && self.may_go(now, 1).is_ok() {
                let (_, line) = engaged.line().read();
                let ahead = line.ahead(now, engaged.line().last_rank()).div_ceil(TOKEN);
                engaged.line().give_back(ahead.min(stuck));
            }
        }
    }

    /// Moves the rate of `head` to what follows from the declared limits at `now`, after a look at
    /// their windows. `false` if there are none: the law decides alone.
    pub(super) fn move_rate(
        self,
        head: Head,
        line: &Line,
        state: State,
        now: u64,
        gate: GateWord,
    ) -> bool {
        let Self(engaged) = self;
        self.roll(now);
        let Some(plan) = self.pace(state, now) else {
            return false;
        };
        let rate = plan.rate_now();
        let (mut at, mut lacks_first) = (now, false);
        // A pause ends when it was to end, not when a caller looks.
        if let (Some(limits), None, true) = (self.limits(), plan.until, line.is_paused()) {
            let resumed = limits.ledgers().map(|ledger| ledger.resumed_at(now, rate));
            at = resumed.max().unwrap_or(now);
            let mut ledgers = limits.ledgers();
            lacks_first = ledgers.all(|ledger| ledger.lacks_first(line.since, rate));
        }
        // One try: a loss means that another thread, which computes the same, came first, or a
        // throttle or a report, whose thread does it again.
        if rate == line.rate || engaged.line().change(head, line, at, rate, state.version()) {
            if lacks_first {
                engaged.line().give_back(1);
            }
            let until = plan.until.unwrap_or(u64::MAX);
            engaged
                .adaptation()
                .quieten_gate(&engaged.law.get(), state, now, rate, until, gate);
        }
        true
    }

    /// Returns what the limiter goes by.
    pub(super) fn phase(self) -> Phase {
        let law = &self.0.law;
        let Some(law) = law.listens().then(|| law.get().declared()).flatten() else {
            return Phase::Alone;
        };
        let state = self.0.state.load();
        if self.limits().is_some_and(Limits::is_any_declared) {
            Phase::Declared
        } else if Declared::is_first_contact(state) {
            Phase::FirstContact
        } else if law.is_free(state) {
            Phase::Unbound
        } else {
            Phase::Alone
        }
    }

    /// Returns the nanoseconds after which a wait can be foretold. Before the first report and just
    /// after it (rules 1 and 5) the rate says nothing of what the service allows: by it, requests
    /// with a deadline would be refused that may go in a moment. Before it, the next look is all.
    pub(super) fn until_foretold(self, elapsed: u64) -> u64 {
        if !self.0.law.listens() {
            return u64::MAX;
        }
        let ledgers = self.limits().into_iter().flat_map(Limits::ledgers);
        match ledgers.map(|ledger| ledger.early_until()).max() {
            // The rate is looked at by then.
            Some(at) => at.saturating_add(LONGEST_QUIET).checked_sub(elapsed),
            None if self.phase() == Phase::FirstContact => Some(LONGEST_QUIET),
            None => None,
        }
        .filter(|nanos| *nanos > 0)
        .unwrap_or(u64::MAX)
    }

    /// Lets a request go before its turn at `place`, or before that of a try without one: as one of
    /// the first burst, if it is the next. What another one got would be for those before it. Or as
    /// the one that goes if none has been sent for long since the start: those before its place
    /// were forgotten.
    pub(super) fn goes_first(self, place: Option<Place>, elapsed: u64) -> bool {
        let Self(engaged) = self;
        let law = engaged.law.get().declared();
        let Some(law) = law.filter(|_| self.phase() == Phase::FirstContact) else {
            return false;
        };
        let (first, most) = (&engaged.beside().first, u64::from(law.first()));
        let is_next = || match place {
            Some(place) => engaged.nanos_until(place.less_tokens(1), elapsed).is_none(),
            None => engaged.line_at(elapsed).is_some_and(|line| {
                let last = engaged.line().last_rank();
                engaged.wait_of(&line, elapsed, last).is_none()
            }),
        };
        if is_next() && first.is_one_of(most) {
            engaged.line().give_back(1);
            return true;
        }
        let Some(place) = place else { return false };
        let is_silent = elapsed >= FIRST_SILENCE && engaged.sent() == FIRST_SEND;
        // Beyond the burst one goes.
        if !is_silent || !first.is_one_of(most.saturating_add(1)) {
            return false;
        }
        let (_, line) = engaged.line().read();
        let rank = place.less_tokens(engaged.line().waiters.before(place));
        engaged
            .line()
            .give_back(line.ahead(elapsed, rank).div_ceil(TOKEN));
        true
    }

    /// Takes a throttle into the declared limits, and returns whether it contradicts them.
    pub(super) fn refuse(self, now: u64, permit: SendPermit, hint: Duration) -> bool {
        let Some(limits) = self.limits() else {
            return false;
        };
        let law = self.0.law.get();
        let longest = law.declared().map_or(Duration::ZERO, |law| law.max_pause());
        let pause = nanos(hint.min(longest));
        let sent = self.0.sent();
        let order = permit.order(sent);
        let least = limits
            .ledgers()
            .min_by_key(|ledger| {
                // A report on this very response knows more than any other.
                let is_untold = ledger.told_left(order).is_none();
                (is_untold, ledger.as_told(now, sent).share_left())
            })
            .map(|ledger| ledger.policy);
        let weight = u64::from(permit.weight());
        let told = |ledger: Ledger| ledger.told_left(order);
        let empty = limits.ledgers().filter_map(told).any(|left| left < weight);
        let mut contradicts = false;
        limits.each(|ledger| {
            let (next, contradicted) = ledger.throttle(&Refused {
                now,
                order,
                until: now.saturating_add(pause),
                blamed: !empty && least == Some(ledger.policy),
            });
            contradicts |= contradicted;
            next
        });
        contradicts
    }

    /// Forgets what was declared, and who went before that.
    pub(super) fn forget(self) {
        self.0.beside().first.forget();
        self.limits().inspect(|limits| limits.forget());
        self.0.law.unheard().inspect(|unheard| unheard.forget());
    }
}
