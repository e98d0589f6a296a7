//! Requests of several tokens at once: what they take, what they give back, and which are refused.

use core::time::Duration;

use fastrand::Rng;
use paceline::{
    AcquireError, ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp, WeightError,
    law::PacedSettings,
};

use crate::support::{fixed, ms, wait};

const SECOND: u64 = 1_000_000_000;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn not_in_time(millis: u64) -> AcquireError {
    AcquireError::NotInTime { wait: wait(millis) }
}

fn above(weight: u32, capacity: u32) -> WeightError {
    WeightError::AboveCapacity { weight, capacity }
}

#[test]
fn n_tokens_are_taken_at_once_or_not_at_all() {
    let rate = fixed(5);
    let permit = rate.try_acquire_n(ms(0), 4).expect("the bucket is full");
    assert_eq!((permit.weight(), permit.time()), (4, ms(0)));
    assert_eq!(rate.try_acquire_n(ms(0), 3), Err(not_in_time(400)));
    assert!(rate.try_acquire_n(ms(399), 3).is_err());
    assert!(rate.try_acquire_n(ms(400), 3).is_ok());
    assert_eq!(rate.try_acquire_n(ms(400), 1), Err(not_in_time(200)));
    assert_eq!(rate.try_acquire(ms(400)), Err(wait(200)), "as one token");
}

#[test]
fn a_weight_of_nothing_and_one_above_the_capacity_are_refused_at_once() {
    let rate = fixed(10);
    for now in [ms(0), ms(999)] {
        assert_eq!(rate.try_acquire_n(now, 0), Err(WeightError::Zero.into()));
        assert_eq!(rate.reserve_n(now, 0).unwrap_err(), WeightError::Zero);
        for weight in [11, u32::MAX] {
            let refused = above(weight, 10);
            assert_eq!(rate.try_acquire_n(now, weight), Err(refused.into()));
            assert_eq!(rate.reserve_n(now, weight).unwrap_err(), refused);
        }
    }
    assert!(rate.try_acquire_n(ms(999), 10).is_ok(), "nothing was taken");
    let error = rate.try_acquire_n(ms(999), 11).unwrap_err();
    assert_eq!(error.wait(), None);
    assert_eq!(
        error.to_string(),
        "the request asks for 11 tokens, and the bucket holds 10 at most"
    );
    assert_eq!(not_in_time(5).wait(), Some(wait(5)));
}

#[test]
fn a_limiter_that_limits_nothing_refuses_no_weight_but_zero() {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    assert!(rate.try_acquire_n(ms(0), u32::MAX).is_ok());
    assert_eq!(rate.try_acquire_n(ms(0), 0), Err(WeightError::Zero.into()));
    assert_eq!(rate.reserve_n(ms(0), 0).unwrap_err(), WeightError::Zero);
    let mut early = rate.reserve_n(ms(0), 3).expect("nothing is limited");
    rate.record(ms(0), SendPermit::sent_at(ms(0)), Outcome::Throttled);
    // 0.5 tokens/s, and one at most: it was let in before, and waits its turn.
    assert_eq!(early.claim(ms(0)), Err(wait(6_000)));
    assert_eq!(rate.try_acquire_n(ms(0), 3), Err(above(3, 1).into()));
    let mut late = rate.reserve_n(ms(0), 3).expect("a place saves up");
    assert_eq!(late.claim(ms(0)), Err(wait(12_000)));
    assert_eq!(early.claim(ms(6_000)).map(SendPermit::weight), Ok(3));
    assert_eq!(late.claim(ms(12_000)).map(SendPermit::weight), Ok(3));
}

/// The capacity is that of the moment. A place saves up for more, up to what the bucket holds at
/// the ceiling.
#[test]
fn the_capacity_moves_with_the_law_and_a_place_saves_up_for_more() {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    for _ in 0..99 {
        rate.record(ms(0), SendPermit::sent_at(ms(0)), Outcome::NotThrottled);
    }
    rate.record(ms(500), SendPermit::sent_at(ms(500)), Outcome::Throttled);
    let capacity = 112; // 0.7 × 160/s, for a second
    assert_eq!(
        rate.try_acquire_n(ms(500), 113),
        Err(above(113, capacity).into())
    );
    let mut place = rate.reserve_n(ms(500), 112).expect("it fits");
    rate.record(ms(500), SendPermit::sent_at(ms(500)), Outcome::Throttled);
    assert_eq!(rate.try_acquire_n(ms(500), 112), Err(above(112, 78).into()));
    let mut heavy = rate.reserve_n(ms(500), 1_000).expect("no ceiling");
    let wait = place.claim(ms(500)).expect_err("112 tokens at 78.4/s");
    assert!(place.claim(ms(500).saturating_add(wait)).is_ok());
    let wait = heavy.claim(ms(500)).expect_err("1,112 tokens at 78.4/s");
    assert!(heavy.claim(ms(500).saturating_add(wait)).is_ok());
    let second = Duration::from_secs(1);
    let settings = PacedSettings::builder().burst(second).ceiling(50, second);
    let settings = settings.initial_rate(10, second).build().expect("in range");
    let rate = SendRate::paced(settings, ms(0));
    assert_eq!(rate.reserve_n(ms(0), 51).unwrap_err(), above(51, 50));
    assert!(rate.reserve_n(ms(0), 50).is_ok());
}

#[test]
fn in_a_pause_the_capacity_is_that_of_afterwards() {
    let rate = fixed(10);
    let hint = Outcome::ThrottledFor(Duration::from_secs(3));
    rate.record(ms(1_000), SendPermit::sent_at(ms(1_000)), hint);
    assert_eq!(rate.try_acquire_n(ms(1_100), 11), Err(above(11, 10).into()));
    assert!(matches!(
        rate.try_acquire_n(ms(1_100), 10),
        Err(AcquireError::NotInTime { wait }) if wait >= Duration::from_millis(2_900)
    ));
}

/// Whatever is given up, whenever and in whatever order: the waits of those left are those of a
/// plain list.
#[test]
fn places_given_up_give_back_exactly_their_weight() {
    for seed in 0..60 {
        let mut random = Rng::with_seed(seed);
        let rate = fixed(1_000);
        assert!(rate.try_acquire_n(at(0), 1_000).is_ok(), "empty the bucket");
        let mut line: Vec<(u32, Reservation<'_>)> = Vec::new();
        for _ in 0..200 {
            if line.is_empty() || random.u8(..5) < 3 {
                let weight = random.u32(1..=60);
                line.push((weight, rate.reserve_n(at(0), weight).expect("it fits")));
            } else {
                drop(line.swap_remove(random.usize(..line.len())));
            }
        }
        let total: u32 = line.iter().map(|(weight, _)| weight).sum();
        let last = line
            .iter_mut()
            .map(|(_, place)| place.claim(at(0)).expect_err("not minted"))
            .max();
        assert_eq!(last, Some(wait(u64::from(total))), "seed {seed}");
        drop(line);
        assert_eq!(
            rate.try_acquire_n(at(SECOND / 100), 10)
                .map(SendPermit::weight),
            Ok(10)
        );
        assert_eq!(
            rate.try_acquire_n(at(SECOND / 100), 1),
            Err(not_in_time(1)),
            "no debt, no gift"
        );
    }
}

/// The rate is one of tokens, so that is what is measured.
#[test]
fn a_permit_counts_for_its_weight() {
    let (light, heavy) = (
        SendRate::new(ControlLaw::Aws, Timestamp::ZERO),
        SendRate::new(ControlLaw::Aws, Timestamp::ZERO),
    );
    for _ in 0..30 {
        light.record(ms(0), SendPermit::sent_at(ms(0)), Outcome::NotThrottled);
    }
    for _ in 0..3 {
        let permit = heavy.try_acquire_n(ms(0), 10).expect("nothing is limited");
        heavy.record(ms(0), permit, Outcome::NotThrottled);
    }
    for rate in [&light, &heavy] {
        rate.record(ms(600), SendPermit::sent_at(ms(600)), Outcome::Throttled);
    }
    assert_eq!(light.snapshot(ms(600)), heavy.snapshot(ms(600)));
    assert!(heavy.snapshot(ms(600)).measured_rate > 40.0);
}

/// Places that were taken while nothing was limited have no weight checked. Once the line is full,
/// a claim waits.
#[test]
fn a_full_line_grants_nothing() {
    let rate = SendRate::new(ControlLaw::Aws, at(0));
    let reserve = || rate.reserve_n(at(0), u32::MAX).expect("unlimited");
    let mut places: Vec<_> = (0..40).map(|_| reserve()).collect();
    rate.record(at(0), SendPermit::sent_at(at(0)), Outcome::Throttled);
    assert!(places.iter_mut().all(|place| place.claim(at(1)).is_err()));
    let (mut last, waiting) = (rate.reserve(at(1)), 32 * u64::from(u32::MAX));
    assert!(last.claim(at(1)).is_err());
    let full = WeightError::LineFull {
        weight: u32::MAX,
        waiting,
    };
    // What is one token more than the line holds is refused with its name.
    assert_eq!(rate.snapshot(at(1)).waiting, waiting + 1);
    assert!(full.to_string().contains("137438953440"), "{full}");
    drop(last);
    while let Some(place) = places.pop() {
        drop(place); // from the end, which gives back all of it
    }
    assert!(rate.reserve(at(1)).claim(at(2 * SECOND)).is_ok());
}

/// A waiter that gives up is charged nothing, however much it asked for.
#[test]
fn the_last_place_gives_back_its_whole_weight() {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::fixed(10_000_000, second).expect("in range");
    let settings = settings.to_builder().burst(second).build();
    let rate = SendRate::paced(settings.expect("in range"), at(0));
    assert!(rate.try_acquire_n(at(0), 10_000_000).is_ok());
    for weight in [1 << 20, 100_000, 8_388_608, 10_000_000] {
        for _ in 0..100 {
            drop(rate.reserve_n(at(0), weight));
        }
    }
    let mut next = rate.reserve_n(at(0), 1).expect("it fits");
    assert_eq!(next.claim(at(0)), Err(Duration::from_nanos(101)));
}
