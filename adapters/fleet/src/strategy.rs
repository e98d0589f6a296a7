//! An existing strategy, as a member of a fleet.

use core::time::Duration;

use paceline::{
    Failure, ForeignToken, InitialTokenRefused, Outcome, RetryAfter, RetryRefused, RetryStrategy,
    RetryToken, SendGate, SendPermit, SendRefused, SendTurn,
};

use crate::budget::Budget;

/// A strategy whose sends are paid from a [`Budget`], and whose throttles the fleet is told.
///
/// Retries are decided by the strategy inside, whose own turn to send is asked for first: with
/// [`Standard`](paceline::Standard) there is none, with [`Adaptive`](paceline::Adaptive) both have to let a send go. To
/// share the retries too, give the strategy a quota that joins a [retry budget](crate::Fleet::retry_budget).
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
/// let fleet = Fleet::connect("redis://127.0.0.1:1/")?; // nobody answers there
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
    ) -> Result<RetryToken, RetryRefused> {
        if failure.is_throttle() {
            let now = self.budget.clock().now();
            let permit = token.send_permit().unwrap_or(SendPermit::sent_at(now));
            let outcome = match failure.retry_after() {
                Some(RetryAfter::Floor(hint) | RetryAfter::Clamped(hint)) => {
                    Outcome::ThrottledFor(hint)
                }
                _ => Outcome::Throttled,
            };
            self.budget.record(permit, outcome);
        }
        self.inside.refresh_retry_token(token, failure)
    }

    fn record_success(&self, token: RetryToken) -> Result<(), ForeignToken> {
        self.inside.record_success(token)
    }

    fn send_turn(&self) -> Result<SendTurn<'_>, SendRefused> {
        Ok(self.inside.send_turn()?.gated(self))
    }

    fn send_turn_for<'a>(&'a self, token: &'a RetryToken) -> Result<SendTurn<'a>, SendRefused> {
        Ok(self.inside.send_turn_for(token)?.gated(self))
    }
}

impl<S: RetryStrategy> SendGate for FleetStrategy<S> {
    fn try_send(&self) -> Result<SendPermit, Duration> {
        self.budget.try_acquire(self.budget.clock().now())
    }
}
