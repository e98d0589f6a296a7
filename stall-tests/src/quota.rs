//! Stops in a [`RetryQuota`].

use alloc::sync::Arc;

use paceline_core::RetryQuota;

use crate::hook::{bounded, overtaken_and_stopped_at, stopped_at};
use crate::threads::quota_is_conserved;

/// The most steps of an operation that meets no other thread: a load of the count, and a
/// compare-and-swap.
const MOST: u64 = 2;

#[derive(Clone, Copy, Debug)]
enum Operation {
    TryAcquire,
    Release,
    Credit,
}

impl Operation {
    const ALL: [Self; 3] = [Self::TryAcquire, Self::Release, Self::Credit];

    /// What it adds to the quota.
    const fn gain(self) -> i64 {
        match self {
            Self::TryAcquire => -3,
            Self::Release => 5,
            Self::Credit => 2,
        }
    }

    /// How many steps it has if it meets no other thread: a release is one.
    const fn steps(self) -> u64 {
        match self {
            Self::TryAcquire => MOST,
            Self::Credit => 2,
            Self::Release => 1,
        }
    }

    /// How many more it has if another thread comes before the last of them: only a take is tried
    /// again.
    const fn more_if_overtaken(self) -> u64 {
        match self {
            Self::TryAcquire => 1,
            Self::Credit | Self::Release => 0,
        }
    }

    fn run(self, quota: &RetryQuota, permit: paceline_core::QuotaPermit) {
        match self {
            Self::TryAcquire => drop(quota.try_acquire(3)),
            Self::Release => quota.release(permit),
            Self::Credit => quota.credit(2),
        }
    }
}

/// A quota of 100 that holds 60, and a permit of 5 from it.
fn scene() -> (Arc<RetryQuota>, paceline_core::QuotaPermit) {
    let quota = RetryQuota::new(100);
    drop(quota.try_acquire(35));
    let permit = quota.try_acquire(5).expect("65 are left");
    (Arc::new(quota), permit)
}

/// Whether `quota` holds `before`, or that and the gain of `pending`, which has stopped or
/// finished.
fn assert_pending(quota: &RetryQuota, before: i64, pending: Operation, stopped: bool) {
    let (now, gained) = (i64::from(quota.available()), before + pending.gain());
    assert!(
        now == gained || (stopped && now == before),
        "{pending:?} has happened or not: {before} became {now}"
    );
}

fn check(quota: &Arc<RetryQuota>) {
    let before = quota.available();
    let permit = bounded(MOST, || quota.try_acquire(7)).expect("7 are there");
    assert_eq!(quota.available(), before - 7);
    bounded(MOST, || quota.release(permit));
    bounded(MOST, || quota.credit(1));
    assert_eq!(quota.available(), before + 1);
    for count in 2..=4 {
        quota_is_conserved(quota, count);
    }
}

/// Wherever a thread stops, its operation has happened or not, and everybody else goes on.
#[test]
fn a_stopped_thread_stops_no_other() {
    for operation in Operation::ALL {
        let steps = operation.steps();
        for step in 0..=steps {
            let (quota, permit) = scene();
            let finished = stopped_at(step, || operation.run(&quota, permit)).is_some();
            assert_eq!(finished, step == steps, "{steps} steps");
            assert_pending(&quota, 60, operation, !finished);
            check(&quota);
        }
    }
}

/// A thread that lost its compare-and-swap to another one, and stops then, stops no other.
#[test]
fn a_thread_overtaken_and_stopped_stops_no_other() {
    for operation in Operation::ALL {
        for other in Operation::ALL {
            let steps = operation.steps();
            let last = steps + operation.more_if_overtaken();
            for step in steps - 1..=last {
                let (quota, permit) = scene();
                let theirs = quota.try_acquire(5).expect("60 are left");
                let shared = Arc::clone(&quota);
                let overtake = move || other.run(&shared, theirs);
                let work = || operation.run(&quota, permit);
                let finished = overtaken_and_stopped_at(steps - 1, overtake, step, work).is_some();
                assert_eq!(finished, step == last, "{last} steps");
                assert_pending(&quota, 55 + other.gain(), operation, !finished);
                check(&quota);
            }
        }
    }
}
