//! Models of [`RetryBudget`].
//!
//! Claim: retries never exceed the share of the requests and the minimum, and what these allow is not refused.

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

/// What was counted before the window began is in its base and in the sum, or in neither: else the base would be
/// more than the sum, and less than the minimum be left.
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
