//! Without the feature `wake` no waiter is woken: each looks at the line every now and then.

#[cfg(feature = "std")]
use core::{ops::Deref, task::Waker, time::Duration};

use super::SendRate;
use super::acquire::Engaged;
#[cfg(feature = "std")]
use super::reserve::Held;
use crate::Timestamp;

impl Engaged<'_> {
    pub(super) const fn wake_due(&self, _elapsed: u64) {
        let _ = self;
    }

    pub(super) const fn wake_all(&self, _elapsed: u64) {
        let _ = self;
    }
}

#[cfg(feature = "std")]
impl<R: Deref<Target = SendRate>> Held<R> {
    pub(crate) const fn stand(
        &mut self,
        _now: Timestamp,
        _wait: Duration,
        _waker: &Waker,
    ) -> Option<Duration> {
        let _ = self;
        None
    }
}

impl SendRate {
    pub(crate) const fn wake_due(&self, _now: Timestamp) {
        let _ = self;
    }
}
