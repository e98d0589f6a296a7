//! What the models look at that the public types make no room for: only under `--cfg loom`.

#[cfg(feature = "std")]
use super::counts::{Counts, State};
use super::slots::Slots;
use super::stripes::Stripes;
pub use super::usage::Usage;

/// The numbers of threads.
#[derive(Debug)]
pub struct Numbers(Slots);

impl Numbers {
    /// Creates the numbers, all of them free.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "as the one it stands for")]
    pub fn new() -> Self {
        Self(Slots::new())
    }

    /// Takes the lowest free number.
    #[must_use]
    pub fn take(&self) -> Option<usize> {
        self.0.take()
    }

    /// Gives `number` back.
    pub fn give_back(&self, number: usize) {
        self.0.give_back(number);
    }
}

/// What is so or not.
#[cfg(feature = "std")]
#[derive(Debug)]
pub struct News(Counts);

#[cfg(feature = "std")]
impl News {
    /// Creates one that is not so.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "as the one it stands for")]
    pub fn new() -> Self {
        Self(Counts::new())
    }

    /// Notes whether it is so, and tells whether that is news.
    #[must_use]
    pub fn note(&self, so: bool) -> bool {
        self.0.note(State::Limiting, so)
    }
}

/// A count in stripes.
#[derive(Debug)]
pub struct Count(Stripes);

impl Count {
    /// Creates a count of zero.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "as the one it stands for")]
    pub fn new() -> Self {
        Self(Stripes::new(0))
    }

    /// Adds one, for the thread with `number`.
    pub fn add_one_as(&self, number: usize) {
        self.0.add_as(number, 1);
    }

    /// Returns the sum.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0.sum()
    }
}
