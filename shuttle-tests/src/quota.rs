//! [`RetryQuota`] under four threads and more.

use alloc::sync::Arc;

use paceline::RetryQuota;

use crate::{explore, on_threads};

/// What is taken, given back and credited by five threads adds up.
#[test]
fn takes_releases_and_credits_add_up() {
    explore(2_000, || {
        let quota = Arc::new(RetryQuota::new(1_000));
        drop(quota.try_acquire(988)); // 12 are left, and room for all that is credited
        let gains = on_threads(5, &quota, |quota, thread| {
            let mut gain = 0_i64;
            for round in 0..4 {
                match quota.try_acquire(2 + thread) {
                    Some(permit) if (round + thread) % 2 == 0 => quota.release(permit),
                    Some(permit) => gain -= i64::from(permit.cost()),
                    None => {
                        quota.credit(1);
                        gain += 1;
                    }
                }
            }
            gain
        });
        let sum = 12 + gains.iter().sum::<i64>();
        assert_eq!(i64::from(quota.available()), sum, "nothing is lost");
    });
}

/// However many give back at once, the quota is never above its capacity, and full in the end.
#[test]
fn gains_of_four_threads_stop_at_the_cap() {
    explore(2_000, || {
        let quota = Arc::new(RetryQuota::new(10));
        on_threads(4, &quota, |quota, thread| {
            for _ in 0..3 {
                if let Some(permit) = quota.try_acquire(3) {
                    quota.release(permit);
                }
                quota.credit(thread);
                assert!(quota.available() <= 10, "never above the capacity");
            }
        });
        assert_eq!(quota.available(), 10, "all that was taken came back");
    });
}
