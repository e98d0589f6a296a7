//! Settings of the paced law that are changed under way: what they move, what they leave, and what
//! cannot be changed.

use core::time::Duration;

use paceline::{
    ControlLaw, Outcome, SendPermit, SendRate, Timestamp,
    law::{PacedSettings, PacedSettingsError},
};

const SECOND: Duration = Duration::from_secs(1);

fn at(millis: u64) -> Timestamp {
    Timestamp::ZERO.saturating_add(Duration::from_millis(millis))
}

fn record(rate: &SendRate, millis: u64, outcome: Outcome) {
    rate.record(at(millis), SendPermit::sent_at(at(millis)), outcome);
}

fn assert_close(got: f64, want: f64) {
    assert!((got / want - 1.0).abs() < 1e-6, "got {got}, want {want}");
}

/// A limiter that was throttled at 100/s, a tenth of a second ago.
fn throttled(settings: PacedSettings) -> SendRate {
    let rate = SendRate::paced(settings, Timestamp::ZERO);
    for response in 0..400 {
        record(&rate, response * 10, Outcome::NotThrottled);
    }
    record(&rate, 4_000, Outcome::Throttled);
    rate
}

#[test]
fn a_ceiling_holds_at_once_and_its_end_gives_back_what_was_known() {
    let plain = PacedSettings::new();
    let rate = throttled(plain);
    let before = rate.snapshot(at(4_100));
    rate.set_paced(
        plain.to_builder().ceiling(20, SECOND).build().unwrap(),
        at(4_100),
    )
    .unwrap();
    let during = rate.snapshot(at(4_100));
    assert_close(during.fill_rate, 20.0);
    assert_close(during.last_max_rate, before.last_max_rate);
    while rate.try_acquire(at(4_100)).is_ok() {}
    assert!(rate.try_acquire(at(4_200)).is_ok());
    let wait = rate.try_acquire(at(4_200)).unwrap_err();
    assert!(
        wait <= Duration::from_millis(50) && wait > Duration::from_millis(1),
        "{wait:?}"
    );
    assert_eq!(
        rate.paced_settings(),
        plain.to_builder().ceiling(20, SECOND).build().ok()
    );
    rate.set_paced(plain, at(4_200)).unwrap();
    let again = rate.snapshot(at(4_200));
    let never_changed = throttled(plain).snapshot(at(4_200));
    assert_eq!(again.fill_rate.to_bits(), never_changed.fill_rate.to_bits());
}

#[test]
fn a_floor_and_beta_move_the_rate_of_the_same_cut() {
    let plain = PacedSettings::new();
    let rate = throttled(plain);
    rate.set_paced(
        plain.to_builder().floor(500, SECOND).build().unwrap(),
        at(4_000),
    )
    .unwrap();
    assert_close(rate.snapshot(at(4_000)).fill_rate, 500.0);
    let halved = plain.to_builder().beta_permille(500).build().unwrap();
    rate.set_paced(halved, at(4_000)).unwrap();
    let seen = rate.snapshot(at(4_000));
    assert_close(
        seen.fill_rate,
        throttled(halved).snapshot(at(4_000)).fill_rate,
    );
    assert!(seen.fill_rate < 0.56 * seen.last_max_rate);
}

#[test]
fn a_ceiling_engages_a_limiter_that_limited_nothing_with_an_empty_bucket() {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    assert!(rate.try_acquire(at(7)).is_ok());
    rate.set_paced(PacedSettings::fixed(10, SECOND).unwrap(), at(7))
        .unwrap();
    assert!(rate.snapshot(at(7)).enabled);
    assert_eq!(
        rate.try_acquire(at(7)),
        Err(Duration::from_nanos(100_000_001))
    );
    assert!(rate.try_acquire(at(108)).is_ok());
    // Without one it may end, and does not at once.
    rate.set_paced(PacedSettings::new(), at(108)).unwrap();
    assert!(rate.snapshot(at(108)).enabled);
    for step in 0..60 * 50 {
        if let Ok(permit) = rate.try_acquire(at(108 + 20 * step)) {
            rate.record(at(108 + 20 * step), permit, Outcome::NotThrottled);
        }
    }
    assert!(!rate.snapshot(at(60_000)).enabled);
}

#[test]
fn places_in_line_come_due_by_the_new_rate() {
    let settings = PacedSettings::fixed(10, SECOND).unwrap();
    let rate = SendRate::paced(settings, Timestamp::ZERO);
    while rate.try_acquire(at(0)).is_ok() {}
    let mut place = rate.reserve(at(0));
    assert_eq!(place.claim(at(0)), Err(Duration::from_nanos(100_000_001)));
    let faster = PacedSettings::fixed(100, SECOND).unwrap();
    rate.set_paced(faster, at(50)).unwrap();
    let wait = place.claim(at(50)).unwrap_err();
    assert!(
        wait <= Duration::from_micros(5_001),
        "half a token is left: {wait:?}"
    );
    assert!(place.claim(at(56)).is_ok());
}

#[test]
fn what_a_limiter_was_made_with_cannot_be_changed() {
    let made = PacedSettings::builder()
        .initial_rate(5, SECOND)
        .build()
        .unwrap();
    let rate = SendRate::paced(made, Timestamp::ZERO);
    for (other, setting) in [
        (made.to_builder().burst(SECOND), "burst"),
        (made.to_builder().initial_rate(6, SECOND), "initial rate"),
        (
            PacedSettings::shared().to_builder().initial_rate(5, SECOND),
            "preset",
        ),
    ] {
        let error = rate.set_paced(other.build().unwrap(), at(0)).unwrap_err();
        assert!(
            matches!(error, PacedSettingsError::Unchangeable { setting: s, .. } if s == setting)
        );
        assert_eq!(
            error.to_string(),
            format!("the {setting} of a limiter stays as it was made")
        );
        assert_eq!(rate.paced_settings(), Some(made));
    }
    let published = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    let error = published.set_paced(made, at(0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the law of a limiter stays as it was made"
    );
    assert_eq!(published.paced_settings(), None);
    assert!(!published.snapshot(at(0)).enabled);
}

#[test]
fn a_lower_ceiling_holds_before_anything_is_recorded_or_refused() {
    let rate = SendRate::paced(PacedSettings::fixed(100, SECOND).unwrap(), Timestamp::ZERO);
    while rate.try_acquire(at(0)).is_ok() {}
    rate.set_paced(PacedSettings::fixed(10, SECOND).unwrap(), at(0))
        .unwrap();
    let granted = (0..9).filter(|_| rate.try_acquire(at(101)).is_ok()).count();
    assert_eq!(granted, 1, "what the new rate has minted");
}

/// A version of the gate comes round after 512 changes. The time of the next token must not come
/// back with it.
#[test]
fn a_wait_of_long_ago_does_not_come_back() {
    let fixed = |tokens, per| {
        let builder = PacedSettings::builder();
        let built = builder.floor(tokens, per).ceiling(tokens, per).build();
        built.expect("in range")
    };
    for changes in 1..=520 {
        let rate = SendRate::paced(fixed(1, Duration::from_secs(1_000)), at(0));
        record(&rate, 0, Outcome::NotThrottled);
        assert!(rate.try_acquire(at(0)).is_ok());
        assert!(rate.try_acquire(at(0)).is_err());
        for change in 1..=changes {
            record(&rate, change * 20, Outcome::NotThrottled);
            let per = Duration::from_millis(change + 100);
            assert_eq!(rate.set_paced(fixed(1_000, per), at(change * 20)), Ok(()));
        }
        assert!(
            rate.try_acquire(at(changes * 20 + 1)).is_ok(),
            "{changes} changes"
        );
    }
}
