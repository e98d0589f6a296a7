//! Models of [`RetryQuota`], over every interleaving of their threads.
//!
//! Claim: a token is never granted twice, never lost and never made up. Each model says which part
//! of it is checked. All of them are exhaustive; the slowest takes under a second.

use loom::{model, sync::Arc, thread};
use paceline_core::RetryQuota;

/// Runs `work` on a second thread while `main` runs on this one, and returns both results.
fn beside<A, B>(
    quota: &Arc<RetryQuota>,
    work: impl FnOnce(&RetryQuota) -> A + 'static,
    main: impl FnOnce(&RetryQuota) -> B,
) -> (A, B)
where
    A: 'static,
{
    let shared = Arc::clone(quota);
    let other = thread::spawn(move || work(&shared));
    let here = main(quota);
    (other.join().expect("the other thread returns"), here)
}

/// Of two takers of the last tokens, exactly one gets them.
#[test]
fn two_takers_never_share_a_token() {
    model(|| {
        let quota = Arc::new(RetryQuota::new(5));
        let (theirs, ours) = beside(&quota, |q| q.try_acquire(3), |q| q.try_acquire(3));
        assert!(
            theirs.is_some() != ours.is_some(),
            "3 of 5 tokens are granted once"
        );
        assert_eq!(quota.available(), 2);
    });
}

/// Of three takers of two tokens, exactly two get one.
#[test]
fn three_takers_get_what_there_is() {
    model(|| {
        let quota = Arc::new(RetryQuota::new(2));
        let take = |quota: &Arc<RetryQuota>| {
            let quota = Arc::clone(quota);
            thread::spawn(move || quota.try_acquire(1).is_some())
        };
        let (a, b) = (take(&quota), take(&quota));
        let here = quota.try_acquire(1).is_some();
        let grants = [a.join(), b.join()].map(|answer| answer.expect("the taker returns"));
        let granted = grants.into_iter().chain([here]).filter(|&got| got).count();
        assert_eq!(granted, 2, "two tokens make two grants");
        assert_eq!(quota.available(), 0);
    });
}

/// Takers whose costs differ are granted only what fits together, and a refusal takes nothing.
#[test]
fn a_refusal_takes_nothing() {
    model(|| {
        let quota = Arc::new(RetryQuota::new(5));
        let (theirs, ours) = beside(&quota, |q| q.try_acquire(4), |q| q.try_acquire(2));
        let taken: u32 = [&theirs, &ours]
            .into_iter()
            .flatten()
            .map(paceline_core::QuotaPermit::cost)
            .sum();
        assert!(taken == 4 || taken == 2, "one of the two fits, got {taken}");
        assert_eq!(quota.available(), 5 - taken);
    });
}

/// What one thread releases and another credits is there afterwards, all of it, up to the capacity.
#[test]
fn release_and_credit_lose_nothing() {
    model(|| {
        let quota = Arc::new(RetryQuota::new(9));
        let permit = quota.try_acquire(3).expect("the quota is full");
        drop(quota.try_acquire(4).expect("6 are left"));
        beside(&quota, |q| q.release(permit), |q| q.credit(2));
        assert_eq!(quota.available(), 7, "2 + 3 + 2: nothing is lost");
    });
}

/// Two gains that meet at the capacity fill the quota exactly and no further.
#[test]
fn gains_at_the_cap_stop_at_the_cap() {
    model(|| {
        let quota = Arc::new(RetryQuota::new(5));
        let permit = quota.try_acquire(3).expect("the quota is full");
        beside(
            &quota,
            |q| {
                q.release(permit);
                assert!(q.available() <= 5, "never above the capacity");
            },
            |q| {
                q.credit(2);
                assert!(q.available() <= 5, "never above the capacity");
            },
        );
        assert_eq!(quota.available(), 5);
    });
}

/// A gain that reads "full" writes nothing, but never reads a count older than its own take: two
/// threads that each take and give back leave the quota full.
#[test]
fn a_gain_never_mistakes_the_quota_for_full() {
    fn take_and_give_back(quota: &RetryQuota) {
        let permit = quota.try_acquire(2).expect("both fit");
        quota.release(permit);
    }
    model(|| {
        let quota = Arc::new(RetryQuota::new(4));
        beside(&quota, take_and_give_back, take_and_give_back);
        assert_eq!(quota.available(), 4, "all that was taken came back");
    });
}

/// A taker that meets a release gets the released tokens or is refused; the sum stays the same.
#[test]
fn acquire_against_release_keeps_the_sum() {
    model(|| {
        let quota = Arc::new(RetryQuota::new(4));
        let permit = quota.try_acquire(3).expect("the quota is full");
        let (granted, ()) = beside(
            &quota,
            |q| q.try_acquire(2).map(|p| p.cost()),
            |q| q.release(permit),
        );
        assert_eq!(quota.available(), 4 - granted.unwrap_or(0));
    });
}

/// A permit comes back once: an operation that overlaps another refunds its own cost, not both.
#[test]
fn each_permit_is_refunded_exactly_once() {
    model(|| {
        let quota = Arc::new(RetryQuota::new(9));
        let operation = |cost: u32, succeeds: bool| {
            move |q: &RetryQuota| {
                let permit = q.try_acquire(cost).expect("both fit");
                if succeeds {
                    q.release(permit);
                }
            }
        };
        beside(&quota, operation(4, true), operation(3, false));
        assert_eq!(quota.available(), 6, "the 3 are spent, the 4 came back");
    });
}

/// Whatever others do, a reader sees between 0 and the capacity, and never a sum that no order of
/// the operations gives.
#[test]
fn available_is_in_range() {
    model(|| {
        let quota = Arc::new(RetryQuota::new(3));
        let ((), seen) = beside(
            &quota,
            |q| {
                let permit = q.try_acquire(2).expect("no one else takes");
                assert!(q.try_acquire(2).is_none(), "1 is left");
                q.release(permit);
                q.credit(2);
            },
            |q| [q.available(), q.available()],
        );
        for available in seen {
            assert!(
                available == 1 || available == 3,
                "no order of the steps gives {available}"
            );
        }
    });
}

/// Of two threads that drain at once, each token goes to one.
#[test]
fn a_drain_takes_each_token_once() {
    model(|| {
        let quota = Arc::new(RetryQuota::new(5));
        let (theirs, ours) = beside(&quota, RetryQuota::drain, RetryQuota::drain);
        assert_eq!((theirs + ours, quota.available()), (5, 0));
        let (theirs, ours) = beside(&quota, RetryQuota::refill, |q| q.try_acquire(2).is_some());
        let taken = if ours { 2 } else { 0 };
        assert_eq!((theirs, quota.available()), (5, 5 - taken));
    });
}

/// What comes back while a quota is closed is not there, whichever comes first.
fn gains_nothing_closed_by(close: fn(&RetryQuota)) {
    model(move || {
        let quota = Arc::new(RetryQuota::new(5));
        let permit = quota.try_acquire(2).expect("the quota is full");
        beside(&quota, close, |q| q.release(permit));
        assert_eq!(quota.available(), 0);
        quota.reopen();
        assert_eq!(quota.available(), 0);
        quota.credit(4);
        assert_eq!(quota.available(), 4);
    });
}

#[test]
fn a_closed_quota_gains_nothing() {
    gains_nothing_closed_by(RetryQuota::close);
}

#[test]
#[should_panic = "left: 2"]
fn a_drained_quota_gains() {
    gains_nothing_closed_by(|quota| {
        quota.drain();
    });
}

/// Gains that overlap may come to more than was missing. What is too much is discarded: a full
/// quota grants its capacity.
#[test]
fn what_is_paid_back_twice_is_there_once() {
    model(|| {
        let quota = Arc::new(RetryQuota::new(2));
        let permit = quota.try_acquire(2).expect("the quota is full");
        let (fitted, ()) = beside(
            &quota,
            |q| {
                q.credit(2);
                q.refill()
            },
            |q| q.release(permit),
        );
        assert_eq!((fitted, quota.available()), (0, 2), "the credit filled it");
        assert!(quota.try_acquire(2).is_some(), "the capacity");
        assert!(quota.try_acquire(1).is_none(), "and no more");
    });
}

/// A taker finds a quota that was overpaid full, and takes from the capacity, whichever comes
/// first.
#[test]
fn a_taker_beside_an_overpayment_takes_its_cost() {
    model(|| {
        let quota = Arc::new(RetryQuota::new(3));
        let permit = quota.try_acquire(2).expect("the quota is full");
        quota.credit(2);
        let (taken, ()) = beside(
            &quota,
            |q| q.try_acquire(3).is_some(),
            |q| q.release(permit),
        );
        assert!(taken, "it was full before");
        let left = quota.available();
        assert!(
            left == 0 || left == 2,
            "the release came before or after: {left}"
        );
    });
}

mod twin {
    //! The same, with the mistakes one is tempted to make. Each model must fail.

    use loom::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use super::*;

    /// Returns what a word means that may be below 0.
    fn signed(word: u32) -> i32 {
        i32::from_ne_bytes(word.to_ne_bytes())
    }

    /// What is missing of two tokens, below 0 if more was given back.
    struct Overpaid(AtomicU32);

    impl Overpaid {
        fn empty() -> Arc<Self> {
            Arc::new(Self(AtomicU32::new(2)))
        }

        fn give_back(&self, amount: u32) {
            self.0.fetch_sub(amount, SeqCst);
        }

        /// Takes what was overpaid as if it were there.
        fn take_unclamped(&self, cost: u32) -> bool {
            let fits = |word: u32| Some(word.wrapping_add(cost)).filter(|sum| signed(*sum) <= 2);
            self.0.fetch_update(SeqCst, SeqCst, fits).is_ok()
        }

        /// Clamps, but writes without a look whether that is still so.
        fn take_by_store(&self, cost: u32) -> bool {
            let missing = u32::try_from(signed(self.0.load(SeqCst))).unwrap_or(0);
            let fits = missing + cost <= 2;
            if fits {
                self.0.store(missing + cost, SeqCst);
            }
            fits
        }
    }

    /// Gives two tokens back on each of two threads.
    fn overpay(quota: &Arc<Overpaid>) {
        let shared = Arc::clone(quota);
        let other = thread::spawn(move || shared.give_back(2));
        quota.give_back(2);
        other.join().expect("the other thread returns");
    }

    #[test]
    #[should_panic(expected = "and no more")]
    fn a_take_that_is_not_clamped_grants_what_was_overpaid() {
        model(|| {
            let quota = Overpaid::empty();
            overpay(&quota);
            assert!(quota.take_unclamped(2), "the capacity");
            assert!(!quota.take_unclamped(1), "and no more");
        });
    }

    #[test]
    #[should_panic(expected = "nothing is lost")]
    fn a_take_that_stores_loses_what_is_given_back() {
        model(|| {
            let quota = Arc::new(Overpaid(AtomicU32::new(1)));
            let shared = Arc::clone(&quota);
            let other = thread::spawn(move || shared.give_back(1));
            let taken = quota.take_by_store(1);
            other.join().expect("the other thread returns");
            assert!(taken, "one is there");
            assert_eq!(quota.0.load(SeqCst), 1, "nothing is lost");
        });
    }
}
