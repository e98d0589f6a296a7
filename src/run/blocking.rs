//! The retry loop for threads.

use core::time::Duration;

use super::{
    Attempt, Operation, RunError, Stopped,
    course::{Course, Ended, Step, part_of},
    limits::Deadline,
};
use crate::{Failure, RetryInfo, RetryStrategy, SendPermit, SendTurn};

impl<S: RetryStrategy + ?Sized, Z: FnMut(Duration)> Operation<'_, S, Z> {
    /// Runs `op` until it succeeds or the strategy stops it.
    ///
    /// # Errors
    ///
    /// Returns [`RunError`] with the last error of `op` and why there was no further attempt.
    pub fn run<T, E: RetryInfo>(
        self,
        op: impl FnMut(Attempt) -> Result<T, E>,
    ) -> Result<T, RunError<E>> {
        self.run_with(|error| Failure::of(error), op)
    }

    /// Runs `op` like [`run`](Self::run), with `classify` to tell what its errors mean.
    ///
    /// # Errors
    ///
    /// Returns [`RunError`] with the last error of `op` and why there was no further attempt.
    pub fn run_with<T, E>(
        mut self,
        classify: impl Fn(&E) -> Failure,
        mut op: impl FnMut(Attempt) -> Result<T, E>,
    ) -> Result<T, RunError<E>> {
        let deadline = self.limits.start();
        let mut course = Course::begin(self.strategy, self.scope, self.limits, &deadline);
        loop {
            self.pause(course.delay()?);
            let turn = course.take_turn()?;
            let permit = self.wait_for(turn, &deadline);
            let permit = permit.map_err(|why| course.stop(why))?;
            let attempt = course.send(permit);
            match course.finish(Ended::Returned(op(attempt)), &classify) {
                Step::Return(value) => return Ok(value),
                Step::TryAgain => {}
                Step::GiveUp(delay, stopped) => {
                    self.pause(delay);
                    return Err(stopped);
                }
            }
        }
    }

    fn wait_for(
        &mut self,
        mut turn: SendTurn<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<SendPermit, Stopped> {
        loop {
            match turn.claim() {
                Ok(permit) => return Ok(permit),
                Err(wait) => {
                    deadline.allows(wait)?;
                    self.pause(part_of(wait));
                    deadline.allows(Duration::ZERO)?;
                }
            }
        }
    }

    fn pause(&mut self, span: Duration) {
        if !span.is_zero() {
            (self.sleep)(span);
        }
    }
}
