//! Threads stopped while they have a lease, take one or give one back: what they had taken is lost
//! at most, and nothing is granted twice.

use core::time::Duration;
use std::thread;

use paceline_core::law::PacedSettings;
use paceline_core::{Outcome, SendPermit, SendRate};

use crate::hook::{MOST, bounded, stopped_at};
use crate::scene::at;

/// When everything happens, in milliseconds.
const NOW: u64 = 10_000;
/// What the bucket holds: a millisecond's worth.
const HELD: u32 = 1_000;
/// The most tokens of a lease here.
const LEASE: u32 = 8;

fn full() -> SendRate {
    let settings = PacedSettings::fixed(1_000_000, Duration::from_secs(1)).expect("in range");
    let settings = settings.to_builder().burst(Duration::from_millis(1));
    SendRate::paced(settings.build().expect("in range"), at(0))
}

fn take(rate: &SendRate, now: u64, most: u32) -> u32 {
    let takes = 0..most;
    let granted = takes.filter(|_| bounded(MOST, || rate.try_acquire(at(now))).is_ok());
    u32::try_from(granted.count()).expect("few")
}

const TOO_LATE: &str = "is too late for its lease";

type Call = fn(&SendRate) -> bool;

/// What a thread does after so many tokens, some of which it has as a lease.
const CALLS: &[(&str, u32, Call)] = &[
    ("takes a lease", 3, |rate| rate.try_acquire(at(NOW)).is_ok()),
    ("spends", 4, |rate| rate.try_acquire(at(NOW)).is_ok()),
    ("gives back", 4, |rate| {
        drop(rate.reserve(at(NOW)));
        false
    }),
    (TOO_LATE, 4, |rate| rate.try_acquire(at(NOW + 1)).is_ok()),
    ("changes the settings", 4, |rate| {
        let same = rate.paced_settings().expect("it has settings");
        rate.set_paced(same, at(NOW)).expect("the same");
        false
    }),
];

/// Wherever a thread stops, others are granted what it has not taken, each in a bounded number of
/// steps, and what a full bucket holds once it is full again.
#[test]
fn a_thread_stopped_with_a_lease_loses_it_and_stops_no_other() {
    for (name, before, call) in CALLS {
        let stopped = (0..=2 * MOST).find(|step| {
            let rate = full();
            let (granted, finished) = thread::scope(|scope| {
                let thread = scope.spawn(|| {
                    let granted = take(&rate, NOW, *before);
                    let result = stopped_at(*step, || call(&rate));
                    (granted + u32::from(result == Some(true)), result.is_some())
                });
                thread.join().expect("it is stopped quietly")
            });
            // By the clock of the call: a millisecond fills the bucket again.
            let late = u32::from(*name == TOO_LATE);
            let all = granted + take(&rate, NOW + u64::from(late), 2 * HELD);
            assert!(all <= HELD + late * before, "{name}, {step}: {all}");
            // Besides the lease, a token of the call that was stopped may be lost.
            assert!(all >= HELD - 2 * LEASE, "{name}, {step}: {all}");
            let hint = Outcome::ThrottledFor(Duration::from_millis(1));
            bounded(2 * MOST, || {
                rate.record(at(NOW + 10), SendPermit::sent_at(at(NOW + 10)), hint)
            });
            assert_eq!(take(&rate, NOW + 10, HELD), 0, "{name}, {step}: in a pause");
            assert_eq!(take(&rate, NOW + 50, 2 * HELD), HELD, "{name}, {step}");
            finished
        });
        let steps = stopped.expect("the call finishes");
        assert!(steps > 0, "{name}: no step");
        println!("{name}: {steps} steps");
    }
}
