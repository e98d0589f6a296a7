//! Threads that do the same operation at once, timed in short slices.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use core::time::Duration;
use std::time::Instant;
use std::{fs, thread};

use core_affinity::CoreId;

use crate::case::{Runner, Seat, Stage};
use crate::stats::median;

/// How much is measured at once.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Slices for each thread.
    pub slices: u32,
    /// The length of a slice on an idle machine.
    pub length: Duration,
}

/// What threads did together.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Operations per microsecond, of all threads.
    pub rate: f64,
    /// The share that was granted.
    pub granted: f64,
    /// Whether a thread was without its core though it wanted one.
    pub disturbed: bool,
}

/// Where threads wait for each other, spinning: they go on at the same moment.
#[derive(Debug, Default)]
pub(crate) struct Barrier(AtomicUsize);

impl Barrier {
    /// Waits until `all` have come.
    pub(crate) fn wait(&self, all: usize) {
        self.0.fetch_add(1, SeqCst);
        let mut laps = 0_u32;
        while !self.is_reached(all) {
            laps = laps.saturating_add(1);
            if laps > 1_000 {
                thread::yield_now();
            }
            spin_loop();
        }
    }

    fn come(&self) {
        self.0.fetch_add(1, SeqCst);
    }

    fn is_reached(&self, all: usize) -> bool {
        self.0.load(SeqCst) >= all
    }
}

/// Gives each thread of `seats` the core of its number, where there is one and the system lets it.
pub(crate) fn pin(cores: &[CoreId], seat: Seat) {
    if seat.threads <= cores.len() {
        core_affinity::set_for_current(cores[seat.thread]);
    }
}

/// Returns the cores that there are.
#[must_use]
pub fn cores() -> Vec<CoreId> {
    core_affinity::get_core_ids().unwrap_or_default()
}

/// Returns how many operations take about `length` on one thread.
#[must_use]
pub fn calibrate(stage: &Stage, length: Duration) -> u64 {
    let mut runner = stage(Seat {
        thread: 0,
        threads: 1,
    });
    let mut times = 16;
    loop {
        let began = Instant::now();
        runner(times);
        if began.elapsed() >= length || times > 1 << 30 {
            let per = began.elapsed().as_nanos().max(1);
            let fit = u128::from(times) * length.as_nanos() / per;
            return u64::try_from(fit).unwrap_or(times).max(16);
        }
        times *= 2;
    }
}

/// Lets `threads` threads do slices of `times` operations each, all at once.
///
/// # Panics
///
/// If an operation does.
#[must_use]
pub fn measure(stage: &Stage, threads: usize, times: u64, slices: u32, cores: &[CoreId]) -> Sample {
    let start = Barrier::default();
    let done = Barrier::default();
    let works = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let seat = Seat { thread, threads };
                let (start, done) = (&start, &done);
                scope.spawn(move || {
                    pin(cores, seat);
                    let mut runner = stage(seat);
                    runner(times); // warms up, and gets past what happens once a thread
                    start.wait(threads);
                    let work = Work::of(&mut runner, times, slices);
                    // Until the last one is done too: no thread is measured alone.
                    done.come();
                    while !done.is_reached(threads) {
                        runner(times / 8 + 1);
                    }
                    work
                })
            })
            .collect();
        let works = workers.into_iter().map(thread::ScopedJoinHandle::join);
        works
            .map(|work| work.expect("no operation panics"))
            .collect::<Vec<_>>()
    });
    let share: f64 = works.iter().map(|work| work.granted).sum();
    Sample {
        rate: works.iter().map(|work| work.rate).sum(),
        granted: share / works.len() as f64,
        disturbed: works.iter().any(|work| work.is_disturbed(threads)),
    }
}

/// Lets `threads` threads do `times` operations each, all at once, and returns how long the slowest
/// took.
///
/// # Panics
///
/// If an operation does.
#[must_use]
pub fn together(stage: &Stage, threads: usize, times: u64, cores: &[CoreId]) -> Duration {
    let start = Barrier::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let seat = Seat { thread, threads };
                let start = &start;
                scope.spawn(move || {
                    pin(cores, seat);
                    let mut runner = stage(seat);
                    runner(16);
                    start.wait(threads);
                    let began = Instant::now();
                    runner(times);
                    began.elapsed()
                })
            })
            .collect();
        let times = workers.into_iter().map(thread::ScopedJoinHandle::join);
        let times = times.map(|time| time.expect("no operation panics"));
        times.max().unwrap_or_default()
    })
}

/// What one thread did.
struct Work {
    /// Operations per microsecond, in its median slice.
    rate: f64,
    granted: f64,
    /// The share of the time that the thread was ready to run and did not.
    waited: f64,
    /// How often it yielded its core, as a thread that waits for a mutex does.
    slept: u64,
    /// The mean slice over the median one.
    uneven: f64,
}

impl Work {
    fn of(runner: &mut Runner, times: u64, slices: u32) -> Self {
        let (delay, sleeps) = (run_delay(), sleeps());
        let began = Instant::now();
        let mut granted = 0;
        let lengths = (0..slices).map(|_| {
            let began = Instant::now();
            granted += runner(times);
            began.elapsed().as_nanos() as f64
        });
        let lengths: Vec<f64> = lengths.collect();
        let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
        let length = median(lengths);
        let waited = run_delay().saturating_sub(delay).as_secs_f64();
        let waited = waited / began.elapsed().as_secs_f64();
        Self {
            rate: times as f64 * 1e3 / length,
            granted: granted as f64 / (times as f64 * f64::from(slices)),
            waited,
            slept: self::sleeps().saturating_sub(sleeps),
            uneven: mean / length,
        }
    }

    /// Whether others had the core: for a hundredth of the time as the system counts, or of a thread
    /// alone for a quarter by the lengths of slices, which show when the host was busy. Threads that
    /// meet have uneven slices anyway, and one that sleeps waits a little whenever it wakes up.
    fn is_disturbed(&self, threads: usize) -> bool {
        self.waited > if self.slept > 0 { 0.1 } else { 0.01 }
            || (self.uneven > 1.25 && threads == 1)
    }
}

/// Returns for how long this thread has waited for a core, or zero where the system does not say.
fn run_delay() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Returns how often this thread has gone to sleep, or zero where the system does not say.
fn sleeps() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let mut lines = text.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}
