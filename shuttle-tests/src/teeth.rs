//! Twins with mistakes made on purpose: each test here must fail.

use alloc::sync::Arc;

use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::{explore, on_threads};

/// Tokens in two words: what was promised, and what was given back. A place that is given up is
/// added to the one and taken from the other in two steps, in the wrong order.
#[derive(Default)]
struct TwoWords {
    issued: AtomicU64,
    given_up: AtomicU64,
}

impl TwoWords {
    /// Checks, then adds: two threads may both see the last token.
    fn try_acquire(&self, minted: u64) -> bool {
        let (issued, given_up) = (self.issued.load(SeqCst), self.given_up.load(SeqCst));
        let live = issued.checked_sub(given_up).expect("never below zero");
        live < minted && self.issued.fetch_add(1, SeqCst) < u64::MAX
    }

    fn come_and_go(&self) {
        self.given_up.fetch_add(1, SeqCst);
        self.issued.fetch_add(1, SeqCst);
    }
}

#[test]
#[should_panic(expected = "of 3")]
fn a_bucket_that_checks_then_adds_grants_too_much() {
    explore(1_000, || {
        let bucket = Arc::new(TwoWords::default());
        let granted = on_threads(5, &bucket, |bucket, _| u32::from(bucket.try_acquire(3)));
        let granted: u32 = granted.iter().sum();
        assert!(granted <= 3, "granted {granted} of 3");
    });
}

#[test]
#[should_panic(expected = "never below zero")]
fn a_place_that_is_given_up_before_it_is_taken_goes_below_zero() {
    explore(1_000, || {
        let bucket = Arc::new(TwoWords::default());
        on_threads(4, &bucket, |bucket, thread| {
            if thread % 2 == 0 {
                bucket.come_and_go();
            } else {
                bucket.try_acquire(3);
            }
        });
    });
}
