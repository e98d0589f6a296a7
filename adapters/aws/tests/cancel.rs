//! An operation that is dropped at each of its awaits, one after the other, leaves nothing behind.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    time::Duration,
};

use aws_sdk_s3::Client;
use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep};
use aws_smithy_runtime_api::client::{
    http::{
        HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
    },
    orchestrator::{HttpRequest, HttpResponse},
};
use aws_smithy_types::body::SdkBody;
use kit::{Always, SECOND, check_left, polled};
use paceline::{Adaptive, law::PacedSettings};
use paceline_aws::Pacing;
use support::{Stopped, config, copy, operation};

/// Is pending once.
async fn a_moment() {
    tokio::task::yield_now().await;
}

/// Fails the first request and answers the second, each after a moment.
#[derive(Clone, Debug, Default)]
struct Service {
    requests: Arc<AtomicU32>,
    answers: Arc<AtomicU32>,
}

impl HttpConnector for Service {
    fn call(&self, _request: HttpRequest) -> HttpConnectorFuture {
        let (status, answers) = match self.requests.fetch_add(1, SeqCst) {
            0 => (500_u16, self.answers.clone()),
            _ => (200, self.answers.clone()),
        };
        HttpConnectorFuture::new(async move {
            a_moment().await;
            answers.fetch_add(1, SeqCst);
            let body = SdkBody::from("<CopyObjectResult><ETag>\"x\"</ETag></CopyObjectResult>");
            let status = status.try_into().expect("a status");
            Ok(HttpResponse::new(status, body))
        })
    }
}

impl Service {
    fn client(&self) -> SharedHttpClient {
        let connector = SharedHttpConnector::new(self.clone());
        http_client_fn(move |_settings, _components| connector.clone())
    }

    fn seen(&self) -> (u32, u32) {
        (self.requests.load(SeqCst), self.answers.load(SeqCst))
    }
}

/// A sleep of a moment, at whose end the clock has moved on.
#[derive(Clone, Debug, Default)]
struct Moments(Stopped);

impl AsyncSleep for Moments {
    fn sleep(&self, span: Duration) -> Sleep {
        let clock = self.0.clone();
        Sleep::new(async move {
            a_moment().await;
            clock.advance(span);
        })
    }
}

/// Polls `operation` so often at most, then drops it. Returns `true` if it ended well by then.
async fn ended_well<T, E>(times: u32, operation: impl Future<Output = Result<T, E>>) -> bool {
    let ended = polled(times, Box::pin(operation)).await;
    ended.is_some_and(|ended| ended.is_ok())
}

/// Begins an operation again and again, drops it one await later each time, and looks for what it
/// left behind.
async fn dropped_everywhere(begin: impl AsyncFn(u32, &Service, &Moments, Pacing) -> bool) {
    let mut stages = Vec::new();
    for polls in 0..100 {
        let (service, moments) = (Service::default(), Moments::default());
        let strategy = Adaptive::builder()
            .clock(Arc::new(moments.0.clone()))
            .backoff(Arc::new(Always(Duration::from_millis(100))))
            .paced(PacedSettings::fixed(1, SECOND).expect("the rate is in range"));
        let strategy = Arc::new(strategy.build().expect("the settings are in range"));
        let ended = begin(polls, &service, &moments, Pacing::shared(strategy.clone())).await;

        stages.push(service.seen());
        check_left(&strategy, service.seen(), polls);
        if ended {
            break;
        }
    }
    let awaits = stages.len();
    stages.dedup();
    // Sent, failed and in line, sent again, ended: and looked when its turn came, not every 50 ms.
    assert_eq!(stages, [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)]);
    assert!(awaits < 15, "{awaits}");
}

#[tokio::test]
async fn in_an_sdk_client() {
    dropped_everywhere(async |polls, service, moments, pacing| {
        let config = config(moments.clone())
            .http_client(pacing.http_client(service.client()))
            .interceptor(pacing.interceptor())
            .retry_classifier(pacing.classifier());
        let client = Client::from_conf(config.endpoint_url("http://localhost").build());
        ended_well(polls, copy(&client)).await
    })
    .await;
}

#[tokio::test]
async fn in_a_client_with_the_plugin() {
    dropped_everywhere(async |polls, service, moments, pacing| {
        let plugin = pacing.plugin(service.client());
        let get = operation("http://localhost", moments.clone(), plugin);
        ended_well(polls, get.invoke(())).await
    })
    .await;
}
