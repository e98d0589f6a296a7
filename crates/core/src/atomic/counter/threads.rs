//! Numbers for the threads of the process, each with one thread at a time.

use core::cell::Cell;

use super::SLOTS;
use super::slots::Slots;
use crate::atomic::Sequence;

static THREADS: Slots = Slots::new();
/// Numbers the threads beyond [`SLOTS`].
static OTHERS: Sequence = Sequence::starting_at(0);

/// In the place of a number before the thread has asked for one.
const UNASKED: usize = usize::MAX;

/// Gives the number back when the thread ends.
struct Numbered(usize);

impl Drop for Numbered {
    fn drop(&mut self) {
        // While the thread ends it may still count, but not by a number that another thread has.
        NUMBER.set(SLOTS);
        THREADS.give_back(self.0);
    }
}

std::thread_local! {
    // Has nothing to drop, so that it can be read until the very end of the thread.
    static NUMBER: Cell<usize> = const { Cell::new(UNASKED) };
    static NUMBERED: Cell<Option<Numbered>> = const { Cell::new(None) };
}

/// Returns the calling thread's number. From [`SLOTS`] on, other threads may have the same number.
pub(in crate::atomic) fn number() -> usize {
    match NUMBER.get() {
        UNASKED => ask(),
        number => number,
    }
}

/// Returns the same as [`number`], or a number of no thread if the calling thread has not asked
/// yet.
#[inline]
pub(in crate::atomic) fn known_number() -> usize {
    NUMBER.get()
}

/// Does `work` as the thread with `number`, if no thread has it.
pub(in crate::atomic) fn stand_in(number: usize, work: impl FnOnce()) {
    if THREADS.take_this(number) {
        work();
        THREADS.give_back(number);
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
    // A thread whose locals are gone would never give the number back.
    let kept = NUMBERED.try_with(|kept| kept.set(Some(Numbered(number))));
    if kept.is_err() {
        THREADS.give_back(number);
    }
    kept.ok().map(|()| number)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(target_family = "wasm", ignore = "needs threads")]
    fn a_thread_keeps_its_number_and_no_other_has_it() {
        let mine = number();
        assert_eq!(number(), mine);
        for _ in 0..1_000 {
            let other = std::thread::spawn(number).join().expect("no panic");
            assert_ne!(other, mine);
            assert!(other < SLOTS, "those of threads that ended are free again");
        }
    }
}
