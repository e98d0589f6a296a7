//! Clients with no timer but those of the tests.

#![allow(dead_code, reason = "each test program uses a part")]

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;

use paceline::RetryStrategy;
use paceline_reqwest::Pacing;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Result};

/// Further off than any time limit of the tests.
const AGES: Duration = Duration::from_secs(1_000_000);

/// A client of reqwest's own, with no timer but those of the tests.
pub(crate) fn bare() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .no_proxy()
        .pool_idle_timeout(AGES)
}

pub(crate) fn client(pacing: Pacing) -> ClientWithMiddleware {
    let bare = bare().build().expect("a client");
    ClientBuilder::new(bare).with(pacing).build()
}

pub(crate) fn client_of(strategy: &Arc<impl RetryStrategy + 'static>) -> ClientWithMiddleware {
    client(Pacing::shared(strategy.clone()))
}

/// Returns the status of an answer.
pub(crate) fn status(answer: Result<reqwest::Response>) -> u16 {
    answer.expect("an answer").status().as_u16()
}
