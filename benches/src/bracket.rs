//! What is measured beside everything, to know whether the machine can be believed at that moment.

use alloc::sync::Arc;
use core::hint::{black_box, spin_loop};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use core_affinity::CoreId;
use crossbeam_utils::CachePadded;

use crate::case::{Seat, Stage, plain};
use crate::pool::{calibrate, measure, pin};

/// What an empty loop has to scale to on two threads.
pub const LEAST: f64 = 1.8;

const SLICES: u32 = 7;

/// An arithmetic loop that shares nothing: two cores do twice of it, unless something else is at
/// work.
pub struct Bracket {
    stage: Stage,
    times: u64,
    cores: Vec<CoreId>,
}

impl core::fmt::Debug for Bracket {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Bracket").finish_non_exhaustive()
    }
}

impl Bracket {
    /// Prepares the loop.
    #[must_use]
    pub fn new(cores: Vec<CoreId>) -> Self {
        let stage = plain((), |()| {
            black_box(0);
            true
        });
        let times = calibrate(&stage, Duration::from_micros(30));
        Self {
            stage,
            times,
            cores,
        }
    }

    /// Returns how many times as much two threads do as one.
    #[must_use]
    pub fn scaling(&self) -> f64 {
        let [one, two] = [1, 2]
            .map(|threads| measure(&self.stage, threads, self.times, SLICES, &self.cores).rate);
        two / one
    }
}

/// Returns the nanoseconds that a cache line takes from one core to another, and back halved: the
/// median of rounds. It means nothing while something else is at work.
#[must_use]
pub fn line_transfer(cores: &[CoreId]) -> f64 {
    const LAPS: u64 = 2_000;
    let line = Arc::new(CachePadded::new(AtomicU64::new(0)));
    let worker = |thread: u64| {
        let line = Arc::clone(&line);
        let cores = cores.to_vec();
        move || {
            pin(
                &cores,
                Seat {
                    thread: usize::try_from(thread).unwrap_or(0),
                    threads: 2,
                },
            );
            let mut rounds = Vec::new();
            for round in 0..9 {
                let began = Instant::now();
                for lap in 0..LAPS {
                    let turn = (round * LAPS + lap) * 2 + thread;
                    while line.load(Relaxed) != turn {
                        spin_loop();
                    }
                    line.store(turn + 1, Relaxed);
                }
                rounds.push(began.elapsed().as_nanos() as f64 / (2 * LAPS) as f64);
            }
            crate::stats::median(rounds)
        }
    };
    let other = thread::spawn(worker(1));
    let mine = thread::spawn(worker(0));
    let _ = other.join();
    mine.join().unwrap_or(f64::NAN)
}
