//! The course of one operation: everything a retry loop does but sleeping and sending.

use core::time::Duration;

use super::{
    Attempt, RunError, Stopped,
    limits::{Deadline, Limits},
};
use crate::{Failure, RetryStrategy, RetryToken, SendPermit, SendTurn};

/// An operation under way.
pub(super) struct Course<'a, S: ?Sized, E> {
    strategy: &'a S,
    limits: Limits<'a>,
    deadline: &'a Deadline<'a>,
    /// `None` if the initial token was refused, and between an attempt's end and the decision.
    token: Option<RetryToken>,
    /// The attempts begun.
    attempts: u32,
    last_error: Option<E>,
}

/// How an attempt ended.
pub(super) enum Ended<T, E> {
    Returned(Result<T, E>),
    /// Its time was up. A loop that cannot cut off makes none of these.
    CutOff,
}

/// What comes after an attempt.
pub(super) enum Step<T, E> {
    Return(T),
    TryAgain,
    /// Sleep, then return the error.
    GiveUp(Duration, RunError<E>),
}

impl<'a, S: RetryStrategy + ?Sized, E> Course<'a, S, E> {
    pub(super) fn begin(
        strategy: &'a S,
        scope: Option<&str>,
        limits: Limits<'a>,
        deadline: &'a Deadline<'a>,
    ) -> Self {
        Self {
            strategy,
            limits,
            deadline,
            token: strategy.acquire_initial_token(scope).ok(),
            attempts: 0,
            last_error: None,
        }
    }

    /// Returns the time to sleep before the next attempt.
    pub(super) fn delay(&mut self) -> Result<Duration, RunError<E>> {
        let token = self.token.as_ref();
        let delay = token.map_or(Duration::ZERO, RetryToken::delay);
        let in_time = self.deadline.allows(delay);
        in_time.map(|()| delay).map_err(|why| self.stop(why))
    }

    /// Takes a turn to send, or ends the operation with the error that it has.
    pub(super) fn take_turn(&mut self) -> Result<SendTurn<'_>, RunError<E>> {
        // Asked before the turn is: one that has come may be spent already.
        let in_time = self.deadline.allows(Duration::ZERO);
        in_time.map_err(|why| self.stop(why))?;
        let turn = match &self.token {
            Some(token) => self.strategy.send_turn_for(token),
            None => self.strategy.send_turn(),
        };
        // As `stop`, which would borrow the token too: a turn that comes may be lent from it.
        let reusable = self
            .token
            .as_ref()
            .is_none_or(RetryToken::connection_reusable);
        let (error, attempts) = (&mut self.last_error, self.attempts);
        turn.map_err(|refused| {
            let why = Stopped::SendRefused { wait: refused.wait };
            RunError::by_loop(error.take(), why, attempts, reusable)
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
        let (left, limit) = (self.deadline.left(), self.limits.attempt);
        let limit = match (left, limit) {
            (Some(left), Some(limit)) => Some(left.min(limit)),
            (left, limit) => left.or(limit),
        };
        Attempt::new(self.attempts, max, reusable).with_time_limit(limit)
    }

    /// Ends an attempt: records its outcome and decides what comes next.
    pub(super) fn finish<T>(
        &mut self,
        ended: Ended<T, E>,
        classify: impl Fn(&E) -> Failure,
    ) -> Step<T, E> {
        let token = self.token.take();
        let (error, failure) = match ended {
            Ended::Returned(Ok(value)) => {
                // A strategy that refuses its own token changes nothing about the success.
                let _recorded = token.map(|token| self.strategy.record_success(token));
                return Step::Return(value);
            }
            Ended::Returned(Err(error)) => {
                let failure = classify(&error);
                (Some(error), failure)
            }
            Ended::CutOff => (None, Failure::timeout()),
        };
        self.last_error = error;
        let Some(token) = token else {
            return Step::GiveUp(Duration::ZERO, self.stop(Stopped::InitialTokenRefused));
        };
        let token = token
            .with_idempotency(self.limits.idempotency)
            .with_time_left(self.deadline.left());
        match self.strategy.refresh_retry_token(token, &failure) {
            Err(refused) => {
                let error = self.last_error.take();
                let stopped = RunError::by_refresh(error, &refused, self.attempts);
                Step::GiveUp(refused.delay(), stopped)
            }
            Ok(token) => {
                self.token = Some(token);
                // For strategies that do not ask: ours have refused.
                if self.limits.idempotency.permits(&failure) {
                    Step::TryAgain
                } else {
                    Step::GiveUp(Duration::ZERO, self.stop(Stopped::MaybeExecuted))
                }
            }
        }
    }

    /// Ends the operation for a reason that is not its strategy's.
    pub(super) fn stop(&mut self, why: Stopped) -> RunError<E> {
        let reusable = self.connection_reusable();
        RunError::by_loop(self.last_error.take(), why, self.attempts, reusable)
    }

    fn connection_reusable(&self) -> bool {
        self.token
            .as_ref()
            .is_none_or(RetryToken::connection_reusable)
    }
}
