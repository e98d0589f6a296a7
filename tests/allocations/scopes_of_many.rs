//! What many scopes take: ten thousand, or as many as `PACELINE_SCOPES` says.
//!
//! `ci/check.sh nightly scopes` runs each test with a million scopes in a process of its own. What
//! is resident is then asserted too.
#![expect(clippy::arithmetic_side_effects, reason = "figures of memory")]

use std::{env, fs};

use paceline::{
    Adaptive, Failure, RetryStrategy, RetryStrategyExt, Scopes, Standard, law::PacedSettings,
};

const MILLION: u64 = 1_000_000;

fn count() -> u64 {
    let count = env::var("PACELINE_SCOPES").ok();
    count.and_then(|text| text.parse().ok()).unwrap_or(10_000)
}

/// Returns the resident memory of the process in bytes, or 0 where there is no telling.
fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.map_or(0, |pages| pages * 4096)
}

/// Calls `make` with the key of each scope, and asserts what each then takes at most, in bytes:
/// `most` with what the allocator loses between blocks.
fn each_takes<S: RetryStrategy + 'static>(scopes: &Scopes<S>, most: u64, make: impl Fn(&str)) {
    let count = count();
    let before = resident();
    let allocations = allocation_counter::measure(|| {
        for number in 0..count {
            make(&format!("eu-west-1/table-{number:08}"));
        }
    });
    let each = u64::try_from(allocations.bytes_current).unwrap() / count;
    let grown = resident().saturating_sub(before) / count;
    println!("allocated {each} bytes each, resident {grown} bytes each");
    assert_eq!(scopes.snapshot().scopes, count);
    assert!(each <= most, "{each} bytes");
    // With fewer scopes, and other tests beside, pages tell nothing.
    assert!(count < MILLION || grown <= most, "{grown} bytes");
}

fn at_most() -> usize {
    usize::try_from(count()).unwrap()
}

#[test]
fn standard() {
    let scopes = Standard::builder().scopes().max_scopes(at_most());
    let scopes = scopes.build().unwrap();
    each_takes(&scopes, 350, |key| drop(scopes.get(key).unwrap()));
}

#[test]
fn paced() {
    let scopes = Adaptive::builder().paced(PacedSettings::new());
    let scopes = scopes.scopes().max_scopes(at_most()).build().unwrap();
    each_takes(&scopes, 703, |key| drop(scopes.get(key).unwrap()));
}

#[test]
fn adaptive() {
    let scopes = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .scopes()
        .max_scopes(at_most());
    let scopes = scopes.build().unwrap();
    each_takes(&scopes, 550, |key| drop(scopes.get(key).unwrap()));
}

/// Throttles the scope once: it limits from then on.
fn throttle(scopes: &Scopes<Adaptive>, key: &str) {
    let failed = scopes
        .get(key)
        .unwrap()
        .run(|_| Err::<(), _>(Failure::throttling()));
    assert!(failed.is_err());
}

// Over 300 bytes of a scope that limits are in lines of 128 bytes, between which the allocator
// loses some.
#[test]
fn adaptive_that_limit() {
    let scopes = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .max_attempts(1)
        .scopes();
    let scopes = scopes.max_scopes(at_most()).build().unwrap();
    each_takes(&scopes, 1_100, |key| throttle(&scopes, key));
}

#[test]
fn paced_that_limit() {
    let scopes = Adaptive::builder().paced(PacedSettings::new());
    let scopes = scopes.max_attempts(1).scopes();
    let scopes = scopes.max_scopes(at_most()).build().unwrap();
    each_takes(&scopes, 1_300, |key| throttle(&scopes, key));
}
