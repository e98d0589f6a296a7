//! Reading the beginning of a response's body, for a classifier that wants it.

use alloc::vec::Vec;
use core::{
    fmt,
    future::poll_fn,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderMap, Method};

use super::{Classifier, HttpResponseParts, MAX_REFUSAL_BODY};
use crate::{
    Failure, RetrySafety,
    wait::{Sleep, waiter::Waiter},
};

/// The beginning of a response's body, read for a classifier that [wants](Classifier::wants_body)
/// it. For adapters.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "tokio")] {
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use core::task::Poll;
/// use paceline::{
///     classify::{BodyBeginning, BodyEnd, HttpResponseParts, RefusalClassifier},
///     wait::DefaultSleep,
/// };
///
/// let response = http::Response::builder().status(429).body(()).unwrap();
/// let mut body = ["<Code>Slow", "Down</Code>"].into_iter();
/// let beginning = BodyBeginning::read(DefaultSleep::new(), None, |_cx| {
///     Poll::Ready(body.next().map(Ok::<_, std::io::Error>))
/// });
/// let beginning = beginning.await;
/// assert!(matches!(beginning.end, BodyEnd::Whole));
/// let parts = HttpResponseParts::of(&response);
/// assert!(beginning.classify(&RefusalClassifier::new(), parts).unwrap().is_throttle());
/// # }
/// # main() }
/// ```
pub struct BodyBeginning<E> {
    /// What was read.
    pub bytes: Vec<u8>,
    /// Why the reading ended.
    pub end: BodyEnd<E>,
}

/// Why the reading of a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyEnd<E> {
    /// The whole body was read.
    Whole,
    /// More than [`MAX_REFUSAL_BODY`] bytes were read.
    Long,
    /// The body failed.
    Failed(E),
    /// The time was up.
    Late,
}

impl<E> BodyBeginning<E> {
    /// Reads pieces from `poll_piece` until the body ends, fails, or exceeds [`MAX_REFUSAL_BODY`]
    /// bytes.
    ///
    /// `left` is the time that the attempt still has. Reading stops after 15/16 of `left`, since an
    /// attempt that times out loses the response's status. `sleep` makes the timer.
    pub async fn read<P: AsRef<[u8]>>(
        sleep: impl Sleep,
        left: Option<Duration>,
        mut poll_piece: impl FnMut(&mut Context<'_>) -> Poll<Option<Result<P, E>>>,
    ) -> Self {
        let mut bytes = Vec::new();
        let reading = async {
            while bytes.len() <= MAX_REFUSAL_BODY {
                match poll_fn(&mut poll_piece).await {
                    Some(Ok(piece)) => bytes.extend_from_slice(piece.as_ref()),
                    Some(Err(error)) => return BodyEnd::Failed(error),
                    None => return BodyEnd::Whole,
                }
            }
            BodyEnd::Long
        };
        let left = left.map(|left| left.saturating_sub(left.checked_div(16).unwrap_or_default()));
        let end = Waiter::new(sleep).cut_off(left, reading).await;
        let end = end.unwrap_or(BodyEnd::Late);
        Self { bytes, end }
    }

    /// Asks `answers` what the response `parts` with this body means.
    ///
    /// If the time was up before the body ended, the failure is not retried.
    pub fn classify<'a>(
        &'a self,
        answers: &(impl Classifier<HttpResponseParts<'a>> + ?Sized),
        parts: HttpResponseParts<'a>,
    ) -> Option<Failure> {
        let failure = answers.classify(&parts.with_refusal(&self.bytes))?;
        Some(match self.end {
            BodyEnd::Late => failure.with_retry_safety(RetrySafety::No),
            _ => failure,
        })
    }
}

/// Leaves the bytes out, since they may be secret.
impl<E: fmt::Debug> fmt::Debug for BodyBeginning<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyBeginning")
            .field("len", &self.bytes.len())
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

/// Returns `true` if the service may send status 200 first and report an error in the body. S3 does
/// so for `CopyObject`, `UploadPartCopy` and `CompleteMultipartUpload`. `query` is the query of the
/// URL.
///
/// Adapters read the body of such a success with [`BodyBeginning`].
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "http")] {
/// use http::Request;
/// use paceline::classify::may_fail_late;
///
/// let copy = Request::put("/b").header("x-amz-copy-source", "/bucket/a").body(()).unwrap();
/// assert!(may_fail_late(copy.method(), copy.uri().query(), copy.headers()));
/// let put = Request::put("/b").body(()).unwrap();
/// assert!(!may_fail_late(put.method(), put.uri().query(), put.headers()));
/// # }
/// ```
#[must_use]
pub fn may_fail_late(method: &Method, query: Option<&str>, headers: &HeaderMap) -> bool {
    let is_upload = |member: &str| member.starts_with("uploadId=");
    match *method {
        Method::PUT => headers.contains_key("x-amz-copy-source"),
        Method::POST => query.is_some_and(|query| query.split('&').any(is_upload)),
        _ => false,
    }
}
