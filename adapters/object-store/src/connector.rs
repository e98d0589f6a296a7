//! The connector of stores that speak HTTP. It is below their operations, and sees each request
//! with its answer.

use alloc::{boxed::Box, format, string::String, sync::Arc, vec::Vec};
use core::{
    error::Error,
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http_body::{Body, Frame};
use object_store::{
    ClientOptions, Result,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
        HttpResponseBody, HttpService,
    },
};
use paceline::{
    Execution, Failure, Idempotency, Operation, RetryStrategy,
    classify::{
        BodyBeginning, BodyEnd, Classifier, HttpResponseParts, RefusalClassifier,
        ServiceUnavailable, may_fail_late,
    },
    headers::AttemptHeader,
    operation::{Attempt, Stop, StopReason},
    wait::DefaultSleep,
};

use crate::{
    Lanes,
    batches::{Batch, wants_more},
    bounds::Bounds,
    capacity::capacity,
};

type Answers = dyn for<'a> Classifier<HttpResponseParts<'a>> + Send + Sync;
type Choose = dyn Fn(&HttpRequest) -> Lanes + Send + Sync;

/// A connector for the builders of `object_store`. Every HTTP request of the store waits for its
/// turn, and failed requests are sent again as a strategy decides.
///
/// Pages and parts take one turn each, and a batch of deletes takes a turn for each key.
/// `Retry-After` is obeyed. So are errors that S3 puts into a response of status 200, to a copy or
/// to the end of an upload in parts. Requests with the methods GET, HEAD and PROPFIND are reads,
/// all others writes. All stores that are built with one connector share its lanes.
///
/// The connector repeats the requests that the store itself would repeat:
///
/// | failure | repeated |
/// |---|---|
/// | an answer that is retryable, a closed connection | every request |
/// | a timeout, an interrupted request | GET, HEAD, PROPFIND, and PUT without a [condition](paceline::classify::is_conditional) |
///
/// After a timeout of any other request the store gets its own error, and decides. If the store
/// sends again, the request waits for its turn and pays no quota.
///
/// Otherwise the store does not retry. If the connector gives up, the store gets an error that it
/// does not retry, with the same text. Inside of an attempt of another loop of paceline, requests
/// are sent once ([`OuterAttempt`](paceline::operation::OuterAttempt)).
///
/// Parts of an upload share the lane's retry quota. If many uploads run at once, use
/// [`Lanes::bulk`], which loses no upload to throttling.
///
/// # Examples
///
/// ```
/// use object_store::{aws::AmazonS3Builder, client::HttpConnector};
/// use paceline::Adaptive;
/// use paceline_object_store::{Lanes, PacedConnector};
///
/// /// `inner` is the `ReqwestConnector::default()` that the builder would have used, or one of your own.
/// fn logs(inner: impl HttpConnector) -> AmazonS3Builder {
///     let lanes = Lanes::new(Adaptive::paced(), Adaptive::paced());
///     AmazonS3Builder::from_env()
///         .with_bucket_name("logs")
///         .with_http_connector(PacedConnector::new(inner, lanes))
/// }
/// ```
pub struct PacedConnector {
    inner: Box<dyn HttpConnector>,
    settings: Arc<Settings>,
    bounds: Bounds,
    tells: Option<AttemptHeader>,
    by_key: bool,
}

/// The choice of lanes for a request, and the meaning of answers.
struct Settings {
    choose: Box<Choose>,
    answers: Box<Answers>,
}

impl PacedConnector {
    /// Wraps `inner` and uses the same lanes for all requests.
    pub fn new(inner: impl HttpConnector, lanes: Lanes) -> Self {
        Self::by(inner, move |_| lanes.clone())
    }

    /// Wraps `inner` and asks `choose` for the lanes of each request, by its host and path.
    ///
    /// `choose` has to keep the lanes. Clones of [`Lanes`] share their strategies.
    pub fn by(
        inner: impl HttpConnector,
        choose: impl Fn(&HttpRequest) -> Lanes + Send + Sync + 'static,
    ) -> Self {
        let answers = RefusalClassifier::new().with_unavailable(ServiceUnavailable::Throttle);
        let settings = Settings {
            choose: Box::new(choose),
            answers: Box::new(answers),
        };
        Self {
            inner: Box::new(inner),
            settings: Arc::new(settings),
            bounds: Bounds::default(),
            tells: None,
            by_key: false,
        }
    }

    /// Gives each request `span`, with all its attempts and waits. No limit by default.
    ///
    /// No backoff or wait begins that would use up the rest of the time, and no attempt begins
    /// after the deadline. An attempt under way is cut off.
    #[must_use]
    pub fn deadline(mut self, span: Duration) -> Self {
        self.bounds.deadline = Some(span);
        self
    }

    /// Accepts no longer wait than `span` from the service: 60 s by default. A request that should
    /// wait longer fails at once.
    #[must_use]
    pub fn max_retry_after(mut self, span: Duration) -> Self {
        self.bounds.max_retry_after = Some(span);
        self
    }

    /// Sends the number of each attempt in `header`. By default no header is sent. Services that
    /// sign all headers may refuse a request with an added header.
    #[must_use]
    pub fn tell_attempts(mut self, header: AttemptHeader) -> Self {
        self.tells = Some(header);
        self
    }

    /// Lets a store for S3 report each refused key of a batch of deletes.
    ///
    /// By default, if S3 refuses some keys, the store sends the whole batch again, ten times at
    /// most, and loses the answer for each key. With this setting the store returns an error for
    /// each refused key, and sends nothing again. [`PacedStore`](crate::PacedStore) with
    /// [`Pacing::over_connector`](crate::Pacing::over_connector) around it sends these keys again.
    /// A store for Azure reports each key already.
    #[must_use]
    pub fn refusals_by_key(mut self) -> Self {
        self.by_key = true;
        self
    }
}

impl HttpConnector for PacedConnector {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let inner = self.inner.connect(options)?;
        let settings = Arc::clone(&self.settings);
        Ok(HttpClient::new(Paced {
            inner,
            settings,
            bounds: self.bounds,
            tells: self.tells,
            by_key: self.by_key,
        }))
    }
}

impl fmt::Debug for PacedConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacedConnector")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}

/// The client in which requests wait for their turn, and are sent again.
#[derive(Debug)]
struct Paced {
    inner: HttpClient,
    settings: Arc<Settings>,
    bounds: Bounds,
    tells: Option<AttemptHeader>,
    by_key: bool,
}

/// The result of an attempt that did not succeed.
enum Unwell {
    Answered(Failure, HttpResponse),
    /// The service refused some keys of a batch, and the answer names them.
    Partly(Failure, HttpResponse),
    Failed(HttpError),
}

impl Paced {
    async fn send(
        &self,
        request: HttpRequest,
        batch: Option<Batch>,
        left: impl Fn() -> Option<Duration>,
    ) -> core::result::Result<HttpResponse, Unwell> {
        let uri = request.uri();
        let may_fail_late = may_fail_late(request.method(), uri.query(), request.headers());
        let response = self.inner.execute(request).await.map_err(Unwell::Failed)?;
        let answers = &*self.settings.answers;
        let parts = HttpResponseParts::of(&response);
        let is_late = (batch.is_some() || may_fail_late) && response.status().is_success();
        if !is_late && !answers.wants_body(&parts) {
            return match answers.classify(&parts) {
                None => Ok(response),
                Some(failure) => Err(Unwell::Answered(failure, response)),
            };
        }
        let (parts, mut body) = response.into_parts();
        let mut beginning = read(&mut body, left()).await;
        let batch = batch.filter(|_| is_late);
        while batch.is_some() && wants_more(&beginning) {
            let more = read(&mut body, left()).await;
            beginning.bytes.extend(more.bytes);
            beginning.end = more.end;
        }
        let answer = HttpResponseParts::new(parts.status, &parts.headers);
        let failure = beginning.classify(answers, answer);
        let part = batch.and_then(|batch| batch.classify(answers, answer, &beginning));
        let says_keys = part.is_some_and(|part| self.by_key || part.part().is_some());
        if self.by_key && failure.is_none() && batch.is_some() {
            spell(&mut beginning.bytes);
        }
        let response = HttpResponse::from_parts(parts, joined(beginning, body));
        match failure.or(part) {
            None => Ok(response),
            Some(failure) if says_keys => Err(Unwell::Partly(failure, response)),
            Some(failure) => Err(Unwell::Answered(failure, response)),
        }
    }

    fn strategy(&self, request: &HttpRequest) -> Arc<dyn RetryStrategy> {
        let lanes = (self.settings.choose)(request);
        match request.method().as_str() {
            "GET" | "HEAD" | "PROPFIND" => Arc::clone(lanes.read()),
            _ => Arc::clone(lanes.write()),
        }
    }
}

#[async_trait]
impl HttpService for Paced {
    async fn call(&self, request: HttpRequest) -> core::result::Result<HttpResponse, HttpError> {
        let strategy = self.strategy(&request);
        let body = request.body().as_bytes().map(Bytes::as_ref);
        let (method, query) = (request.method().as_str(), request.uri().query());
        let batch = Batch::of(method, query, body.unwrap_or_default());
        let clock = strategy.clock();
        let begun = clock.now();
        let left_of = |span: Option<Duration>, begun| {
            Some(span?.saturating_sub(clock.now().saturating_since(begun)))
        };
        let send = |attempt: Attempt| {
            let mut request = request.clone();
            if let Some(header) = self.tells {
                header.tell(&attempt, request.headers_mut());
            }
            let (limit, begun) = (attempt.time_limit(), clock.now());
            self.send(request, batch, move || left_of(limit, begun))
        };
        let mut tokens = batch.map_or(1, |batch| batch.keys);
        let stopped = loop {
            let operation = Operation::new(&*strategy).idempotency(idempotency(&request));
            let operation = self.bounds.apply(operation).weight(tokens);
            let operation = operation.inside(request.extensions().get().copied());
            match operation.run_async_with(classify, send).await {
                Ok(response) => return Ok(response),
                Err(stopped) => match capacity(stopped.stop()) {
                    Some(less) => tokens = less,
                    None => break stopped,
                },
            }
        };
        // The store itself would send again after some statuses, and after errors of a known kind.
        // Such results are replaced here.
        let stop = stopped.stop().clone();
        match stopped.into_error() {
            Ok(Unwell::Answered(_, response)) if store_retries(&response) => {
                let (parts, mut body) = response.into_parts();
                let beginning = read(&mut body, left_of(self.bounds.deadline, begun)).await;
                let body = String::from_utf8_lossy(&beginning.bytes);
                let said = if parts.status.is_success() {
                    format!("Server returned error response: {body}")
                } else {
                    let status = parts.status;
                    format!("Server returned non-2xx status code: {status}: {body}")
                };
                let refused = GaveUp { said, stop };
                Err(HttpError::new(HttpErrorKind::Unknown, refused))
            }
            Ok(Unwell::Answered(_, response) | Unwell::Partly(_, response)) => Ok(response),
            Ok(Unwell::Failed(error)) if stop.why() == StopReason::MaybeExecuted => Err(error),
            Ok(Unwell::Failed(error)) => Err(HttpError::new(HttpErrorKind::Unknown, error)),
            // Nothing was sent, or the attempt was cut off.
            Err(stop) => Err(HttpError::new(HttpErrorKind::Unknown, stop)),
        }
    }
}

/// Returns `true` if a store would send the request again after such an answer, and has no other
/// use for the status.
fn store_retries(response: &HttpResponse) -> bool {
    let status = response.status();
    let is_refusal = status.is_server_error() || matches!(status.as_u16(), 408 | 429);
    is_refusal || status.is_success()
}

/// The last answer to a request, as an error after which the store does not send it again.
#[derive(Debug)]
struct GaveUp {
    /// The text of the store's own error.
    said: String,
    stop: Stop,
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

impl Error for GaveUp {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.stop)
    }
}

/// Reads the beginning of a body.
async fn read(body: &mut HttpResponseBody, left: Option<Duration>) -> BodyBeginning<HttpError> {
    let poll_piece = |context: &mut Context<'_>| {
        let frame = Pin::new(&mut *body).poll_frame(context);
        frame.map(|frame| frame.map(|frame| Ok(frame?.into_data().unwrap_or_default())))
    };
    BodyBeginning::read(DefaultSleep::new(), left, poll_piece).await
}

/// Returns the whole body of `beginning` and `rest`.
fn joined(beginning: BodyBeginning<HttpError>, rest: HttpResponseBody) -> HttpResponseBody {
    let read = Bytes::from(beginning.bytes);
    let failed = match beginning.end {
        BodyEnd::Whole => return read.into(),
        BodyEnd::Failed(error) => Some(error),
        _ => None,
    };
    HttpResponseBody::new(Begun { read, failed, rest })
}

/// A body whose beginning was read.
struct Begun {
    read: Bytes,
    failed: Option<HttpError>,
    rest: HttpResponseBody,
}

impl Body for Begun {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<core::result::Result<Frame<Bytes>, HttpError>>> {
        if !self.read.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(mem::take(&mut self.read)))));
        }
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Some(Err(error)));
        }
        Pin::new(&mut self.rest).poll_frame(context)
    }
}

/// Spells the code of throttling with a character reference. A store for S3 repeats the whole batch
/// if it finds the code in the text. Its parser reads the same code as before.
fn spell(xml: &mut Vec<u8>) {
    let text = core::str::from_utf8(xml).unwrap_or("<![CDATA[");
    // In CDATA a reference has no effect.
    if !text.contains("<![CDATA[") {
        *xml = text.replace("SlowDown", "Slow&#68;own").into();
    }
}

/// Returns whether `request` may be repeated after a timeout. For DELETE, POST, COPY and MKCOL only
/// the store knows, since its `idempotent` is no part of a request.
fn idempotency(request: &HttpRequest) -> Idempotency {
    match request.method().as_str() {
        "GET" | "HEAD" | "PROPFIND" | "PUT" => Idempotency::of_request(request),
        _ => Idempotency::NotIdempotent,
    }
}

/// Counts failures that the store repeats for every request as not carried out, as
/// `client/retry.rs` of `object_store` does.
fn classify(unwell: &Unwell) -> Failure {
    let error = match unwell {
        Unwell::Answered(failure, _) | Unwell::Partly(failure, _) => {
            return failure.with_execution(Execution::Rejected);
        }
        Unwell::Failed(error) => error,
    };
    match error.kind() {
        HttpErrorKind::Connect | HttpErrorKind::Request => {
            Failure::transient().with_execution(Execution::NotSent)
        }
        HttpErrorKind::Timeout => Failure::timeout(),
        HttpErrorKind::Interrupted => Failure::transient(),
        _ => Failure::not_retryable(),
    }
}
