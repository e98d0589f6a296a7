//! The course of one operation: everything but sleeping and sending.

use alloc::sync::Arc;
use core::{fmt, time::Duration};

use paceline::{
    Failure, Idempotency, RetrySafety, RetryStrategy, RetryToken, SendPermit, SendRefused,
};
use tokio::time::Instant;

use super::layer::Settings;
use crate::{
    Settle,
    turn::{InLine, by, left, wait_with},
};

/// An operation under way.
pub(super) struct Course<S: ?Sized> {
    strategy: Arc<S>,
    /// `None` if the strategy gave none, and after the decision that there is no other attempt.
    token: Option<RetryToken>,
    deadline: Option<Instant>,
}

impl<S: RetryStrategy + ?Sized + 'static> Course<S> {
    pub(super) fn begin(settings: &Settings<S>, idempotency: Idempotency) -> Self {
        let strategy = settings.strategy.clone();
        let token = strategy.acquire_initial_token(settings.scope.as_deref());
        let idempotency = settings.idempotency.unwrap_or(idempotency);
        Self {
            strategy,
            token: token.ok().map(|token| token.with_idempotency(idempotency)),
            deadline: by(settings.deadline),
        }
    }

    /// Returns the time to sleep before the next attempt.
    pub(super) fn delay(&self) -> Duration {
        self.token
            .as_ref()
            .map_or(Duration::ZERO, RetryToken::delay)
    }

    /// Tells whether there may be another attempt after the next.
    pub(super) fn may_go_on(&self) -> bool {
        let token = self.token.as_ref();
        token.is_some_and(|token| token.max_attempts().is_none_or(|max| token.attempt() < max))
    }

    /// Takes a turn if it has come. Else `None`: it has to be [waited for](Self::wait).
    pub(super) fn take_turn(&self) -> Result<Option<SendPermit>, SendRefused> {
        if let Some(Duration::ZERO) = left(self.deadline) {
            return Err(SendRefused {
                wait: Duration::ZERO,
            });
        }
        let mut turn = match &self.token {
            Some(token) => self.strategy.send_turn_for(token),
            None => self.strategy.send_turn(),
        }?;
        Ok(turn.claim().ok())
    }

    pub(super) fn wait(&self) -> InLine {
        wait_with(self.strategy.clone(), self.deadline)
    }

    pub(super) fn sent(&mut self, permit: SendPermit) {
        if let Some(token) = &mut self.token {
            token.sent(permit);
        }
    }

    /// Takes note of a failure, and decides: `true` is another attempt, else for so long the answer is kept back.
    pub(super) fn failed(&mut self, failure: &Failure, repeatable: bool) -> Result<(), Duration> {
        let token = self.token.take().ok_or(Duration::ZERO)?;
        let failure = if repeatable {
            *failure
        } else {
            failure.with_retry_safety(RetrySafety::No)
        };
        let permitted = token.idempotency().permits(&failure);
        let token = token.with_time_left(left(self.deadline));
        let next = self.strategy.refresh_retry_token(token, &failure);
        let next = next.map_err(|refused| refused.delay())?;
        // For strategies that do not ask: ours have refused.
        if !permitted || left(self.deadline).is_some_and(|left| next.delay() >= left) {
            return Err(Duration::ZERO);
        }
        self.token = Some(next);
        Ok(())
    }

    /// Ends the operation with an answer whose outcome is to be told.
    pub(super) fn answered(&mut self) -> Retried<S> {
        Retried {
            strategy: self.strategy.clone(),
            token: self.token.take(),
        }
    }
}

/// An operation that was answered: its strategy is still to hear what became of it.
pub struct Retried<S: ?Sized> {
    strategy: Arc<S>,
    token: Option<RetryToken>,
}

impl<S: RetryStrategy + ?Sized> Settle for Retried<S> {
    fn settle(self, failure: Option<&Failure>) {
        let Some(token) = self.token else { return };
        // What the strategy decides changes nothing any more about an answer that has gone out.
        match failure {
            None => drop(self.strategy.record_success(token)),
            Some(failure) => {
                let failure = failure.with_retry_safety(RetrySafety::No);
                drop(self.strategy.refresh_retry_token(token, &failure));
            }
        }
    }
}

impl<S: fmt::Debug + ?Sized> fmt::Debug for Retried<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retried")
            .field("strategy", &self.strategy)
            .field("token", &self.token)
            .finish()
    }
}
