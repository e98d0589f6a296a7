//! The course of one operation: everything a retry loop does but sleeping and sending.

use core::time::Duration;

use super::{Attempt, RunError};
use crate::{Failure, RetryStrategy, RetryToken, SendPermit, SendTurn};

/// The longest sleep before a turn is looked at again: the rate may have risen meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Returns how much of the wait for a turn to sleep in one go.
pub(super) fn part_of(wait: Duration) -> Duration {
    wait.min(LOOK_AGAIN)
}

/// An operation under way.
pub(super) struct Course<'a, S: ?Sized, E> {
    strategy: &'a S,
    /// `None` if the initial token was refused, and between an attempt's end and the decision.
    token: Option<RetryToken>,
    /// The attempts begun.
    attempts: u32,
    last_error: Option<E>,
}

/// What comes after an attempt.
pub(super) enum Step<T, E> {
    Return(T),
    TryAgain,
    /// Sleep, then return the error.
    GiveUp(Duration, RunError<E>),
}

impl<'a, S: RetryStrategy + ?Sized, E> Course<'a, S, E> {
    pub(super) fn begin(strategy: &'a S, scope: Option<&str>) -> Self {
        Self {
            strategy,
            token: strategy.acquire_initial_token(scope).ok(),
            attempts: 0,
            last_error: None,
        }
    }

    /// Returns the time to sleep before the next attempt.
    pub(super) fn delay(&self) -> Duration {
        self.token
            .as_ref()
            .map_or(Duration::ZERO, RetryToken::delay)
    }

    /// Takes a turn to send, or ends the operation with the error that it has.
    pub(super) fn take_turn(&mut self) -> Result<SendTurn<'a>, RunError<E>> {
        self.strategy.send_turn().map_err(|refused| {
            let reusable = self.connection_reusable();
            RunError::by_send(self.last_error.take(), refused, self.attempts, reusable)
        })
    }

    /// Begins an attempt with the permit of its turn.
    pub(super) fn send(&mut self, permit: SendPermit) -> Attempt {
        self.attempts = self.attempts.saturating_add(1);
        let reusable = self.connection_reusable();
        let max = match &mut self.token {
            Some(token) => {
                token.sent(permit);
                token.max_attempts()
            }
            None => Some(1),
        };
        Attempt::new(self.attempts, max, reusable)
    }

    /// Ends an attempt: records its outcome and decides what comes next.
    pub(super) fn finish<T>(
        &mut self,
        outcome: Result<T, E>,
        classify: impl Fn(&E) -> Failure,
    ) -> Step<T, E> {
        let token = self.token.take();
        let error = match (outcome, token) {
            (Ok(value), token) => {
                // A strategy that refuses its own token changes nothing about the success.
                let _recorded = token.map(|token| self.strategy.record_success(token));
                return Step::Return(value);
            }
            (Err(error), None) => {
                return Step::GiveUp(Duration::ZERO, RunError::by_initial_token(error));
            }
            (Err(error), Some(token)) => {
                match self.strategy.refresh_retry_token(token, &classify(&error)) {
                    Err(refused) => {
                        let stopped = RunError::by_refresh(error, &refused, self.attempts);
                        return Step::GiveUp(refused.delay(), stopped);
                    }
                    Ok(token) => self.token = Some(token),
                }
                error
            }
        };
        self.last_error = Some(error);
        Step::TryAgain
    }

    fn connection_reusable(&self) -> bool {
        self.token
            .as_ref()
            .is_none_or(RetryToken::connection_reusable)
    }
}
