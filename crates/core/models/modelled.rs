//! What the models look at that the public types make no room for: only under `--cfg loom`.

use super::counter::{NUMBER, Slots, Stripes};
use super::multi_word::MultiWord;
pub use super::send_rate::modelled::*;

#[path = "stand_ins.rs"]
mod stand;
pub(super) use stand::stand_ins;

stand_ins! {
    /// The numbers of threads.
    Numbers(Slots) {
        let new() = Slots::new();
        take() -> Option<usize>;
        take_this(number: usize) -> bool;
        give_back(number: usize);
    }

    /// A count in stripes.
    Count(Stripes) {
        let new() = Stripes::new(0);
        sum() -> u64;
    }

    /// A value of two words that is replaced as a whole.
    Pair(MultiWord<2>) {
        let new() = MultiWord::new([0, 0]);
    }
}

/// Lets the calling thread have `number`, by which it finds the words that are its own.
pub fn go_by(number: usize) {
    NUMBER.with(|own| own.set(number));
}

impl Count {
    /// Adds one, for the thread with `number`.
    pub fn add_one_as(&self, number: usize) {
        self.0.add_as(number, 1);
    }
}

impl Pair {
    /// Returns both words.
    #[must_use]
    pub fn read(&self) -> [u64; 2] {
        self.0.read().words
    }

    /// Adds one to each word, unless another thread replaces the pair meanwhile.
    #[must_use]
    pub fn step(&self) -> bool {
        let read = self.0.read();
        let next = read.words.map(|word| word.wrapping_add(1));
        self.0.replace(&read, next)
    }

    /// Takes a ticket and writes the first word, as a thread that stops then.
    pub fn stop_within(&self) {
        self.0.write_first(&self.0.read(), u64::MAX);
    }
}
