//! The future of send tokens.

use core::{
    fmt,
    future::Future,
    mem,
    ops::Deref,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use super::{AcquireRequest, PlaceInLine, Sleep, Waiter};
use crate::{AcquireError, Clock, SendPermit, SendRate};

/// The future of send tokens, from [`AcquireRequest::acquire`].
///
/// It asks when it is first polled. Dropped, it gives its place back. Polled again after it is
/// done, it says the same.
#[must_use = "a future does nothing until it is polled"]
pub struct Acquire<R: Deref<Target = SendRate>, C: Clock, Z: Sleep>(Stage<R, C, Z>);

enum Stage<R: Deref<Target = SendRate>, C: Clock, Z: Sleep> {
    Asking(AcquireRequest<R, C, Z>),
    InLine(PlaceInLine<R, C>, Waiter<Z>),
    Done(Result<SendPermit, AcquireError>),
}

impl<R: Deref<Target = SendRate>, C: Clock, Z: Sleep> Acquire<R, C, Z> {
    pub(super) const fn new(ask: AcquireRequest<R, C, Z>) -> Self {
        Self(Stage::Asking(ask))
    }

    fn poll_once(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendPermit, AcquireError>> {
        // What is taken out of a state before it is known what comes after it.
        let refused = Stage::Done(Err(AcquireError::NotInTime {
            wait: Duration::ZERO,
        }));
        if let Stage::Asking(ask) = &self.0 {
            if let Some(permit) = ask.try_first() {
                return Poll::Ready(Ok(permit));
            }
            if let Stage::Asking(ask) = mem::replace(&mut self.0, refused) {
                let (place, sleep) = ask.take_place()?;
                self.0 = Stage::InLine(place, Waiter::new(sleep));
            }
        }
        match &mut self.0 {
            Stage::Done(done) => Poll::Ready(*done),
            Stage::InLine(place, waiter) => waiter.poll_place(&mut place.0, cx),
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
            self.0 = Stage::Done(done);
        }
        polled
    }
}

impl<R: Deref<Target = SendRate>, C: Clock, Z: Sleep> fmt::Debug for Acquire<R, C, Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.0 {
            Stage::Asking(_) => "not polled",
            Stage::InLine(..) => "in line",
            Stage::Done(_) => "done",
        };
        f.debug_tuple("Acquire").field(&state).finish()
    }
}
