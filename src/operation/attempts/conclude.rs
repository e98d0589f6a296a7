//! What follows an attempt that failed.

use core::time::Duration;

use super::{Attempts, Step};
use crate::operation::{Stop, StopReason, Verdict, spent::Doing};
use crate::{
    Failure, RetryAfter, RetryStrategy, RetryToken, Timestamp,
    strategy::{EventKind, Reports, hint_too_long, nanos},
    wait::Rest,
};

impl<S: RetryStrategy> Attempts<S> {
    /// Ends an attempt that failed.
    pub(super) fn conclude(&mut self, failure: &Failure, reports: Reports<'_>) -> Verdict {
        let now = reports.clock(self.open.strategy.clock()).now();
        let who = self.open.who();
        if let Some(spent) = &mut self.open.spent {
            spent.pass(now);
            spent.goes(Doing::BACKING_OFF);
        }
        match self.decide(failure, reports, now) {
            Ok(token) => {
                let (delay, until) = (token.delay(), now.saturating_add(token.delay()));
                let attempt = self.count;
                self.open.tell(
                    &who,
                    EventKind::Retrying {
                        attempt,
                        failure,
                        delay,
                    },
                );
                self.open.token = Some(token);
                self.step = if delay.is_zero() {
                    Step::Turn
                } else {
                    Step::Backoff(until)
                };
                Verdict::Again(Rest::between(now, until))
            }
            Err(stop) => {
                // The token may be gone.
                if let Some(spent) = self.open.spent.take() {
                    spent.show(|kind| self.open.tell(&who, kind));
                }
                let stop = self.gave_up(who, stop, Some(failure));
                self.step = Step::Stopped(stop.clone());
                Verdict::Stop(stop)
            }
        }
    }

    /// Records a failure, and returns the token of the next attempt if there is a next attempt.
    fn decide(
        &mut self,
        failure: &Failure,
        reports: Reports<'_>,
        now: Timestamp,
    ) -> Result<RetryToken, Stop> {
        let Some(token) = self.open.token.take() else {
            return Err(self.stop_for(StopReason::InitialTokenRefused));
        };
        let left = self.time_left(&now);
        // Without another attempt the token has no time left. Paceline's strategies then record the
        // failure, and refuse before they ask the quota.
        let another = self.repeatable && self.bounds.outer.is_none();
        let said = if another { left } else { Some(Duration::ZERO) };
        let longest = self.max_retry_after;
        let token = token
            .with_idempotency(self.bounds.idempotency)
            .with_max_retry_after(longest)
            .with_time_left(said);
        let hint = failure
            .retry_after()
            .map_or(Duration::ZERO, RetryAfter::span);
        let strategy = &self.open.strategy;
        let next = match strategy.refresh_retry_token(token, failure, reports) {
            Ok(token) => token,
            Err(refused) => {
                let reason = match refused.reason() {
                    StopReason::OutOfTime { .. } if !another => self.no_other(),
                    reason => reason,
                };
                // No sleep begins that would end after the deadline.
                let delay = match (refused.delay(), left) {
                    (delay, Some(left)) if delay >= left => Duration::ZERO,
                    (delay, _) => delay,
                };
                return Err(Stop {
                    backoff: refused.backoff().max(hint),
                    delay: nanos(delay),
                    ..self.stop_for(reason)
                });
            }
        };
        // Paceline's strategies have refused already. Other strategies may skip these checks.
        let reason = if !self.bounds.idempotency.permits(failure) {
            Some(StopReason::MaybeExecuted)
        } else if !another {
            Some(self.no_other())
        } else {
            hint_too_long(failure, next.delay(), longest)
                .or_else(|| self.out_of_time(now, next.delay()))
        };
        let Some(reason) = reason else {
            return Ok(next);
        };
        self.open.token = Some(next);
        self.open.give_up(reports);
        Err(Stop {
            backoff: hint,
            ..self.stop_for(reason)
        })
    }

    /// Returns why there is no other attempt, whatever the strategy says.
    const fn no_other(&self) -> StopReason {
        match self.bounds.outer {
            Some(_) => StopReason::LeftToOuter,
            None => StopReason::NotRepeatable,
        }
    }
}
