//! What users are promised, in real time over sockets of loopback: HTTP and gRPC.

#![allow(clippy::arithmetic_side_effects, reason = "small numbers of a test")]

extern crate alloc;

mod support;

use alloc::sync::Arc;
use core::{convert::Infallible, time::Duration};
use std::sync::Mutex;

use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use paceline::{Adaptive, RetryStrategy, Scopes, Standard, law::PacedSettings};
use paceline_tower::{BoxError, HttpRequests, HttpResults, Refused, RetryLayer};
use support::{SECOND, all};
use tokio::{net::TcpListener, task::JoinSet, time::Instant};
use tower::{Layer as _, ServiceExt as _};

type Page = Request<Empty<Bytes>>;
type Hyper = Client<HttpConnector, Empty<Bytes>>;

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

const OK: Said = says(200, None);
const OVERLOADED: Said = says(503, None);
const SLOW_DOWN: Said = says(429, None);
const HINTED: Said = says(503, Some(("retry-after", "1")));
/// gRPC's `RESOURCE_EXHAUSTED`, in a response without messages.
const EXHAUSTED: Said = says(200, Some(("grpc-status", "8")));
const GRPC_OK: Said = says(200, Some(("grpc-status", "0")));

/// Starts a server on a free port; it ends with the test's run time.
async fn serve(say: impl Fn() -> Said + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let say = Arc::new(say);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let say = say.clone();
            let service = hyper::service::service_fn(move |_: Request<Incoming>| {
                let said = say();
                async move {
                    tokio::time::sleep(said.after).await;
                    let mut response = Response::builder().status(said.status);
                    if let Some((name, value)) = said.header {
                        response = response.header(name, value);
                    }
                    Ok::<_, Infallible>(response.body(Empty::<Bytes>::new()).expect("a response"))
                }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
        }
    });
    url
}

/// Says `well` to `rate` requests a second, ten at once at most, and `refusal` to the others.
#[allow(clippy::float_arithmetic, reason = "a server in a test")]
fn limited(rate: f64, well: Said, refusal: Said) -> impl Fn() -> Said {
    let bucket = Mutex::new((10.0, Instant::now()));
    move || {
        let mut bucket = bucket.lock().expect("nobody panicked");
        let (tokens, last) = *bucket;
        let now = Instant::now();
        let tokens = f64::min(tokens + (now - last).as_secs_f64() * rate, 10.0);
        let passes = tokens >= 1.0;
        *bucket = (if passes { tokens - 1.0 } else { tokens }, now);
        if passes { well } else { refusal }
    }
}

fn hyper() -> Hyper {
    Client::builder(TokioExecutor::new()).build_http()
}

fn page(url: &str) -> Page {
    Request::get(url).body(Empty::new()).expect("a request")
}

fn fixed(rate: u32) -> PacedSettings {
    let settings = PacedSettings::fixed(rate, SECOND).expect("in range");
    let settings = settings.to_builder().burst(SECOND / 10);
    settings.build().expect("in range")
}

/// Scopes of 10 a second, and one that is free.
fn scopes() -> Arc<Scopes<Adaptive>> {
    let free = Adaptive::builder();
    let exceptions = move |key: &str| (key == "free").then(|| free.clone().build());
    let template = Adaptive::builder().paced(fixed(10)).scopes();
    Arc::new(template.exceptions(exceptions).build().expect("in range"))
}

/// Sends 30 requests at once, by `send`, and returns how many succeeded and how long it took.
async fn burst<F>(count: u32, send: impl Fn() -> F) -> (usize, Duration)
where
    F: Future<Output = bool> + Send + 'static,
{
    let (begun, mut tasks) = (Instant::now(), JoinSet::new());
    for _ in 0..count {
        tasks.spawn(send());
    }
    let well = all(tasks).await.into_iter().filter(|well| *well).count();
    (well, begun.elapsed())
}

fn check_scopes((hot, took): (usize, Duration), (free, at_once): (usize, Duration)) {
    assert_eq!((hot, free), (30, 30));
    let expected = Duration::from_secs(2)..Duration::from_millis(3_500);
    assert!(expected.contains(&took), "{took:?}");
    assert!(at_once < SECOND, "{at_once:?}");
}

#[tokio::test]
async fn a_limited_scope_of_http_slows_no_other() {
    let (url, strategy) = (serve(|| OK).await, scopes());
    let of = |scope: &str| {
        let layer = RetryLayer::shared(strategy.clone(), HttpResults::new()).replay(HttpRequests);
        let (service, url) = (layer.scope(scope).layer(hyper()), url.clone());
        burst(30, move || {
            let send = service.clone().oneshot(page(&url));
            async move { send.await.is_ok() }
        })
    };
    let (hot, free) = tokio::join!(of("hot"), of("free"));
    check_scopes(hot, free);
}

#[cfg(feature = "grpc")]
#[tokio::test]
async fn a_limited_scope_of_grpc_slows_no_other() {
    use paceline_tower::{Buffered, GrpcResults};
    let (url, strategy) = (serve(|| GRPC_OK).await, scopes());
    let of = |scope: &str| {
        let layer = RetryLayer::shared(strategy.clone(), GrpcResults::new());
        let layer = layer.replay(Buffered::up_to(1_024)).scope(scope);
        let inner = Client::builder(TokioExecutor::new()).build_http();
        let (service, url) = (layer.layer(inner), url.clone());
        burst(30, move || {
            let send = service.clone().oneshot(page(&url));
            async move { send.await.is_ok() }
        })
    };
    let (hot, free) = tokio::join!(of("hot"), of("free"));
    check_scopes(hot, free);
}

/// So many reads of each of 32 tasks from a service of 50 a second: returns how many failed.
async fn bulk(refusal: Said, reads: u32) -> u32 {
    let url = serve(limited(50.0, OK, refusal)).await;
    let service = RetryLayer::http(Adaptive::paced()).layer(hyper());
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let (service, url) = (service.clone(), url.clone());
        tasks.spawn(async move {
            let mut failed = 0_u32;
            for _ in 0..reads {
                let answer = service.clone().oneshot(page(&url)).await;
                let answer = answer.expect("an answer");
                failed += u32::from(answer.status() != 200);
                let _body = answer.into_body().collect().await;
            }
            failed
        });
    }
    all(tasks).await.into_iter().sum()
}

#[tokio::test]
async fn a_service_that_says_429_is_adapted_to() {
    let failed = bulk(SLOW_DOWN, 16).await;
    assert!(failed <= 5, "{failed} of 512");
}

#[tokio::test]
async fn a_service_that_says_503_is_adapted_to() {
    let failed = bulk(OVERLOADED, 16).await;
    assert!(failed <= 5, "{failed} of 512");
}

#[tokio::test]
async fn a_service_that_says_503_and_when_is_adapted_to() {
    let failed = bulk(HINTED, 16).await;
    // Up to 9 were seen, more than the 1 % of the other refusals.
    assert!(failed <= 16, "{failed} of 512");
}

#[cfg(feature = "grpc")]
#[tokio::test]
async fn a_service_that_is_exhausted_is_adapted_to() {
    let url = serve(limited(50.0, GRPC_OK, EXHAUSTED)).await;
    let inner = Client::builder(TokioExecutor::new()).build_http();
    let service = RetryLayer::grpc(Adaptive::paced()).layer(inner);
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let (service, url) = (service.clone(), url.clone());
        tasks.spawn(async move {
            let mut failed = 0_u32;
            for _ in 0..16 {
                let answer = service.clone().oneshot(page(&url)).await;
                let answer = answer.expect("an answer");
                failed += u32::from(answer.headers()["grpc-status"] != "0");
                let _body = answer.into_body().collect().await;
            }
            failed
        });
    }
    let failed: u32 = all(tasks).await.into_iter().sum();
    assert!(failed <= 5, "{failed} of 512");
}

#[tokio::test]
async fn a_post_without_a_key_is_sent_once_to_a_503() {
    let url = serve(|| OVERLOADED).await;
    let strategy = Arc::new(Adaptive::paced());
    let layer = RetryLayer::shared(strategy.clone(), HttpResults::new()).replay(HttpRequests);
    let post = Request::post(&url).body(Empty::<Bytes>::new());
    let answer = layer.layer(hyper()).oneshot(post.expect("a request")).await;
    assert_eq!(answer.expect("an answer").status(), 503);
    assert_eq!(strategy.snapshot().counts.granted, 0, "no retry");
    let now = strategy.clock().now();
    assert!(
        strategy.send_rate().snapshot(now).enabled,
        "it lowers the rate"
    );
}

fn in_time(begun: Instant) {
    let took = begun.elapsed();
    assert!(took < Duration::from_millis(2_100), "{took:?}");
}

#[tokio::test]
async fn a_deadline_ends_an_attempt_under_way() {
    let after = Duration::from_secs(30);
    let url = serve(move || Said { after, ..OK }).await;
    let begun = Instant::now();
    let layer = RetryLayer::http(Standard::new()).deadline(2 * SECOND);
    let error: BoxError = layer.layer(hyper()).oneshot(page(&url)).await.unwrap_err();
    assert!(error.is::<Refused>(), "{error}");
    assert!(begun.elapsed() >= 2 * SECOND);
    in_time(begun);
}

#[tokio::test]
async fn a_deadline_ends_waits_and_backoffs() {
    let url = serve(|| OK).await;
    let strategy = Adaptive::builder()
        .paced(fixed(10))
        .build()
        .expect("in range");
    let layer = RetryLayer::http(strategy).deadline(2 * SECOND);
    let (service, begun) = (layer.layer(hyper()), Instant::now());
    let (sent, _) = burst(40, move || {
        let send = service.clone().oneshot(page(&url));
        async move { send.await.is_ok() }
    })
    .await;
    assert!((18..=22).contains(&sent), "{sent}");
    in_time(begun);
    let url = serve(|| says(503, Some(("retry-after", "3")))).await;
    let begun = Instant::now();
    let layer = RetryLayer::http(Standard::new()).deadline(2 * SECOND);
    let answer = layer.layer(hyper()).oneshot(page(&url)).await;
    assert_eq!(answer.expect("an answer").status(), 503);
    in_time(begun);
}

#[tokio::test]
async fn a_waiter_goes_early_when_the_rate_rises() {
    let url = serve(|| OK).await;
    let slow = PacedSettings::fixed(1, 20 * SECOND).expect("in range");
    let strategy = Adaptive::builder().paced(slow).build().expect("in range");
    let strategy = Arc::new(strategy);
    let layer = RetryLayer::shared(strategy.clone(), HttpResults::new()).replay(HttpRequests);
    let service = layer.layer(hyper());
    let first = service.clone().oneshot(page(&url)).await;
    assert!(first.is_ok());
    let begun = Instant::now();
    let waiting = tokio::spawn(service.oneshot(page(&url)));
    tokio::time::sleep(SECOND / 5).await;
    let fast = PacedSettings::fixed(1_000, SECOND).expect("in range");
    strategy.set_paced(fast).expect("it can be changed");
    assert!(waiting.await.expect("no panic").is_ok());
    let took = begun.elapsed();
    assert!(took < SECOND / 2, "{took:?}");
}
