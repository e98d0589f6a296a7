//! The retry loop for threads.

use core::time::Duration;
use std::thread;

use super::{Answers, Attempt, Attempts, Next, RunError, Stop, builder::Operation, within};
use crate::{
    Clock, Failure, RetryInfo, RetryStrategy,
    wait::{DefaultSleep, thread_waker},
};

impl<S: RetryStrategy, A: Answers> Operation<'_, S, DefaultSleep, A> {
    /// Runs `op` until it succeeds or the strategy stops it. Its thread sleeps, and parks until its
    /// turn to send.
    ///
    /// # Errors
    ///
    /// Returns [`RunError`] with the last error of `op` and why there was no further attempt.
    pub fn run<T, E: RetryInfo>(
        self,
        op: impl FnMut(Attempt) -> A::Output<T, E>,
    ) -> Result<T, RunError<E>> {
        self.run_with(|error| Failure::of(error), op)
    }

    /// Runs `op` like [`run`](Self::run), with `classify` to classify its errors.
    ///
    /// # Errors
    ///
    /// Returns [`RunError`] with the last error of `op` and why there was no further attempt.
    pub fn run_with<T, E>(
        self,
        classify: impl Fn(&E) -> Failure,
        op: impl FnMut(Attempt) -> A::Output<T, E>,
    ) -> Result<T, RunError<E>> {
        let Self {
            strategy,
            scope,
            bounds,
            clock,
            sleep: DefaultSleep,
            ..
        } = self;
        let clock = clock.unwrap_or(strategy.clock());
        let attempts = Attempts::start(&strategy, scope, bounds, Some(clock));
        run::<A, _, _, _>(attempts, clock, &mut Park, classify, op)
    }
}

impl<S: RetryStrategy, Z: FnMut(Duration), A: Answers> Operation<'_, S, Z, A> {
    /// Runs `op` until it succeeds or the strategy stops it.
    ///
    /// # Errors
    ///
    /// Returns [`RunError`] with the last error of `op` and why there was no further attempt.
    pub fn run<T, E: RetryInfo>(
        self,
        op: impl FnMut(Attempt) -> A::Output<T, E>,
    ) -> Result<T, RunError<E>> {
        self.run_with(|error| Failure::of(error), op)
    }

    /// Runs `op` like [`run`](Self::run), with `classify` to classify its errors.
    ///
    /// # Errors
    ///
    /// Returns [`RunError`] with the last error of `op` and why there was no further attempt.
    pub fn run_with<T, E>(
        self,
        classify: impl Fn(&E) -> Failure,
        op: impl FnMut(Attempt) -> A::Output<T, E>,
    ) -> Result<T, RunError<E>> {
        let Self {
            strategy,
            scope,
            bounds,
            clock,
            sleep,
            ..
        } = self;
        let clock = clock.unwrap_or(strategy.clock());
        let attempts = Attempts::start(&strategy, scope, bounds, Some(clock));
        run::<A, _, _, _>(attempts, clock, &mut By(sleep), classify, op)
    }
}

/// What puts a thread to sleep.
trait Pause {
    /// Sleeps for `span`.
    fn sleep(&mut self, span: Duration);

    /// Waits until there is an attempt to send.
    fn wait<S: RetryStrategy>(
        &mut self,
        attempts: &mut Attempts<S>,
        clock: &dyn Clock,
    ) -> Result<Attempt, Stop>;
}

/// The thread's own sleep, out of which a waker can wake it.
struct Park;

impl Pause for Park {
    fn sleep(&mut self, span: Duration) {
        if !span.is_zero() {
            thread::sleep(span);
        }
    }

    fn wait<S: RetryStrategy>(
        &mut self,
        attempts: &mut Attempts<S>,
        clock: &dyn Clock,
    ) -> Result<Attempt, Stop> {
        attempts.wait_blocking(clock)
    }
}

/// A sleep of the caller's, which cannot be ended early.
struct By<Z>(Z);

impl<Z: FnMut(Duration)> Pause for By<Z> {
    fn sleep(&mut self, span: Duration) {
        if !span.is_zero() {
            (self.0)(span);
        }
    }

    fn wait<S: RetryStrategy>(
        &mut self,
        attempts: &mut Attempts<S>,
        clock: &dyn Clock,
    ) -> Result<Attempt, Stop> {
        loop {
            match attempts.next(clock, None) {
                Next::Send(attempt) => return Ok(attempt),
                Next::Stop(stop) => return Err(stop),
                Next::InLine(rest) => self.sleep(rest.span()),
                Next::Sleep(rest) => {
                    self.sleep(rest.span());
                    attempts.slept();
                }
            }
        }
    }
}

impl<S: RetryStrategy> Attempts<S> {
    /// Waits on this thread until there is an attempt to send. The thread sleeps, and parks in
    /// line.
    ///
    /// # Errors
    ///
    /// [`Stop`] if there will be none.
    pub fn wait_blocking(&mut self, clock: &dyn Clock) -> Result<Attempt, Stop> {
        let mut waker = None; // made if it is needed
        loop {
            match self.next(clock, waker.as_ref()) {
                Next::Send(attempt) => return Ok(attempt),
                Next::Stop(stop) => return Err(stop),
                Next::InLine(rest) if waker.is_some() => thread::park_timeout(rest.span()),
                Next::InLine(_) => waker = Some(thread_waker()),
                Next::Sleep(rest) => {
                    thread::sleep(rest.span());
                    self.slept();
                }
            }
        }
    }
}

fn run<A: Answers, S: RetryStrategy, T, E>(
    mut attempts: Attempts<S>,
    clock: &dyn Clock,
    pause: &mut impl Pause,
    classify: impl Fn(&E) -> Failure,
    mut op: impl FnMut(Attempt) -> A::Output<T, E>,
) -> Result<T, RunError<E>> {
    let mut last = None;
    loop {
        let attempt = match pause.wait(&mut attempts, clock) {
            Ok(attempt) => attempt,
            Err(stop) => return Err(RunError::new(last, stop)),
        };
        let answer = within(attempts.outer(), || op(attempt));
        let (error, stop) = match attempts.answered::<A, _, _>(answer, &classify, clock) {
            Ok(value) => return Ok(value),
            Err(failed) => failed,
        };
        last = Some(error);
        if let Some(stop) = stop {
            pause.sleep(stop.delay());
            return Err(RunError::new(last, stop));
        }
    }
}
