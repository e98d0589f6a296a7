//! What users are promised, in real time over sockets of loopback: an operator for S3.

extern crate alloc;

mod support;

use alloc::sync::Arc;

use kit::promises::{self, BODY_DEADLINE, Sends, Setup};
use paceline_opendal::{Lanes, PacingLayer};
use support::{operator_at, standard};

/// Reads an object, and tells whether that succeeded.
fn reads(setup: &Setup) -> impl Sends + use<> {
    let lanes = Lanes::shared(setup.scoped(), setup.scoped());
    let layer = PacingLayer::by(move |_| lanes.clone());
    let layer = setup.bounded(layer, PacingLayer::deadline);
    let operator = Arc::new(operator_at(setup.endpoint(), layer));
    move || {
        let operator = operator.clone();
        Box::pin(async move { operator.read("x").await.is_ok() })
    }
}

kit::keep_promises! { client: reads }

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
