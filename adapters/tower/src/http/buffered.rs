//! Bodies that cannot be cloned, but are already complete.

use core::{
    fmt, mem,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request};
use http_body::{Body, Frame, SizeHint};
use paceline::{Idempotency, classify::BodyEnd};

use crate::Replay;

/// Keeps bodies to send them again, if they are complete when the request is made, and within a
/// limit.
///
/// Bodies of gRPC's unary calls and bodies made from bytes are complete. Other bodies are passed on
/// as they come, and their requests are sent once. The service in the layer gets [`Replayed`]
/// bodies.
///
/// Calls of gRPC (`content-type: application/grpc`) may be carried out twice, although all of them
/// are POST. For other requests [`Idempotency::of_request`] decides. The header `grpc-timeout` is
/// the deadline of a request. It is shortened to the time left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffered {
    limit: usize,
}

impl Buffered {
    /// Keeps bodies of at most `limit` bytes.
    #[must_use]
    pub const fn up_to(limit: usize) -> Self {
        Self { limit }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Replay<Request<B>> for Buffered {
    type Sent = Request<Replayed<B>>;

    fn sendable(&self, request: Request<B>) -> Self::Sent {
        request.map(|body| Replayed::read(body, self.limit))
    }

    fn copy(&self, request: &Self::Sent) -> Option<Self::Sent> {
        let body = request.body().copy()?;
        let mut copy = Request::new(body);
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.version_mut() = request.version();
        *copy.headers_mut() = request.headers().clone();
        *copy.extensions_mut() = request.extensions().clone();
        Some(copy)
    }

    fn idempotency(&self, request: &Self::Sent) -> Idempotency {
        if is_grpc(request.headers()) {
            Idempotency::Idempotent
        } else {
            Idempotency::of_request(request)
        }
    }

    of_the_head!();
}

/// Returns `true` if these are the headers of a call of gRPC.
fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(http::header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// A body whose beginning was read by [`Buffered`] or [`ReadBodies`](super::ReadBodies).
pub struct Replayed<B: Body> {
    data: Bytes,
    trailers: Option<HeaderMap>,
    /// An error that came while the beginning was read.
    failed: Option<B::Error>,
    /// The rest of the body, if it was not complete.
    rest: Option<B>,
}

// Nothing in it is pinned, since the polled body is `Unpin`.
impl<B: Body> Unpin for Replayed<B> {}

/// Shows the length, not the contents.
impl<B: Body> fmt::Debug for Replayed<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replayed")
            .field("read", &self.data.len())
            .field("is_whole", &self.rest.is_none())
            .finish_non_exhaustive()
    }
}

impl<B: Body<Data = Bytes> + Unpin> Replayed<B> {
    /// Reads what can be read without a wait, and stops beyond `limit`.
    fn read(mut body: B, limit: usize) -> Self {
        let (mut first, mut more) = (Bytes::new(), BytesMut::new());
        let (mut trailers, mut failed) = (None, None);
        // The task that polls the rest brings its own waker.
        let mut context = Context::from_waker(Waker::noop());
        let length = body.size_hint().lower();
        let mut fits = usize::try_from(length).is_ok_and(|length| length <= limit);
        let whole = loop {
            if !fits || body.is_end_stream() || trailers.is_some() {
                break fits;
            }
            let frame = match Pin::new(&mut body).poll_frame(&mut context) {
                Poll::Pending => break false,
                Poll::Ready(None) => break true,
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(Some(Err(error))) => {
                    failed = Some(error);
                    break true;
                }
            };
            match frame.into_data() {
                Ok(data) if first.is_empty() => first = data,
                Ok(data) => more.extend_from_slice(&data),
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
            fits = first.len().saturating_add(more.len()) <= limit;
        };
        Self {
            data: joined(first, &more),
            trailers,
            failed,
            rest: (!whole).then_some(body),
        }
    }

    /// Returns a body as it was before `data` and `trailers` were read.
    pub(super) fn after(
        data: Bytes,
        end: BodyEnd<B::Error>,
        trailers: Option<HeaderMap>,
        rest: B,
    ) -> Self {
        let (is_whole, failed) = match end {
            BodyEnd::Failed(error) => (true, Some(error)),
            end => (matches!(end, BodyEnd::Whole), None),
        };
        Self {
            data,
            trailers,
            failed,
            rest: (!is_whole).then_some(rest),
        }
    }

    /// Returns a copy, if the body is complete.
    fn copy(&self) -> Option<Self> {
        (self.rest.is_none() && self.failed.is_none()).then(|| Self {
            data: self.data.clone(),
            trailers: self.trailers.clone(),
            failed: None,
            rest: None,
        })
    }
}

/// Joins the pieces. Most bodies are one piece, which is not copied.
fn joined(first: Bytes, more: &[u8]) -> Bytes {
    if more.is_empty() {
        return first;
    }
    let mut joined = BytesMut::with_capacity(first.len().saturating_add(more.len()));
    joined.extend_from_slice(&first);
    joined.extend_from_slice(more);
    joined.freeze()
}

impl<B: Body<Data = Bytes> + Unpin> Body for Replayed<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if !self.data.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(mem::take(&mut self.data)))));
        }
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Some(Err(error)));
        }
        if let Some(rest) = &mut self.rest {
            return Pin::new(rest).poll_frame(context);
        }
        let trailers = self.trailers.take();
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        let rest_ended = self.rest.as_ref().is_none_or(Body::is_end_stream);
        self.data.is_empty() && self.failed.is_none() && self.trailers.is_none() && rest_ended
    }

    fn size_hint(&self) -> SizeHint {
        let read = u64::try_from(self.data.len()).unwrap_or(u64::MAX);
        let rest = match (&self.rest, &self.failed) {
            (Some(rest), _) => rest.size_hint(),
            // With a known length the body would not be read to its error.
            (None, Some(_)) => SizeHint::new(),
            (None, None) => return SizeHint::with_exact(read),
        };
        let mut hint = SizeHint::new();
        if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(read)) {
            hint.set_upper(upper);
        }
        hint.set_lower(rest.lower().saturating_add(read));
        hint
    }
}
