//! Words that one thread has to itself.

use crate::atomic::sync::{AtomicU32, Ordering::Relaxed};

/// The number of the thread that words belong to, plus one; 0 if there is none yet.
///
/// It names a number once, and never changes again. What is written by that number is handed from
/// thread to thread with it (see `Slots`), so the words behind this need no order of their own.
#[derive(Debug)]
pub(super) struct Owner(AtomicU32);

impl Owner {
    pub(super) fn none() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Whether it is the thread with `number`.
    #[inline]
    pub(super) fn is(&self, number: usize) -> bool {
        // Relaxed: see the type. Model: `stripes::two_threads_never_own_one_stripe`.
        self.0.load(Relaxed) as usize == number.wrapping_add(1)
    }

    /// Whether it is the thread with `number` from now on, since there was none.
    pub(super) fn claim(&self, number: usize) -> bool {
        let mark = u32::try_from(number.wrapping_add(1)).unwrap_or(0);
        // Relaxed: see the type.
        self.0.load(Relaxed) == 0 && self.0.compare_exchange(0, mark, Relaxed, Relaxed).is_ok()
    }
}
