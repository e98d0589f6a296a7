//! A rate that outlives its process: a limiter begins where the last one ended, and fares no worse
//! for it.
#![allow(clippy::arithmetic_side_effects, reason = "small numbers of a test")]

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::Mutex;

use paceline::{
    Adaptive, Clock, ControlLaw, Failure, Outcome, RetryStrategyExt, SendPermit, SendRate,
    Timestamp, TokioClock,
    backoff::SeededRandom,
    law::{LearnedRate, PacedSettings, PacedSettingsBuilder},
};
use tokio::{task::JoinSet, time::sleep};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

fn text(text: &str) -> LearnedRate {
    serde_json::from_str(text).unwrap()
}

fn of(tokens: u32) -> LearnedRate {
    text(&format!(
        r#"{{"tokens":{tokens},"per":{{"secs":1,"nanos":0}}}}"#
    ))
}

/// Returns the rate that a limiter begins at, in millionths.
fn begins_at(settings: PacedSettingsBuilder) -> u64 {
    let rate = SendRate::paced(settings.build().unwrap(), Timestamp::ZERO);
    #[allow(clippy::float_arithmetic, reason = "a snapshot is in floats")]
    let micros = (rate.snapshot(Timestamp::ZERO).fill_rate * 1e6).round();
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small"
    )]
    let micros = micros as u64;
    micros
}

#[test]
fn a_limiter_begins_where_the_last_one_ended() {
    let begun = |age| begins_at(PacedSettings::builder().learned(of(400), age));
    assert_eq!(begun(Duration::ZERO), 400_000_000);
    assert_eq!(begun(HOUR / 2), 300_000_000);
    assert_eq!(begun(2 * HOUR), 100_000_000);
    let forgotten = PacedSettings::builder().learned(of(400), 25 * HOUR);
    assert_eq!(forgotten.build(), Ok(PacedSettings::new()));
}

#[test]
fn what_was_learned_stays_between_floor_and_ceiling() {
    let limits = PacedSettings::builder()
        .floor(50, SECOND)
        .ceiling(500, SECOND);
    let begun = |tokens| begins_at(limits.learned(of(tokens), Duration::ZERO));
    assert_eq!(
        [1, 400, 9_000].map(begun),
        [50, 400, 500].map(|rate| rate * 1_000_000)
    );
    let chosen = limits.initial_rate(60, SECOND);
    let learned = chosen.learned(of(70), Duration::ZERO);
    assert_eq!(begins_at(learned), 70_000_000);
}

/// What is left of a learned rate, in `f64`: half after each hour, in straight lines between, and
/// nothing after a day; not below the 10/s of a slow start, if it was above; between floor and
/// ceiling.
#[allow(clippy::float_arithmetic, reason = "the model is in floats")]
fn begins_in_floats(learned: f64, age: f64, floor: f64, ceiling: f64) -> Option<f64> {
    let hours = age / 3_600.0;
    let left = learned * (1.0 - hours.fract() / 2.0) / hours.floor().exp2();
    let left = left.max(learned.min(10.0));
    (hours <= 24.0).then(|| left.max(floor).min(ceiling))
}

#[test]
#[allow(clippy::float_arithmetic, reason = "the model is in floats")]
fn a_learned_rate_ages_as_the_model_in_floats_does() {
    let mut rng = fastrand::Rng::with_seed(11);
    let mut forgotten = 0;
    for trace in 0..5_000 {
        let tokens = 1 << rng.u32(..20);
        let tokens = tokens + rng.u32(..tokens);
        let per = Duration::from_millis(10 << rng.u32(..10));
        let (low, high) = (rng.u32(1..100), rng.u32(100..1_000_000));
        // Every fourth at an edge of an hour.
        let age = match trace % 4 {
            0 => HOUR * rng.u32(..27),
            _ => Duration::from_nanos(rng.u64(..26 * 3_600_000_000_000)),
        };
        let (secs, nanos) = (per.as_secs(), per.subsec_nanos());
        let learned = text(&format!(
            r#"{{"tokens":{tokens},"per":{{"secs":{secs},"nanos":{nanos}}}}}"#
        ));
        let limits = PacedSettings::builder()
            .floor(low, SECOND)
            .ceiling(high, SECOND);
        let rate = f64::from(tokens) / per.as_secs_f64();
        let model = begins_in_floats(rate, age.as_secs_f64(), low.into(), high.into());
        forgotten += u32::from(model.is_none());
        // Without a rate to begin at, a ceiling is what a limiter begins at.
        let model = model.unwrap_or(high.into());
        let built = limits.learned(learned, age).build().unwrap();
        let begun = SendRate::paced(built, Timestamp::ZERO).snapshot(Timestamp::ZERO);
        let error = (begun.fill_rate - model).abs() / model;
        assert!(error <= 1e-6, "{tokens} in {per:?}, {age:?} old: {begun:?}");
    }
    assert!(forgotten > 100, "{forgotten}");
}

#[test]
fn a_limiter_knows_what_it_has_learned() {
    let at = Timestamp::from_nanos;
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    assert_eq!(rate.learned(at(0)), None, "nothing is limited");
    for n in 1..=99 {
        let now = at(n * 10_000_000);
        rate.record(now, SendPermit::sent_at(now), Outcome::NotThrottled);
    }
    let now = at(990_000_000);
    rate.record(now, SendPermit::sent_at(now), Outcome::Throttled);
    let rate_of = |learned: Option<LearnedRate>| serde_json::to_string(&learned).unwrap();
    // It was cut to less than the peak, and has risen above it after a while.
    let cut = rate.snapshot(now);
    assert!(cut.fill_rate < cut.last_max_rate);
    assert_ne!(
        rate_of(rate.learned(now)),
        rate_of(rate.learned(at(9_000_000_000)))
    );
    let peak = rate.learned(at(9_000_000_000));
    assert_eq!(peak, rate.learned(at(20_000_000_000)));
    let published = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    published.record(now, SendPermit::sent_at(now), Outcome::Throttled);
    assert_eq!(published.learned(now), None);
}

#[test]
fn it_goes_through_a_text_as_it_is() {
    let learned = text(r#"{"tokens":9,"per":{"secs":2,"nanos":5}}"#);
    assert_eq!(
        serde_json::to_string(&learned).unwrap(),
        r#"{"tokens":9,"per":{"secs":2,"nanos":5}}"#
    );
    assert_eq!(format!("{learned:?}"), "LearnedRate(4.5/s)");
    let wrong = serde_json::from_str::<LearnedRate>(r#"{"tokens":0,"per":{"secs":1,"nanos":0}}"#);
    let said = wrong.unwrap_err().to_string();
    assert!(
        said.starts_with("the learned rate of 0 tokens in 1s is not"),
        "{said}"
    );
}

/// Sends 32 requests in each of 64 tasks to a service of `limit` a second that saves up those of
/// one second, 20 ms away. Returns how many were throttled and how long it took.
async fn work(limit: u64, settings: PacedSettingsBuilder) -> (u64, Duration) {
    const ONE: u64 = 1_000_000_000;
    let clock = TokioClock::new();
    let strategy = Adaptive::builder()
        .paced(settings.build().unwrap())
        .max_attempts(20)
        .quota_capacity(100_000)
        .clock(Arc::new(clock))
        .random(Arc::new(SeededRandom::new(7)));
    let strategy = Arc::new(strategy.build().unwrap());
    let tokens = Arc::new(Mutex::new((limit * ONE, Timestamp::ZERO)));
    let mut tasks = JoinSet::new();
    for _ in 0..64 {
        let (strategy, tokens) = (strategy.clone(), tokens.clone());
        tasks.spawn(async move {
            let send = async |_| {
                sleep(Duration::from_millis(20)).await;
                let mut tokens = tokens.lock().unwrap();
                let now = clock.now();
                let since = u64::try_from(now.saturating_since(tokens.1).as_nanos()).unwrap();
                let there = (tokens.0 + since * limit).min(limit * ONE);
                let allowed = there >= ONE;
                *tokens = (if allowed { there - ONE } else { there }, now);
                if allowed {
                    Ok(())
                } else {
                    Err(Failure::throttling())
                }
            };
            for _ in 0..32 {
                strategy.run_async(send).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let throttled = paceline::RetryStrategy::snapshot(&*strategy)
        .counts
        .throttled;
    (throttled, clock.now().saturating_since(Timestamp::ZERO))
}

/// Within a hundredth of the 2,048 requests, and the second that a slow start may take: which
/// requests are throttled is chance with either.
#[tokio::test(start_paused = true)]
async fn it_is_no_worse_than_without() {
    let plain = PacedSettings::builder();
    for limit in [50, 200, 500, 2_000] {
        let (throttled, took) = work(limit, plain).await;
        for old in [20, 200, 2_000, 10_000] {
            for age in [Duration::ZERO, HOUR, 6 * HOUR] {
                let (with, time) = work(limit, plain.learned(of(old), age)).await;
                let what = format!("{limit}/s, once {old}/s, {age:?} ago");
                assert!(
                    with <= throttled + 20,
                    "{what}: {with} throttled, {throttled} without"
                );
                assert!(time <= took + SECOND, "{what}: {time:?}, {took:?} without");
            }
        }
    }
}

/// Plays a service of 40 in each whole minute for some minutes, from a time on. Four workers always
/// have work, and a request takes 100 ms. Returns how many were admitted, and how many refused.
fn minutes(rate: &SendRate, from: u64, minutes: u64) -> (u32, u32) {
    const MINUTE: u64 = 60_000_000_000;
    const TRIP: u64 = 100_000_000;
    let (end, mut window, mut used) = (from + minutes * MINUTE, 0, 0);
    let (mut done, mut refused) = (0, 0);
    let mut places: Vec<_> = (0..4).map(|_| None).collect();
    let mut now = from;
    while now < end {
        if now / MINUTE != window {
            (window, used) = (now / MINUTE, 0);
        }
        let at = |now| Timestamp::from_nanos(now - from);
        for place in &mut places {
            let held = place.get_or_insert_with(|| rate.reserve(at(now)));
            let Ok(permit) = held.claim(at(now)) else {
                continue;
            };
            *place = None;
            used += 1;
            let admitted = used <= 40;
            let outcome = if admitted {
                Outcome::NotThrottled
            } else {
                Outcome::Throttled
            };
            (done, refused) = (done + u32::from(admitted), refused + u32::from(!admitted));
            rate.record(at(now + TRIP), permit, outcome);
        }
        now += TRIP;
    }
    (done, refused)
}

#[test]
fn a_process_that_starts_again_keeps_its_cycles() {
    let first = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    let _ = minutes(&first, 0, 60);
    let learned = first
        .learned(Timestamp::from_nanos(3_600_000_000_000))
        .unwrap();
    let kept = serde_json::to_value(learned).unwrap();
    let cycle: Duration = serde_json::from_value(kept["cycle"].clone()).unwrap();
    assert_eq!(cycle.as_secs(), 360, "six windows, rounded down");
    // The next process begins in the middle of a minute.
    let again = |learned| {
        let settings = PacedSettings::builder().learned(learned, HOUR);
        let rate = SendRate::paced(settings.build().unwrap(), Timestamp::ZERO);
        assert_eq!(rate.learned(Timestamp::ZERO).unwrap(), learned);
        minutes(&rate, 30_000_000_000, 10)
    };
    let read = serde_json::from_value(kept.clone()).unwrap();
    assert_eq!(learned, read);
    let with = again(read);
    let mut without = kept;
    without.as_object_mut().unwrap().remove("cycle");
    let rate: LearnedRate = serde_json::from_value(without).unwrap();
    let settings = PacedSettings::builder()
        .learned(rate, HOUR)
        .build()
        .unwrap();
    let without = minutes(
        &SendRate::paced(settings, Timestamp::ZERO),
        30_000_000_000,
        10,
    );
    assert_eq!((with, without), ((399, 3), (405, 24)));
}

#[test]
fn a_cycle_is_between_a_nanosecond_and_a_year() {
    let read = |cycle| {
        let text = format!(r#"{{"tokens":2,"per":{{"secs":3,"nanos":0}},"cycle":{cycle}}}"#);
        serde_json::from_str::<LearnedRate>(&text).map_err(|error| error.to_string())
    };
    let year = r#"{"secs":31622400,"nanos":0}"#;
    assert!(read(year).is_ok() && read(r#"{"secs":0,"nanos":1}"#).is_ok());
    for (cycle, shown) in [
        (r#"{"secs":31622400,"nanos":1}"#, "31622400.000000001s"),
        (r#"{"secs":0,"nanos":0}"#, "0ns"),
    ] {
        let error = format!("a cycle of {shown} is not between 1 ns and 366 days");
        assert_eq!(read(cycle), Err(error));
    }
}
