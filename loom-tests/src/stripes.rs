//! Models of the count in stripes and of the numbers that say whose a stripe is.

use alloc::sync::Arc;

use loom::thread;
use paceline_core::modelled::{Count, Numbers};

use crate::explore;

/// Counts one by the number that `numbers` gives, and gives it back as a thread does that ends.
fn count_and_end(numbers: &Numbers, count: &Count) -> usize {
    let number = numbers.take().expect("there are more numbers than threads");
    count.add_one_as(number);
    numbers.give_back(number);
    number
}

#[test]
fn a_number_goes_from_thread_to_thread_and_loses_no_count() {
    explore(None, || {
        let (numbers, count) = (Arc::new(Numbers::new()), Arc::new(Count::new()));
        let other = {
            let (numbers, count) = (Arc::clone(&numbers), Arc::clone(&count));
            thread::spawn(move || count_and_end(&numbers, &count))
        };
        let mine = count_and_end(&numbers, &count);
        assert!(mine < 2 && other.join().unwrap() < 2);
        assert_eq!(count.sum(), 2);
        assert_eq!(
            [0, 1].map(|_| numbers.take()),
            [Some(0), Some(1)],
            "both went back"
        );
    });
}

#[test]
fn two_threads_never_own_one_stripe() {
    explore(None, || {
        let count = Arc::new(Count::new());
        let other = {
            let count = Arc::clone(&count);
            thread::spawn(move || {
                count.add_one_as(1);
                count.add_one_as(1);
            })
        };
        count.add_one_as(0);
        count.add_one_as(0);
        other.join().unwrap();
        assert_eq!(count.sum(), 4);
    });
}

#[test]
fn a_sum_never_goes_back() {
    explore(None, || {
        let count = Arc::new(Count::new());
        let other = {
            let count = Arc::clone(&count);
            thread::spawn(move || {
                count.add_one_as(1);
                count.add_one_as(0);
            })
        };
        let first = count.sum();
        assert!(count.sum() >= first);
        other.join().unwrap();
        assert_eq!(count.sum(), 2);
    });
}

/// The mistake that the models above are there for.
mod teeth {
    use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    /// A number that is handed on without what was written with it.
    #[test]
    #[should_panic(expected = "a count was lost")]
    fn a_number_given_back_without_release_loses_a_count() {
        explore(None, || {
            let (taken, count) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let run = |taken: &AtomicU64, count: &AtomicU64| {
                if taken.compare_exchange(0, 1, Relaxed, Relaxed).is_ok() {
                    count.store(count.load(Relaxed) + 1, Relaxed);
                    taken.fetch_and(0, Relaxed);
                    return 1;
                }
                0
            };
            let other = {
                let (taken, count) = (Arc::clone(&taken), Arc::clone(&count));
                thread::spawn(move || run(&taken, &count))
            };
            let mine = run(&taken, &count);
            let counted = other.join().unwrap() + mine;
            assert_eq!(count.load(Relaxed), counted, "a count was lost");
        });
    }

    /// A stripe whose owner is looked up and then written down.
    #[test]
    #[should_panic(expected = "a count was lost")]
    fn an_owner_that_is_loaded_then_stored_shares_its_stripe() {
        explore(None, || {
            let (owner, count) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let run = |owner: &AtomicU64, count: &AtomicU64, me: u64| {
                if owner.load(Relaxed) == 0 {
                    owner.store(me, Relaxed);
                    count.store(count.load(Relaxed) + 1, Relaxed);
                    return 1;
                }
                0
            };
            let other = {
                let (owner, count) = (Arc::clone(&owner), Arc::clone(&count));
                thread::spawn(move || run(&owner, &count, 2))
            };
            let mine = run(&owner, &count, 1);
            let counted = other.join().unwrap() + mine;
            assert_eq!(count.load(Relaxed), counted, "a count was lost");
        });
    }
}
