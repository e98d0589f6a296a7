//! What users are promised, in real time over sockets of loopback: the SDK's client for S3.

#![allow(
    clippy::needless_pass_by_value,
    reason = "as the promises hand it over"
)]

extern crate alloc;

mod support;

use alloc::sync::Arc;

use aws_sdk_s3::{
    Client,
    config::{Builder, timeout::TimeoutConfig},
};
use aws_smithy_async::rt::sleep::TokioSleep;
use paceline::{Adaptive, RetryStrategy};
use paceline_aws::Pacing;
use promises::{DEADLINE, OK, Read, SECOND, SLOW_DOWN, Said, Strategy};
use support::{config, copy};
use tokio::sync::RwLock;

const COPIED: Said = OK.body("<CopyObjectResult><ETag>\"x\"</ETag></CopyObjectResult>");
const S3_SLOW_DOWN: Said = Said::new(503).body("<Error><Code>SlowDown</Code></Error>");
const TOO_MANY: Said = SLOW_DOWN.body("<Error><Code>TooManyRequestsException</Code></Error>");
const SLOW_FOR_1: Said = S3_SLOW_DOWN.header(("x-amz-retry-after", "1000"));
const SLOW_FOR_30: Said = S3_SLOW_DOWN.header(("x-amz-retry-after", "30000"));

/// The SDK is slow in a build for tests: what is held to a deadline is not measured beside what
/// keeps the processor busy.
static ALONE: RwLock<()> = RwLock::const_new(());

/// A client of `url` that goes by `strategy` on `scope`.
fn paced(url: &str, strategy: Arc<dyn RetryStrategy>, scope: &str) -> Builder {
    let pacing = Pacing::shared(strategy).scope(scope);
    let hyper = aws_smithy_http_client::Builder::new().build_http();
    config(TokioSleep::new())
        .endpoint_url(url.trim_end_matches('/'))
        .http_client(pacing.http_client(hyper))
        .interceptor(pacing.interceptor())
        .retry_classifier(pacing.classifier())
}

/// Copies an object. Returns `true` if that succeeded.
fn copies(config: Builder) -> impl Fn() -> Read + Clone + Send + 'static {
    let client = Client::from_conf(config.build());
    move || {
        let client = client.clone();
        Box::pin(async move { copy(&client).await.is_ok() })
    }
}

fn hot(url: String, strategy: Strategy) -> impl Fn() -> Read + Clone + Send + 'static {
    copies(paced(&url, strategy, "hot"))
}

#[tokio::test]
async fn a_limited_scope_is_limited_and_slows_no_other() {
    let _together = ALONE.read().await;
    promises::a_limited_scope_slows_no_other(COPIED, |url, strategy, scope| {
        copies(paced(&url, strategy, scope))
    })
    .await;
}

#[tokio::test]
async fn a_service_that_says_429_and_why_is_adapted_to() {
    let _together = ALONE.read().await;
    promises::a_service_is_adapted_to(COPIED, TOO_MANY, hot).await;
}

#[tokio::test]
async fn a_service_that_says_slow_down_is_adapted_to() {
    let _together = ALONE.read().await;
    promises::a_service_is_adapted_to(COPIED, S3_SLOW_DOWN, hot).await;
}

#[tokio::test]
async fn a_service_that_says_slow_down_and_when_is_adapted_to() {
    let _together = ALONE.read().await;
    promises::a_service_is_adapted_to(COPIED, SLOW_FOR_1, hot).await;
}

/// The SDK's own time limit of an operation is the deadline.
#[tokio::test]
async fn a_deadline_ends_everything() {
    let _alone = ALONE.write().await;
    promises::a_deadline_ends_everything(COPIED, SLOW_FOR_30, |url, strategy| {
        let limit = TimeoutConfig::builder().operation_timeout(DEADLINE);
        copies(paced(&url, strategy, "hot").timeout_config(limit.build()))
    })
    .await;
}

#[tokio::test]
async fn a_dropped_request_leaves_nothing() {
    promises::a_dropped_request_leaves_nothing(COPIED, SLOW_FOR_30, hot).await;
}

#[tokio::test]
async fn a_waiter_goes_early_when_the_rate_rises() {
    let _alone = ALONE.write().await;
    promises::a_waiter_goes_early(COPIED, hot).await;
}

/// As in botocore 1.44 and in version 1.48 of the SDK for Go ("Retry behavior", AWS SDKs and Tools
/// Reference Guide).
#[tokio::test]
async fn a_bare_429_is_throttling() {
    let url = promises::serve(|| SLOW_DOWN.body("").after(SECOND / 100)).await;
    let strategy = Arc::new(Adaptive::paced());
    let client = Client::from_conf(paced(&url, strategy.clone(), "hot").build());
    copy(&client).await.expect_err("it is refused");
    let counts = strategy.snapshot().counts;
    assert_eq!((counts.granted, counts.throttled), (2, 3));
}

#[test]
fn it_takes_two_lines() {
    assert_eq!(promises::count_lines(include_str!("../README.md")), 2);
}
