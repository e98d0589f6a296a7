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
use kit::{Always, SECOND};
use paceline::{Adaptive, TokioClock, law::PacedSettings};
use paceline_reqwest::Pacing;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next, Result};
use support::bare;
use tokio::time::advance;

/// What a retry costs here, of 500.
const COST: u32 = 14;

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

        let (requests, answers) = service.seen();
        stages.push((requests, answers));
        // A retry that was sent is paid; what it cost is back with its own success.
        let paid = if (requests, answers) == (2, 1) {
            COST
        } else {
            0
        };
        let available = strategy.quota().available();
        assert_eq!(available, 500_u32.saturating_sub(paid), "after {polls}");
        // One token for each request that was sent, and no place in line.
        let now = strategy.clock().now();
        let due = Duration::from_nanos(now.as_nanos());
        let wait = SECOND.saturating_mul(requests).saturating_sub(due);
        let token = strategy.send_rate().try_acquire(now);
        assert_eq!(
            token.err(),
            Some(wait).filter(|wait| !wait.is_zero()),
            "{polls}"
        );
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
