//! Numbers for the threads of the process, each with one thread at a time.

#[cfg(any(
    all(feature = "std", not(all(shuttle, feature = "shuttle"))),
    all(loom, feature = "loom")
))]
mod table;

#[cfg(any(
    all(feature = "std", not(all(shuttle, feature = "shuttle"))),
    all(loom, feature = "loom")
))]
pub(super) use table::Slots;

/// How many numbers there are: as many as machines have cores, or more.
pub(super) const SLOTS: usize = 256;

/// The threads of the process. There are none to number without thread locals, and models number their own.
#[cfg(all(
    feature = "std",
    not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))
))]
mod threads {
    use core::cell::Cell;

    use super::{SLOTS, Slots};
    use crate::atomic::sequence::Sequence;

    static THREADS: Slots = Slots::new();
    /// Goes on where the numbers end.
    static OTHERS: Sequence = Sequence::starting_at(0);

    /// In the place of a number before the thread has asked for one.
    const UNASKED: usize = usize::MAX;

    /// Gives the number back when the thread ends.
    struct Lease(usize);

    impl Drop for Lease {
        fn drop(&mut self) {
            // What the thread still counts while it ends must not go by a number that another one has.
            NUMBER.set(SLOTS);
            THREADS.give_back(self.0);
        }
    }

    std::thread_local! {
        // Has nothing to drop, so that it can be read until the very end of the thread.
        static NUMBER: Cell<usize> = const { Cell::new(UNASKED) };
        static LEASE: Cell<Option<Lease>> = const { Cell::new(None) };
    }

    /// Returns the calling thread's number: its own if it is under [`SLOTS`], else perhaps others' as well.
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
