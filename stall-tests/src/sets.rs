//! Stops in a settlement, and in a request of a set.
//!
//! Claim: a thread that stops within either, at any step, keeps no other from taking, settling and
//! giving back, and what it held is all that is lost.

use core::mem::ManuallyDrop;
use core::time::Duration;

use paceline_core::{
    ControlLaw, SendPermit, SendRate, SendSet, Timestamp,
    law::{LimitReport, LimitReports, PacedSettings, Reset},
};

use crate::hook::{MOST, bounded, stopped_at, stopped_within};
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
        let stopped = stopped_at(step, || rate.settle(at(0), permit, 10));
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
        let stopped = stopped_at(step, || rate.settle(at(0), permit, 110));
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

fn report(remaining: u64) -> LimitReports {
    let reset = Reset::In(Duration::from_secs(60));
    LimitReport::new(remaining).limit(100).reset(reset).into()
}

/// A limiter of which 90 of 100 are left after a first request, and the permit of one sent since.
fn declared() -> (SendRate, SendPermit) {
    let rate = SendRate::new(ControlLaw::Declared, Timestamp::ZERO);
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    rate.observe(at(100), first, &report(90));
    let second = rate.try_acquire(at(5_000)).expect("its turn");
    (rate, second)
}

fn remaining(rate: &SendRate, now: u64) -> String {
    let declared = bounded(DECLARED, || rate.snapshot(at(now))).declared;
    format!("{:.0}", declared.expect("a limit is declared").remaining)
}

/// The most steps where a limit is declared: it has 25 words.
const DECLARED: u64 = 1_500;

#[test]
fn a_thread_that_stops_within_a_declared_settlement_stops_no_other() {
    for step in 0.. {
        let (rate, second) = declared();
        let stopped = stopped_within(DECLARED, step, || rate.settle(at(5_100), second, 21));
        // Whole or not at all, and others go on: they take, settle and report.
        let now = remaining(&rate, 5_100);
        assert!(now == "89" || now == "69", "step {step}: {now}");
        let third = bounded(DECLARED, || rate.try_acquire(at(10_000))).expect("its turn");
        let settled = bounded(DECLARED, || rate.settle(at(10_000), third, 11));
        settled.expect("there is room");
        let left = remaining(&rate, 10_000);
        let want = if now == "89" { "78" } else { "58" };
        assert_eq!(left, want, "step {step}");
        bounded(DECLARED, || rate.observe(at(10_100), third, &report(40)));
        // The debit of ten counts twice until a later send is reported.
        assert_eq!(remaining(&rate, 10_100), "30", "step {step}");
        if stopped.is_some() {
            assert!(step > 60, "it has many steps: {step}");
            assert_eq!(now, "69");
            break;
        }
    }
}

/// What is given back goes to what is left and to the bucket: a stop in between leaves the bucket
/// without it.
#[test]
fn a_thread_that_stops_within_a_declared_set_loses_what_it_held() {
    for step in 0.. {
        let (rate, _) = declared();
        let empty = limiter();
        let taken = empty.try_acquire_n(at(10_000), 100);
        assert!(taken.is_ok(), "it is full");
        let set = SendSet::new([&rate, &empty]);
        let stopped = stopped_within(DECLARED, step, || set.try_acquire(at(10_000), &[1, 1]));
        let now = remaining(&rate, 10_000);
        assert!(now == "89" || now == "88", "step {step}: {now}");
        let again = bounded(DECLARED, || rate.try_acquire(at(10_000)));
        let later = bounded(DECLARED, || rate.try_acquire(at(12_000)));
        assert!(again.is_ok() || later.is_ok(), "step {step}");
        if stopped.is_some() {
            assert_eq!(
                (now.as_str(), again.is_ok()),
                ("89", true),
                "given back whole"
            );
            break;
        }
    }
}
