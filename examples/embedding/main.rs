//! A small retry crate that embeds paceline's operation. Its host brings its clock and its sleep,
//! and has neither a runtime nor the system's timers: here it is a simulation, so an hour takes no
//! time.
//!
//! ```text
//! cargo run -p paceline-examples --bin embedding
//! ```

extern crate alloc;

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use paceline::{
    Adaptive, Clock, Failure, Operation, RetryStrategy, Timestamp,
    law::PacedSettings,
    operation::{Next, Stop},
    strategy::Reports,
};

// ---- the retry crate ----

/// What the crate asks of its host: the time, and a rest.
trait Host: Clock {
    fn rest_until(&self, until: Timestamp);
}

/// Sends until it succeeds, or until `strategy` stops it.
fn retry<T>(
    host: &impl Host,
    strategy: impl RetryStrategy,
    mut send: impl FnMut(u32) -> Result<T, Failure>,
) -> Result<T, Stop> {
    let mut attempts = Operation::new(strategy).clock(host).start();
    loop {
        let attempt = match attempts.next(host, None) {
            Next::Sleep(rest) | Next::InLine(rest) => {
                host.rest_until(rest.until());
                continue;
            }
            Next::Send(attempt) => attempt,
            Next::Stop(stop) => return Err(stop),
            step => panic!("a step that this crate does not know: {step:?}"),
        };
        // Each attempt is reported once, so neither report can fail.
        match send(attempt.number()) {
            Ok(value) => {
                let _reported = attempts.succeeded(Reports::at(host));
                return Ok(value);
            }
            Err(failure) => drop(attempts.failed(&failure, Reports::at(host))),
        }
    }
}

// ---- a host, and what it does with the crate ----

/// A simulation's time, in nanoseconds.
#[derive(Debug, Default)]
struct Simulation(AtomicU64);

impl Clock for Simulation {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Relaxed))
    }
}

impl Host for Simulation {
    fn rest_until(&self, until: Timestamp) {
        self.0.store(until.as_nanos(), Relaxed);
    }
}

/// Sends `count` requests at 10 a second, every third of which fails once. Returns the simulated
/// time.
fn simulate(count: u32) -> Result<Duration, Box<dyn core::error::Error>> {
    let host = Arc::new(Simulation::default());
    let settings = PacedSettings::fixed(10, Duration::from_secs(1))?;
    let clock = Arc::clone(&host) as Arc<dyn Clock>;
    let strategy = Arc::new(Adaptive::builder().paced(settings).clock(clock).build()?);
    for number in 0..count {
        retry(&*host, Arc::clone(&strategy), |attempt| {
            match (number % 3, attempt) {
                (0, 1) => Err(Failure::transient()),
                _ => Ok(()),
            }
        })?;
    }
    Ok(Duration::from_nanos(host.now().as_nanos()))
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    println!("300 requests took {:?} of simulated time", simulate(300)?);
    Ok(())
}

#[test]
fn every_attempt_waits_for_its_turn() {
    // 400 attempts at 10 a second.
    let took = simulate(300).expect("all are sent in the end");
    assert!((38..=41).contains(&took.as_secs()), "{took:?}");
}

#[test]
fn the_crate_and_its_host_take_less_than_60_lines() {
    let source = include_str!("main.rs");
    let (_, after) = source
        .split_once("// ---- the retry crate")
        .expect("it is here");
    let (both, _) = after
        .split_once("/// Sends `count` requests")
        .expect("and ends");
    let code = both.lines().map(str::trim_start).skip(1);
    let code = code.filter(|line| !line.is_empty() && !line.starts_with("//"));
    let count = code.count();
    assert!((30..60).contains(&count), "{count}");
}
