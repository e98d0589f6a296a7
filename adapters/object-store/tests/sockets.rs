//! What users are promised, in real time over sockets of loopback: a store for S3 with a paced connector.

#![allow(clippy::arithmetic_side_effects, reason = "small numbers of a test")]

extern crate alloc;

mod support;

use alloc::sync::Arc;
use core::{convert::Infallible, time::Duration};
use std::sync::Mutex;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use object_store::{
    ObjectStoreExt as _, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder},
    path::Path,
};
use paceline::{Adaptive, law::PacedSettings};
use paceline_object_store::{Lanes, PacedConnector};
use support::{SECOND, hyper::Hyper};
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{Instant, timeout},
};

const OK: Said = says(200, None);
const SLOW_DOWN: Said = says(429, None);
const OVERLOADED: Said = says(503, None);
const HINTED: Said = says(503, Some(("retry-after", "1")));

/// What a server says to a request.
#[derive(Clone, Copy, Debug)]
struct Said {
    status: u16,
    header: Option<(&'static str, &'static str)>,
    after: Duration,
}

const fn says(status: u16, header: Option<(&'static str, &'static str)>) -> Said {
    let after = Duration::ZERO;
    Said {
        status,
        header,
        after,
    }
}

/// Starts a server on a free port; it ends with the test's run time.
async fn serve(say: impl Fn() -> Said + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let say = Arc::new(say);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let say = say.clone();
            let service = hyper::service::service_fn(move |_: Request<Incoming>| {
                let said = say();
                async move {
                    tokio::time::sleep(said.after).await;
                    let response = Response::builder()
                        .status(said.status)
                        .header("etag", "\"x\"")
                        .header("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT");
                    let response = match said.header {
                        Some((name, value)) => response.header(name, value),
                        None => response,
                    };
                    let body = Full::<Bytes>::from("x");
                    Ok::<_, Infallible>(response.body(body).expect("a response"))
                }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
        }
    });
    url
}

/// Says 200 to `rate` requests a second, ten at once at most, and `refusal` to the others.
#[allow(clippy::float_arithmetic, reason = "a server in a test")]
fn limited(rate: f64, refusal: Said) -> impl Fn() -> Said {
    let bucket = Mutex::new((10.0, Instant::now()));
    move || {
        let mut bucket = bucket.lock().expect("no test panicked in here");
        let (tokens, last) = *bucket;
        let now = Instant::now();
        let tokens = f64::min(tokens + (now - last).as_secs_f64() * rate, 10.0);
        let passes = tokens >= 1.0;
        *bucket = (if passes { tokens - 1.0 } else { tokens }, now);
        if passes { OK } else { refusal }
    }
}

fn fixed(tokens: u32, span: Duration) -> PacedSettings {
    let settings = PacedSettings::fixed(tokens, span).expect("in range");
    let settings = settings.to_builder().burst(SECOND / 10);
    settings.build().expect("in range")
}

fn paced(tokens: u32, span: Duration) -> Adaptive {
    let strategy = Adaptive::builder().paced(fixed(tokens, span)).build();
    strategy.expect("in range")
}

/// The same strategy for reads and writes.
fn one(strategy: &Arc<Adaptive>) -> Lanes {
    Lanes::shared(strategy.clone(), strategy.clone())
}

/// A connector with new lanes.
fn plain() -> PacedConnector {
    PacedConnector::new(Hyper, one(&Arc::new(Adaptive::paced())))
}

/// A store that does not retry by itself.
fn store_at(url: &str, connector: PacedConnector) -> AmazonS3 {
    let store = AmazonS3Builder::new()
        .with_endpoint(url)
        .with_bucket_name("logs")
        .with_skip_signature(true)
        .with_allow_http(true)
        .with_http_connector(connector)
        .with_retry(RetryConfig {
            max_retries: 0,
            ..RetryConfig::default()
        });
    store.build().expect("a store")
}

/// Reads an object, and tells whether that succeeded.
async fn read(store: &AmazonS3, path: &str) -> bool {
    match store.get(&Path::from(path)).await {
        Ok(object) => object.bytes().await.is_ok(),
        Err(_) => false,
    }
}

/// Sends `count` reads at once, and returns how many succeeded and how long it took.
async fn burst(store: &AmazonS3, path: &'static str, count: u32) -> (usize, Duration) {
    let begun = Instant::now();
    let reads = (0..count).map(|_| read(store, path));
    let read = futures_util::future::join_all(reads).await;
    (
        read.into_iter().filter(|well| *well).count(),
        begun.elapsed(),
    )
}

#[tokio::test]
async fn a_limited_scope_is_limited_and_slows_no_other() {
    let url = serve(|| OK).await;
    let hot = one(&Arc::new(paced(10, SECOND)));
    let free = one(&Arc::new(Adaptive::paced()));
    let store = {
        let by = move |request: &object_store::client::HttpRequest| {
            let hot_path = request.uri().path().ends_with("/hot");
            if hot_path { hot.clone() } else { free.clone() }
        };
        store_at(&url, PacedConnector::by(Hyper, by))
    };
    let (hot, free) = tokio::join!(burst(&store, "hot", 30), burst(&store, "free", 30));
    let ((hot, took), (free, at_once)) = (hot, free);
    assert_eq!((hot, free), (30, 30));
    let expected = 2 * SECOND..Duration::from_millis(3_500);
    assert!(expected.contains(&took), "{took:?}");
    assert!(at_once < SECOND, "{at_once:?}");
}

/// 16 reads of each of 32 tasks from a service of 50 a second: returns how many failed.
async fn bulk(refusal: Said) -> u32 {
    let url = serve(limited(50.0, refusal)).await;
    let store = Arc::new(store_at(&url, plain()));
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let store = store.clone();
        tasks.spawn(async move {
            let mut failed = 0_u32;
            for _ in 0..16 {
                failed += u32::from(!read(&store, "x").await);
            }
            failed
        });
    }
    tasks.join_all().await.into_iter().sum()
}

#[tokio::test]
async fn a_service_that_says_429_is_adapted_to() {
    let failed = bulk(SLOW_DOWN).await;
    assert!(failed <= 5, "{failed} of 512");
}

#[tokio::test]
async fn a_service_that_says_503_is_adapted_to() {
    let failed = bulk(OVERLOADED).await;
    assert!(failed <= 5, "{failed} of 512");
}

#[tokio::test]
async fn a_service_that_says_503_and_when_is_adapted_to() {
    let failed = bulk(HINTED).await;
    // Up to 9 were seen, more than the 1 % of the other refusals.
    assert!(failed <= 16, "{failed} of 512");
}

fn in_time(begun: Instant) {
    let took = begun.elapsed();
    assert!(took < Duration::from_millis(2_100), "{took:?}");
}

#[tokio::test]
async fn a_deadline_ends_attempts_waits_and_backoffs() {
    // An attempt under way.
    let after = Duration::from_secs(30);
    let url = serve(move || Said { after, ..OK }).await;
    let store = store_at(&url, plain().deadline(2 * SECOND));
    let begun = Instant::now();
    assert!(!read(&store, "x").await);
    assert!(begun.elapsed() >= 2 * SECOND);
    in_time(begun);
    // A line: of 40 that ask for 10 a second some 20 are sent.
    let url = serve(|| OK).await;
    let lanes = one(&Arc::new(paced(10, SECOND)));
    let store = store_at(&url, PacedConnector::new(Hyper, lanes).deadline(2 * SECOND));
    let begun = Instant::now();
    let (sent, _) = burst(&store, "x", 40).await;
    assert!((18..=22).contains(&sent), "{sent}");
    in_time(begun);
    // A wait for which the service asks, longer than there is time.
    let url = serve(|| says(503, Some(("retry-after", "3")))).await;
    let store = store_at(&url, plain().deadline(2 * SECOND));
    let begun = Instant::now();
    assert!(!read(&store, "x").await);
    in_time(begun);
}

#[tokio::test]
async fn a_request_dropped_in_any_state_leaves_nothing() {
    let moment = Duration::from_millis(200);
    // One token in 100 s: the wait for the next one shows each place and permit that is left.
    let check = |strategy: &Adaptive, all: Duration, quota: u32| {
        let now = strategy.clock().now();
        assert_eq!(strategy.send_rate().snapshot(now).waiting, 0);
        let wait = strategy.send_rate().try_acquire(now).unwrap_err();
        assert!(wait <= all && wait + 20 * SECOND > all, "{wait:?}");
        assert_eq!(strategy.quota().available(), quota);
    };
    // An attempt under way, and then in line.
    let after = Duration::from_secs(30);
    let url = serve(move || Said { after, ..OK }).await;
    let strategy = Arc::new(paced(1, 100 * SECOND));
    let lanes = one(&strategy);
    let store = store_at(&url, PacedConnector::new(Hyper, lanes));
    for _ in 0..3 {
        assert!(timeout(moment, read(&store, "x")).await.is_err());
        check(&strategy, 100 * SECOND, 500);
    }
    // A retry that waits as the service asked: it is paid, and the rate pauses for all.
    let url = serve(|| says(503, Some(("retry-after", "30")))).await;
    let strategy = Arc::new(paced(1, 100 * SECOND));
    let lanes = one(&strategy);
    let store = store_at(&url, PacedConnector::new(Hyper, lanes));
    assert!(timeout(moment, read(&store, "x")).await.is_err());
    check(&strategy, 130 * SECOND, 495);
}

#[tokio::test]
async fn a_waiter_goes_early_when_the_rate_rises() {
    let url = serve(|| OK).await;
    let strategy = Arc::new(paced(1, 20 * SECOND));
    let lanes = one(&strategy);
    let store = Arc::new(store_at(&url, PacedConnector::new(Hyper, lanes)));
    assert!(read(&store, "x").await);
    let begun = Instant::now();
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { read(&store, "x").await }
    });
    tokio::time::sleep(SECOND / 5).await;
    let fast = fixed(1_000, SECOND);
    strategy.set_paced(fast).expect("it can be changed");
    assert!(waiting.await.expect("no panic"));
    let took = begun.elapsed();
    assert!(took < SECOND / 2, "{took:?}");
}
