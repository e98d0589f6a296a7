//! A client and a server of tonic's, over loopback.

extern crate alloc;

mod support;

use alloc::{collections::VecDeque, sync::Arc};
use core::{
    convert::Infallible,
    future::{Future, ready},
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderMap, HeaderName, Request, Response, uri::PathAndQuery};
use hyper::body::{Bytes, Frame};
use kit::COST;
use paceline::{
    Adaptive, Clock, ControlLaw, Idempotency, SendLimiter, SendRate, Standard, TokioClock,
};
use paceline_tower::{GrpcResults, Replayed, RetryLayer, SendRateLayer};
use support::{next_in, tonic_bytes::Raw};
use tokio::{net::TcpListener, time::Instant};
use tonic::{
    Code, Status,
    body::Body,
    server::{NamedService, UnaryService},
    transport::{Channel, Server, server::TcpIncoming},
};
use tower::{Service, ServiceBuilder};

/// What the server says to one call.
#[derive(Clone, Copy, Debug)]
enum Say {
    /// What it was told.
    Echo,
    /// A status, and with it what to wait.
    Status(Code, &'static [&'static str]),
    /// A status in the trailers, after a message or without one.
    Trailers(bool, &'static str),
    /// A message, and then nothing.
    NoStatus,
    /// What a proxy says.
    Proxy(u16),
    /// A status that is none.
    Garbage(&'static str),
    /// Nothing.
    Hang,
    /// A status with `google.rpc.RetryInfo` in its details, in seconds and nanoseconds.
    RetryInfo(Code, u8, u32),
}

#[derive(Clone)]
struct Script {
    says: &'static [Say],
    asked: Arc<AtomicUsize>,
}

impl NamedService for Script {
    const NAME: &'static str = "test.Test";
}

impl Service<Request<Body>> for Script {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Request<Body>) -> Self::Future {
        let number = self.asked.fetch_add(1, SeqCst);
        let say = self.says[number.min(self.says.len().saturating_sub(1))];
        Box::pin(async move { Ok(answer(say, call).await) })
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

async fn answer(say: Say, call: Request<Body>) -> Response<Body> {
    let response = Response::builder().header("content-type", "application/grpc");
    let response = match say {
        Say::Hang => core::future::pending().await,
        Say::Echo | Say::Status(..) | Say::RetryInfo(..) => {
            return tonic::server::Grpc::new(Raw).unary(Unary(say), call).await;
        }
        Say::Trailers(message, status) => response.body(framed(message, Some(status))),
        Say::NoStatus => response.body(framed(true, None)),
        Say::Proxy(status) => response.status(status).body(Body::empty()),
        Say::Garbage(status) => response.header("grpc-status", status).body(Body::empty()),
    };
    response.expect("a response")
}

/// An empty message or none, and trailers.
fn framed(message: bool, status: Option<&'static str>) -> Body {
    let message = message.then(|| Frame::data(Bytes::from_static(&[0, 0, 0, 0, 0])));
    let trailers = status.map(|status| {
        let name = HeaderName::from_static("grpc-status");
        Frame::trailers(HeaderMap::from_iter([(
            name,
            status.parse().expect("a value"),
        )]))
    });
    let frames = message.into_iter().chain(trailers).map(Ok::<_, Infallible>);
    Body::new(Frames(frames.collect()))
}

/// A body of these frames.
struct Frames(VecDeque<Result<Frame<Bytes>, Infallible>>);

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front())
    }
}

/// tonic's own way to answer.
struct Unary(Say);

impl UnaryService<Bytes> for Unary {
    type Response = Bytes;
    type Future = core::future::Ready<Result<tonic::Response<Bytes>, Status>>;

    fn call(&mut self, call: tonic::Request<Bytes>) -> Self::Future {
        let (code, pushbacks) = match self.0 {
            Say::Status(code, pushbacks) => (code, pushbacks),
            Say::RetryInfo(code, seconds, nanos) => {
                let details = retry_info(seconds, nanos).into();
                return ready(Err(Status::with_details(code, "told to", details)));
            }
            _ => return ready(Ok(tonic::Response::new(call.into_inner()))),
        };
        let mut status = Status::new(code, "told to");
        for wait in pushbacks {
            let wait = wait.parse().expect("a value");
            status.metadata_mut().append("grpc-retry-pushback-ms", wait);
        }
        ready(Err(status))
    }
}

/// A `google.rpc.Status` of which only the details are set: a `DebugInfo`, then a `RetryInfo`.
fn retry_info(seconds: u8, nanos: u32) -> Vec<u8> {
    let field = |tag: u8, bytes: &[u8]| {
        let length = u8::try_from(bytes.len()).expect("short");
        [&[tag, length], bytes].concat()
    };
    let any = |name: &[u8], value: &[u8]| {
        let any = [field(0x0a, name), field(0x12, value)].concat();
        field(0x1a, &any)
    };
    let mut delay = vec![0x08, seconds, 0x10];
    let mut left = nanos;
    while left > 0x7f {
        delay.push(u8::try_from(left & 0x7f).expect("seven bits") | 0x80);
        left >>= 7;
    }
    delay.push(u8::try_from(left).expect("seven bits"));
    [
        any(b"type.googleapis.com/google.rpc.DebugInfo", b"\x0a\x01x"),
        any(
            b"type.googleapis.com/google.rpc.RetryInfo",
            &field(0x0a, &delay),
        ),
    ]
    .concat()
}

/// Starts a server on a free port, that resets its first connections. It ends with the test's run
/// time.
async fn serve(resets: usize, says: &'static [Say]) -> (Channel, Script) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let script = Script {
        says,
        asked: Arc::default(),
    };
    let service = script.clone();
    tokio::spawn(async move {
        for _ in 0..resets {
            drop(listener.accept().await);
        }
        let incoming = TcpIncoming::from(listener);
        Server::builder()
            .add_service(service)
            .serve_with_incoming(incoming)
            .await
    });
    let channel = Channel::from_shared(format!("http://{address}")).expect("a url");
    (channel.connect_lazy(), script)
}

/// Three attempts, and hardly a backoff.
fn layer<S: paceline::RetryStrategy>(
    strategy: Arc<S>,
) -> RetryLayer<S, GrpcResults, paceline_tower::Buffered> {
    RetryLayer::shared(strategy, GrpcResults::new())
        .replay(paceline_tower::Buffered::up_to(65_536))
        .idempotency(Idempotency::Idempotent)
}

fn standard() -> Arc<Standard> {
    support::standard(Duration::from_millis(1))
}

/// Makes one call through a client of tonic's, and tells how it ended.
async fn call<S: paceline::RetryStrategy + 'static>(
    layer: RetryLayer<S, GrpcResults, paceline_tower::Buffered>,
    channel: Channel,
) -> Result<Bytes, Code> {
    let message = tonic::Request::new(Bytes::from_static(b"hello"));
    let answer = send(layer, channel, message).await;
    answer.map_err(|status| status.code())
}

async fn send<S: paceline::RetryStrategy + 'static>(
    layer: RetryLayer<S, GrpcResults, paceline_tower::Buffered>,
    channel: Channel,
    message: tonic::Request<Bytes>,
) -> Result<Bytes, Status> {
    let service = ServiceBuilder::new()
        .layer(layer)
        .map_request(|call: Request<Replayed<Body>>| call.map(Body::new))
        .service(channel);
    let mut client = tonic::client::Grpc::new(service);
    client.ready().await.expect("a channel is ready");
    let path = PathAndQuery::from_static("/test.Test/Call");
    let answer = client.unary(message, path, Raw).await;
    answer.map(tonic::Response::into_inner)
}

/// What comes of a script: the answer, the calls at the server, and what is left of the quota.
async fn outcome(says: &'static [Say]) -> (Result<Bytes, Code>, usize, u32) {
    let (channel, script) = serve(0, says).await;
    let strategy = standard();
    let answer = call(layer(strategy.clone()), channel).await;
    (
        answer,
        script.asked.load(SeqCst),
        strategy.quota().available(),
    )
}

const ECHOED: Result<Bytes, Code> = Ok(Bytes::from_static(b"hello"));

#[tokio::test]
async fn status_codes_decide() {
    use Say::{Echo, Status};
    let says: &[Say] = &[Status(Code::Unavailable, &[]), Echo];
    assert_eq!(outcome(says).await, (ECHOED, 2, 500));
    let says: &[Say] = &[Status(Code::ResourceExhausted, &[])];
    let paid = 500 - 2 * 5; // throttling is cheaper
    assert_eq!(outcome(says).await, (Err(Code::ResourceExhausted), 3, paid));
    let says: &[Say] = &[Status(Code::Unavailable, &[])];
    let paid = 500 - 2 * COST;
    assert_eq!(outcome(says).await, (Err(Code::Unavailable), 3, paid));
    assert_eq!(outcome(&[Echo]).await, (ECHOED, 1, 500));
    for code in 1..=16 {
        let code = Code::from_i32(code);
        if !matches!(code, Code::Unavailable | Code::ResourceExhausted) {
            let says = Box::leak(Box::new([Status(code, &[])]));
            assert_eq!(outcome(says).await, (Err(code), 1, 500));
        }
    }
}

/// Negative, garbage, too large, empty, or two of them: not at all.
const NO: [&[Say]; 7] = [
    &[Say::Status(Code::Unavailable, &["-1"]), Say::Echo],
    &[Say::Status(Code::ResourceExhausted, &["-1"]), Say::Echo],
    &[Say::Status(Code::Unavailable, &["soon"]), Say::Echo],
    &[Say::Status(Code::Unavailable, &["1.5"]), Say::Echo],
    &[Say::Status(Code::Unavailable, &["2147483648"]), Say::Echo],
    &[Say::Status(Code::Unavailable, &[""]), Say::Echo],
    &[Say::Status(Code::Unavailable, &["1", "1"]), Say::Echo],
];

#[tokio::test]
async fn the_server_says_when_to_come_back_or_not_to() {
    use Say::{Echo, Status};
    let begun = Instant::now();
    let says: &[Say] = &[Status(Code::Unavailable, &["300"]), Echo];
    assert_eq!(outcome(says).await, (ECHOED, 2, 500));
    assert!(begun.elapsed() >= Duration::from_millis(300));
    let says: &[Say] = &[Status(Code::ResourceExhausted, &["0"]), Echo];
    assert_eq!(outcome(says).await, (ECHOED, 2, 500));
    for says in NO {
        let (answer, asked, left) = outcome(says).await;
        assert_eq!((answer.is_err(), asked, left), (true, 1, 500), "{says:?}");
    }
    // It makes nothing retryable.
    let says: &[Say] = &[Status(Code::NotFound, &["1"]), Echo];
    assert_eq!(outcome(says).await, (Err(Code::NotFound), 1, 500));
}

#[tokio::test]
async fn what_is_no_status_is_not_retried_but_a_proxys_answer_is() {
    for garbage in ["", "x", "17", "-1", "99999999999"] {
        let says = Box::leak(Box::new([Say::Garbage(garbage), Say::Echo]));
        let (answer, asked, left) = outcome(says).await;
        assert_eq!(
            (answer.is_err(), asked, left),
            (true, 1, 500),
            "{garbage:?}"
        );
    }
    assert_eq!(
        outcome(&[Say::Proxy(503), Say::Echo]).await,
        (ECHOED, 2, 500)
    );
    let (answer, asked, left) = outcome(&[Say::Proxy(403), Say::Echo]).await;
    assert_eq!((answer.is_err(), asked, left), (true, 1, 500));
}

#[tokio::test]
async fn a_response_that_has_begun_is_the_callers_and_its_end_is_heard() {
    use Say::{NoStatus, Trailers};
    // A message, a status, and whether that is a success.
    for (say, well) in [
        (Trailers(true, "0"), true),
        (Trailers(true, "14"), false),
        (Trailers(false, "14"), false),
        (Trailers(false, "x"), false),
        (NoStatus, false),
    ] {
        let (channel, script) = serve(0, Box::leak(Box::new([say]))).await;
        let strategy = standard();
        drop(strategy.quota().try_acquire(100));
        let _answer = call(layer(strategy.clone()), channel).await;
        assert_eq!(script.asked.load(SeqCst), 1, "{say:?}");
        // A success puts a token in.
        assert_eq!(
            strategy.quota().available(),
            400 + u32::from(well),
            "{say:?}"
        );
    }
}

#[tokio::test]
async fn throttling_in_trailers_slows_the_next_call() {
    let builder = Adaptive::builder()
        .law(ControlLaw::Aws)
        .clock(Arc::new(TokioClock::new()));
    let strategy = Arc::new(builder.build().expect("in range"));
    let (channel, _script) = serve(0, &[Say::Trailers(true, "8")]).await;
    assert_eq!(
        call(layer(strategy.clone()), channel).await,
        Err(Code::ResourceExhausted)
    );
    assert!(next_in(strategy.send_rate(), strategy.clock()) > Duration::from_secs(1));
}

#[tokio::test]
async fn a_send_rate_alone_hears_of_both() {
    for say in [
        Say::Status(Code::ResourceExhausted, &[]),
        Say::Trailers(false, "8"),
    ] {
        let (channel, _script) = serve(0, Box::leak(Box::new([say]))).await;
        let clock = TokioClock::new();
        let rate = Arc::new(SendRate::new(ControlLaw::Aws, clock.now()));
        let layer = SendRateLayer::new(
            SendLimiter::new(rate.clone()).clock(clock),
            GrpcResults::new(),
        );
        let service = ServiceBuilder::new().layer(layer).service(channel);
        let mut client = tonic::client::Grpc::new(service);
        client.ready().await.expect("a channel is ready");
        let path = PathAndQuery::from_static("/test.Test/Call");
        let message = tonic::Request::new(Bytes::from_static(b"hello"));
        let answer = client.unary(message, path, Raw).await;
        assert_eq!(
            answer.unwrap_err().code(),
            Code::ResourceExhausted,
            "{say:?}"
        );
        assert!(next_in(&rate, &clock) > Duration::from_secs(1), "{say:?}");
    }
}

#[tokio::test]
async fn a_connection_that_is_reset_is_tried_again() {
    let (channel, script) = serve(1, &[Say::Echo]).await;
    let strategy = standard();
    assert_eq!(call(layer(strategy.clone()), channel).await, ECHOED);
    assert_eq!(
        (script.asked.load(SeqCst), strategy.quota().available()),
        (1, 500)
    );
}

#[tokio::test]
async fn other_codes_can_be_added_and_calls_be_made_once() {
    let aborted: &[Say] = &[Say::Status(Code::Aborted, &[]), Say::Echo];
    let (channel, _script) = serve(0, aborted).await;
    let more = GrpcResults::new().retrying(10).retrying(0).retrying(99);
    let layer = |results| {
        RetryLayer::shared(standard(), results)
            .replay(paceline_tower::Buffered::up_to(65_536))
            .idempotency(Idempotency::Idempotent)
    };
    assert_eq!(call(layer(more), channel).await, ECHOED);
    let (channel, script) = serve(0, aborted).await;
    let once = layer(more).idempotency(Idempotency::NotIdempotent);
    assert_eq!(call(once, channel).await, Err(Code::Aborted));
    assert_eq!(script.asked.load(SeqCst), 1);
    let (channel, script) = serve(0, &[Say::Status(Code::Unavailable, &[]), Say::Echo]).await;
    let too_long = layer(more).replay(paceline_tower::Buffered::up_to(9)); // 5 and a head of 5
    assert_eq!(call(too_long, channel).await, Err(Code::Unavailable));
    assert_eq!(script.asked.load(SeqCst), 1);
}

#[tokio::test]
async fn the_deadline_of_a_call_ends_it() {
    let (channel, script) = serve(0, &[Say::Hang]).await;
    let mut message = tonic::Request::new(Bytes::from_static(b"hello"));
    message.set_timeout(Duration::from_millis(300));
    let begun = Instant::now();
    let status = send(layer(standard()), channel, message).await.unwrap_err();
    let took = begun.elapsed();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    assert_eq!(script.asked.load(SeqCst), 1);
    let all = Duration::from_millis(300)..Duration::from_millis(600);
    assert!(all.contains(&took), "{took:?}");
}

/// Answers `UNAVAILABLE`, and keeps what the client said of its deadline.
#[derive(Clone, Default)]
struct Timeouts(Arc<std::sync::Mutex<Vec<String>>>);

impl Service<Request<Replayed<Body>>> for Timeouts {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = core::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Request<Replayed<Body>>) -> Self::Future {
        let timeout = call.headers().get("grpc-timeout").expect("it has one");
        let timeout = timeout.to_str().expect("text").to_owned();
        self.0.lock().expect("no panic").push(timeout);
        let response = Response::builder().header("grpc-status", "14");
        ready(Ok(response.body(Body::empty()).expect("a response")))
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_has_what_is_left_of_the_deadline() {
    let seen = Timeouts::default();
    let strategy = support::standard(Duration::from_millis(250));
    let mut service = ServiceBuilder::new()
        .layer(layer(strategy))
        .service(seen.clone());
    let call = Request::builder().header("grpc-timeout", "1S");
    let call = call.body(Body::empty()).expect("a request");
    let answer = service.call(call).await.expect("an answer");
    assert_eq!(answer.headers()["grpc-status"], "14");
    let seen = seen.0.lock().expect("no panic").clone();
    assert_eq!(seen, ["1000000u", "750000u", "500000u"]);
}

#[tokio::test]
async fn refusals_have_the_codes_of_grpc() {
    // A deadline of the layer's.
    let (channel, _script) = serve(0, &[Say::Hang]).await;
    let layer_of = |strategy| layer(strategy).deadline(Duration::from_millis(50));
    let message = || tonic::Request::new(Bytes::from_static(b"hello"));
    let status = send(layer_of(standard()), channel, message()).await;
    let status = status.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    assert_eq!(status.message(), "cut off: the deadline has passed");
    // A turn that comes too late.
    let (channel, script) = serve(0, &[Say::Echo]).await;
    let builder = Adaptive::builder()
        .clock(Arc::new(TokioClock::new()))
        .name("täglich 100%")
        .paced(support::one_in(Duration::from_secs(60)))
        .fail_fast(true);
    let strategy = Arc::new(builder.build().expect("in range"));
    let now = strategy.clock().now();
    let _spent = strategy.send_rate().try_acquire(now).expect("a token");
    let status = send(layer(strategy), channel, message()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    let named = status.message().starts_with("täglich 100%: not sent: ");
    assert!(named, "{status:?}");
    assert_eq!(script.asked.load(SeqCst), 0);
    // The same of a send rate alone.
    let (channel, script) = serve(0, &[Say::Echo]).await;
    let clock = TokioClock::new();
    let rate = Arc::new(SendRate::paced(
        support::one_in(Duration::from_secs(60)),
        clock.now(),
    ));
    let _spent = rate.try_acquire(clock.now()).expect("a token");
    let limiter = SendLimiter::new(rate).clock(clock);
    let waits = SendRateLayer::new(limiter, GrpcResults::new()).within(Duration::from_secs(1));
    let service = ServiceBuilder::new().layer(waits).service(channel);
    let mut client = tonic::client::Grpc::new(service);
    client.ready().await.expect("a channel is ready");
    let path = PathAndQuery::from_static("/test.Test/Call");
    let status = client.unary(message(), path, Raw).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert_eq!(script.asked.load(SeqCst), 0);
}

#[tokio::test]
async fn calls_are_retried_without_a_word_on_idempotency() {
    let says: &[Say] = &[Say::Status(Code::Unavailable, &[]), Say::Echo];
    let (channel, script) = serve(0, says).await;
    let bare = RetryLayer::shared(standard(), GrpcResults::new())
        .replay(paceline_tower::Buffered::up_to(65_536));
    assert_eq!(call(bare, channel).await, ECHOED);
    assert_eq!(script.asked.load(SeqCst), 2);
}

#[tokio::test]
async fn retry_info_in_the_details_says_when_to_come_back() {
    let begun = Instant::now();
    let says: &[Say] = &[
        Say::RetryInfo(Code::ResourceExhausted, 1, 500_000_000),
        Say::Echo,
    ];
    assert_eq!(outcome(says).await, (ECHOED, 2, 500));
    assert!(begun.elapsed() >= Duration::from_millis(1_500));
    // It makes nothing retryable.
    let says: &[Say] = &[Say::RetryInfo(Code::NotFound, 0, 1), Say::Echo];
    assert_eq!(outcome(says).await, (Err(Code::NotFound), 1, 500));
}
