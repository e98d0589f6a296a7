//! A rate that outlives its process: a limiter begins where the last one ended, and fares no worse
//! for it.
#![allow(clippy::arithmetic_side_effects, reason = "small numbers of a test")]

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::Mutex;

use paceline::{
    Adaptive, Clock, ControlLaw, Failure, Outcome, RetryStrategyExt, SendPermit, SendRate,
    Timestamp,
    backoff::SeededRandom,
    law::{LearnedRate, PacedSettings, PacedSettingsBuilder},
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

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

#[derive(Clone, Copy, Debug)]
struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap())
    }
}

/// Sends 32 requests in each of 64 tasks to a service of `limit` a second that saves up those of
/// one second, 20 ms away. Returns how many were throttled and how long it took.
async fn work(limit: u64, settings: PacedSettingsBuilder) -> (u64, Duration) {
    const ONE: u64 = 1_000_000_000;
    let clock = Paused(Instant::now());
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
    (throttled, clock.0.elapsed())
}

#[tokio::test(start_paused = true)]
async fn it_is_no_worse_than_without() {
    // The limit was 200/s; now it is the same, a quarter, or ten times that.
    for limit in [200, 50, 2_000] {
        let plain = PacedSettings::builder();
        let (throttled, took) = work(limit, plain).await;
        let learned = plain.learned(of(200), Duration::ZERO);
        let (with, time) = work(limit, learned).await;
        assert!(
            with <= throttled,
            "{limit}/s: {with} throttled, {throttled} without"
        );
        assert!(
            time <= took + SECOND,
            "{limit}/s: {time:?}, {took:?} without"
        );
    }
}
