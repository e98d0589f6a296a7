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

    /// Records the outcome of a send in the budget, of which it took one token, whatever it took of
    /// the strategy inside.
    fn record(&self, sent: Option<SendPermit>, outcome: Outcome) {
        let time = sent.map_or_else(|| self.budget.clock().now(), SendPermit::time);
        self.budget.record(SendPermit::sent_at(time), outcome);
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
        let outcome = match Outcome::from(failure) {
            Outcome::ThrottledFor(hint) => Outcome::ThrottledFor(hint.min(token.max_retry_after())),
            outcome => outcome,
        };
        self.record(token.send_permit(), outcome);
        self.inside.refresh_retry_token(token, failure, reports)
    }

    fn record_success(&self, token: RetryToken, reports: Reports<'_>) -> Result<(), ForeignToken> {
        let sent = token.send_permit();
        self.inside.record_success(token, reports)?;
        self.record(sent, Outcome::NotThrottled);
        Ok(())
    }

    fn record_cancelled(
        &self,
        token: RetryToken,
        reports: Reports<'_>,
    ) -> Result<(), ForeignToken> {
        let sent = token.send_permit();
        self.inside.record_cancelled(token, reports)?;
        if sent.is_some() {
            self.record(sent, Outcome::Unknown);
        }
        Ok(())
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
        let gate = || {
            let taken = self.budget.try_acquire(self.budget.clock().now());
            // What a rate underneath the budget took is not for the strategy inside to settle.
            taken.map(|permit| SendPermit::sent_at(permit.time()))
        };
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
    use std::sync::Arc;

    use paceline::law::{LimitReport, LimitReports, PacedSettings, Reset};
    use paceline::operation::Next;
    use paceline::{Adaptive, Operation, SendRate, Standard, Timestamp};
    use tokio::sync::watch;

    use super::*;
    use crate::Fleet;
    use crate::budget::tests::Goes;
    use crate::pool::Pool;
    use crate::snapshot::BudgetSnapshot;

    /// Returns a budget whose engine holds nothing back.
    fn open(clock: Arc<dyn Clock>, local: Option<Arc<SendRate>>) -> Budget {
        let pool = Arc::new(Pool::new());
        pool.open();
        let (_, seen) = watch::channel(BudgetSnapshot::default());
        Budget::new(pool, clock, local, seen)
    }

    /// A thousand tokens a second, and a bucket of as many.
    fn thousand() -> PacedSettings {
        let second = Duration::from_secs(1);
        PacedSettings::fixed(1_000, second)
            .and_then(|fixed| fixed.to_builder().burst(second).build())
            .unwrap()
    }

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
        let strategy = FleetStrategy::new(Standard::new(), budget);
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

    #[test]
    fn what_a_send_took_of_the_strategy_inside_can_be_settled() {
        let clock = Arc::new(Timestamp::ZERO);
        let inside = Adaptive::builder().paced(thousand()).clock(clock.clone());
        let strategy = FleetStrategy::new(inside.build().unwrap(), open(clock.clone(), None));
        let available = || format!("{:.0}", strategy.snapshot().rate.unwrap().available);
        let mut attempts = Operation::new(&strategy).weight(600).start();
        assert!(matches!(attempts.next(&*clock, None), Next::Send(_)));
        let charge = attempts.charge().unwrap();
        attempts.succeeded(Reports::at(&*clock)).unwrap();
        assert_eq!(available(), "400");
        charge.settle(&[150]).unwrap();
        assert_eq!(available(), "850");
    }

    #[test]
    fn what_a_rate_underneath_took_is_not_the_strategys() {
        let local = SendRate::paced(thousand(), Timestamp::ZERO);
        let budget = open(Arc::new(Timestamp::ZERO), Some(Arc::new(local)));
        let strategy = FleetStrategy::new(Standard::new(), budget);
        let permit = strategy.admit(&mut SendTurn::new(), SendRequest::new());
        assert_eq!(permit.unwrap(), SendPermit::sent_at(Timestamp::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_underneath_is_cut_to_what_got_through() {
        let clock = Arc::new(Goes::new());
        let local = Arc::new(SendRate::paced(PacedSettings::new(), Timestamp::ZERO));
        let budget = open(clock.clone(), Some(Arc::clone(&local)));
        let strategy = FleetStrategy::new(Standard::new(), budget);
        for number in 1..=300 {
            let mut attempts = Operation::new(&strategy).start();
            assert!(matches!(attempts.next(&*clock, None), Next::Send(_)));
            tokio::time::advance(Duration::from_millis(10)).await;
            let reports = Reports::at(&*clock);
            if number == 300 {
                attempts.failed(&Failure::throttling(), reports).unwrap();
            } else if number % 2 == 0 {
                attempts.failed(&Failure::transient(), reports).unwrap();
            } else {
                attempts.succeeded(reports).unwrap();
            }
        }
        // A hundred a second were sent, and the last one was too many.
        let limited = local.snapshot(clock.now()).fill_rate;
        assert!((75.0..100.0).contains(&limited), "{limited}");
    }
}
