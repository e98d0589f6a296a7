//! A stack of three adapters sends one request as often as the outermost one says.

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;

use async_trait::async_trait;
use backon::Retryable as _;
use http::Extensions;
use kit::{OK, OVERLOADED, Server};
use paceline::{Failure, Standard, classify::ServiceUnavailable, headers::AttemptHeader};
use paceline_backoff::Retries;
use paceline_reqwest::Pacing;
use paceline_tower::{HttpRequests, HttpResults, RetryLayer};
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Middleware, Next, Result};
use tower::{Layer as _, ServiceExt as _, service_fn};

/// The attempts of tower's layer, of reqwest's middleware, and of a loop of backon's in it.
const STACK: [u32; 3] = [4, 3, 4];

fn standard(attempts: u32, capacity: u32) -> Arc<Standard> {
    let builder = Standard::builder().max_attempts(attempts);
    let builder = builder.quota_capacity(capacity);
    let builder = builder.base_delay(Duration::from_millis(1));
    Arc::new(builder.build().expect("in range"))
}

/// A middleware that sends again by backon.
struct Backon(Arc<Standard>);

#[async_trait]
impl Middleware for Backon {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let mut retries = Retries::of(&*self.0);
        let classify = |_: &core::result::Result<Response, Error>| Failure::transient();
        let (delays, condition) = retries.split(classify);
        let send = || {
            let (copy, mut extensions) = (request.try_clone(), extensions.clone());
            let next = next.clone();
            async move {
                let copy = copy.expect("it has no body");
                let sent = next.run(copy, &mut extensions).await;
                match sent {
                    Ok(response) if response.status().is_success() => Ok(response),
                    other => Err(other),
                }
            }
        };
        let answer = send.retry(delays).when(condition).await;
        retries.finish(&answer);
        answer.or_else(|last| last)
    }
}

/// Three loops that send to one server.
struct Stack {
    server: Server,
    loops: [Arc<Standard>; 3],
    composite: bool,
}

impl Stack {
    /// A server that answers 503 to all but the request of this number.
    async fn new(well: usize, capacity: u32) -> Self {
        let say = move |n| {
            if usize::wrapping_add(n, 1) == well {
                OK
            } else {
                OVERLOADED
            }
        };
        Self {
            server: Server::saying(say).await,
            loops: STACK.map(|attempts| standard(attempts, capacity)),
            composite: false,
        }
    }

    /// The client of the `depth` innermost loops but tower's.
    fn client(&self, depth: usize) -> ClientWithMiddleware {
        let [_, middle, inner] = self.loops.clone();
        let client = ClientBuilder::new(reqwest::Client::new());
        let client = if depth > 1 {
            let answers = paceline::classify::RefusalClassifier::new()
                .with_unavailable(ServiceUnavailable::Transient);
            let pacing = Pacing::shared(middle).classifier(answers);
            let pacing = pacing.tell_attempts(AttemptHeader::EnvoyAttemptCount);
            client.with(if self.composite {
                pacing.composite()
            } else {
                pacing
            })
        } else {
            client
        };
        client.with(Backon(inner)).build()
    }

    /// Sends one request through the `depth` innermost loops, and returns its status.
    async fn send(&self, depth: usize) -> u16 {
        let client = self.client(depth);
        if depth < 3 {
            let response = client
                .get(&self.server.url)
                .send()
                .await
                .expect("an answer");
            return response.status().as_u16();
        }
        let results = HttpResults::new().with_unavailable(ServiceUnavailable::Transient);
        let layer = RetryLayer::shared(self.loops[0].clone(), results).replay(HttpRequests);
        let layer = if self.composite {
            layer.composite()
        } else {
            layer
        };
        let service = layer.layer(service_fn(move |request: http::Request<()>| {
            let request = client.get(request.uri().to_string());
            async move {
                let response = request.send().await?;
                Ok::<_, Error>(http::Response::<reqwest::Body>::from(response))
            }
        }));
        let request = http::Request::get(&self.server.url)
            .body(())
            .expect("a request");
        service
            .oneshot(request)
            .await
            .expect("an answer")
            .status()
            .as_u16()
    }

    fn sends(&self) -> u32 {
        u32::try_from(self.server.requests()).expect("a test is short")
    }
}

#[tokio::test]
async fn three_adapters_send_as_often_as_the_outermost() {
    for (depth, sends) in [(1, 4), (2, 3), (3, 4)] {
        let stack = Stack::new(0, 5_000).await;
        assert_eq!(stack.send(depth).await, 503);
        assert_eq!(stack.sends(), sends, "{depth} loops");
        let left = stack.loops.each_ref().map(|each| each.quota().available());
        let mut expected = [5_000; 3];
        expected[3 - depth] -= (sends - 1) * 14;
        assert_eq!(left, expected, "{depth} loops");
    }
    // Without the marks.
    let mut stack = Stack::new(0, 5_000).await;
    stack.composite = true;
    assert_eq!(stack.send(3).await, 503);
    assert_eq!(stack.sends(), 48);
}

#[tokio::test]
async fn a_broken_service_gets_a_send_a_request_and_the_quota() {
    // 500 tokens pay for 35 retries of 14, and each request wants two at least.
    let requests = 40;
    for depth in 1..=3 {
        let stack = Stack::new(0, 500).await;
        for _ in 0..requests {
            assert_eq!(stack.send(depth).await, 503);
        }
        assert_eq!(stack.sends(), requests + 35, "{depth} loops");
    }
}

#[tokio::test]
async fn a_success_pays_back_to_the_outermost() {
    let stack = Stack::new(3, 500).await;
    assert_eq!(stack.send(3).await, 200);
    let left = stack.loops.each_ref().map(|each| each.quota().available());
    // Of two retries the last is paid back.
    assert_eq!((stack.sends(), left), (3, [486, 500, 500]));
}
