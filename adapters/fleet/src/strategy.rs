//! An existing strategy, as a member of a fleet.

use paceline::{
    Clock, Failure, Outcome, RetryStrategy, RetryToken, SendPermit,
    snapshot::StrategySnapshot,
    strategy::{
        AttemptCharge, ForeignToken, InitialTokenRefused, NotAdmitted, Reports, RetryRefused,
        SendRequest, SendTurn,
    },
};

use crate::budget::Budget;

/// A strategy whose sends are paid from a [`Budget`], and whose throttles slow the fleet.
///
/// Retries are decided by the strategy inside, whose own turn to send is asked for first: with
/// [`Standard`](paceline::Standard) there is none, with [`Adaptive`](paceline::Adaptive) both have
/// to let a send go. To share the retries too, give the strategy a quota that joins a [retry
/// budget](crate::Fleet::retry_budget).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::{Failure, RetryStrategyExt, Standard};
/// use paceline_fleet::{Fleet, FleetStrategy};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let fleet = Fleet::open("redis://127.0.0.1:1/")?; // no engine is there
/// let budget = fleet.scope("orders", 2_000, Duration::from_secs(1))?.join()?;
/// let strategy = FleetStrategy::new(Standard::new(), budget);
/// let answer = tokio::task::spawn_blocking(move || strategy.run(|_| Ok::<_, Failure>("sent")));
/// assert_eq!(answer.await?.unwrap(), "sent");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FleetStrategy<S> {
    inside: S,
    budget: Budget,
}

impl<S> FleetStrategy<S> {
    /// Puts `budget` before the sends of `inside`.
    pub const fn new(inside: S, budget: Budget) -> Self {
        Self { inside, budget }
    }

    /// Returns the strategy that decides about retries.
    pub const fn inside(&self) -> &S {
        &self.inside
    }

    /// Returns the budget that sends are paid from.
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }
}

impl<S: RetryStrategy> RetryStrategy for FleetStrategy<S> {
    fn acquire_initial_token(
        &self,
        scope: Option<&str>,
    ) -> Result<RetryToken, InitialTokenRefused> {
        self.inside.acquire_initial_token(scope)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        failure: &Failure,
        reports: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        if failure.is_throttle() {
            let now = self.budget.clock().now();
            let permit = token.send_permit().unwrap_or(SendPermit::sent_at(now));
            let outcome = match Outcome::from(failure) {
                Outcome::ThrottledFor(hint) => {
                    Outcome::ThrottledFor(hint.min(token.max_retry_after()))
                }
                outcome => outcome,
            };
            self.budget.record(permit, outcome);
        }
        self.inside.refresh_retry_token(token, failure, reports)
    }

    fn record_success(&self, token: RetryToken, reports: Reports<'_>) -> Result<(), ForeignToken> {
        self.inside.record_success(token, reports)
    }

    fn observe(&self, token: &RetryToken, reports: Reports<'_>) {
        self.inside.observe(token, reports);
    }

    fn obeys_limits(&self) -> bool {
        self.inside.obeys_limits()
    }

    fn charge(&self, token: &RetryToken) -> Option<AttemptCharge> {
        self.inside.charge(token)
    }

    fn admit(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
    ) -> Result<SendPermit, NotAdmitted> {
        let gate = || self.budget.try_acquire(self.budget.clock().now());
        turn.gated(|turn| self.inside.admit(turn, request), gate)
    }

    fn clock(&self) -> &dyn Clock {
        self.inside.clock()
    }

    /// Returns the state of the strategy inside. The budget has a
    /// [snapshot](Budget::snapshot) of its own.
    fn snapshot(&self) -> StrategySnapshot {
        self.inside.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use paceline::Adaptive;
    use paceline::law::{LimitReport, LimitReports, Reset};

    use super::*;
    use crate::Fleet;

    #[tokio::test]
    async fn what_the_service_declares_reaches_the_strategy_inside() {
        let fleet = Fleet::open("redis://127.0.0.1:1/").unwrap();
        let scope = fleet.scope("orders", 2_000, Duration::from_secs(1));
        let budget = scope.unwrap().join().unwrap();
        let known =
            |strategy: &FleetStrategy<Adaptive>| Some(strategy.snapshot().rate?.declared?.limit);
        let strategy = FleetStrategy::new(Adaptive::declared(), budget.clone());
        assert!(strategy.obeys_limits());
        assert_eq!(known(&strategy), None);
        let token = strategy.acquire_initial_token(None).unwrap();
        let reset = Reset::In(Duration::from_secs(60));
        let limits = LimitReports::from(LimitReport::new(30).limit(60).reset(reset));
        strategy.observe(&token, Reports::new().declaring(&limits));
        assert_eq!(known(&strategy), Some(60));
        assert!(!FleetStrategy::new(Adaptive::paced(), budget).obeys_limits());
    }

    #[tokio::test]
    async fn a_success_pays_back_what_the_retry_cost() {
        let fleet = Fleet::open("redis://127.0.0.1:1/").unwrap();
        let scope = fleet.scope("orders", 2_000, Duration::from_secs(1));
        let budget = scope.unwrap().join().unwrap();
        let strategy = FleetStrategy::new(paceline::Standard::new(), budget);
        let full = strategy.inside().quota().available();
        let token = strategy.acquire_initial_token(None).unwrap();
        let failure = Failure::transient();
        let token = strategy
            .refresh_retry_token(token, &failure, Reports::new())
            .unwrap();
        assert!(strategy.inside().quota().available() < full);
        strategy.record_success(token, Reports::new()).unwrap();
        assert_eq!(strategy.inside().quota().available(), full);
    }
}
