//! Places given up, whatever their weight and wherever they stand.

use core::time::Duration;

use fastrand::Rng;
use paceline::{
    ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp, law::PacedSettings,
};

const SECOND: u64 = 1_000_000_000;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// `tokens` a second and a bucket of as many, which is empty at time 0.
fn drained(tokens: u32) -> SendRate {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::fixed(tokens, second)
        .and_then(|fixed| fixed.to_builder().burst(second).build());
    let rate = SendRate::paced(settings.expect("in range"), Timestamp::ZERO);
    assert!(rate.try_acquire_n(at(0), tokens).is_ok(), "it was full");
    rate
}

/// 0.5 tokens/s by the published law.
fn at_the_floor() -> SendRate {
    let rate = SendRate::new(ControlLaw::Aws, at(0));
    rate.record(at(0), SendPermit::sent_at(at(0)), Outcome::Throttled);
    rate
}

fn wait(place: &mut Reservation<'_>, nanos: u64) -> u64 {
    let wait = place.claim(at(nanos)).expect_err("it is not due");
    u64::try_from(wait.as_nanos()).expect("a short wait")
}

#[test]
fn heavy_places_given_up_one_after_the_other_cost_nothing() {
    let rate = drained(10_000_000);
    for _ in 0..100 {
        drop(rate.reserve_n(at(0), 1 << 20));
    }
    let mut next = rate.reserve_n(at(0), 1).expect("in range");
    // Rates are rounded down.
    assert_eq!(wait(&mut next, 0), 101);
}

/// As above, but others stand behind each when it is given up.
#[test]
fn heavy_places_given_up_in_the_middle_come_back_whole() {
    for weight in [1, 50_000, 100_000, 1 << 20, 1 << 23] {
        let rate = drained(10_000_000);
        let mut light = Vec::new();
        let mut heavy = Vec::new();
        for _ in 0..100 {
            heavy.push(rate.reserve_n(at(0), weight).expect("in range"));
            light.push(rate.reserve_n(at(0), 1).expect("in range"));
        }
        drop(heavy);
        for (place, number) in light.iter_mut().zip(1..) {
            let waits = wait(place, 0);
            assert_eq!(
                waits - waits % 100,
                number * 100,
                "weight {weight}: {waits}"
            );
        }
        assert_eq!(rate.snapshot(at(0)).waiting, 100);
        drop(light);
        assert_eq!(rate.snapshot(at(0)).waiting, 0);
        assert_eq!(rate.try_acquire(at(0)), Err(Duration::from_nanos(101)));
    }
}

/// Every place waits for what stands before it and was not given up, whatever came and went.
#[test]
fn waits_are_those_of_a_plain_line() {
    for seed in 0..20 {
        let mut rng = Rng::with_seed(seed);
        let rate = drained(1_000_000);
        // Weights by order of coming; 0 was given up or claimed.
        let mut line: Vec<(u64, Option<Reservation<'_>>)> = Vec::new();
        let (mut now, mut granted) = (0_u64, 0_u64);
        for _ in 0..400 {
            let most = 1 << rng.u8(..19);
            let weight = rng.u32(1..=most);
            let place = rate.reserve_n(at(now), weight).expect("in range");
            line.push((u64::from(weight), Some(place)));
            for _ in 0..rng.u8(..3) {
                let chosen = rng.usize(..line.len());
                if line[chosen].1.take().is_some() {
                    line[chosen].0 = 0;
                }
            }
            now += rng.u64(..SECOND / 10);
            rate.record(at(now), SendPermit::sent_at(at(now)), Outcome::NotThrottled);
            let mut before = granted;
            for (weight, place) in &mut line {
                before += *weight;
                let Some(held) = place else { continue };
                let due = before * 1_000;
                if due <= now {
                    assert!(held.claim(at(now)).is_ok(), "seed {seed}");
                    *place = None;
                } else {
                    assert_eq!(wait(held, now), due - now, "seed {seed}");
                }
            }
            while line.first().is_some_and(|(_, place)| place.is_none()) {
                granted += line.remove(0).0;
            }
            // A bucket that is never full: there is always one who waits.
            granted = granted.max((now / 1_000).saturating_sub(1_000_000));
        }
    }
}

/// One wrong clock neither lets those go who wait nor loses what was given up.
#[test]
fn a_claim_by_a_wrong_clock_mints_and_loses_nothing() {
    for places in [10, 320, 5_000] {
        let rate = at_the_floor();
        let mut line: Vec<_> = (0..places).map(|_| rate.reserve(at(0))).collect();
        // Every other one gives up, and one claims a century ahead.
        let mut stay: Vec<_> = line.drain(..).step_by(2).collect();
        let mut wrong = stay.pop().expect("there is one");
        assert!(wrong.claim(at(100 * 365 * 24 * 3_600 * SECOND)).is_ok());
        for (place, number) in stay.iter_mut().zip(1..) {
            assert_eq!(wait(place, 0).div_ceil(SECOND), number * 2);
        }
        drop(stay.drain(2..).collect::<Vec<_>>());
        assert_eq!(wait(&mut stay[1], 0).div_ceil(SECOND), 4);
        let waiting = rate.snapshot(at(0)).waiting;
        assert_eq!(waiting, 3, "two, and the one that went ahead");
    }
}

/// A limiter in which no response is ever recorded remembers what is given up all the same.
#[test]
fn places_come_and_go_without_a_record() {
    let rate = at_the_floor();
    let mut held = Vec::new();
    for seconds in 0..20_000 {
        held.push(rate.reserve(at(seconds * SECOND)));
        held.push(rate.reserve(at(seconds * SECOND)));
        drop(held.remove(0));
        let mut last = rate.reserve(at(seconds * SECOND));
        if held.len() > 4 {
            drop(held.remove(1));
        }
        let _ = last.claim(at(seconds * SECOND));
    }
    let waiting = rate.snapshot(at(20_000 * SECOND)).waiting;
    assert!(waiting <= held.len() as u64, "{waiting} are promised");
}

/// `try_acquire_n` leaves no place behind, so that `forget_throttles` writes off none.
#[test]
fn tokens_taken_at_once_are_no_open_places() {
    let rate = drained(1_000);
    let place = rate.reserve_n(at(SECOND), 500).expect("in range");
    assert!(rate.try_acquire_n(at(SECOND), 500).is_ok());
    rate.forget_throttles(at(0));
    drop(place);
    let granted = (0..2_000)
        .filter(|_| rate.try_acquire(at(SECOND)).is_ok())
        .count();
    assert!(granted <= 1_000, "{granted} of a bucket of 1,000");
}
