//! What the service counts.

use core::time::Duration;

use crate::tally::{Bin, Counts, enter};
use crate::workload::{self, Job};

/// The columns of a chart in one minute of the service.
pub(crate) const BINS: u32 = 4;
/// The most clients.
pub(crate) const CLIENTS: usize = 8;

/// The counts of one account.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    bin: Duration,
    half: u64,
    pub(crate) counts: Counts,
    /// What the admitted requests cost in all.
    pub(crate) tokens: u64,
    /// Requests that came before the first answer went out, when no report could have been heard.
    pub(crate) sent_early: u64,
    pub(crate) throttled_early: u64,
    pub(crate) last_admitted: Duration,
    /// Tokens of each quarter of a minute; refused ones by their estimates.
    pub(crate) timeline: Vec<Bin>,
    parts: [u64; CLIENTS],
    /// The tokens of each client when half of all had been admitted.
    pub(crate) parts_at_half: Option<[u64; CLIENTS]>,
    answered: bool,
}

impl Ledger {
    pub(crate) fn new(minute: Duration, jobs: &[Job]) -> Self {
        Self {
            bin: minute.checked_div(BINS).unwrap_or(minute),
            half: workload::cost(jobs) / 2,
            counts: Counts::default(),
            tokens: 0,
            sent_early: 0,
            throttled_early: 0,
            last_admitted: Duration::ZERO,
            timeline: Vec::new(),
            parts: [0; CLIENTS],
            parts_at_half: None,
            answered: false,
        }
    }

    /// Notes that the first answer goes out: from now on reports are heard.
    pub(crate) const fn answer(&mut self) {
        self.answered = true;
    }

    /// Enters a request that came at `now`.
    pub(crate) fn enter(&mut self, now: Duration, job: Job, client: usize, admitted: bool) {
        let early = u64::from(!self.answered);
        let (cost, estimate) = (u64::from(job.cost), u64::from(job.estimate));
        let (admitted, refused) = if admitted { (cost, 0) } else { (0, estimate) };
        enter(
            &mut self.timeline,
            self.bin,
            now,
            Bin::of(admitted, refused),
        );
        self.sent_early += early;
        self.counts.sent += 1;
        if refused > 0 {
            self.counts.throttled += 1;
            self.throttled_early += early;
            self.answer(); // a refusal goes out at once
            return;
        }
        self.counts.done += 1;
        self.tokens += cost;
        self.last_admitted = now;
        if let Some(part) = self.parts.get_mut(client) {
            *part += cost;
        }
        if self.parts_at_half.is_none() && self.tokens >= self.half {
            self.parts_at_half = Some(self.parts);
        }
    }
}
