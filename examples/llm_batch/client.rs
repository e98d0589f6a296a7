//! The client: one of the limiters, and the same retries with each.

use alloc::sync::Arc;
use core::{num::NonZeroU32, time::Duration};

use fastrand::Rng;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::StatusCode;
use paceline::{
    Clock, ControlLaw, Outcome, SendLimiter, SendPermit, SendRate, SendSet, Timestamp,
    classify::{HeaderLimits, HttpResponseParts},
    law::{DeclaredSettings, Dimension, PacedSettings},
    set::SetPermit,
};
use tokio::time::Instant;

use crate::{
    service::Reply,
    settings::{Limits, Mode},
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

/// What a client counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) throttled: u64,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    /// Requests that were not answered, or by something else than the service.
    pub(crate) broken: u64,
}

impl Counts {
    /// Returns the counts as one line, for another process.
    pub(crate) fn line(self) -> String {
        let Self {
            sent,
            throttled,
            done,
            failed,
            broken,
        } = self;
        format!("{sent} {throttled} {done} {failed} {broken}")
    }

    /// Reads what [`line`](Self::line) wrote.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let mut numbers = line.split_whitespace().map(|number| number.parse().ok());
        let mut number = || numbers.next()?;
        Some(Self {
            sent: number()?,
            throttled: number()?,
            done: number()?,
            failed: number()?,
            broken: number()?,
        })
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent.saturating_add(other.sent),
            throttled: self.throttled.saturating_add(other.throttled),
            done: self.done.saturating_add(other.done),
            failed: self.failed.saturating_add(other.failed),
            broken: self.broken.saturating_add(other.broken),
        }
    }
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
            Mode::Declared => {
                let set = [Dimension::Requests, Dimension::Tokens].map(declared);
                Self::Set(SendLimiter::new(SendSet::new(set)).clock(clock), clock)
            }
        }
    }

    /// Waits for the turn of a request. Without a deadline it is never refused.
    async fn turn(&self, job: Job) -> Permit {
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
                    if let Ok(permit) = limiter.tokens([1, weight]).acquire().await {
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

/// Sends `jobs`, `workers` at a time, and returns what was counted.
pub(crate) async fn run(
    mode: Mode,
    limits: Limits,
    transport: Transport,
    jobs: Vec<(usize, Job)>,
    workers: usize,
) -> Counts {
    let limiter = Arc::new(Limiter::new(mode, &limits));
    let seed = transport.process() as u64;
    let jobs = Arc::new(jobs);
    let next = Arc::new(core::sync::atomic::AtomicUsize::new(0));
    let work = |worker: usize| {
        let (limiter, jobs, next) = (Arc::clone(&limiter), Arc::clone(&jobs), Arc::clone(&next));
        let transport = transport.clone();
        let mut rng = Rng::with_seed(seed << 32 | worker as u64);
        async move {
            let mut counts = Counts::default();
            loop {
                let index = next.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
                let Some((number, job)) = jobs.get(index).copied() else {
                    return counts;
                };
                let sent = send(mode, &limits, &limiter, &transport, number, job, &mut rng).await;
                counts = counts.plus(sent);
            }
        }
    };
    let tasks: Vec<_> = (0..workers)
        .map(|worker| tokio::spawn(work(worker)))
        .collect();
    let mut counts = Counts::default();
    for task in tasks {
        if let Ok(more) = task.await {
            counts = counts.plus(more);
        }
    }
    counts
}

/// Sends one request until it is done, or six times.
async fn send(
    mode: Mode,
    limits: &Limits,
    limiter: &Limiter,
    transport: &Transport,
    number: usize,
    job: Job,
    rng: &mut Rng,
) -> Counts {
    let mut counts = Counts::default();
    for attempt in 0..SENDS {
        let permit = limiter.turn(job).await;
        counts.sent = counts.sent.saturating_add(1);
        let Some(reply) = transport.send(number).await else {
            counts.broken = counts.broken.saturating_add(1);
            break;
        };
        limiter.heard(permit, &reply);
        if reply.status.is_success() {
            counts.done = 1;
            return counts;
        }
        counts.throttled = counts.throttled.saturating_add(1);
        if mode != Mode::None && attempt.saturating_add(1) < SENDS {
            // A second of the service, doubled each time, with full jitter, after the hint.
            let second = limits.minute.checked_div(60).unwrap_or_default();
            let most = second.saturating_mul(1 << attempt);
            let jitter = rng.u64(0..=u64::try_from(most.as_nanos()).unwrap_or(u64::MAX));
            let hint = hint(&reply).unwrap_or_default();
            tokio::time::sleep(hint.saturating_add(Duration::from_nanos(jitter))).await;
        }
    }
    counts.failed = 1;
    counts
}
