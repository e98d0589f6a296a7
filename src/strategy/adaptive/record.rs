//! How an adaptive strategy records an outcome, and the limits that come with the outcome.

use core::time::Duration;

use super::Adaptive;
use crate::cells::{Condition, Tally};
use crate::strategy::{
    engine::Weighed, event::EventKind, failure::Failure, reports::Reports,
    retry_strategy::RetryStrategy, token::RetryToken,
};
use crate::{
    Outcome, SendPermit, SendRate, Timestamp,
    law::{Observed, Recorded},
    set::SetPermit,
    snapshot::DeclaredLimit,
};

impl Adaptive {
    /// Returns the permits of the attempt of `token`, by their limits.
    pub(super) fn taken<'a>(
        &self,
        token: &'a RetryToken,
        now: Timestamp,
    ) -> impl Fn(usize) -> Option<SendPermit> + 'a {
        // A caller that took no turn has no permit. The time of its send is not known.
        let first = token.send_permit().unwrap_or(SendPermit::sent_at(now));
        // With a single send rate, the further permits of a token belong to a gate.
        let is_several = self.is_several() && token.is_sent();
        move |limit| {
            if is_several {
                token.permit_of(limit)
            } else {
                (limit == 0).then_some(first)
            }
        }
    }

    /// Records the outcome of the attempt of `token`, after its reports and true costs.
    #[inline(never)]
    pub(super) fn record(&self, token: &RetryToken, outcome: Outcome, reports: Reports<'_>) {
        let clock = reports.clock(self.clock());
        let costs = if reports.says_nothing() {
            None
        } else {
            self.settle(token, reports, clock.now())
        };
        let is_exact = self.is_several() || self.engine.common.pace.manner.exact_timing;
        let untimed = !is_exact && outcome == Outcome::NotThrottled;
        if untimed && self.rate.count_untimed() {
            return;
        }
        let now = clock.now();
        if self.is_several() || costs.is_some() {
            self.record_each(token, now, outcome, costs, is_exact);
        } else {
            // Only one rate gets the outcome.
            let permit = token.send_permit().unwrap_or(SendPermit::sent_at(now));
            self.record_at(&self.rate, now, permit, outcome, is_exact);
        }
        self.look_for_changes();
    }

    // Not inlined, because most strategies have one send rate.
    #[inline(never)]
    fn record_each(
        &self,
        token: &RetryToken,
        now: Timestamp,
        outcome: Outcome,
        costs: Option<&[u32]>,
        is_exact: bool,
    ) {
        let all = self.taken(token, now);
        let permits = |limit| {
            let cost = costs.and_then(|costs| costs.get(limit));
            let permit = all(limit)?;
            Some(cost.map_or(permit, |cost| permit.costing(*cost)))
        };
        self.set_of(token)
            .record_each(now, permits, outcome, |rate, permit, part| {
                self.record_at(rate, now, permit, part, is_exact);
            });
    }

    /// Records the outcome with one send rate.
    fn record_at(
        &self,
        rate: &SendRate,
        now: Timestamp,
        permit: SendPermit,
        outcome: Outcome,
        is_exact: bool,
    ) {
        let recorded = if is_exact {
            rate.record(now, permit, outcome)
        } else {
            rate.record_with(|| now, permit, outcome)
        };
        self.note(rate, now, outcome, recorded);
    }

    /// Passes the reports on, and returns the true costs of the attempt if they are settled.
    #[inline(never)]
    fn settle<'a>(
        &self,
        token: &RetryToken,
        reports: Reports<'a>,
        now: Timestamp,
    ) -> Option<&'a [u32]> {
        self.hear(token, reports, now);
        let costs = reports.costs().filter(|_| token.is_sent())?.as_slice();
        let permit = SetPermit::of(self.taken(token, now));
        // Costs that do not fit leave the estimate spent.
        self.set_of(token)
            .settle(now, permit, costs)
            .ok()
            .map(|()| costs)
    }

    /// Passes the declared limits to the send rates.
    #[inline(never)]
    pub(super) fn hear(&self, token: &RetryToken, reports: Reports<'_>, now: Timestamp) {
        let Some(limits) = reports.limits().filter(|_| self.obeys_limits()) else {
            return;
        };
        let permits = self.taken(token, now);
        self.set_of(token)
            .observe_each(now, permits, limits, |rate, observed| {
                self.note_declared(rate, now, observed);
            });
    }

    /// Emits the event of a limit that is new, has changed, or was given up.
    fn note_declared(&self, rate: &SendRate, now: Timestamp, observed: Observed) {
        match observed {
            Observed::Changed | Observed::Declared => {
                self.tell_limit(rate, now, |limit| EventKind::LimitDeclared { limit });
            }
            Observed::GivenUp => {
                self.tell_limit(rate, now, |limit| EventKind::LimitGivenUp { limit });
            }
            _ => {}
        }
    }

    /// Counts and emits what `rate` recorded for an outcome.
    fn note(&self, rate: &SendRate, now: Timestamp, outcome: Outcome, recorded: Recorded) {
        // A rate that follows declared limits sinks without a throttle, too.
        if !matches!(
            outcome,
            Outcome::Throttled | Outcome::ThrottledFor(_) | Outcome::PartlyThrottled(_)
        ) {
            return;
        }
        if recorded == Recorded::Contradicted {
            self.tell_limit(rate, now, |limit| EventKind::LimitContradicted { limit });
        }
        if recorded == Recorded::Cut {
            self.engine.counts.one(Tally::Cut);
            let is_news = self.engine.counts.note(Condition::Limiting, true);
            if self.engine.is_heard() {
                let rate = &rate.snapshot(now);
                let (enabled, cut) = (EventKind::Enabled { rate }, EventKind::Cut { rate });
                self.engine.tell(|| if is_news { enabled } else { cut });
            }
        }
    }

    /// Emits an event about the limit that a service declares.
    fn tell_limit(
        &self,
        rate: &SendRate,
        now: Timestamp,
        kind: impl FnOnce(&DeclaredLimit) -> EventKind<'_>,
    ) {
        if self.engine.is_heard() {
            if let Some(limit) = rate.snapshot(now).declared {
                self.engine.tell(|| kind(&limit));
            }
        }
    }

    /// Emits that sends are limited no longer, and that a send rate gets no declared limits. The
    /// first event comes only after the beginning of limiting was emitted. The second event comes
    /// once for each strategy.
    pub(super) fn look_for_changes(&self) {
        if !self.engine.is_heard() {
            return;
        }
        let counts = &self.engine.counts;
        if counts.is(Condition::Limiting)
            && !self.rates().any(SendRate::is_limiting)
            && counts.note(Condition::Limiting, false)
        {
            self.engine.tell(|| EventKind::Recovered);
        }
        if self.obeys_limits() && !counts.is(Condition::Unheard) {
            let unheard = self.rates().find(|rate| rate.is_unheard());
            if let Some(rate) = unheard.filter(|_| counts.note(Condition::Unheard, true)) {
                let dimension = rate.obeys().unwrap_or_default();
                let ignored = rate.ignored_reports();
                self.engine
                    .tell(|| EventKind::LimitsUnheard { dimension, ignored });
            }
        }
    }

    /// Returns how a failed attempt counts, and records a throttle in bulk.
    pub(super) fn weigh(&self, failure: &Failure, reports: Reports<'_>) -> Weighed {
        let bulk = self.bulk_limits().filter(|_| failure.is_throttle());
        let Some((drought, longest)) = bulk else {
            return Weighed::Counts;
        };
        if failure.part().is_some() {
            drought.delivered();
            return Weighed::Free;
        }
        let now = reports.clock(self.clock()).now();
        let dry = drought.throttled(now.as_nanos(), longest);
        if dry >= longest {
            Weighed::Stalled(Duration::from_nanos(dry))
        } else {
            Weighed::Free
        }
    }
}
