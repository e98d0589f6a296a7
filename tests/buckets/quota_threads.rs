//! The retry quota under real threads.
//!
//! Claim: whatever the interleaving, no token is granted twice, and what comes back is there again.

use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::{sync::Barrier, thread};

use paceline::RetryQuota;

const CAPACITY: u32 = 500;
const THREADS: u32 = 8;
const ROUNDS: u32 = 100_000;
/// What the retries of the two generations of the published quota cost, and two odd amounts.
const COSTS: [u32; 5] = [14, 5, 10, 1, 97];

#[test]
fn eight_threads_that_return_all_they_took_leave_it_exactly_full() {
    let quota = RetryQuota::new(CAPACITY);
    let held = AtomicU32::new(0);
    let start = Barrier::new(THREADS as usize);
    let (granted, refused) = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|id| {
                let (quota, held, start) = (&quota, &held, &start);
                scope.spawn(move || {
                    start.wait();
                    take_and_return(quota, held, id)
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("the worker returns"))
            .fold((0, 0), |(g, r), (granted, refused)| {
                (g + granted, r + refused)
            })
    });

    assert_eq!(quota.available(), CAPACITY);
    assert_eq!(granted + refused, THREADS * ROUNDS);
    assert!(granted > 0, "some of {} asks are granted", THREADS * ROUNDS);
}

/// Takes mixed costs again and again, holds up to eight permits at once, and gives all of them
/// back: every other one by a release, the rest by a credit. Returns the grants and the refusals.
fn take_and_return(quota: &RetryQuota, held: &AtomicU32, id: u32) -> (u32, u32) {
    let (mut granted, mut refused) = (0, 0);
    let mut permits = Vec::with_capacity(8);
    for round in 0..ROUNDS {
        let cost = COSTS[(round + id) as usize % COSTS.len()];
        if let Some(permit) = quota.try_acquire(cost) {
            // Counted after the take and before the return: it never exceeds what is really out.
            let out = held.fetch_add(cost, SeqCst) + cost;
            assert!(out <= CAPACITY, "{out} of {CAPACITY} tokens are out");
            permits.push(permit);
            granted += 1;
        } else {
            refused += 1;
        }
        assert!(quota.available() <= CAPACITY);
        if permits.len() == 8 || round + 1 == ROUNDS {
            for (n, permit) in permits.drain(..).enumerate() {
                let cost = permit.cost();
                held.fetch_sub(cost, SeqCst);
                if n % 2 == 0 {
                    quota.release(permit);
                } else {
                    drop(permit); // spent, and earned back by successes
                    quota.credit(cost);
                }
            }
        }
    }
    (granted, refused)
}
