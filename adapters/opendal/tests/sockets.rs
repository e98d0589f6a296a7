//! What users are promised, in real time over sockets of loopback: an operator for S3.

#![allow(
    clippy::needless_pass_by_value,
    reason = "as the promises hand it over"
)]

extern crate alloc;

mod support;

use alloc::sync::Arc;

use core::time::Duration;
use paceline::Standard;
use paceline_opendal::{Lanes, PacingLayer};
use promises::{BODY_DEADLINE, DEADLINE, HINTED, OK, OVERLOADED, Read, SLOW_DOWN, Said, Strategy};
use support::{Always, operator_at};

const SLOW_FOR_30: Said = OVERLOADED.header(("retry-after", "30"));

fn layer(strategy: &Strategy, scope: &'static str) -> PacingLayer {
    let strategy = promises::on(strategy, scope);
    let lanes = Lanes::shared(strategy.clone(), strategy);
    PacingLayer::by(move |_| lanes.clone())
}

/// Reads an object, and tells whether that succeeded.
fn reads(url: String, layer: PacingLayer) -> impl Fn() -> Read + Clone + Send + 'static {
    let operator = Arc::new(operator_at(url.trim_end_matches('/'), layer));
    move || {
        let operator = operator.clone();
        Box::pin(async move { operator.read("x").await.is_ok() })
    }
}

fn hot(url: String, strategy: Strategy) -> impl Fn() -> Read + Clone + Send + 'static {
    reads(url, layer(&strategy, "hot"))
}

#[tokio::test]
async fn a_limited_scope_is_limited_and_slows_no_other() {
    promises::a_limited_scope_slows_no_other(OK, |url, strategy, scope| {
        reads(url, layer(&strategy, scope))
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
        reads(url, layer(&strategy, "hot").deadline(DEADLINE))
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
fn it_takes_one_line() {
    assert_eq!(promises::count_lines(include_str!("../README.md")), 1);
}

#[tokio::test]
async fn a_hostile_body_is_bounded() {
    promises::a_hostile_body_is_bounded(|url| async move {
        let strategy = Standard::builder().backoff(Arc::new(Always(Duration::ZERO)));
        let strategy = Arc::new(strategy.build().expect("in range"));
        let lanes = Lanes::shared(strategy.clone(), strategy);
        let layer = PacingLayer::by(move |_| lanes.clone()).deadline(BODY_DEADLINE);
        let read = operator_at(url.trim_end_matches('/'), layer)
            .read("x")
            .await;
        read.expect_err("it is refused").to_string()
    })
    .await;
}
