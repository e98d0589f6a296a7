//! Declared limits bound to their words: reports, and what follows from them for the rate.

use core::cell::Cell;
use core::time::Duration;

use super::SendRate;
use super::acquire::{Engaged, elapsed};
use super::gate::LONGEST_QUIET;
use super::limits::Limits;
use super::permit::{Order, SendPermit};
use crate::Timestamp;
use crate::atomic::sync::Ordering::Relaxed;
use crate::bits::LAST_TIME;
use crate::fixed::Rate;
use crate::law::declared::ledger::{Heard, LONGEST_SPAN, Ledger, Plan, Refused, ResetAt, Seen};
use crate::law::declared::{
    Declared, DeclaredSettings, LimitReport, LimitReports, Observed, Reset,
};
use crate::law::{Controller, State};
use crate::line::{Head, Line, TOKEN};

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl SendRate {
    /// Creates a limiter of [`ControlLaw::Declared`](crate::ControlLaw::Declared) with `settings`.
    ///
    /// It limits from the start, to the first burst.
    #[must_use]
    pub fn declared(settings: DeclaredSettings, start: Timestamp) -> Self {
        Self::build(Controller::Declared(settings.law()), start).obeying(settings.obeyed())
    }

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
        let elapsed = self.elapsed(now);
        let engaged = self.about_to_limit();
        let mut observed = Observed::Nothing;
        for report in reports.iter().filter(|report| report.counts() == obeyed) {
            let Some(limits) = self.law.make_limits() else {
                break;
            };
            let seen = engaged.seen(elapsed, permit, report, reports.date());
            let heard = limits.hear(&seen);
            observed = observed.max(match heard {
                Heard::Declared => Observed::Declared,
                Heard::Changed => Observed::Changed,
                Heard::Taken => Observed::Taken,
                Heard::Late | Heard::Wrong => Observed::Nothing,
            });
        }
        if reports.ignored() > 0 {
            if let Some(limits) = self.law.make_limits() {
                limits.ignore(reports.ignored().into());
            }
        }
        if observed > Observed::Nothing {
            // After the change, so that no thread notes that the rate before stays.
            self.gate.disturb();
            engaged.follow(elapsed);
            engaged.wake_due(elapsed);
        }
        observed
    }

    /// Returns how much is left of the declared limit of which the least is, in 2⁻³² of it; 0 if
    /// the report on the request of `permit` says that it was too much. `None` without a limit.
    pub(crate) fn share_left(&self, now: Timestamp, permit: SendPermit) -> Option<u64> {
        let (now, sent) = (self.elapsed(now), self.words()?.sent());
        let shares = self.law.limits()?.ledgers().map(|ledger| {
            let told = ledger.told_left(permit.order(sent));
            match told {
                Some(left) if left < u64::from(permit.weight()) => 0,
                _ => ledger.share_left(now, sent).max(1),
            }
        });
        shares.min()
    }

    /// Returns how many reports were ignored: wrong values, limits beyond the fourth, and reports
    /// that lost to others eight times.
    #[must_use]
    pub fn ignored_reports(&self) -> u64 {
        self.law.limits().map_or(0, Limits::ignored)
    }
}

impl Engaged<'_> {
    /// Returns the position of the last request sent, of a limiter that obeys declared limits.
    pub(super) fn sent(&self) -> u64 {
        // Relaxed: see `order`.
        self.promised.sent.load(Relaxed)
    }

    /// Returns the permit of a request that took `weight` tokens at `now`.
    pub(super) fn permit(&self, now: Timestamp, weight: u32) -> SendPermit {
        SendPermit::with_order(now, weight, self.order(weight))
    }

    /// Counts a request that took `weight` tokens, if the limiter obeys declared limits, and
    /// returns its order.
    #[inline]
    pub(super) fn order(&self, weight: u32) -> Order {
        if !self.law.listens() {
            return Order::CHARGED;
        }
        // Relaxed: a chain of additions, which is totally ordered. A report is compared with
        // positions that its own request was sent after. Model:
        // `declared::a_report_beside_a_take_counts_it_or_not`.
        let before = self.promised.sent.fetch_add(u64::from(weight), Relaxed);
        Order::at(before.wrapping_add(u64::from(weight)))
    }

    /// Notes at the declared limits that the request of `permit` cost `more` tokens than it took,
    /// unless a report of that request or a later one says so already, or its place among the sends
    /// is not known: then the next report says so. Returns whether any limit is declared.
    pub(super) fn settle_limits(&self, elapsed: u64, permit: SendPermit, more: i64) -> bool {
        let Some(limits) = self.law.limits() else {
            return false;
        };
        let sent = self.sent();
        let order = permit.order(sent);
        let is_any_declared = Cell::new(false);
        limits.each(|ledger| {
            if !ledger.is_declared() {
                return None;
            }
            is_any_declared.set(true);
            if !permit.is_ordered() {
                return None;
            }
            ledger.settled(elapsed, sent, order, more)
        });
        is_any_declared.get()
    }

    /// Lets the rate follow what a settlement has changed, and wakes the waiters whose turn it
    /// brings.
    pub(super) fn after_settling(&self, elapsed: u64) {
        if self.law.listens() {
            // What is left has changed, and the rate with it. After the change: see `observe`.
            self.gate.disturb();
            self.follow(elapsed);
        }
        self.wake_due(elapsed);
    }

    /// Returns when the request of `permit` was sent; now if that is not known, or later.
    fn sent_at(&self, now: u64, permit: SendPermit) -> u64 {
        if permit.is_timed() {
            return elapsed(self.start, permit.time()).min(now);
        }
        now
    }

    fn seen(
        &self,
        now: u64,
        permit: SendPermit,
        report: &LimitReport,
        date: Option<Duration>,
    ) -> Seen {
        let sent = self.sent();
        Seen {
            now,
            sent_at: self.sent_at(now, permit),
            order: permit.order(sent),
            weight: permit.weight(),
            sent,
            answered: self.meter.sum(),
            dimension: report.counts(),
            policy: report.policy_name(),
            limit: report.declared_limit(),
            remaining: report.remaining(),
            window: report.declared_window().map(nanos),
            reset: report.declared_reset().map(|reset| match reset {
                Reset::In(time) => ResetAt::In(nanos(time)),
                Reset::At(time) => ResetAt::At(nanos(time).min(LAST_TIME)),
            }),
            refills: report.declared_refills(),
            date: date.map(|date| nanos(date).min(LAST_TIME)),
        }
    }

    /// Returns what declared limits make of the rate at `now`, `None` if the law decides alone.
    pub(super) fn plan(&self, state: State, now: u64) -> Option<Plan> {
        let limits = self.law.limits()?;
        let law = self.law.get();
        let spend = law.declared()?.spend();
        let (sent, answered) = (self.sent(), self.meter.sum());
        let mut plan: Option<Plan> = None;
        let mut contradicted = false;
        for ledger in limits.ledgers() {
            let saved = self.saved(now);
            let Some(this) = ledger.plan(spend, now, sent, answered, saved) else {
                continue;
            };
            contradicted |= ledger.is_contradicted(now);
            plan = Some(plan.map_or(this, |plan| plan.stricter(this)));
        }
        let plan = plan?;
        let highest = law.paced().and_then(|paced| paced.highest());
        let mut most = highest.unwrap_or(Rate::MAX);
        if contradicted {
            let reading = self.meter.reading();
            let paced = law.rate(state, now, reading, |peak| self.curve.time_to_peak(peak));
            most = most.min(paced);
        }
        Some(plan.at_most(most))
    }

    /// Returns the tokens, in units of a place, that were minted for requests which have not taken
    /// them yet, beyond what the bucket holds.
    fn saved(&self, now: u64) -> u64 {
        let (_, line) = self.read();
        let open = self.open_tokens().wrapping_mul(TOKEN);
        let taken = self.last_rank().less(open);
        let saved = line.minted_at(now).to_place().since(taken);
        u64::try_from(saved)
            .unwrap_or(0)
            .min(open)
            .saturating_sub(line.capacity())
    }

    /// Begins the windows that have begun by `now`.
    pub(super) fn roll(&self, now: u64) {
        if let Some(limits) = self.law.limits() {
            let sent = self.sent();
            limits.each(|ledger| ledger.rolled(now, sent));
        }
    }

    /// Moves the rate of `head` to what is planned.
    pub(super) fn follow_plan(
        &self,
        head: Head,
        line: &Line,
        state: State,
        now: u64,
        plan: Plan,
        gate: super::gate::Seen,
    ) {
        let (rate, until) = match plan {
            Plan::Rate(rate) => (rate, u64::MAX),
            Plan::Wait { until, .. } => (Rate::LEAST, until),
        };
        // A pause ends when it was to end, not when a caller looks.
        let at = match (self.law.limits(), plan) {
            (Some(limits), Plan::Rate(_)) if line.is_paused() => {
                let ends = limits.ledgers().map(|ledger| ledger.resumed_at(now));
                ends.max().unwrap_or(now)
            }
            _ => now,
        };
        // One try: a loss means that another thread, which computes the same, came first, or a
        // throttle or a report, whose thread does it again.
        if rate == line.rate || self.change(head, line, at, rate, state) {
            self.settle_gate(&self.law.get(), state, now, rate, until, gate);
        }
    }

    /// Whether a limit is declared.
    pub(super) fn is_any_declared(&self) -> bool {
        let limits = self.law.limits();
        limits.is_some_and(|limits| limits.ledgers().next().is_some())
    }

    /// Whether requests go as they come until a limit is declared.
    pub(super) fn is_unbound(&self) -> bool {
        let law = self.law.get().declared();
        law.is_some_and(|law| law.is_free(self.state.load()) && !self.is_any_declared())
    }

    /// Returns the nanoseconds after which a wait can be foretold. Before the first report and just
    /// after it (rules 1 and 4) the rate says nothing of what the service allows: by it, requests
    /// with a deadline would be refused that may go in a moment. Before it, the next look is all.
    pub(super) fn until_foretold(&self, elapsed: u64) -> u64 {
        if !self.law.listens() {
            return u64::MAX;
        }
        let ledgers = self.law.limits().into_iter().flat_map(Limits::ledgers);
        match ledgers.map(|ledger| ledger.early_until()).max() {
            // The rate is looked at by then.
            Some(at) => at.saturating_add(LONGEST_QUIET).checked_sub(elapsed),
            None if Declared::is_first_contact(self.state.load()) => Some(LONGEST_QUIET),
            None => None,
        }
        .filter(|nanos| *nanos > 0)
        .unwrap_or(u64::MAX)
    }

    /// Lets one request of the first burst go that waits for its turn. `has` says whether that many
    /// of its tokens are minted. If not even those before it are, what it got would be for others.
    pub(super) fn first_burst(&self, weight: u32, has: impl Fn(u32) -> bool) -> bool {
        let is_first = || Declared::is_first_contact(self.state.load()) && !self.is_any_declared();
        let law = self.law.get().declared();
        let Some(law) = law.filter(|_| is_first() && has(0)) else {
            return false;
        };
        if has(1) {
            self.give_back(weight.saturating_sub(1).into());
            return true;
        }
        // Relaxed: a count. It is raised before the token is given, so that no more are given than
        // the burst has. Model: `declared::two_takes_share_the_first_burst`.
        let first = &self.promised.first;
        let mut given = first.load(Relaxed);
        while given < u64::from(law.first()) {
            match first.compare_exchange_weak(given, given.saturating_add(1), Relaxed, Relaxed) {
                Ok(_) => {
                    self.give_back(weight.into());
                    return true;
                }
                Err(actual) => given = actual,
            }
        }
        false
    }

    /// Tells the declared limits of a throttle, and returns whether it contradicts them.
    pub(super) fn refuse(&self, now: u64, permit: SendPermit, hint: Duration) -> bool {
        let Some(limits) = self.law.limits() else {
            return false;
        };
        let sent = self.sent();
        let order = permit.order(sent);
        let least = limits
            .ledgers()
            .min_by_key(|ledger| {
                // A report on this very response knows more than any other.
                let is_untold = ledger.told_left(order).is_none();
                (is_untold, ledger.share_left(now, sent))
            })
            .map(|ledger| (ledger.dimension, ledger.policy));
        let empty = limits.ledgers().any(|ledger| {
            ledger
                .told_left(order)
                .is_some_and(|left| left < u64::from(permit.weight()))
        });
        let refused = |ledger: &Ledger| Refused {
            now,
            sent_at: self.sent_at(now, permit),
            order,
            until: now.saturating_add(nanos(hint).min(LONGEST_SPAN)),
            blamed: !empty && least == Some((ledger.dimension, ledger.policy)),
        };
        let contradicted = limits
            .ledgers()
            .any(|ledger| ledger.is_contradicted_by(&refused(&ledger)));
        limits.each(|ledger| {
            ledger
                .is_declared()
                .then(|| ledger.refused(&refused(ledger)))
        });
        contradicted
    }

    /// Forgets what was declared, and who went before that.
    pub(super) fn forget_limits(&self) {
        // Relaxed: a count, see `first_burst`.
        self.promised.first.store(0, Relaxed);
        if let Some(limits) = self.law.limits() {
            limits.forget();
        }
    }

    /// Whether nothing is to be remembered of declared limits: each is whole again.
    #[cfg(feature = "std")]
    pub(super) fn has_whole_limits(&self, now: u64) -> bool {
        let sent = self.sent();
        let mut ledgers = self.law.limits().into_iter().flat_map(Limits::ledgers);
        ledgers.all(|ledger| {
            let ledger = ledger.rolled(now, sent).unwrap_or(ledger);
            ledger.share_left(now, sent) >= 1 << 32
        })
    }
}
