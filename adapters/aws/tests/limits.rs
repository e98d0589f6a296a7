//! Time limits of an attempt and of an operation, in virtual time: the SDK's client for S3, and a
//! service in the same process.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::{
    error::Error,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll, ready},
    time::Duration,
};
use std::sync::Mutex;

use aws_sdk_s3::{
    Client, config::Builder, config::retry::RetryConfig, config::timeout::TimeoutConfig,
    error::SdkError,
};
use aws_smithy_async::rt::sleep::{AsyncSleep as _, Sleep, TokioSleep};
use aws_smithy_runtime_api::client::{
    http::{
        HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
    },
    orchestrator::{HttpRequest, HttpResponse},
};
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http_body::{Body, Frame};
use kit::{Always, SECOND};
use paceline::{
    Adaptive, RetryStrategy, Standard, TokioClock,
    law::PacedSettings,
    operation::{Stop, StopReason},
};
use paceline_aws::Pacing;
use support::config;
use tokio::time::Instant;

const NEVER: Duration = Duration::MAX;

/// Answers 200 after `head`, with a body of two bytes that come `each` apart.
#[derive(Clone, Debug)]
struct Service {
    head: Duration,
    each: Duration,
    begun: Instant,
    /// When each request came.
    came: Arc<Mutex<Vec<Duration>>>,
}

impl Service {
    fn new(head: Duration, each: Duration) -> Self {
        let (begun, came) = (Instant::now(), Arc::default());
        Self {
            head,
            each,
            begun,
            came,
        }
    }

    fn client(&self) -> SharedHttpClient {
        let connector = SharedHttpConnector::new(self.clone());
        http_client_fn(move |_settings, _components| connector.clone())
    }

    fn came(&self) -> Vec<Duration> {
        self.came.lock().expect("no test panicked in here").clone()
    }
}

impl HttpConnector for Service {
    fn call(&self, _request: HttpRequest) -> HttpConnectorFuture {
        let mut came = self.came.lock().expect("no test panicked in here");
        came.push(self.begun.elapsed());
        let Self { head, each, .. } = *self;
        HttpConnectorFuture::new(async move {
            TokioSleep::new().sleep(head).await;
            let body = Slow {
                each,
                left: 2,
                timer: TokioSleep::new().sleep(each),
            };
            let body = SdkBody::from_body_1_x(body);
            Ok(HttpResponse::new(200.try_into().expect("a status"), body))
        })
    }
}

/// A body of as many bytes as are left, each of which takes its time.
struct Slow {
    each: Duration,
    left: u32,
    timer: Sleep,
}

impl Body for Slow {
    type Data = Bytes;
    type Error = core::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        let Some(left) = this.left.checked_sub(1) else {
            return Poll::Ready(None);
        };
        ready!(Pin::new(&mut this.timer).poll(cx));
        (this.left, this.timer) = (left, TokioSleep::new().sleep(this.each));
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b" ")))))
    }
}

/// Returns a client of `service` whose attempts may take a second.
fn paced(service: &Service, strategy: Arc<dyn RetryStrategy>) -> Builder {
    let pacing = Pacing::shared(strategy);
    let limit = TimeoutConfig::builder().operation_attempt_timeout(SECOND);
    config(TokioSleep::new())
        .endpoint_url("http://localhost")
        .timeout_config(limit.build())
        .http_client(pacing.http_client(service.client()))
        .interceptor(pacing.interceptor())
        .retry_classifier(pacing.classifier())
}

fn at_a_fixed_rate(requests: u32, span: Duration, bulk: bool) -> Arc<Adaptive> {
    let rate = PacedSettings::fixed(requests, span).expect("the rate is in range");
    let builder = Adaptive::builder().clock(Arc::new(TokioClock::new()));
    let builder = if bulk { builder.bulk() } else { builder };
    Arc::new(builder.paced(rate).build().expect("in range"))
}

/// Up to 64 wait for 20 a second: three seconds in line, and an attempt may take one ("Timeouts",
/// <https://docs.aws.amazon.com/sdk-for-rust/latest/dg/timeouts.html>).
#[tokio::test(start_paused = true)]
async fn a_wait_in_line_is_no_part_of_an_attempt() {
    for bulk in [false, true] {
        let service = Service::new(SECOND / 100, Duration::ZERO);
        let strategy = at_a_fixed_rate(20, SECOND, bulk);
        let client = Client::from_conf(paced(&service, strategy.clone()).build());
        let (left, lost) = (
            Arc::new(AtomicUsize::new(300)),
            Arc::<AtomicUsize>::default(),
        );
        let worker = || {
            let (client, left, lost) = (client.clone(), left.clone(), lost.clone());
            tokio::spawn(async move {
                while let Ok(_taken) = left.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)) {
                    let put = client.put_object().bucket("b").key("k");
                    let put = put.body(b"x".to_vec().into()).send().await;
                    lost.fetch_add(usize::from(put.is_err()), SeqCst);
                }
            })
        };
        for worker in (0..64).map(|_| worker()).collect::<Vec<_>>() {
            worker.await.expect("it ends");
        }
        let (came, seen) = (service.came(), strategy.snapshot());
        assert_eq!((lost.load(SeqCst), came.len()), (0, 300), "{bulk}");
        // No retry, no charge; and each wait is counted as one.
        let counts = (seen.counts.granted, seen.counts.delayed);
        assert_eq!((counts, seen.quota.available), ((0, 299), 500));
        let took = came.last().expect("300 came").as_millis();
        assert_eq!(took, 14_951); // tokio's timer rounds up
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_an_attempt_begins_when_its_turn_has_come() {
    let service = Service::new(NEVER, NEVER);
    let rate = PacedSettings::fixed(1, 5 * SECOND).expect("the rate is in range");
    let strategy = Adaptive::builder()
        .clock(Arc::new(TokioClock::new()))
        .backoff(Arc::new(Always(Duration::ZERO)))
        .paced(rate);
    let strategy = Arc::new(strategy.build().expect("in range"));
    let client = Client::from_conf(paced(&service, strategy.clone()).build());
    let head = client.head_object().bucket("b").key("k").send().await;
    let error = head.expect_err("there is no answer");
    assert!(matches!(error, SdkError::TimeoutError(_)), "{error:?}");
    let said = format!("{}", aws_sdk_s3::error::DisplayErrorContext(error));
    assert!(
        said.contains("single attempt") && said.contains("1s"),
        "{said}"
    );
    let came: Vec<_> = service.came().iter().map(Duration::as_secs).collect();
    assert_eq!(
        (came, service.begun.elapsed().as_secs()),
        (vec![0, 5, 10], 11)
    );
    // What two retries after a timeout cost.
    assert_eq!(strategy.quota().available(), 500 - 2 * 14);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stalls_is_a_timeout_and_a_stream_is_the_users() {
    let service = Service::new(SECOND * 6 / 10, SECOND * 6 / 10);
    let once = Standard::builder().clock(Arc::new(TokioClock::new()));
    let once = Arc::new(once.max_attempts(1).build().expect("in range"));
    let client = Client::from_conf(paced(&service, once).build());
    let copy = client.copy_object().bucket("b").key("k").copy_source("b/x");
    let error = copy.send().await.expect_err("the body is late");
    assert!(matches!(error, SdkError::TimeoutError(_)), "{error:?}");
    assert_eq!(service.begun.elapsed().as_secs(), 1);

    let get = client.get_object().bucket("b").key("k").send().await;
    let stream = get.expect("its head is in time").body;
    let read = stream.collect().await.expect("the user may take longer");
    assert_eq!(read.into_bytes().len(), 2);
    assert_eq!(service.begun.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_the_limit_of_an_operation_would_end_does_not_begin() {
    for bulk in [false, true] {
        let service = Service::new(Duration::ZERO, Duration::ZERO);
        let strategy = at_a_fixed_rate(1, SECOND, bulk);
        let limit = TimeoutConfig::builder()
            .operation_timeout(SECOND / 2)
            .operation_attempt_timeout(SECOND / 4);
        let config = paced(&service, strategy.clone()).timeout_config(limit.build());
        let client = Client::from_conf(config.build());
        let put = || client.put_object().bucket("b").key("k").send();
        put().await.expect("the bucket held one token");
        let error = put().await.expect_err("its turn is in a second");
        assert!(matches!(error, SdkError::TimeoutError(_)), "{error:?}");
        let stop = error.source().and_then(<dyn Error>::downcast_ref::<Stop>);
        let reason = StopReason::OutOfTime {
            wait: SECOND,
            left: SECOND / 2,
        };
        assert_eq!(stop.map(Stop::why), Some(reason));
        assert_eq!(
            (service.came().len(), service.begun.elapsed()),
            (1, Duration::ZERO)
        );
        let seen = strategy.snapshot();
        assert_eq!((seen.counts.granted, seen.quota.available), (0, 500));
        let now = strategy.clock().now();
        assert_eq!(strategy.send_rate().try_acquire(now), Err(SECOND));
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_can_go_by_another_strategy_than_its_client() {
    let service = Service::new(NEVER, NEVER);
    let clients = at_a_fixed_rate(1, 100 * SECOND, false);
    let now = clients.clock().now();
    let taken = clients.send_rate().try_acquire(now);
    assert!(taken.is_ok(), "its only token");
    let client = Client::from_conf(paced(&service, clients).build());
    let pacing = Pacing::shared(at_a_fixed_rate(1, 5 * SECOND, false));
    for _ in 0..2 {
        let other = aws_sdk_s3::Config::builder()
            .http_client(pacing.http_client(service.client()))
            .interceptor(pacing.interceptor())
            .retry_classifier(pacing.classifier())
            .retry_config(RetryConfig::disabled());
        let head = client.head_object().bucket("b").key("k");
        let error = head.customize().config_override(other).send().await;
        let error = error.expect_err("there is no answer");
        assert!(matches!(error, SdkError::TimeoutError(_)), "{error:?}");
    }
    let came: Vec<_> = service.came().iter().map(Duration::as_secs).collect();
    assert_eq!((came, service.begun.elapsed().as_secs()), (vec![0, 5], 6));
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_has_run_out_of_time_pays_for_no_retry() {
    let service = Service::new(NEVER, NEVER);
    let strategy = Standard::builder().clock(Arc::new(TokioClock::new()));
    let strategy = Arc::new(strategy.build().expect("in range"));
    let limit = TimeoutConfig::builder().operation_timeout(SECOND);
    let config = paced(&service, strategy.clone()).timeout_config(limit.build());
    let client = Client::from_conf(config.build());
    let head = client.head_object().bucket("b").key("k").send().await;
    let error = head.expect_err("there is no answer");
    assert!(matches!(error, SdkError::TimeoutError(_)), "{error:?}");
    let seen = strategy.snapshot();
    assert_eq!((seen.counts.granted, seen.quota.available), (0, 500));
    assert_eq!(service.came().len(), 1);
}
