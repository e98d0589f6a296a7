//! The client's transport: one request, one answer, and what to make of it. It never retries.

use alloc::sync::Arc;
use core::{error, fmt, net::SocketAddr};

use hyper::{StatusCode, body::Bytes};
use reqwest::{RequestBuilder, redirect};

use crate::{
    s3,
    tally::{Answer, Tally},
};

/// A client of one service. Its clones share connections and counters.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    origin: String,
    tally: Arc<Tally>,
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The service answered with an error.
    Service { status: StatusCode, code: String },
    /// There was no answer.
    Connection(reqwest::Error),
}

impl CallError {
    /// Returns whether the service asked to slow down: by the code, a bare 503 says no such thing.
    pub(crate) fn is_slow_down(&self) -> bool {
        matches!(self, Self::Service { code, .. } if code == s3::SLOW_DOWN)
    }

    const fn answer(&self) -> Answer {
        match self {
            Self::Service { .. } => Answer::Rejected,
            Self::Connection(_) => Answer::None,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service { status, code } if code.is_empty() => write!(f, "HTTP {status}"),
            Self::Service { status, code } => write!(f, "HTTP {status}, {code}"),
            Self::Connection(error) => write!(f, "no answer: {error}"),
        }
    }
}

impl error::Error for CallError {}

impl Client {
    /// Creates a client of no service yet, which counts into `tally`.
    pub(crate) fn new(tally: Arc<Tally>) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .build()?;
        Ok(Self {
            http,
            origin: String::new(),
            tally,
        })
    }

    /// Returns the client of the service at `address`.
    pub(crate) fn of(self, address: SocketAddr) -> Self {
        Self {
            origin: format!("http://{address}"),
            ..self
        }
    }

    /// Has the service copy an object.
    pub(crate) async fn copy(&self, from: &str, to: &str, attempt: &str) -> Result<(), CallError> {
        let request = self.http.put(self.url(to)).header(s3::COPY_SOURCE, from);
        self.send(request, attempt).await.map(drop)
    }

    /// Downloads an object.
    pub(crate) async fn get(&self, path: &str, attempt: &str) -> Result<Bytes, CallError> {
        self.send(self.http.get(self.url(path)), attempt).await
    }

    /// Uploads an object.
    pub(crate) async fn put(
        &self,
        path: &str,
        body: Bytes,
        attempt: &str,
    ) -> Result<(), CallError> {
        let request = self.http.put(self.url(path)).body(body);
        self.send(request, attempt).await.map(drop)
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    async fn send(&self, request: RequestBuilder, attempt: &str) -> Result<Bytes, CallError> {
        self.tally.sending();
        let answer = exchange(request.header(s3::ATTEMPT, attempt)).await;
        self.tally.answered(match &answer {
            Ok(_) => Answer::Success,
            Err(error) if error.is_slow_down() => Answer::Throttled,
            Err(error) => error.answer(),
        });
        answer
    }
}

async fn exchange(request: RequestBuilder) -> Result<Bytes, CallError> {
    let response = request.send().await.map_err(CallError::Connection)?;
    let status = response.status();
    let body = response.bytes().await.map_err(CallError::Connection)?;
    if status.is_success() {
        return Ok(body);
    }
    let code = s3::error_code(&body).unwrap_or_default().to_owned();
    Err(CallError::Service { status, code })
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use core::time::Duration;

    use super::{CallError, Client};
    use crate::{
        service::{Limits, Service},
        store::{destination, source},
        tally::{Tally, mismatches},
    };

    /// Starts a service that never admits more than its burst, and a client of it.
    async fn loopback(burst: u32) -> (Service, Client, Arc<Tally>) {
        let limits = Limits {
            reads: 0,
            writes: 0,
            burst,
            latency: Duration::ZERO,
        };
        let service = Service::start(limits, 9).await.expect("a port is free");
        let tally = Arc::new(Tally::default());
        let client = Client::new(Arc::clone(&tally)).expect("the client is configured");
        let client = client.of(service.address());
        (service, client, tally)
    }

    async fn copy(client: &Client, number: u32) -> Result<(), CallError> {
        let (from, to) = (source(number), destination(number));
        client.copy(&from, &to, "attempt=1").await
    }

    #[tokio::test]
    async fn both_sides_of_a_socket_count_the_same() {
        let (service, client, tally) = loopback(3).await;
        for number in [0, 1] {
            copy(&client, number).await.expect("within the limit");
        }
        let missing = copy(&client, 9).await.expect_err("there is no such source");
        assert!(!missing.is_slow_down(), "{missing}");
        let refused = copy(&client, 2).await.expect_err("over the limit");
        assert!(refused.is_slow_down(), "{refused}");
        let (counts, ledger) = (tally.counts(), service.ledger());
        let stored = service.copies(9);
        assert_eq!((counts.sent, counts.throttled, stored), (4, 1, 2));
        assert_eq!(mismatches(&counts, &ledger, 2, stored), []);
    }

    #[tokio::test]
    async fn what_was_downloaded_can_be_uploaded_as_the_copy() {
        let (service, client, _) = loopback(1).await;
        let body = client.get(&source(5), "attempt=1").await;
        let body = body.expect("the source is there");
        let put = client.put(&destination(5), body, "attempt=1").await;
        put.expect("within the limit");
        assert_eq!(service.copies(9), 1);
    }

    #[tokio::test]
    async fn a_request_without_an_answer_is_counted_as_such() {
        let (service, client, tally) = loopback(9).await;
        let address = service.address();
        drop(service);
        // The port is closed once the listening task has been dropped.
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        let error = copy(&client, 0).await.expect_err("there is no server");
        assert!(matches!(error, CallError::Connection(_)), "{error}");
        assert_eq!((tally.counts().sent, tally.counts().unanswered), (1, 1));
    }
}
