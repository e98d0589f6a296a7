//! A store for S3 whose connector is paced, against a server on loopback.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::{error::Error as _, time::Duration};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kit::{BROKEN, OK, OVERLOADED, SLOW_DOWN, Said, Server};
use object_store::{
    Error, ObjectStore as _, ObjectStoreExt as _,
    aws::{AmazonS3, AmazonS3Builder},
    path::Path,
};
use paceline::{Standard, classify::Classifier as _, operation::Stop};
use paceline_object_store::{Lanes, PacedConnector, PacedStore, Pacing, StoreErrors};
use support::{
    fixed,
    hyper::{Hyper, store_at},
    refusing, standard,
};
use tokio::time::Instant;

/// Returns a store of `server`, which does not retry.
fn store_of(server: &Server, lanes: Lanes) -> AmazonS3 {
    store_at(server.endpoint(), PacedConnector::new(Hyper, lanes))
}

/// A strategy for all requests.
fn one(strategy: &Arc<Standard>) -> Lanes {
    Lanes::shared(strategy.clone(), strategy.clone())
}

#[tokio::test]
async fn what_the_wrapper_cannot_send_again_is_sent_again_here() {
    let server = Server::with(&[OVERLOADED, OK]).await;
    let strategy = standard();
    let store = store_of(&server, one(&strategy));
    store
        .put(&Path::from("x"), "one".into())
        .await
        .expect("it is written");
    assert_eq!(server.methods(), "PUT PUT");

    let server = Server::with(&[OVERLOADED, OK.body(DELETED)]).await;
    let store = store_of(&server, one(&strategy));
    let locations = stream::iter(["x", "y"].map(|name| Ok(Path::from(name)))).boxed();
    let gone: Vec<_> = store
        .delete_stream(locations)
        .try_collect()
        .await
        .expect("they are gone");
    assert_eq!((gone.len(), server.methods().as_str()), (2, "POST POST"));

    let server = Server::with(&[OK.body(UPLOAD), OVERLOADED, BROKEN, OK]).await;
    let store = store_of(&server, one(&strategy));
    let mut upload = store
        .put_multipart(&Path::from("x"))
        .await
        .expect("an upload");
    upload.put_part("one".into()).await.expect("a part");
    assert_eq!(server.methods(), "POST PUT PUT PUT");

    let server = Server::with(&[OK.body(PAGE), OVERLOADED, OK.body(LAST_PAGE)]).await;
    let listed: Vec<_> = store_of(&server, one(&strategy))
        .list(None)
        .try_collect()
        .await
        .expect("a list");
    assert_eq!(
        (listed.len(), server.methods().as_str()),
        (2, "GET GET GET")
    );
    // Every retry was paid back, but for the first of the part's two; and a success without one has
    // given 1 since.
    assert_eq!(strategy.quota().available(), 496);
}

const DELETED: &str =
    "<DeleteResult><Deleted><Key>x</Key></Deleted><Deleted><Key>y</Key></Deleted></DeleteResult>";
const UPLOAD: &str =
    "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>";
const PAGE: &str = "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>n</NextContinuationToken>\
    <Contents><Key>a</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents></ListBucketResult>";
const LAST_PAGE: &str = "<ListBucketResult><IsTruncated>false</IsTruncated>\
    <Contents><Key>b</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents></ListBucketResult>";

#[tokio::test]
async fn a_wrong_request_is_sent_once() {
    let server = Server::with(&[Said::new(400), OK]).await;
    let store = store_of(&server, one(&standard()));
    let put = store.put(&Path::from("x"), "one".into()).await;
    assert_eq!((put.is_ok(), server.methods().as_str()), (false, "PUT"));
}

#[tokio::test]
async fn what_never_got_a_connection_was_not_sent() {
    let server = Server::with(&[OK]).await;
    let strategy = standard();
    let store = store_of(&server, one(&strategy));
    drop(server);
    tokio::task::yield_now().await; // the server's task ends, and with it its socket
    assert!(store.put_multipart(&Path::from("x")).await.is_err());
    assert_eq!(strategy.quota().available(), 472); // two retries, though it was a POST
}

#[tokio::test(start_paused = true)]
async fn reads_and_writes_stand_in_lines_of_their_own() {
    let server = Server::with(&[OK]).await;
    let store = store_of(&server, Lanes::shared(fixed(10), fixed(2)));
    let (x, begun) = (&Path::from("x"), Instant::now());
    let mut ends = Vec::new();
    for _ in 0..3 {
        store.put(x, "one".into()).await.expect("it is written");
        ends.push(begun.elapsed().as_millis() / 10);
    }
    for _ in 0..2 {
        store.head(x).await.expect("it is there");
        ends.push(begun.elapsed().as_millis() / 10);
    }
    assert_eq!(ends, [0, 50, 100, 100, 110]);
}

#[tokio::test(start_paused = true)]
async fn the_wait_is_the_services_word_and_a_wrong_one_is_none() {
    let server = Server::with(&[
        SLOW_DOWN.header(("retry-after", "7")),
        OVERLOADED.header(("retry-after", "soon")),
        OK,
    ])
    .await;
    let begun = Instant::now();
    let put = store_of(&server, one(&standard()))
        .put(&Path::from("x"), "one".into())
        .await;
    assert!(put.is_ok());
    assert_eq!(
        (begun.elapsed().as_secs(), server.methods().as_str()),
        (7, "PUT PUT PUT")
    );
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_does_not_wait_says_so() {
    let server = Server::with(&[OK]).await;
    let store = store_of(&server, Lanes::new(refusing(), refusing()));
    store
        .put(&Path::from("x"), "one".into())
        .await
        .expect("it is written");
    let error = store
        .put(&Path::from("x"), "one".into())
        .await
        .expect_err("it would wait");
    assert!(matches!(error, Error::Generic { .. }), "{error}");
    let mut source = error.source();
    while let Some(error) = source.filter(|error| !error.is::<Stop>()) {
        source = error.source();
    }
    let refused = source.and_then(|error| error.downcast_ref::<Stop>());
    let refused = refused.expect("its own error");
    assert!(refused.wait() > Duration::ZERO);
    assert_eq!(refused.name(), Some("orders"));
    assert_eq!(server.methods(), "PUT");
}

#[tokio::test(start_paused = true)]
async fn an_error_in_a_success_is_paced_and_retried() {
    const LATE: Said = OK.body("<?xml version=\"1.0\"?><Error><Code>SlowDown</Code></Error>");
    const COPIED: Said = OK.body(
        "<CopyObjectResult><ETag>\"x\"</ETag>\
         <LastModified>2009-10-12T17:50:30.000Z</LastModified></CopyObjectResult>",
    );
    let server = Server::with(&[LATE, LATE, COPIED]).await;
    let write = standard();
    let store = store_of(
        &server,
        Lanes::shared(Arc::new(Standard::new()), write.clone()),
    );
    let copied = store.copy(&Path::from("a"), &Path::from("b")).await;
    copied.expect("the third is let through");
    assert_eq!(server.methods(), "PUT PUT PUT");
    // Five for each of the two retries of a throttle, and the last five back.
    assert_eq!(write.quota().available(), 495);
    // What is stored may look like an error.
    let server = Server::with(&[LATE]).await;
    let store = store_of(&server, Lanes::new(Standard::new(), Standard::new()));
    let got = store.get(&Path::from("a")).await.expect("an object");
    assert!(got.bytes().await.expect("a body").starts_with(b"<?xml"));
    assert_eq!(server.methods(), "GET");
}

/// A store with the retries that stores have by default: ten of each request.
fn by_default(server: &Server, lanes: Lanes) -> AmazonS3 {
    let store = AmazonS3Builder::new()
        .with_endpoint(server.endpoint())
        .with_bucket_name("logs")
        .with_skip_signature(true)
        .with_allow_http(true)
        .with_http_connector(PacedConnector::new(Hyper, lanes));
    store.build().expect("a store")
}

#[tokio::test]
async fn the_stores_own_retries_come_to_nothing() {
    for (answer, sends, words) in [
        (OVERLOADED, 3, "status code: 503 Service Unavailable"),
        (BROKEN, 3, "status code: 500 Internal Server Error"),
        (SLOW_DOWN, 3, "status code: 429 Too Many Requests"),
        (Said::new(501), 1, "status code: 501 Not Implemented"),
        (Said::RESET, 3, ""),
    ] {
        let server = Server::with(&[answer]).await;
        let store = by_default(&server, one(&standard()));
        let error = store.get(&Path::from("x")).await.expect_err("it fails");
        assert_eq!(server.requests(), sends, "{answer:?}");
        assert!(format!("{error}").contains(words), "{error}");
    }
    // What the store has a use for is handed on as it is.
    let server = Server::with(&[Said::new(404)]).await;
    let store = by_default(&server, one(&standard()));
    let missing = store.get(&Path::from("x")).await;
    assert!(
        matches!(missing, Err(Error::NotFound { .. })),
        "{missing:?}"
    );
    // An error in a success.
    let refused = "<Error><Code>SlowDown</Code></Error>";
    let server = Server::with(&[OK.body(refused)]).await;
    let store = by_default(&server, one(&standard()));
    let error = store.copy(&Path::from("x"), &Path::from("y")).await;
    let error = error.expect_err("it is refused");
    assert_eq!(server.methods(), "PUT PUT PUT");
    assert!(
        StoreErrors
            .classify(&error)
            .is_some_and(|failure| failure.is_throttle())
    );
}

#[tokio::test]
async fn of_a_wrapper_over_a_connector_the_wrapper_sends_again() {
    let server = Server::with(&[BROKEN]).await;
    let (outer, inner) = (standard(), standard());
    let pacing = Pacing::by({
        let lanes = one(&outer);
        move |_| lanes.clone()
    });
    let store = PacedStore::new(by_default(&server, one(&inner)), pacing);
    store.get(&Path::from("x")).await.expect_err("it fails");
    assert_eq!(server.methods(), "GET GET GET");
    assert_eq!(
        [outer, inner].map(|each| each.quota().available()),
        [472, 500]
    );

    // A list with a delimiter is several requests: the connector sends each again.
    let server = Server::with(&[BROKEN]).await;
    let (outer, inner) = (standard(), standard());
    let pacing = Pacing::by({
        let lanes = one(&outer);
        move |_| lanes.clone()
    });
    let store = PacedStore::new(by_default(&server, one(&inner)), pacing);
    store.list_with_delimiter(None).await.expect_err("it fails");
    assert_eq!(server.requests(), 9);
}
