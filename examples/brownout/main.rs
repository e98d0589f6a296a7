//! How long a service takes to recover from a brown-out, and what the loops around its clients add
//! to it.
//!
//! A client library, a gateway and an SDK each retry: three loops, one inside the other, of 4, 3
//! and 4 attempts. The service can do 100 requests a second and gets 80 or 95, each with a timeout
//! of a second. For 30 s it can do 50. It works off requests in order, also those whose client has
//! gone, and refuses with a 503 what finds 40 waiting, which costs it a tenth of a request.
//!
//! ```text
//! cargo run --release -p paceline-examples --bin brownout
//! ```
//!
//! Time is virtual: the same seed gives the same numbers on any machine.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_precision_loss,
    clippy::float_arithmetic,
    reason = "an example: its numbers are small"
)]
#![allow(
    clippy::large_futures,
    reason = "three loops in each other are what is played"
)]

extern crate alloc;

#[path = "../common/mod.rs"]
mod common;

use alloc::{collections::VecDeque, sync::Arc};
use core::{mem, time::Duration};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::run::TaskClock;
use paceline::{
    Failure, Operation, RetryStrategyExt, Standard,
    backoff::{BackoffStrategy, ExponentialBackoff, Random, SeededRandom},
    classify::ServiceUnavailable,
    config::SettingsError,
    operation::RunError,
};
use tokio::{
    sync::{Notify, oneshot},
    task::{JoinSet, LocalSet},
    time::{Instant, interval, sleep, sleep_until, timeout},
};

const SECOND: Duration = Duration::from_secs(1);
/// How long a client waits for the answer to one send.
const PATIENCE: Duration = SECOND;
/// What comes in a second: with room to spare, and with little.
const OFFERED: [u32; 2] = [80, 95];
/// What the service can do in a second, and what it can do in the brown-out.
const CAN: u32 = 100;
const CAN_IN_BROWN_OUT: u32 = 50;
/// The brown-out, and the end of the play, in seconds.
const BEGIN: u64 = 30;
const END: u64 = 60;
/// The requests that may wait in the service.
const ROOM: usize = 40;
/// A refusal costs a tenth of a request.
const REFUSAL: u32 = 10;
/// The attempts of the three loops, the outermost first.
const STACK: [u32; 3] = [4, 3, 4];

fn main() -> Result<(), SettingsError> {
    println!(
        "| requests a second | loops | sends of one request in the brown-out | most sends in a second \
         | requests served in the brown-out | recovers after |\n|---|---|---|---|---|---|"
    );
    for offered in OFFERED {
        for (loops, name) in LOOPS {
            let played = (1..=5).map(|seed| play(loops, offered, seed, 180));
            println!(
                "| {offered} | {name} | {}",
                row(&played.collect::<Result<Vec<_>, _>>()?)
            );
        }
    }
    Ok(())
}

/// What stands around a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loops {
    None,
    /// One of four attempts, with backoff and jitter, and nothing else.
    OnePlain,
    /// Three loops with backoff and jitter, and nothing else.
    Plain,
    /// Three of paceline's, of which the outer two say that they are composite.
    Unmarked,
    /// Three of paceline's.
    Marked,
}

const LOOPS: [(Loops, &str); 5] = [
    (Loops::None, "none"),
    (Loops::OnePlain, "one plain one, of 4 attempts"),
    (Loops::Plain, "three plain ones"),
    (
        Loops::Unmarked,
        "three of paceline's without the mark (composite)",
    ),
    (Loops::Marked, "three of paceline's"),
];

/// What came of a play.
#[derive(Clone, Debug, Default)]
struct Played {
    /// Sends of one request in the brown-out.
    sends: f64,
    most: u64,
    /// The share of the requests of the brown-out that were answered well.
    good: f64,
    /// The time from the end of the brown-out to the last request that failed, or took longer than
    /// a send may. `None` if they did not end.
    recovered: Option<Duration>,
}

fn play(loops: Loops, offered: u32, seed: u64, seconds: u64) -> Result<Played, SettingsError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = runtime.expect("a runtime without drivers but time");
    let play = async { Ok(played(Stack::new(loops, seed)?, offered, seconds).await) };
    runtime.block_on(LocalSet::new().run_until(play))
}

async fn played(stack: Stack, offered: u32, seconds: u64) -> Played {
    let stack = Arc::new(stack);
    let service = Service::start();
    let begun = Instant::now();
    let mut requests = JoinSet::new();
    let mut ticks = interval(SECOND / offered);
    while begun.elapsed().as_secs() < seconds {
        ticks.tick().await;
        let (stack, service) = (stack.clone(), service.clone());
        requests.spawn_local(async move {
            let (at, sent) = (begun.elapsed(), Instant::now());
            let result = stack.request(&service).await;
            (at, result.is_ok(), sent.elapsed() <= PATIENCE)
        });
    }
    let ended: Vec<_> = requests.join_all().await;
    let in_it = |at: u64| (BEGIN..END).contains(&at);
    let asked = ended.iter().filter(|one| in_it(one.0.as_secs()));
    let (count, good) = (asked.clone().count(), asked.filter(|one| one.1).count());
    let bad = ended.iter().filter(|one| !one.1 || !one.2);
    let last_bad = bad.map(|one| one.0).max().unwrap_or_default();
    let sends = &service.work().sends;
    let sent = sends.iter().zip(0..).filter(|(_, at)| in_it(*at));
    let sent: u64 = sent.map(|(sends, _)| sends).sum();
    Played {
        sends: sent as f64 / count as f64,
        most: sends.iter().copied().max().unwrap_or_default(),
        good: good as f64 / count as f64,
        // The last requests of the play have no later ones to be judged by.
        recovered: (last_bad.as_secs() + 5 < seconds)
            .then(|| last_bad.saturating_sub(Duration::from_secs(END))),
    }
}

/// The service: works off what waits, one after the other.
struct Service {
    work: Mutex<Work>,
    arrived: Notify,
    begun: Instant,
}

#[derive(Default)]
struct Work {
    waiting: VecDeque<oneshot::Sender<()>>,
    refusals: u32,
    /// In each second.
    sends: Vec<u64>,
}

impl Service {
    fn start() -> Arc<Self> {
        let service = Arc::new(Self {
            work: Mutex::default(),
            arrived: Notify::new(),
            begun: Instant::now(),
        });
        let weak = Arc::downgrade(&service);
        tokio::spawn(async move {
            while let Some(service) = weak.upgrade() {
                service.step().await;
            }
        });
        service
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does one piece of work, or waits for one.
    async fn step(&self) {
        let in_brown_out = (BEGIN..END).contains(&self.begun.elapsed().as_secs());
        let each = SECOND / if in_brown_out { CAN_IN_BROWN_OUT } else { CAN };
        let take = |mut work: MutexGuard<'_, Work>| {
            (work.waiting.pop_front(), mem::take(&mut work.refusals))
        };
        let (next, refusals) = take(self.work());
        if next.is_none() && refusals == 0 {
            // A timer, so that a service that nothing holds any more ends.
            let _more = timeout(SECOND, self.arrived.notified()).await;
            return;
        }
        let work = each * refusals / REFUSAL + each * u32::from(next.is_some());
        sleep_until(Instant::now() + work).await;
        if let Some(next) = next {
            let _gone = next.send(());
        }
    }

    /// Sends one request.
    async fn send(&self) -> Result<(), Failure> {
        let (done, answer) = oneshot::channel();
        {
            let mut work = self.work();
            let second = usize::try_from(self.begun.elapsed().as_secs()).unwrap_or_default();
            if work.sends.len() <= second {
                work.sends.resize(second + 1, 0);
            }
            work.sends[second] += 1;
            if work.waiting.len() >= ROOM {
                work.refusals += 1;
                self.arrived.notify_one();
                let busy = ServiceUnavailable::Overloaded;
                return Err(Failure::from_http_status(503, busy));
            }
            work.waiting.push_back(done);
        }
        self.arrived.notify_one();
        match timeout(PATIENCE, answer).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Failure::timeout()),
        }
    }
}

/// Three loops, the outermost first.
struct Stack {
    loops: Loops,
    strategies: [Standard; 3],
    random: SeededRandom,
}

impl Stack {
    fn new(loops: Loops, seed: u64) -> Result<Self, SettingsError> {
        let strategy = |n: usize| {
            let random = Arc::new(SeededRandom::new(seed * 10 + n as u64));
            let builder = Standard::builder().clock(Arc::new(TaskClock::start()));
            builder.max_attempts(STACK[n]).random(random).build()
        };
        Ok(Self {
            loops,
            strategies: [strategy(0)?, strategy(1)?, strategy(2)?],
            random: SeededRandom::new(seed),
        })
    }

    async fn request(&self, service: &Service) -> Result<(), Failure> {
        match self.loops {
            Loops::None => service.send().await,
            Loops::OnePlain => self.plain(STACK[0], async || service.send().await).await,
            Loops::Plain => {
                let [outer, middle, inner] = STACK;
                let inner = async || self.plain(inner, async || service.send().await).await;
                let middle = async || self.plain(middle, &inner).await;
                self.plain(outer, middle).await
            }
            Loops::Unmarked | Loops::Marked => {
                let [outer, middle, inner] = &self.strategies;
                let last = |stopped: RunError<Failure>| {
                    stopped.into_error_or_else(|_| Failure::not_retryable())
                };
                let operation = |strategy| match self.loops {
                    Loops::Unmarked => Operation::new(strategy).composite(),
                    _ => Operation::new(strategy),
                };
                let inner = async || inner.run_async(async |_| service.send().await).await;
                let middle = async |_| {
                    let send = async |_| inner().await.map_err(last);
                    operation(middle).run_async(send).await.map_err(last)
                };
                operation(outer).run_async(middle).await.map_err(last)
            }
        }
    }

    /// The loop that is written most: it backs off, twice as long each time, with jitter.
    async fn plain(
        &self,
        attempts: u32,
        send: impl AsyncFn() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let backoff = ExponentialBackoff::new(SECOND / 10, 20 * SECOND);
        let mut made = 1;
        loop {
            let result = send().await;
            if result.is_ok() || made == attempts {
                return result;
            }
            sleep(backoff.delay(made, false, self.random.next_u64())).await;
            made += 1;
        }
    }
}

/// Returns the cells of a row: the median of the seeds.
fn row(played: &[Played]) -> String {
    let middle = |of: fn(&Played) -> f64| {
        let mut all: Vec<_> = played.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let (sends, most) = (middle(|one| one.sends), middle(|one| one.most as f64));
    let good = 100.0 * middle(|one| one.good);
    let recovered = match middle(|one| {
        one.recovered
            .map_or(f64::INFINITY, |span| span.as_secs_f64())
    }) {
        f64::INFINITY => "not within two minutes".to_owned(),
        seconds => format!("{seconds:.1} s"),
    };
    format!("{sends:.2} | {most:.0} | {good:.0} % | {recovered} |")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_loop_of_three_lets_a_service_recover() {
        let played = |loops| play(loops, 80, 1, 70).expect("the settings are in range");
        let [plain, unmarked, marked] = [Loops::Plain, Loops::Unmarked, Loops::Marked].map(played);
        assert_eq!(plain.recovered, None);
        assert!(marked.recovered <= Some(SECOND), "{marked:?}");
        // Each loop pays from its quota; with the mark only one may send again.
        assert!(marked.sends < 1.25, "{marked:?}");
        assert!(unmarked.sends > 1.4, "{unmarked:?}");
        assert!(plain.sends > 30.0, "{plain:?}");
        assert!(plain.good < unmarked.good && unmarked.good < marked.good);
    }
}
