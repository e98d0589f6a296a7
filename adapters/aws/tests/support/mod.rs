//! An HTTP server on loopback with scripted answers, and clients of it.

#![allow(dead_code, reason = "each test program uses a part")]

extern crate alloc;

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};
use std::{io, sync::Mutex};

use aws_sdk_s3::{
    Client,
    config::{
        BehaviorVersion, Builder, Credentials, IdentityCache, Region,
        StalledStreamProtectionConfig, timeout::TimeoutConfig,
    },
    error::DisplayErrorContext,
};
use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep};
use aws_smithy_runtime::client::{
    orchestrator::operation::Operation, retries::classifiers::HttpStatusCodeClassifier,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, OrchestratorError};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use paceline::{Clock, RetryStrategy, Timestamp, backoff::BackoffStrategy};
use paceline_aws::{Pacing, PacingPlugin};
use tokio::{
    net::TcpListener,
    sync::{Barrier, Notify},
    task::JoinHandle,
};

/// What the server does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// 200 and a copy's result.
    Copied,
    /// 503 as S3 says it.
    SlowDown,
    /// 200, and throttling in the body: as S3 says it once it has begun to answer.
    Late,
    /// 503 with a code that says nothing of throttling.
    Unavailable,
    /// 503, and when to come back.
    SlowDownFor(Duration),
    /// 500.
    Broken,
    /// 404.
    Missing,
    /// The connection is closed.
    Reset,
    /// Nothing, ever; and the test is notified.
    Silence(Arc<Notify>),
    /// 200 once so many requests wait for theirs.
    Together(Arc<Barrier>),
}

/// A server that lives as long as this.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) url: String,
    /// The header `amz-sdk-request` of each.
    marks: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts a server on a free port that gives request `n`, counted from 0, the answer
    /// `answer(n)`.
    pub(crate) async fn start(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let marks = Arc::<Mutex<Vec<String>>>::default();
        let (noted, answer) = (marks.clone(), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (noted, answer) = (noted.clone(), answer.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let answer = answer(note(&noted, &request));
                    async move {
                        let _read = request.into_body().collect().await;
                        reply(answer).await
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, marks, task }
    }

    /// Starts a server that gives these answers, the last one again and again.
    pub(crate) async fn with(answers: &[Answer]) -> Self {
        let answers = answers.to_vec();
        let last = answers.len().checked_sub(1).expect("at least one answer");
        Self::start(move |n| answers[n.min(last)].clone()).await
    }

    /// Returns how many requests have come.
    pub(crate) fn requests(&self) -> usize {
        self.marks().len()
    }

    /// Returns what each said of itself in the header `amz-sdk-request`.
    pub(crate) fn marks(&self) -> Vec<String> {
        self.marks.lock().expect("no test panicked in here").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Writes a request down, and returns how many came before it.
fn note(marks: &Mutex<Vec<String>>, request: &Request<Incoming>) -> usize {
    let mark = request.headers().get("amz-sdk-request");
    let mark = mark.and_then(|mark| mark.to_str().ok()).unwrap_or_default();
    let mut marks = marks.lock().expect("no test panicked in here");
    marks.push(mark.to_owned());
    marks.len().saturating_sub(1)
}

async fn reply(answer: Answer) -> io::Result<Response<Full<Bytes>>> {
    let error = |status: u16, code: &str| {
        let body = format!("<Error><Code>{code}</Code><Message>as told</Message></Error>");
        Response::builder()
            .status(status)
            .body(Full::from(Bytes::from(body)))
    };
    let copied = "<CopyObjectResult><ETag>\"x\"</ETag></CopyObjectResult>";
    let copied = || Response::builder().body(Full::from(Bytes::from_static(copied.as_bytes())));
    let response = match answer {
        Answer::Copied => copied(),
        Answer::SlowDown => error(503, "SlowDown"),
        Answer::Late => error(200, "SlowDown"),
        Answer::Unavailable => error(503, "Unavailable"),
        Answer::SlowDownFor(span) => error(503, "SlowDown").map(|mut response| {
            let millis = span.as_millis().to_string();
            let value = millis.parse().expect("digits are a header's value");
            response.headers_mut().insert("x-amz-retry-after", value);
            response
        }),
        Answer::Broken => error(500, "InternalError"),
        Answer::Missing => error(404, "NoSuchKey"),
        Answer::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
        Answer::Silence(asked) => {
            asked.notify_one();
            core::future::pending().await
        }
        Answer::Together(barrier) => {
            barrier.wait().await;
            copied()
        }
    };
    Ok(response.expect("the parts are valid"))
}

/// Returns the configuration of a client of `server` without paceline, that sleeps as `sleep` does.
pub(crate) fn bare(server: &Server, sleep: impl AsyncSleep + 'static) -> Builder {
    config(sleep)
        .endpoint_url(&server.url)
        .http_client(aws_smithy_http_client::Builder::new().build_http())
}

/// Returns what all clients here have in common. Nothing else of them sleeps: no time limits, no
/// watch over bodies.
pub(crate) fn config(sleep: impl AsyncSleep + 'static) -> Builder {
    Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "testtest", None, None, "test"))
        .force_path_style(true)
        .sleep_impl(sleep)
        .identity_cache(IdentityCache::no_cache())
        .timeout_config(TimeoutConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
}

/// Returns the same with paceline.
pub(crate) fn paced(server: &Server, sleep: impl AsyncSleep + 'static, pacing: &Pacing) -> Builder {
    bare(server, sleep)
        .http_client(pacing.http_client(aws_smithy_http_client::Builder::new().build_http()))
        .interceptor(pacing.interceptor())
        .retry_classifier(pacing.classifier())
}

/// Returns an operation of a client without a model that asks `server` for nothing in particular.
pub(crate) fn get(
    server: &Server,
    sleep: impl AsyncSleep + 'static,
    strategy: Arc<dyn RetryStrategy>,
) -> Operation<(), (), io::Error> {
    let http_client = aws_smithy_http_client::Builder::new().build_http();
    let plugin = Pacing::shared(strategy).plugin(http_client);
    operation(&server.url, sleep, plugin)
}

/// Returns the same of any endpoint.
pub(crate) fn operation(
    url: &str,
    sleep: impl AsyncSleep + 'static,
    plugin: PacingPlugin,
) -> Operation<(), (), io::Error> {
    Operation::builder()
        .service_name("test")
        .operation_name("Get")
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(url)
        .no_auth()
        .sleep_impl(sleep)
        .timeout_config(TimeoutConfig::disabled())
        .retry_classifier(HttpStatusCodeClassifier::default())
        .runtime_plugin(plugin)
        .serializer(|()| Ok(HttpRequest::get("/")?))
        .deserializer(|response| {
            let failed = || OrchestratorError::operation(io::Error::other("no success"));
            response
                .status()
                .is_success()
                .then_some(())
                .ok_or_else(failed)
        })
        .build()
}

/// Copies an object, and says what came of it.
pub(crate) async fn copy(client: &Client) -> Result<(), String> {
    let copy = client.copy_object().bucket("b").key("to");
    let sent = copy.copy_source("b/from").send().await;
    sent.map(drop)
        .map_err(|error| DisplayErrorContext(error).to_string())
}

/// A sleep that takes no time, and remembers for how long it was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Naps(Arc<Mutex<Vec<Duration>>>);

impl Naps {
    pub(crate) fn taken(&self) -> Vec<Duration> {
        self.0.lock().expect("no test panicked in here").clone()
    }
}

impl AsyncSleep for Naps {
    fn sleep(&self, span: Duration) -> Sleep {
        self.0.lock().expect("no test panicked in here").push(span);
        Sleep::new(core::future::ready(()))
    }
}

/// A sleep that never ends, and says when one has begun.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trance(pub(crate) Arc<Notify>);

impl AsyncSleep for Trance {
    fn sleep(&self, _span: Duration) -> Sleep {
        self.0.notify_one();
        Sleep::new(core::future::pending())
    }
}

/// A sleep that ends when the server has a request, so that a time limit strikes neither sooner nor
/// later.
#[derive(Clone, Debug, Default)]
pub(crate) struct UntilAsked(pub(crate) Arc<Notify>);

impl AsyncSleep for UntilAsked {
    fn sleep(&self, span: Duration) -> Sleep {
        let asked = self.0.clone();
        Sleep::new(async move {
            if !span.is_zero() {
                asked.notified().await;
            }
        })
    }
}

/// A clock that stands still until it is moved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stopped(Arc<AtomicU64>);

impl Stopped {
    pub(crate) fn advance(&self, span: Duration) {
        let nanos = u64::try_from(span.as_nanos()).expect("a test is short");
        self.0.fetch_add(nanos, SeqCst);
    }
}

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(SeqCst))
    }
}

/// A sleep that moves the clock on instead, and remembers for how long.
#[derive(Clone, Debug, Default)]
pub(crate) struct Skips {
    pub(crate) clock: Stopped,
    pub(crate) naps: Naps,
}

impl AsyncSleep for Skips {
    fn sleep(&self, span: Duration) -> Sleep {
        self.clock.advance(span);
        self.naps.sleep(span)
    }
}

/// The same backoff always.
#[derive(Debug)]
pub(crate) struct Always(pub(crate) Duration);

impl BackoffStrategy for Always {
    fn delay(&self, _retry: u32, _throttle: bool, _random: u64) -> Duration {
        self.0
    }
}
