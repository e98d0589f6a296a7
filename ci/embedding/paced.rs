//! Each attempt waits for its turn, at a rate that follows the service's throttles.
use paceline_core::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp};
use std::{future::Future, time::Duration};
use tokio::time::{Instant, sleep};

/// The send rate of one service, shared by all requests to it.
#[derive(Debug)]
pub struct Paced(SendRate, Instant);

impl Default for Paced {
    fn default() -> Self {
        Self(SendRate::new(ControlLaw::Paced, Timestamp::ZERO), Instant::now())
    }
}

impl Paced {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.1.elapsed().as_nanos() as u64)
    }

    /// Sends when it may, and records the status of the response: `None` where there is none.
    pub async fn send<R>(&self, request: impl Future<Output = R>, status: impl Fn(&R) -> Option<u16>) -> R {
        let mut place = self.0.reserve(self.now());
        let permit = loop {
            match place.claim(self.now()) {
                Ok(permit) => break permit,
                Err(wait) => sleep(wait.min(Duration::from_millis(50))).await,
            }
        };
        let mut sent = Sent(self, permit, Outcome::Unknown);
        let response = request.await;
        sent.2 = match status(&response) {
            Some(429 | 503) => Outcome::Throttled,
            Some(500..) => Outcome::Failed,
            Some(_) => Outcome::NotThrottled,
            None => Outcome::Unknown,
        };
        response
    }
}

/// A request under way: one that is dropped without a response is recorded as unknown.
struct Sent<'a>(&'a Paced, SendPermit, Outcome);

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        self.0.0.record(self.0.now(), self.1, self.2);
    }
}
