//! What the service counts.

use core::time::Duration;

use crate::workload::{self, Job};

/// The columns of a chart in one minute of the service.
pub(crate) const BINS: u32 = 4;
/// The most processes.
pub(crate) const PROCESSES: usize = 8;

/// The tokens of a quarter of a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bin {
    pub(crate) admitted: u64,
    /// By their estimates.
    pub(crate) refused: u64,
}

/// The counts of one account.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    bin: Duration,
    half: u64,
    /// Requests that were admitted, and what they cost in all.
    pub(crate) admitted: u64,
    pub(crate) tokens: u64,
    pub(crate) throttled: u64,
    /// Requests that came before the first answer went out, when no report could have been heard.
    pub(crate) sent_early: u64,
    pub(crate) throttled_early: u64,
    pub(crate) last_admitted: Duration,
    pub(crate) timeline: Vec<Bin>,
    parts: [u64; PROCESSES],
    /// The tokens of each process when half of all had been admitted.
    pub(crate) parts_at_half: Option<[u64; PROCESSES]>,
    answered: bool,
}

impl Ledger {
    pub(crate) fn new(minute: Duration, jobs: &[Job]) -> Self {
        Self {
            bin: minute.checked_div(BINS).unwrap_or(minute),
            half: workload::cost(jobs) / 2,
            admitted: 0,
            tokens: 0,
            throttled: 0,
            sent_early: 0,
            throttled_early: 0,
            last_admitted: Duration::ZERO,
            timeline: Vec::new(),
            parts: [0; PROCESSES],
            parts_at_half: None,
            answered: false,
        }
    }

    /// Notes that the first answer goes out: from now on reports are heard.
    pub(crate) const fn answer(&mut self) {
        self.answered = true;
    }

    /// Enters a request that came at `now`.
    pub(crate) fn enter(&mut self, now: Duration, job: Job, process: usize, admitted: bool) {
        let index = now.as_nanos().checked_div(self.bin.as_nanos());
        let index = usize::try_from(index.unwrap_or(0)).unwrap_or(0);
        if self.timeline.len() <= index {
            self.timeline
                .resize(index.saturating_add(1), Bin::default());
        }
        let early = u64::from(!self.answered);
        self.sent_early = self.sent_early.saturating_add(early);
        let cost = u64::from(job.cost);
        if let Some(bin) = self.timeline.get_mut(index) {
            if admitted {
                bin.admitted = bin.admitted.saturating_add(cost);
            } else {
                bin.refused = bin.refused.saturating_add(job.estimate.into());
            }
        }
        if !admitted {
            self.throttled = self.throttled.saturating_add(1);
            self.throttled_early = self.throttled_early.saturating_add(early);
            self.answer(); // a refusal goes out at once
            return;
        }
        self.admitted = self.admitted.saturating_add(1);
        self.tokens = self.tokens.saturating_add(cost);
        self.last_admitted = now;
        if let Some(part) = self.parts.get_mut(process) {
            *part = part.saturating_add(cost);
        }
        if self.parts_at_half.is_none() && self.tokens >= self.half {
            self.parts_at_half = Some(self.parts);
        }
    }
}
