//! The buckets beside their peers, on one thread, on two and on all cores: `cargo bench`.
//!
//! A time is that of one operation of one thread while the other threads do as many. Every limiter
//! reads its own clock, the time stamp counter.
#![allow(missing_docs, reason = "a macro makes the main function")]

use core::{hint::black_box, num::NonZeroU32, time::Duration};
use std::{
    sync::Barrier,
    thread::{self, available_parallelism},
    time::Instant,
};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use governor::{Quota, RateLimiter};
use paceline::{Clock, MonotonicClock, RetryQuota, SendRate, Timestamp, law::PacedSettings};
use tokio::sync::Semaphore;

/// Tokens a second: more than any machine takes.
const PLENTY: u32 = 1_000_000_000;
const PERMITS: u32 = 1_000;

/// Lets `threads` threads call `work` `times` times each, all at once, and returns how long the
/// slowest took.
fn together(threads: usize, times: u64, work: &(dyn Fn() + Sync)) -> Duration {
    let start = Barrier::new(threads);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    work(); // some set a thread up
                    start.wait();
                    let began = Instant::now();
                    (0..times).for_each(|_| work());
                    began.elapsed()
                })
            })
            .collect();
        let times = workers.into_iter().map(thread::ScopedJoinHandle::join);
        times.map(Result::unwrap).max().unwrap_or_default()
    })
}

/// 1, 2 and all cores.
fn counts() -> Vec<usize> {
    let all = available_parallelism().map_or(2, core::num::NonZero::get);
    let mut counts = vec![1, 2, all];
    counts.sort_unstable();
    counts.dedup();
    counts
}

fn compare(criterion: &mut Criterion, name: &str, cases: &[(&str, &(dyn Fn() + Sync))]) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(1));
    for threads in counts() {
        for (case, work) in cases {
            let id = BenchmarkId::new(*case, threads);
            group.bench_function(id, |bencher| {
                bencher.iter_custom(|times| together(threads, times, work));
            });
        }
    }
    group.finish();
}

/// A permit is taken and given back.
fn permits(criterion: &mut Criterion) {
    let quota = RetryQuota::new(PERMITS);
    let semaphore = Semaphore::new(PERMITS as usize);
    let std = std::sync::Mutex::new(PERMITS);
    let parking_lot = parking_lot::Mutex::new(PERMITS);
    let take = |left: &mut u32| *left = left.saturating_sub(5);
    let give = |left: &mut u32| *left = left.saturating_add(5);
    compare(
        criterion,
        "a permit taken and given back",
        &[
            ("paceline RetryQuota", &|| {
                let permit = quota.try_acquire(5).expect("there are some");
                quota.release(black_box(permit));
            }),
            ("tokio Semaphore", &|| {
                drop(black_box(
                    semaphore.try_acquire_many(5).expect("there are some"),
                ));
            }),
            ("std Mutex", &|| {
                take(&mut std.lock().expect("nobody panics"));
                give(&mut std.lock().expect("nobody panics"));
            }),
            ("parking_lot Mutex", &|| {
                take(&mut parking_lot.lock());
                give(&mut parking_lot.lock());
            }),
        ],
    );
}

/// The token bucket under a mutex: tokens at the last take, and its time in nanoseconds.
struct Bucket {
    tokens: u64,
    then: u64,
}

impl Bucket {
    const fn new() -> Self {
        Self {
            tokens: PLENTY as u64,
            then: 0,
        }
    }

    /// Takes a token, a nanosecond's worth at this rate.
    fn take(&mut self, now: Timestamp) -> bool {
        let now = now.as_nanos();
        let minted = self.tokens.saturating_add(now.saturating_sub(self.then));
        self.then = now.max(self.then);
        self.tokens = minted.min(u64::from(PLENTY)).saturating_sub(1);
        minted > 0
    }
}

/// A token is taken, and there always is one.
fn tokens(criterion: &mut Criterion) {
    let clock = MonotonicClock::new();
    let settings = PacedSettings::fixed(PLENTY, Duration::from_secs(1));
    let rate = SendRate::paced(settings.expect("the rate is in range"), clock.now());
    let per_second = Quota::per_second(NonZeroU32::new(PLENTY).expect("there are some"));
    let governor = RateLimiter::direct(per_second);
    let std = std::sync::Mutex::new(Bucket::new());
    let parking_lot = parking_lot::Mutex::new(Bucket::new());
    compare(
        criterion,
        "a token taken",
        &[
            ("paceline SendRate", &|| {
                let permit = rate.try_acquire_with(|| clock.now());
                assert!(black_box(permit).is_ok());
            }),
            ("governor", &|| assert!(black_box(governor.check()).is_ok())),
            ("std Mutex", &|| {
                let mut bucket = std.lock().expect("nobody panics");
                assert!(black_box(bucket.take(clock.now())));
            }),
            ("parking_lot Mutex", &|| {
                assert!(black_box(parking_lot.lock().take(clock.now())));
            }),
        ],
    );
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .without_plots();
    targets = permits, tokens
}

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    println!(
        "The tables and charts beside every peer: `cargo run --release -p paceline-benches -- --table`; benches/README.md."
    );
}
