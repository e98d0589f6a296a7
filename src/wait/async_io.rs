//! Sleeping by async-io's timer, which has its own thread and serves any runtime.

use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use super::{Sleep, Timer};

/// Tasks sleep by async-io's timer, as smol's and async-std's do. It works under any runtime.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use paceline::{ControlLaw, MonotonicClock, SendLimiter, SendRate, Clock, wait::AsyncIoSleep};
///
/// let clock = MonotonicClock::new();
/// let rate = Arc::new(SendRate::new(ControlLaw::Aws, clock.now()));
/// let limiter = SendLimiter::new(rate).clock(clock).sleep_on(AsyncIoSleep::new());
/// let permit = async_io::block_on(limiter.token().acquire())?;
/// assert_eq!(permit.weight(), 1);
/// # Ok::<(), paceline::AcquireError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AsyncIoSleep;

impl AsyncIoSleep {
    /// Creates the way to sleep.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Sleep for AsyncIoSleep {
    type Timer = async_io::Timer;

    fn timer(&self) -> Self::Timer {
        async_io::Timer::never()
    }
}

impl Timer for async_io::Timer {
    fn arm(&mut self, span: Duration) {
        self.set_after(span);
    }

    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(self).poll(cx).map(drop)
    }
}
