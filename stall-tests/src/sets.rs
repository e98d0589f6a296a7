//! Stops in a settlement, and in a request of a set.
//!
//! Claim: a thread that stops within either, at any step, keeps no other from taking, settling and
//! giving back, and what it held is all that is lost.

use core::mem::ManuallyDrop;
use core::time::Duration;

use paceline::{SendRate, SendSet, Timestamp, law::PacedSettings};

use crate::hook::{MOST, bounded, stopped_at};
use crate::scene::at;

/// A limiter of 1,000 tokens a second with a bucket of 100, full.
fn limiter() -> SendRate {
    let settings = PacedSettings::fixed(1_000, Duration::from_secs(1))
        .and_then(|fixed| fixed.to_builder().burst(Duration::from_millis(100)).build());
    SendRate::paced(settings.expect("in range"), Timestamp::ZERO)
}

/// Returns how many tokens `rate` has at 0, and takes them.
fn left(rate: &SendRate) -> u32 {
    let mut left = 0;
    for weight in [64, 32, 16, 8, 4, 2, 1] {
        if bounded(MOST, || rate.try_acquire_n(at(0), weight)).is_ok() {
            left += weight;
        }
    }
    left
}

#[test]
fn a_thread_that_stops_within_a_credit_stops_no_other() {
    for step in 0.. {
        let rate = limiter();
        let permit = rate.try_acquire_n(at(0), 60).expect("it is full");
        let charge = rate.charge(permit);
        let stopped = stopped_at(step, || charge.settle(at(0), 10));
        let left = left(&rate);
        assert!(left == 40 || left == 90, "step {step}: {left}");
        let wait = bounded(MOST, || rate.try_acquire_n(at(100), 100));
        assert!(wait.is_ok(), "step {step}: it is full again");
        if stopped.is_some() {
            assert_eq!(left, 90);
            break;
        }
    }
}

#[test]
fn a_thread_that_stops_within_a_debit_stops_no_other() {
    for step in 0.. {
        let rate = limiter();
        let permit = rate.try_acquire_n(at(0), 60).expect("it is full");
        let charge = rate.charge(permit);
        let stopped = stopped_at(step, || charge.settle(at(0), 110));
        // The debit is one step: it has happened or not.
        let wait = bounded(MOST, || rate.try_acquire(at(0)));
        let owed = wait.err().map(|wait| wait.as_nanos().div_euclid(1_000_000));
        assert!(owed.is_none() || owed == Some(11), "step {step}: {owed:?}");
        assert!(bounded(MOST, || rate.try_acquire(at(12))).is_ok());
        if stopped.is_some() {
            assert_eq!(owed, Some(11));
            break;
        }
    }
}

#[test]
fn a_thread_that_stops_within_a_set_loses_what_it_held() {
    for step in 0.. {
        let rates = [limiter(), limiter()];
        let [one, two] = &rates;
        let set = SendSet::new([one, two]);
        let other = SendSet::new([two, one]);
        // The second limit refuses, so that the first is given back.
        let most = two.try_acquire_n(at(0), 70).expect("it is full");
        let stopped = stopped_at(step, || set.try_acquire(at(0), &[50, 50]));
        assert_eq!(most.weight(), 70);
        let (first, second) = (left(one), left(two));
        assert!(first == 50 || first == 100, "step {step}: {first}");
        assert_eq!(second, 30, "step {step}");
        let again = bounded(2 * MOST, || other.try_acquire(at(100), &[100, 100]));
        assert!(again.is_ok(), "step {step}: {again:?}");
        if stopped.is_some() {
            assert_eq!(first, 100, "given back whole");
            break;
        }
    }
}

#[test]
fn a_thread_that_stops_within_its_places_holds_up_no_other_set() {
    for step in 0.. {
        let rates = [limiter(), limiter()];
        let [one, two] = &rates;
        let set = SendSet::new([one, two]);
        let other = SendSet::new([two, one]);
        let stopped = stopped_at(step, || {
            let place = set.reserve(at(0), &[60, 60]);
            let mut place = ManuallyDrop::new(place.expect("in range"));
            place.claim(at(0)).is_ok()
        });
        let mut place = bounded(2 * MOST, || other.reserve(at(0), &[60, 60])).expect("in range");
        let claimed = bounded(2 * MOST, || place.claim(at(0)));
        // Behind both places of the other thread, one of them, or none.
        let wait = claimed.map_or_else(|binding| binding.wait.as_millis(), |_| 0);
        assert!(wait <= 20, "step {step}: {wait}");
        assert!(
            bounded(2 * MOST, || place.claim(at(21))).is_ok(),
            "step {step}"
        );
        if stopped.is_some() {
            assert_eq!(wait, 20);
            break;
        }
    }
}
