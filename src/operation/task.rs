//! The retry loop for tasks.

use core::future::Future;

use super::{
    Answers, Attempt, Attempts, RunError, Waiter, builder::Operation, within, within_async,
};
use crate::{Failure, RetryInfo, RetryStrategy, wait::Sleep};

impl<S: RetryStrategy, Z: Sleep, A: Answers> Operation<'_, S, Z, A> {
    /// Runs `op` until it succeeds or the strategy stops it.
    ///
    /// The future may be dropped at any await. A place in line goes back at once, and so does the
    /// quota paid for a retry that was not made. A send in progress counts as
    /// [cancelled](RetryStrategy::record_cancelled).
    ///
    /// # Errors
    ///
    /// Returns [`RunError`] with the last error of `op` and why there was no further attempt.
    pub async fn run_async<T, E, F>(self, op: impl FnMut(Attempt) -> F) -> Result<T, RunError<E>>
    where
        E: RetryInfo,
        F: Future<Output = A::Output<T, E>>,
    {
        self.run_async_with(RetryInfo::failure, op).await
    }

    /// Runs `op` like [`run_async`](Self::run_async), with `classify` to classify its errors.
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
        F: Future<Output = A::Output<T, E>>,
    {
        let clock = self.clock.unwrap_or(self.strategy.clock());
        let mut attempts = Attempts::start(&self.strategy, self.scope, self.bounds, Some(clock));
        let mut waiter = Waiter::new(self.sleep);
        let mut last = None;
        loop {
            let attempt = match waiter.next(&mut attempts, clock).await {
                Ok(attempt) => attempt,
                Err(stop) => return Err(RunError::new(last, stop)),
            };
            let outer = attempts.outer();
            let work = within_async(outer, within(outer, || op(attempt)));
            let answer = waiter.cut_off(attempt.time_limit(), work).await;
            let (error, stop) = match attempts.answered::<A, _, _>(answer, &classify, clock) {
                Ok(value) => return Ok(value),
                Err(failed) => failed,
            };
            last = error;
            if let Some(stop) = stop {
                waiter.sleep(stop.delay()).await;
                return Err(RunError::new(last, stop));
            }
        }
    }
}
