//! Numbers that are free or taken.

use super::SLOTS;
use crate::atomic::sync::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

const WORDS: usize = SLOTS.wrapping_div(64);

/// Which numbers are taken, with a bit for each.
///
/// A word that belongs to a number may be written without a read-modify-write: it has only one
/// writer at a time.
#[derive(Debug)]
pub(in crate::atomic) struct Slots([AtomicU64; WORDS]);

impl Slots {
    /// Creates the numbers, all of them free.
    #[cfg(not(all(loom, feature = "loom")))]
    pub(in crate::atomic) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }

    /// Creates the numbers, all of them free. Loom's atomics cannot be made in a constant.
    #[cfg(all(loom, feature = "loom"))]
    pub(in crate::atomic) fn new() -> Self {
        Self(core::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Takes the lowest free number, or none if all are taken.
    pub(in crate::atomic) fn take(&self) -> Option<usize> {
        (0..)
            .step_by(64)
            .zip(&self.0)
            .find_map(|(first, word)| Some(lowest(word)?.wrapping_add(first)))
    }

    /// Takes `number`, or returns false if it is taken.
    pub(in crate::atomic) fn take_this(&self, number: usize) -> bool {
        let bit = 1_u64 << (number % 64);
        let Some(word) = self.0.get(number / 64) else {
            return false;
        };
        // Relaxed: a thread that finds the number taken leaves it alone. Acquire: see `lowest`.
        // Model: `lease::a_lease_goes_from_thread_to_thread_and_is_spent_once`.
        word.load(Relaxed) & bit == 0 && word.fetch_or(bit, Acquire) & bit == 0
    }

    /// Gives `number` back. To be called once, by the thread that took it.
    pub(in crate::atomic) fn give_back(&self, number: usize) {
        if let Some(word) = self.0.get(number / 64) {
            // Release: see `lowest`.
            word.fetch_and(!(1 << (number % 64)), Release);
        }
    }
}

/// Sets the lowest clear bit of `word`, and returns its index.
fn lowest(word: &AtomicU64) -> Option<usize> {
    let mut taken = word.load(Relaxed);
    loop {
        let number = taken.trailing_ones();
        let bit = 1_u64.checked_shl(number)?;
        // Acquire, with the release of the thread that gave the number back. The next thread with
        // this number must see all that the last thread wrote. Otherwise it would write an old
        // count over a new count. Model:
        // `stripes::a_number_goes_from_thread_to_thread_and_loses_no_count`.
        match word.compare_exchange_weak(taken, taken | bit, Acquire, Relaxed) {
            Ok(_) => return usize::try_from(number).ok(),
            Err(actual) => taken = actual,
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn the_lowest_free_number_comes_next_until_there_is_none() {
        let slots = Slots::new();
        let all: Vec<_> = (0..SLOTS).map(|_| slots.take()).collect();
        assert_eq!(all, (0..SLOTS).map(Some).collect::<Vec<_>>());
        assert_eq!(slots.take(), None);
        slots.give_back(255);
        slots.give_back(63);
        assert_eq!((slots.take(), slots.take()), (Some(63), Some(255)));
        slots.give_back(SLOTS);
        assert_eq!(slots.take(), None, "there is no such number");
    }
}
