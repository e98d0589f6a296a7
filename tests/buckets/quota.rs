//! The retry quota at the ends of its range, what changes it from outside, and the vectors of other
//! implementations, each naming its source.

use paceline::RetryQuota;

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
fn a_quota_is_drained_and_refilled_by_what_there_is() {
    let quota = RetryQuota::new(10);
    assert_eq!(quota.refill(), 0, "it is full");
    let permit = quota.try_acquire(3).expect("it is full");
    assert_eq!((quota.drain(), quota.drain(), quota.available()), (7, 0, 0));
    quota.release(permit);
    assert_eq!((quota.refill(), quota.available()), (7, 10));
    assert_eq!((quota.drain(), quota.refill()), (10, 10));
}

/// botocore `tests/unit/retries/test_quota.py`: a quota of 50.
#[test]
fn botocore_quota() {
    let quota = RetryQuota::new(50);
    let five = quota.try_acquire(5).unwrap();
    assert_eq!(quota.available(), 45);
    quota.release(five);
    assert_eq!(quota.available(), 50);
    quota.credit(5); // full already
    assert_eq!(quota.available(), 50);

    drop(quota.try_acquire(5));
    quota.credit(10); // more than fits
    assert_eq!(quota.available(), 50);

    drop(quota.try_acquire(49));
    assert!(quota.try_acquire(10).is_none());
    assert_eq!(quota.available(), 1);
}

/// aws-sdk-go-v2 `aws/ratelimit/token_rate_limit_test.go`: a limit of 10.
#[test]
fn go_token_rate_limit() {
    let quota = RetryQuota::new(10);
    let released = quota.try_acquire(5).unwrap();
    quota.release(released);
    assert_eq!(quota.available(), 10);
    drop(quota.try_acquire(5).unwrap());
    drop(quota.try_acquire(5).unwrap());
    assert!(quota.try_acquire(5).is_none());
    quota.credit(5);
    assert!(quota.try_acquire(5).is_some());
}

/// aws-sdk-cpp's retry strategy tests: costs of 5 and 10, and 14 refused when 10 are left.
#[test]
fn cpp_costs() {
    let quota = RetryQuota::new(500);
    drop(quota.try_acquire(5).unwrap());
    assert_eq!(quota.available(), 495);
    drop(quota.try_acquire(10).unwrap());
    assert_eq!(quota.available(), 485);

    let quota = RetryQuota::new(500);
    drop(quota.try_acquire(490).unwrap());
    assert!(quota.try_acquire(14).is_none());
    assert_eq!(quota.available(), 10);
}
