//! The rules of the send rate, from outside: exact waits, places in order, capacity, and time at
//! its ends.

use core::time::Duration;

use fastrand::Rng;
use paceline::{ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp};

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 24 * 3_600 * SECOND;
const CENTURY: u64 = 36_525 * DAY;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn record(rate: &SendRate, nanos: u64, outcome: Outcome) {
    rate.record(at(nanos), SendPermit::sent_at(at(nanos)), outcome);
}

/// Creates a limiter that fills at 1.12 × `requests` per second from 0.5 s on, and holds as many.
fn throttled_after(requests: u32) -> SendRate {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    for _ in 1..requests {
        record(&rate, 0, Outcome::NotThrottled);
    }
    record(&rate, SECOND / 2, Outcome::NotThrottled);
    record(&rate, SECOND / 2, Outcome::Throttled);
    rate
}

fn at_the_floor() -> SendRate {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    record(&rate, 0, Outcome::Throttled);
    rate
}

fn drain(rate: &SendRate, now: u64) -> u32 {
    let mut granted = 0;
    while rate.try_acquire(at(now)).is_ok() {
        granted += 1;
    }
    granted
}

fn nanos(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)
}

#[test]
fn a_wait_is_exact_in_every_state_also_on_an_older_clock() {
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        let rate = throttled_after(rng.u32(1..2_000));
        let mut now = SECOND / 2;
        let mut places = Vec::new();
        for _ in 0..60 {
            now += rng.u64(..SECOND / 10);
            match rng.u8(..8) {
                0 => record(&rate, now, Outcome::NotThrottled),
                1 => record(&rate, now, Outcome::Throttled),
                2..5 => places.push(rate.reserve(at(now))),
                5 if !places.is_empty() => drop(places.swap_remove(rng.usize(..places.len()))),
                _ => {}
            }
            let clock = now.saturating_sub(rng.u64(..4) * rng.u64(..SECOND));
            if let Err(wait) = rate.try_acquire(at(clock)) {
                let due = clock + nanos(wait);
                let sooner = rate.try_acquire(at(due - 1));
                assert_eq!(sooner, Err(Duration::from_nanos(1)), "seed {seed}");
                let mut place = rate.reserve(at(clock));
                assert_eq!(place.claim(at(clock)), Err(wait), "seed {seed}");
                assert!(place.claim(at(due - 1)).is_err(), "seed {seed}");
                let permit = place.claim(at(due)).expect("due");
                assert_eq!(place.claim(at(0)), Ok(permit), "the same ever after");
            }
        }
    }
}

/// Those asked first are the last in line: a rule by which a hole goes to the next caller would let
/// them pass.
#[test]
fn asked_from_back_to_front_no_place_jumps_the_queue() {
    for given_up in 0..8 {
        let rate = at_the_floor();
        let mut places: Vec<Reservation<'_>> = (0..8).map(|_| rate.reserve(at(0))).collect();
        drop(places.remove(given_up));
        for second in 0..16 {
            let mut due = 0;
            for (index, place) in places.iter_mut().enumerate().rev() {
                let answer = place.claim(at(second * SECOND));
                let turn = 2 * (index as u64 + 1); // two seconds for each that is left
                match answer {
                    Ok(_) => {
                        assert!(turn <= second, "{index} at {second} s");
                        due += 1;
                    }
                    Err(wait) => {
                        assert_eq!(
                            wait,
                            Duration::from_secs(turn - second),
                            "{index} at {second} s"
                        );
                    }
                }
            }
            assert_eq!(due, (second / 2).min(7));
        }
    }
}

/// A larger capacity holds what the smaller one held, not what it had discarded.
#[test]
fn a_change_of_rate_brings_back_no_token() {
    let rate = throttled_after(10); // 11.2/s
    let before = rate.snapshot(at(20 * SECOND)).available;
    assert!((11.1..11.3).contains(&before), "{before}");
    for _ in 0..2_000 {
        record(&rate, 20 * SECOND, Outcome::NotThrottled);
    }
    record(&rate, 41 * SECOND / 2, Outcome::NotThrottled);
    let capacity = rate.snapshot(at(41 * SECOND / 2)).capacity;
    assert!(capacity > 50.0, "{capacity}");
    let granted = drain(&rate, 41 * SECOND / 2);
    // A second's worth, and half a second at a rate that grows.
    assert!(granted < 30, "{granted} of what was discarded");
}

/// What was given up is not in the bucket: a hundred places less are not a hundred tokens more.
#[test]
fn places_given_up_leave_the_bucket_its_capacity() {
    let rate = throttled_after(10); // 11.2/s
    let now = SECOND / 2;
    drop((0..100).map(|_| rate.reserve(at(now))).collect::<Vec<_>>());
    let later = now + 5 * SECOND;
    assert_eq!(drain(&rate, later), 11);
    drop(
        (0..100)
            .map(|_| rate.reserve(at(later)))
            .collect::<Vec<_>>(),
    );
    assert_eq!(
        drain(&rate, later),
        0,
        "the tokens went back to where there were none"
    );
    assert_eq!(drain(&rate, later + SECOND / 2), 5);
}

#[test]
fn a_wrong_clock_a_century_ahead_mints_once_and_a_day_back_never() {
    let rate = throttled_after(100); // 112/s
    let now = 10 * SECOND;
    assert_eq!(drain(&rate, now), 112);
    for back in [1, SECOND, now, DAY] {
        assert_eq!(drain(&rate, now.saturating_sub(back)), 0);
    }
    assert_eq!(drain(&rate, now + CENTURY), 112);
    assert_eq!(drain(&rate, now + DAY), 0);
    let wait = rate
        .try_acquire(at(now + DAY))
        .expect_err("that time is not yet");
    assert!(wait > Duration::from_nanos(CENTURY - 2 * DAY), "{wait:?}");
    assert!(rate.try_acquire(at(now + DAY).saturating_add(wait)).is_ok());
}

#[test]
fn the_first_and_the_last_instant_are_instants() {
    for start in [0, 1, SECOND, u64::MAX - SECOND, u64::MAX] {
        let rate = SendRate::new(ControlLaw::Aws, at(start));
        for now in [0, start, u64::MAX, start] {
            record(&rate, now, Outcome::NotThrottled);
            assert!(rate.try_acquire(at(now)).is_ok(), "not throttled yet");
            assert!(!rate.snapshot(at(now)).enabled);
        }
        for now in [start, 0, u64::MAX, start] {
            record(&rate, now, Outcome::Throttled);
            let held = drain(&rate, now);
            assert!(held <= 2, "{held} from {start} at {now}");
            let mut place = rate.reserve(at(now));
            assert!(place.claim(at(now)).is_err());
            drop(place);
            let snapshot = rate.snapshot(at(now));
            assert!(snapshot.enabled && snapshot.fill_rate >= 0.499_999);
        }
    }
}

#[test]
fn steps_of_a_century_fill_the_bucket_once_each() {
    let rate = throttled_after(100);
    assert_eq!(drain(&rate, CENTURY), 112);
    assert_eq!(drain(&rate, CENTURY), 0);
    record(&rate, CENTURY, Outcome::NotThrottled);
    assert!(drain(&rate, CENTURY + 46 * 365 * DAY) >= 1);
    assert!(drain(&rate, u64::MAX) >= 1);
    // Later than words hold time: all that counts as one instant.
    assert_eq!(drain(&rate, u64::MAX - DAY), 0);
    assert_eq!(drain(&rate, u64::MAX), 0);
}

/// 2³² tokens and more are minted, and places far beyond that stay in order.
#[test]
fn four_billion_tokens_later_nothing_has_changed() {
    let rate = throttled_after(875_000); // 980,000/s
    let now = SECOND / 2 + 5_000 * SECOND; // 4.9 × 10⁹ tokens
    assert_eq!(drain(&rate, now), 980_000);
    let mut places: Vec<Reservation<'_>> = (0..200).map(|_| rate.reserve(at(now))).collect();
    drop(places.remove(0));
    let waits: Vec<_> = places
        .iter_mut()
        .map(|place| place.claim(at(now)).expect_err("not minted"))
        .collect();
    for (index, wait) in waits.iter().enumerate() {
        let want = (index as u64 + 1) * SECOND / 980_000;
        assert!(nanos(*wait).abs_diff(want) <= 2, "{index}: {wait:?}");
    }
}
