//! The retry loop for tasks.

use core::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use super::{
    Attempt, Operation, RunError, Stopped,
    course::{Course, Ended, Step, part_of},
    limits::Deadline,
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
        let deadline = self.limits.start();
        let mut course = Course::begin(self.strategy, self.scope, self.limits, &deadline);
        loop {
            pause(course.delay()?).await;
            let turn = course.take_turn()?;
            let permit = wait_for(turn, &deadline).await;
            let permit = permit.map_err(|why| course.stop(why))?;
            let attempt = course.send(permit);
            let ended = within(attempt.time_limit(), op(attempt)).await;
            match course.finish(ended, &classify) {
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
async fn wait_for(mut turn: SendTurn<'_>, deadline: &Deadline<'_>) -> Result<SendPermit, Stopped> {
    loop {
        match turn.claim() {
            Ok(permit) => return Ok(permit),
            Err(wait) => {
                deadline.allows(wait)?;
                pause(part_of(wait)).await;
                deadline.allows(Duration::ZERO)?;
            }
        }
    }
}

/// Runs an attempt until it ends or its time does. Of both at once it has ended.
async fn within<T, E>(
    limit: Option<Duration>,
    attempt: impl Future<Output = Result<T, E>>,
) -> Ended<T, E> {
    let Some(limit) = limit else {
        return Ended::Returned(attempt.await);
    };
    let (mut attempt, mut time_is_up) = (pin!(attempt), pin!(tokio::time::sleep(limit)));
    poll_fn(|context| {
        if let Poll::Ready(returned) = attempt.as_mut().poll(context) {
            return Poll::Ready(Ended::Returned(returned));
        }
        time_is_up.as_mut().poll(context).map(|()| Ended::CutOff)
    })
    .await
}

async fn pause(span: Duration) {
    if !span.is_zero() {
        tokio::time::sleep(span).await;
    }
}
