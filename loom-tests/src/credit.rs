//! Models of [`SendCredit`](paceline::SendCredit): tokens taken in advance, and given back.

use alloc::sync::Arc;
use core::num::NonZeroU32;
use core::time::Duration;

use loom::thread;
use paceline::{SendRate, Timestamp, law::PacedSettings};

use crate::explore;

/// A limiter of 100/s whose bucket holds five and is full.
fn limiter() -> SendRate {
    let settings = PacedSettings::fixed(100, Duration::from_secs(1)).unwrap();
    SendRate::paced(settings, Timestamp::ZERO)
}

/// Takes two requests' tokens in a batch of three, and gives back what is left.
fn two_of_three(rate: &SendRate) -> usize {
    let mut credit = rate.credit(NonZeroU32::new(3).unwrap());
    let granted = (0..2)
        .filter(|_| credit.try_acquire(Timestamp::ZERO).is_ok())
        .count();
    drop(credit);
    granted
}

#[test]
fn what_is_given_back_is_there_again_and_no_more() {
    explore(Some(2), || {
        let rate = Arc::new(limiter());
        let other = {
            let rate = Arc::clone(&rate);
            thread::spawn(move || two_of_three(&rate))
        };
        let granted = two_of_three(&rate) + other.join().unwrap();
        let left = (0..6)
            .filter(|_| rate.try_acquire(Timestamp::ZERO).is_ok())
            .count();
        assert_eq!(granted + left, 5, "{granted} granted, {left} left");
    });
}

#[test]
fn two_batches_never_share_a_token() {
    explore(None, || {
        let rate = Arc::new(limiter());
        let other = {
            let rate = Arc::clone(&rate);
            thread::spawn(move || {
                let mut credit = rate.credit(NonZeroU32::new(4).unwrap());
                let granted = credit.try_acquire(Timestamp::ZERO).is_ok();
                let held = credit.held();
                core::mem::forget(credit);
                held + u32::from(granted)
            })
        };
        let mut credit = rate.credit(NonZeroU32::new(4).unwrap());
        let granted = credit.try_acquire(Timestamp::ZERO).is_ok();
        let taken = credit.held() + u32::from(granted) + other.join().unwrap();
        assert_eq!(taken, 5);
        core::mem::forget(credit);
    });
}

/// The mistake that the models above are there for.
#[test]
#[should_panic(expected = "a token was shared")]
fn a_batch_that_is_counted_and_then_taken_shares_tokens() {
    use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};

    explore(None, || {
        let bucket = Arc::new(AtomicU64::new(5));
        let take = |bucket: &AtomicU64| {
            let tokens = bucket.load(Relaxed).min(4);
            bucket.store(bucket.load(Relaxed).saturating_sub(tokens), Relaxed);
            tokens
        };
        let other = {
            let bucket = Arc::clone(&bucket);
            thread::spawn(move || take(&bucket))
        };
        let taken = take(&bucket) + other.join().unwrap();
        assert!(taken <= 5, "a token was shared");
    });
}
