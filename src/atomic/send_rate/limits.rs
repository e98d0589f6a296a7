//! The words of declared limits: each is replaced as a whole.

use crate::atomic::lazy::Lazy;
use crate::atomic::multi_word::MultiWord;
use crate::atomic::sync::{AtomicU64, Ordering::Relaxed};
use crate::law::declared::ledger::{Heard, Ledger, Seen, WORDS};

/// How many limits of one limiter are remembered.
const MOST: usize = if cfg!(all(loom, feature = "loom")) {
    1
} else {
    4
};

/// How often a report is tried that loses to others. One that is given up is counted: the next
/// report says the same and more.
const TRIES: u32 = 8;

/// The limits of one limiter, and what was ignored.
pub(super) struct Limits {
    ledgers: [Lazy<MultiWord<WORDS>>; MOST],
    /// Wrong values, limits beyond the fourth, and reports that were given up.
    ignored: AtomicU64,
}

impl Limits {
    pub(super) fn new() -> Self {
        Self {
            ledgers: core::array::from_fn(|_| Lazy::new(new_ledger)),
            ignored: AtomicU64::new(0),
        }
    }

    pub(super) fn ledgers(&self) -> impl Iterator<Item = Ledger> {
        let made = self.ledgers.iter().map_while(Lazy::get);
        let read = made.map(|ledger| Ledger::from_words(&ledger.read().words));
        read.filter(Ledger::is_declared)
    }

    pub(super) fn ignore(&self, values: u64) {
        // Relaxed: a count, for diagnostics.
        self.ignored.fetch_add(values, Relaxed);
    }

    /// Returns how many values were ignored.
    pub(super) fn ignored(&self) -> u64 {
        // Relaxed, as in `ignore`.
        self.ignored.load(Relaxed)
    }

    /// Takes a report in.
    pub(super) fn hear(&self, seen: &Seen) -> Heard {
        for ledger in &self.ledgers {
            let ledger = ledger.get_or_make(new_ledger);
            for _ in 0..TRIES {
                let read = ledger.read();
                let last = Ledger::from_words(&read.words);
                if last.is_declared() && !last.is_of(seen) {
                    break; // the next one
                }
                let (next, heard) = last.heard(seen);
                if heard == Heard::Wrong {
                    self.ignore(1);
                    return heard;
                }
                if ledger.replace(&read, next.to_words()) {
                    return heard;
                }
            }
        }
        self.ignore(1);
        Heard::Wrong
    }

    /// Replaces each limit by what `next` makes of it.
    pub(super) fn each(&self, next: impl Fn(&Ledger) -> Option<Ledger>) {
        for ledger in self.ledgers.iter().map_while(Lazy::get) {
            for _ in 0..TRIES {
                let read = ledger.read();
                let last = Ledger::from_words(&read.words);
                let Some(next) = next(&last).filter(|next| *next != last) else {
                    break;
                };
                if ledger.replace(&read, next.to_words()) {
                    break;
                }
            }
        }
    }

    /// Forgets every limit.
    pub(super) fn forget(&self) {
        self.each(|_| Some(Ledger::default()));
    }
}

fn new_ledger() -> MultiWord<WORDS> {
    MultiWord::new(Ledger::default().to_words())
}
