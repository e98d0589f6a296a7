//! The transport in which requests wait for their turn, and are sent again.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use http::{Request, Response};
use opendal_core::{Buffer, Error, ErrorKind, HttpBody, HttpTransport, HttpTransporter, Result};
use paceline::{
    Failure, Idempotency, Operation, RetrySafety,
    classify::{HttpResponseParts, MAX_REFUSAL_BODY},
    operation::{Attempt, Stop, Waiter},
    wait::DefaultSleep,
};

use crate::layer::Settings;

pub(crate) struct Paced {
    pub(crate) settings: Arc<Settings>,
    pub(crate) inner: HttpTransporter,
}

/// What came of an attempt that did not succeed.
enum Unwell {
    Answered(Failure, Response<HttpBody>),
    Failed(Error),
}

impl Paced {
    async fn send(
        &self,
        request: Request<Buffer>,
        left: impl Fn() -> Option<Duration>,
    ) -> core::result::Result<Response<HttpBody>, Unwell> {
        let may_fail_late = may_fail_late(&request);
        let response = self.inner.fetch(request).await.map_err(Unwell::Failed)?;
        let answers = &self.settings.answers;
        let parts = HttpResponseParts::of(&response);
        let is_late = may_fail_late && response.status().is_success();
        if !is_late && !answers.wants_body(&parts) {
            return match answers.classify(&parts) {
                None => Ok(response),
                Some(failure) => Err(Unwell::Answered(failure, response)),
            };
        }
        let (parts, body) = response.into_parts();
        // Ends before the attempt is cut off, or the status would be lost with the body.
        let left = left().map(|left| left.saturating_sub(left.checked_div(16).unwrap_or_default()));
        let (begun, body) = Begun::read(body, left).await;
        let answer = HttpResponseParts::new(parts.status, &parts.headers);
        match answers.classify(&answer.with_refusal(&begun.bytes)) {
            None => Ok(Response::from_parts(parts, begun.before(body))),
            Some(failure) => {
                // There is no time for another attempt.
                let failure = if begun.is_cut {
                    failure.with_retry_safety(RetrySafety::No)
                } else {
                    failure
                };
                let refusal = Response::from_parts(parts, begun.alone());
                Err(Unwell::Answered(failure, refusal))
            }
        }
    }
}

/// Returns `true` if the service may answer with status 200 before it knows how the request ends,
/// and with an error in the body then: S3's `CopyObject`, `UploadPartCopy` and
/// `CompleteMultipartUpload`.
fn may_fail_late<B>(request: &Request<B>) -> bool {
    match request.method().as_str() {
        "PUT" => request.headers().contains_key("x-amz-copy-source"),
        "POST" => request.uri().query().is_some_and(|query| {
            query
                .split('&')
                .any(|member| member.starts_with("uploadId="))
        }),
        _ => false,
    }
}

/// The beginning of a body.
struct Begun {
    bytes: Vec<u8>,
    pieces: Vec<Buffer>,
    failed: Option<Error>,
    rest: Option<Rest>,
    /// Whether the time for it was up.
    is_cut: bool,
}

type Rest = Box<dyn Stream<Item = Result<Buffer>> + Send + Sync + Unpin>;

impl Begun {
    /// Reads a body, up to [`MAX_REFUSAL_BODY`] bytes and for as long as `limit`. Returns what was
    /// read, and the body to which it belongs.
    async fn read(body: HttpBody, limit: Option<Duration>) -> (Self, HttpBody) {
        let mut begun = Self {
            bytes: Vec::new(),
            pieces: Vec::new(),
            failed: None,
            rest: None,
            is_cut: false,
        };
        let body = body.map_inner(|rest| {
            begun.rest = Some(rest);
            Box::new(stream::empty())
        });
        let reading = async {
            while let Some(rest) = &mut begun.rest {
                match rest.next().await {
                    Some(Ok(piece)) => {
                        for bytes in piece.clone() {
                            begun.bytes.extend_from_slice(&bytes);
                        }
                        begun.pieces.push(piece);
                    }
                    Some(Err(error)) => {
                        begun.failed = Some(error);
                        break;
                    }
                    None => break,
                }
                if begun.bytes.len() > MAX_REFUSAL_BODY {
                    break;
                }
            }
        };
        let mut waiter = Waiter::new(DefaultSleep::new());
        let ended = waiter.cut_off(limit, reading).await;
        begun.is_cut = ended.is_none();
        (begun, body)
    }

    /// Returns `body` as it was.
    fn before(self, body: HttpBody) -> HttpBody {
        let read = self.pieces.into_iter().map(Ok);
        let read = stream::iter(read.chain(self.failed.map(Err)));
        match self.rest {
            Some(rest) => body.map_inner(|_| Box::new(read.chain(rest))),
            None => body,
        }
    }

    /// Returns what was read as a body: the service reads the body of a refusal to its end, which
    /// may never come.
    fn alone(self) -> HttpBody {
        HttpBody::new(stream::iter(self.pieces.into_iter().map(Ok)), None)
    }
}

impl HttpTransport for Paced {
    async fn fetch(&self, request: Request<Buffer>) -> Result<Response<HttpBody>> {
        let strategy = self.settings.strategy(&request);
        let idempotency = Idempotency::of_method(request.method(), request.headers());
        let mut operation = Operation::new(&*strategy).idempotency(idempotency);
        if let Some(span) = self.settings.deadline {
            operation = operation.deadline(span);
        }
        if let Some(span) = self.settings.max_retry_after {
            operation = operation.max_retry_after(span);
        }
        let operation = operation.inside(request.extensions().get().copied());
        let clock = strategy.clock();
        let send = |attempt: Attempt| {
            let mut request = request.clone();
            if let Some(header) = self.settings.tells {
                header.tell(&attempt, request.headers_mut());
            }
            let (limit, begun) = (attempt.time_limit(), clock.now());
            let left = move || Some(limit?.saturating_sub(clock.now().saturating_since(begun)));
            self.send(request, left)
        };
        match operation.run_async_with(classify, send).await {
            Ok(response) => Ok(response),
            Err(stopped) => match stopped.into_error() {
                Ok(Unwell::Answered(_, response)) => Ok(response),
                Ok(Unwell::Failed(error)) => Err(error),
                Err(stop) => Err(refused(stop)),
            },
        }
    }
}

fn classify(unwell: &Unwell) -> Failure {
    match unwell {
        Unwell::Answered(failure, _) => *failure,
        Unwell::Failed(error) if error.kind() == ErrorKind::RateLimited => Failure::throttling(),
        Unwell::Failed(error) if error.is_temporary() => Failure::transient(),
        Unwell::Failed(_) => Failure::not_retryable(),
    }
}

/// Nothing was sent, or an attempt was cut off.
fn refused(stop: Stop) -> Error {
    Error::new(ErrorKind::RateLimited, "paceline stopped the request")
        .with_operation("paceline")
        .set_source(stop)
        .set_temporary()
}
