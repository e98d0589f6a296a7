//! Waiting in a task, by any runtime's timer.

use core::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use super::place::Waiting;
use super::{Rest, Sleep, Timer, name_of};
use crate::seam::InLine;
use crate::{AcquireError, Clock, Timestamp};

/// Waits for the attempts of an operation in a task, by the timer of `Z`.
///
/// Make a waiter for each operation. It makes a timer when it first has to wait, and keeps this
/// timer. A waiter holds no place, so a drop stops only its timer.
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
    timer: Option<Z::Timer>,
    /// The end of the rest that the timer is armed for, if there is a rest.
    until: Option<Timestamp>,
}

impl<Z: Sleep> Waiter<Z> {
    /// Creates a waiter. The timer is made when it is first needed.
    pub const fn new(sleep: Z) -> Self {
        Self {
            sleep,
            timer: None,
            until: None,
        }
    }

    /// Sleeps for `span`.
    pub async fn sleep(&mut self, span: Duration) {
        if !span.is_zero() {
            self.arm(span);
            poll_fn(|cx| self.poll_elapsed(cx)).await;
        }
    }

    /// Lets [`poll_elapsed`](Self::poll_elapsed) be ready `span` from now, for hosts that poll.
    pub fn arm(&mut self, span: Duration) {
        self.until = None;
        let timer = self.timer.get_or_insert_with(|| self.sleep.timer());
        timer.arm(span);
    }

    /// Returns whether the span of [`arm`](Self::arm) has passed. Without a call of `arm` the
    /// result may be either.
    pub fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.timer {
            Some(timer) => timer.poll_elapsed(cx),
            None => Poll::Ready(()),
        }
    }

    /// Polls the timer, armed for the end of `rest`.
    pub(crate) fn poll(&mut self, rest: &Rest, cx: &mut Context<'_>) -> Poll<()> {
        let until = Some(rest.until());
        if self.until != until {
            self.arm(rest.span());
            self.until = until;
        }
        let fired = self.poll_elapsed(cx);
        if fired.is_ready() {
            self.until = None;
        }
        fired
    }

    /// Waits for the turn of `place`, if it can come before its deadline.
    pub(super) fn poll_place<H: InLine, C: Clock>(
        &mut self,
        place: &mut Waiting<H, C>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<H::Permit, AcquireError>> {
        loop {
            let rest = match place.look(cx.waker()) {
                Ok(permit) => return Poll::Ready(Ok(permit)),
                Err(rest) => rest,
            };
            rest.check(place.deadline())?;
            ready!(self.poll(&rest, cx));
        }
    }

    /// Runs `work` until it ends, or cuts it off after `limit`. `None` if the work was cut off.
    /// Work that ends exactly at `limit` counts as ended.
    pub async fn cut_off<W: Future>(
        &mut self,
        limit: Option<Duration>,
        work: W,
    ) -> Option<W::Output> {
        let Some(limit) = limit else {
            return Some(work.await);
        };
        self.arm(limit);
        let mut work = pin!(work);
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => self.poll_elapsed(cx).map(|()| None),
        })
        .await
    }
}

impl<Z: Sleep> fmt::Debug for Waiter<Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter")
            .field("sleep", &name_of::<Z>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]
mod tests {
    use core::task::Waker;

    use super::*;

    /// Counts how often it is armed, and fires at once.
    #[derive(Default)]
    struct Hasty(u32);

    impl Timer for Hasty {
        fn arm(&mut self, _: Duration) {
            self.0 += 1;
        }

        fn poll_elapsed(&mut self, _: &mut Context<'_>) -> Poll<()> {
            Poll::Ready(())
        }
    }

    struct Asleep;

    impl Sleep for Asleep {
        type Timer = Hasty;

        fn timer(&self) -> Hasty {
            Hasty::default()
        }
    }

    #[test]
    fn a_timer_that_fired_early_is_armed_again() {
        let mut waiter = Waiter::new(Asleep);
        let rest = Rest::between(Timestamp::ZERO, Timestamp::from_nanos(1));
        for armed in 1..=2 {
            let fired = waiter.poll(&rest, &mut Context::from_waker(Waker::noop()));
            assert!(fired.is_ready());
            assert_eq!(waiter.timer.as_ref().map(|timer| timer.0), Some(armed));
        }
    }
}
