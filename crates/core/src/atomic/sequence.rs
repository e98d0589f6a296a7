//! Numbers that are handed out once.

use super::sync::{Ordering::Relaxed, StaticU64};

/// Consecutive numbers, each handed out once to whichever thread asks next.
#[derive(Debug)]
pub struct Sequence(StaticU64);

impl Sequence {
    /// Creates a sequence that begins with `first`.
    #[must_use]
    pub const fn starting_at(first: u64) -> Self {
        Self(StaticU64::new(first))
    }

    /// Returns the next number. After `u64::MAX` comes 0.
    pub fn next(&self) -> u64 {
        // Relaxed: read-modify-writes of one word are totally ordered at any ordering, and "once"
        // needs no more. The number guards no other memory.
        self.0.fetch_add(1, Relaxed)
    }

    /// Returns the number that the next caller gets.
    pub fn peek(&self) -> u64 {
        // Relaxed: a hint, as the next caller may be here already.
        self.0.load(Relaxed)
    }
}
