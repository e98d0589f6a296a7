//! The future of send tokens.

use core::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use super::Limit;
use super::{AcquireRequest, PlaceInLine, Sleep, Waiter};
use crate::{AcquireError, Clock};

/// The future of send tokens, from [`AcquireRequest::acquire`].
///
/// The future asks for the tokens when it is first polled. A drop gives its place back. A poll
/// after its end returns the same result.
#[must_use = "a future does nothing until it is polled"]
pub struct Acquire<L: Limit, C: Clock, Z: Sleep>(Stage<L, C, Z>);

enum Stage<L: Limit, C: Clock, Z: Sleep> {
    Asking(AcquireRequest<L, C, Z, L::Weights>),
    InLine(PlaceInLine<L, C>, Waiter<Z>),
    Done(Result<L::Permit, L::Error>),
}

impl<L: Limit, C: Clock, Z: Sleep> Acquire<L, C, Z> {
    pub(super) const fn new(ask: AcquireRequest<L, C, Z, L::Weights>) -> Self {
        Self(Stage::Asking(ask))
    }

    fn poll_once(&mut self, cx: &mut Context<'_>) -> Poll<Result<L::Permit, L::Error>> {
        // The stage that stands in while the next stage is computed.
        let wait = Duration::ZERO;
        let refused = Stage::Done(Err(L::refused(0, 0, AcquireError::NotInTime { wait })));
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
            Stage::InLine(place, waiter) => {
                let polled = waiter.poll_place(&mut place.0, cx);
                polled.map_err(|why| place.refused(why))
            }
            Stage::Asking(_) => Poll::Pending,
        }
    }
}

// No field is pinned.
impl<L: Limit, C: Clock, Z: Sleep> Unpin for Acquire<L, C, Z> {}

impl<L: Limit, C: Clock, Z: Sleep> Future for Acquire<L, C, Z> {
    type Output = Result<L::Permit, L::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.poll_once(cx);
        if let Poll::Ready(done) = polled {
            self.0 = Stage::Done(done);
        }
        polled
    }
}

impl<L: Limit, C: Clock, Z: Sleep> fmt::Debug for Acquire<L, C, Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.0 {
            Stage::Asking(_) => "not polled",
            Stage::InLine(..) => "in line",
            Stage::Done(_) => "done",
        };
        f.debug_tuple("Acquire").field(&state).finish()
    }
}
