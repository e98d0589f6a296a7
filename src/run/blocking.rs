//! The retry loop for threads.

use core::time::Duration;
use std::thread;

use super::{
    Attempt, Operation, RunError, Stopped,
    course::{Course, Ended, Step},
    limits::{Deadline, Limits},
};
use crate::{
    DefaultSleep, Failure, RetryInfo, RetryStrategy, SendPermit, SendTurn,
    wait::{LOOK_AGAIN, Rest, block},
};

impl<S: RetryStrategy + ?Sized> Operation<'_, S> {
    /// Runs `op` until it succeeds or the strategy stops it. Its thread sleeps, and parks until its turn to send.
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
        self,
        classify: impl Fn(&E) -> Failure,
        op: impl FnMut(Attempt) -> Result<T, E>,
    ) -> Result<T, RunError<E>> {
        let Self {
            strategy,
            scope,
            limits,
            sleep,
        } = self;
        run((strategy, scope, limits), sleep, classify, op)
    }
}

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
        self,
        classify: impl Fn(&E) -> Failure,
        op: impl FnMut(Attempt) -> Result<T, E>,
    ) -> Result<T, RunError<E>> {
        let Self {
            strategy,
            scope,
            limits,
            sleep,
        } = self;
        run((strategy, scope, limits), By(sleep), classify, op)
    }
}

/// What puts a thread to sleep.
trait Pause {
    /// Sleeps for `span`.
    fn pause(&mut self, span: Duration);

    /// Sleeps until the turn to send, unless that is too late.
    fn wait_for(
        &mut self,
        turn: SendTurn<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<SendPermit, Stopped>;
}

impl Pause for DefaultSleep {
    fn pause(&mut self, span: Duration) {
        if !span.is_zero() {
            thread::sleep(span);
        }
    }

    fn wait_for(
        &mut self,
        mut turn: SendTurn<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<SendPermit, Stopped> {
        match turn.place() {
            Err(permit) => return Ok(permit),
            Ok(Some(place)) => {
                let _own = block(place, |rest| {
                    deadline.allows(rest.map_or(Duration::ZERO, Rest::wait))
                })?;
            }
            Ok(None) => {}
        }
        ask(self, turn, deadline)
    }
}

/// A sleep of the caller's, out of which nobody can be woken.
struct By<Z>(Z);

impl<Z: FnMut(Duration)> Pause for By<Z> {
    fn pause(&mut self, span: Duration) {
        if !span.is_zero() {
            (self.0)(span);
        }
    }

    fn wait_for(
        &mut self,
        turn: SendTurn<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<SendPermit, Stopped> {
        ask(self, turn, deadline)
    }
}

/// Asks for the turn until it has come, and sleeps in between.
fn ask(
    sleep: &mut impl Pause,
    mut turn: SendTurn<'_>,
    deadline: &Deadline<'_>,
) -> Result<SendPermit, Stopped> {
    loop {
        match turn.claim() {
            Ok(permit) => return Ok(permit),
            Err(wait) => {
                deadline.allows(wait)?;
                sleep.pause(wait.min(LOOK_AGAIN));
                deadline.allows(Duration::ZERO)?;
            }
        }
    }
}

fn run<S: RetryStrategy + ?Sized, T, E>(
    (strategy, scope, limits): (&S, Option<&str>, Limits<'_>),
    mut sleep: impl Pause,
    classify: impl Fn(&E) -> Failure,
    mut op: impl FnMut(Attempt) -> Result<T, E>,
) -> Result<T, RunError<E>> {
    let deadline = limits.start();
    let mut course = Course::begin(strategy, scope, limits, &deadline);
    loop {
        sleep.pause(course.delay()?);
        let turn = course.take_turn()?;
        let permit = sleep.wait_for(turn, &deadline);
        let permit = permit.map_err(|why| course.stop(why))?;
        let attempt = course.send(permit);
        match course.finish(Ended::Returned(op(attempt)), &classify) {
            Step::Return(value) => return Ok(value),
            Step::TryAgain => {}
            Step::GiveUp(delay, stopped) => {
                sleep.pause(delay);
                return Err(stopped);
            }
        }
    }
}
