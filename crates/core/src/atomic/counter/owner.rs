//! Words that one thread has to itself.

use crate::atomic::sync::{AtomicU32, Ordering::Relaxed};

/// The number of the thread that words belong to, plus one; 0 if there is none yet.
///
/// Once set, the number never changes. What is written by that number passes from thread to thread
/// with the number (see `Slots`). So the owned words need no further order.
#[derive(Debug)]
pub(super) struct Owner(AtomicU32);

impl Owner {
    pub(super) fn none() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Whether the owner is the thread with `number`.
    #[inline]
    pub(super) fn is(&self, number: usize) -> bool {
        // Relaxed: see the type. Model: `stripes::two_threads_never_own_one_stripe`.
        self.0.load(Relaxed) as usize == number.wrapping_add(1)
    }

    /// Makes the thread with `number` the owner, if there is none, and returns whether it did.
    pub(super) fn claim(&self, number: usize) -> bool {
        let mark = u32::try_from(number.wrapping_add(1)).unwrap_or(0);
        // Relaxed: see the type.
        self.0.load(Relaxed) == 0 && self.0.compare_exchange(0, mark, Relaxed, Relaxed).is_ok()
    }
}
