//! An HTTP server on loopback with scripted answers, an operator of it, and strategies in the time
//! of the tests.

#![allow(dead_code, reason = "each test program uses a part")]

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;
use std::{io, sync::Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use opendal::{HttpTransporter, OperationContext, Operator, services::S3};
use opendal_http_transport_reqwest::ReqwestTransport;
use paceline::{
    Adaptive, Clock, Timestamp, backoff::BackoffStrategy, config::StrategyBuilder,
    law::PacedSettings,
};
use paceline_opendal::PacingLayer;
use tokio::{net::TcpListener, task::JoinHandle, time::Instant};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// Further off than any time limit of the tests.
const AGES: Duration = Duration::from_secs(1_000_000);

/// What the server does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Answers with this status and, if there is one, this header.
    Status(u16, Option<(&'static str, &'static str)>),
    /// Reads the request and closes the connection.
    Reset,
    /// Answers with status 200 and this.
    Body(&'static str),
    /// Answers with this status and body.
    Refusal(u16, &'static str),
    /// Answers with status 200 and the headers of an object.
    Object,
    /// Reads the request, and answers never.
    Never,
}

pub(crate) const OK: Answer = Answer::Status(200, None);
pub(crate) const SLOW_DOWN: Answer = Answer::Status(429, None);
pub(crate) const BROKEN: Answer = Answer::Status(500, None);

/// A server that lives as long as this.
#[derive(Debug)]
pub(crate) struct Server {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts a server on a free port that gives these answers, the last one again and again.
    pub(crate) async fn with(answers: &[Answer]) -> Self {
        let answers = answers.to_vec();
        let last = answers.len().checked_sub(1).expect("at least one answer");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let (noted, answers) = (seen.clone(), Arc::new(answers));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (noted, answers) = (noted.clone(), answers.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let n = note(&noted, request.method().as_str());
                    let answer = answers[n.min(last)].clone();
                    async move {
                        request.into_body().collect().await.expect("a body");
                        if matches!(answer, Answer::Never) {
                            core::future::pending::<()>().await;
                        }
                        reply(&answer)
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, seen, task }
    }

    /// Returns the methods of the requests since the last call.
    pub(crate) fn requests(&self) -> Vec<String> {
        core::mem::take(&mut *self.seen.lock().expect("no test panicked in here"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Writes a request down, and returns how many came before it.
fn note(seen: &Mutex<Vec<String>>, method: &str) -> usize {
    let mut seen = seen.lock().expect("no test panicked in here");
    seen.push(method.into());
    seen.len().saturating_sub(1)
}

fn reply(answer: &Answer) -> io::Result<Response<Full<Bytes>>> {
    let (status, header, body) = match *answer {
        Answer::Status(status, header) => (status, header, ""),
        Answer::Body(body) => (200, None, body),
        Answer::Refusal(status, body) => (status, None, body),
        Answer::Object => {
            let response = Response::builder().header("etag", "\"x\"");
            let response = response.header("content-length", 3);
            return Ok(response.body(Full::default()).expect("a response"));
        }
        Answer::Reset | Answer::Never => return Err(io::ErrorKind::ConnectionReset.into()),
    };
    let response = Response::builder().status(status);
    let response = header
        .into_iter()
        .fold(response, |response, (name, value)| {
            response.header(name, value)
        });
    Ok(response.body(body.into()).expect("a response"))
}

/// The time that tokio's tests can pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paused(Instant);

impl Paused {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        let nanos = u64::try_from(self.0.elapsed().as_nanos());
        Timestamp::from_nanos(nanos.expect("tests are short"))
    }
}

/// So many sends a second, whatever is throttled, without a backoff.
pub(crate) fn fixed(rate: u32) -> StrategyBuilder<Adaptive> {
    let settings = PacedSettings::fixed(rate, SECOND).expect("the rate is in range");
    Adaptive::builder()
        .clock(Arc::new(Paused::new()))
        .backoff(Arc::new(Always(Duration::ZERO)))
        .paced(settings)
}

/// Every backoff is as long.
#[derive(Debug)]
pub(crate) struct Always(pub(crate) Duration);

impl BackoffStrategy for Always {
    fn delay(&self, _retry: u32, _throttle: bool, _random: u64) -> Duration {
        self.0
    }
}

/// An operator for a bucket on `server`, with no timer but those of the tests.
pub(crate) fn operator(server: &Server, layer: PacingLayer) -> Operator {
    operator_at(&server.url, layer)
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
