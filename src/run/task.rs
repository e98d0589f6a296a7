//! The retry loop for tasks.

use core::future::Future;

use super::{
    Attempt, Operation, RunError, Stopped,
    course::{Course, Ended, Step},
    limits::Deadline,
};
use crate::{Failure, RetryInfo, RetryStrategy, SendPermit, SendTurn, Sleep, wait::Alarm};

impl<S: RetryStrategy + ?Sized, Z: Sleep> Operation<'_, S, Z> {
    /// Runs `op` until it succeeds or the strategy stops it.
    ///
    /// The future may be dropped at any await. A place in line goes back at once, the quota paid for
    /// a retry that was not made is spent, and the outcome of a send in progress goes unrecorded.
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
        let deadline = self.limits.start();
        let mut course = Course::begin(self.strategy, self.scope, self.limits, &deadline);
        let (sleep, mut alarm) = (self.sleep, Alarm::new());
        loop {
            alarm.sleep(&sleep, course.delay()?).await;
            let turn = course.take_turn()?;
            let permit = wait_for(turn, &deadline, &mut alarm, &sleep).await;
            let permit = permit.map_err(|why| course.stop(why))?;
            let attempt = course.send(permit);
            let ended = match attempt.time_limit() {
                None => Ended::Returned(op(attempt).await),
                Some(limit) => {
                    let ended = alarm.cut_off(&sleep, limit, op(attempt)).await;
                    ended.map_or(Ended::CutOff, Ended::Returned)
                }
            };
            match course.finish(ended, &classify) {
                Step::Return(value) => return Ok(value),
                Step::TryAgain => {}
                Step::GiveUp(delay, stopped) => {
                    alarm.sleep(&sleep, delay).await;
                    return Err(stopped);
                }
            }
        }
    }
}

/// Waits for `turn` to come. Dropped before that, it drops the turn, and the place goes back.
async fn wait_for<Z: Sleep>(
    mut turn: SendTurn<'_>,
    deadline: &Deadline<'_>,
    alarm: &mut Alarm<Z::Timer>,
    sleep: &Z,
) -> Result<SendPermit, Stopped> {
    turn.wait_while(|wait| deadline.allows(wait), alarm, sleep)
        .await
}
