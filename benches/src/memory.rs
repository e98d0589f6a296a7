//! What a limiter occupies, and how long it takes to make one. Each is measured in a separate
//! process.

use core::hint::black_box;
use core::time::Duration;
use std::process::Command;
use std::time::Instant;
use std::{fs, io};

use aws_smithy_runtime::client::retries::{ClientRateLimiter, TokenBucket};
use better_bucket::Bucket;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use paceline::{Adaptive, ControlLaw, Outcome, RetryQuota, SendPermit, SendRate, Standard};
use paceline::{Timestamp, law::PacedSettings};
use ratelimit::Ratelimiter;
use tokio::sync::Semaphore;
use tower::retry::budget::TpsBudget;

/// How many are made.
pub const COUNT: usize = 10_000;

type Entry = (&'static str, fn(usize) -> Found);

/// What was found of one kind.
struct Found {
    bytes: f64,
    nanos: f64,
    inline: usize,
}

const SECOND: Timestamp = Timestamp::from_nanos(1_000_000_000);

const KINDS: &[Entry] = &[
    ("paceline RetryQuota", |n| of(n, || RetryQuota::new(500))),
    ("paceline Standard", |n| of(n, Standard::new)),
    ("paceline SendRate, idle", |n| of(n, idle)),
    ("paceline SendRate, throttled", |n| of(n, throttled)),
    ("paceline SendRate, fixed rate", |n| of(n, fixed)),
    ("paceline Adaptive", |n| {
        of(n, || Adaptive::new(ControlLaw::Aws))
    }),
    ("governor, its default clock", |n| of(n, governed)),
    ("better-bucket", |n| of(n, || Bucket::per_second(100))),
    ("ratelimit", |n| of(n, || Ratelimiter::new(100))),
    ("leaky-bucket", |n| {
        of(n, || leaky_bucket::RateLimiter::builder().build())
    }),
    ("tower TpsBudget", |n| of(n, TpsBudget::default)),
    ("tokio Semaphore", |n| of(n, || Semaphore::new(500))),
    ("aws-smithy-runtime, bucket and limiter", |n| {
        of(n, || (TokenBucket::default(), ClientRateLimiter::default()))
    }),
];

fn idle() -> SendRate {
    SendRate::new(ControlLaw::Aws, Timestamp::ZERO)
}

/// One that limits, and of which a token was taken.
fn throttled() -> SendRate {
    let rate = idle();
    rate.record(SECOND, SendPermit::sent_at(SECOND), Outcome::Throttled);
    let _refused = rate.try_acquire(SECOND);
    rate
}

fn fixed() -> SendRate {
    let settings = PacedSettings::fixed(100, Duration::from_secs(1));
    SendRate::paced(settings.expect("the rate is in range"), Timestamp::ZERO)
}

fn governed() -> DefaultDirectRateLimiter {
    let tokens = core::num::NonZeroU32::new(100).expect("there are some");
    RateLimiter::direct(Quota::per_second(tokens))
}

/// Makes `count`, and keeps them until they are weighed.
fn of<T>(count: usize, make: impl Fn() -> T) -> Found {
    drop(make()); // what is made once for all
    // More of what is small, so that pages of memory are no coarse measure.
    let count = if size_of::<T>() < 128 {
        10 * count
    } else {
        count
    };
    let mut all = Vec::with_capacity(count);
    let before = resident();
    let began = Instant::now();
    for _ in 0..count {
        all.push(black_box(make()));
    }
    let took = began.elapsed();
    let grown = resident().saturating_sub(before);
    drop(black_box(all));
    Found {
        bytes: grown as f64 / count as f64,
        nanos: took.as_nanos() as f64 / count as f64,
        inline: size_of::<T>(),
    }
}

/// Returns the bytes that the process has in memory.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Measures the kind of that number here, and returns its row.
#[must_use]
pub fn weigh(kind: usize, count: usize) -> String {
    let Some((name, of)) = KINDS.get(kind) else {
        return String::new();
    };
    let Found {
        bytes,
        nanos,
        inline,
    } = of(count);
    crate::table::line(&[
        (*name).to_owned(),
        inline.to_string(),
        crate::stats::digits(bytes),
        crate::stats::digits(nanos),
    ])
}

/// Measures all kinds, each in a new process of this program.
///
/// # Errors
///
/// If the program does not start again.
pub fn table(count: usize) -> io::Result<String> {
    let program = std::env::current_exe()?;
    let heads = [
        "limiter",
        "bytes inline",
        "bytes resident",
        "ns to make one",
    ];
    let mut text = crate::table::line(&heads.map(str::to_owned));
    text.push_str(&crate::table::line(&vec!["---".to_owned(); heads.len()]));
    for kind in 0..KINDS.len() {
        let mut child = Command::new(&program);
        child.args(["--weigh", &kind.to_string(), "--count", &count.to_string()]);
        text.push_str(&String::from_utf8_lossy(&child.output()?.stdout));
    }
    Ok(text)
}
