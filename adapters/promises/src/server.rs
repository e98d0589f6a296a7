//! A server on loopback with scripted answers.

use alloc::sync::Arc;
use core::{convert::Infallible, time::Duration};
use std::sync::Mutex;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, time::Instant};

/// A success.
pub const OK: Said = Said::new(200);
/// Throttling by status 429.
pub const SLOW_DOWN: Said = Said::new(429);
/// A bare 503.
pub const OVERLOADED: Said = Said::new(503);
/// A 503 that says when to come back.
pub const HINTED: Said = OVERLOADED.header(("retry-after", "1"));

/// What a server says to a request.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    status: u16,
    headers: [Option<(&'static str, &'static str)>; 2],
    body: &'static str,
    after: Duration,
}

impl Said {
    /// Answers with `status` at once, with a body that is short.
    #[must_use]
    pub const fn new(status: u16) -> Self {
        Self {
            status,
            headers: [None; 2],
            body: "x",
            after: Duration::ZERO,
        }
    }

    /// Answers with this header too. There is room for two.
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

    fn into_response(self) -> Response<Full<Bytes>> {
        // Stores ask for the first two.
        let response = Response::builder()
            .status(self.status)
            .header("etag", "\"x\"")
            .header("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT");
        let headers = self.headers.into_iter().flatten();
        let response = headers.fold(response, |response, (name, value)| {
            response.header(name, value)
        });
        response.body(self.body.into()).expect("a response")
    }
}

/// Starts a server on a free port, and returns its address. It ends with the test's runtime.
pub async fn serve(say: impl Fn() -> Said + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let say = Arc::new(say);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let say = say.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let response = say();
                async move {
                    let _read = request.into_body().collect().await;
                    tokio::time::sleep(response.after).await;
                    Ok::<_, Infallible>(response.into_response())
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    url
}

/// Answers `well` to `rate` requests a second, ten at once at most, and `refusal` to the others.
#[allow(clippy::float_arithmetic, reason = "a server in a test")]
pub(crate) fn limited(rate: f64, well: Said, refusal: Said) -> impl Fn() -> Said {
    let bucket = Mutex::new((10.0, Instant::now()));
    move || {
        let mut bucket = bucket.lock().expect("no test panicked in here");
        let (tokens, last) = *bucket;
        let now = Instant::now();
        let tokens = f64::min(tokens + (now - last).as_secs_f64() * rate, 10.0);
        let passes = tokens >= 1.0;
        *bucket = (if passes { tokens - 1.0 } else { tokens }, now);
        if passes { well } else { refusal }
    }
}
