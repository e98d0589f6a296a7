//! Models of [`RetryBudget`].
//!
//! Claim: retries never exceed the share of the requests and the minimum, and what these allow is
//! not refused.

use core::time::Duration;

use loom::{sync::Arc, thread};
use paceline::{RetryBudget, Timestamp};

use crate::explore;

/// Returns the time at which the slot `number` begins, of a window of ten seconds.
fn slot(number: u64) -> Timestamp {
    Timestamp::from_nanos(number * 1_000_000_000)
}

/// A budget over ten seconds.
fn budget(permille: u16, per_second: u32) -> Arc<RetryBudget> {
    let budget = RetryBudget::new(permille, per_second, Duration::from_secs(10));
    Arc::new(budget.expect("in range"))
}

/// Runs `work` on a second thread while `main` runs on this one.
fn beside<A: 'static, B>(
    budget: &Arc<RetryBudget>,
    work: impl FnOnce(&RetryBudget) -> A + 'static,
    main: impl FnOnce(&RetryBudget) -> B,
) -> (A, B) {
    let shared = Arc::clone(budget);
    let other = thread::spawn(move || work(&shared));
    let here = main(budget);
    (other.join().expect("the other thread returns"), here)
}

/// Of two takers of the one retry that a request allows, exactly one gets it.
#[test]
fn two_takers_never_share_a_retry() {
    explore(None, || {
        let budget = budget(1_000, 0);
        budget.count_request(slot(0));
        let take = |budget: &RetryBudget| budget.try_acquire(slot(0)).is_some();
        let (theirs, ours) = beside(&budget, take, take);
        assert!(theirs != ours, "one request allows one retry");
        assert_eq!(budget.snapshot(slot(0)).retries, 1);
    });
}

/// A slot may begin between the two: the retry is held against the window all the same.
#[test]
fn takers_of_different_slots_never_share_a_retry() {
    explore(None, || {
        let budget = budget(1_000, 0);
        budget.count_request(slot(0));
        let (theirs, ours) = beside(
            &budget,
            |b| b.try_acquire(slot(1)).is_some(),
            |b| b.try_acquire(slot(2)).is_some(),
        );
        assert!(theirs != ours, "one request allows one retry");
    });
}

/// What was counted before the window began is in its base and in the sum, or in neither: else the
/// base would be more than the sum, and less than the minimum be left.
#[test]
fn the_minimum_is_never_refused() {
    explore(None, || {
        let budget = budget(1_000, 1);
        let (left, ()) = beside(
            &budget,
            |b| b.available(slot(19)),
            |b| {
                b.count_request(slot(9));
                b.count_request(slot(10));
            },
        );
        assert!(left == 10 || left == 11, "ten in a window, and got {left}");
    });
}

/// As above, for a thread that takes.
#[test]
fn a_taker_is_never_refused_the_minimum() {
    explore(Some(3), || {
        let budget = RetryBudget::new(1_000, 1, Duration::from_secs(1)).expect("in range");
        let budget = Arc::new(budget);
        let tenth = |number: u64| Timestamp::from_nanos(number * 100_000_000);
        let (granted, ()) = beside(
            &budget,
            move |b| b.try_acquire(tenth(19)).is_some(),
            |b| {
                b.count_request(tenth(9));
                b.count_request(tenth(10));
            },
        );
        assert!(granted, "one in a window");
    });
}

/// Two requests that begin a slot at once are both of that slot, and the one before is not.
#[test]
fn a_request_is_counted_in_one_slot() {
    explore(None, || {
        let budget = budget(1_000, 0);
        budget.count_request(slot(0));
        let count = |budget: &RetryBudget| budget.count_request(slot(1));
        beside(&budget, count, count);
        assert_eq!(budget.available(slot(9)), 3);
        assert_eq!(
            budget.available(slot(10)),
            2,
            "the first is out of the window"
        );
        assert_eq!(budget.available(slot(11)), 0);
    });
}

/// A slot that a late thread begins is no later than those that have begun: else it would write off
/// what they granted.
#[test]
fn a_fresh_budget_grants_its_minimum_once() {
    explore(None, || {
        let budget = RetryBudget::new(0, 1, Duration::from_secs(1)).expect("in range");
        let budget = Arc::new(budget);
        let tenth = |number: u64| Timestamp::from_nanos(number * 100_000_000);
        let (theirs, ours) = beside(
            &budget,
            move |b| b.try_acquire(tenth(1)).is_some(),
            |b| b.try_acquire(tenth(2)).is_some(),
        );
        assert!(theirs != ours, "one retry in a window of a second");
        assert!(budget.try_acquire(tenth(3)).is_none(), "nor a second");
    });
}

/// As above, with a thread that only counts.
#[test]
fn a_late_request_writes_no_retry_off() {
    explore(None, || {
        let budget = RetryBudget::new(0, 1, Duration::from_secs(1)).expect("in range");
        let budget = Arc::new(budget);
        let tenth = |number: u64| Timestamp::from_nanos(number * 100_000_000);
        let ((), granted) = beside(
            &budget,
            move |b| b.count_request(tenth(1)),
            |b| [2, 3].map(|number| b.try_acquire(tenth(number)).is_some()),
        );
        assert_eq!(granted, [true, false], "one retry in a window of a second");
        assert!(budget.try_acquire(tenth(4)).is_none(), "nor a second");
    });
}

/// A taker whose clock is behind sees the window of the grant that it sees, or it would be granted
/// by requests that are no longer in it.
#[test]
fn a_late_taker_goes_by_the_newest_window() {
    explore(None, || {
        let budget = budget(1_000, 0);
        budget.count_request(slot(0));
        let (theirs, ours) = beside(
            &budget,
            |b| b.try_acquire(slot(9)).is_some(),
            |b| {
                b.count_request(slot(10));
                b.try_acquire(slot(10)).is_some()
            },
        );
        assert!(!(theirs && ours), "one request is in the window");
    });
}

/// A reader that sees a new slot sees those before it: else a later one would be taken for the
/// window's beginning.
#[test]
fn a_window_is_kept_before_it_moves_on() {
    explore(None, || {
        let budget = budget(1_000, 0);
        budget.count_request(slot(0));
        let (left, ()) = beside(
            &budget,
            |b| b.available(slot(0)),
            |b| b.count_request(slot(1)),
        );
        assert!(left == 1 || left == 2, "the first request is in the window");
    });
}

/// A slot is kept by a thread that is late, though a later slot has taken its place in the ring.
#[test]
fn a_late_thread_keeps_no_old_slot() {
    explore(Some(3), || {
        let budget = budget(1_000, 0);
        budget.count_request(slot(0));
        beside(
            &budget,
            |b| b.count_request(slot(1)),
            |b| {
                // The ring has sixteen places.
                b.count_request(slot(16));
                b.count_request(slot(17));
            },
        );
        // Of the window that begins with slot 16: what is kept of that has to be there.
        let left = budget.available(slot(25));
        assert!(
            left == 2 || left == 3,
            "two requests, or the late one too: {left}"
        );
    });
}

mod twin {
    //! The same, with the mistake one is tempted to make. It must fail.

    use loom::{
        model,
        sync::atomic::{AtomicU32, Ordering::SeqCst},
    };

    use super::*;

    /// One retry in a window of slots, each of which notes the retries granted before it in a word
    /// by itself.
    struct WordForEachSlot {
        retries: AtomicU32,
        /// 0 if the slot has not begun, else one more than the retries.
        slots: [AtomicU32; 2],
    }

    impl WordForEachSlot {
        fn begin(&self, slot: usize) {
            if self.slots[slot].load(SeqCst) == 0 {
                let retries = self.retries.load(SeqCst);
                let _ = self.slots[slot].compare_exchange(0, retries + 1, SeqCst, SeqCst);
            }
        }

        fn take(&self, slot: usize) -> bool {
            self.begin(slot);
            let retries = self.retries.load(SeqCst);
            let begun = self.slots.iter().map(|word| word.load(SeqCst));
            let base = begun.filter(|word| *word > 0).map(|word| word - 1).next();
            base == Some(retries)
                && self
                    .retries
                    .compare_exchange(retries, retries + 1, SeqCst, SeqCst)
                    .is_ok()
        }
    }

    #[test]
    #[should_panic(expected = "one retry in a window")]
    fn slots_that_begin_out_of_order_grant_twice() {
        model(|| {
            let budget = Arc::new(WordForEachSlot {
                retries: AtomicU32::new(0),
                slots: [AtomicU32::new(0), AtomicU32::new(0)],
            });
            let shared = Arc::clone(&budget);
            let other = thread::spawn(move || shared.take(0));
            let ours = budget.take(1);
            let theirs = other.join().expect("the other thread returns");
            assert!(!(theirs && ours), "one retry in a window");
        });
    }
}
