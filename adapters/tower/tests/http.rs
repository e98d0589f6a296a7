//! A client of hyper's and a server of axum's, over loopback.

extern crate alloc;

mod support;

use alloc::sync::Arc;
use core::{
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll},
    time::Duration,
};
use std::sync::Mutex;

use axum::{Router, extract::State, http::StatusCode, response::IntoResponse};
use http::{Method, Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use kit::{Always, COST};
use paceline::{
    Adaptive, Clock, Failure, RetryStrategy, SendLimiter, SendRate, Standard, TokioClock,
    classify::{Classifier, HttpResponseParts, MAX_REFUSAL_BODY, RefusalClassifier},
    headers::AttemptHeader,
    law::PacedSettings,
    operation::Attempt,
    set::Weights,
    strategy::AttemptCharge,
};
use paceline_tower::{BoxError, Buffered, HttpResults, RetryLayer, SendRateLayer, failure_of};
use tokio::{net::TcpListener, time::Instant};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

type Said = (u16, &'static [(&'static str, &'static str)], Duration);

/// What the server says to one request after the other; the last again and again. It echoes the
/// body.
#[derive(Clone)]
struct Script {
    said: &'static [Said],
    asked: Arc<AtomicUsize>,
}

async fn answer(State(script): State<Script>, body: Bytes) -> impl IntoResponse {
    let number = script.asked.fetch_add(1, SeqCst);
    let last = script.said.len().saturating_sub(1);
    let (status, headers, delay) = script.said[number.min(last)];
    tokio::time::sleep(delay).await;
    let mut response = (StatusCode::from_u16(status).expect("a status"), body).into_response();
    for (name, value) in headers {
        response
            .headers_mut()
            .append(*name, value.parse().expect("a value"));
    }
    response
}

/// Starts a server on a free port, that resets its first connections. It ends with the test's run
/// time.
async fn serve(resets: usize, said: &'static [Said]) -> (String, Script) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let script = Script {
        said,
        asked: Arc::default(),
    };
    let app = Router::new().fallback(answer).with_state(script.clone());
    tokio::spawn(async move {
        for _ in 0..resets {
            drop(listener.accept().await);
        }
        axum::serve(listener, app).await
    });
    (url, script)
}

const AT_ONCE: Duration = Duration::ZERO;

fn client<B>() -> Client<HttpConnector, B>
where
    B: Body + Send,
    B::Data: Send,
{
    Client::builder(TokioExecutor::new()).build_http()
}

/// Three attempts, and hardly a backoff.
fn standard() -> Arc<Standard> {
    support::standard(Duration::from_millis(1))
}

fn layer(
    strategy: Arc<Standard>,
) -> RetryLayer<Standard, HttpResults, paceline_tower::HttpRequests> {
    RetryLayer::shared(strategy, HttpResults::new()).replay(paceline_tower::HttpRequests)
}

fn request(method: Method, url: &str) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(url);
    request.body(Full::from("a body")).expect("a request")
}

async fn text(response: Response<Incoming>) -> (u16, Bytes) {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body");
    (status, body.to_bytes())
}

#[tokio::test]
async fn throttling_is_retried_when_the_server_wants_it() {
    const SAID: &[Said] = &[(429, &[("retry-after", "1")], AT_ONCE), (200, &[], AT_ONCE)];
    let (url, script) = serve(0, SAID).await;
    let strategy = standard();
    let service = layer(strategy.clone()).layer(client());
    let begun = Instant::now();
    let answer = service
        .oneshot(request(Method::POST, &url))
        .await
        .expect("an answer");
    assert_eq!(text(answer).await, (200, "a body".into()));
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(
        (script.asked.load(SeqCst), strategy.quota().available()),
        (2, 500)
    );
}

/// The layer reads no body. A service inside it does, and a closure gets what it read.
#[tokio::test]
async fn a_body_read_inside_the_layer_decides() {
    async fn read(response: Response<Incoming>) -> Result<Response<Bytes>, BoxError> {
        let (parts, body) = response.into_parts();
        let read = Limited::new(body, MAX_REFUSAL_BODY).collect().await?;
        Ok(Response::from_parts(parts, read.to_bytes()))
    }

    fn classify(result: Result<&Response<Bytes>, &BoxError>) -> Option<Failure> {
        match result {
            Ok(response) => {
                let parts = HttpResponseParts::of(response);
                RefusalClassifier::new().classify(&parts.with_refusal(response.body()))
            }
            Err(error) => Some(failure_of(error)),
        }
    }

    const USED_UP: &str = r#"{"error": {"code": "insufficient_quota"}}"#;
    let used_up = |url: &str| request(Method::POST, url).map(|_| Full::<Bytes>::from(USED_UP));
    let (url, script) = serve(0, &[(429, &[], AT_ONCE)]).await;
    let without = layer(standard()).layer(client());
    let answer = without.oneshot(used_up(&url)).await.expect("an answer");
    assert_eq!(text(answer).await, (429, USED_UP.into()));
    assert_eq!(script.asked.swap(0, SeqCst), 3);

    let layer = RetryLayer::shared(standard(), classify).replay(paceline_tower::HttpRequests);
    let service = ServiceBuilder::new()
        .layer(layer)
        .map_err(BoxError::from)
        .and_then(read)
        .service(client());
    let answer = service.oneshot(used_up(&url)).await.expect("an answer");
    assert_eq!(
        (answer.status().as_u16(), &answer.body()[..]),
        (429, USED_UP.as_bytes())
    );
    assert_eq!(script.asked.load(SeqCst), 1);
}

#[tokio::test]
async fn wrong_headers_are_none() {
    const SAID: &[Said] = &[
        (
            503,
            &[("retry-after", "soon"), ("x-amz-retry-after", "-1")],
            AT_ONCE,
        ),
        (
            503,
            &[
                ("retry-after", "Mon, 99 Foo 2026 00:00:00 GMT"),
                ("date", "?"),
            ],
            AT_ONCE,
        ),
        (200, &[("retry-after", "9")], AT_ONCE),
    ];
    let (url, script) = serve(0, SAID).await;
    let strategy = standard();
    let service = layer(strategy.clone()).layer(client());
    let begun = Instant::now();
    let answer = service
        .oneshot(request(Method::PUT, &url))
        .await
        .expect("an answer");
    assert_eq!(text(answer).await, (200, "a body".into()));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(script.asked.load(SeqCst), 3);
    assert_eq!(
        strategy.quota().available(),
        495,
        "a throttle costs five, and the last one is spent"
    );
}

#[tokio::test]
async fn a_connection_that_is_reset_is_tried_again() {
    let (url, script) = serve(2, &[(200, &[], AT_ONCE)]).await;
    let strategy = standard();
    let service = layer(strategy.clone()).layer(client());
    let answer = service
        .oneshot(request(Method::GET, &url))
        .await
        .expect("an answer");
    assert_eq!(text(answer).await.0, 200);
    assert_eq!(
        (script.asked.load(SeqCst), strategy.quota().available()),
        (1, 500 - COST)
    );
}

#[tokio::test]
async fn a_post_that_may_have_arrived_is_not_sent_again() {
    let (url, script) = serve(0, &[(500, &[], AT_ONCE)]).await;
    let service = layer(standard()).layer(client());
    let post = request(Method::POST, &url);
    let answer = service.clone().oneshot(post).await.expect("an answer");
    assert_eq!(
        (text(answer).await.0, script.asked.swap(0, SeqCst)),
        (500, 1)
    );
    let mut keyed = request(Method::POST, &url);
    keyed
        .headers_mut()
        .insert("idempotency-key", "k".parse().expect("a value"));
    let answer = service.oneshot(keyed).await.expect("an answer");
    assert_eq!((text(answer).await.0, script.asked.load(SeqCst)), (500, 3));
}

#[tokio::test]
async fn a_missing_server_is_asked_three_times() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    drop(listener);
    let strategy = standard();
    let service = layer(strategy.clone()).layer(client());
    let error = service
        .oneshot(request(Method::POST, &url))
        .await
        .unwrap_err();
    assert!(error.is::<hyper_util::client::legacy::Error>());
    assert_eq!(strategy.quota().available(), 500 - 2 * COST);
}

#[tokio::test]
async fn a_slow_answer_is_a_timeout_of_one_attempt() {
    const SAID: &[Said] = &[(200, &[], Duration::from_secs(60)), (200, &[], AT_ONCE)];
    let (url, script) = serve(0, SAID).await;
    let strategy = standard();
    let service = ServiceBuilder::new()
        .layer(layer(strategy.clone()))
        .timeout(Duration::from_millis(500))
        .service(client());
    let answer = service
        .oneshot(request(Method::GET, &url))
        .await
        .expect("an answer");
    assert_eq!(text(answer).await.0, 200);
    assert_eq!(
        (script.asked.load(SeqCst), strategy.quota().available()),
        (2, 500)
    );
}

/// The host's own deadline of a call, outside of the layer, ends all: also a retry that waits.
#[tokio::test]
async fn a_timeout_of_the_host_ends_the_request() {
    const SILENT: &[Said] = &[(200, &[], Duration::from_secs(60))];
    const WAITS: &[Said] = &[(503, &[("retry-after", "30")], AT_ONCE)];
    let limit = Duration::from_millis(300);
    for said in [SILENT, WAITS] {
        let (url, script) = serve(0, said).await;
        let strategy = standard();
        let service = ServiceBuilder::new()
            .timeout(limit)
            .layer(layer(strategy.clone()))
            .service(client());
        let begun = Instant::now();
        let error = service.oneshot(request(Method::GET, &url)).await;
        let error = error.expect_err("it takes too long");
        assert!(error.is::<tower::timeout::error::Elapsed>(), "{error}");
        assert!(begun.elapsed() < 4 * limit, "{:?}", begun.elapsed());
        assert_eq!(
            (script.asked.load(SeqCst), strategy.quota().available()),
            (1, 500)
        );
    }
}

/// A body of three pieces that come one after the other, each there at once or after a moment.
struct Pieces {
    left: usize,
    pending: bool,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if core::mem::take(&mut self.pending) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some(left) = self.left.checked_sub(1) else {
            return Poll::Ready(None);
        };
        self.left = left;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"abc")))))
    }
}

#[tokio::test]
async fn bodies_that_cannot_be_cloned_are_kept_if_they_are_there_and_fit() {
    const SAID: &[Said] = &[(503, &[], AT_ONCE), (200, &[], AT_ONCE)];
    // Pieces, whether they come later, the limit; and the outcome.
    for (left, pending, limit, status) in [
        (3, false, 9, 200),
        (3, false, 8, 503),
        (3, true, 9, 503),
        (0, false, 0, 200),
    ] {
        let (url, _script) = serve(0, SAID).await;
        let layer = layer(standard()).replay(Buffered::up_to(limit));
        let service = layer.layer(client());
        let request = Request::put(&url).body(Pieces { left, pending });
        let answer = service
            .oneshot(request.expect("a request"))
            .await
            .expect("an answer");
        // Whole it arrives in any case.
        let whole = Bytes::from("abc".repeat(left));
        assert_eq!(
            text(answer).await,
            (status, whole),
            "{left} {pending} {limit}"
        );
    }
}

/// A body that breaks off at once.
struct Broken;

impl Body for Broken {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(Some(Err("no more of it".into())))
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_not_sent_again() {
    let (url, _script) = serve(0, &[(503, &[], AT_ONCE)]).await;
    let strategy = standard();
    let service = layer(strategy.clone())
        .replay(Buffered::up_to(99))
        .layer(client());
    let request = Request::put(&url).body(Broken).expect("a request");
    assert!(service.oneshot(request).await.is_err());
    assert_eq!(strategy.quota().available(), 500);
}

#[tokio::test]
async fn a_rate_follows_the_servers_throttling() {
    const SAID: &[Said] = &[
        (200, &[], AT_ONCE),
        (429, &[], AT_ONCE),
        (200, &[], AT_ONCE),
    ];
    let (url, _script) = serve(0, SAID).await;
    let clock = TokioClock::new();
    let rate = Arc::new(SendRate::new(paceline::ControlLaw::Aws, clock.now()));
    let layer = SendRateLayer::new(
        SendLimiter::new(rate.clone()).clock(clock),
        HttpResults::new(),
    );
    let mut service = layer.layer(client::<Empty<Bytes>>());
    let get = || Request::get(&url).body(Empty::new()).expect("a request");
    for (status, free) in [(200, true), (429, false)] {
        let answer = service.ready().await.expect("ready").call(get()).await;
        assert_eq!(answer.expect("an answer").status(), status);
        assert_eq!(rate.try_acquire(clock.now()).is_ok(), free);
    }
    let begun = Instant::now();
    assert!(
        service
            .ready()
            .await
            .expect("ready")
            .call(get())
            .await
            .is_ok()
    );
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "half a request a second"
    );
}

#[tokio::test]
async fn adaptive_clients_share_one_rate_through_their_clones() {
    let (url, script) = serve(0, &[(200, &[], AT_ONCE)]).await;
    let builder = Adaptive::builder()
        .backoff(Arc::new(Always(Duration::ZERO)))
        .paced(support::one_in(Duration::from_millis(100)));
    let layer = RetryLayer::http(builder.build().expect("in range"));
    let service = layer.layer(client());
    let begun = Instant::now();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..6 {
        calls.spawn(service.clone().oneshot(request(Method::GET, &url)));
    }
    assert!(support::all(calls).await.iter().all(Result::is_ok));
    assert!(begun.elapsed() >= Duration::from_millis(500));
    assert_eq!(script.asked.load(SeqCst), 6);
}

#[tokio::test]
async fn a_503_is_throttling_in_bulk_so_that_even_a_post_is_sent_again() {
    const SAID: &[Said] = &[(503, &[], AT_ONCE), (200, &[], AT_ONCE)];
    for (layer, expected) in [
        (RetryLayer::bulk(), (200, 2)),
        (RetryLayer::http(Adaptive::paced()), (503, 1)),
    ] {
        let (url, script) = serve(0, SAID).await;
        let service = layer.layer(client());
        let answer = service.oneshot(request(Method::POST, &url)).await;
        let status = text(answer.expect("an answer")).await.0;
        assert_eq!((status, script.asked.load(SeqCst)), expected);
    }
}

/// The body says what a request cost, which the caller reads after the outcome was recorded.
#[tokio::test]
async fn a_cost_in_the_body_is_settled_by_the_caller() {
    let (url, _) = serve(0, &[(200, &[], AT_ONCE)]).await;
    // One token a second, of which the bucket holds ten.
    let second = Duration::from_secs(1);
    let settings = PacedSettings::fixed(1, second)
        .and_then(|fixed| fixed.to_builder().burst(10 * second).build());
    let strategy = Adaptive::builder().paced(settings.expect("in range"));
    let strategy = Arc::new(strategy.build().expect("in range"));
    let layer = RetryLayer::shared(strategy.clone(), HttpResults::new());
    let service = layer.replay(paceline_tower::HttpRequests).layer(client());
    let available = || {
        let rate = strategy.snapshot().rate.expect("it has one");
        rate.available
    };

    let plain = service.clone().oneshot(request(Method::GET, &url)).await;
    let plain = plain.expect("an answer");
    assert!(plain.extensions().get::<AttemptCharge>().is_none());

    let mut weighed = request(Method::GET, &url);
    weighed.extensions_mut().insert(Weights::from([6]));
    let response = service.oneshot(weighed).await.expect("an answer");
    let charge = response.extensions().get::<AttemptCharge>().cloned();
    assert_eq!(text(response).await, (200, "a body".into()));
    let before = available();
    let charge = charge.expect("the request had weights");
    charge.settle(&[2]).expect("a credit");
    let more = available() - before;
    assert!((4.0..5.0).contains(&more), "{more}");
}

#[tokio::test]
async fn a_service_hears_which_attempt_it_gets() {
    let (url, _) = serve(0, &[(200, &[], AT_ONCE)]).await;
    for (header, expected) in [
        (AttemptHeader::GrpcPreviousRpcAttempts, ["", "1", "2"]),
        (AttemptHeader::EnvoyAttemptCount, ["1", "2", "3"]),
        (
            AttemptHeader::AmzSdkRequest,
            ["attempt=1; max=3", "attempt=2; max=3", "attempt=3; max=3"],
        ),
    ] {
        let told = Arc::new(Mutex::new(Vec::new()));
        let seen = told.clone();
        let busy = tower::service_fn(move |request: Request<String>| {
            let value = request.headers().get(header.name());
            let value = value
                .map_or("", |value| value.to_str().expect("text"))
                .to_owned();
            seen.lock().expect("no panic").push(value);
            async {
                Ok::<_, BoxError>(Response::builder().status(500).body(()).expect("an answer"))
            }
        });
        let strategy = Standard::builder().backoff(Arc::new(Always(Duration::ZERO)));
        let layer = RetryLayer::http(strategy.build().expect("in range")).tell_attempts(header);
        let request = Request::get(&url).body(String::new()).expect("a request");
        layer.layer(busy).oneshot(request).await.expect("an answer");
        assert_eq!(*told.lock().expect("no panic"), expected);
    }
}

#[tokio::test]
async fn a_service_in_another_task_finds_the_mark_if_asked_to() {
    let standard = || {
        let strategy = Standard::builder().backoff(Arc::new(Always(Duration::ZERO)));
        RetryLayer::http(strategy.build().expect("in range"))
    };
    for (marks, sends) in [(false, 9), (true, 3)] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let busy = standard().layer(tower::service_fn(move |_: Request<String>| {
            count.fetch_add(1, SeqCst);
            async {
                Ok::<_, BoxError>(Response::builder().status(500).body(()).expect("an answer"))
            }
        }));
        let spawns = tower::service_fn(move |request: Request<String>| {
            let sent = tokio::spawn(busy.clone().oneshot(request));
            async move { sent.await.expect("no panic") }
        });
        let outer = if marks {
            standard().mark_requests()
        } else {
            standard()
        };
        let request = Request::get("/").body(String::new()).expect("a request");
        outer
            .layer(spawns)
            .oneshot(request)
            .await
            .expect("an answer");
        assert_eq!(asked.load(SeqCst), sends, "{marks}");
    }
}

#[tokio::test]
async fn a_service_inside_signs_with_the_key_that_serves() {
    let strategy = Adaptive::builder()
        .paced(PacedSettings::fixed(1, Duration::from_secs(3_600)).expect("in range"))
        .backoff(Arc::new(Always(Duration::ZERO)))
        .members(3)
        .build()
        .expect("in range");
    let signed = Arc::new(Mutex::new(Vec::new()));
    let keys = signed.clone();
    let signs = tower::service_fn(move |request: Request<String>| {
        let attempt = request.extensions().get::<Attempt>().copied();
        let mut keys = keys.lock().expect("no test panicked in here");
        keys.push(attempt.map(|attempt| attempt.member()));
        let status = if keys.len() == 1 { 500 } else { 200 };
        async move {
            let answer = Response::builder().status(status).body(());
            Ok::<_, BoxError>(answer.expect("an answer"))
        }
    });
    let service = RetryLayer::http(strategy).mark_requests().layer(signs);
    for _ in 0..2 {
        let request = Request::get("/").body(String::new()).expect("a request");
        service.clone().oneshot(request).await.expect("an answer");
    }
    let signed = signed.lock().expect("no test panicked in here");
    assert_eq!(*signed, [Some(0), Some(1), Some(2)]);
}
