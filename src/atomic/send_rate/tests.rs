//! The send rate, by one thread: states in which another one may have stopped.

use super::*;
use crate::Outcome;
use crate::fixed::{Rate, SECOND};

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn limiter() -> SendRate {
    SendRate::new(ControlLaw::Aws, Timestamp::ZERO)
}

#[test]
fn a_gate_that_was_engaged_for_a_throttle_that_never_came_limits_nothing() {
    let rate = limiter();
    rate.gate.engage();
    for now in [0, 1, SECOND] {
        assert!(rate.try_acquire(at(now)).is_ok());
        assert!(rate.reserve(at(now)).claim(at(now)).is_ok());
        rate.record(at(now), SendPermit::sent_at(at(now)), Outcome::NotThrottled);
    }
    assert!(!rate.snapshot(at(SECOND)).enabled);
}

#[test]
fn a_throttle_that_has_yet_to_take_effect_does_once_somebody_asks() {
    let ways: [fn(&SendRate) -> bool; 3] = [
        |rate| rate.try_acquire(at(0)).is_err(),
        |rate| rate.reserve(at(0)).claim(at(0)).is_err(),
        |rate| {
            rate.record(at(0), SendPermit::sent_at(at(0)), Outcome::NotThrottled);
            rate.about_to_limit().segments.head().rate() != Rate::ZERO
        },
    ];
    for limits in ways {
        let rate = limiter();
        rate.gate.engage();
        let limited = rate.about_to_limit();
        let last = limited.throttle.load();
        assert!(limited.throttle.replace(last, last.next(0, Rate::MAX)));
        assert!(limits(&rate));
    }
}

#[test]
fn a_hint_that_ends_no_later_than_the_pause_changes_nothing() {
    let settings = PacedSettings::fixed(10, Duration::from_secs(1)).expect("in range");
    let rate = SendRate::paced(settings, Timestamp::ZERO);
    let permit = SendPermit::sent_at(at(SECOND >> 1));
    let record = |now, hint| {
        let hint = Duration::from_nanos(hint);
        rate.record(at(now), permit, Outcome::ThrottledFor(hint));
        rate.about_to_limit().throttle.load()
    };
    let pause = record(SECOND, 2 * SECOND);
    assert_eq!(pause.since(), 3 * SECOND);
    assert_eq!(record(2 * SECOND, SECOND - 1), pause);
    assert_eq!(record(2 * SECOND, SECOND), pause);
    assert_eq!(record(2 * SECOND, SECOND + 1).since(), 3 * SECOND + 1);
}
