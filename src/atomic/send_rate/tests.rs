//! The send rate, by one thread: states in which another one may have stopped.

use super::*;
use crate::Outcome;
use crate::Recorded;
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
fn a_throttle_takes_effect_at_the_next_call() {
    let ways: [fn(&SendRate) -> bool; 3] = [
        |rate| rate.try_acquire(at(0)).is_err(),
        |rate| rate.reserve(at(0)).claim(at(0)).is_err(),
        |rate| {
            rate.record(at(0), SendPermit::sent_at(at(0)), Outcome::NotThrottled);
            rate.about_to_limit().line.head().rate() != Rate::ZERO
        },
    ];
    for limits in ways {
        let rate = limiter();
        rate.gate.engage();
        rate.gate.disturb();
        let limited = rate.about_to_limit();
        let last = limited.state.load();
        assert!(
            limited
                .state
                .replace(last, last.next(0, Rate::MAX.to_bits()))
        );
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
        rate.about_to_limit().state.load()
    };
    let pause = record(SECOND, 2 * SECOND);
    assert_eq!(pause.since(), 3 * SECOND);
    assert_eq!(record(2 * SECOND, SECOND - 1), pause);
    assert_eq!(record(2 * SECOND, SECOND), pause);
    assert_eq!(record(2 * SECOND, SECOND + 1).since(), 3 * SECOND + 1);
}

/// A law that the words do not know: it is one file in `law` and one variant of `Controller`.
#[test]
fn a_law_of_one_file_moves_the_rate() {
    let first = Rate::from_ratio(100, SECOND);
    let law = Controller::Aimd(crate::law::aimd::Aimd { first });
    let rate = SendRate::build(law, Timestamp::ZERO);
    let throttle = |now| rate.record(at(now), SendPermit::sent_at(at(now)), Outcome::Throttled);
    let fill = |now| rate.snapshot(at(now)).fill_rate.round();
    assert!(rate.try_acquire(at(0)).is_ok(), "unlimited");
    assert_eq!(throttle(SECOND), Recorded::Cut);
    assert_eq!(fill(SECOND).to_bits(), 100_f64.to_bits());
    let now = 3 * SECOND + SECOND / 2;
    while rate.try_acquire(at(now)).is_ok() {}
    let (_, line) = rate.about_to_limit().read();
    assert_eq!(
        line.rate,
        Rate::from_raw(u128::from(first.raw()) * 102 / 100)
    );
    assert_eq!(throttle(now), Recorded::Cut);
    assert_eq!(fill(now).to_bits(), 51_f64.to_bits());
    let response = rate.record(at(now), SendPermit::sent_at(at(0)), Outcome::NotThrottled);
    assert_eq!(response, Recorded::Counted);
}
