//! Waiting on a thread, which parks.

use alloc::{sync::Arc, task::Wake};
use core::task::Waker;
use std::thread::{self, Thread};

use super::{interrupt, place::Waiting};
use crate::seam::InLine;
use crate::{AcquireError, Clock};

/// Wakes a thread out of its park.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

std::thread_local! {
    static WAKER: Waker = Waker::from(Arc::new(Unpark(thread::current())));
}

/// Returns a waker that ends the park of this thread.
pub(crate) fn thread_waker() -> Waker {
    let own = WAKER.try_with(Clone::clone);
    own.unwrap_or_else(|_| Waker::from(Arc::new(Unpark(thread::current()))))
}

/// Parks until the turn of `place` comes, if it can come before its deadline and the thread is not
/// interrupted.
pub(super) fn block<H: InLine, C: Clock>(
    place: &mut Waiting<H, C>,
) -> Result<H::Permit, AcquireError> {
    if let Ok(permit) = place.claim() {
        return Ok(permit); // without a waker
    }
    let waker = thread_waker();
    loop {
        let rest = match place.look(&waker) {
            Ok(permit) => return Ok(permit),
            Err(rest) => rest,
        };
        rest.check(place.deadline())?;
        if interrupt::is_interrupted() {
            return Err(AcquireError::NotInTime { wait: rest.wait() });
        }
        thread::park_timeout(interrupt::slice(rest.span()));
    }
}
