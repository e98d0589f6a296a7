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
    /// Operations per microsecond, of all threads, in the slices in which all of them were at work.
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
                    let mut count = 0;
                    Work::of(&mut runner, times, || {
                        count += 1;
                        if count == slices {
                            done.come();
                        }
                        // Until the last one is done too: no thread is measured alone.
                        count < slices || !done.is_reached(threads)
                    })
                })
            })
            .collect();
        let works = workers.into_iter().map(thread::ScopedJoinHandle::join);
        works
            .map(|work| work.expect("no operation panics"))
            .collect::<Vec<_>>()
    });
    let share: f64 = works.iter().map(|work| work.granted).sum();
    let timelines: Vec<_> = works.iter().map(|work| work.timeline.clone()).collect();
    let totals = totals(&timelines);
    // Where threads hardly ever ran at the same time there is nothing to be said of them together.
    let together = totals.len() >= slices as usize * threads / 2;
    Sample {
        rate: if together { median(totals) } else { 0.0 },
        granted: share / works.len() as f64,
        disturbed: !together || works.iter().any(|work| work.is_disturbed(threads)),
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

/// When a thread was done with each of its slices, all of `times` operations.
#[derive(Clone, Debug)]
struct Timeline {
    times: u64,
    /// The beginning of the first slice, and the end of each.
    marks: Vec<Instant>,
}

impl Timeline {
    /// Returns how many operations were done between two moments: of a slice the part of its
    /// length.
    fn done(&self, from: Instant, to: Instant) -> f64 {
        // Slices that end before `from` have no part in it.
        let first = self.marks.partition_point(|mark| *mark <= from);
        let slices = self.marks.windows(2).skip(first.saturating_sub(1));
        let parts = slices.take_while(|slice| slice[0] < to).map(|slice| {
            let part = to
                .min(slice[1])
                .saturating_duration_since(from.max(slice[0]));
            let length = slice[1].duration_since(slice[0]).as_secs_f64();
            part.as_secs_f64() / length.max(f64::MIN_POSITIVE)
        });
        parts.sum::<f64>() * self.times as f64
    }
}

/// Returns the operations per microsecond of all threads, in each slice of any of them that lies in
/// the time in which all were at work.
///
/// What the others did meanwhile is counted with it: threads that take turns, as those that sleep
/// for a mutex do, each have fast slices and together do no more than one.
fn totals(timelines: &[Timeline]) -> Vec<f64> {
    let began = timelines.iter().filter_map(|line| line.marks.first()).max();
    let ended = timelines.iter().filter_map(|line| line.marks.last()).min();
    let (Some(&began), Some(&ended)) = (began, ended) else {
        return Vec::new();
    };
    let slices = timelines.iter().flat_map(|line| line.marks.windows(2));
    slices
        .filter(|slice| began <= slice[0] && slice[0] < slice[1] && slice[1] <= ended)
        .map(|slice| {
            let done = |line: &Timeline| line.done(slice[0], slice[1]);
            let micros = slice[1].duration_since(slice[0]).as_secs_f64() * 1e6;
            timelines.iter().map(done).sum::<f64>() / micros
        })
        .collect()
}

/// The most slices of a thread that are noted: while it waits for a slow one it goes on.
const MOST: usize = 4_096;

/// What one thread did.
struct Work {
    timeline: Timeline,
    granted: f64,
    /// The share of the time that the thread was ready to run and did not.
    waited: f64,
    /// How often it yielded its core, as a thread that waits for a mutex does.
    slept: u64,
    /// The mean slice over the median one.
    uneven: f64,
}

impl Work {
    /// Does slices of `times` operations as long as `goes_on` says so after each.
    fn of(runner: &mut Runner, times: u64, mut goes_on: impl FnMut() -> bool) -> Self {
        let (delay, sleeps) = (run_delay(), sleeps());
        let mut marks = Vec::with_capacity(MOST);
        let (mut slices, mut granted) = (0_u32, 0);
        marks.push(Instant::now());
        loop {
            granted += runner(times);
            slices += 1;
            if marks.len() < MOST {
                marks.push(Instant::now());
            }
            if !goes_on() {
                break;
            }
        }
        let waited = run_delay().saturating_sub(delay).as_secs_f64();
        let waited = waited / marks[0].elapsed().as_secs_f64();
        let lengths = marks.windows(2).map(|slice| slice[1] - slice[0]);
        let lengths: Vec<f64> = lengths.map(|length| length.as_secs_f64()).collect();
        let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
        Self {
            timeline: Timeline { times, marks },
            granted: granted as f64 / (times as f64 * f64::from(slices)),
            waited,
            slept: self::sleeps().saturating_sub(sleeps),
            uneven: mean / median(lengths),
        }
    }

    /// Whether others had the core: for a hundredth of the time as the system counts, or by the
    /// lengths of slices, which show when the host was busy: of a thread alone for a quarter of the
    /// time, of one that meets others, so that its slices are uneven anyway, for more than half.
    /// One that sleeps waits a little whenever it wakes up.
    fn is_disturbed(&self, threads: usize) -> bool {
        let most = if threads == 1 { 1.25 } else { 2.5 };
        self.waited > if self.slept > 0 { 0.1 } else { 0.01 }
            || (self.uneven > most && (threads == 1 || self.slept == 0))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The totals of two threads whose slices of 1,000 operations end at these microseconds.
    fn totals_of(marks: [&[u64]; 2]) -> Vec<f64> {
        let zero = Instant::now();
        let timelines = marks.map(|marks| Timeline {
            times: 1_000,
            marks: marks
                .iter()
                .map(|mark| zero + Duration::from_micros(*mark))
                .collect(),
        });
        totals(&timelines).into_iter().map(f64::round).collect()
    }

    #[test]
    fn threads_at_work_at_the_same_time_add_up() {
        let totals = totals_of([&[0, 10, 20, 30], &[5, 15, 25, 35]]);
        assert_eq!(totals, [200.0; 4], "in [5, 30]");
    }

    #[test]
    fn threads_that_take_turns_do_what_one_does() {
        // Each sleeps while the other one has the mutex, and is as fast as alone then.
        let first: &[u64] = &[0, 10, 20, 30, 140, 150, 160];
        let second: &[u64] = &[0, 100, 110, 120, 130, 200];
        let totals = totals_of([first, second]);
        assert!(totals.iter().all(|total| *total < 125.0), "{totals:?}");
    }

    #[test]
    fn slices_outside_of_the_common_time_do_not_count() {
        assert!(totals_of([&[0, 10, 20], &[20, 30, 40]]).is_empty());
        assert_eq!(totals_of([&[0, 10, 20], &[10, 20, 30]]), [200.0, 200.0]);
    }
}
