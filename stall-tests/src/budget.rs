//! Stops in a [`RetryBudget`].
//!
//! Claim: a thread that stops within a call, or goes on as late as it likes, gives no other a retry
//! twice, and takes none from it.

use alloc::sync::Arc;
use core::time::Duration;

use paceline::{RetryBudget, Timestamp};

use crate::hook::{bounded, overtaken_and_stopped_at, stopped_at};

/// The most steps of a call that meets no other thread.
const MOST: u64 = 60;

/// Returns the time at which a tenth of the window begins.
fn tenth(number: u64) -> Timestamp {
    Timestamp::from_nanos(number * 100_000_000)
}

/// A budget of so many retries in a second.
fn budget(per_second: u32) -> Arc<RetryBudget> {
    let budget = RetryBudget::new(0, per_second, Duration::from_secs(1));
    Arc::new(budget.expect("in range"))
}

/// Takes all retries at `now`, and returns how many.
fn take_all(budget: &RetryBudget, now: Timestamp) -> u32 {
    let mut taken = 0;
    while bounded(MOST, || budget.try_acquire(now)).is_some() {
        taken += 1;
        assert!(taken <= 100, "no end of retries");
    }
    taken
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    CountRequest,
    TryAcquire,
}

impl Operation {
    const ALL: [Self; 2] = [Self::CountRequest, Self::TryAcquire];

    /// Returns whether it took a retry.
    fn run(self, budget: &RetryBudget, now: Timestamp) -> bool {
        match self {
            Self::CountRequest => budget.count_request(now),
            Self::TryAcquire => return budget.try_acquire(now).is_some(),
        }
        false
    }
}

/// Wherever a thread stops, the others get the ten retries of the window and no more; it may have
/// got one of them.
#[test]
fn a_stopped_thread_neither_grants_nor_takes() {
    for operation in Operation::ALL {
        for begun in [false, true] {
            for step in 0.. {
                let budget = budget(10);
                if begun {
                    budget.count_request(tenth(0));
                }
                let stopped = stopped_at(step, || operation.run(&budget, tenth(1)));
                let taken = u32::from(stopped == Some(true));
                assert_eq!(
                    taken + take_all(&budget, tenth(2)),
                    10,
                    "{operation:?} {step}"
                );
                for number in 3..=9 {
                    assert_eq!(take_all(&budget, tenth(number)), 0, "the same window");
                }
                assert_eq!(take_all(&budget, tenth(12)), 10, "the next window");
                if stopped.is_some() {
                    break;
                }
            }
        }
    }
}

/// The others take the one retry of a window, and of the `windows` after it, while a thread is
/// within a call.
#[test]
fn a_late_thread_gives_no_retry_twice() {
    for operation in Operation::ALL {
        for windows in 1..=3 {
            for step in 0.. {
                let budget = budget(1);
                let shared = Arc::clone(&budget);
                let others = move || {
                    for window in 0..windows {
                        let granted = shared.try_acquire(tenth(2 + 10 * window));
                        assert!(granted.is_some(), "one in each window");
                    }
                };
                let last = 2 + 10 * (windows - 1);
                let work = || operation.run(&budget, tenth(1));
                let granted = overtaken_and_stopped_at(step, others, u64::MAX, work);
                let retries = budget.snapshot(tenth(last)).retries;
                if retries <= 1 && granted == Some(true) || retries == 0 {
                    break; // the call has fewer steps, and the others never came
                }
                assert_eq!(
                    (granted, retries),
                    (Some(false), windows),
                    "{operation:?} {step}"
                );
                for number in last..last + 9 {
                    let again = take_all(&budget, tenth(number));
                    assert_eq!(again, 0, "{operation:?} {step}: the same window");
                }
                let next = take_all(&budget, tenth(last + 10));
                assert_eq!(next, 1, "{operation:?} {step}: the next window");
            }
        }
    }
}
