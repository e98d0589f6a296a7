//! Every setting at both ends of its range, and beyond.

use alloc::string::ToString;

use super::*;

const ONE_SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);
const NANOSECOND: Duration = Duration::from_nanos(1);

type Setter = fn(PacedSettingsBuilder, u32, Duration) -> PacedSettingsBuilder;

/// The setters of a rate, with the name that an error gives them.
const RATES: [(&str, Setter); 4] = [
    ("floor", PacedSettingsBuilder::floor),
    ("ceiling", PacedSettingsBuilder::ceiling),
    ("initial rate", PacedSettingsBuilder::initial_rate),
    ("longest slope", PacedSettingsBuilder::max_slope),
];

/// Settings with the lowest possible floor, so that any rate is in order.
fn lowest() -> PacedSettingsBuilder {
    PacedSettings::builder().floor(1, DAY)
}

#[test]
fn the_defaults_are_those_of_the_table() {
    let settings = PacedSettings::new();
    assert_eq!(settings.lowest(), Rate::from_ratio(1, 86_400 * SECOND));
    assert_eq!(settings.start(), None);
    assert!(settings.may_end());
    assert_eq!(settings.beta(), (9 << 32) / 10);
    assert_eq!(settings.burst_nanos(), 50_000_000);
    assert_eq!(settings.within(Rate::ZERO), settings.lowest());
    assert_eq!(settings.within(Rate::MAX), Rate::MAX);
}

#[test]
fn every_rate_is_between_one_a_day_and_one_in_a_nanosecond() {
    let over = DAY + NANOSECOND;
    for (name, set) in RATES {
        for (tokens, per) in [
            (1, DAY),
            (7, DAY * 7),
            (1, NANOSECOND),
            (u32::MAX, NANOSECOND * u32::MAX),
            (213_503, DAY * 213_503), // all of 64 bits
        ] {
            assert!(
                set(lowest(), tokens, per).build().is_ok(),
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
            (7, DAY * 7 + NANOSECOND),
            (u32::MAX, DAY * u32::MAX),
            (1, Duration::MAX),
        ] {
            let setting = name;
            let error = PacedSettingsError::Rate {
                setting,
                tokens,
                per,
            };
            assert_eq!(set(lowest(), tokens, per).build(), Err(error));
            let setting = "fixed rate";
            let error = PacedSettingsError::Rate {
                setting,
                tokens,
                per,
            };
            assert_eq!(PacedSettings::fixed(tokens, per), Err(error));
        }
    }
}

#[test]
fn each_setter_sets_what_it_names() {
    let ten = Rate::from_ratio(10, SECOND);
    let new = PacedSettings::new();
    let built = |builder: PacedSettingsBuilder| builder.build().expect("in range");
    let floor = built(PacedSettings::builder().floor(10, ONE_SECOND));
    assert_eq!((floor.lowest(), floor.start()), (ten, None));
    assert_eq!(floor.within(Rate::ZERO), ten);
    assert!(floor.may_end());
    let ceiling = built(PacedSettings::builder().ceiling(10, ONE_SECOND));
    assert_eq!(
        (ceiling.lowest(), ceiling.start()),
        (new.lowest(), Some(ten))
    );
    assert_eq!(ceiling.within(Rate::MAX), ten);
    assert!(!ceiling.may_end());
    let initial = built(PacedSettings::builder().initial_rate(10, ONE_SECOND));
    assert_eq!(
        (initial.lowest(), initial.start()),
        (new.lowest(), Some(ten))
    );
    assert_eq!(initial.within(Rate::MAX), Rate::MAX);
    assert!(initial.may_end());
    let both = built(ceiling.to_builder().initial_rate(5, ONE_SECOND));
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
    let build = |floor, initial, ceiling| {
        // The order of the setters does not matter.
        PacedSettings::builder()
            .ceiling(ceiling, ONE_SECOND)
            .floor(floor, ONE_SECOND)
            .initial_rate(initial, ONE_SECOND)
            .build()
    };
    let order = |above, below| Err(PacedSettingsError::Order { above, below });
    assert!(build(10, 10, 10).is_ok() && build(9, 10, 11).is_ok());
    assert_eq!(build(11, 10, 12), order("floor", "initial rate"));
    assert_eq!(build(9, 12, 11), order("initial rate", "ceiling"));
    assert_eq!(build(12, 11, 10), order("floor", "initial rate"));
    let none = PacedSettings::builder().floor(11, ONE_SECOND);
    assert_eq!(
        none.ceiling(10, ONE_SECOND).build(),
        order("floor", "ceiling")
    );
    assert!(none.ceiling(11, ONE_SECOND).build().is_ok());
}

#[test]
fn beta_is_between_500_and_990_thousandths() {
    for (permille, beta) in [
        (500, 1 << 31),
        (900, (9 << 32) / 10),
        (990, (99 << 32) / 100),
    ] {
        let settings = PacedSettings::builder().beta_permille(permille).build();
        assert_eq!(settings.expect("in range").beta(), beta);
    }
    for permille in [0, 499, 991, 1_000, u16::MAX] {
        let error = PacedSettingsError::Beta { permille };
        let settings = PacedSettings::builder().beta_permille(permille).build();
        assert_eq!(settings, Err(error));
    }
}

#[test]
fn a_burst_is_at_most_ten_seconds() {
    for nanos in [0, 1, 10 * SECOND] {
        let settings = PacedSettings::builder()
            .burst(Duration::from_nanos(nanos))
            .build();
        assert_eq!(settings.expect("in range").burst_nanos(), nanos);
    }
    for length in [Duration::from_secs(10) + NANOSECOND, Duration::MAX] {
        let settings = PacedSettings::builder().burst(length).build();
        assert_eq!(settings, Err(PacedSettingsError::Burst { length }));
    }
}

#[test]
fn a_builder_reports_the_first_error_and_changes_nothing_else() {
    let wrong = PacedSettings::builder()
        .ceiling(10, ONE_SECOND)
        .beta_permille(1)
        .burst(Duration::MAX)
        .floor(11, ONE_SECOND)
        .build();
    assert_eq!(wrong, Err(PacedSettingsError::Beta { permille: 1 }));
    let kept = PacedSettings::shared()
        .to_builder()
        .ceiling(10, ONE_SECOND)
        .build()
        .expect("in range");
    let all = kept
        .to_builder()
        .burst(ONE_SECOND)
        .beta_permille(800)
        .floor(1, ONE_SECOND)
        .initial_rate(2, ONE_SECOND)
        .build()
        .expect("in range");
    assert_eq!(all.burst_nanos(), SECOND);
    assert_eq!(all.beta(), (8 << 32) / 10);
    assert_eq!(all.lowest(), Rate::from_ratio(1, SECOND));
    assert_eq!(all.start(), Some(Rate::from_ratio(2, SECOND)));
    assert_eq!(all.within(Rate::MAX), kept.within(Rate::MAX));
    assert_eq!(all.profile(), Profile::Shared);
    assert_eq!(all.to_builder().build(), Ok(all));
}

#[test]
fn an_initial_rate_follows_the_limits_that_are_set_later() {
    let build = |builder: PacedSettingsBuilder| builder.build().expect("in range");
    let made = build(PacedSettings::builder().initial_rate(1_000, ONE_SECOND));
    let lower = PacedSettings::builder().ceiling(500, ONE_SECOND);
    for settings in [lower, lower.initial_rate(500, ONE_SECOND)] {
        let settings = build(settings);
        assert_eq!(settings.starts_like(&made), Ok(()));
        let tuned = made.with_tunable_bits(settings.tunable_bits());
        assert_eq!(tuned.start(), settings.highest());
        assert_eq!(tuned.to_builder().build(), Ok(tuned));
    }
    let other = build(lower.initial_rate(400, ONE_SECOND));
    let setting = "initial rate";
    let refused = Err(PacedSettingsError::Unchangeable { setting });
    assert_eq!(other.starts_like(&made), refused);
    let without = PacedSettings::new();
    assert_eq!(made.starts_like(&without), refused);
}

#[test]
fn an_error_names_what_was_given() {
    let error = |builder: PacedSettingsBuilder| builder.build().expect_err("wrong").to_string();
    assert_eq!(
        error(PacedSettings::builder().floor(7, Duration::from_secs(700_000))),
        "the floor of 7 tokens in 700000s is not between one a day and one in 1 ns"
    );
    assert_eq!(
        error(
            PacedSettings::builder()
                .floor(1, ONE_SECOND)
                .initial_rate(1, Duration::from_secs(3))
        ),
        "the floor is above the initial rate"
    );
    assert_eq!(
        error(PacedSettings::builder().beta_permille(42)),
        "a beta of 42/1000 is not between 500 and 990"
    );
    assert_eq!(
        error(PacedSettings::builder().burst(Duration::from_secs(11))),
        "a burst of 11s is longer than 10 s"
    );
}

#[test]
fn settings_are_shown_in_rates_and_times() {
    let shown = |settings: PacedSettings| alloc::format!("{settings:?}");
    assert_eq!(
        shown(PacedSettings::new()),
        "PacedSettings { preset: Usual, floor: 1 in 86400 s, beta_permille: 900, burst: 50ms, .. }"
    );
    let settings = PacedSettings::exclusive()
        .to_builder()
        .floor(1, DAY)
        .initial_rate(5, Duration::from_secs(4))
        .max_slope(2, ONE_SECOND)
        .ceiling(1, NANOSECOND);
    assert_eq!(
        shown(settings.build().expect("in range")),
        "PacedSettings { preset: Exclusive, floor: 1 in 86400 s, ceiling: 1000000000/s, \
         initial_rate: 1.25/s, max_slope: 2/s, beta_permille: 900, burst: 50ms, .. }"
    );
    let slow = PacedSettings::builder().slow_start(true).build();
    assert_eq!(
        shown(slow.expect("in range")),
        "PacedSettings { preset: Usual, floor: 1 in 86400 s, slow_start: true, beta_permille: 900, \
         burst: 50ms, .. }"
    );
}

#[test]
fn a_slow_start_begins_at_ten_a_second_or_the_initial_rate_within_the_limits() {
    let begins = |builder: PacedSettingsBuilder| {
        let settings = builder.slow_start(true).build().expect("in order");
        assert!(settings.starts_slowly());
        settings.start()
    };
    let per_second = |tokens| Some(Rate::from_ratio(tokens, SECOND));
    let builder = PacedSettings::builder;
    assert_eq!(begins(builder()), per_second(10));
    assert_eq!(begins(builder().initial_rate(3, ONE_SECOND)), per_second(3));
    assert_eq!(begins(builder().ceiling(7, ONE_SECOND)), per_second(7));
    assert_eq!(begins(builder().ceiling(700, ONE_SECOND)), per_second(10));
    assert_eq!(begins(builder().floor(20, ONE_SECOND)), per_second(20));
    assert!(!PacedSettings::new().starts_slowly());
    // A longest slope leaves no room for doubling.
    let sloping = builder().slow_start(true).max_slope(5, ONE_SECOND);
    let sloping = sloping.build().expect("in order");
    assert!(!sloping.starts_slowly());
    assert_eq!(sloping.start(), per_second(10));
    assert_eq!(
        PacedSettings::new().starting_slowly(),
        builder().slow_start(true).build().expect("in order")
    );
}

#[test]
fn a_slow_start_stays_as_it_was_made() {
    let slow = PacedSettings::new().starting_slowly();
    let setting = "slow start";
    let unchangeable = Err(PacedSettingsError::Unchangeable { setting });
    assert_eq!(PacedSettings::new().starts_like(&slow), unchangeable);
    assert_eq!(slow.starts_like(&PacedSettings::new()), unchangeable);
    assert_eq!(slow.starts_like(&slow), Ok(()));
}
