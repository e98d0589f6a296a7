//! The retry loop for tasks.

use core::{future::Future, time::Duration};

use super::{
    Attempt, Operation, RunError,
    course::{Course, Step, part_of},
};
use crate::{Failure, RetryInfo, RetryStrategy, SendPermit, SendTurn};

impl<S: RetryStrategy + ?Sized> Operation<'_, S> {
    /// Runs `op` until it succeeds or the strategy stops it.
    ///
    /// [`RetryStrategyExt::run_async`](crate::RetryStrategyExt::run_async) says what dropping it does.
    ///
    /// # Errors
    ///
    /// Returns [`RunError`] with the last error of `op` and why there was no further attempt.
    pub async fn run_async<T, E, F>(self, op: impl FnMut(Attempt) -> F) -> Result<T, RunError<E>>
    where
        E: RetryInfo,
        F: Future<Output = Result<T, E>>,
    {
        self.run_async_with(|error| Failure::of(error), op).await
    }

    /// Runs `op` like [`run_async`](Self::run_async), with `classify` to tell what its errors mean.
    ///
    /// # Errors
    ///
    /// Returns [`RunError`] with the last error of `op` and why there was no further attempt.
    pub async fn run_async_with<T, E, F>(
        self,
        classify: impl Fn(&E) -> Failure,
        mut op: impl FnMut(Attempt) -> F,
    ) -> Result<T, RunError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let mut course = Course::begin(self.strategy, self.scope);
        loop {
            pause(course.delay()).await;
            let turn = course.take_turn()?;
            let attempt = course.send(wait_for(turn).await);
            match course.finish(op(attempt).await, &classify) {
                Step::Return(value) => return Ok(value),
                Step::TryAgain => {}
                Step::GiveUp(delay, stopped) => {
                    pause(delay).await;
                    return Err(stopped);
                }
            }
        }
    }
}

/// Waits for `turn` to come. Dropped before that, it drops the turn, and the place goes back.
async fn wait_for(mut turn: SendTurn<'_>) -> SendPermit {
    loop {
        match turn.claim() {
            Ok(permit) => return permit,
            Err(wait) => pause(part_of(wait)).await,
        }
    }
}

async fn pause(span: Duration) {
    if !span.is_zero() {
        tokio::time::sleep(span).await;
    }
}
