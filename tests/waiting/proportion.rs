//! Sets whose limits bind equally, or nearly so: requests and tokens a minute, in proportion.
//!
//! The commonest set there is: a provider of language models that allows 500 requests and 30,000 tokens
//! a minute (<https://platform.openai.com/docs/guides/rate-limits>), and requests of 60 tokens.

use alloc::sync::Arc;
use core::time::Duration;

use paceline::{
    AcquireError, Class, SendLimiter, SendPermit, SendRate, SendSet, law::PacedSettings,
};

use crate::world::{Hands, SECOND, Task, World, at};

/// A rate of so many tokens in `per`, with an empty bucket of ten seconds.
fn empty(tokens: u32, per: Duration) -> Arc<SendRate> {
    let fixed = PacedSettings::fixed(tokens, per).expect("in range");
    let settings = fixed.to_builder().burst(BURST).build();
    let rate = SendRate::paced(settings.expect("in range"), at(0));
    while rate.try_acquire(at(0)).is_ok() {}
    Arc::new(rate)
}

async fn many<const N: usize>(
    limiter: SendLimiter<SendSet<Arc<SendRate>, N>, Hands, Hands>,
    weights: [u32; N],
    class: Class,
    requests: u32,
) -> Result<SendPermit, AcquireError> {
    let mut last = None;
    for _ in 0..requests {
        let request = limiter.clone().into_tokens(weights).class(class);
        let permit = request.acquire().await.expect("without a deadline");
        last = permit.get(0);
    }
    Ok(last.expect("it has a weight in the first"))
}

/// Background leaves three quarters of it alone.
const BURST: Duration = Duration::from_secs(10);
const WORKERS: u32 = 4;
const REQUESTS: u32 = 10;

/// Lets four workers send ten requests each, and returns the polls, and the nanoseconds they took.
fn play<const N: usize>(rates: [(u32, u32); N], per: Duration, class: Class) -> (u32, u64) {
    let mut world = World::default();
    let weights = rates.map(|(_, weight)| weight);
    let rates = rates.map(|(tokens, _)| empty(tokens, per));
    let limiter = SendLimiter::new(SendSet::new(rates))
        .clock(world.hands.clone())
        .sleep_on(world.hands.clone());
    for _ in 0..WORKERS {
        world.spawn(many(limiter.clone(), weights, class, REQUESTS));
    }
    world.run_until(10_000 * SECOND);
    let took = world.tasks.iter().map(Task::went_at).max();
    let polls = world.tasks.iter().map(|task| task.polls).sum();
    (polls, took.expect("there are workers"))
}

/// Returns what took more than three polls a grant.
fn dear<const N: usize>(
    class: Class,
    sets: &[([(u32, u32); N], Duration)],
) -> Vec<([(u32, u32); N], u32)> {
    let most = 3 * WORKERS * REQUESTS;
    let played = sets.iter().map(|&(rates, per)| {
        let (polls, took) = play(rates, per, class);
        let (tokens, weight) = rates[0];
        // As soon as the first limit lets them go.
        let nanos = per.as_nanos() * u128::from(weight * WORKERS * REQUESTS) / u128::from(tokens);
        if class == Class::Foreground {
            assert!(
                u128::from(took) < nanos * 101 / 100,
                "{rates:?} took {took}"
            );
        }
        (rates, polls)
    });
    played.filter(|(_, polls)| *polls > most).collect()
}

const SECONDLY: Duration = Duration::from_secs(1);
const MINUTELY: Duration = Duration::from_secs(60);

#[test]
fn limits_in_proportion_cost_three_polls_a_grant() {
    let two = [
        ([(10, 1), (1_000, 100)], SECONDLY),
        ([(1_000, 100), (10, 1)], SECONDLY),
        ([(10, 1), (1_000, 99)], SECONDLY),
        ([(10, 3), (1_000, 300)], SECONDLY),
        ([(500, 1), (30_000, 60)], MINUTELY),
        ([(100_000, 1), (10_000_000, 100)], SECONDLY),
    ];
    let three = [
        ([(10, 1), (1_000, 100), (100, 10)], SECONDLY),
        ([(7, 1), (700, 100), (70, 10)], SECONDLY),
    ];
    for class in [Class::Foreground, Class::Background] {
        assert_eq!(dear(class, &two), [], "{class:?}");
        assert_eq!(dear(class, &three), [], "{class:?}");
    }
}

#[test]
fn limits_that_bind_nearly_in_proportion_cost_no_more() {
    let two = [
        ([(10, 1), (1_000, 98)], SECONDLY),
        ([(10, 1), (1_000, 90)], SECONDLY),
        ([(10, 1), (1_000, 75)], SECONDLY),
        ([(10, 1), (1_000, 60)], SECONDLY),
        ([(10, 1), (1_000, 40)], SECONDLY),
        ([(10, 1), (1_000, 7)], SECONDLY),
        ([(10, 1), (1_000_000, 1)], SECONDLY),
        ([(6, 1), (700, 113)], MINUTELY),
    ];
    let three = [
        ([(10, 1), (1_000, 97), (100, 9)], SECONDLY),
        ([(10, 1), (1_000, 80), (100, 5)], SECONDLY),
    ];
    assert_eq!(dear(Class::Foreground, &two), []);
    assert_eq!(dear(Class::Foreground, &three), []);
}
