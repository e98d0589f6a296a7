//! A service on loopback with scripted answers.

use alloc::sync::Arc;
use core::{
    fmt::Write as _,
    future::{Future, pending, ready},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};
use std::{io, sync::Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpListener,
    task::JoinHandle,
    time::{Instant, sleep},
};

/// A success.
pub const OK: Said = Said::new(200);
/// Throttling by status 429.
pub const SLOW_DOWN: Said = Said::new(429);
/// A server error that is no throttling.
pub const BROKEN: Said = Said::new(500);
/// A bare 503.
pub const OVERLOADED: Said = Said::new(503);
/// A 503 that says when to come back.
pub const HINTED: Said = OVERLOADED.header(("retry-after", "1"));

/// The answer that hyper sends. An error closes the connection.
pub type Reply = io::Result<Response<Full<Bytes>>>;

/// A server's answer to a request.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    /// `None` closes the connection.
    status: Option<u16>,
    headers: [Option<(&'static str, &'static str)>; 2],
    body: &'static str,
    after: Duration,
}

impl Said {
    /// Closes the connection.
    pub const RESET: Self = Self {
        status: None,
        ..Self::new(0)
    };
    /// Never answers.
    pub const NEVER: Self = Self::new(200).after(Duration::MAX);

    /// Answers with `status` and a short body at once.
    #[must_use]
    pub const fn new(status: u16) -> Self {
        Self {
            status: Some(status),
            headers: [None; 2],
            body: "x",
            after: Duration::ZERO,
        }
    }

    /// Adds this header. There is room for two headers.
    #[must_use]
    pub const fn header(self, header: (&'static str, &'static str)) -> Self {
        let headers = [Some(header), self.headers[0]];
        Self { headers, ..self }
    }

    /// Answers with this body instead.
    #[must_use]
    pub const fn body(self, body: &'static str) -> Self {
        Self { body, ..self }
    }

    /// Answers after `span`.
    #[must_use]
    pub const fn after(self, span: Duration) -> Self {
        Self {
            after: span,
            ..self
        }
    }

    /// Makes the reply after its time.
    ///
    /// # Errors
    ///
    /// If the connection is to be closed.
    pub async fn reply(self) -> Reply {
        match self.after {
            Duration::ZERO => {}
            Duration::MAX => pending().await,
            span => sleep(span).await,
        }
        let status = self.status.ok_or(io::ErrorKind::ConnectionReset)?;
        // Stores ask for these two.
        let response = Response::builder()
            .status(status)
            .header("etag", "\"x\"")
            .header("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT");
        let headers = self.headers.into_iter().flatten();
        let response = headers.fold(response, |response, (name, value)| {
            response.header(name, value)
        });
        Ok(response.body(self.body.into()).expect("a response"))
    }
}

/// A request that came.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "they are named for what they are")]
pub struct Asked {
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Asked {
    async fn read(request: Request<Incoming>) -> hyper::Result<Self> {
        let (parts, body) = request.into_parts();
        Ok(Self {
            method: parts.method,
            uri: parts.uri,
            headers: parts.headers,
            body: body.collect().await?.to_bytes(),
        })
    }

    /// Returns the text of a header, empty if there is none.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// Returns `true` if the [`head`](Self::head) has all of `words`.
    #[must_use]
    pub fn has(&self, words: &[&str]) -> bool {
        let head = self.head();
        words.iter().all(|word| head.contains(word))
    }

    /// Returns the first line and the headers of the request.
    #[must_use]
    pub fn head(&self) -> String {
        let mut head = format!("{} {}", self.method, self.uri);
        for (name, value) in &self.headers {
            let value = value.to_str().unwrap_or_default();
            write!(head, "\n{name}: {value}").expect("a text");
        }
        head
    }
}

/// A server that runs until this handle is dropped.
#[derive(Debug)]
pub struct Server {
    /// The address, with a slash at its end.
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts a server on a free port that gives these answers, and then repeats the last.
    pub async fn with(answers: &[Said]) -> Self {
        Self::at("127.0.0.1", answers).await
    }

    /// Starts a server with these answers at another address of loopback.
    pub async fn at(address: &str, answers: &[Said]) -> Self {
        let answers = answers.to_vec();
        let last = answers.len().checked_sub(1).expect("at least one answer");
        Self::start(address, move |n, _| answers[n.min(last)].reply()).await
    }

    /// Starts a server that gives request `n`, counted from 0, the answer `say(n)`.
    pub async fn saying(say: impl Fn(usize) -> Said + Send + Sync + 'static) -> Self {
        Self::replying(move |n, _| say(n).reply()).await
    }

    /// Starts a server that gives request `n`, counted from 0, the reply `reply(n, request)`.
    pub async fn replying<F>(reply: impl Fn(usize, &Asked) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        Self::start("127.0.0.1", reply).await
    }

    /// Starts a server at which the first `fails` requests of a form fail. A request is of the form
    /// if its head has all of `words`. The reply is `reply(head, fails)`.
    pub async fn failing(
        words: &'static [&'static str],
        fails: usize,
        reply: impl Fn(&str, bool) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let count = AtomicUsize::new(0);
        Self::replying(move |_, request| {
            let head = request.head();
            // A count, which orders nothing else.
            let fails = request.has(words) && count.fetch_add(1, Relaxed) < fails;
            ready(reply(&head, fails))
        })
        .await
    }

    async fn start<F>(
        address: &str,
        reply: impl Fn(usize, &Asked) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        let listener = TcpListener::bind((address, 0)).await.expect("a free port");
        let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let shared = Arc::new((asked.clone(), reply));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = shared.clone();
                let service = service_fn(move |request| {
                    let shared = shared.clone();
                    async move {
                        let (noted, reply) = &*shared;
                        let asked = Asked::read(request).await.map_err(io::Error::other)?;
                        reply(note(noted, asked.clone()), &asked).await
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, asked, task }
    }

    /// Returns the address without the slash at its end.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        self.url.trim_end_matches('/')
    }

    /// Returns the requests so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no test panicked in here").clone()
    }

    /// Returns how many requests have come.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.asked().len()
    }

    /// Returns the methods of the requests so far, with spaces between them.
    #[must_use]
    pub fn methods(&self) -> String {
        let methods: Vec<_> = self.asked().into_iter().map(|one| one.method).collect();
        let methods: Vec<_> = methods.iter().map(Method::as_str).collect();
        methods.join(" ")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Notes a request, and returns the number of requests before it.
fn note(requests: &Mutex<Vec<Asked>>, asked: Asked) -> usize {
    let mut requests = requests.lock().expect("no test panicked in here");
    requests.push(asked);
    requests.len() - 1
}

/// Answers `well` to `rate` requests a second, at most ten at once, and `refusal` to the others.
#[allow(clippy::float_arithmetic, reason = "a server in a test")]
pub(crate) fn limited(rate: f64, well: Said, refusal: Said) -> impl Fn(usize) -> Said {
    let bucket = Mutex::new((10.0, Instant::now()));
    move |_| {
        let mut bucket = bucket.lock().expect("no test panicked in here");
        let (tokens, last) = *bucket;
        let now = Instant::now();
        let tokens = f64::min(tokens + (now - last).as_secs_f64() * rate, 10.0);
        let passes = tokens >= 1.0;
        *bucket = (if passes { tokens - 1.0 } else { tokens }, now);
        if passes { well } else { refusal }
    }
}
