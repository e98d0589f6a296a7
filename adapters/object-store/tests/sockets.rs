//! What users are promised, in real time over sockets of loopback: a store for S3 with a paced
//! connector.

extern crate alloc;

mod support;

use alloc::sync::Arc;

use kit::promises::{self, BODY_DEADLINE, Sends, Setup};
use object_store::{ObjectStoreExt as _, aws::AmazonS3Builder, path::Path};
use paceline_object_store::{Lanes, PacedConnector};
use support::{
    hyper::{Hyper, store_at},
    standard,
};

/// Reads an object of a store that does not retry. Returns `true` if that succeeded.
fn reads(setup: &Setup) -> impl Sends + use<> {
    let connector = PacedConnector::new(Hyper, Lanes::shared(setup.scoped(), setup.scoped()));
    let connector = setup.bounded(connector, PacedConnector::deadline);
    let store = Arc::new(store_at(setup.endpoint(), connector));
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

kit::keep_promises! { client: reads }

#[test]
fn it_takes_two_lines_also_with_the_wrapper() {
    let readme = include_str!("../README.md");
    assert_eq!(kit::count_lines(readme), 2);
    let (_, wrapper) = readme.split_once("takes the wrapper:").expect("a wrapper");
    assert_eq!(kit::count_lines(wrapper), 2);
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
