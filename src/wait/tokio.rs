//! Sleeping by tokio's timer.

use alloc::boxed::Box;
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use super::{DefaultSleep, Sleep, Timer};

impl Sleep for DefaultSleep {
    type Timer = Option<Pin<Box<tokio::time::Sleep>>>;

    fn timer(&self) -> Self::Timer {
        None
    }
}

/// A timer of tokio's. It wakes up to a millisecond late.
///
/// It allocates once, when it is first armed. Arming it outside a runtime with an enabled timer
/// panics, as with tokio's timers.
impl Timer for Option<Pin<Box<tokio::time::Sleep>>> {
    fn arm(&mut self, span: Duration) {
        let sleep = tokio::time::sleep(span);
        match self {
            Some(timer) => timer.as_mut().set(sleep),
            None => *self = Some(Box::pin(sleep)),
        }
    }

    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Some(timer) => timer.as_mut().poll(cx),
            None => Poll::Ready(()),
        }
    }
}
