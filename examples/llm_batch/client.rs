//! The client: one of the limiters, and the same retries with each.

use alloc::sync::Arc;
use core::{
    num::NonZeroU32,
    ops::Add,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use fastrand::Rng;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::StatusCode;
use paceline::{
    Class, Clock, ControlLaw, Outcome, SendLimiter, SendPermit, SendRate, SendSet,
    classify::{HeaderLimits, HttpResponseParts},
    law::{DeclaredSettings, Dimension, PacedSettings, Spend},
    set::SetPermit,
};
use tokio::time::Instant;

use crate::{
    run::{self, Failure, TaskClock},
    service::Reply,
    settings::{Limits, Mode},
    tally::Counts,
    transport::Transport,
    workload::Job,
};

/// How often a request is sent.
const SENDS: u32 = 6;

/// A client's limiter.
#[derive(Debug)]
enum Limiter {
    None,
    Fixed(DefaultDirectRateLimiter),
    Requests(SendLimiter<Arc<SendRate>, TaskClock>),
    Set(SendLimiter<SendSet<Arc<SendRate>, 2>, TaskClock>, TaskClock),
}

/// What a request was let go with.
#[derive(Clone, Copy, Debug)]
enum Permit {
    None,
    Request(SendPermit),
    Set(SetPermit<2>),
}

impl Limiter {
    fn new(mode: Mode, limits: &Limits) -> Self {
        let clock = TaskClock::start();
        let start = clock.now();
        let paced = || Arc::new(SendRate::new(ControlLaw::Paced, start));
        // The bucket has to hold the heaviest request: a quarter of a minute holds 40,000 tokens.
        let heavy = || {
            let settings = PacedSettings::new().to_builder();
            let settings = settings
                .burst(limits.minute / 4)
                .build()
                .unwrap_or(PacedSettings::new());
            Arc::new(SendRate::paced(settings, start))
        };
        let declared = |dimension| {
            let settings = DeclaredSettings::new().dimension(dimension);
            let settings = match mode {
                Mode::Classes => settings.spend(Spend::Fast),
                _ => settings,
            };
            Arc::new(SendRate::declared(settings, start))
        };
        match mode {
            Mode::None | Mode::Backoff => Self::None,
            Mode::Governor => {
                let burst = NonZeroU32::new(limits.requests).unwrap_or(NonZeroU32::MIN);
                let each = limits.minute.checked_div(burst.get()).unwrap_or_default();
                let quota = Quota::with_period(each).unwrap_or(Quota::per_second(burst));
                Self::Fixed(RateLimiter::direct(quota.allow_burst(burst)))
            }
            Mode::Paced => Self::Requests(SendLimiter::new(paced()).clock(clock)),
            Mode::PacedSet => {
                let set = SendSet::new([paced(), heavy()]);
                Self::Set(SendLimiter::new(set).clock(clock), clock)
            }
            Mode::Declared | Mode::Classes => {
                let set = [Dimension::Requests, Dimension::Tokens].map(declared);
                Self::Set(SendLimiter::new(SendSet::new(set)).clock(clock), clock)
            }
        }
    }

    /// Waits for the turn of a request. Without a deadline it is never refused.
    async fn turn(&self, job: Job, class: Class) -> Permit {
        match self {
            Self::None => Permit::None,
            Self::Fixed(limiter) => {
                limiter.until_ready().await;
                Permit::None
            }
            Self::Requests(limiter) => loop {
                if let Ok(permit) = limiter.token().acquire().await {
                    return Permit::Request(permit);
                }
            },
            Self::Set(limiter, _) => {
                let mut weight = job.estimate;
                loop {
                    let tokens = limiter.tokens([1, weight]).class(class);
                    if let Ok(permit) = tokens.acquire().await {
                        return Permit::Set(permit);
                    }
                    // At today's rate the bucket never holds as much: it takes what it can.
                    weight = (weight / 2).max(1);
                }
            }
        }
    }

    /// Tells the limiter what came back: the headers first, then the true cost and the outcome.
    fn heard(&self, permit: Permit, reply: &Reply) {
        let parts = HttpResponseParts::new(reply.status, &reply.headers);
        let outcome = match (reply.status, hint(reply)) {
            (StatusCode::TOO_MANY_REQUESTS, Some(hint)) => Outcome::ThrottledFor(hint),
            (StatusCode::TOO_MANY_REQUESTS, None) => Outcome::Throttled,
            _ => Outcome::NotThrottled,
        };
        match (self, permit) {
            (Self::Requests(limiter), Permit::Request(permit)) => limiter.record(permit, outcome),
            (Self::Set(limiter, clock), Permit::Set(permit)) => {
                limiter.observe(permit, &HeaderLimits::new().read(&parts));
                let Some(tokens) = reply.usage() else {
                    let limit = usize::from(reply.body["error"]["type"] != "requests");
                    let (set, now) = (limiter.set(), clock.now());
                    return set.record_by(now, &permit, outcome, &[limit]);
                };
                // It cannot fail: there is a cost for each of the two limits.
                let _settled = limiter.settle(permit, &[1, tokens]);
                limiter.record(permit.costing(&[1, tokens]), outcome);
            }
            _ => {}
        }
    }
}

/// Returns how long the service says to wait.
fn hint(reply: &Reply) -> Option<Duration> {
    let number = |name: &str| reply.headers.get(name)?.to_str().ok()?.parse().ok();
    let millis = number("retry-after-ms").map(Duration::from_millis);
    millis.or_else(|| number("retry-after").map(Duration::from_secs))
}

/// What a client sends.
pub(crate) struct Batch {
    pub(crate) mode: Mode,
    pub(crate) limits: Limits,
    pub(crate) jobs: Vec<(usize, Job)>,
    /// What a person asks for meanwhile, one after another.
    pub(crate) person: Vec<(usize, Job)>,
}

/// What came of it.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) counts: Counts,
    /// How many of the jobs failed.
    pub(crate) failed: u64,
    /// How long the person waited for each first turn, the least first.
    pub(crate) waits: Vec<Duration>,
}

/// Sends a batch, `workers` requests at a time, and the person's beside it.
pub(crate) async fn run(
    batch: Batch,
    transport: Transport,
    workers: usize,
) -> Result<Part, Failure> {
    let count = batch.jobs.len();
    let class = match batch.mode {
        Mode::Classes => Class::Background,
        _ => Class::Foreground,
    };
    let client = Arc::new(Client {
        limiter: Limiter::new(batch.mode, &batch.limits),
        transport,
        batch,
        is_over: AtomicBool::new(false),
    });
    let person = tokio::spawn(Arc::clone(&client).person());
    let working = Arc::clone(&client);
    let work = move |_, index: usize| {
        let client = Arc::clone(&working);
        async move { client.send(class, client.batch.jobs[index]).await }
    };
    let sent = run::workers(workers, count, work).await?;
    // Relaxed: it says no more than that.
    client.is_over.store(true, Relaxed);
    let asked = person.await?;
    let mut waits: Vec<_> = asked.iter().map(|(_, waited)| *waited).collect();
    waits.sort_unstable();
    let all: Vec<_> = sent.into_iter().chain(asked).collect();
    Ok(Part {
        failed: all.iter().filter(|(one, _)| one.done == 0).count() as u64,
        counts: all
            .into_iter()
            .map(|(one, _)| one)
            .fold(Counts::default(), Add::add),
        waits,
    })
}

struct Client {
    limiter: Limiter,
    transport: Transport,
    batch: Batch,
    is_over: AtomicBool,
}

impl Client {
    /// Asks twelve times a minute until the batch is over.
    async fn person(self: Arc<Self>) -> Vec<(Counts, Duration)> {
        let mut sent = Vec::new();
        for job in &self.batch.person {
            tokio::time::sleep(self.batch.limits.minute / 12).await;
            if self.is_over.load(Relaxed) {
                break;
            }
            sent.push(self.send(Class::Foreground, *job).await);
        }
        sent
    }

    /// Sends one request until it is done, or six times. Returns how long it waited for its first
    /// turn, too.
    async fn send(&self, class: Class, (number, job): (usize, Job)) -> (Counts, Duration) {
        let (asked, mut first) = (Instant::now(), None);
        let mut counts = Counts::default();
        let mut rng = Rng::with_seed(number as u64);
        for attempt in 0..SENDS {
            let permit = self.limiter.turn(job, class).await;
            first.get_or_insert(asked.elapsed());
            counts.sent += 1;
            let Some(reply) = self.transport.send(number).await else {
                counts.lost += 1;
                break;
            };
            self.limiter.heard(permit, &reply);
            if reply.status.is_success() {
                counts.done = 1;
                break;
            }
            counts.throttled += 1;
            if self.batch.mode != Mode::None && attempt + 1 < SENDS {
                // A second of the service, doubled each time, with full jitter, after the hint.
                let most = (self.batch.limits.minute / 60).saturating_mul(1 << attempt);
                let jitter = most.mul_f64(rng.f64());
                tokio::time::sleep(hint(&reply).unwrap_or_default() + jitter).await;
            }
        }
        (counts, first.unwrap_or_default())
    }
}
