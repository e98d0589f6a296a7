//! An HTTP server on loopback with scripted answers, and strategies that do not hurry.

#![allow(dead_code, reason = "each test program uses a part")]

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;
use std::{io, sync::Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use paceline::{Clock, RetryStrategy, Timestamp, backoff::BackoffStrategy};
use paceline_reqwest::Pacing;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Result};
use tokio::{net::TcpListener, task::JoinHandle, time::Instant};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// Further off than any time limit of the tests.
const AGES: Duration = Duration::from_secs(1_000_000);

/// What the server does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Answers with this status and, if there is one, this header.
    Status(u16, Option<(&'static str, &'static str)>),
    /// Answers with this status and this body.
    Says(u16, &'static str),
    /// Reads the request and closes the connection.
    Reset,
    /// Answers with status 200 after so long.
    Slow(Duration),
}

pub(crate) const OK: Answer = Answer::Status(200, None);
pub(crate) const SLOW_DOWN: Answer = Answer::Status(429, None);
pub(crate) const BROKEN: Answer = Answer::Status(500, None);

/// A server that lives as long as this.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) url: String,
    bodies: Arc<Mutex<Vec<Bytes>>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts a server on a free port that gives these answers, the last one again and again.
    pub(crate) async fn with(answers: &[Answer]) -> Self {
        Self::at("127.0.0.1", answers).await
    }

    /// Starts it at another address of loopback.
    pub(crate) async fn at(address: &str, answers: &[Answer]) -> Self {
        let answers = answers.to_vec();
        let last = answers.len().checked_sub(1).expect("at least one answer");
        Self::answering(address, move |n| answers[n.min(last)].clone()).await
    }

    /// Starts a server that answers the request that so many came before as `answer` says.
    async fn answering(
        address: &str,
        answer: impl Fn(usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((address, 0)).await.expect("a free port");
        let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
        let bodies = Arc::<Mutex<Vec<Bytes>>>::default();
        let (noted, answers) = (bodies.clone(), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (noted, answers) = (noted.clone(), answers.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (noted, answers) = (noted.clone(), answers.clone());
                    async move {
                        let body = request.into_body().collect().await.expect("a body");
                        let n = note(&noted, body.to_bytes());
                        reply(answers(n)).await
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, bodies, task }
    }

    /// Returns the bodies of the requests so far.
    pub(crate) fn bodies(&self) -> Vec<Bytes> {
        self.bodies
            .lock()
            .expect("no test panicked in here")
            .clone()
    }

    /// Returns how many requests have come.
    pub(crate) fn requests(&self) -> usize {
        self.bodies().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Writes a request down, and returns how many came before it.
fn note(bodies: &Mutex<Vec<Bytes>>, body: Bytes) -> usize {
    let mut bodies = bodies.lock().expect("no test panicked in here");
    bodies.push(body);
    bodies.len().saturating_sub(1)
}

async fn reply(answer: Answer) -> io::Result<Response<Full<Bytes>>> {
    let (status, header) = match answer {
        Answer::Status(status, header) => (status, header),
        Answer::Says(status, body) => {
            let response = Response::builder().status(status).body(body.into());
            return Ok(response.expect("a response"));
        }
        Answer::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
        Answer::Slow(span) => {
            tokio::time::sleep(span).await;
            (200, None)
        }
    };
    let response = Response::builder().status(status);
    let response = header
        .into_iter()
        .fold(response, |response, (name, value)| {
            response.header(name, value)
        });
    Ok(response.body(Full::default()).expect("a response"))
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

/// Every backoff is as long.
#[derive(Debug)]
pub(crate) struct Always(pub(crate) Duration);

impl BackoffStrategy for Always {
    fn delay(&self, _retry: u32, _throttle: bool, _random: u64) -> Duration {
        self.0
    }
}

/// A client of reqwest's own, with no timer but those of the tests.
pub(crate) fn bare() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .no_proxy()
        .pool_idle_timeout(AGES)
}

pub(crate) fn client(pacing: Pacing) -> ClientWithMiddleware {
    let bare = bare().build().expect("a client");
    ClientBuilder::new(bare).with(pacing).build()
}

pub(crate) fn client_of(strategy: &Arc<impl RetryStrategy + 'static>) -> ClientWithMiddleware {
    client(Pacing::shared(strategy.clone()))
}

/// Returns the status of an answer.
pub(crate) fn status(answer: Result<reqwest::Response>) -> u16 {
    answer.expect("an answer").status().as_u16()
}
