//! The retry quota at the ends of its range, and what changes it from outside.

use core::time::Duration;

use paceline::{QuotaSettingsError, RetryQuota, Timestamp};

fn at(seconds: u64) -> Timestamp {
    Timestamp::ZERO.saturating_add(Duration::from_secs(seconds))
}

#[test]
fn a_capacity_of_0_refuses_whatever_costs_anything() {
    let quota = RetryQuota::new(0);
    assert!(quota.try_acquire(0).is_some());
    assert!(quota.try_acquire(1).is_none());
    assert!(quota.try_acquire(u32::MAX).is_none());
    quota.credit(u32::MAX);
    assert_eq!((quota.available(), quota.capacity()), (0, 0));
}

#[test]
fn a_capacity_of_1_is_one_token() {
    let quota = RetryQuota::new(1);
    assert!(
        quota.try_acquire(2).is_none(),
        "above the capacity for good"
    );
    let permit = quota.try_acquire(1).expect("it is full");
    assert!(quota.try_acquire(1).is_none());
    assert!(quota.try_acquire(0).is_some_and(|free| free.cost() == 0));
    quota.release(permit);
    quota.credit(u32::MAX);
    assert_eq!((quota.available(), quota.capacity()), (1, 1));
}

#[test]
fn the_largest_capacity_neither_overflows_nor_wraps() {
    let quota = RetryQuota::new(u32::MAX);
    quota.credit(u32::MAX);
    assert_eq!(quota.available(), u32::MAX);
    let permit = quota.try_acquire(u32::MAX).expect("it is full");
    assert_eq!((quota.available(), permit.cost()), (0, u32::MAX));
    quota.credit(u32::MAX - 1);
    assert!(quota.try_acquire(u32::MAX).is_none());
    assert_eq!(quota.available(), u32::MAX - 1, "a refusal takes nothing");
    quota.release(permit);
    assert_eq!(quota.available(), u32::MAX);
}

#[test]
fn a_permit_released_elsewhere_brings_no_more_than_fits() {
    let (large, small) = (RetryQuota::new(500), RetryQuota::new(5));
    let permit = large.try_acquire(100).expect("it is full");
    small.release(permit);
    assert_eq!((large.available(), small.available()), (400, 5));
}

#[test]
fn a_change_of_capacity_leaves_what_is_missing() {
    let quota = RetryQuota::new(500);
    quota.set_capacity(u32::MAX);
    assert_eq!(quota.available(), u32::MAX, "full is full");
    quota.set_capacity(500);
    let permit = quota.try_acquire(100).expect("it is full");
    let available = [1_000, 101, 100, 99, 0, 500].map(|capacity| {
        quota.set_capacity(capacity);
        assert_eq!(quota.capacity(), capacity);
        quota.available()
    });
    assert_eq!(available, [900, 1, 0, 0, 0, 400]);
    quota.set_capacity(40);
    assert!(quota.try_acquire(1).is_none() && quota.try_acquire(0).is_some());
    quota.credit(60);
    assert_eq!(quota.available(), 0, "it was owed");
    quota.credit(1);
    assert_eq!(quota.available(), 1);
    quota.release(permit);
    assert_eq!(quota.snapshot().available, 40);
}

#[test]
fn a_quota_is_drained_and_refilled_by_what_there_is() {
    let quota = RetryQuota::new(10);
    assert_eq!(quota.refill(), 0, "it is full");
    let permit = quota.try_acquire(3).expect("it is full");
    assert_eq!((quota.drain(), quota.drain(), quota.available()), (7, 0, 0));
    quota.release(permit);
    assert_eq!((quota.refill(), quota.available()), (7, 10));
    quota.set_capacity(4);
    assert_eq!((quota.drain(), quota.refill()), (4, 4));
    drop(quota.try_acquire(4));
    quota.set_capacity(1);
    assert_eq!((quota.drain(), quota.available()), (0, 0), "three are owed");
    assert_eq!(
        (quota.refill(), quota.available()),
        (1, 1),
        "and are no longer"
    );
}

#[test]
fn time_pays_what_is_missing_at_its_rate() {
    let quota = RetryQuota::with_refill(10, 1, Duration::from_secs(2), at(100)).unwrap();
    assert_eq!(
        quota.fill_until(at(200)),
        0,
        "it is full, and that time is gone"
    );
    quota.drain();
    assert!(quota.try_acquire_at(1, at(201)).is_none());
    let permit = quota
        .try_acquire_at(1, at(202))
        .expect("a token in two seconds");
    assert!(quota.try_acquire_at(1, at(203)).is_none());
    assert!(
        quota.try_acquire_at(1, at(150)).is_none(),
        "an older clock mints nothing"
    );
    quota.release(permit);
    assert_eq!(quota.fill_until(at(208)), 3);
    assert_eq!((quota.fill_until(at(10_000)), quota.available()), (6, 10));
    let plain = RetryQuota::new(10);
    plain.drain();
    assert_eq!(plain.fill_until(at(10_000)), 0, "time pays nothing unasked");
}

#[test]
fn a_refill_out_of_range_is_an_error() {
    let second = Duration::from_secs(1);
    for (tokens, per) in [
        (0, second),
        (1, Duration::ZERO),
        (2, Duration::from_nanos(1)),
        (1, Duration::from_millis(1_000_001)),
        (1, Duration::MAX),
    ] {
        let error = RetryQuota::with_refill(1, tokens, per, at(0)).unwrap_err();
        assert!(
            matches!(error, QuotaSettingsError::RefillRate { tokens: t, per: p, .. } if (t, p) == (tokens, per))
        );
    }
    let error = RetryQuota::with_refill(1, 0, second, at(0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the refill of 0 tokens in 1s is not between one in 1000 s and one in 1 ns"
    );
    assert!(RetryQuota::with_refill(1, 1, Duration::from_nanos(1), at(0)).is_ok());
    assert!(RetryQuota::with_refill(1, 1, Duration::from_secs(1_000), at(0)).is_ok());
}
