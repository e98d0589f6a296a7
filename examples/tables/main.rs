//! A client of three tables, of which one is hot: each has its state, and the hot one slows no
//! other.
//!
//! Every table is throttled separately, as DynamoDB's are. `clicks` is asked for far more than it
//! allows; `orders` and `users` for less. First all calls go by one limiter, as by an SDK's client,
//! and wait in one line; then by `Scopes`, in a line for each table. Prints a table for both, and
//! fails if with scopes a call of a cold table had to wait.
//!
//! ```text
//! cargo run --release -p paceline-examples --bin tables
//! ```

use core::{
    error::Error,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    time::Duration,
};
use std::{process::ExitCode, thread, time::Instant};

use paceline::{
    Adaptive, Clock, Failure, MonotonicClock, RetryStrategy, RetryStrategyExt, SendLimiter,
    SendRate,
    law::{PacedSettings, PacedSettingsError},
};

const SECOND: Duration = Duration::from_secs(1);
/// For how long each client is at work.
const SPAN: Duration = Duration::from_secs(3);
/// The threads that call one table.
const THREADS: u32 = 8;
/// The name, what is allowed in a second, and how long a thread pauses after a call.
const TABLES: [(&str, u32, Duration); 3] = [
    ("eu-west-1/clicks", 50, Duration::ZERO),
    ("eu-west-1/orders", 1_000, Duration::from_millis(20)),
    ("eu-west-1/users", 1_500, Duration::from_millis(20)),
];

/// Stands for a table elsewhere: it answers in 2 ms, and refuses what is above its limit.
#[derive(Debug)]
struct Table {
    name: &'static str,
    limit: SendRate,
    pause: Duration,
    done: AtomicU32,
    throttled: AtomicU32,
    /// The longest operation, in milliseconds.
    longest: AtomicU64,
}

impl Table {
    fn all() -> Result<Vec<Self>, PacedSettingsError> {
        let tables = TABLES.into_iter().map(|(name, allowed, pause)| {
            let allowed = PacedSettings::fixed(allowed, SECOND)?;
            Ok(Self {
                name,
                limit: SendRate::paced(allowed, MonotonicClock::new().now()),
                pause,
                done: AtomicU32::new(0),
                throttled: AtomicU32::new(0),
                longest: AtomicU64::new(0),
            })
        });
        tables.collect()
    }

    fn call(&self) -> Result<(), Failure> {
        thread::sleep(Duration::from_millis(2));
        let allowed = SendLimiter::new(&self.limit).token().try_acquire();
        let refused = u32::from(allowed.is_err());
        self.throttled.fetch_add(refused, Relaxed);
        allowed.map(drop).map_err(|_| Failure::throttling())
    }

    fn work(&self, strategy: &impl RetryStrategy) {
        let began = Instant::now();
        while began.elapsed() < SPAN {
            let asked = Instant::now();
            let done = strategy.operation().scope(self.name).run(|_| self.call());
            self.done.fetch_add(u32::from(done.is_ok()), Relaxed);
            let took = u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.longest.fetch_max(took, Relaxed);
            thread::sleep(self.pause);
        }
    }
}

/// Lets a client work on new tables by `strategy`, and prints the result.
fn play(title: &str, strategy: &impl RetryStrategy) -> Result<Vec<Table>, PacedSettingsError> {
    let tables = Table::all()?;
    thread::scope(|scope| {
        for table in &tables {
            (0..THREADS).for_each(|_| drop(scope.spawn(|| table.work(strategy))));
        }
    });
    println!(
        "{title:<20} {:>6} {:>10} {:>12}",
        "done", "throttled", "longest, ms"
    );
    for table in &tables {
        let [done, throttled] = [&table.done, &table.throttled].map(|count| count.load(Relaxed));
        let longest = table.longest.load(Relaxed);
        println!("{:<20} {done:>6} {throttled:>10} {longest:>12}", table.name);
    }
    Ok(tables)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let template = Adaptive::builder().dynamodb().paced(PacedSettings::new());
    play("one limiter", &template.clone().build()?)?;
    let scopes = template.scopes().build()?;
    let tables = play("a scope for each", &scopes)?;

    let mut kept = true;
    for table in &tables {
        let counts = scopes.get(table.name)?.snapshot().counts;
        let hot = table.pause.is_zero();
        println!("{:<20} {:>6} waited", table.name, counts.delayed);
        // The cold ones go on as if they were alone.
        kept &= hot == (counts.delayed > 0) && hot == (counts.throttled > 0);
        kept &= table.done.load(Relaxed) > 0;
    }
    Ok(if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
