//! The send rate, by one thread: states in which another one may have stopped.

use super::*;
use crate::Outcome;
use crate::fixed::SECOND;

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
            rate.segments.head().rate() != Rate::ZERO
        },
    ];
    for limits in ways {
        let rate = limiter();
        rate.gate.engage();
        let last = rate.throttle.load();
        assert!(rate.throttle.replace(last, last.next(0, Rate::MAX)));
        assert!(limits(&rate));
    }
}
