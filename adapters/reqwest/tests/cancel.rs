//! A request that is dropped at each of its awaits, one after the other, leaves nothing behind.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::{
    future::poll_fn,
    pin::pin,
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    task::Poll,
    time::Duration,
};

use async_trait::async_trait;
use http::Extensions;
use kit::{Always, SECOND, check_left};
use paceline::{Adaptive, TokioClock, law::PacedSettings};
use paceline_reqwest::Pacing;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next, Result};
use support::bare;
use tokio::time::advance;

/// Fails the first request and answers the second, each after a moment.
#[derive(Debug, Default)]
struct Service {
    requests: AtomicU32,
    answers: AtomicU32,
}

#[async_trait]
impl Middleware for Service {
    async fn handle(&self, _: Request, _: &mut Extensions, _: Next<'_>) -> Result<Response> {
        let status = match self.requests.fetch_add(1, SeqCst) {
            0 => 500,
            _ => 200,
        };
        tokio::task::yield_now().await;
        self.answers.fetch_add(1, SeqCst);
        let response = http::Response::builder().status(status).body("");
        Ok(response.expect("a response").into())
    }
}

impl Service {
    fn seen(&self) -> (u32, u32) {
        (self.requests.load(SeqCst), self.answers.load(SeqCst))
    }
}

/// Polls `operation` so often at most, a time step apart, then drops it. Tells whether it had ended
/// well by then.
async fn polled(times: u32, operation: impl Future<Output = Result<Response>>) -> bool {
    let mut operation = pin!(operation);
    for _ in 0..times {
        let polled = poll_fn(|context| match operation.as_mut().poll(context) {
            Poll::Ready(ended) => Poll::Ready(Some(ended.is_ok())),
            Poll::Pending => Poll::Ready(None),
        });
        if let Some(ended) = polled.await {
            return ended;
        }
        advance(Duration::from_millis(51)).await;
    }
    false
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_at_any_await() {
    let mut stages = Vec::new();
    for polls in 0..100 {
        let service = Arc::new(Service::default());
        let strategy = Adaptive::builder()
            .clock(Arc::new(TokioClock::new()))
            .backoff(Arc::new(Always(Duration::from_millis(100))))
            .paced(PacedSettings::fixed(1, SECOND).expect("the rate is in range"));
        let strategy = Arc::new(strategy.build().expect("the settings are in range"));
        let client = ClientBuilder::new(bare().build().expect("a client"))
            .with(Pacing::shared(strategy.clone()))
            .with_arc(service.clone())
            .build();
        let ended = polled(polls, client.get("http://localhost/").send()).await;

        stages.push(service.seen());
        check_left(&strategy, service.seen(), polls);
        if ended {
            break;
        }
    }
    let awaits = stages.len();
    stages.dedup();
    // Sent, failed and in line, sent again, ended: and looked at the line every 50 ms of what was
    // left of the second.
    assert_eq!(stages, [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)]);
    assert!(awaits > 20, "{awaits}");
}
