//! What users are promised, in real time over sockets of loopback: an operator for S3.

extern crate alloc;

mod support;

use alloc::sync::Arc;
use core::time::Duration;

use kit::{
    HINTED, OK, OVERLOADED, SLOW_DOWN,
    promises::{self, BODY_DEADLINE, Sends, Strategy},
};
use paceline_opendal::{Lanes, PacingLayer};
use support::{operator_at, standard};

/// Reads an object, and tells whether that succeeded.
#[allow(
    clippy::needless_pass_by_value,
    reason = "as the promises hand it over"
)]
fn reads(
    url: String,
    strategy: Strategy,
    scope: &'static str,
    deadline: Option<Duration>,
) -> impl Sends {
    let strategy = promises::on(&strategy, scope);
    let lanes = Lanes::shared(strategy.clone(), strategy);
    let layer = PacingLayer::by(move |_| lanes.clone());
    let layer = match deadline {
        Some(span) => layer.deadline(span),
        None => layer,
    };
    let operator = Arc::new(operator_at(url.trim_end_matches('/'), layer));
    move || {
        let operator = operator.clone();
        Box::pin(async move { operator.read("x").await.is_ok() })
    }
}

kit::keep_promises! {
    client: reads,
    well: OK,
    refusals: {
        a_service_that_says_429_is_adapted_to: SLOW_DOWN,
        a_service_that_says_503_is_adapted_to: OVERLOADED,
        a_service_that_says_503_and_when_is_adapted_to: HINTED,
    },
    slow: OVERLOADED.header(("retry-after", "30")),
}

#[test]
fn it_takes_one_line() {
    assert_eq!(kit::count_lines(include_str!("../README.md")), 1);
}

#[tokio::test]
async fn a_hostile_body_is_bounded() {
    promises::a_hostile_body_is_bounded(|url| async move {
        let layer = standard().0.deadline(BODY_DEADLINE);
        let read = operator_at(url.trim_end_matches('/'), layer)
            .read("x")
            .await;
        read.expect_err("it is refused").to_string()
    })
    .await;
}
