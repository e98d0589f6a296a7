//! The retry loop for threads.

use core::time::Duration;

use super::{
    Attempt, Operation, RunError,
    course::{Course, Step, part_of},
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
        let mut course = Course::begin(self.strategy, self.scope);
        loop {
            self.pause(course.delay());
            let turn = course.take_turn()?;
            let attempt = course.send(self.wait_for(turn));
            match course.finish(op(attempt), &classify) {
                Step::Return(value) => return Ok(value),
                Step::TryAgain => {}
                Step::GiveUp(delay, stopped) => {
                    self.pause(delay);
                    return Err(stopped);
                }
            }
        }
    }

    fn wait_for(&mut self, mut turn: SendTurn<'_>) -> SendPermit {
        loop {
            match turn.claim() {
                Ok(permit) => return permit,
                Err(wait) => self.pause(part_of(wait)),
            }
        }
    }

    fn pause(&mut self, span: Duration) {
        if !span.is_zero() {
            (self.sleep)(span);
        }
    }
}
