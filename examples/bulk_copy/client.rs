//! The client: one object's copy through a strategy, which is where the crate is used, and the
//! transport below it, which never retries.

use alloc::sync::Arc;
use core::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::StatusCode;
use paceline::{
    Failure, Fault, RetryInfo, RetrySafety, RetryStrategy, RetryStrategyExt,
    operation::{Attempt, StopReason},
};
use reqwest::RequestBuilder;

use crate::{
    s3,
    service::{destination, source},
    tally::Counts,
};

/// Copies object `number`, and returns why the strategy stopped if it failed for good.
pub(crate) async fn copy(
    client: &Client,
    strategy: &dyn RetryStrategy,
    number: usize,
) -> Result<(), StopReason> {
    let (from, to) = (&source(number), &destination(number));
    let copy = |attempt: Attempt| async move { client.copy(from, to, &attempt.to_string()).await };
    strategy.run_async(copy).await.map_err(|stop| stop.why())
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
}

impl RetryInfo for CallError {
    /// A throttled request was not carried out. An unanswered one may have been, but to write the
    /// same object twice does no harm.
    fn failure(&self) -> Failure {
        match self {
            Self::Connection(error) => Failure::from_fault(Fault::Other)
                .with_retry_safety(RetrySafety::Yes)
                .with_timeout(error.is_timeout()),
            Self::Service { .. } if self.is_slow_down() => {
                Failure::throttling().with_fault(Fault::Server)
            }
            Self::Service { status, .. } if status.is_server_error() => {
                Failure::from_fault(Fault::Server)
            }
            Self::Service { .. } => Failure::from_fault(Fault::Client),
        }
    }
}

/// A client of one service. Its clones share connections and counters.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    origin: String,
    counts: Arc<Mutex<Counts>>,
}

impl Client {
    /// Creates the client of the service at `address`.
    pub(crate) fn new(address: SocketAddr) -> Result<Self, reqwest::Error> {
        Ok(Self {
            http: reqwest::Client::builder().no_proxy().build()?,
            origin: format!("http://{address}"),
            counts: Arc::default(),
        })
    }

    /// Returns what was counted so far.
    pub(crate) fn counts(&self) -> Counts {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the service copy an object.
    pub(crate) async fn copy(&self, from: &str, to: &str, attempt: &str) -> Result<(), CallError> {
        let request = self.http.put(format!("{}{to}", self.origin));
        let request = request.header(s3::COPY_SOURCE, from);
        let answer = exchange(request.header(s3::ATTEMPT, attempt)).await;
        let mut counts = self.lock();
        counts.sent += 1;
        match &answer {
            Ok(()) => counts.done += 1,
            Err(error) if error.is_slow_down() => counts.throttled += 1,
            Err(CallError::Service { .. }) => counts.rejected += 1,
            Err(CallError::Connection(_)) => counts.lost += 1,
        }
        answer
    }
}

async fn exchange(request: RequestBuilder) -> Result<(), CallError> {
    let response = request.send().await.map_err(CallError::Connection)?;
    let status = response.status();
    let body = response.bytes().await.map_err(CallError::Connection)?;
    if status.is_success() {
        return Ok(());
    }
    let code = s3::error_code(&body).unwrap_or_default().to_owned();
    Err(CallError::Service { status, code })
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use hyper::StatusCode;
    use paceline::{Fault, RetryInfo, RetrySafety};

    use super::{CallError, Client};
    use crate::{
        server::Server,
        service::{Service, destination, source},
    };

    /// Starts a service that admits three copies, and a client of it.
    async fn loopback() -> (Arc<Service>, Server, Client) {
        let service = Arc::new(Service::new((0, 3), 9));
        let server = Server::start(Arc::clone(&service)).await;
        let server = server.expect("a port is free");
        let client = Client::new(server.address()).expect("the client is configured");
        (service, server, client)
    }

    async fn copy(client: &Client, number: usize) -> Result<(), CallError> {
        let (from, to) = (source(number), destination(number));
        client.copy(&from, &to, "attempt=1").await
    }

    #[tokio::test]
    async fn both_sides_of_a_socket_count_the_same() {
        let (service, _server, client) = loopback().await;
        for number in [0, 1] {
            copy(&client, number).await.expect("within the limit");
        }
        let missing = copy(&client, 9).await.expect_err("there is no such source");
        assert!(!missing.is_slow_down(), "{missing:?}");
        let refused = copy(&client, 2).await.expect_err("over the limit");
        assert!(refused.is_slow_down(), "{refused:?}");
        let (counts, ledger) = (client.counts(), service.ledger());
        assert_eq!((counts.sent, counts.throttled, ledger.copies), (4, 1, 2));
        assert_eq!(counts.differences(ledger.counts), [""; 0]);
    }

    #[tokio::test]
    async fn a_request_without_an_answer_is_counted_as_such() {
        let (_service, server, client) = loopback().await;
        let address = server.address();
        drop(server);
        // The port is closed once the listening task has been dropped.
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        let error = copy(&client, 0).await.expect_err("there is no server");
        assert!(matches!(error, CallError::Connection(_)), "{error:?}");
        assert_eq!((client.counts().sent, client.counts().lost), (1, 1));
    }

    fn answered(status: StatusCode, code: &str) -> CallError {
        let code = code.to_owned();
        CallError::Service { status, code }
    }

    #[test]
    fn slow_down_is_a_throttle_and_safe_to_retry() {
        let error = answered(StatusCode::SERVICE_UNAVAILABLE, "SlowDown");
        assert!(error.failure().is_throttle());
        assert_eq!(error.failure().retry_safety(), RetrySafety::Yes);
    }

    #[test]
    fn a_503_without_that_code_is_the_servers_fault_and_no_throttle() {
        let error = answered(StatusCode::SERVICE_UNAVAILABLE, "");
        assert!(!error.failure().is_throttle());
        assert_eq!(error.failure().retry_safety(), RetrySafety::Maybe);
        assert_eq!(error.failure().fault(), Fault::Server);
    }

    #[test]
    fn a_missing_object_is_not_asked_for_again() {
        let error = answered(StatusCode::NOT_FOUND, "NoSuchKey");
        assert_eq!(error.failure().retry_safety(), RetrySafety::No);
        assert_eq!(error.failure().fault(), Fault::Client);
    }
}
