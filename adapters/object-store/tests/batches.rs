//! Batches of deletes of which a service on loopback refuses some keys.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    clippy::indexing_slicing,
    reason = "a server in a test, with small numbers"
)]

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::{fmt::Write as _, time::Duration};
use std::sync::Mutex;

use futures_util::{StreamExt as _, stream};
use http::Response;
use kit::{Asked, Reply, Server};
use object_store::{
    ObjectStore,
    aws::{AmazonS3, AmazonS3Builder},
    azure::{MicrosoftAzure, MicrosoftAzureBuilder},
    path::Path,
};
use paceline::{Adaptive, RetryStrategy, TokioClock};
use paceline_object_store::{Lanes, PacedConnector, PacedStore, Pacing};
use support::{hyper::Hyper, standard};
use tokio::time::{Instant, sleep};

/// A service that deletes so many keys a second.
struct Limit {
    rate: f64,
    burst: f64,
    bucket: Mutex<(f64, Instant)>,
    /// The keys of each request, and how many of them were refused.
    asked: Mutex<Vec<(Vec<String>, usize)>>,
}

impl Limit {
    fn new(rate: f64, burst: f64) -> Arc<Self> {
        Arc::new(Self {
            rate,
            burst,
            bucket: Mutex::new((burst, Instant::now())),
            asked: Mutex::default(),
        })
    }

    /// Takes the first of the keys, and returns how many it takes.
    fn take(&self, keys: &[String]) -> usize {
        let mut bucket = self.bucket.lock().expect("no test panicked in here");
        let (left, last) = *bucket;
        let now = Instant::now();
        let mut left = f64::min(left + (now - last).as_secs_f64() * self.rate, self.burst);
        let taken = keys.iter().take_while(|_| {
            let passes = left >= 1.0;
            left -= if passes { 1.0 } else { 0.0 };
            passes
        });
        let taken = taken.count();
        *bucket = (left, now);
        let refused = (keys.to_vec(), keys.len() - taken);
        let mut asked = self.asked.lock().expect("no test panicked in here");
        asked.push(refused);
        taken
    }

    fn asked(&self) -> Vec<(Vec<String>, usize)> {
        self.asked.lock().expect("no test panicked in here").clone()
    }

    /// Returns how many keys were sent, and how many of them refused.
    fn counts(&self) -> (usize, usize) {
        let asked = self.asked();
        let sent = asked.iter().map(|(keys, _)| keys.len()).sum();
        (sent, asked.iter().map(|(_, refused)| refused).sum())
    }

    /// Answers `DeleteObjects`.
    fn s3(&self, request: &Asked) -> String {
        let keys = between(request, "<Key>", "</Key>");
        let taken = self.take(&keys);
        let mut answer = String::from("<?xml version=\"1.0\"?><DeleteResult>");
        for (n, key) in keys.iter().enumerate() {
            let said = if n < taken {
                write!(answer, "<Deleted><Key>{key}</Key></Deleted>")
            } else {
                write!(
                    answer,
                    "<Error><Key>{key}</Key><Code>SlowDown</Code><Message>later</Message></Error>"
                )
            };
            said.expect("a text");
        }
        answer + "</DeleteResult>"
    }

    /// Answers a batch of Azure.
    fn azure(&self, request: &Asked) -> String {
        let keys = between(request, "DELETE /logs/", " HTTP/1.1");
        let taken = self.take(&keys);
        let mut answer = String::new();
        for n in 0..keys.len() {
            let status = if n < taken {
                "202 Accepted"
            } else {
                "503 The server is busy."
            };
            let said = write!(
                answer,
                "--r\r\nContent-Type: application/http\r\nContent-ID: {n}\r\n\r\n\
                 HTTP/1.1 {status}\r\nx-ms-version: 2018-11-09\r\n\r\n"
            );
            said.expect("a text");
        }
        answer + "--r--\r\n"
    }
}

/// Returns the texts between the two in the body of a request.
fn between(request: &Asked, begin: &str, end: &str) -> Vec<String> {
    let body = String::from_utf8_lossy(&request.body);
    let pieces = body.split(begin).skip(1);
    let pieces = pieces.filter_map(|piece| Some(piece.split_once(end)?.0.to_owned()));
    pieces.collect()
}

/// Starts a server that answers each request with what `answer` says, after a moment.
async fn server(status: u16, answer: impl Fn(&Asked) -> String + Send + Sync + 'static) -> Server {
    Server::replying(move |_, request| {
        let body = answer(request);
        async move {
            sleep(Duration::from_millis(20)).await;
            let response = Response::builder().status(status);
            let response = response.header("content-type", "multipart/mixed; boundary=r");
            Reply::Ok(response.body(body.into()).expect("a response"))
        }
    })
    .await
}

fn s3(server: &Server, connector: PacedConnector) -> AmazonS3 {
    let store = AmazonS3Builder::new()
        .with_endpoint(server.endpoint())
        .with_bucket_name("logs")
        .with_skip_signature(true)
        .with_allow_http(true)
        .with_http_connector(connector);
    store.build().expect("a store")
}

fn azure(server: &Server, connector: PacedConnector) -> MicrosoftAzure {
    let store = MicrosoftAzureBuilder::new()
        .with_endpoint(server.endpoint().to_owned())
        .with_account("a")
        .with_container_name("logs")
        .with_bearer_token_authorization("t")
        .with_allow_http(true)
        .with_http_connector(connector);
    store.build().expect("a store")
}

/// Deletes so many keys, and returns those that are deleted and the errors.
async fn delete(store: &impl ObjectStore, keys: usize) -> (Vec<String>, Vec<String>) {
    let names = (0..keys).map(|n| Ok(Path::from(format!("k{n}"))));
    let ended: Vec<_> = store
        .delete_stream(stream::iter(names.collect::<Vec<_>>()).boxed())
        .collect()
        .await;
    let (mut deleted, mut errors) = (Vec::new(), Vec::new());
    for one in ended {
        match one {
            Ok(path) => deleted.push(path.to_string()),
            Err(error) => errors.push(error.to_string()),
        }
    }
    (deleted, errors)
}

fn names(keys: usize) -> Vec<String> {
    (0..keys).map(|n| format!("k{n}")).collect()
}

fn bulk() -> Arc<Adaptive> {
    let strategy = Adaptive::builder()
        .bulk()
        .clock(Arc::new(TokioClock::new()));
    Arc::new(strategy.build().expect("in range"))
}

/// Returns a store whose connector is paced, and the server that it asks.
async fn s3_of(limit: &Arc<Limit>, write: Arc<dyn RetryStrategy>) -> (AmazonS3, Server) {
    let of = limit.clone();
    let server = server(200, move |request| of.s3(request)).await;
    let connector = PacedConnector::new(Hyper, Lanes::shared(write.clone(), write));
    (s3(&server, connector.refusals_by_key()), server)
}

/// The same for Azure.
async fn azure_of(limit: &Arc<Limit>, write: Arc<dyn RetryStrategy>) -> (MicrosoftAzure, Server) {
    let of = limit.clone();
    let server = server(202, move |request| of.azure(request)).await;
    let connector = PacedConnector::new(Hyper, Lanes::shared(write.clone(), write));
    (azure(&server, connector.refusals_by_key()), server)
}

/// Asserts that all keys are deleted in order, and at most so many in a hundred refused.
async fn deletes(store: impl ObjectStore, limit: &Limit, keys: usize, most: usize) {
    let store = PacedStore::new(store, Pacing::over_connector());
    let begun = Instant::now();
    let (deleted, errors) = delete(&store, keys).await;
    let (sent, refused) = limit.counts();
    let figures = (sent, refused, limit.asked().len(), begun.elapsed(), errors);
    println!("{figures:?}");
    assert_eq!(deleted, names(keys), "in order: {figures:?}");
    assert!(refused * 100 <= most * sent, "{figures:?}");
}

/// 200 keys a second, and as many as 400 at once, in batches of a thousand.
#[tokio::test(start_paused = true)]
async fn all_keys_are_deleted_and_few_are_refused() {
    for (keys, most) in [(2_000, 6), (10_000, 3)] {
        let limit = Limit::new(200.0, 400.0);
        let (store, _server) = s3_of(&limit, bulk()).await;
        deletes(store, &limit, keys, most).await;
    }
}

/// The same in Azure's batches of 256.
#[tokio::test(start_paused = true)]
async fn azure_deletes_all_keys_and_refuses_few() {
    let limit = Limit::new(200.0, 400.0);
    let (store, _server) = azure_of(&limit, bulk()).await;
    deletes(store, &limit, 2_000, 6).await;
}

#[tokio::test(start_paused = true)]
async fn refused_keys_alone_are_sent_again_in_order_and_each_send_counts_once() {
    let limit = Limit::new(100.0, 3.0);
    let write = standard();
    let (store, _server) = s3_of(&limit, write.clone()).await;
    let store = PacedStore::new(store, Pacing::over_connector());
    let (deleted, errors) = delete(&store, 4).await;
    assert_eq!((deleted, errors), (names(4), vec![]));
    let keys = names(4);
    let expected = [(keys.clone(), 1), (keys[3..].to_vec(), 0)];
    let asked = limit.asked();
    assert_eq!(asked, expected);
    assert_eq!(write.snapshot().counts.throttled, 1);
}

/// Without the wrapper each key has its own result, and nothing is sent again.
#[tokio::test(start_paused = true)]
async fn the_store_says_what_was_refused() {
    let limit = Limit::new(1.0, 3.0);
    let write = standard();
    let (store, server) = s3_of(&limit, write.clone()).await;
    let (deleted, errors) = delete(&store, 5).await;
    assert_eq!((deleted, server.requests()), (names(3), 1));
    assert_eq!(errors.len(), 2);
    assert!(errors[0].contains("for key k3: ") && errors[0].contains("(code: SlowDown)"));
    assert_eq!(write.snapshot().counts.throttled, 1);
    assert_eq!(write.quota().available(), 500, "no retry, no cost");
}

#[tokio::test(start_paused = true)]
async fn each_send_of_a_store_that_repeats_the_batch_is_heard() {
    let limit = Limit::new(2.0, 4.0);
    let of = limit.clone();
    let server = server(200, move |request| of.s3(request)).await;
    let strategy = bulk();
    let lanes = Lanes::shared(strategy.clone(), strategy.clone());
    let store = s3(&server, PacedConnector::new(Hyper, lanes));
    drop(delete(&store, 6).await);
    let throttled = limit
        .asked()
        .iter()
        .filter(|(_, refused)| *refused > 0)
        .count();
    assert_eq!(strategy.snapshot().counts.throttled, throttled as u64);
}

/// A thousand keys with long names take more than the beginning of a body. A megabyte is too much.
#[tokio::test(start_paused = true)]
async fn a_long_answer_is_read_and_an_endless_one_is_not() {
    for (blanks, throttled) in [(200_000, 1), (1_200_000, 0)] {
        let limit = Limit::new(1.0, 3.0);
        let server = server(200, move |request| {
            let end = " ".repeat(blanks) + "</DeleteResult>";
            limit.s3(request).replace("</DeleteResult>", &end)
        })
        .await;
        let write = standard();
        let lanes = Lanes::shared(write.clone(), write.clone());
        let store = s3(&server, PacedConnector::new(Hyper, lanes).refusals_by_key());
        let (deleted, errors) = delete(&store, 5).await;
        assert_eq!((deleted, errors.len(), server.requests()), (names(3), 2, 1));
        assert_eq!(write.snapshot().counts.throttled, throttled, "{blanks}");
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_azure_refused_are_sent_again() {
    let limit = Limit::new(2.0, 3.0);
    let write = bulk();
    let (store, _server) = azure_of(&limit, write.clone()).await;
    let store = PacedStore::new(store, Pacing::over_connector());
    assert_eq!(delete(&store, 5).await, (names(5), vec![]));
    let asked = limit.asked();
    assert_eq!(asked[0], (names(5), 2));
    assert_eq!(asked[1].0, names(5)[3..]);
    assert!(write.snapshot().counts.throttled >= 1);
}

/// The wrapper alone sees the errors of each key, which Azure's store returns.
#[tokio::test(start_paused = true)]
async fn the_wrapper_alone_paces_what_azure_refused() {
    let limit = Limit::new(10.0, 3.0);
    let of = limit.clone();
    let server = server(202, move |request| of.azure(request)).await;
    let strategy = bulk();
    let pacing = Pacing::by(move |_| Lanes::shared(strategy.clone(), strategy.clone()));
    let store = MicrosoftAzureBuilder::new()
        .with_endpoint(server.endpoint().to_owned())
        .with_account("a")
        .with_container_name("logs")
        .with_bearer_token_authorization("t")
        .with_allow_http(true)
        .with_http_connector(Hyper);
    let store = PacedStore::new(store.build().expect("a store"), pacing);
    assert_eq!(delete(&store, 5).await, (names(5), vec![]));
    assert_eq!(limit.asked()[1].0, names(5)[3..]);
}

/// A rate that never holds as many tokens takes as many as it holds.
#[tokio::test(start_paused = true)]
async fn a_batch_above_the_capacity_of_a_lane_goes() {
    let limit = Limit::new(10.0, 10.0);
    let (store, _server) = s3_of(&limit, support::fixed(10)).await;
    assert_eq!(delete(&store, 5).await, (names(5), vec![]));
    let store = PacedStore::new(
        store,
        Pacing::by(|_| {
            Lanes::new(
                kit::fixed(10).build().unwrap(),
                kit::fixed(10).build().unwrap(),
            )
        }),
    );
    assert_eq!(delete(&store, 5).await, (names(5), vec![]));
}

/// What is cut, or is no answer to a batch, says nothing, and reaches the store as it is.
#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_read_counts_as_done() {
    let whole =
        "<DeleteResult><Error><Key>k0</Key><Code>Slow&#68;own</Code></Error></DeleteResult>";
    for body in [&whole[..50], "SlowDown, please", "\u{0}"] {
        let server = server(200, move |_| body.to_owned()).await;
        let write = standard();
        let lanes = Lanes::shared(write.clone(), write.clone());
        let store = s3(&server, PacedConnector::new(Hyper, lanes).refusals_by_key());
        let (deleted, errors) = delete(&store, 2).await;
        assert_eq!((deleted.len(), errors.len()), (0, 1), "{body}");
        assert_eq!(write.snapshot().counts.throttled, 0, "{body}");
        assert_eq!(server.requests(), 1, "{body}");
    }
}
