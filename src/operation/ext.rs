//! The loops as methods of strategies.

#[cfg(feature = "metrics")]
use alloc::{string::ToString, sync::Arc};
use core::future::Future;

use super::{Attempt, RunError, TaskSleep};
use crate::wait::DefaultSleep;
use crate::{Failure, Operation, RetryInfo, RetryStrategy};

/// The retry loops, for every [`RetryStrategy`] and for `dyn RetryStrategy`.
///
/// A loop acquires the initial token, and makes exactly one attempt if the token is refused. Before
/// each attempt, the first too, it waits for the token's delay, and then until the strategy
/// [admits](RetryStrategy::admit) the attempt. It returns the last error of the operation and why
/// the loop stopped. [`Attempts`](super::Attempts) is this loop without the waiting and the
/// sending.
pub trait RetryStrategyExt: RetryStrategy {
    /// Runs `op` until it succeeds or the strategy stops it, sleeping on this thread. An
    /// [`Interrupt`](crate::wait::Interrupt) ends it early.
    ///
    /// # Errors
    ///
    /// Returns [`RunError`] with the last error of `op` and why there was no further attempt.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Failure, RetryStrategyExt, Standard};
    ///
    /// let answer = Standard::new().run(|attempt| {
    ///     if attempt.number() == 1 { Err(Failure::transient()) } else { Ok("second time lucky") }
    /// });
    /// assert_eq!(answer.unwrap(), "second time lucky");
    /// ```
    fn run<T, E: RetryInfo>(
        &self,
        op: impl FnMut(Attempt) -> Result<T, E>,
    ) -> Result<T, RunError<E>> {
        self.operation().run(op)
    }

    /// Runs `op` like [`run`](Self::run), with `classify` to classify its errors.
    ///
    /// # Errors
    ///
    /// Returns [`RunError`] with the last error of `op` and why there was no further attempt.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io;
    /// use paceline::{Failure, RetryStrategyExt, Standard};
    ///
    /// let classify = |e: &io::Error| match e.kind() {
    ///     io::ErrorKind::Interrupted => Failure::transient(),
    ///     _ => Failure::not_retryable(),
    /// };
    /// let stopped = Standard::new()
    ///     .run_with(classify, |_| Err::<(), _>(io::Error::from(io::ErrorKind::NotFound)))
    ///     .unwrap_err();
    /// assert_eq!(stopped.into_error().unwrap().kind(), io::ErrorKind::NotFound);
    /// ```
    fn run_with<T, E>(
        &self,
        classify: impl Fn(&E) -> Failure,
        op: impl FnMut(Attempt) -> Result<T, E>,
    ) -> Result<T, RunError<E>> {
        self.operation().run_with(classify, op)
    }

    /// Runs `op` until it succeeds or the strategy stops it, sleeping by tokio's timer.
    ///
    /// The future may be dropped at any await. A place in line goes back at once, and so does the
    /// quota paid for a retry that was not made. A send in progress counts as
    /// [cancelled](RetryStrategy::record_cancelled). tokio's timer wakes up to a millisecond late.
    ///
    /// # Errors
    ///
    /// Its output is [`RunError`] with the last error of `op` and why there was no further attempt.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use paceline::{Failure, RetryStrategyExt, Standard};
    ///
    /// let answer = Standard::new().run_async(async |_| Ok::<_, Failure>(42)).await;
    /// assert_eq!(answer.unwrap(), 42);
    /// # }
    /// ```
    fn run_async<T, E, F>(
        &self,
        op: impl FnMut(Attempt) -> F,
    ) -> impl Future<Output = Result<T, RunError<E>>>
    where
        DefaultSleep: TaskSleep<Self>,
        E: RetryInfo,
        F: Future<Output = Result<T, E>>,
    {
        let sleep = <DefaultSleep as TaskSleep<Self>>::SLEEP;
        self.operation().sleep_on(sleep).run_async(op)
    }

    /// Runs `op` like [`run_async`](Self::run_async), with `classify` to classify its errors.
    ///
    /// # Errors
    ///
    /// Its output is [`RunError`] with the last error of `op` and why there was no further attempt.
    fn run_async_with<T, E, F>(
        &self,
        classify: impl Fn(&E) -> Failure,
        op: impl FnMut(Attempt) -> F,
    ) -> impl Future<Output = Result<T, RunError<E>>>
    where
        DefaultSleep: TaskSleep<Self>,
        F: Future<Output = Result<T, E>>,
    {
        let sleep = <DefaultSleep as TaskSleep<Self>>::SLEEP;
        self.operation()
            .sleep_on(sleep)
            .run_async_with(classify, op)
    }

    /// Hands the state to the recorder of the crate `metrics`, labelled `strategy` with the
    /// [name](RetryStrategy::name) of the strategy, or else with the number that its events have.
    ///
    /// Call it every few seconds. See
    /// [`StrategySnapshot::publish`](crate::snapshot::StrategySnapshot::publish).
    #[cfg(feature = "metrics")]
    fn publish(&self) {
        let number = || self.id().map(|id| Arc::from(id.to_string()));
        let name = self.name(None).or_else(number).unwrap_or_default();
        self.snapshot().publish(&name);
    }

    /// Begins an operation with separate settings, such as a scope or another way to sleep.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{cell::Cell, time::Duration};
    /// use paceline::{Failure, RetryStrategyExt, Standard};
    ///
    /// let slept = Cell::new(Duration::ZERO);
    /// let stopped = Standard::new()
    ///     .operation()
    ///     .scope("orders")
    ///     .sleep_by(|span| slept.set(slept.get() + span))
    ///     .run(|_| Err::<(), _>(Failure::transient()))
    ///     .unwrap_err();
    /// assert_eq!(stopped.attempts(), 3);
    /// assert!(slept.get() <= Duration::from_millis(50 + 100));
    /// ```
    fn operation(&self) -> Operation<'_, &Self> {
        Operation::new(self)
    }
}

impl<S: RetryStrategy + ?Sized> RetryStrategyExt for S {}
