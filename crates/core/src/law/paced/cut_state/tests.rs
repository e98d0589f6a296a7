//! Memories of 49 bits, and what rounding loses in them.

use alloc::vec::Vec;

use super::*;
use crate::fixed::SECOND;

const UNIT: u64 = 1 << 24;

#[test]
fn a_trip_is_rounded_down_to_three_significant_bits() {
    for (units, kept) in [
        (0, 0),
        (1, 1),
        (6, 6),
        (7, 7),
        (8, 8),
        (9, 8),
        (10, 10),
        (15, 14),
        (16, 16),
        (19, 16),
        (20, 20),
        (31, 28),
        (32, 32),
        (63, 56),
        (64, 64),
        (127, 112),
        (255, 224),
        (511, 448),
        (512, 512),
        (639, 512),
        (640, 640),
        (895, 768),
        (896, 896),
        (1_023, 896),
    ] {
        let trip = CoarseRtt::new(units * UNIT);
        assert_eq!(trip.nanos(), kept * UNIT, "{units} units");
        assert_eq!(
            CoarseRtt::new(units * UNIT + UNIT - 1),
            trip,
            "{units} units"
        );
        assert_eq!(CoarseRtt::new(trip.nanos()), trip, "rounding twice is once");
    }
}

#[test]
fn trips_over_fifteen_seconds_count_as_fifteen() {
    assert_eq!(CoarseRtt::new(u64::MAX).nanos(), 896 * UNIT);
    assert_eq!(CoarseRtt::new(1_024 * UNIT).nanos(), 896 * UNIT);
    assert_eq!(CoarseRtt::new(1 << 63).nanos() / SECOND, 15);
    assert_eq!(CoarseRtt::default().nanos(), 0);
}

#[test]
fn there_are_36_trips_each_longer_than_the_one_before() {
    let lengths: Vec<u64> = (0..36).map(|bits| CoarseRtt(bits).nanos()).collect();
    assert!(lengths.is_sorted_by(|a, b| a < b), "{lengths:?}");
    for (bits, nanos) in (0..).zip(lengths) {
        assert_eq!(CoarseRtt::new(nanos), CoarseRtt(bits));
    }
}

#[test]
fn what_is_packed_is_unpacked_and_fills_48_bits() {
    let mut rng = fastrand::Rng::with_seed(1);
    for bits in 0..36 {
        for ramp in 0..=31 {
            let peak = Rate::from_raw(u128::from(rng.u64(..) >> rng.u32(..64)));
            let memory = CutState::new(peak, ramp, CoarseRtt(bits));
            assert_eq!((memory.ramp(), memory.trip()), (ramp, CoarseRtt(bits)));
            assert_eq!(memory.to_bits() >> 48, 0);
            assert_eq!(CutState::from_bits(memory.to_bits()), memory);
            assert_eq!(
                CutState::new(memory.peak(), ramp, memory.trip()),
                memory,
                "what was rounded stays"
            );
        }
    }
    let full = CutState::new(Rate::MAX, u32::MAX, CoarseRtt::new(u64::MAX));
    assert_eq!(full.ramp(), 31, "no more halvings than that");
    assert_eq!(full.trip().nanos(), 896 * UNIT);
    assert_eq!(
        CutState::new(Rate::ZERO, 0, CoarseRtt::default()).to_bits(),
        0
    );
}

#[test]
fn a_pause_is_one_bit_more() {
    let memory = CutState::new(Rate::MAX, 31, CoarseRtt::new(u64::MAX));
    let paused = memory.with_pause();
    assert!(paused.has_pause() && !memory.has_pause());
    assert_eq!(paused.to_bits(), memory.to_bits() | 1 << 48);
    assert_eq!(
        (paused.peak(), paused.ramp(), paused.trip()),
        (memory.peak(), memory.ramp(), memory.trip())
    );
    assert_eq!(paused.with_pause(), paused);
}

#[test]
fn a_peak_keeps_32_significant_bits_and_what_is_low_loses_12_bits() {
    let all = u64::MAX >> 20; // 44 bits
    for exponent in 0..=20 {
        let peak = Rate::from_raw(u128::from(all) << exponent);
        let kept = CutState::new(peak, 3, CoarseRtt(5)).peak();
        assert_eq!(kept.raw(), (all >> 12) << (12 + exponent));
    }
    for (raw, kept) in [(4_095, 0), (4_096, 4_096), (9_223_372_037, 9_223_368_704)] {
        let peak = Rate::from_raw(raw);
        assert_eq!(
            CutState::new(peak, 0, CoarseRtt::default()).peak().raw(),
            kept
        );
    }
}

#[test]
fn slow_start_is_what_no_trip_is() {
    let rate = Rate::from_ratio(10, SECOND);
    let slow = CutState::slow_start(rate);
    assert!(slow.is_slow_start() && slow.with_pause().is_slow_start());
    assert_eq!(
        (slow.ramp(), slow.peak()),
        (0, CutState::new(rate, 0, CoarseRtt(0)).peak())
    );
    for bits in 0..36 {
        assert!(!CutState::new(rate, 31, CoarseRtt(bits)).is_slow_start());
    }
}

#[test]
fn a_cut_that_knew_next_to_nothing_keeps_all_but_the_last_bit_of_its_trip() {
    for (nanos, kept) in [(0, 0), (3, 2), (8, 8), (10, 8), (14, 12), (1 << 20, 6 << 7)] {
        let plain = CutState::new(Rate::MAX, 10, CoarseRtt::new(nanos << 24)).with_pause();
        let blind = plain.blind();
        assert!(blind.is_blind() && !plain.is_blind() && !blind.is_slow_start());
        assert_eq!(blind.trip().nanos() >> 24, kept, "{nanos}");
        assert_eq!((blind.peak(), blind.ramp()), (plain.peak(), plain.ramp()));
        assert!(blind.has_pause());
    }
    assert!(!CutState::slow_start(Rate::MAX).is_blind());
}
