//! Bodies that can be sent only once, and the bodies of refusals.

use core::{
    error::Error,
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use paceline::{classify::MAX_REFUSAL_BODY, operation::Waiter, wait::DefaultSleep};
use reqwest::{Body, Response, ResponseBuilderExt as _};

/// How a request is handled whose body is a stream, which can be sent only once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OneShotBody {
    /// It is sent once, and whatever comes of it is returned. The extensions of a response that
    /// would have been retried have a [`Stop`](paceline::operation::Stop) with the reason
    /// [`NotRepeatable`](paceline::operation::StopReason::NotRepeatable).
    #[default]
    SendOnce,
    /// It is not sent: the error is [`BodyNotRepeatable`] at once.
    Refuse,
}

/// A request was not sent because its body is a stream, which could not be sent again:
/// [`OneShotBody::Refuse`].
///
/// Found by [`downcast_ref`](reqwest_middleware::Error::Middleware) in the error of the request.
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

/// Reads the body of a refusal, up to [`MAX_REFUSAL_BODY`] bytes, for as long as `limit`. Returns
/// the response as it was, with what was read, and whether that is all of it: then it holds no
/// connection. The last says whether the time was up.
pub(crate) async fn read(
    mut response: Response,
    limit: Option<Duration>,
) -> (Response, Bytes, bool, bool) {
    let mut read = BytesMut::new();
    let reading = async {
        while read.len() <= MAX_REFUSAL_BODY {
            match response.chunk().await {
                Ok(Some(chunk)) => read.extend_from_slice(&chunk),
                Ok(None) => return Some(None),
                Err(error) => return Some(Some(error)),
            }
        }
        None
    };
    let mut waiter = Waiter::new(DefaultSleep::new());
    let end = waiter.cut_off(limit, reading).await;
    let (is_cut, end) = (end.is_none(), end.flatten());
    let read = read.freeze();
    let is_whole = matches!(end, Some(None));
    let whole = with_body(response, |rest| {
        if is_whole {
            return Body::from(read.clone());
        }
        Body::wrap(Begun {
            read: read.clone(),
            failed: end.flatten(),
            rest,
        })
    });
    (whole, read, is_whole, is_cut)
}

/// Returns `response` with what `replace` makes of its body.
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

/// A body of which the beginning was read.
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
            return Poll::Ready(Some(Ok(Frame::data(core::mem::take(&mut self.read)))));
        }
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Some(Err(error.into())));
        }
        let frame = core::task::ready!(Pin::new(&mut self.rest).poll_frame(context));
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }
}
