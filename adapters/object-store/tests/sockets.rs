//! What users are promised, in real time over sockets of loopback: a store for S3 with a paced
//! connector.

#![allow(
    clippy::needless_pass_by_value,
    reason = "as the promises hand it over"
)]

extern crate alloc;

mod support;

use alloc::sync::Arc;

use object_store::{ObjectStoreExt as _, RetryConfig, aws::AmazonS3Builder, path::Path};
use paceline_object_store::{Lanes, PacedConnector};
use promises::{BODY_DEADLINE, DEADLINE, HINTED, OK, OVERLOADED, Read, SLOW_DOWN, Said, Strategy};
use support::{hyper::Hyper, standard};

const SLOW_FOR_30: Said = OVERLOADED.header(("retry-after", "30"));

fn connector(strategy: &Strategy, scope: &'static str) -> PacedConnector {
    let strategy = promises::on(strategy, scope);
    PacedConnector::new(Hyper, Lanes::shared(strategy.clone(), strategy))
}

/// Reads an object of a store that does not retry. Returns `true` if that succeeded.
fn reads(url: String, connector: PacedConnector) -> impl Fn() -> Read + Clone + Send + 'static {
    let store = AmazonS3Builder::new()
        .with_endpoint(url.trim_end_matches('/'))
        .with_bucket_name("logs")
        .with_skip_signature(true)
        .with_allow_http(true)
        .with_http_connector(connector)
        .with_retry(RetryConfig {
            max_retries: 0,
            ..RetryConfig::default()
        });
    let store = Arc::new(store.build().expect("a store"));
    move || {
        let store = store.clone();
        Box::pin(async move {
            match store.get(&Path::from("x")).await {
                Ok(object) => object.bytes().await.is_ok(),
                Err(_) => false,
            }
        })
    }
}

fn hot(url: String, strategy: Strategy) -> impl Fn() -> Read + Clone + Send + 'static {
    reads(url, connector(&strategy, "hot"))
}

#[tokio::test]
async fn a_limited_scope_is_limited_and_slows_no_other() {
    promises::a_limited_scope_slows_no_other(OK, |url, strategy, scope| {
        reads(url, connector(&strategy, scope))
    })
    .await;
}

#[tokio::test]
async fn a_service_that_says_429_is_adapted_to() {
    promises::a_service_is_adapted_to(OK, SLOW_DOWN, hot).await;
}

#[tokio::test]
async fn a_service_that_says_503_is_adapted_to() {
    promises::a_service_is_adapted_to(OK, OVERLOADED, hot).await;
}

#[tokio::test]
async fn a_service_that_says_503_and_when_is_adapted_to() {
    promises::a_service_is_adapted_to(OK, HINTED, hot).await;
}

#[tokio::test]
async fn a_deadline_ends_everything() {
    promises::a_deadline_ends_everything(OK, SLOW_FOR_30, |url, strategy| {
        reads(url, connector(&strategy, "hot").deadline(DEADLINE))
    })
    .await;
}

#[tokio::test]
async fn a_dropped_request_leaves_nothing() {
    promises::a_dropped_request_leaves_nothing(OK, SLOW_FOR_30, hot).await;
}

#[tokio::test]
async fn a_waiter_goes_early_when_the_rate_rises() {
    promises::a_waiter_goes_early(OK, hot).await;
}

#[test]
fn it_takes_two_lines_also_with_the_wrapper() {
    let readme = include_str!("../README.md");
    assert_eq!(promises::count_lines(readme), 2);
    let (_, wrapper) = readme.split_once("takes the wrapper:").expect("a wrapper");
    assert_eq!(promises::count_lines(wrapper), 2);
}

#[tokio::test]
async fn a_hostile_body_is_bounded() {
    promises::a_hostile_body_is_bounded(|url| async move {
        let strategy = standard();
        let connector = PacedConnector::new(Hyper, Lanes::shared(strategy.clone(), strategy));
        let store = AmazonS3Builder::new()
            .with_endpoint(url.trim_end_matches('/'))
            .with_bucket_name("logs")
            .with_skip_signature(true)
            .with_allow_http(true)
            .with_http_connector(connector.deadline(BODY_DEADLINE));
        let store = store.build().expect("a store");
        let read = store.get(&Path::from("x")).await;
        read.expect_err("it is refused").to_string()
    })
    .await;
}
