//! Driving an operation in a task.

use core::{
    future::poll_fn,
    task::{Context, Poll, ready},
};

use super::{Attempt, Attempts, Next, Stop};
use crate::{
    Clock, RetryStrategy,
    wait::{Sleep, waiter::Waiter},
};

impl<Z: Sleep> Waiter<Z> {
    /// Waits until there is an attempt to send. If the future is dropped, the method may be called
    /// again.
    ///
    /// # Errors
    ///
    /// [`Stop`] if there is no attempt.
    pub async fn next<S: RetryStrategy>(
        &mut self,
        attempts: &mut Attempts<S>,
        clock: &dyn Clock,
    ) -> Result<Attempt, Stop> {
        poll_fn(|cx| self.poll_next(attempts, clock, cx)).await
    }

    /// Like [`next`](Self::next), for hosts that poll.
    ///
    /// # Errors
    ///
    /// [`Stop`] if there will be no attempt.
    pub fn poll_next<S: RetryStrategy>(
        &mut self,
        attempts: &mut Attempts<S>,
        clock: &dyn Clock,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Attempt, Stop>> {
        loop {
            let rest = match attempts.next(clock, Some(cx.waker())) {
                Next::Send(attempt) => return Poll::Ready(Ok(attempt)),
                Next::Stop(stop) => return Poll::Ready(Err(stop)),
                Next::Sleep(rest) | Next::InLine(rest) => rest,
            };
            ready!(self.poll(&rest, cx));
            attempts.slept();
        }
    }

    /// Waits until the backoff of the next attempt is over, and takes no turn to send.
    pub fn poll_backoff<S: RetryStrategy>(
        &mut self,
        attempts: &mut Attempts<S>,
        clock: &dyn Clock,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if let Some(rest) = attempts.backoff(clock) {
            ready!(self.poll(&rest, cx));
            attempts.slept();
        }
        Poll::Ready(())
    }
}
