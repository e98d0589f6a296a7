//! Stops in a report of a declared limit.
//!
//! Claim: a thread that stops within a report, at any step, keeps no other from reporting, and what
//! others find is the limit of before or that of a whole report.

use core::time::Duration;

use paceline_core::{
    ControlLaw, Outcome, SendPermit, SendRate, Timestamp,
    law::{LimitReport, LimitReports, Observed, Reset},
};

use crate::hook::{bounded, stopped_within};
use crate::scene::at;

/// The most steps of a report that meets no other thread: each limit has 35 words.
const MOST: u64 = 1_500;

fn report(remaining: u64) -> LimitReports {
    let reset = Reset::In(Duration::from_secs(60));
    LimitReport::new(remaining).limit(100).reset(reset).into()
}

fn limiter() -> (SendRate, SendPermit, SendPermit) {
    let rate = SendRate::new(ControlLaw::Declared, Timestamp::ZERO);
    let first = rate.try_acquire(at(0)).expect("the first one goes");
    rate.observe(at(100), first, &report(90));
    let second = rate.try_acquire(at(5_000)).expect("its turn");
    let third = rate.try_acquire(at(10_000)).expect("its turn");
    (rate, second, third)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "thousandths of at most a hundred"
)]
fn left(rate: &SendRate, now: u64) -> u64 {
    let declared = bounded(MOST, || rate.snapshot(at(now))).declared;
    let left = declared.expect("a limit is declared").remaining;
    (left * 1_000.0).round() as u64
}

#[test]
fn a_thread_that_stops_within_a_report_stops_no_other() {
    for step in 0.. {
        let (rate, second, third) = limiter();
        let stopped = stopped_within(MOST, step, || rate.observe(at(10_100), second, &report(50)));
        // Before: 90 less the two sent since. After: 50 less the one sent since, less what others
        // are seen to take in a moment.
        let now = left(&rate, 10_101);
        assert!(
            now == 88_000 || (30_000..=49_000).contains(&now),
            "step {step}: {now}"
        );
        let observed = bounded(MOST, || rate.observe(at(10_200), third, &report(40)));
        assert_eq!(observed, Observed::Taken, "step {step}");
        assert!(left(&rate, 10_200) <= 40_000, "step {step}");
        assert!(
            bounded(MOST, || rate.try_acquire(at(40_000))).is_ok(),
            "step {step}"
        );
        if stopped.is_some() {
            assert!(step > 60, "a report has many steps: {step}");
            break;
        }
    }
}

#[test]
fn a_thread_that_stops_within_a_throttle_stops_no_other() {
    for step in 0.. {
        let (rate, second, third) = limiter();
        let hint = Outcome::ThrottledFor(Duration::from_secs(3));
        let stopped = stopped_within(MOST, step, || rate.record(at(10_100), second, hint));
        let observed = bounded(MOST, || rate.observe(at(10_200), third, &report(40)));
        assert_eq!(observed, Observed::Taken, "step {step}");
        bounded(MOST, || {
            rate.record(at(10_200), third, Outcome::NotThrottled)
        });
        assert!(
            bounded(MOST, || rate.try_acquire(at(60_000))).is_ok(),
            "step {step}"
        );
        if stopped.is_some() {
            break;
        }
    }
}
