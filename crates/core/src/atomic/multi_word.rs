//! A value of several words that is replaced as a whole, without a lock.
//!
//! There are a few copies of the value. A writer takes a ticket for a copy other than the published
//! copy. It writes each word there with the ticket beside it, and then publishes the copy. A reader
//! loads the words of the published copy, and looks again if a word bears another ticket.
//!
//! A writer that stops leaves a copy half written. When all other copies are given out, the next
//! writer calls their tickets in. Tickets called in can no longer be published, and their copies
//! are given out anew. The new tickets are higher, and a word is only replaced under a higher
//! ticket. So a thread that goes on late writes nothing that is read.
//!
//! # States of a copy
//!
//! | state | its ticket | who may write it |
//! |---|---|---|
//! | published | that of `current` | no thread |
//! | spare | none | no thread |
//! | given out | in `base + 1 ..= base + out` | the thread that took the ticket |
//! | called in | `base` or lower | no thread with effect: its words go to higher tickets |
//!
//! | operation | ticket and copy of `current` | `base` | `out` | copy |
//! |---|---|---|---|---|
//! | take, with a spare copy | `t`, `c` | `b` | `o → o + 1` | spare → given out |
//! | take, with none | `t`, `c` | `b → b + o` | `o → 1` | all called in, one given out anew |
//! | publish `d` of `u` | `u`, `d` | `b → b + o` | `o → 0` | `d` → published, all others → spare |
//!
//! A publication fails if the ticket was called in, or if another copy was published. Then `base`
//! or the published ticket differs from when the ticket was taken.

use crate::atomic::sync::{
    AtomicU128,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::bits::Field;

/// How many copies there are.
const COPIES: usize = if cfg!(all(loom, feature = "loom")) {
    3
} else {
    4
};
const GIVEN_OUT: u64 = COPIES as u64 - 1;

/// Which copy is published, and which tickets are out. Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 58 | the ticket of the published copy |
/// | 4 | the copy |
/// | 58 | the last ticket that cannot be published any more |
/// | 8 | how many tickets have been given out after it |
///
/// Tickets do not wrap: a million a second last for nine thousand years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Current(u128);

impl Current {
    const TICKET: Field = Field::lowest(58);
    const COPY: Field = Self::TICKET.above(4);
    const BASE: Field = Self::COPY.above(58);
    const OUT: Field = Self::BASE.above(8);

    const fn new(ticket: u64, copy: u64, base: u64, out: u64) -> Self {
        Self(
            Self::TICKET.put(ticket)
                | Self::COPY.put(copy)
                | Self::BASE.put(base)
                | Self::OUT.put(out),
        )
    }

    const fn ticket(self) -> u64 {
        Self::TICKET.get(self.0)
    }

    const fn copy(self) -> u64 {
        Self::COPY.get(self.0)
    }

    const fn base(self) -> u64 {
        Self::BASE.get(self.0)
    }

    const fn out(self) -> u64 {
        Self::OUT.get(self.0)
    }

    /// Returns `true` if a ticket that was taken from `self` can still be published.
    const fn is_open(self, taken: Self) -> bool {
        self.ticket() == taken.ticket() && self.base() == taken.base()
    }

    /// Returns the next ticket, its copy, and the word once the ticket is given out.
    const fn next(self) -> (u64, u64, Self) {
        let (base, out) = if self.out() < GIVEN_OUT {
            (self.base(), self.out())
        } else {
            (self.base().wrapping_add(self.out()), 0)
        };
        let out = out.wrapping_add(1);
        let ticket = base.wrapping_add(out);
        let after = self.copy().wrapping_add(out);
        let copy = if after > GIVEN_OUT {
            after.wrapping_sub(COPIES as u64)
        } else {
            after
        };
        (
            ticket,
            copy,
            Self::new(self.ticket(), self.copy(), base, out),
        )
    }

    /// Returns the word once the copy of `ticket` is published: all other tickets given out are
    /// void.
    const fn published(self, ticket: u64, copy: u64) -> Self {
        Self::new(ticket, copy, self.base().wrapping_add(self.out()), 0)
    }
}

const _: () = assert!(Current::OUT.is_last(), "the fields fill the word");

const PAYLOAD: Field = Field::lowest(64);
const TICKET: Field = PAYLOAD.above(64);

/// A value of `N` words.
#[derive(Debug)]
pub(super) struct MultiWord<const N: usize> {
    current: AtomicU128,
    copies: [[AtomicU128; N]; COPIES],
}

/// A value that was read, and its ticket, which is needed to replace it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read<const N: usize> {
    pub(super) words: [u64; N],
    from: u64,
}

// Orderings. `current` is swapped with release after the words of a copy are written, and loaded
// with acquire before they are read. If the swap is first, the reader finds the words of that
// ticket, or later words, which bear another ticket. If the load is first, the reader goes by the
// copy that was published before. Model: `multi_word::a_reader_finds_one_value`. The words are
// swapped with release and loaded with acquire. If a later writer's swap is first, the reader finds
// another ticket, and the reader's next lap finds the `current` that this writer had seen. If the
// load is first, the reader has the word that it wants. Model:
// `multi_word::a_ticket_that_was_called_in_writes_nothing`, which never ends otherwise. A ticket is
// taken with a relaxed swap, which publishes nothing. A failed swap is relaxed too, because it only
// shows which tickets are out. The tickets alone ensure that a late thread writes into no published
// copy. Model: `multi_word::a_ticket_that_was_called_in_writes_nothing`.
impl<const N: usize> MultiWord<N> {
    pub(super) fn new(words: [u64; N]) -> Self {
        let word = |copy: usize, index: usize| {
            let value = if copy == 0 {
                words.get(index).copied().unwrap_or(0)
            } else {
                0
            };
            AtomicU128::new(PAYLOAD.put(value))
        };
        Self {
            current: AtomicU128::new(Current::new(0, 0, 0, 0).0),
            copies: core::array::from_fn(|copy| core::array::from_fn(|index| word(copy, index))),
        }
    }

    fn load(&self) -> Current {
        Current(self.current.load(Acquire))
    }

    fn copy(&self, copy: u64) -> &[AtomicU128; N] {
        // In range: the field only ever has the number of an existing copy.
        &self.copies[usize::try_from(copy).unwrap_or(0) % COPIES]
    }

    /// Returns the value.
    pub(super) fn read(&self) -> Read<N> {
        // Each further lap means that another thread has published meanwhile.
        loop {
            let current = self.load();
            if let Some(words) = self.words(current) {
                let from = current.ticket();
                return Read { words, from };
            }
        }
    }

    fn words(&self, current: Current) -> Option<[u64; N]> {
        let mut words = [0; N];
        for (word, atomic) in words.iter_mut().zip(self.copy(current.copy())) {
            let seen = atomic.load(Acquire);
            if TICKET.get(seen) != current.ticket() {
                return None;
            }
            *word = PAYLOAD.get(seen);
        }
        Some(words)
    }

    /// Replaces the value that was `read`. False if another thread has replaced the value, or is
    /// about to.
    pub(super) fn replace(&self, read: &Read<N>, words: [u64; N]) -> bool {
        let Some((ticket, copy, taken)) = self.take(read.from) else {
            return false;
        };
        let written = self
            .copy(copy)
            .iter()
            .zip(words)
            .all(|(atomic, word)| Self::write(atomic, ticket, word));
        written && self.publish(ticket, copy, taken)
    }

    /// Takes a ticket, if the value of the ticket `from` is still the published value.
    fn take(&self, from: u64) -> Option<(u64, u64, Current)> {
        let mut seen = self.load();
        loop {
            if seen.ticket() != from {
                return None;
            }
            let (ticket, copy, next) = seen.next();
            match self
                .current
                .compare_exchange(seen.0, next.0, Relaxed, Relaxed)
            {
                Ok(_) => return Some((ticket, copy, next)),
                Err(actual) => seen = Current(actual),
            }
        }
    }

    /// Takes a ticket and writes the first word only: for models of a thread that stops.
    #[cfg(all(loom, feature = "loom"))]
    pub(super) fn write_first(&self, read: &Read<N>, word: u64) {
        if let (Some((ticket, copy, _)), true) = (self.take(read.from), N > 0) {
            Self::write(&self.copy(copy)[0], ticket, word);
        }
    }

    /// Writes one word of a copy. False if a later ticket has the copy.
    fn write(atomic: &AtomicU128, ticket: u64, word: u64) -> bool {
        let next = PAYLOAD.put(word) | TICKET.put(ticket);
        let mut seen = atomic.load(Relaxed);
        while TICKET.get(seen) < ticket {
            match atomic.compare_exchange(seen, next, Release, Relaxed) {
                Ok(_) => return true,
                Err(actual) => seen = actual,
            }
        }
        false
    }

    /// Publishes the copy of a ticket, unless the ticket was called in.
    fn publish(&self, ticket: u64, copy: u64, taken: Current) -> bool {
        let mut seen = self.load();
        while seen.is_open(taken) {
            let next = seen.published(ticket, copy);
            match self
                .current
                .compare_exchange(seen.0, next.0, Release, Relaxed)
            {
                Ok(_) => return true,
                Err(actual) => seen = Current(actual),
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_replaced_as_a_whole() {
        let value = MultiWord::new([1, 2, 3]);
        for step in 0..100 {
            let read = value.read();
            assert_eq!(read.words, [step + 1, step + 2, step + 3]);
            assert!(value.replace(&read, [step + 2, step + 3, step + 4]));
        }
    }

    #[test]
    fn of_two_that_read_the_same_one_replaces_it() {
        let value = MultiWord::new([0]);
        let (one, two) = (value.read(), value.read());
        assert!(value.replace(&one, [1]));
        assert!(!value.replace(&two, [2]));
        assert_eq!(value.read().words, [1]);
    }

    /// Threads that stop after they have taken a ticket, or in the middle of their words.
    #[test]
    fn writers_that_stop_keep_no_other_from_writing() {
        let value = MultiWord::new([0, 0]);
        let mut stopped = Vec::new();
        for step in 1..50 {
            for _ in 0..step % 7 {
                let (ticket, copy, taken) = value.take(value.read().from).unwrap();
                MultiWord::<2>::write(&value.copy(copy)[0], ticket, 1_000);
                stopped.push((ticket, copy, taken));
            }
            let read = value.read();
            assert!(value.replace(&read, [step, step]));
            assert_eq!(value.read().words, [step, step]);
        }
        for (ticket, copy, taken) in stopped {
            MultiWord::<2>::write(&value.copy(copy)[1], ticket, 2_000);
            assert!(!value.publish(ticket, copy, taken), "called in");
        }
        assert_eq!(value.read().words, [49, 49]);
    }

    #[test]
    fn spare_copies_are_given_out_before_any_ticket_is_called_in() {
        let value = MultiWord::new([7]);
        let take = || value.take(value.read().from).unwrap();
        let out = [take(), take(), take()];
        assert_eq!(
            out.map(|(ticket, copy, _)| (ticket, copy)),
            [(1, 1), (2, 2), (3, 3)]
        );
        let current = value.load();
        assert!(out.iter().all(|(_, _, taken)| current.is_open(*taken)));
        take();
        for (ticket, copy, taken) in out {
            assert!(!value.publish(ticket, copy, taken), "called in");
        }
    }
}
