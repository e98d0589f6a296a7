//! Pools of two members: a request that leaves at any step loses no token and takes none twice.

use loom::{sync::Arc, thread};
use paceline_core::{
    Class, Limit, SendPool, SendRate, Timestamp,
    law::PacedSettings,
    pool::PoolGuard,
    seam::{Deadline, InLine},
};

use crate::explore;

const NOW: Timestamp = Timestamp::ZERO;
/// A token of each member has been minted by then.
const LATER: Timestamp = Timestamp::from_nanos(25_000_001);

/// A limiter of 40/s whose bucket holds two tokens and is empty.
fn empty() -> SendRate {
    let settings = PacedSettings::fixed(40, core::time::Duration::from_secs(1)).unwrap();
    let rate = SendRate::paced(settings, NOW);
    while rate.try_acquire(NOW).is_ok() {}
    rate
}

/// Returns how many tokens the members have left, and takes them.
fn left(rates: &[Arc<SendRate>; 2]) -> usize {
    let left = |rate: &Arc<SendRate>| (0..4).filter(|_| rate.try_acquire(LATER).is_ok()).count();
    rates.iter().map(left).sum()
}

type Place = PoolGuard<Arc<SendRate>, 2>;

/// Takes a place in both lines.
fn reserve(rates: &[Arc<SendRate>; 2]) -> Place {
    let pool = SendPool::new(rates.clone()).unwrap();
    let held = pool.hold(1, Class::Foreground, Deadline::Never, || NOW);
    held.unwrap().0
}

/// Claims the turn of the first request beside another one behind it, which does `next` and leaves.
/// Whatever the other took and gave back, there is a token for each that claimed.
fn beside(bound: usize, next: fn(&mut Place) -> bool) {
    explore(Some(bound), move || {
        let rates = [Arc::new(empty()), Arc::new(empty())];
        let mut first = reserve(&rates);
        let mut second = reserve(&rates);
        let other = thread::spawn(move || next(&mut second));
        assert!(first.claim_with(|| LATER).is_ok(), "it is the first");
        let there = other.join().unwrap();
        assert_eq!(
            left(&rates),
            1 - usize::from(there),
            "tokens are lost, or taken twice"
        );
    });
}

#[test]
fn a_pool_place_that_leaves_unclaimed_goes_back() {
    beside(2, |_| false);
}

#[test]
fn a_pool_place_that_leaves_after_a_look_goes_back() {
    beside(1, |place| place.claim_with(|| NOW).is_ok());
}

/// Its turn comes in the line that the first request gives back, before it looks or after.
#[test]
#[ignore = "takes over 15 seconds: `ci/check.sh models` runs it"]
fn a_pool_place_that_claims_takes_a_token_or_goes_back() {
    beside(1, |place| place.claim_with(|| LATER).is_ok());
}

#[test]
fn a_pool_place_that_comes_beside_a_claim_gets_the_other_token() {
    explore(Some(1), || {
        let rates = [Arc::new(empty()), Arc::new(empty())];
        let mut first = reserve(&rates);
        let other = {
            let rates = rates.clone();
            thread::spawn(move || reserve(&rates))
        };
        assert!(first.claim_with(|| LATER).is_ok(), "it is the first");
        let mut second = other.join().unwrap();
        assert!(second.claim_with(|| LATER).is_ok(), "its turn has come");
        assert_eq!(left(&rates), 0);
    });
}

/// A request that takes now, beside one in line that gives its second place back.
#[test]
fn a_take_beside_a_pool_place_gets_no_token_of_it() {
    explore(Some(2), || {
        let rates = [Arc::new(empty()), Arc::new(empty())];
        let mut first = reserve(&rates);
        let other = {
            let pool = SendPool::new(rates.clone()).unwrap();
            thread::spawn(move || pool.try_acquire(LATER, 1).is_ok())
        };
        assert!(
            first.claim_with(|| LATER).is_ok(),
            "it is the first in both lines"
        );
        let there = other.join().unwrap();
        assert_eq!(left(&rates), 1 - usize::from(there));
    });
}

/// The places that are not claimed must go back: a request that forgets them loses their tokens.
#[test]
#[should_panic(expected = "a token is lost")]
fn a_request_that_forgets_its_other_place_loses_a_token() {
    explore(Some(1), || {
        let rates = [Arc::new(empty()), Arc::new(empty())];
        let other = {
            let rates = rates.clone();
            thread::spawn(move || {
                let [mut one, two] = [rates[0].reserve(NOW), rates[1].reserve(NOW)];
                core::mem::forget(two);
                one.claim(LATER).is_ok()
            })
        };
        let here = rates[1].try_acquire(LATER).is_ok();
        let taken = usize::from(here) + usize::from(other.join().unwrap());
        assert_eq!(left(&rates), 2 - taken, "a token is lost");
    });
}
