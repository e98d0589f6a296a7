//! One mode's copy: a service, a client, and workers that share the list of objects.

use alloc::sync::Arc;
use core::{
    error::Error,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};

use paceline::operation::StopReason;
use tokio::task::JoinSet;

use crate::{
    client::Client,
    copy::copy,
    mode::Mode,
    progress::Bar,
    report::{Failures, Report},
    service::Service,
    settings::{Settings, Via},
    strategies::Plan,
    tally::Tally,
};

/// A failure of the run itself, not of a copy.
pub(crate) type RunFailure = Box<dyn Error + Send + Sync>;

/// Copies all objects in one mode and returns what both sides counted.
pub(crate) async fn run(
    mode: Mode,
    plan: Plan,
    settings: &Settings,
    bar: Bar,
) -> Result<Report, RunFailure> {
    let objects = settings.objects();
    let tally = Arc::new(Tally::default());
    let client = Client::new(Arc::clone(&tally))?;
    let service = Service::start(settings.limits(), objects).await?;
    let work = Arc::new(Work {
        client: client.of(service.address()),
        plan,
        via: settings.via,
        objects,
        next: AtomicU32::new(0),
        outcomes: Outcomes::default(),
        tally,
        bar,
    });
    let mut workers = JoinSet::new();
    for _ in 0..settings.workers().min(objects) {
        workers.spawn(Arc::clone(&work).work());
    }
    while let Some(ended) = workers.join_next().await {
        ended?;
    }
    Ok(work.report(mode, &service))
}

/// What the workers of one mode share.
#[derive(Debug)]
struct Work {
    client: Client,
    plan: Plan,
    via: Via,
    objects: u32,
    next: AtomicU32,
    outcomes: Outcomes,
    tally: Arc<Tally>,
    bar: Bar,
}

impl Work {
    /// Returns what came of it, once the workers have ended.
    fn report(&self, mode: Mode, service: &Service) -> Report {
        let elapsed = service.age();
        let (client, failures) = (self.tally.counts(), self.outcomes.failures());
        self.bar.finish(failures.total(), client.throttled, elapsed);
        Report {
            mode,
            attempts: self.plan.attempts,
            objects: self.objects,
            copied: self.outcomes.copied.load(Relaxed),
            failures,
            stored: service.copies(self.objects),
            elapsed,
            client,
            service: service.ledger(),
        }
    }

    /// Copies objects until none is left.
    async fn work(self: Arc<Self>) {
        loop {
            // Relaxed: taking a number hands over nothing but the number.
            let number = self.next.fetch_add(1, Relaxed);
            if number >= self.objects {
                return;
            }
            let copied = copy(&self.client, &*self.plan.strategy, self.via, number).await;
            self.outcomes.count(copied);
            self.bar.advance();
            let failed = self.outcomes.failures().total();
            self.bar.show(failed, self.tally.counts().throttled);
        }
    }
}

/// How the operations ended.
///
/// Relaxed throughout: read for good only after the workers have been joined.
#[derive(Debug, Default)]
struct Outcomes {
    copied: AtomicU64,
    attempts: AtomicU64,
    quota: AtomicU64,
    other: AtomicU64,
}

impl Outcomes {
    fn count(&self, copied: Result<(), StopReason>) {
        let counter = match copied {
            Ok(()) => &self.copied,
            Err(StopReason::MaxAttempts { .. }) => &self.attempts,
            Err(StopReason::QuotaExhausted { .. }) => &self.quota,
            Err(_) => &self.other,
        };
        counter.fetch_add(1, Relaxed);
    }

    fn failures(&self) -> Failures {
        Failures {
            attempts: self.attempts.load(Relaxed),
            quota: self.quota.load(Relaxed),
            other: self.other.load(Relaxed),
        }
    }
}
