//! A pool of threads that share one retry strategy, and block for it.
//!
//! Sixteen threads take jobs from a queue; each job is a call of a service that allows 200 a
//! second, refuses what is above that, and fails now and then for other reasons. All threads go by
//! one `Adaptive`: each waits parked for its turn to send, and pays for its retries from the one
//! quota. Prints a table, and fails unless each job was done exactly once, or has failed and was
//! counted so.
//!
//! ```text
//! cargo run --release --example thread_pool
//! ```

use core::{
    error::Error,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};
use std::{process::ExitCode, sync::mpsc, thread, time::Instant};

use paceline::{
    Adaptive, Clock, Failure, MonotonicClock, RetryStrategyExt, SendLimiter, SendRate,
    law::{PacedSettings, PacedSettingsError},
};

const THREADS: usize = 16;
/// How long a job may take, with all its retries.
const PATIENCE: Duration = Duration::from_secs(30);
const JOBS: usize = 600;
const SECOND: Duration = Duration::from_secs(1);
/// What the service allows in a second.
const ALLOWED: u32 = 200;

/// Stands for a service elsewhere: it answers in 5 ms.
#[derive(Debug)]
struct Service {
    limit: SendRate,
    calls: AtomicU32,
    throttled: AtomicU32,
    /// How often each job was done.
    done: Vec<AtomicU32>,
}

impl Service {
    fn new() -> Result<Self, PacedSettingsError> {
        let allowed = PacedSettings::fixed(ALLOWED, SECOND)?;
        Ok(Self {
            limit: SendRate::paced(allowed, MonotonicClock::new().now()),
            calls: AtomicU32::new(0),
            throttled: AtomicU32::new(0),
            done: (0..JOBS).map(|_| AtomicU32::new(0)).collect(),
        })
    }

    fn call(&self, job: usize) -> Result<(), Failure> {
        thread::sleep(Duration::from_millis(5));
        let call = self.calls.fetch_add(1, Relaxed);
        if SendLimiter::new(&self.limit).token().try_acquire().is_err() {
            self.throttled.fetch_add(1, Relaxed);
            return Err(Failure::throttling());
        }
        if call % 50 == 0 {
            return Err(Failure::transient());
        }
        self.done[job].fetch_add(1, Relaxed);
        Ok(())
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let service = Service::new()?;
    // More sends than usual: a late result harms nothing here.
    let strategy = Adaptive::builder()
        .paced(PacedSettings::new())
        .max_attempts(8)
        .build()?;
    let (queue, jobs) = mpsc::channel();
    (0..JOBS).try_for_each(|job| queue.send(job))?;
    drop(queue);

    let began = Instant::now();
    let jobs = std::sync::Mutex::new(jobs);
    let failed = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                // The queue's lock is let go before the job begins.
                let next = || jobs.lock().ok()?.try_recv().ok();
                while let Some(job) = next() {
                    let done = strategy
                        .operation()
                        .deadline(PATIENCE)
                        .run(|_| service.call(job));
                    failed.fetch_add(u32::from(done.is_err()), Relaxed);
                }
            });
        }
    });

    let once = service
        .done
        .iter()
        .filter(|done| done.load(Relaxed) == 1)
        .count();
    let (calls, throttled) = (service.calls.into_inner(), service.throttled.into_inner());
    println!("jobs done once    {once:>6} of {JOBS}");
    println!("jobs failed       {:>6}", failed.load(Relaxed));
    println!("calls             {calls:>6}");
    println!("throttled         {throttled:>6}");
    println!("seconds           {:>6.2}", began.elapsed().as_secs_f64());
    println!(
        "quota left        {:>6} of {}",
        strategy.quota().available(),
        strategy.quota().capacity()
    );
    // A failed job was reported to its caller; no job may be lost without a report.
    let told = usize::try_from(failed.into_inner())?;
    let all = once.saturating_add(told) == JOBS && told < JOBS / 20;
    Ok(if all {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
