//! How long one operation takes where there are many more threads than cores: what a thread that
//! was preempted in the midst of one does to the others.

use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::case::{Case, Seat, Stage, Whose};
use crate::path::Path;
use crate::pool::Barrier;

/// The numbers of threads.
pub const THREADS: [usize; 2] = [32, 128];

/// What is measured of a case.
#[derive(Debug)]
pub struct Tail {
    /// The path and name.
    pub id: String,
    /// Whose code it is.
    pub whose: Whose,
    /// How many threads.
    pub threads: usize,
    /// Operations per microsecond.
    pub rate: f64,
    /// Nanoseconds of one operation, two readings of the clock among them.
    pub latency: Histogram<u64>,
}

/// Whether a case belongs here: paceline's, the mutexes, and the AWS SDK where it has the same.
#[must_use]
pub fn is_wanted(case: &Case) -> bool {
    let path = matches!(
        case.path,
        Path::QuotaPair | Path::Standard | Path::Adaptive | Path::Engaged | Path::EngagedRequest
    );
    let empty = case.path == Path::Floor && case.name == "empty loop";
    empty || path && (case.whose != Whose::Peer || case.name.starts_with("aws"))
}

/// Measures a case for so long, with so many nanoseconds of work of a thread's own between
/// operations.
///
/// # Panics
///
/// If the operation does.
#[must_use]
pub fn measure(case: &Case, threads: usize, length: Duration, work: u64) -> Tail {
    // On a thread that ends: the numbers of threads are those of the workers, here and in what is
    // measured next.
    let stage = thread::scope(|scope| scope.spawn(case.stage).join());
    let stage = stage.expect("a case is made");
    let (start, stop) = (Barrier::default(), AtomicBool::new(false));
    let laps = laps_of(work);
    let began = Instant::now();
    let parts = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let seat = Seat { thread, threads };
                let (stage, start, stop) = (&stage, &start, &stop);
                scope.spawn(move || {
                    start.wait(threads + 1);
                    worker(stage, seat, laps, stop)
                })
            })
            .collect();
        start.wait(threads + 1);
        thread::sleep(length);
        stop.store(true, Relaxed);
        let parts = workers.into_iter().map(thread::ScopedJoinHandle::join);
        parts
            .map(|part| part.expect("no operation panics"))
            .collect::<Vec<_>>()
    });
    let mut latency = histogram();
    for part in parts {
        latency.add(part).expect("both grow as they have to");
    }
    Tail {
        id: case.id(),
        whose: case.whose,
        threads,
        rate: latency.len() as f64 / 1e6 / began.elapsed().as_secs_f64(),
        latency,
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are in range")
}

fn worker(stage: &Stage, seat: Seat, laps: u64, stop: &AtomicBool) -> Histogram<u64> {
    let clock = quanta::Clock::new();
    let mut runner = stage(seat);
    runner(16);
    let mut latency = histogram();
    while !stop.load(Relaxed) {
        let from = clock.raw();
        runner(1);
        let to = clock.raw();
        let taken = clock.delta_as_nanos(from, to);
        latency.record(taken).expect("it grows as it has to");
        spin(laps);
    }
    latency
}

fn spin(laps: u64) {
    for lap in 0..laps {
        black_box(lap);
    }
}

/// Returns how many laps of [`spin`] take so many nanoseconds.
fn laps_of(nanos: u64) -> u64 {
    const LAPS: u64 = 1_000_000;
    if nanos == 0 {
        return 0;
    }
    let fastest = (0..5).map(|_| {
        let began = Instant::now();
        spin(LAPS);
        began.elapsed().as_nanos()
    });
    let fastest = fastest.min().unwrap_or(1).max(1);
    u64::try_from(u128::from(nanos * LAPS) / fastest).unwrap_or(LAPS)
}

/// Returns a row of the table, of which the first is the heading.
#[must_use]
pub fn table(tails: &[Tail]) -> String {
    let heads = [
        "case",
        "threads",
        "M/s",
        "p50",
        "p99",
        "p99.9",
        "p99.99",
        "over 1 ms in a million",
        "max",
    ];
    let mut text = crate::table::line(&heads.map(str::to_owned));
    text.push_str(&crate::table::line(&vec!["---".to_owned(); heads.len()]));
    for tail in tails {
        let mut cells = vec![
            tail.id.clone(),
            tail.threads.to_string(),
            crate::stats::digits(tail.rate),
        ];
        for share in [0.5, 0.99, 0.999, 0.9999] {
            cells.push(span(tail.latency.value_at_quantile(share)));
        }
        cells.push(crate::stats::digits(long(&tail.latency)));
        cells.push(span(tail.latency.max()));
        text.push_str(&crate::table::line(&cells));
    }
    text
}

/// Returns how many operations of a million took longer than a millisecond.
fn long(latency: &Histogram<u64>) -> f64 {
    let over = latency.count_between(1_000_000, u64::MAX);
    over as f64 * 1e6 / (latency.len() as f64).max(1.0)
}

/// Returns nanoseconds in the unit that suits.
fn span(nanos: u64) -> String {
    let nanos = nanos as f64;
    match nanos {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{} us", crate::stats::digits(n / 1e3)),
        n => format!("{} ms", crate::stats::digits(n / 1e6)),
    }
}
