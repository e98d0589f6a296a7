//! Bodies that can be sent only once, and the bodies of refusals.

use core::{
    error::Error,
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as _, Frame};
use paceline::{
    classify::{BodyBeginning, BodyEnd},
    wait::DefaultSleep,
};
use reqwest::{Body, Response, ResponseBuilderExt as _};

/// How a request is handled whose body is a stream, which can be sent only once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OneShotBody {
    /// The request is sent once, and its result is returned. If a response would have been retried,
    /// its extensions have a [`Stop`](paceline::operation::Stop) with the reason
    /// [`NotRepeatable`](paceline::operation::StopReason::NotRepeatable).
    #[default]
    SendOnce,
    /// The request is not sent. It fails at once with [`BodyNotRepeatable`].
    Refuse,
}

/// The error of [`OneShotBody::Refuse`]. The request was not sent, since its body is a stream.
///
/// [`downcast_ref`](reqwest_middleware::Error::Middleware) finds it in the request's error.
///
/// # Examples
///
/// ```
/// use paceline_reqwest::BodyNotRepeatable;
/// use reqwest_middleware::Error;
///
/// fn is_stream(error: &Error) -> bool {
///     matches!(error, Error::Middleware(inner) if inner.is::<BodyNotRepeatable>())
/// }
/// # assert!(!is_stream(&Error::middleware(std::fmt::Error)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BodyNotRepeatable;

impl fmt::Display for BodyNotRepeatable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the request was not sent, and could not be sent again: its body is a stream; give it \
             bytes to have it retried",
        )
    }
}

impl Error for BodyNotRepeatable {}

/// Reads the beginning of a response's body. Returns the beginning, and the response with the rest.
pub(crate) async fn read(
    response: Response,
    left: Option<Duration>,
) -> (BodyBeginning<reqwest::Error>, Unread) {
    let mut rest = Body::default();
    let head = with_body(response, |body| mem::replace(&mut rest, body));
    let poll_piece = |context: &mut Context<'_>| {
        let frame = Pin::new(&mut rest).poll_frame(context);
        frame.map(|frame| frame.map(|frame| Ok(frame?.into_data().unwrap_or_default())))
    };
    let beginning = BodyBeginning::read(DefaultSleep::new(), left, poll_piece).await;
    (beginning, Unread { head, rest })
}

/// A response, and the unread rest of its body.
pub(crate) struct Unread {
    pub(crate) head: Response,
    rest: Body,
}

impl Unread {
    /// Returns the response as it was, and whether its whole body was read. A whole response holds
    /// no connection.
    pub(crate) fn after(self, beginning: BodyBeginning<reqwest::Error>) -> (Response, bool) {
        let (read, rest) = (Bytes::from(beginning.bytes), self.rest);
        let (body, is_whole) = match beginning.end {
            BodyEnd::Whole => (Body::from(read), true),
            BodyEnd::Failed(error) => (
                Body::wrap(Begun {
                    read,
                    failed: Some(error),
                    rest,
                }),
                false,
            ),
            _ => (
                Body::wrap(Begun {
                    read,
                    failed: None,
                    rest,
                }),
                false,
            ),
        };
        (with_body(self.head, |_| body), is_whole)
    }
}

/// Returns `response` with the body that `replace` returns.
pub(crate) fn with_body(response: Response, replace: impl FnOnce(Body) -> Body) -> Response {
    let url = response.url().clone();
    let (parts, body) = http::Response::<Body>::from(response).into_parts();
    let mut replaced = http::Response::builder()
        .status(parts.status)
        .version(parts.version)
        .url(url)
        .body(replace(body))
        .unwrap_or_default();
    *replaced.headers_mut() = parts.headers;
    replaced.extensions_mut().extend(parts.extensions);
    Response::from(replaced)
}

/// A body whose beginning was read.
struct Begun {
    read: Bytes,
    failed: Option<reqwest::Error>,
    rest: Body,
}

impl http_body::Body for Begun {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if !self.read.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(mem::take(&mut self.read)))));
        }
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Some(Err(error.into())));
        }
        let frame = core::task::ready!(Pin::new(&mut self.rest).poll_frame(context));
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }
}
