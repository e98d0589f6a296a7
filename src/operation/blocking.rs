//! The retry loop for threads.

use core::{task::Waker, time::Duration};
use std::thread;

use super::{Answers, Attempt, Attempts, Next, RunError, Stop, builder::Operation, within};
use crate::{
    Clock, Failure, RetryInfo, RetryStrategy,
    wait::{DefaultSleep, interrupt, thread_waker},
};

impl<S: RetryStrategy, Z: ThreadSleep, A: Answers> Operation<'_, S, Z, A> {
    /// Runs `op` until it succeeds or the strategy stops it. Its thread sleeps, and parks until its
    /// turn to send, unless the operation [sleeps otherwise](Self::sleep_by). An
    /// [`Interrupt`](crate::wait::Interrupt) ends these waits, and the operation.
    ///
    /// # Errors
    ///
    /// Returns [`RunError`] with the last error of `op` and why there was no further attempt.
    pub fn run<T, E: RetryInfo>(
        self,
        op: impl FnMut(Attempt) -> A::Output<T, E>,
    ) -> Result<T, RunError<E>> {
        self.run_with(RetryInfo::failure, op)
    }

    /// Runs `op` like [`run`](Self::run), with `classify` to classify its errors.
    ///
    /// # Errors
    ///
    /// Returns [`RunError`] with the last error of `op` and why there was no further attempt.
    pub fn run_with<T, E>(
        self,
        classify: impl Fn(&E) -> Failure,
        mut op: impl FnMut(Attempt) -> A::Output<T, E>,
    ) -> Result<T, RunError<E>> {
        let clock = self.clock.unwrap_or(self.strategy.clock());
        let mut attempts = Attempts::start(&self.strategy, self.scope, self.bounds, Some(clock));
        let (mut sleep, mut last) = (self.sleep, None);
        loop {
            let attempt = match attempts.wait_by(clock, &mut sleep) {
                Ok(attempt) => attempt,
                Err(stop) => return Err(RunError::new(last, stop)),
            };
            let answer = Some(within(attempts.outer(), || op(attempt)));
            let (error, stop) = match attempts.answered::<A, _, _>(answer, &classify, clock) {
                Ok(value) => return Ok(value),
                Err(failed) => failed,
            };
            last = error;
            if let Some(stop) = stop {
                sleep.sleep(stop.delay());
                return Err(RunError::new(last, stop));
            }
        }
    }
}

/// The way in which a thread sleeps: `thread::sleep`, or a function of the caller.
#[expect(unnameable_types, reason = "callers pass a function")]
pub trait ThreadSleep {
    /// Sleeps for `span`.
    fn sleep(&mut self, span: Duration);

    /// Rests in line for `span`, or until `waker` wakes the thread. If a waker can end the sleep
    /// and `waker` is `None`, the call makes the waker and returns at once.
    fn rest_in_line(&mut self, span: Duration, waker: &mut Option<Waker>);
}

/// A waker can end this sleep.
impl ThreadSleep for DefaultSleep {
    fn sleep(&mut self, span: Duration) {
        interrupt::sleep(span, thread::sleep);
    }

    fn rest_in_line(&mut self, span: Duration, waker: &mut Option<Waker>) {
        match waker {
            Some(_) => thread::park_timeout(interrupt::slice(span)),
            None => *waker = Some(thread_waker()),
        }
    }
}

/// No waker can end this sleep.
impl<Z: FnMut(Duration)> ThreadSleep for Z {
    fn sleep(&mut self, span: Duration) {
        interrupt::sleep(span, self);
    }

    fn rest_in_line(&mut self, span: Duration, _: &mut Option<Waker>) {
        self.sleep(span);
    }
}

impl<S: RetryStrategy> Attempts<S> {
    /// Waits on this thread until there is an attempt to send. The thread sleeps, and parks in
    /// line. An [`Interrupt`](crate::wait::Interrupt) ends the wait.
    ///
    /// # Errors
    ///
    /// [`Stop`] if there is no further attempt.
    pub fn wait_blocking(&mut self, clock: &dyn Clock) -> Result<Attempt, Stop> {
        self.wait_by(clock, &mut DefaultSleep)
    }

    fn wait_by(
        &mut self,
        clock: &dyn Clock,
        pause: &mut impl ThreadSleep,
    ) -> Result<Attempt, Stop> {
        let mut waker = None; // made if it is needed
        loop {
            if interrupt::is_interrupted() {
                return Err(self.interrupted(clock));
            }
            match self.next(clock, waker.as_ref()) {
                Next::Send(attempt) => return Ok(attempt),
                Next::Stop(stop) => return Err(stop),
                Next::Sleep(rest) => {
                    pause.sleep(rest.span());
                    self.slept();
                }
                Next::InLine(rest) => pause.rest_in_line(rest.span(), &mut waker),
            }
        }
    }
}
