//! A million scopes: what they take and what a look-up costs, in time on a processor. It measures,
//! and asserts only that they are there, and what they take at most.
//!
//! Run: `cargo test --release --test scopes_million -- --ignored --nocapture a_million_adaptive`,
//! and for the other strategy again: what is resident is that of a new process.
#![cfg(feature = "scopes")]
#![expect(
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "figures for people to read"
)]

extern crate alloc;

use core::hint::black_box;
use std::{fs, sync::LazyLock, thread, time::Instant};

use alloc::string::String;
use paceline::{Adaptive, Failure, RetryStrategy, RetryStrategyExt, Scopes, Standard};

const SCOPES: usize = 1_000_000;
const ROUNDS: usize = 1_000_000;

/// Returns the resident memory of the process in bytes, or 0 where there is no telling.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<usize>().ok());
    pages.map_or(0, |pages| pages * 4096)
}

/// Returns how long the calling thread has been on a processor, in nanoseconds: others may be busy
/// too.
fn on_processor() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|first| first.parse().ok());
    nanos.unwrap_or_else(|| u64::try_from(BEGUN.elapsed().as_nanos()).unwrap())
}

static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns nanoseconds for each of `ROUNDS` calls of `work`, on `threads` threads at once. `work`
/// is given the thread's number and a number below `SCOPES`, all of them in turn and in an order
/// that no cache foresees.
fn nanos(threads: usize, work: impl Fn(usize, usize) + Sync) -> f64 {
    let spent = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|number| {
                let work = &work;
                scope.spawn(move || {
                    let before = on_processor();
                    (0..ROUNDS).for_each(|round| work(number, round * 611_953 % SCOPES));
                    on_processor() - before
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum::<u64>()
    });
    spent as f64 / (ROUNDS * threads) as f64
}

/// `most` is what each may take.
fn measure<S: RetryStrategy + 'static>(scopes: &Scopes<S>, most: usize) {
    let keys: Vec<String> = (0..SCOPES)
        .map(|number| format!("eu-west-1/table-{number:08}"))
        .collect();
    let before = resident();
    let begun = on_processor();
    let made = allocation_counter::measure(|| {
        for key in &keys {
            drop(scopes.get(key).unwrap());
        }
    });
    let each = (on_processor() - begun) as f64 / SCOPES as f64;
    let grown = resident().saturating_sub(before);
    println!("{} bytes of strategy", size_of::<S>());
    println!("  created in {each:.0} ns each");
    println!(
        "  allocated {:.0} bytes each",
        made.bytes_current as f64 / SCOPES as f64
    );
    println!("  resident {} bytes each, with a key of 24", grown / SCOPES);
    assert!(grown <= most * SCOPES, "{grown} bytes");
    for threads in [1, 2] {
        let idle = nanos(threads, |_, index| {
            black_box(keys[index].as_bytes()[23]);
        });
        println!("  {threads} at once, keys alone, ns: {idle:.0}");
        let get = |key: &str| drop(black_box(scopes.find(black_box(key))));
        let one = nanos(threads, |_, _| get(&keys[7]));
        let own = nanos(threads, |thread, _| get(&keys[7 + thread]));
        let all = nanos(threads, |_, index| get(&keys[index]));
        println!(
            "  {threads} at once, look up and drop, ns: one scope {one:.0}, each its own {own:.0}, all in turn {all:.0}"
        );
        let run = |key: &str| {
            let operation = scopes.operation().scope(key);
            operation.run(|_| Ok::<_, Failure>(())).unwrap();
        };
        let one = nanos(threads, |_, _| run(&keys[7]));
        let own = nanos(threads, |thread, _| run(&keys[7 + thread]));
        let handle = scopes.get(&keys[7]).unwrap();
        let held = nanos(threads, |_, _| {
            handle.run(|_| Ok::<_, Failure>(())).unwrap();
        });
        println!(
            "  {threads} at once, healthy operation, ns: by name {one:.0}, each its own {own:.0}, by handle {held:.0}"
        );
    }
    assert_eq!(scopes.snapshot().scopes, SCOPES as u64);
}

#[test]
#[ignore = "takes half a minute and a gigabyte"]
fn a_million_standard() {
    let scopes = Standard::builder().scopes().max_scopes(SCOPES);
    measure(&scopes.build().unwrap(), 350);
}

#[test]
#[ignore = "takes half a minute and a gigabyte"]
fn a_million_paced() {
    let scopes = Adaptive::builder().paced(paceline::law::PacedSettings::new());
    let scopes = scopes.scopes().max_scopes(SCOPES);
    measure(&scopes.build().unwrap(), 703);
}

#[test]
#[ignore = "takes half a minute and a gigabyte"]
fn a_million_adaptive() {
    let scopes = Adaptive::builder().scopes().max_scopes(SCOPES);
    measure(&scopes.build().unwrap(), 550);
}

/// Each has been throttled once, and limits from then on. It may take `most` bytes.
fn throttle_each(scopes: &Scopes<Adaptive>, most: usize) {
    let before = resident();
    for number in 0..SCOPES {
        let key = format!("eu-west-1/table-{number:08}");
        let scope = scopes.get(&key).unwrap();
        let failed = scope.run(|_| Err::<(), _>(Failure::throttling()));
        assert!(failed.is_err());
    }
    let grown = resident().saturating_sub(before);
    println!("resident {} bytes each, with a key of 24", grown / SCOPES);
    assert_eq!(scopes.snapshot().scopes, SCOPES as u64);
    // Over 300 of them are in lines of 128 bytes, between which the allocator loses some.
    assert!(grown <= most * SCOPES, "{grown} bytes");
}

#[test]
#[ignore = "takes half a minute and a gigabyte"]
fn a_million_adaptive_that_limit() {
    let builder = Adaptive::builder().max_attempts(1);
    throttle_each(&builder.scopes().max_scopes(SCOPES).build().unwrap(), 1_100);
}

#[test]
#[ignore = "takes half a minute and a gigabyte"]
fn a_million_paced_that_limit() {
    let builder = Adaptive::builder().paced(paceline::law::PacedSettings::new());
    let builder = builder.max_attempts(1);
    throttle_each(&builder.scopes().max_scopes(SCOPES).build().unwrap(), 1_300);
}
