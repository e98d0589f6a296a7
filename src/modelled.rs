//! Types for models only, under `--cfg loom`. They show parts that the public types hide.

use crate::cells::{self, Condition, Counts};
use crate::usage;

#[path = "../crates/core/models/stand_ins.rs"]
mod stand;
use stand::stand_ins;

stand_ins! {
    /// Whether conditions hold.
    News(Counts) {
        let new() = Counts::new();
    }

    /// The users of a thing that is dropped when it is unused.
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
    /// Notes whether a condition holds. Returns `true` for a change.
    #[must_use]
    pub fn note(&self, so: bool) -> bool {
        self.0.note(Condition::Limiting, so)
    }

    /// Does the same as [`note`](Self::note) for another condition.
    #[must_use]
    pub fn note_other(&self, so: bool) -> bool {
        self.0.note(Condition::Exhausted, so)
    }

    /// Returns `true` if an event is due at `now`. The next event is due after `span`.
    #[must_use]
    pub fn is_due(&self, now: u64, span: u64) -> bool {
        self.0.is_due(now, span)
    }
}

impl Places {
    /// Takes a place for the thing with `number`, as a store does. Returns `false` if no place is
    /// free. `is_placed` says whether the thing's place is noted, and `place` notes the place of
    /// any thing.
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

    /// Returns the numbers of places taken, places given back, calls refused, and all places.
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
