//! What models look at that the public types make no room for: only under `--cfg loom`.

use crate::cells::{self, Condition, Counts};
use crate::usage;

#[path = "../crates/core/models/stand_ins.rs"]
mod stand;
use stand::stand_ins;

stand_ins! {
    /// What is so or not.
    News(Counts) {
        let new() = Counts::new();
    }

    /// Who uses a thing that is dropped when it is unused.
    Usage(usage::Usage) {
        let entered() = usage::Usage::entered();
        place() -> bool;
        is_placed() -> bool;
        leave_unplaced() -> bool;
        enter() -> bool;
        leave();
        look() -> Option<bool>;
        retire() -> bool;
        retire_unlooked() -> bool;
        is_retired() -> bool;
        is_used() -> bool;
    }

    /// The places of a bounded store.
    Places(usage::Occupancy) {
        let new(most: u64) = usage::Occupancy::new(most);
    }

    /// How long nothing has been delivered.
    Drought(cells::Drought) {
        let new() = cells::Drought::new();
        throttled(now: u64, longest: u64) -> u64;
        resumed(now: u64, longest: u64);
        delivered();
        length(now: u64) -> Option<u64>;
    }
}

impl News {
    /// Notes whether it is so. Returns `true` if that is news.
    #[must_use]
    pub fn note(&self, so: bool) -> bool {
        self.0.note(Condition::Limiting, so)
    }

    /// As [`note`](Self::note), of another state.
    #[must_use]
    pub fn note_other(&self, so: bool) -> bool {
        self.0.note(Condition::Exhausted, so)
    }

    /// Returns `true` if it is due at `now`, and lets it be due again after `span`.
    #[must_use]
    pub fn is_due(&self, now: u64, span: u64) -> bool {
        self.0.is_due(now, span)
    }
}

impl Places {
    /// Takes a place for the thing with `number`, unless it has one or there is none, as a store
    /// does. `is_placed` says whether it is noted that the thing has its place, and `place`
    /// notes it of any thing.
    pub fn place(&self, number: u64, is_placed: impl Fn() -> bool, place: impl Fn(u64)) -> bool {
        loop {
            let seen = self.0.taken();
            if seen.last() == number || is_placed() {
                place(number);
                return true;
            }
            if self.0.is_full(seen) {
                self.0.note_refusal();
                return false;
            }
            place(seen.last());
            self.0.take(seen, number);
        }
    }

    /// Gives a place back.
    pub fn give_back(&self) {
        self.0.note_eviction();
        self.0.give_back();
    }

    /// Returns the places taken, those given back, the calls refused, and the places there are.
    #[must_use]
    pub fn counts(&self) -> [u64; 4] {
        let places = &self.0;
        [
            places.taken().count(),
            places.evicted(),
            places.refused(),
            places.most(),
        ]
    }
}
