//! What is too large for loom, under thousands of schedules: four threads and more, and the whole
//! strategy.
//!
//! Claim: nothing is granted that was not minted and nothing is lost, to the token; every throttle cuts; every request is
//! counted once.
//!
//! Half of the schedules are random, half by PCT, which finds what few preemptions in unlucky
//! places do. The seeds are fixed, so that a run can be repeated; a failure prints its schedule.
//! Out of reach here: memory orderings, as shuttle runs every atomic access as if it were `SeqCst`;
//! those are for `loom-tests`.
//!
//! Run: `ci/check.sh shuttle`.
#![cfg(all(shuttle, test))]
#![expect(
    clippy::float_arithmetic,
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]

extern crate alloc;

use shuttle::{
    Config, Runner,
    scheduler::{PctScheduler, RandomScheduler},
};

mod paced;
#[cfg(feature = "strategies")]
mod scopes;
mod send_rate;
#[cfg(feature = "strategies")]
mod strategy;
mod teeth;

/// The seed of every test's schedules.
const SEED: u64 = 0x7061_6365;

/// How many preemptions PCT puts into a schedule.
const PREEMPTIONS: usize = 4;

/// Runs `scenario` under `schedules` random schedules, and under as many that PCT picks; under
/// `PACELINE_TIMES` times as many where that is set.
fn explore(schedules: usize, scenario: impl Fn() + Send + Sync + 'static) {
    let times = std::env::var("PACELINE_TIMES").map_or(1, |times| times.parse().expect("a number"));
    let schedules = schedules * times;
    let scenario = alloc::sync::Arc::new(scenario);
    let again = alloc::sync::Arc::clone(&scenario);
    let mut config = Config::new();
    config.stack_size = 1 << 17;
    let random = RandomScheduler::new_from_seed(SEED, schedules);
    Runner::new(random, config.clone()).run(move || again());
    let pct = PctScheduler::new_from_seed(SEED, PREEMPTIONS, schedules);
    Runner::new(pct, config).run(move || scenario());
}

/// Runs `work` on `count` threads, each with its number, and returns the results in that order.
fn on_threads<S: Send + Sync + 'static, T: Send + 'static>(
    count: u32,
    shared: &alloc::sync::Arc<S>,
    work: impl Fn(&S, u32) -> T + Copy + Send + 'static,
) -> Vec<T> {
    let threads: Vec<_> = (0..count)
        .map(|number| {
            let shared = alloc::sync::Arc::clone(shared);
            shuttle::thread::spawn(move || work(&shared, number))
        })
        .collect();
    let results = threads.into_iter().map(shuttle::thread::JoinHandle::join);
    results
        .map(|result| result.expect("the thread returns"))
        .collect()
}
