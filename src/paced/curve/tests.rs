//! The curve at its marks, worked out by hand, and over any bits.

use core::time::Duration;

use super::super::memory::Trip;
use super::*;

/// A step of the clock by which rates move.
const STEP: u64 = 1 << 24;
/// A trip that is remembered as it is: 1.879 s.
const LONG_TRIP: u64 = 112 * STEP;
/// Times are rounded down to steps: this is one, and what is before it is not.
const NOW: u64 = 1_000_000 * STEP;

fn per_second(tokens: u32) -> Rate {
    Rate::from_ratio(tokens, SECOND)
}

/// Returns a rate in millionths of a token per second, rounded to nearest.
fn micros(rate: Rate) -> u64 {
    rate.tokens_in(2_000_000 * SECOND).div_ceil(2)
}

fn memory(peak: u32, ramp: u32, trip: u64) -> Memory {
    Memory::new(per_second(peak), ramp, Trip::new(trip))
}

/// Returns the rate of the default law in millionths, `elapsed` after a cut.
fn rate_after(elapsed: u64, memory: Memory) -> u64 {
    micros(rate_at(&PacedSettings::new(), memory, NOW - elapsed, NOW))
}

/// Asserts a rate of `want` millionths, up to one and what packing the peak costs.
fn assert_near(got: u64, want: u64) {
    let error = 1 + want / 4_000_000;
    assert!(got.abs_diff(want) <= error, "got {got}, want {want}");
}

#[test]
fn a_cut_takes_one_less_beta_and_one_over_the_root_but_at_most_45_percent() {
    for (permille, peak, left) in [
        (900, 10_000, 8_900_000_000),
        (900, 100, 80_000_000),
        (900, 9, 5_100_000), // 0.1 and a third
        (900, 8, 4_400_000), // 0.1 + 0.354 is more than 0.45
        (900, 1, 550_000),
        (990, 10_000, 9_800_000_000),
        (990, 4, 2_200_000),
        (500, 10_000, 5_000_000_000),
        (500, 1, 500_000),
    ] {
        let settings = PacedSettings::new().beta_permille(permille).expect("beta");
        let rate = rate_at(&settings, memory(peak, 0, 0), NOW, NOW);
        assert_near(micros(rate), left);
    }
}

#[test]
fn the_peak_before_a_cut_is_what_the_cut_leads_back_from() {
    let settings = PacedSettings::new();
    assert_near(micros(before_cut(&settings, per_second(100))), 123_456_790);
    assert_near(micros(before_cut(&settings, per_second(1))), 1_818_182);
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
    // At the end of it the rate is the peak and the line: 0.06 of the peak each second, of a peak of 1/s.
    assert_near(rate_after(12 * SECOND, memory(1, 0, 0)), 1_720_000);
    assert_near(rate_after(6 * SECOND, memory(1, 0, 0)), 1_345_938);
    assert_near(rate_after(15 * SECOND / 2, memory(2, 0, 0)), 2_900_000);
    assert_near(rate_after(15 * SECOND / 4, memory(2, 0, 0)), 2_421_875);
    assert_near(rate_after(5 * SECOND / 2, memory(6, 0, 0)), 6_900_000);
    // One doubling later, and half of one.
    assert_near(rate_after(10 * SECOND, memory(2, 0, 0)), 5_200_000);
    assert_near(rate_after(35 * SECOND / 4, memory(2, 0, 0)), 3_300_000);
}

#[test]
fn beyond_its_peak_the_rate_doubles_in_two_and_a_half_seconds_or_two_trips() {
    let law = memory(100, 0, 0);
    assert_near(rate_after(15 * SECOND / 4, law), 118_125_000);
    assert_near(rate_after(5 * SECOND, law), 207_500_000);
    assert_near(rate_after(15 * SECOND / 2, law), 911_250_000);
    let slow = memory(100, 0, LONG_TRIP);
    // 2 × 1.879 s after the peak: 200 and 1.5 × 6.258.
    assert_near(
        rate_after(SECOND * 5 / 2 + 2 * LONG_TRIP, slow),
        209_387_145,
    );
    let quick = memory(100, 0, SECOND);
    assert_near(rate_after(5 * SECOND, quick), 207_500_000);
}

/// 0.06 of 6.25/s is 0.15 of its root: below that the first counts, above it the second.
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
    // From there it returns as after a cut.
    assert_near(rate_after(2 * SECOND, law), 101_250_000);
    // A step is two trips, if that is more than 250 ms.
    let slow = memory(100, 3, LONG_TRIP);
    assert_near(rate_after(2 * LONG_TRIP, slow), 20_000_000);
    assert_near(rate_after(6 * LONG_TRIP, slow), 80_000_000);
    // 7 × 2²⁴ ns are 117 ms: two of them are less than 250 ms.
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
    let settings = PacedSettings::new()
        .floor(30, second)
        .and_then(|settings| settings.ceiling(90, second))
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
    // 64³ + 1, and 0.06 each second.
    assert_near(rate_after(172 * SECOND, law), 262_155_320_000);
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

/// Any memory, at any time: no overflow, within the limits, and never slower later.
#[test]
fn no_bits_overflow_and_no_rate_falls_between_two_cuts() {
    let mut rng = fastrand::Rng::with_seed(2);
    let second = Duration::from_secs(1);
    let plain = PacedSettings::new();
    let narrow = plain.ceiling(1_000, second).expect("a ceiling");
    for round in 0..100_000_u32 {
        let settings = if round % 2 == 0 { plain } else { narrow };
        let extremes = [0, u64::MAX >> 15, rng.u64(..) >> 15];
        let bits = extremes[rng.usize(..3)];
        let memory = Memory::from_bits(bits);
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
    let top = Memory::new(Rate::MAX, 0, Trip::default());
    assert_eq!(rate_at(&plain, top, 0, u64::MAX), Rate::MAX);
}
