//! Eight threads make every call of the buckets there is, on the real clock.
//!
//! Two seconds, or as many as `PACELINE_SOAK_SECONDS` says: `ci/check.sh soak` runs it for a
//! minute.
#![cfg(feature = "std")]
#![expect(
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "a test may overflow, and fail"
)]

use core::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::Duration,
};
use std::{env, fs, thread, time::Instant};

use fastrand::Rng;
use paceline::{
    Clock, MonotonicClock, Outcome, RetryQuota, SendLimiter, SendPermit, SendRate, Timestamp,
    law::PacedSettings,
};

const THREADS: u64 = 8;
/// The highest rate, a second, and what the bucket holds of it.
const MOST: u32 = 20_000;
const BURST: Duration = Duration::from_millis(100);
const CAPACITY: u64 = 2_000;
/// The most tokens that one request takes.
const WEIGHT: u32 = 64;
/// The longest that a request waits.
const PATIENCE: Duration = Duration::from_millis(300);
const QUOTA: u32 = 500;

fn settings(tokens: u32) -> PacedSettings {
    PacedSettings::fixed(tokens, Duration::from_secs(1))
        .and_then(|fixed| fixed.to_builder().burst(BURST).build())
        .expect("in range")
}

struct Scene {
    clock: MonotonicClock,
    rate: SendRate,
    quota: RetryQuota,
    granted: AtomicU64,
    /// What may have been granted besides what was minted.
    allowed: AtomicU64,
    is_over: AtomicBool,
}

impl Scene {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn granted(&self, permit: SendPermit) -> SendPermit {
        self.granted.fetch_add(u64::from(permit.weight()), SeqCst);
        permit
    }

    fn work(&self, seed: u64) {
        let mut rng = Rng::with_seed(seed);
        let limiter = SendLimiter::new(&self.rate).clock(self.clock.clone());
        let mut held = Vec::new();
        while !self.is_over.load(SeqCst) {
            let weight = rng.u32(1..=WEIGHT);
            let now = self.now();
            let permit = match rng.u8(..16) {
                0..3 => self.rate.try_acquire(now).ok(),
                3..5 => self.rate.try_acquire_with(|| now).ok(),
                5 => self.rate.try_acquire_n(now, weight).ok(),
                6..9 => {
                    held.push(self.rate.reserve_n(now, weight).expect("it fits"));
                    if held.len() > 4 {
                        drop(held.swap_remove(rng.usize(..held.len())));
                    }
                    None
                }
                9 if !held.is_empty() => {
                    let mut place = held.swap_remove(rng.usize(..held.len()));
                    place.claim(now).ok()
                }
                10 => self.rate.reserve(now).claim(now).ok(),
                11 | 12 => {
                    let begun = Instant::now();
                    let asked = limiter.tokens(weight).within(PATIENCE).acquire_blocking();
                    let waited = begun.elapsed();
                    assert!(waited < PATIENCE + Duration::from_secs(5), "{waited:?}");
                    asked.ok()
                }
                13 => limiter
                    .token()
                    .reserve()
                    .ok()
                    .and_then(|mut place| place.claim().ok()),
                14 => {
                    self.spend_quota(&mut rng);
                    None
                }
                _ => {
                    self.change(&mut rng);
                    None
                }
            };
            if let Some(permit) = permit.map(|permit| self.granted(permit)) {
                let outcome = match rng.u8(..200) {
                    0 => Outcome::ThrottledFor(Duration::from_millis(rng.u64(..20))),
                    1 => Outcome::Throttled,
                    _ => Outcome::NotThrottled,
                };
                match rng.u8(..2) {
                    0 => limiter.record(permit, outcome),
                    _ => drop(self.rate.record_with(|| self.now(), permit, outcome)),
                }
            }
        }
    }

    fn spend_quota(&self, rng: &mut Rng) {
        if let Some(permit) = self.quota.try_acquire(rng.u32(1..20)) {
            thread::yield_now();
            self.quota.release(permit);
        }
        self.quota.credit(rng.u32(..2));
        assert!(self.quota.available() <= QUOTA);
    }

    /// What is not part of a request.
    fn change(&self, rng: &mut Rng) {
        let open = THREADS * 6 * u64::from(WEIGHT);
        match rng.u16(..2_000) {
            0..20 => {
                let tokens = if rng.bool() { MOST } else { MOST / 2 };
                assert_eq!(self.rate.set_paced(settings(tokens), self.now()), Ok(()));
            }
            20 => {
                self.allowed.fetch_add(open, SeqCst);
                self.rate.forget_throttles(self.now());
            }
            21 => {
                self.allowed.fetch_add(open + CAPACITY, SeqCst);
                self.rate.reset(self.now());
            }
            _ => {
                let shown = self.rate.snapshot(self.now());
                assert!(shown.available <= shown.capacity, "{shown:?}");
            }
        }
    }

    /// Checks every window of the samples of a second: time, tokens granted, and allowed besides.
    fn watch(&self) {
        let slack = THREADS * u64::from(WEIGHT);
        let mut samples: Vec<(Instant, u64, u64)> = Vec::new();
        let mut first = None;
        while !self.is_over.load(SeqCst) {
            // What was allowed is read last, and the time as well: each is then too large.
            let granted = self.granted.load(SeqCst);
            let allowed = self.allowed.load(SeqCst);
            let sample = (Instant::now(), granted, allowed);
            first.get_or_insert(sample);
            for (from, before, allowance) in samples.iter().copied().chain(first) {
                let minted = (sample.0 - from).as_secs_f64() * f64::from(MOST);
                let more = CAPACITY + slack + (sample.2 - allowance);
                let got = granted - before;
                assert!(
                    got as f64 <= minted + more as f64,
                    "{got} granted, {minted} minted and {more} besides"
                );
            }
            samples.push(sample);
            if samples.len() > 100 {
                samples.remove(0);
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Returns the resident memory of the process in kilobytes, or 0 where it cannot be told.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<usize>().ok());
    pages.map_or(0, |pages| pages * 4)
}

#[test]
fn all_calls_at_once_grant_what_was_minted_and_leave_nothing() {
    let seconds = env::var("PACELINE_SOAK_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(2);
    let clock = MonotonicClock::new();
    let scene = Scene {
        rate: SendRate::paced(settings(MOST), clock.now()),
        clock,
        quota: RetryQuota::new(QUOTA),
        granted: AtomicU64::new(0),
        allowed: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    };
    let settled = thread::scope(|scope| {
        let scene = &scene;
        for seed in 0..THREADS {
            scope.spawn(move || scene.work(seed));
        }
        scope.spawn(|| scene.watch());
        thread::sleep(Duration::from_secs(seconds) / 4);
        let settled = resident();
        thread::sleep(Duration::from_secs(seconds) / 4 * 3);
        scene.is_over.store(true, SeqCst);
        settled
    });
    let grown = resident().saturating_sub(settled);
    println!(
        "{} granted, {grown} kB more at the end",
        scene.granted.load(SeqCst)
    );
    // At first it grows, and under a sanitizer longer.
    if seconds >= 60 {
        assert!(grown < 2_048, "{grown} kB more");
    }
    scene.quota.credit(QUOTA);
    assert_eq!(scene.quota.available(), QUOTA);
    // Every place was claimed or given up: the bucket fills.
    let later = scene.now().saturating_add(Duration::from_secs(70));
    assert_eq!(scene.rate.set_paced(settings(MOST), later), Ok(()));
    let shown = scene
        .rate
        .snapshot(later.saturating_add(Duration::from_secs(2)));
    assert_eq!(shown.waiting, 0, "{shown:?}");
    assert!(shown.available > shown.capacity - 1.0, "{shown:?}");
}
