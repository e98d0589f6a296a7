//! The curve at points worked out by hand, and for arbitrary bits.

use core::time::Duration;

use super::super::cut_state::CoarseRtt;
use super::*;

/// A step of the clock by which rates move.
const STEP: u64 = 1 << 24;
/// A trip that packs exactly: 1.879 s.
const LONG_TRIP: u64 = 112 * STEP;
/// Times are rounded down to steps. This time is a whole step.
const NOW: u64 = 1_000_000 * STEP;

fn per_second(tokens: u32) -> Rate {
    Rate::from_ratio(tokens, SECOND)
}

/// Returns a rate in millionths of a token per second, rounded to nearest.
fn micros(rate: Rate) -> u64 {
    rate.tokens_in(2_000_000 * SECOND).div_ceil(2)
}

fn memory(peak: u32, ramp: u32, trip: u64) -> CutState {
    CutState::new(per_second(peak), ramp, CoarseRtt::new(trip))
}

/// Returns the rate of the default law in millionths, `elapsed` after a cut.
fn rate_after(elapsed: u64, memory: CutState) -> u64 {
    micros(rate_at(&PacedSettings::new(), memory, NOW - elapsed, NOW))
}

/// Asserts a rate of `want` millionths, up to one and the loss of packing the peak.
fn assert_near(got: u64, want: u64) {
    let error = 1 + want / 4_000_000;
    assert!(got.abs_diff(want) <= error, "got {got}, want {want}");
}

#[test]
fn a_cut_takes_more_at_low_rates_but_at_most_45_percent() {
    for (permille, peak, left) in [
        (900, 10_000, 8_900_000_000),
        (900, 100, 80_000_000),
        (900, 9, 5_100_000), // 0.1 and a third
        (900, 8, 4_400_000), // 0.1 + 0.354 is more than 0.45
        (900, 5, 2_750_000), // 0.18 + 0.3 is more
        (900, 4, 2_320_000), // 0.18 + 0.24
        (900, 1, 760_000),
        (990, 10_000, 9_800_000_000),
        (990, 4, 2_320_000),
        (500, 10_000, 5_000_000_000),
        (500, 1, 500_000),
    ] {
        let settings = PacedSettings::builder()
            .beta_permille(permille)
            .build()
            .expect("beta");
        let rate = rate_at(&settings, memory(peak, 0, 0), NOW, NOW);
        assert_near(micros(rate), left);
    }
}

#[test]
fn the_peak_before_a_cut_is_what_the_cut_leads_back_from() {
    let settings = PacedSettings::new();
    assert_near(micros(before_cut(&settings, per_second(100))), 123_456_790);
    assert_near(micros(before_cut(&settings, per_second(1))), 1_353_573);
    assert_eq!(before_cut(&settings, Rate::MAX), Rate::MAX);
    assert_eq!(before_cut(&settings, Rate::ZERO), Rate::ZERO);
}

#[test]
fn a_fraction_has_32_bits() {
    let rate = Rate::from_raw(1 << 40);
    assert_eq!(fraction_of(rate, ONE), rate);
    assert_eq!(fraction_of(rate, ONE / 2), Rate::from_raw(1 << 39));
    assert_eq!(fraction_of(Rate::MAX, u64::MAX), Rate::MAX);
}

#[test]
fn the_rate_returns_to_its_peak_by_a_fifth_power() {
    // Of 100/s: 20 % in 2.5 s, and a line of 1.5/s each second on top.
    let law = memory(100, 0, 0);
    assert_near(rate_after(0, law), 80_000_000);
    assert_near(rate_after(SECOND / 2, law), 94_196_400);
    assert_near(rate_after(SECOND * 5 / 4, law), 101_250_000);
    assert_near(rate_after(SECOND * 5 / 2, law), 103_750_000);
    // Of 10,000/s: 11 %, and 15/s.
    let law = memory(10_000, 0, 0);
    assert_near(rate_after(SECOND * 5 / 4, law), 9_984_375_000);
    assert_near(rate_after(SECOND * 5 / 2, law), 10_037_500_000);
}

#[test]
fn a_return_takes_fifteen_requests_between_two_and_a_half_seconds_and_twelve() {
    // At the end of the return the rate is the peak and the line: 0.06 of the peak in each second.
    assert_near(rate_after(12 * SECOND, memory(1, 0, 0)), 1_720_000);
    assert_near(rate_after(6 * SECOND, memory(1, 0, 0)), 1_352_500);
    assert_near(rate_after(15 * SECOND / 2, memory(2, 0, 0)), 2_900_000);
    assert_near(rate_after(15 * SECOND / 4, memory(2, 0, 0)), 2_431_250);
    assert_near(rate_after(5 * SECOND / 2, memory(6, 0, 0)), 6_900_000);
    // A doubling time after the peak, and half of one.
    assert_near(rate_after(15 * SECOND, memory(2, 0, 0)), 5_800_000);
    assert_near(rate_after(45 * SECOND / 4, memory(2, 0, 0)), 3_600_000);
}

#[test]
fn beyond_its_peak_the_rate_doubles_in_2_5_s_or_four_trips() {
    let law = memory(100, 0, 0);
    assert_near(rate_after(15 * SECOND / 4, law), 118_125_000);
    assert_near(rate_after(5 * SECOND, law), 207_500_000);
    assert_near(rate_after(15 * SECOND / 2, law), 911_250_000);
    // 8 × 1.879 s to the peak, and 4 × 1.879 s more: 200 and 1.5 × 22.549.
    let slow = memory(100, 0, LONG_TRIP);
    assert_near(rate_after(12 * LONG_TRIP, slow), 233_822_867);
    // Of trips of 28 × 2²⁴ ns, 470 ms, four are less than 2.5 s, and eight are more.
    let quick = memory(100, 0, 28 * STEP);
    // 149 steps later: 100, 100 × (2.4998 / 2.5)³ and 1.5 × 6.2579.
    assert_near(rate_after((224 + 149) * STEP, quick), 209_363_476);
}

#[test]
fn a_return_takes_eight_trips_where_that_is_longer() {
    // Half of the return leaves a 32nd of the cut of 20 %; 1.5/s each second on top.
    let slow = memory(100, 0, LONG_TRIP);
    assert_near(rate_after(4 * LONG_TRIP, slow), 110_649_289);
    assert_near(rate_after(8 * LONG_TRIP, slow), 122_548_578);
    // At 1/s, 8 × 1.879 s are more than 12 s, too.
    let low = memory(1, 0, LONG_TRIP);
    assert_near(rate_after(8 * LONG_TRIP, low), 1_901_943);
}

/// Returns the rate of a preset in millionths, `elapsed` after a cut.
fn rate_of(settings: &PacedSettings, elapsed: u64, memory: CutState) -> u64 {
    micros(rate_at(settings, memory, NOW - elapsed, NOW))
}

#[test]
fn an_exclusive_limit_is_returned_to_and_doubled_in_half_the_time() {
    let settings = PacedSettings::exclusive();
    let rate = |millis, peak| {
        let elapsed = millis * SECOND / 1_000;
        rate_of(&settings, elapsed, memory(peak, 0, 0))
    };
    // 10,000/s: 15/s each second, the peak after 1.2 s, twice that after 2.4 s.
    assert_near(rate(600, 10_000), 9_974_625_000);
    assert_near(rate(1_200, 10_000), 10_018_000_000);
    assert_near(rate(2_400, 10_000), 20_036_000_000);
    // 100/s: 125 requests take 1.25 s. 50/s: 2.5 s, as without the preset.
    assert_near(rate(1_250, 100), 101_875_000);
    assert_near(rate(2_500, 100), 203_750_000);
    for millis in [0, 300, 2_000, 4_000, 9_000] {
        let usual = rate_after(millis * SECOND / 1_000, memory(50, 0, 0));
        assert_eq!(rate(millis, 50), usual, "after {millis} ms");
    }
    // At low rates a doubling takes as long as the return.
    assert_near(rate(12_000, 1), 1_720_000);
    assert_near(rate(24_000, 1), 3_440_000);
    // Eight trips are longer than all of these.
    let slow = memory(100, 0, LONG_TRIP);
    assert_near(rate_of(&settings, 16 * LONG_TRIP, slow), 245_097_157);
}

#[test]
fn a_slope_is_the_most_that_the_rate_gains() {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::builder().max_slope(10, second).build();
    let settings = settings.expect("a slope");
    let rate = |millis, ramp| {
        let elapsed = millis * SECOND / 1_000;
        rate_of(&settings, elapsed, memory(100, ramp, 0))
    };
    // A cut leaves 80/s. Without a slope the rate is at 90/s in 313 ms.
    for (millis, expected) in [(0, 80), (300, 83), (1_000, 90), (60_000, 680)] {
        assert_near(rate(millis, 0), expected * 1_000_000);
    }
    // Where the curve is slower than the slope, the curve holds: 2.5 s after the cut the rate is at
    // the peak.
    let usual = rate_after(5 * SECOND / 2, memory(100, 0, 0));
    assert_eq!(rate(2_500, 0), usual);
    // A starved rate begins at 10/s, and is at 12.5/s 250 ms later, not at 20/s.
    assert_near(rate(250, 3), 12_500_000);
}

#[test]
fn a_shared_limit_is_returned_to_in_a_straight_line() {
    let settings = PacedSettings::shared();
    // 100/s: a cut of 0.1 + 0.065; λ = 0.55·√0.1, and 0.3/s each second.
    let law = memory(100, 0, 0);
    assert_near(rate_of(&settings, 0, law), 83_500_000);
    assert_near(rate_of(&settings, SECOND, law), 86_196_255);
    assert_near(rate_of(&settings, 8 * SECOND, law), 105_070_043);
    // 10/s: 0.1 + 0.206 is more than 0.3. λ is 0.55, and 0.3/s is gained each second.
    let law = memory(10, 0, 0);
    assert_near(rate_of(&settings, 0, law), 7_000_000);
    assert_near(rate_of(&settings, 3 * SECOND, law), 11_365_000);
    // 1/s: λ is the same as at 100/s; 0.05/s each second.
    let law = memory(1, 0, 0);
    assert_near(rate_of(&settings, 0, law), 700_000);
    assert_near(rate_of(&settings, 3 * SECOND, law), 959_573);
}

/// At 10/s a cut is expected every 1/(0.55 + 0.3/3) s. Three of these times are 4.615 s.
#[test]
fn a_shared_limit_without_a_cut_for_long_is_probed_by_a_cube() {
    let settings = PacedSettings::shared();
    let law = memory(10, 0, 0);
    let calm = 3 * SECOND * 100 / 65;
    let line = |elapsed: u64| 7_000_000 + 1_455_000 * (elapsed / 1_000) / (SECOND / 1_000);
    for (past, factor) in [(0, 1), (SECOND * 5 / 2, 2), (5 * SECOND, 9)] {
        let want = line(calm + past) * factor;
        let rate = rate_of(&settings, calm + past, law);
        assert!(
            rate.abs_diff(want) < 10 + want / 1_000_000,
            "{rate}, not {want}"
        );
    }
    // The unit of time is four trips if these are longer: 7.516 s.
    let slow = memory(10, 0, LONG_TRIP);
    let want = line(calm + 4 * LONG_TRIP) * 2;
    let rate = rate_of(&settings, calm + 4 * LONG_TRIP, slow);
    assert!(
        rate.abs_diff(want) < 10 + want / 1_000_000,
        "{rate}, not {want}"
    );
}

#[test]
fn a_cut_of_a_shared_limit_takes_30_percent_at_most_unless_beta_takes_more() {
    for (permille, peak, left) in [
        (900, 10_000, 8_935_000_000_u64), // 0.1 and 0.0065
        (900, 9, 6_300_000),
        (500, 10_000, 5_000_000_000),
    ] {
        let settings = PacedSettings::shared()
            .to_builder()
            .beta_permille(permille)
            .build();
        let rate = rate_of(&settings.expect("beta"), 0, memory(peak, 0, 0));
        assert_near(rate, left);
    }
    let settings = PacedSettings::shared();
    assert_near(micros(before_cut(&settings, per_second(1))), 1_428_571);
}

/// 0.06 of 6.25/s is 0.15 of its root. Below 6.25/s the first of these counts, above it the second.
#[test]
fn the_line_is_the_lesser_of_two() {
    assert_near(rate_after(3 * SECOND, memory(5, 0, 0)), 5_900_000);
    assert_near(rate_after(5 * SECOND / 2, memory(9, 0, 0)), 10_125_000);
    assert_near(rate_after(5 * SECOND / 2, memory(64, 0, 0)), 67_000_000);
}

#[test]
fn a_starved_rate_doubles_in_each_step_to_what_a_cut_leaves() {
    let law = memory(100, 3, 0);
    for (millis, want) in [
        (0, 10_000_000),
        (125, 15_000_000),
        (250, 20_000_000),
        (300, 24_000_000),
        (500, 40_000_000),
        (625, 60_000_000),
        (750, 80_000_000),
    ] {
        assert_near(rate_after(millis * SECOND / 1_000, law), want);
    }
    // From there the rate returns as after a cut.
    assert_near(rate_after(2 * SECOND, law), 101_250_000);
    // A step is two trips, if that is more than 250 ms.
    let slow = memory(100, 3, LONG_TRIP);
    assert_near(rate_after(2 * LONG_TRIP, slow), 20_000_000);
    assert_near(rate_after(6 * LONG_TRIP, slow), 80_000_000);
    // Two trips of 7 × 2²⁴ ns, 117 ms, are less than 250 ms.
    let quick = memory(100, 3, 7 * STEP);
    assert_near(rate_after(SECOND / 4, quick), 20_000_000);
    let between = memory(100, 3, 8 * STEP);
    assert_near(rate_after(16 * STEP, between), 20_000_000);
}

#[test]
fn the_law_is_starved_until_its_ramp_ends() {
    let law = memory(100, 3, 0);
    for (now, starved) in [
        (0, true),
        (NOW, true),
        (NOW + 3 * SECOND / 4 - 1, true),
        (NOW + 3 * SECOND / 4, false),
    ] {
        assert_eq!(is_starved(law, NOW, now), starved, "at {now}");
    }
    assert!(is_starved(
        memory(100, 1, LONG_TRIP),
        NOW,
        NOW + 2 * LONG_TRIP - 1
    ));
    assert!(!is_starved(
        memory(100, 1, LONG_TRIP),
        NOW,
        NOW + 2 * LONG_TRIP
    ));
    assert!(!is_starved(memory(100, 0, LONG_TRIP), NOW, NOW));
}

#[test]
fn rates_move_in_steps_of_17_ms_and_not_before_the_cut() {
    let settings = PacedSettings::new();
    let law = memory(100, 2, 0);
    let since = NOW + 5;
    let rate = |now| rate_at(&settings, law, since, now);
    assert_eq!(rate(0), rate(since));
    assert_eq!(rate(NOW + STEP - 1), rate(since), "not a whole step yet");
    assert!(rate(NOW + STEP) > rate(since));
    assert_eq!(rate(NOW + 2 * STEP - 1), rate(NOW + STEP));
    assert!(rate(NOW + 2 * STEP) > rate(NOW + STEP));
}

#[test]
fn a_rate_keeps_between_floor_and_ceiling() {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::builder()
        .floor(30, second)
        .ceiling(90, second)
        .build()
        .expect("in order");
    let law = memory(100, 4, 0);
    let rate = |elapsed| rate_at(&settings, law, NOW - elapsed, NOW);
    assert_eq!(rate(0), per_second(30));
    assert_near(micros(rate(SECOND * 3 / 4)), 40_000_000);
    assert_eq!(rate(20 * SECOND), per_second(90));
}

#[test]
fn growth_ends_64_doubling_times_after_the_peak_and_the_line_after_4096_seconds() {
    let law = memory(1, 0, 0);
    // The factor 64³ + 1, and 0.06/s each second.
    assert_near(rate_after(780 * SECOND, law), 262_191_800_000);
    assert_near(rate_after(2_048 * SECOND, law), 262_267_880_000);
    assert_near(rate_after(4_096 * SECOND, law), 262_390_760_000);
    assert_near(rate_after(8_192 * SECOND, law), 262_390_760_000);
    let settings = PacedSettings::new();
    let last = rate_at(&settings, law, 0, u64::MAX);
    assert_near(micros(last), 262_390_760_000);
    let slow = memory(1, 0, u64::MAX);
    assert_near(
        micros(rate_at(&settings, slow, 0, u64::MAX)),
        262_390_760_000,
    );
}

/// At any memory and time nothing overflows, and the rate is within the limits and never falls.
#[test]
fn no_bits_overflow_and_no_rate_falls_between_two_cuts() {
    let mut rng = fastrand::Rng::with_seed(2);
    let second = Duration::from_secs(1);
    let plain = PacedSettings::new();
    let sloped = plain
        .to_builder()
        .max_slope(10, second)
        .build()
        .expect("a slope");
    let presets = [
        plain,
        PacedSettings::shared(),
        PacedSettings::exclusive(),
        sloped,
    ];
    for round in 0..300_000 {
        let settings = presets[round % 4];
        let settings = match round % 7 {
            0 => settings,
            _ => settings
                .to_builder()
                .ceiling(1_000, second)
                .build()
                .expect("a ceiling"),
        };
        let extremes = [0, u64::MAX >> 15, rng.u64(..) >> 15];
        let bits = extremes[rng.usize(..3)];
        let memory = CutState::from_bits(bits);
        let since = rng.u64(..) >> rng.u32(..64);
        let early = since.saturating_add(rng.u64(..) >> rng.u32(..64));
        let late = early.saturating_add(rng.u64(..) >> rng.u32(..64));
        let first = rate_at(&settings, memory, since, early);
        let second = rate_at(&settings, memory, since, late);
        assert!(first <= second, "{memory:?} at {early} and {late}");
        for rate in [first, second] {
            assert!(rate >= settings.lowest(), "{memory:?}");
            assert_eq!(settings.within(rate), rate, "{memory:?}");
        }
    }
    let top = CutState::new(Rate::MAX, 0, CoarseRtt::default());
    for settings in presets {
        assert_eq!(rate_at(&settings, top, 0, u64::MAX), Rate::MAX);
    }
}
