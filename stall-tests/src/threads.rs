//! Several threads at work beside a stopped one.
//!
//! They meet each other, so that a call may take as many steps again for each one of the others
//! that gets in first: the bound is that of one call times the number of calls.

use alloc::sync::Arc;
use std::thread;

use paceline_core::{Outcome, RetryQuota, SendRate};

use crate::hook::{MOST, bounded};
use crate::scene::{at, record};
use crate::stops::everywhere;
use crate::workload::{close, look, take, throttle};

const ROUNDS: u64 = 4;

/// Runs `work` on `count` threads and returns the sum of the results.
fn on_threads<T: Send + Sync + 'static>(
    count: u64,
    shared: &Arc<T>,
    work: impl Fn(&T) -> u32 + Copy + Send + 'static,
) -> u32 {
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let shared = Arc::clone(shared);
            thread::spawn(move || work(&shared))
        })
        .collect();
    let results = threads.into_iter().map(thread::JoinHandle::join);
    results
        .map(|result| result.expect("the thread returns"))
        .sum()
}

/// Takes a token, and a place in line that is given up again; returns how many tokens it got.
fn take_and_give_up(rate: &SendRate, most: u64) -> u32 {
    let mut granted = 0;
    for _ in 0..ROUNDS {
        granted += u32::from(bounded(most, || rate.try_acquire(at(1_100))).is_ok());
        let place = bounded(most, || rate.reserve(at(1_100)));
        bounded(most, || drop(place));
    }
    granted
}

/// Every token that was there is granted once, to one of the threads or to who comes after them.
fn tokens_are_conserved(rate: &Arc<SendRate>, count: u64) {
    let before = look(rate, at(1_100));
    let most = MOST * count * ROUNDS * 3;
    let mut granted = on_threads(count, rate, move |rate| take_and_give_up(rate, most));
    while take(rate, at(1_100)).is_ok() {
        granted += 1;
    }
    let left = before.available - f64::from(granted);
    assert!(
        (-1e-6..1.0 + 1e-6).contains(&left),
        "granted {granted} of {before:?}"
    );
}

/// Every throttle of every thread cuts.
fn throttles_all_cut(rate: &Arc<SendRate>, count: u64) {
    let before = look(rate, at(1_200));
    let most = MOST * count * 2;
    on_threads(count, rate, move |rate| {
        for _ in 0..2 {
            bounded(most, || record(rate, at(1_200), Outcome::Throttled));
        }
        0
    });
    let after = look(rate, at(1_200));
    let uncut = after.measured_rate.min(before.fill_rate);
    let cuts = (0..2 * count).fold(uncut, |rate, _| (0.7 * rate).max(0.5));
    assert!(
        close(after.fill_rate, cuts),
        "no throttle is lost: {before:?}, {after:?}"
    );
}

/// Two to four threads at once finish beside a stopped one, each call in a bounded number of steps.
#[test]
fn threads_that_meet_beside_a_stopped_one_finish() {
    everywhere(|stage, operation, step| {
        let rate = stage.limiter();
        core::mem::forget(stage.queue(&rate));
        let stopped = operation.stops_at(step, &rate);
        let count = 2 + step % 3;
        throttle(&rate, at(1_100));
        tokens_are_conserved(&rate, count);
        throttles_all_cut(&rate, count);
        stopped
    });
}

/// As above, for a quota: all that is taken comes back.
pub(crate) fn quota_is_conserved(quota: &Arc<RetryQuota>, count: u64) {
    let before = quota.available();
    let most = 4 * count * ROUNDS * 3;
    let spent = on_threads(count, quota, move |quota| {
        let mut spent = 0;
        for round in 0..ROUNDS {
            if let Some(permit) = bounded(most, || quota.try_acquire(2)) {
                if round == 0 {
                    spent += permit.cost();
                } else {
                    bounded(most, || quota.release(permit));
                }
            }
        }
        spent
    });
    assert_eq!(quota.available(), before - spent, "nothing is lost");
}
