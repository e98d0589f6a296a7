//! Scopes as a strategy: every call goes to the state that its token belongs to.

use alloc::sync::Arc;

use super::{scopes::Scopes, slot::Slot};
use crate::{
    Clock, Failure, RetryStrategy, RetryToken, SendPermit,
    strategy::{
        AttemptCharge, Event, ForeignToken, InitialTokenRefused, NotAdmitted, Reports,
        RetryRefused, SendRequest, SendTurn, StrategyId, hold::Hold, retry_strategy::forward,
        snapshot::StrategySnapshot,
    },
};

impl<S: RetryStrategy + 'static> Scopes<S> {
    /// Returns the strategy that is responsible for a token with `hold`, or `None` if other
    /// `Scopes` made the token.
    fn responsible<'a>(&'a self, hold: &'a Hold) -> Option<&'a S> {
        if hold.is_none() {
            return Some(self.shared());
        }
        let slot = hold.get::<Slot<S>>()?;
        (slot.owner == self.store().id).then_some(&slot.strategy)
    }

    /// Lets `record` end a token with the strategy that is responsible for the token.
    fn ended(
        &self,
        mut token: RetryToken,
        record: impl FnOnce(&S, RetryToken) -> Result<(), ForeignToken>,
    ) -> Result<(), ForeignToken> {
        let hold = token.take_hold();
        match self.responsible(&hold) {
            Some(strategy) => record(strategy, token),
            None => Err(foreign(token, hold)),
        }
    }
}

/// Returns the token unless it has a scope already, as with scopes within scopes. A token can hold
/// only one scope.
fn without_scope(token: RetryToken) -> Result<RetryToken, InitialTokenRefused> {
    if token.hold().is_none() {
        Ok(token)
    } else {
        Err(InitialTokenRefused)
    }
}

impl<S: RetryStrategy + 'static> RetryStrategy for Scopes<S> {
    // All scopes should have the clock of the shared state.
    forward! {
        self => (self.shared()):
        obeys_limits() -> bool;
        clock() -> &dyn Clock;
        notify(event: &Event<'_>);
    }

    /// Begins an operation on `scope`, which is in use as long as there is the token. Without a
    /// scope, or if it is refused, the operation uses the shared state.
    fn acquire_initial_token(
        &self,
        scope: Option<&str>,
    ) -> Result<RetryToken, InitialTokenRefused> {
        let Some(Ok(slot)) = scope.map(|key| self.store().enter(key)) else {
            let token = self.shared().acquire_initial_token(scope)?;
            return without_scope(token);
        };
        let hold = Hold::taking_over(slot);
        let strategy = self.responsible(&hold);
        let token = strategy
            .unwrap_or(self.shared())
            .acquire_initial_token(scope)?;
        Ok(without_scope(token)?.with_hold(hold))
    }

    fn refresh_retry_token(
        &self,
        mut token: RetryToken,
        failure: &Failure,
        reports: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        let hold = token.take_hold();
        let Some(strategy) = self.responsible(&hold) else {
            return Err(foreign(token, hold).into());
        };
        let token = strategy.refresh_retry_token(token, failure, reports)?;
        Ok(token.with_hold(hold))
    }

    fn record_success(&self, token: RetryToken, reports: Reports<'_>) -> Result<(), ForeignToken> {
        self.ended(token, |strategy, token| {
            strategy.record_success(token, reports)
        })
    }

    fn record_cancelled(
        &self,
        token: RetryToken,
        reports: Reports<'_>,
    ) -> Result<(), ForeignToken> {
        self.ended(token, |strategy, token| {
            strategy.record_cancelled(token, reports)
        })
    }

    fn observe(&self, token: &RetryToken, reports: Reports<'_>) {
        if let Some(strategy) = self.responsible(token.hold()) {
            strategy.observe(token, reports);
        }
    }

    fn charge(&self, token: &RetryToken) -> Option<AttemptCharge> {
        self.responsible(token.hold())?.charge(token)
    }

    /// Returns the state of operations without a scope. [`for_each`](Self::for_each) shows the
    /// scopes, and the inherent [`snapshot`](Scopes::snapshot) shows their number.
    fn snapshot(&self) -> StrategySnapshot {
        self.shared().snapshot()
    }

    /// Returns the identity of the state of operations without a scope. Each scope has its own
    /// identity, which its events and its strategy in [`for_each`](Self::for_each) have.
    fn id(&self) -> Option<StrategyId> {
        self.shared().id()
    }

    fn name(&self, token: Option<&RetryToken>) -> Option<Arc<str>> {
        let hold = token.map(RetryToken::hold);
        let strategy = hold.and_then(|hold| self.responsible(hold));
        let key = || Some(Arc::from(hold?.get::<Slot<S>>()?.key.as_ref()));
        strategy.unwrap_or(self.shared()).name(token).or_else(key)
    }

    /// Asks the scope of the operation. An operation without a token, or with a token of
    /// another strategy, uses the shared state.
    fn admit(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
    ) -> Result<SendPermit, NotAdmitted> {
        let token = request.operation();
        let strategy = token.and_then(|token| self.responsible(token.hold()));
        strategy.unwrap_or(self.shared()).admit(turn, request)
    }
}

/// Returns `token`, with its hold, to its strategy.
fn foreign(token: RetryToken, hold: Hold) -> ForeignToken {
    ForeignToken(token.with_hold(hold))
}
