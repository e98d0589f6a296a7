//! The published adaptive limiter, step by step, through the public `SendRate`.
//!
//! Vectors: aws-sdk-go-v2 `adaptive_ratelimit_test.go` (which smithy-rs, smithy-kotlin and the Java
//! SDK share), smithy-typescript `DefaultRateLimiter.spec.ts`, smithy-rs `client_rate_limiter.rs`.

use core::time::Duration;

use paceline::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp};

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

fn record(rate: &SendRate, millis: u64, outcome: Outcome) {
    rate.record(at(millis), SendPermit::sent_at(at(millis)), outcome);
}

#[track_caller]
fn assert_close(got: f64, want: f64) {
    assert!(
        (got - want).abs() <= 1e-7 * want.abs().max(1.0),
        "got {got}, want {want}"
    );
}

/// Creates a limiter that was throttled at 0 and nothing else: 0.5 tokens/s, at most one, none
/// there.
fn at_the_floor() -> SendRate {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    record(&rate, 0, Outcome::Throttled);
    rate
}

#[test]
fn rates_follow_the_published_end_to_end_table() {
    use Outcome::{NotThrottled, Throttled};
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    let steps = [
        (200, NotThrottled, 0.0, 0.5),
        (400, NotThrottled, 0.0, 0.5),
        (600, NotThrottled, 4.8, 0.5),
        (800, NotThrottled, 4.8, 0.5),
        (1_000, NotThrottled, 4.16, 0.5),
        (1_200, NotThrottled, 4.16, 0.6912),
        (1_400, NotThrottled, 4.16, 1.0976),
        (1_600, NotThrottled, 5.632, 1.6384),
        (1_800, NotThrottled, 5.632, 2.3328),
        (2_000, Throttled, 4.3264, 3.02848),
        (2_200, NotThrottled, 4.3264, 3.486_639_173_470_26),
        (2_400, NotThrottled, 4.3264, 3.821_874_416_040_255),
        (2_600, NotThrottled, 5.665_28, 4.053_385_727_709_987),
        (2_800, NotThrottled, 5.665_28, 4.200_373_108_479_454),
        (3_000, NotThrottled, 4.333_056, 4.282_036_558_348_658),
        (3_200, Throttled, 4.333_056, 2.997_425_590_844_06),
        (3_400, NotThrottled, 4.333_056, 3.452_226_394_386_346_3),
    ];
    for (millis, outcome, measured, fill) in steps {
        record(&rate, millis, outcome);
        let snapshot = rate.snapshot(at(millis));
        assert_close(snapshot.measured_rate, measured);
        assert_close(snapshot.fill_rate, fill);
        assert_close(snapshot.capacity, fill.max(1.0));
        assert_eq!(snapshot.enabled, millis >= 2_000);
    }
    // From the enabling throttle on the bucket is exact: empty at 2.0 s, and never over what it
    // holds.
    let filled = [(2.0, 2.2, 3.02848), (2.2, 2.4, 3.486_639_173_470_26)];
    let two_steps: f64 = filled
        .iter()
        .map(|(from, to, fill)| (to - from) * fill)
        .sum();
    let fresh = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    for (millis, outcome, ..) in &steps[..12] {
        record(&fresh, *millis, *outcome);
    }
    assert_close(fresh.snapshot(at(2_400)).available, two_steps);
    for (millis, outcome, ..) in &steps[12..16] {
        record(&fresh, *millis, *outcome);
    }
    assert_close(fresh.snapshot(at(3_200)).available, 2.997_425_590_844_06);
}

#[test]
fn delays_after_one_throttle_follow_the_published_table() {
    for (millis, want) in [
        (500, 892_857_142),
        (1_000, 1_785_714_285),
        (2_000, 2_000_000_000),
    ] {
        let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
        record(&rate, millis, Outcome::Throttled);
        let wait = rate
            .try_acquire(at(millis))
            .expect_err("the bucket is empty");
        // The table has fractions of a nanosecond; a wait is rounded up to where the token is
        // there.
        assert!(wait.as_nanos().abs_diff(want) <= 1, "{millis} ms: {wait:?}");
    }
}

#[test]
fn a_refusal_takes_nothing_and_a_token_is_there_when_it_said() {
    let rate = at_the_floor();
    for _ in 0..10 {
        assert_eq!(rate.try_acquire(at(100)), Err(Duration::from_millis(1_900)));
        assert_close(rate.snapshot(at(100)).available, 0.05);
    }
    assert!(rate.try_acquire(at(2_100)).is_ok());
    assert_close(rate.snapshot(at(2_100)).available, 0.0);
}

#[test]
fn single_tokens_come_every_two_seconds_at_the_floor() {
    let rate = at_the_floor();
    let steps = [
        (100, Err(1_900)),
        (2_000, Ok(())),
        (2_500, Err(1_500)),
        (4_000, Ok(())),
        (10_000, Ok(())),
        (10_000, Err(2_000)),
        (12_000, Ok(())),
    ];
    for (millis, want) in steps {
        let got = rate.try_acquire(at(millis)).map(|_| ());
        assert_eq!(got, want.map_err(Duration::from_millis), "at {millis} ms");
    }
}

#[test]
fn ten_places_are_two_seconds_apart_and_those_behind_a_gap_move_up() {
    let rate = at_the_floor();
    let mut places: Vec<_> = (0..10).map(|_| rate.reserve(at(0))).collect();
    for (index, place) in places.iter_mut().enumerate() {
        let seconds = 2 * (index as u64 + 1);
        assert_eq!(
            place.claim(at(0)),
            Err(Duration::from_secs(seconds)),
            "place {index}"
        );
    }
    drop(places.remove(3));
    for (index, place) in places.iter_mut().enumerate() {
        let seconds = 2 * (index as u64 + 1);
        assert_eq!(
            place.claim(at(0)),
            Err(Duration::from_secs(seconds)),
            "place {index}"
        );
        assert_eq!(
            place.claim(at(seconds * 1_000 - 1)),
            Err(Duration::from_millis(1))
        );
        let permit = place.claim(at(seconds * 1_000)).expect("its turn has come");
        assert_eq!(place.claim(at(0)), Ok(permit), "the same permit ever after");
    }
}

/// Source: smithy-rs `client_rate_limiter.rs`, in which fifty tasks that were throttled once must
/// get over a hundred tokens within twenty seconds.
#[test]
fn fifty_tasks_recover_from_one_throttle() {
    let rate = at_the_floor();
    let mut tasks: Vec<_> = (0..50).map(|_| rate.reserve(at(0))).collect();
    let mut granted = 0;
    for millis in (0..20_000).step_by(10) {
        for task in &mut tasks {
            if let Ok(permit) = task.claim(at(millis)) {
                granted += 1;
                rate.record(at(millis), permit, Outcome::NotThrottled);
                *task = rate.reserve(at(millis));
            }
        }
    }
    assert!(granted > 100, "granted {granted} in 20 s");
}
