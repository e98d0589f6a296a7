//! What users are promised, in real time over sockets of loopback: the SDK's client for S3.

extern crate alloc;

mod support;

use alloc::sync::Arc;

use aws_sdk_s3::{
    Client,
    config::{Builder, timeout::TimeoutConfig},
};
use aws_smithy_async::rt::sleep::TokioSleep;
use kit::{
    SECOND, SLOW_DOWN, Said, Server,
    promises::{Sends, Setup},
};
use paceline::{Adaptive, RetryStrategy};
use paceline_aws::Pacing;
use support::{COPIED, config, copy};

const S3_SLOW_DOWN: Said = support::SLOW_DOWN;

/// A client of `url` that goes by `strategy` on `scope`.
fn paced(url: &str, strategy: Arc<dyn RetryStrategy>, scope: &str) -> Builder {
    let pacing = Pacing::shared(strategy).scope(scope);
    let hyper = aws_smithy_http_client::Builder::new().build_http();
    config(TokioSleep::new())
        .endpoint_url(url)
        .http_client(pacing.http_client(hyper))
        .interceptor(pacing.interceptor())
        .retry_classifier(pacing.classifier())
}

/// Copies an object. Returns `true` if that succeeded. The SDK's own time limit of an operation is
/// the deadline.
fn copies(setup: &Setup) -> impl Sends + use<> {
    let config = paced(setup.endpoint(), setup.strategy.clone(), setup.scope);
    let config = setup.bounded(config, |config, span| {
        let limits = TimeoutConfig::builder().operation_timeout(span);
        config.timeout_config(limits.build())
    });
    let client = Client::from_conf(config.build());
    move || {
        let client = client.clone();
        Box::pin(async move { copy(&client).await.is_ok() })
    }
}

kit::keep_promises! {
    busy: true,
    client: copies,
    well: COPIED,
    refusals: {
        a_service_that_says_429_and_why_is_adapted_to:
            SLOW_DOWN.body("<Error><Code>TooManyRequestsException</Code></Error>"),
        a_service_that_says_slow_down_is_adapted_to: S3_SLOW_DOWN,
        a_service_that_says_slow_down_and_when_is_adapted_to:
            S3_SLOW_DOWN.header(("x-amz-retry-after", "1000")),
    },
    slow: S3_SLOW_DOWN.header(("x-amz-retry-after", "30000")),
}

/// As in botocore 1.44 and in version 1.48 of the SDK for Go ("Retry behavior", AWS SDKs and Tools
/// Reference Guide).
#[tokio::test]
async fn a_bare_429_is_throttling() {
    let server = Server::with(&[SLOW_DOWN.body("").after(SECOND / 100)]).await;
    let strategy = Arc::new(Adaptive::paced());
    let client = Client::from_conf(paced(server.endpoint(), strategy.clone(), "hot").build());
    copy(&client).await.expect_err("it is refused");
    let counts = strategy.snapshot().counts;
    assert_eq!((counts.granted, counts.throttled), (2, 3));
}

#[test]
fn it_takes_two_lines() {
    assert_eq!(kit::count_lines(include_str!("../README.md")), 2);
}
