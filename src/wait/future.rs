//! Waiting in a task.

use core::{
    fmt,
    future::{Future, poll_fn},
    mem,
    ops::Deref,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};

use super::place::{InLine, Waiting};
use super::{AcquireRequest, PlaceInLine, Rest, Sleep, Timer};
use crate::{AcquireError, Clock, SendPermit, SendRate, Timestamp};

/// A timer that is made when it is first needed, and armed when its time changes.
#[derive(Debug)]
pub(crate) struct Alarm<T> {
    timer: Option<T>,
    /// What it is armed for.
    until: Option<Timestamp>,
}

impl<T: Timer> Alarm<T> {
    pub(crate) const fn new() -> Self {
        Self {
            timer: None,
            until: None,
        }
    }

    /// Arms the timer for `span` from now.
    pub(crate) fn arm(&mut self, sleep: &impl Sleep<Timer = T>, span: Duration) -> &mut T {
        self.until = None;
        let timer = self.timer.get_or_insert_with(|| sleep.timer());
        timer.arm(span);
        timer
    }

    /// Returns whether the timer has fired since it was armed.
    pub(crate) fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.timer {
            Some(timer) => timer.poll_elapsed(cx),
            None => Poll::Ready(()),
        }
    }

    /// Sleeps for `span`.
    pub(crate) async fn sleep(&mut self, sleep: &impl Sleep<Timer = T>, span: Duration) {
        if !span.is_zero() {
            let timer = self.arm(sleep, span);
            poll_fn(|cx| timer.poll_elapsed(cx)).await;
        }
    }

    /// Polls the timer, armed for the end of `rest`.
    pub(crate) fn poll(
        &mut self,
        sleep: &impl Sleep<Timer = T>,
        rest: &Rest,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let until = Some(rest.until());
        if self.until != until {
            self.arm(sleep, rest.span());
            self.until = until;
        }
        let fired = self.poll_elapsed(cx);
        if fired.is_ready() {
            self.until = None;
        }
        fired
    }

    /// Waits for the turn of `place`, or until `check` refuses: it is asked before each sleep, and
    /// with `None` after it.
    pub(crate) fn poll_place<H: InLine, C: Clock, E>(
        &mut self,
        place: &mut Waiting<H, C>,
        sleep: &impl Sleep<Timer = T>,
        check: impl Fn(Option<&Rest>) -> Result<(), E>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<H::Permit, E>> {
        loop {
            check(None)?;
            let rest = match place.look(cx.waker()) {
                Ok(permit) => return Poll::Ready(Ok(permit)),
                Err(rest) => rest,
            };
            check(Some(&rest))?;
            ready!(self.poll(sleep, &rest, cx));
        }
    }

    /// Runs `work` until it ends or `limit` is over. Of both at once it has ended.
    pub(crate) async fn cut_off<W: Future>(
        &mut self,
        sleep: &impl Sleep<Timer = T>,
        limit: Duration,
        work: W,
    ) -> Option<W::Output> {
        let timer = self.arm(sleep, limit);
        let mut work = pin!(work);
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => timer.poll_elapsed(cx).map(|()| None),
        })
        .await
    }
}

/// The future of send tokens, from [`AcquireRequest::acquire`].
///
/// It asks when it is first polled. Dropped, it gives its place back. Polled again after it is
/// done, it says the same.
#[must_use = "a future does nothing until it is polled"]
pub struct Acquire<R: Deref<Target = SendRate>, C: Clock, Z: Sleep> {
    state: Stage<R, C, Z>,
    alarm: Alarm<Z::Timer>,
}

enum Stage<R: Deref<Target = SendRate>, C: Clock, Z> {
    Asking(AcquireRequest<R, C, Z>),
    InLine(PlaceInLine<R, C>, Z),
    Done(Result<SendPermit, AcquireError>),
}

impl<R: Deref<Target = SendRate>, C: Clock, Z: Sleep> Acquire<R, C, Z> {
    pub(super) const fn new(ask: AcquireRequest<R, C, Z>) -> Self {
        Self {
            state: Stage::Asking(ask),
            alarm: Alarm::new(),
        }
    }

    fn poll_once(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendPermit, AcquireError>> {
        // What is taken out of a state before it is known what comes after it.
        let refused = Stage::Done(Err(AcquireError::NotInTime {
            wait: Duration::ZERO,
        }));
        if let Stage::Asking(ask) = &self.state {
            if let Some(permit) = ask.try_first() {
                return Poll::Ready(Ok(permit));
            }
            if let Stage::Asking(ask) = mem::replace(&mut self.state, refused) {
                let (place, sleep) = ask.take_place()?;
                self.state = Stage::InLine(place, sleep);
            }
        }
        match &mut self.state {
            Stage::Done(done) => Poll::Ready(*done),
            Stage::InLine(place, sleep) => {
                let deadline = place.deadline();
                let check = |rest: Option<&Rest>| rest.map_or(Ok(()), |rest| rest.check(deadline));
                self.alarm.poll_place(&mut place.0, sleep, check, cx)
            }
            Stage::Asking(_) => Poll::Pending,
        }
    }
}

impl<R, C, Z> Future for Acquire<R, C, Z>
where
    R: Deref<Target = SendRate> + Unpin,
    C: Clock + Unpin,
    Z: Sleep + Unpin,
{
    type Output = Result<SendPermit, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.poll_once(cx);
        if let Poll::Ready(done) = polled {
            self.state = Stage::Done(done);
        }
        polled
    }
}

impl<R: Deref<Target = SendRate>, C: Clock, Z: Sleep> fmt::Debug for Acquire<R, C, Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            Stage::Asking(_) => "not polled",
            Stage::InLine(..) => "in line",
            Stage::Done(_) => "done",
        };
        f.debug_tuple("Acquire").field(&state).finish()
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
        let mut alarm = Alarm::new();
        let rest = Rest::between(Timestamp::ZERO, Timestamp::from_nanos(1));
        for armed in 1..=2 {
            let fired = alarm.poll(&Asleep, &rest, &mut Context::from_waker(Waker::noop()));
            assert!(fired.is_ready());
            assert_eq!(alarm.timer.as_ref().map(|timer| timer.0), Some(armed));
        }
    }
}
