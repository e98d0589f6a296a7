//! The transport in which requests wait for their turn, and are sent again.

use alloc::{boxed::Box, sync::Arc};
use core::{iter, mem, task::Context, time::Duration};

use futures_util::{Stream, StreamExt as _, stream};
use http::{Request, Response};
use opendal_core::{Buffer, Error, ErrorKind, Result};
use paceline::{
    Execution, Failure, Idempotency, Operation,
    classify::{
        BodyBeginning, BodyEnd, HttpResponseParts, IoErrorClassifier, is_conditional, may_fail_late,
    },
    operation::{Attempt, Stop},
    wait::DefaultSleep,
};

use crate::{
    batches::{Batch, wants_more},
    capacity::capacity,
    host::{HttpBody, HttpTransport, HttpTransporter},
    layer::Settings,
};

pub(crate) struct Paced {
    pub(crate) settings: Arc<Settings>,
    pub(crate) inner: HttpTransporter,
}

/// The result of an attempt that did not succeed.
enum Unwell {
    Answered(Failure, Response<HttpBody>),
    Failed(Error),
}

impl Paced {
    async fn send(
        &self,
        request: Request<Buffer>,
        batch: Option<Batch>,
        left: impl Fn() -> Option<Duration>,
    ) -> core::result::Result<Response<HttpBody>, Unwell> {
        let uri = request.uri();
        let may_fail_late = may_fail_late(request.method(), uri.query(), request.headers());
        let response = self.inner.fetch(request).await.map_err(Unwell::Failed)?;
        let answers = &*self.settings.answers;
        let parts = HttpResponseParts::of(&response);
        let is_late = (batch.is_some() || may_fail_late) && response.status().is_success();
        if !is_late && !answers.wants_body(&parts) {
            return match answers.classify(&parts) {
                None => Ok(response),
                Some(failure) => Err(Unwell::Answered(failure, response)),
            };
        }
        let (parts, body) = response.into_parts();
        let (mut beginning, body, mut rest) = read(body, left()).await;
        let batch = batch.filter(|_| is_late);
        while batch.is_some() && wants_more(&beginning) {
            let more = read_on(&mut rest, left()).await;
            beginning.bytes.extend(more.bytes);
            beginning.end = more.end;
        }
        let answer = HttpResponseParts::new(parts.status, &parts.headers);
        let part = batch.and_then(|batch| batch.classify(answers, answer, &beginning));
        match beginning.classify(answers, answer).or(part) {
            None => Ok(Response::from_parts(parts, joined(beginning, body, rest))),
            // The service reads which keys were refused, and sends these keys again.
            Some(failure) => {
                // The service reads the body of a refusal to its end, which may never come.
                let body = stream::iter([Ok(Buffer::from(beginning.bytes))]);
                let refusal = Response::from_parts(parts, HttpBody::new(body, None));
                Err(Unwell::Answered(failure, refusal))
            }
        }
    }
}

type Rest = Box<dyn Stream<Item = Result<Buffer>> + Send + Sync + Unpin>;

/// Reads the beginning of a body. Returns the beginning, the emptied body, and the rest.
async fn read(body: HttpBody, left: Option<Duration>) -> (BodyBeginning<Error>, HttpBody, Rest) {
    let mut rest: Rest = Box::new(stream::empty());
    let body = body.map_inner(|inner| mem::replace(&mut rest, inner));
    (read_on(&mut rest, left).await, body, rest)
}

/// Reads the beginning of the rest of a body.
async fn read_on(rest: &mut Rest, left: Option<Duration>) -> BodyBeginning<Error> {
    let poll_piece = |context: &mut Context<'_>| {
        let piece = rest.poll_next_unpin(context);
        piece.map(|piece| piece.map(|piece| Ok(piece?.to_bytes())))
    };
    BodyBeginning::read(DefaultSleep::new(), left, poll_piece).await
}

/// Returns the whole body of `beginning` and `rest`.
fn joined(beginning: BodyBeginning<Error>, body: HttpBody, rest: Rest) -> HttpBody {
    let read = iter::once(Ok(Buffer::from(beginning.bytes)));
    let read = match beginning.end {
        BodyEnd::Failed(error) => stream::iter(read.chain(Some(Err(error)))),
        _ => stream::iter(read.chain(None)),
    };
    body.map_inner(|_| Box::new(read.chain(rest)))
}

impl HttpTransport for Paced {
    async fn fetch(&self, request: Request<Buffer>) -> Result<Response<HttpBody>> {
        let strategy = self.settings.strategy(&request);
        let query = request.uri().query();
        let body = request.body().to_bytes();
        let batch = Batch::of(request.method().as_str(), query, &body);
        let clock = strategy.clock();
        let send = |attempt: Attempt| {
            let mut request = request.clone();
            if let Some(header) = self.settings.tells {
                header.tell(&attempt, request.headers_mut());
            }
            let (limit, begun) = (attempt.time_limit(), clock.now());
            let left = move || Some(limit?.saturating_sub(clock.now().saturating_since(begun)));
            self.send(request, batch, left)
        };
        let mut tokens = batch.map_or(1, |batch| batch.keys);
        loop {
            let operation = Operation::new(&*strategy).idempotency(idempotency(&request));
            let operation = self.settings.bounds.apply(operation).weight(tokens);
            let operation = operation.inside(request.extensions().get().copied());
            let stopped = match operation.run_async_with(classify, send).await {
                Ok(response) => return Ok(response),
                Err(stopped) => stopped,
            };
            if let Some(less) = capacity(stopped.stop()) {
                tokens = less;
                continue;
            }
            return match stopped.into_error() {
                Ok(Unwell::Answered(_, response)) => Ok(response),
                Ok(Unwell::Failed(error)) => Err(error),
                Err(stop) => Err(refused(stop)),
            };
        }
    }
}

/// Returns whether `request` may be repeated if no answer came. `RetryLayer` repeats every request.
/// With a condition, the request's own write would look like another client's.
fn idempotency(request: &Request<Buffer>) -> Idempotency {
    if !request.method().is_safe() && is_conditional(request.uri().query(), request.headers()) {
        Idempotency::NotIdempotent
    } else {
        Idempotency::Idempotent
    }
}

/// Counts every answered request as not carried out, so that it is repeated as by `RetryLayer`.
fn classify(unwell: &Unwell) -> Failure {
    match unwell {
        Unwell::Answered(failure, _) => failure.with_execution(Execution::Rejected),
        Unwell::Failed(error) if error.kind() == ErrorKind::RateLimited => Failure::throttling(),
        Unwell::Failed(error) if error.is_temporary() => {
            let known = IoErrorClassifier.classify_causes(error);
            let execution = known.map_or(Execution::Maybe, |failure| failure.execution());
            Failure::transient().with_execution(execution)
        }
        Unwell::Failed(_) => Failure::not_retryable(),
    }
}

/// Returns the error that nothing was sent, or that an attempt was cut off.
fn refused(stop: Stop) -> Error {
    Error::new(ErrorKind::RateLimited, "paceline stopped the request")
        .with_operation("paceline")
        .set_source(stop)
        .set_temporary()
}
