//! Numbers for the threads of the process, each with one thread at a time.

#[cfg(any(
    all(feature = "std", not(all(shuttle, feature = "shuttle"))),
    all(loom, feature = "loom")
))]
pub(in crate::atomic) use table::Slots;

/// How many numbers there are: as many as machines have cores, or more.
pub(super) const SLOTS: usize = 256;

#[cfg(any(
    all(feature = "std", not(all(shuttle, feature = "shuttle"))),
    all(loom, feature = "loom")
))]
/// Which numbers are taken.
mod table {
    use super::SLOTS;
    use crate::atomic::sync::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    };

    const WORDS: usize = SLOTS.wrapping_div(64);

    /// Which numbers are taken, a bit each.
    ///
    /// A word that belongs to a number may be written without a read-modify-write: its writers are
    /// one after the other.
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

        /// Gives `number` back. To be called by the one who took it, once.
        pub(in crate::atomic) fn give_back(&self, number: usize) {
            if let Some(word) = self.0.get(number / 64) {
                // Release: see `lowest`.
                word.fetch_and(!(1 << (number % 64)), Release);
            }
        }
    }

    /// Sets the lowest bit of `word` that is not, and returns which it was.
    fn lowest(word: &AtomicU64) -> Option<usize> {
        let mut taken = word.load(Relaxed);
        loop {
            let number = taken.trailing_ones();
            let bit = 1_u64.checked_shl(number)?;
            // Acquire, with the release of who gave it back: the next one with this number must see
            // all that the last one wrote with it, or it would write an old count over
            // a new one.
            // Model: `stripes::a_number_goes_from_thread_to_thread_and_loses_no_count`.
            match word.compare_exchange_weak(taken, taken | bit, Acquire, Relaxed) {
                Ok(_) => return usize::try_from(number).ok(),
                Err(actual) => taken = actual,
            }
        }
    }
}

/// The threads of the process. There are none to number without thread locals, and models number
/// their own.
#[cfg(all(
    feature = "std",
    not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))
))]
mod threads {
    use core::cell::Cell;

    use super::{SLOTS, Slots};
    use crate::atomic::cells::Sequence;

    static THREADS: Slots = Slots::new();
    /// Goes on where the numbers end.
    static OTHERS: Sequence = Sequence::starting_at(0);

    /// In the place of a number before the thread has asked for one.
    const UNASKED: usize = usize::MAX;

    /// Gives the number back when the thread ends.
    struct Lease(usize);

    impl Drop for Lease {
        fn drop(&mut self) {
            // What the thread still counts while it ends must not go by a number that another one
            // has.
            NUMBER.set(SLOTS);
            THREADS.give_back(self.0);
        }
    }

    std::thread_local! {
        // Has nothing to drop, so that it can be read until the very end of the thread.
        static NUMBER: Cell<usize> = const { Cell::new(UNASKED) };
        static LEASE: Cell<Option<Lease>> = const { Cell::new(None) };
    }

    /// Returns the calling thread's number: its own if it is under [`SLOTS`], else perhaps others'
    /// as well.
    pub(crate) fn number() -> usize {
        match NUMBER.get() {
            UNASKED => ask(),
            number => number,
        }
    }

    #[cold]
    fn ask() -> usize {
        let number = taken().unwrap_or_else(|| {
            let other = usize::try_from(OTHERS.next() & 0xff).unwrap_or(0);
            SLOTS.wrapping_add(other)
        });
        NUMBER.set(number);
        number
    }

    fn taken() -> Option<usize> {
        let number = THREADS.take()?;
        // A thread whose locals are gone would never give it back.
        let kept = LEASE.try_with(|lease| lease.set(Some(Lease(number))));
        if kept.is_err() {
            THREADS.give_back(number);
        }
        kept.ok().map(|()| number)
    }
}

#[cfg(all(
    feature = "std",
    not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))
))]
pub(super) use threads::number;

/// Returns a number that is nobody's own.
#[cfg(not(all(
    feature = "std",
    not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))
)))]
pub(super) const fn number() -> usize {
    SLOTS
}

#[cfg(all(
    test,
    feature = "std",
    not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))
))]
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

    #[test]
    fn a_thread_keeps_its_number_and_nobody_else_has_it() {
        let mine = number();
        assert_eq!(number(), mine);
        for _ in 0..1_000 {
            let other = std::thread::spawn(number).join().expect("no panic");
            assert_ne!(other, mine);
            assert!(other < SLOTS, "those of threads that ended are free again");
        }
    }
}
