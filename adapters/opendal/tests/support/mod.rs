//! An operator for S3, with no timer but those of the tests.

#![allow(dead_code, reason = "each test program uses a part")]

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;

use kit::Server;
use opendal::{HttpTransporter, OperationContext, Operator, services::S3};
use opendal_http_transport_reqwest::ReqwestTransport;
use paceline::Standard;
use paceline_opendal::{Lanes, PacingLayer};

/// Further off than any time limit of the tests.
const AGES: Duration = Duration::from_secs(1_000_000);

/// A strategy for all requests, of three attempts without a backoff.
pub(crate) fn standard() -> (PacingLayer, Arc<Standard>) {
    let strategy = kit::standard().build().expect("in range");
    let strategy = Arc::new(strategy);
    let lanes = Lanes::shared(strategy.clone(), strategy.clone());
    (PacingLayer::by(move |_| lanes.clone()), strategy)
}

/// An operator for a bucket on `server`.
pub(crate) fn operator(server: &Server, layer: PacingLayer) -> Operator {
    operator_at(server.endpoint(), layer)
}

/// An operator for a bucket on the server at `url`.
pub(crate) fn operator_at(url: &str, layer: PacingLayer) -> Operator {
    let service = S3::default()
        .endpoint(url)
        .bucket("logs")
        .region("us-east-1")
        .access_key_id("test")
        .secret_access_key("testtest")
        .disable_config_load()
        .disable_ec2_metadata();
    let client = reqwest::Client::builder()
        .no_proxy()
        .pool_idle_timeout(AGES)
        .build()
        .expect("a client");
    let transport = HttpTransporter::new(ReqwestTransport::new(client));
    Operator::new(service)
        .expect("a service")
        .with_context(OperationContext::new().with_http_transport(transport))
        .layer(layer)
}
