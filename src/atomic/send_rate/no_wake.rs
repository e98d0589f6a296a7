//! Without the feature `wake` no waiter is woken: each looks at the line every now and then.

use core::ops::Deref;
#[cfg(feature = "std")]
use core::{task::Waker, time::Duration};

use super::SendRate;
use super::acquire::Engaged;
use super::reserve::Held;
use crate::Timestamp;
use crate::line::Place;

impl Engaged<'_> {
    pub(super) const fn wake_due(&self, _elapsed: u64) {
        let _ = self;
    }
}

impl<R: Deref<Target = SendRate>> Held<R> {
    #[cfg(feature = "std")]
    pub(crate) const fn stand(
        &mut self,
        _now: Timestamp,
        _wait: Duration,
        _waker: &Waker,
    ) -> Option<Duration> {
        let _ = self;
        None
    }

    pub(super) const fn leave(&mut self, _place: Place) {
        let _ = self;
    }
}

impl SendRate {
    pub(crate) const fn wake_due(&self, _now: Timestamp) {
        let _ = self;
    }
}
