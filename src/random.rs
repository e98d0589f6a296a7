//! Where the jitter comes from.

use core::{cell::Cell, fmt, hash::BuildHasher as _};
use std::hash::RandomState;

use crate::atomic::cells::Sequence;
use crate::fixed::multiply_high;

/// A source of random numbers.
///
/// A strategy takes it at construction and asks for one number for each backoff that it computes,
/// so a recorded or seeded source replays every delay.
pub trait Random: fmt::Debug + Send + Sync {
    /// Returns a number uniform over all of `u64`.
    fn next_u64(&self) -> u64;
}

/// The calling thread's own generator (wyrand). Threads share nothing.
///
/// Not for cryptography. Seeded from the process's hash seeds, so that clients that start together
/// do not retry together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ThreadRandom;

impl Random for ThreadRandom {
    fn next_u64(&self) -> u64 {
        thread_local! {
            static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0));
        }
        // A thread that ends has no state left: a fresh seed serves it as well.
        STATE
            .try_with(|state| {
                let (after, drawn) = wyrand(state.get());
                state.set(after);
                drawn
            })
            .unwrap_or_else(|_| RandomState::new().hash_one(0))
    }
}

/// Returns the state after `state`, and the number drawn with it. The generator is Wang Yi's wyrand,
/// with the constants of [wyhash 4.2](https://github.com/wangyi-fudan/wyhash).
const fn wyrand(state: u64) -> (u64, u64) {
    let after = state.wrapping_add(0x2d35_8dcc_aa6c_78a5);
    let other = after ^ 0x8bb8_4b93_962e_acc9;
    (
        after,
        multiply_high(after, other) ^ after.wrapping_mul(other),
    )
}

/// A generator that gives the same numbers for the same seed.
///
/// Numbers are handed out in the order in which threads ask, without a lock: the whole state is a
/// counter.
///
/// # Examples
///
/// ```
/// use paceline::backoff::{Random, SeededRandom};
///
/// let (one, other) = (SeededRandom::new(7), SeededRandom::new(7));
/// let first = one.next_u64();
/// assert_eq!(first, other.next_u64());
/// assert_ne!(first, one.next_u64());
/// ```
pub struct SeededRandom {
    seed: u64,
    drawn: Sequence,
}

impl SeededRandom {
    /// Creates the generator for `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            seed,
            drawn: Sequence::starting_at(0),
        }
    }
}

impl fmt::Debug for SeededRandom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeededRandom")
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        // Spreads the counter over the word (2⁶⁴ divided by the golden ratio) before wyrand mixes
        // it: neighbouring seeds of wyrand are not far enough apart.
        const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;
        let nth = self.drawn.next().wrapping_mul(STRIDE);
        wyrand(self.seed.wrapping_add(nth)).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_fastrand() {
        for seed in [0, 1, 7, u64::MAX, 0x9e37_79b9_7f4a_7c15] {
            let mut theirs = fastrand::Rng::with_seed(seed);
            let mut state = seed;
            for _ in 0..1_000 {
                let (after, drawn) = wyrand(state);
                assert_eq!(drawn, theirs.u64(..));
                state = after;
            }
        }
    }
}
