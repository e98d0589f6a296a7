//! Throttles that are forgotten, by both laws, and who stands in line meanwhile.

use core::time::Duration;

use paceline::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings};

const SECOND: Duration = Duration::from_secs(1);

fn at(millis: u64) -> Timestamp {
    Timestamp::ZERO.saturating_add(Duration::from_millis(millis))
}

fn record(rate: &SendRate, millis: u64, outcome: Outcome) {
    rate.record(at(millis), SendPermit::sent_at(at(millis)), outcome);
}

/// A limiter that was sent 100 requests in its first second, then throttled.
fn throttled(law: ControlLaw) -> SendRate {
    let rate = SendRate::new(law, Timestamp::ZERO);
    for response in 0..100 {
        record(&rate, response * 10, Outcome::NotThrottled);
    }
    record(&rate, 1_000, Outcome::Throttled);
    rate
}

#[test]
fn a_limiter_that_was_never_throttled_has_nothing_to_forget() {
    for law in [ControlLaw::Aws, ControlLaw::Paced] {
        let rate = SendRate::new(law, Timestamp::ZERO);
        let before = rate.snapshot(at(5));
        rate.forget_throttles(at(5));
        assert_eq!(rate.snapshot(at(5)), before);
        assert!(rate.try_acquire(at(5)).is_ok());
    }
}

#[test]
fn forgotten_throttles_limit_nothing_and_the_next_one_is_the_first() {
    for law in [ControlLaw::Aws, ControlLaw::Paced] {
        let rate = throttled(law);
        let before = rate.snapshot(at(1_000));
        assert!(before.enabled);
        rate.forget_throttles(at(1_000));
        let after = rate.snapshot(at(1_000));
        assert!(!after.enabled);
        assert_eq!(after.last_max_rate.to_bits(), 0.0_f64.to_bits());
        assert_eq!(
            after.measured_rate.to_bits(),
            before.measured_rate.to_bits(),
            "what was measured stays"
        );
        for _ in 0..10_000 {
            assert!(rate.try_acquire(at(1_000)).is_ok());
        }
        rate.forget_throttles(at(1_000));
        assert!(!rate.snapshot(at(1_000)).enabled, "twice is once");
        record(&rate, 1_000, Outcome::Throttled);
        let again = rate.snapshot(at(1_000));
        assert_eq!(again.fill_rate.to_bits(), before.fill_rate.to_bits());
        assert_eq!(
            again.last_max_rate.to_bits(),
            before.last_max_rate.to_bits()
        );
    }
}

#[test]
fn those_in_line_go_and_leave_no_debt() {
    for law in [ControlLaw::Aws, ControlLaw::Paced] {
        let rate = throttled(law);
        while rate.try_acquire(at(1_000)).is_ok() {}
        let mut places: Vec<_> = (0..50).map(|_| rate.reserve(at(1_000))).collect();
        assert_eq!(rate.snapshot(at(1_000)).waiting, 50);
        assert!(
            places
                .iter_mut()
                .all(|place| place.claim(at(1_000)).is_err())
        );
        rate.forget_throttles(at(1_000));
        assert_eq!(rate.snapshot(at(1_000)).waiting, 0);
        assert!(
            places
                .iter_mut()
                .all(|place| place.claim(at(1_000)).is_ok())
        );
        drop(places);
        record(&rate, 1_000, Outcome::Throttled);
        while rate.try_acquire(at(1_000)).is_ok() {}
        let wait = rate.try_acquire(at(1_000)).unwrap_err();
        let token = SECOND.div_f64(rate.snapshot(at(1_000)).fill_rate);
        assert!(
            wait <= token + Duration::from_nanos(1),
            "{wait:?}, {token:?}"
        );
    }
}

#[test]
fn a_pause_is_forgotten_with_the_throttle_that_brought_it() {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    record(&rate, 5, Outcome::ThrottledFor(Duration::from_secs(40)));
    assert!(rate.try_acquire(at(1_000)).is_err());
    rate.forget_throttles(at(1_000));
    assert!(rate.try_acquire(at(1_000)).is_ok());
    record(&rate, 1_100, Outcome::Throttled);
    let rates = [1_100, 20_000].map(|millis| rate.snapshot(at(millis)).fill_rate);
    assert!(rates[1] > rates[0], "time goes on at once: {rates:?}");
}

#[test]
fn a_ceiling_and_an_initial_rate_limit_as_from_the_start() {
    let initial = PacedSettings::builder()
        .initial_rate(20, SECOND)
        .build()
        .unwrap();
    for (settings, start) in [
        (PacedSettings::fixed(20, SECOND).unwrap(), 20.0),
        (initial, 20.0),
    ] {
        let rate = SendRate::paced(settings, Timestamp::ZERO);
        let new = rate.snapshot(at(0)).fill_rate;
        assert!((new / start - 1.0_f64).abs() < 1e-6, "{new}");
        record(&rate, 900, Outcome::ThrottledFor(Duration::from_secs(40)));
        assert!(rate.snapshot(at(1_000)).fill_rate < 0.1);
        rate.forget_throttles(at(1_000));
        let seen = rate.snapshot(at(1_000));
        assert!(seen.enabled);
        assert_eq!(seen.fill_rate.to_bits(), new.to_bits());
        while rate.try_acquire(at(1_000)).is_ok() {}
        let wait = rate.try_acquire(at(1_000)).unwrap_err();
        assert!(wait <= Duration::from_millis(51), "{wait:?}");
    }
}

#[test]
fn waiting_counts_those_in_line_whose_turn_has_not_come() {
    let settings = PacedSettings::fixed(10, SECOND).unwrap();
    let rate = SendRate::paced(settings, Timestamp::ZERO);
    assert_eq!(rate.snapshot(at(0)).waiting, 0);
    while rate.try_acquire(at(0)).is_ok() {}
    let mut places: Vec<_> = (0..5).map(|_| rate.reserve(at(0))).collect();
    for (millis, waiting) in [(0, 5), (99, 5), (101, 4), (301, 2), (501, 0), (900, 0)] {
        assert_eq!(rate.snapshot(at(millis)).waiting, waiting, "at {millis} ms");
    }
    places.pop();
    places.pop();
    assert_eq!(rate.snapshot(at(101)).waiting, 2, "two have given up");
}
