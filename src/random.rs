//! The source of the jitter.

use core::fmt;

use crate::seam::Sequence;

/// A source of random numbers.
///
/// A strategy takes a source at construction, and asks it for one number for each backoff. So a
/// recorded or seeded source replays every delay.
pub trait Random: fmt::Debug + Send + Sync {
    /// Returns a number uniform over all of `u64`.
    fn next_u64(&self) -> u64;
}

/// The calling thread's own generator (`fastrand`, wyrand). Threads share nothing.
///
/// Each thread's generator is seeded from the time and the thread, so that clients that start
/// together do not retry together.
#[derive(Debug)]
pub(crate) struct ThreadRandom;

impl Random for ThreadRandom {
    fn next_u64(&self) -> u64 {
        fastrand::u64(..)
    }
}

/// A generator that gives the same numbers for the same seed.
///
/// Threads get the numbers in the order in which they ask. The whole state is a counter, without a
/// lock.
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
        // Neighbouring seeds of wyrand are not far enough apart. This factor (2⁶⁴ divided by the
        // golden ratio) spreads the counter over the word before wyrand mixes it.
        const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;
        let nth = self.drawn.next().wrapping_mul(STRIDE);
        fastrand::Rng::with_seed(self.seed.wrapping_add(nth)).u64(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_thread_differ() {
        let mut drawn: [u64; 16] = core::array::from_fn(|_| ThreadRandom.next_u64());
        drawn.sort_unstable();
        assert!(drawn.windows(2).all(|two| two[0] != two[1]), "{drawn:?}");
    }
}
