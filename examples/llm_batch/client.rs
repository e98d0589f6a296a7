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
    Class, Clock, ControlLaw, Outcome, SendLimiter, SendPermit, SendRate, SendSet, Timestamp,
    classify::{HeaderLimits, HttpResponseParts},
    law::{DeclaredSettings, Dimension, PacedSettings, Spend},
    set::SetPermit,
};
use tokio::time::Instant;

use crate::{
    run::{self, Failure},
    service::Reply,
    settings::{Limits, Mode},
    tally::Counts,
    transport::Transport,
    workload::Job,
};

/// How often a request is sent.
const SENDS: u32 = 6;

/// A clock that follows tokio's: a test can stop it.
#[derive(Clone, Copy, Debug)]
struct TaskClock(Instant);

impl Clock for TaskClock {
    fn now(&self) -> Timestamp {
        let nanos = self.0.elapsed().as_nanos();
        Timestamp::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

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
        let clock = TaskClock(Instant::now());
        let start = clock.now();
        let paced = || Arc::new(SendRate::new(ControlLaw::Paced, start));
        // The bucket has to hold the heaviest request: a quarter of a minute holds 40,000 tokens.
        let heavy = || {
            let settings = PacedSettings::new().to_builder();
            let settings = settings
                .burst(limits.minute / 4)
                .build()
                .unwrap_or_default();
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
                limiter.observe(&permit, &HeaderLimits::new().read(&parts));
                let Some(tokens) = reply.usage else {
                    let limit = usize::from(reply.error.as_deref() != Some("requests"));
                    let (set, now) = (limiter.set(), clock.now());
                    return set.record_by(now, &permit, outcome, &[limit]);
                };
                // It cannot fail: there is a cost for each of the two limits.
                let _settled = limiter.settle(permit, &[1, tokens]);
                limiter.record(&permit.costing(&[1, tokens]), outcome);
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
    let limiter = Limiter::new(batch.mode, &batch.limits);
    let client = Arc::new((limiter, transport, batch, AtomicBool::new(false)));
    let asking = Arc::clone(&client);
    let person = tokio::spawn(async move {
        let (limiter, transport, batch, is_over) = &*asking;
        let mut sent = Vec::new();
        for job in &batch.person {
            tokio::time::sleep(batch.limits.minute / 12).await;
            if is_over.load(Relaxed) {
                break;
            }
            sent.push(send(batch, Class::Foreground, limiter, transport, *job).await);
        }
        sent
    });
    let working = Arc::clone(&client);
    let class = match working.2.mode {
        Mode::Classes => Class::Background,
        _ => Class::Foreground,
    };
    let work = move |_, index: usize| {
        let client = Arc::clone(&working);
        async move {
            let (limiter, transport, batch, _) = &*client;
            send(batch, class, limiter, transport, batch.jobs[index]).await
        }
    };
    let sent = run::workers(workers, count, work).await?;
    // Relaxed: it says no more than that.
    client.3.store(true, Relaxed);
    let asked = person.await?;
    let mut waits: Vec<_> = asked.iter().map(|(_, waited)| *waited).collect();
    waits.sort_unstable();
    let all = sent.into_iter().chain(asked).map(|(counts, _)| counts);
    let all: Vec<_> = all.collect();
    let failed = all.iter().filter(|one| one.done == 0).count() as u64;
    Ok(Part {
        counts: all.into_iter().fold(Counts::default(), Add::add),
        failed,
        waits,
    })
}

/// Sends one request until it is done, or six times. Returns how long it waited for its first turn,
/// too.
async fn send(
    batch: &Batch,
    class: Class,
    limiter: &Limiter,
    transport: &Transport,
    (number, job): (usize, Job),
) -> (Counts, Duration) {
    let (asked, mut first) = (Instant::now(), None);
    let mut counts = Counts::default();
    let mut rng = Rng::with_seed(number as u64);
    for attempt in 0..SENDS {
        let permit = limiter.turn(job, class).await;
        first.get_or_insert(asked.elapsed());
        counts.sent += 1;
        let Some(reply) = transport.send(number).await else {
            counts.lost += 1;
            break;
        };
        limiter.heard(permit, &reply);
        if reply.status.is_success() {
            counts.done = 1;
            break;
        }
        counts.throttled += 1;
        if batch.mode != Mode::None && attempt + 1 < SENDS {
            // A second of the service, doubled each time, with full jitter, after the hint.
            let most = (batch.limits.minute / 60).saturating_mul(1 << attempt);
            let jitter = rng.u64(0..=u64::try_from(most.as_nanos()).unwrap_or(u64::MAX));
            let hint = hint(&reply).unwrap_or_default();
            tokio::time::sleep(hint + Duration::from_nanos(jitter)).await;
        }
    }
    (counts, first.unwrap_or_default())
}
