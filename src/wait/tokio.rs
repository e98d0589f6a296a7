//! Sleeping by tokio's timer.

use alloc::boxed::Box;
use core::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use super::{DefaultSleep, Sleep, Timer};

impl Sleep for DefaultSleep {
    type Timer = TokioTimer;

    fn timer(&self) -> TokioTimer {
        TokioTimer(None)
    }
}

/// A timer of tokio's. It wakes up to a millisecond late.
///
/// Allocates once, when it is first armed. Armed outside of a runtime with its timer enabled, it
/// panics, as tokio's do.
pub struct TokioTimer(Option<Pin<Box<tokio::time::Sleep>>>);

impl Timer for TokioTimer {
    fn arm(&mut self, span: Duration) {
        let sleep = tokio::time::sleep(span);
        match &mut self.0 {
            Some(timer) => timer.as_mut().set(sleep),
            None => self.0 = Some(Box::pin(sleep)),
        }
    }

    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            Some(timer) => timer.as_mut().poll(cx),
            None => Poll::Ready(()),
        }
    }
}

impl fmt::Debug for TokioTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let armed = self.0.as_ref().is_some_and(|timer| !timer.is_elapsed());
        f.debug_struct("TokioTimer").field("armed", &armed).finish()
    }
}
