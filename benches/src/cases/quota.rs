//! A quota: told of successes, asked for retries.

use core::hint::black_box;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use core::time::Duration;
use std::sync::Mutex;

use paceline::RetryQuota;
use tokio::sync::Semaphore;
use tower::retry::budget::{Budget, TpsBudget};

use super::twin::{Lock, Quota};
use crate::case::{
    Case, Stage,
    Whose::{Limit, Ours, Peer, Twin},
    plain,
};
use crate::path::Path::{QuotaPair, QuotaRefused, QuotaSuccess};
use crate::target::Bound::{Nanos, ScalesAsEmptyLoop, TimeOf, TotalOf};

/// Returns the cases.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = success();
    cases.extend(pair());
    cases.extend(refused());
    cases
}

fn success() -> Vec<Case> {
    let case = |whose, name, writes, make| Case::new(QuotaSuccess, whose, name, writes, make);
    vec![
        case(Ours, "paceline RetryQuota", 0, || {
            plain(RetryQuota::new(500), |quota| {
                quota.credit(1);
                true
            })
        })
        .target(&[Nanos(1.0), ScalesAsEmptyLoop], "one load is all it is"),
        case(
            Peer,
            "tokio Semaphore, a look whether it is full",
            0,
            || {
                plain(Semaphore::new(500), |quota| {
                    quota.available_permits() == 500
                })
            },
        ),
        case(Peer, "tower TpsBudget", 3, || {
            plain(budget(), |budget| {
                budget.deposit();
                true
            })
        }),
        case(Twin, "std mutex", 2, twin_success::<Mutex<Quota>>),
        case(
            Twin,
            "parking_lot mutex",
            2,
            twin_success::<parking_lot::Mutex<Quota>>,
        ),
        case(Limit, "one relaxed load", 0, || {
            plain(AtomicU32::new(500), |word| word.load(Relaxed) == 500)
        }),
    ]
}

fn pair() -> Vec<Case> {
    let case = |whose, name, writes, make| Case::new(QuotaPair, whose, name, writes, make);
    vec![
        case(Ours, "paceline RetryQuota", 2, || {
            plain(RetryQuota::new(500), |quota| {
                let permit = quota.try_acquire(black_box(5));
                let granted = permit.is_some();
                if let Some(permit) = permit {
                    quota.release(permit);
                }
                granted
            })
        })
        .target(
            &[TimeOf(1.0, TWO_CAS), TotalOf(0.9, TWO_CAS)],
            "two compare-and-swaps on one line",
        ),
        case(Peer, "tokio Semaphore", 3, || {
            plain(Semaphore::new(500), |quota| {
                quota.try_acquire_many(black_box(5)).is_ok() // and drops the permit
            })
        }),
        case(Peer, "tower TpsBudget", 6, || {
            plain(budget(), |budget| {
                let granted = budget.withdraw();
                budget.deposit();
                granted
            })
        }),
        case(Twin, "std mutex", 4, twin_pair::<Mutex<Quota>>),
        case(
            Twin,
            "parking_lot mutex",
            4,
            twin_pair::<parking_lot::Mutex<Quota>>,
        ),
        case(Limit, TWO_CAS, 2, || {
            plain(AtomicU32::new(500), |word| {
                let down = word.fetch_update(Relaxed, Relaxed, |seen| seen.checked_sub(5));
                let up = word.fetch_update(Relaxed, Relaxed, |seen| seen.checked_add(5));
                down.is_ok() && up.is_ok()
            })
        }),
    ]
}

const TWO_CAS: &str = "two compare-and-swaps on one line";

fn refused() -> Vec<Case> {
    let case =
        |whose, name, writes, make| Case::new(QuotaRefused, whose, name, writes, make).refused();
    vec![
        case(Ours, "paceline RetryQuota", 0, || {
            let quota = RetryQuota::new(500);
            drop(quota.try_acquire(500));
            plain(quota, |quota| quota.try_acquire(black_box(5)).is_some())
        })
        .target(&[Nanos(1.0), ScalesAsEmptyLoop], "one load is all it is"),
        case(Peer, "tokio Semaphore", 0, || {
            plain(Semaphore::new(0), |quota| {
                quota.try_acquire_many(black_box(5)).is_ok()
            })
        }),
        case(Peer, "tower TpsBudget", 2, || {
            let budget = TpsBudget::new(Duration::from_mins(1), 0, 0.2);
            plain(budget, TpsBudget::withdraw)
        }),
        case(Twin, "std mutex", 2, twin_refused::<Mutex<Quota>>),
        case(
            Twin,
            "parking_lot mutex",
            2,
            twin_refused::<parking_lot::Mutex<Quota>>,
        ),
    ]
}

/// So full that nothing here empties it: nothing else of it is asked.
fn budget() -> TpsBudget {
    TpsBudget::new(Duration::from_secs(10), 100_000_000, 1.0)
}

fn twin_success<L: Lock<Quota>>() -> Stage {
    plain(L::of(Quota::holding(500, 500)), |quota| {
        quota.with(|quota| quota.credit(1));
        true
    })
}

fn twin_pair<L: Lock<Quota>>() -> Stage {
    plain(L::of(Quota::holding(500, 500)), |quota| {
        let granted = quota.with(|quota| quota.take(black_box(5)));
        if granted {
            quota.with(|quota| quota.credit(black_box(5)));
        }
        granted
    })
}

fn twin_refused<L: Lock<Quota>>() -> Stage {
    plain(L::of(Quota::holding(0, 500)), |quota| {
        quota.with(|quota| quota.take(black_box(5)))
    })
}
