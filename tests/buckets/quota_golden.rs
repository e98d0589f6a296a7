//! The quota against the vectors of other implementations, each test naming its source.

use paceline::RetryQuota;

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
