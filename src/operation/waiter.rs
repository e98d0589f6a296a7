//! Driving an operation in a task, by any runtime's timer.

use core::{
    fmt,
    future::{Future, poll_fn},
    task::{Context, Poll, ready},
    time::Duration,
};

use super::{Attempt, Attempts, Next, Stop};
use crate::{
    Clock, RetryStrategy,
    wait::{Alarm, Sleep, name_of},
};

/// Waits for the attempts of an operation in a task, by the timer of `Z`.
///
/// Make one for each operation. It makes a timer when it first has to wait, and uses that one from
/// then on. It holds no place: dropped, it stops nothing but its timer.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "tokio")] {
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use paceline::{
///     Adaptive, Operation, RetryStrategy, operation::Waiter, strategy::Reports,
///     wait::DefaultSleep,
/// };
///
/// let strategy = Adaptive::paced();
/// let mut attempts = Operation::new(&strategy).start();
/// let mut waiter = Waiter::new(DefaultSleep::new());
/// let attempt = waiter.next(&mut attempts, strategy.clock()).await.unwrap();
/// assert_eq!(attempt.number(), 1); // ... send it
/// attempts.succeeded(Reports::new()).unwrap();
/// # }
/// # main() }
/// ```
pub struct Waiter<Z: Sleep> {
    sleep: Z,
    alarm: Alarm<Z::Timer>,
}

impl<Z: Sleep> Waiter<Z> {
    /// Creates it. The timer is made when it is first needed.
    pub const fn new(sleep: Z) -> Self {
        Self {
            sleep,
            alarm: Alarm::new(),
        }
    }

    /// Waits until there is an attempt to send. Dropped before that, it may be called again.
    ///
    /// # Errors
    ///
    /// [`Stop`] if there will be none.
    pub async fn next<S: RetryStrategy>(
        &mut self,
        attempts: &mut Attempts<S>,
        clock: &dyn Clock,
    ) -> Result<Attempt, Stop> {
        poll_fn(|cx| self.poll_next(attempts, clock, cx)).await
    }

    /// As [`next`](Self::next), for hosts that poll.
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
            match attempts.next(clock, Some(cx.waker())) {
                Next::Send(attempt) => return Poll::Ready(Ok(attempt)),
                Next::Stop(stop) => return Poll::Ready(Err(stop)),
                Next::InLine(rest) => ready!(self.alarm.poll(&self.sleep, &rest, cx)),
                Next::Sleep(rest) => {
                    ready!(self.alarm.poll(&self.sleep, &rest, cx));
                    attempts.slept();
                }
            }
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
            ready!(self.alarm.poll(&self.sleep, &rest, cx));
            attempts.slept();
        }
        Poll::Ready(())
    }

    /// Sleeps for `span`.
    pub async fn sleep(&mut self, span: Duration) {
        self.alarm.sleep(&self.sleep, span).await;
    }

    /// Lets [`poll_elapsed`](Self::poll_elapsed) be ready `span` from now, for hosts that poll.
    pub fn arm(&mut self, span: Duration) {
        self.alarm.arm(&self.sleep, span);
    }

    /// Returns whether the span has passed that [`arm`](Self::arm) was given. Not armed, it may
    /// return either.
    pub fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.alarm.poll_elapsed(cx)
    }

    /// Runs `work` until it ends, or cuts it off after `limit`. `None` if it was cut off.
    pub async fn cut_off<W: Future>(
        &mut self,
        limit: Option<Duration>,
        work: W,
    ) -> Option<W::Output> {
        match limit {
            None => Some(work.await),
            Some(limit) => self.alarm.cut_off(&self.sleep, limit, work).await,
        }
    }
}

impl<Z: Sleep> fmt::Debug for Waiter<Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter")
            .field("sleep", &name_of::<Z>())
            .finish_non_exhaustive()
    }
}
