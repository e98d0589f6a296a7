//! The body of a response, whose trailers have the outcome.

use core::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http_body::{Body, Frame, SizeHint};
use paceline::Failure;
use pin_project_lite::pin_project;

use super::results::GrpcResults;
use crate::{Conclude, classify::failure_of};

pin_project! {
    /// The body of a response that reports the status in its trailers: see [`GrpcResults`].
    ///
    /// A body that breaks off, or has no status at its end, reports a failure. A body that is
    /// dropped before its end reports nothing.
    pub struct GrpcBody<B, O> {
        // `None` if no service answered.
        #[pin]
        body: Option<B>,
        // `Some` until the outcome is known.
        outcome: Option<O>,
        results: GrpcResults,
    }
}

impl<B, O> GrpcBody<B, O> {
    pub(super) const fn new(body: B, outcome: Option<O>, results: GrpcResults) -> Self {
        Self {
            body: Some(body),
            outcome,
            results,
        }
    }

    /// Creates the body of a response that no service gave.
    pub(super) const fn none(results: GrpcResults) -> Self {
        Self {
            body: None,
            outcome: None,
            results,
        }
    }
}

impl<B: Body, O: Conclude> Body for GrpcBody<B, O>
where
    B::Error: 'static,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let Some(body) = this.body.as_pin_mut() else {
            return Poll::Ready(None);
        };
        let frame = ready!(body.poll_frame(context));
        let failure = match &frame {
            Some(Ok(data)) if data.is_data() => return Poll::Ready(frame),
            Some(Ok(last)) => match last.trailers_ref() {
                Some(trailers) => this.results.trailers(trailers),
                None => return Poll::Ready(frame),
            },
            Some(Err(error)) => Some(failure_of(error)),
            None => Some(Failure::not_retryable()),
        };
        if let Some(outcome) = this.outcome.take() {
            outcome.conclude(failure.as_ref());
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Some(body) => body.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}

impl<B: fmt::Debug, O> fmt::Debug for GrpcBody<B, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcBody")
            .field("body", &self.body)
            .field("concluded", &self.outcome.is_none())
            .finish_non_exhaustive()
    }
}
