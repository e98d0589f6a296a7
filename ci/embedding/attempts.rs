//! The host keeps its policy. paceline says when each attempt goes, and when retries cost too much.
use paceline::{Adaptive, Failure, MonotonicClock, Operation, law::PacedSettings};
use paceline::operation::{Attempts, Next, Verdict};
use paceline::strategy::Reports;
use std::sync::Arc;

/// The strategy of one service, shared by all requests to it.
pub struct Shared(Arc<Adaptive>);

impl Default for Shared {
    fn default() -> Self {
        // The host's policy counts the attempts.
        let strategy = Adaptive::builder().paced(PacedSettings::new()).max_attempts(u32::MAX);
        Self(Arc::new(strategy.build().expect("valid settings")))
    }
}

impl Shared {
    pub fn start(&self) -> Turns {
        Turns(Operation::new(self.0.clone()).start(), MonotonicClock::new())
    }
}

/// The attempts of one operation. Dropped while one is under way, it counts as cancelled.
pub struct Turns(Attempts<Arc<Adaptive>>, MonotonicClock);

impl Turns {
    /// Waits until the next attempt may be sent.
    pub async fn next(&mut self) {
        self.0.slept(); // the host has slept its own backoff
        while let Next::InLine(rest) = self.0.next(&self.1, None) {
            tokio::time::sleep(rest.span()).await;
        }
    }

    /// Records a failure that the host would retry, and returns whether it may.
    pub fn failed(&mut self, status: Option<u16>) -> bool {
        let failure = match status {
            Some(429 | 503) => Failure::throttling(),
            _ => Failure::transient(),
        };
        matches!(self.0.failed(&failure, Reports::at(&self.1)), Ok(Verdict::Again(_)))
    }

    /// Records any other response, if no failure was recorded.
    pub fn answered(&mut self) {
        let _recorded = self.0.succeeded(Reports::at(&self.1));
    }
}
