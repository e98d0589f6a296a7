//! What an adaptive strategy makes of an outcome, and of the limits that come with it.

use alloc::sync::Arc;
use core::time::Duration;

use super::Adaptive;
use crate::atomic::cells::{Condition, Tally};
use crate::strategy::{
    engine::Weighed, event::EventKind, failure::Failure, reports::Reports,
    retry_strategy::RetryStrategy, token::RetryToken,
};
use crate::{
    Outcome, SendPermit, SendRate, SendSet, Timestamp,
    atomic::{DeclaredLimit, Meter},
    law::{Observed, Recorded},
    set::{MOST_RATES, SetPermit, Weights},
};

/// Several send rates, and what they granted to one attempt.
type Several<'a> = (&'a SendSet<Arc<SendRate>>, SetPermit<MOST_RATES>);

impl Adaptive {
    /// Returns all send rates with what they granted to the attempt of `token`, if there are
    /// several.
    pub(super) fn several(&self, token: &RetryToken) -> Option<Several<'_>> {
        let set = self.set.as_deref()?;
        Some((set, token.set_permit()?))
    }

    /// Records the outcome of the attempt of `token`.
    #[inline(never)]
    pub(super) fn record(&self, token: &RetryToken, outcome: Outcome, reports: Reports<'_>) {
        if self.set.is_some() && self.record_set(token, outcome, reports) {
            return;
        }
        let sent = if reports.says_nothing() {
            token.send_permit()
        } else {
            self.settle(token, reports)
        };
        let untimed =
            !self.engine.common.pace.manner.exact_timing && outcome == Outcome::NotThrottled;
        if !(untimed && self.rate.untimed().is_some_and(Meter::count_untimed)) {
            let now = reports.clock(self.clock()).now();
            // A caller that took no turn has no permit. The time of its send is not known.
            self.record_at(now, sent.unwrap_or(SendPermit::sent_at(now)), outcome);
        }
    }

    #[inline(never)]
    fn record_at(&self, now: Timestamp, permit: SendPermit, outcome: Outcome) {
        let recorded = if self.engine.common.pace.manner.exact_timing {
            self.rate.record(now, permit, outcome)
        } else {
            self.rate.record_with(|| now, permit, outcome)
        };
        if outcome.is_throttled() {
            self.note(&self.rate, now, outcome, recorded);
        }
        self.look_for_changes();
    }

    /// Hands on what was reported, and returns the permit of the attempt at its true cost.
    #[inline(never)]
    fn settle(&self, token: &RetryToken, reports: Reports<'_>) -> Option<SendPermit> {
        let now = reports.clock(self.clock()).now();
        self.hear(token, reports, now);
        let permit = token.send_permit()?;
        match reports.costs().map(Weights::as_slice) {
            // A cost that does not fit the line leaves the estimate spent.
            Some([cost]) if self.rate.settle(now, permit, *cost).is_ok() => {
                Some(permit.costing(*cost))
            }
            _ => Some(permit),
        }
    }

    /// Records the outcome of an attempt of several send rates: reports, true costs, the outcome.
    /// Returns `false` if several send rates granted nothing.
    #[inline(never)]
    fn record_set(&self, token: &RetryToken, outcome: Outcome, reports: Reports<'_>) -> bool {
        let Some((set, mut permit)) = self.several(token) else {
            return false;
        };
        let now = reports.clock(self.clock()).now();
        self.hear(token, reports, now);
        if let Some(costs) = reports.costs().map(Weights::as_slice) {
            if set.settle(now, permit, costs).is_ok() {
                permit = permit.costing(costs);
            }
        }
        set.record_each(now, &permit, outcome, |rate, recorded| {
            self.note(rate, now, outcome, recorded);
        });
        self.look_for_changes();
        true
    }

    /// Hands on what the service declares.
    #[inline(never)]
    pub(super) fn hear(&self, token: &RetryToken, reports: Reports<'_>, now: Timestamp) {
        let Some(limits) = reports.limits().filter(|_| self.obeys_limits()) else {
            return;
        };
        if let Some((set, permit)) = self.several(token) {
            return set.observe_each(now, &permit, limits, |rate, observed| {
                self.note_declared(rate, now, observed);
            });
        }
        let permit = token.send_permit().unwrap_or(SendPermit::sent_at(now));
        let observed = self.rate.observe(now, permit, limits);
        self.note_declared(&self.rate, now, observed);
    }

    /// Takes note of a limit that was not known, or has changed.
    fn note_declared(&self, rate: &SendRate, now: Timestamp, observed: Observed) {
        match observed {
            Observed::Changed | Observed::Declared => {
                self.tell_limit(rate, now, |limit| EventKind::LimitDeclared { limit });
            }
            Observed::GivenUp => {
                self.tell_limit(rate, now, |limit| EventKind::LimitGivenUp { limit });
            }
            Observed::Nothing | Observed::Taken => {}
        }
    }

    /// Takes note of what `rate` made of an outcome.
    fn note(&self, rate: &SendRate, now: Timestamp, outcome: Outcome, recorded: Recorded) {
        // A rate that follows declared limits sinks without a throttle, too.
        if !outcome.is_throttled() {
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
            if let Some(limit) = rate.declared_limit(now) {
                self.engine.tell(|| kind(&limit));
            }
        }
    }

    /// Emits that sends are limited no longer, and that a send rate hears no declared limits. The
    /// end of limiting follows only after its beginning was emitted. Each strategy emits once that
    /// it hears nothing.
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
            let unheard = self.rates().find(|rate| rate.law.is_unheard());
            if let Some(rate) = unheard.filter(|_| counts.note(Condition::Unheard, true)) {
                let dimension = rate.law.obeys().unwrap_or_default();
                let ignored = rate.ignored_reports();
                self.engine
                    .tell(|| EventKind::LimitsUnheard { dimension, ignored });
            }
        }
    }

    /// Returns what a failed attempt counts for, and takes note of a throttle in bulk.
    pub(super) fn weigh(&self, failure: &Failure, reports: Reports<'_>) -> Weighed {
        let bulk = self.bulk_limits().filter(|_| failure.is_throttle());
        let Some((drought, longest)) = bulk else {
            return Weighed::Counts;
        };
        let now = reports.clock(self.clock()).now();
        let dry = drought.throttled(now.as_nanos(), longest);
        if dry >= longest {
            Weighed::Stalled(Duration::from_nanos(dry))
        } else {
            Weighed::Free
        }
    }
}
