//! Every setting at both ends of its range, and beyond.

use alloc::string::ToString;

use super::*;

const ONE_SECOND: Duration = Duration::from_secs(1);
const THOUSAND_SECONDS: Duration = Duration::from_secs(1_000);
const NANOSECOND: Duration = Duration::from_nanos(1);

type Setter = fn(PacedSettings, u32, Duration) -> Result<PacedSettings, PacedSettingsError>;

/// The setters of a rate, with the name that an error gives them.
const RATES: [(&str, Setter); 4] = [
    ("floor", PacedSettings::floor),
    ("ceiling", PacedSettings::ceiling),
    ("initial rate", PacedSettings::initial_rate),
    ("fixed rate", |_, tokens, per| {
        PacedSettings::fixed(tokens, per)
    }),
];

/// Settings with the lowest floor there is, so that any rate is in order.
fn lowest() -> PacedSettings {
    PacedSettings::new()
        .floor(1, THOUSAND_SECONDS)
        .expect("in range")
}

#[test]
fn the_defaults_are_those_of_the_table() {
    let settings = PacedSettings::default();
    assert_eq!(settings, PacedSettings::new());
    assert_eq!(settings.lowest(), Rate::from_ratio(1, 2 * SECOND));
    assert_eq!(settings.start(), None);
    assert!(settings.may_end());
    assert_eq!(settings.beta(), (9 << 32) / 10);
    assert_eq!(settings.burst_nanos(), 50_000_000);
    assert_eq!(settings.within(Rate::ZERO), settings.lowest());
    assert_eq!(settings.within(Rate::MAX), Rate::MAX);
}

#[test]
fn every_rate_is_between_one_in_a_thousand_seconds_and_one_in_a_nanosecond() {
    let over = THOUSAND_SECONDS + NANOSECOND;
    for (name, set) in RATES {
        for (tokens, per) in [
            (1, THOUSAND_SECONDS),
            (7, THOUSAND_SECONDS * 7),
            (1, NANOSECOND),
            (u32::MAX, NANOSECOND * u32::MAX),
            (18_446_744, THOUSAND_SECONDS * 18_446_744), // all of 64 bits
        ] {
            assert!(
                set(lowest(), tokens, per).is_ok(),
                "{name}: {tokens} in {per:?}"
            );
        }
        for (tokens, per) in [
            (0, ONE_SECOND),
            (0, Duration::ZERO),
            (1, Duration::ZERO),
            (1, over),
            (2, NANOSECOND),
            (u32::MAX, NANOSECOND * (u32::MAX - 1)),
            (7, THOUSAND_SECONDS * 7 + NANOSECOND),
            (u32::MAX, THOUSAND_SECONDS * u32::MAX),
            (1, Duration::MAX),
        ] {
            let setting = name;
            let error = PacedSettingsError::Rate {
                setting,
                tokens,
                per,
            };
            assert_eq!(set(lowest(), tokens, per), Err(error));
        }
    }
}

#[test]
fn each_setter_sets_what_it_names() {
    let ten = Rate::from_ratio(10, SECOND);
    let new = PacedSettings::new();
    let floor = new.floor(10, ONE_SECOND).expect("a floor");
    assert_eq!((floor.lowest(), floor.start()), (ten, None));
    assert_eq!(floor.within(Rate::ZERO), ten);
    assert!(floor.may_end());
    let ceiling = new.ceiling(10, ONE_SECOND).expect("a ceiling");
    assert_eq!(
        (ceiling.lowest(), ceiling.start()),
        (new.lowest(), Some(ten))
    );
    assert_eq!(ceiling.within(Rate::MAX), ten);
    assert!(!ceiling.may_end());
    let initial = new.initial_rate(10, ONE_SECOND).expect("an initial rate");
    assert_eq!(
        (initial.lowest(), initial.start()),
        (new.lowest(), Some(ten))
    );
    assert_eq!(initial.within(Rate::MAX), Rate::MAX);
    assert!(initial.may_end());
    let both = ceiling.initial_rate(5, ONE_SECOND).expect("in order");
    assert_eq!(both.start(), Some(Rate::from_ratio(5, SECOND)));
    assert_eq!(both.within(Rate::MAX), ten);
    let fixed = PacedSettings::fixed(10, ONE_SECOND).expect("in range");
    assert_eq!((fixed.lowest(), fixed.start()), (ten, Some(ten)));
    assert_eq!(fixed.within(Rate::MAX), ten);
    assert!(!fixed.may_end());
    assert_eq!(
        (fixed.beta(), fixed.burst_nanos()),
        (new.beta(), new.burst_nanos())
    );
}

#[test]
fn floor_initial_rate_and_ceiling_are_in_order_and_may_be_equal() {
    let out_of = |setting| Err(PacedSettingsError::Order { setting });
    let new = PacedSettings::new();
    let ceiling = new.ceiling(10, ONE_SECOND).expect("a ceiling");
    let initial = new.initial_rate(10, ONE_SECOND).expect("an initial rate");
    let floor = new.floor(10, ONE_SECOND).expect("a floor");
    assert!(ceiling.floor(10, ONE_SECOND).is_ok());
    assert!(ceiling.initial_rate(10, ONE_SECOND).is_ok());
    assert!(initial.floor(10, ONE_SECOND).is_ok());
    assert!(initial.ceiling(10, ONE_SECOND).is_ok());
    assert!(floor.ceiling(10, ONE_SECOND).is_ok());
    assert!(floor.initial_rate(10, ONE_SECOND).is_ok());
    assert_eq!(ceiling.floor(11, ONE_SECOND), out_of("floor"));
    assert_eq!(initial.floor(11, ONE_SECOND), out_of("floor"));
    assert_eq!(floor.ceiling(9, ONE_SECOND), out_of("ceiling"));
    assert_eq!(initial.ceiling(9, ONE_SECOND), out_of("ceiling"));
    assert_eq!(floor.initial_rate(9, ONE_SECOND), out_of("initial rate"));
    assert_eq!(ceiling.initial_rate(11, ONE_SECOND), out_of("initial rate"));
}

#[test]
fn beta_is_between_500_and_990_thousandths() {
    let new = PacedSettings::new();
    for (permille, beta) in [
        (500, 1 << 31),
        (900, (9 << 32) / 10),
        (990, (99 << 32) / 100),
    ] {
        let settings = new.beta_permille(permille).expect("in range");
        assert_eq!(settings.beta(), beta);
    }
    for permille in [0, 499, 991, 1_000, u16::MAX] {
        let error = PacedSettingsError::Beta { permille };
        assert_eq!(new.beta_permille(permille), Err(error));
    }
}

#[test]
fn a_burst_is_at_most_ten_seconds() {
    let new = PacedSettings::new();
    for nanos in [0, 1, 10 * SECOND] {
        let settings = new.burst(Duration::from_nanos(nanos)).expect("in range");
        assert_eq!(settings.burst_nanos(), nanos);
    }
    for length in [Duration::from_secs(10) + NANOSECOND, Duration::MAX] {
        assert_eq!(new.burst(length), Err(PacedSettingsError::Burst { length }));
    }
}

#[test]
fn a_refused_setting_changes_nothing_and_an_accepted_one_nothing_else() {
    let settings = PacedSettings::new()
        .ceiling(10, ONE_SECOND)
        .expect("a ceiling");
    let kept = settings;
    for (_, set) in &RATES[..3] {
        assert!(set(settings, 0, ONE_SECOND).is_err());
    }
    assert!(settings.floor(11, ONE_SECOND).is_err());
    assert!(settings.beta_permille(1).is_err());
    assert!(settings.burst(Duration::MAX).is_err());
    assert_eq!(settings, kept);
    let all = kept
        .burst(ONE_SECOND)
        .and_then(|settings| settings.beta_permille(800))
        .and_then(|settings| settings.floor(1, ONE_SECOND))
        .and_then(|settings| settings.initial_rate(2, ONE_SECOND))
        .expect("in range");
    assert_eq!(all.burst_nanos(), SECOND);
    assert_eq!(all.beta(), (8 << 32) / 10);
    assert_eq!(all.lowest(), Rate::from_ratio(1, SECOND));
    assert_eq!(all.start(), Some(Rate::from_ratio(2, SECOND)));
    assert_eq!(all.within(Rate::MAX), kept.within(Rate::MAX));
}

#[test]
fn an_error_names_what_was_given() {
    let new = PacedSettings::new();
    let floor = new.floor(7, Duration::from_secs(8_000));
    let message = floor.expect_err("too slow").to_string();
    assert_eq!(
        message,
        "the floor of 7 tokens in 8000s is not between one in 1000 s and one in 1 ns"
    );
    let initial = new.initial_rate(1, Duration::from_secs(3));
    let message = initial.expect_err("under the floor").to_string();
    assert_eq!(
        message,
        "with this initial rate the floor, the initial rate and the ceiling are out of order"
    );
    let message = new.beta_permille(42).expect_err("too low").to_string();
    assert_eq!(message, "a beta of 42/1000 is not between 500 and 990");
    let burst = new.burst(Duration::from_secs(11));
    let message = burst.expect_err("too long").to_string();
    assert_eq!(message, "a burst of 11s is longer than 10 s");
}
