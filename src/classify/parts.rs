//! A response over HTTP, as the classifiers see it.

use core::{fmt, time::Duration};

use http::{HeaderMap, Response, StatusCode, header};

use super::body::bare_code;
use crate::{
    Fault, RetryAfter,
    clock::wall_time,
    headers::{age, date},
};

/// What the classifiers know of a response: its status, its headers, and its error code.
///
/// The parts come from a response of the crate `http`, or of any client with its status and
/// headers.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "http")] {
/// use paceline::classify::{Classifier, HttpClassifier, HttpResponseParts, aws_error_code};
///
/// // CopyObject of S3 sends status 200 before it knows how it ends.
/// let response = http::Response::new(&b"<Error><Code>SlowDown</Code></Error>"[..]);
/// let answer = HttpResponseParts::of(&response).with_body(response.body(), aws_error_code);
/// assert_eq!(answer.code(), Some("SlowDown"));
/// assert!(HttpClassifier::new().classify(&answer).unwrap().is_throttle());
/// # }
/// ```
#[derive(Clone, Copy)]
#[must_use]
pub struct HttpResponseParts<'a> {
    status: StatusCode,
    headers: &'a HeaderMap,
    code: Option<&'a str>,
    refusal: Option<&'a [u8]>,
    local_time: Option<Duration>,
}

impl<'a> HttpResponseParts<'a> {
    /// Creates the parts from a status and headers. The header `x-amzn-errortype` gives the error
    /// code, if it is there.
    pub fn new(status: StatusCode, headers: &'a HeaderMap) -> Self {
        let code = headers.get("x-amzn-errortype");
        Self {
            status,
            headers,
            code: code.and_then(|value| bare_code(value.as_bytes())),
            refusal: None,
            local_time: None,
        }
    }

    /// Creates the parts of a response without its body.
    pub fn of<B>(response: &'a Response<B>) -> Self {
        Self::new(response.status(), response.headers())
    }

    /// Adds the error code that `read` finds in the body, unless a header had a code.
    ///
    /// [`aws_error_code`](super::aws_error_code) can be `read`, and so can a closure. With status
    /// 200, a code that asks for a retry makes the response a failure. Do not pass a body that may
    /// hold arbitrary data.
    pub fn with_body(
        self,
        body: &'a (impl AsRef<[u8]> + ?Sized),
        read: impl FnOnce(&'a [u8]) -> Option<&'a str>,
    ) -> Self {
        Self {
            code: self.code.or_else(|| read(body.as_ref())),
            ..self
        }
    }

    /// Adds the body of a refusal, or its beginning, for classifiers that read it, such as
    /// [`RefusalClassifier`](super::RefusalClassifier).
    pub fn with_refusal(self, body: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self {
            refusal: Some(body.as_ref()),
            ..self
        }
    }

    /// Sets the local time of the response, since 1970-01-01 00:00 UTC. The middle between sending
    /// and receiving is the best estimate. Without this setting the system's clock is read when the
    /// time matters.
    pub fn with_local_time(self, time: Duration) -> Self {
        Self {
            local_time: Some(time),
            ..self
        }
    }

    /// Returns the status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the headers.
    #[must_use]
    pub const fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// Returns the error code.
    #[must_use]
    pub const fn code(&self) -> Option<&'a str> {
        self.code
    }

    /// Returns the body of a refusal, if the caller [added](Self::with_refusal) it.
    #[must_use]
    pub(super) const fn refusal(&self) -> Option<&'a [u8]> {
        self.refusal
    }

    /// Returns the service's hint: `x-amz-retry-after` if it is valid, else `Retry-After`.
    ///
    /// Dates count from the service's own time (see [`age`](Self::age)), or else from the local
    /// time. Of several headers with one name, the first counts.
    #[must_use]
    pub fn retry_after(&self) -> Option<RetryAfter> {
        let get = |name| self.headers.get(name);
        let amz = get("x-amz-retry-after").and_then(RetryAfter::parse_amz);
        amz.or_else(|| RetryAfter::parse_http(get("retry-after")?, self.now()))
    }

    /// Returns the header `Age`, or zero without a valid one. It is the time since the service made
    /// the response, or confirmed it to a cache.
    ///
    /// The service's clock now shows `Date` plus `Age` (RFC 9111, section 4.2.3). Dates in
    /// `Retry-After` count from this sum.
    #[must_use]
    pub fn age(&self) -> Duration {
        let value = self.headers.get(header::AGE);
        value.and_then(age).unwrap_or_default()
    }

    /// Returns the time since 1970 by the service's clock, or by the local clock without `Date`.
    pub(super) fn now(&self) -> Duration {
        let date = self.date().map(|date| date.saturating_add(self.age()));
        date.unwrap_or_else(|| self.local_time())
    }

    /// Returns the side at fault, by the status.
    pub(super) fn fault(&self) -> Fault {
        if self.status.is_client_error() {
            Fault::Client
        } else if self.status.is_server_error() {
            Fault::Server
        } else {
            Fault::Other
        }
    }

    fn date(&self) -> Option<Duration> {
        date(self.headers.get(header::DATE)?.as_bytes())
    }

    fn local_time(&self) -> Duration {
        self.local_time.unwrap_or_else(wall_time)
    }
}

/// Leaves the headers out, since they may be secret.
impl fmt::Debug for HttpResponseParts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponseParts")
            .field("status", &self.status)
            .field("code", &self.code)
            .field("local_time", &self.local_time)
            .finish_non_exhaustive()
    }
}
