//! A count that threads add to without meeting: it only grows, and is read by adding it up.

use alloc::boxed::Box;

use super::padded::Padded as CachePadded;
use super::sync::{AtomicU64, Ordering::Relaxed};

/// A count in stripes, a cache line for each.
///
/// With `std` there are as many as the machine has cores, and threads take turns at them; without,
/// there is one.
#[derive(Debug)]
pub(super) struct Stripes(Box<[CachePadded<AtomicU64>]>);

impl Stripes {
    /// Creates a count of `start`, which may lie just before the wrap.
    pub(super) fn new(start: u64) -> Self {
        let counts = (0..stripe_count()).map(|i| {
            let count = if i == 0 { start } else { 0 };
            CachePadded::new(AtomicU64::new(count))
        });
        Self(counts.collect())
    }

    /// Adds one.
    pub(super) fn add_one(&self) {
        let index = thread_number() & self.0.len().wrapping_sub(1);
        if let Some(stripe) = self.0.get(index) {
            // Relaxed: a count, and a read-modify-write, so none is lost. Who sums it afterwards is
            // ordered by the meter's word. Model: `send_rate::no_count_is_lost_at_a_turn`.
            stripe.fetch_add(1, Relaxed);
        }
    }

    /// Returns the sum, wrapping.
    pub(super) fn sum(&self) -> u64 {
        // Relaxed: see the meter, which orders sums by its own word.
        self.0
            .iter()
            .fold(0, |sum, stripe| sum.wrapping_add(stripe.load(Relaxed)))
    }
}

/// Returns a power of two.
#[cfg(all(feature = "std", not(all(loom, feature = "loom"))))]
fn stripe_count() -> usize {
    /// More would make a limiter large and a turn of the window slow.
    const MOST: usize = 64;
    let cores = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
    cores.min(MOST).next_power_of_two()
}

/// Numbers the threads of the process in the order in which they first ask.
#[cfg(all(feature = "std", not(all(loom, feature = "loom"))))]
fn thread_number() -> usize {
    use super::sequence::Sequence;
    static NEXT: Sequence = Sequence::starting_at(0);
    std::thread_local! {
        #[expect(clippy::cast_possible_truncation, reason = "only the low bits are used")]
        static NUMBER: usize = NEXT.next() as usize;
    }
    // A thread whose locals are gone shares the first stripe.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

#[cfg(not(all(feature = "std", not(all(loom, feature = "loom")))))]
use single::{stripe_count, thread_number};

/// One stripe for all.
#[cfg(not(all(feature = "std", not(all(loom, feature = "loom")))))]
mod single {
    pub(super) const fn stripe_count() -> usize {
        1
    }

    pub(super) const fn thread_number() -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_the_sum_of_all_stripes_and_wraps() {
        let stripes = Stripes::new(u64::MAX);
        assert_eq!(stripes.sum(), u64::MAX);
        assert!(stripes.0.len().is_power_of_two());
        stripes.add_one();
        stripes.add_one();
        assert_eq!(stripes.sum(), 1);
        for stripe in &stripes.0 {
            stripe.fetch_add(3, Relaxed);
        }
        assert_eq!(stripes.sum(), stripes.0.len() as u64 * 3 + 1);
    }

    #[cfg(feature = "std")]
    #[test]
    fn threads_take_turns_at_the_stripes() {
        let stripes = Stripes::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 * stripes.0.len() {
                scope.spawn(|| stripes.add_one());
            }
        });
        let used = stripes.0.iter().filter(|stripe| stripe.load(Relaxed) > 0);
        let cores = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
        assert!(stripes.0.len() >= cores.min(64), "one for each core");
        // Other tests' threads are numbered in between.
        assert!(used.count() > stripes.0.len() / 4);
        assert_eq!(stripes.sum(), stripes.0.len() as u64 * 4);
        assert_eq!(thread_number(), thread_number());
        let another = std::thread::spawn(thread_number).join();
        assert_ne!(another.ok(), Some(thread_number()), "each has its own");
    }
}
