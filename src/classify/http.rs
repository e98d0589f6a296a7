//! What answers over HTTP mean.

use http::{Response, response::Parts};

use super::{Classifier, HttpAnswer};
use crate::{Failure, RetrySafety, ServiceUnavailable};

/// Classifies answers over HTTP by their error code, else by their status.
///
/// | answer | failure |
/// |---|---|
/// | an error code of [`Failure::from_error_code`], whatever the status | as that says |
/// | status 400 and above, with another code or none | as [`Failure::from_http_status`] says, and 504 is a timeout |
/// | any other | unknown: it is no failure |
///
/// To what is retryable the hint is added that [`HttpAnswer::retry_after`] finds. A hint makes nothing
/// retryable, and one that means nothing is as good as none. Transient failures of status 408
/// or 504 are timeouts, whatever their code.
///
/// It is a classifier of [`HttpAnswer`], which may know a body, and of `http`'s `Response` and `Parts`.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "http")] {
/// use std::time::Duration;
/// use http::Response;
/// use paceline::{Classifier, Failure, HttpResponses, RetryAfter, RetryStrategyExt, Standard};
///
/// let http = HttpResponses::new();
/// let response = |status| Response::builder().status(status).header("retry-after", "2").body(());
/// let slow_down = http.classify(&response(429).unwrap()).unwrap();
/// assert!(slow_down.is_throttle());
/// assert_eq!(slow_down.retry_after(), Some(RetryAfter::Floor(Duration::from_secs(2))));
///
/// let classify = |response: &Response<()>| http.classify(response).unwrap_or(Failure::not_retryable());
/// let stopped = Standard::new()
///     .run_with(classify, |_| Err::<(), _>(response(404).unwrap()))
///     .unwrap_err();
/// assert_eq!(stopped.attempts(), 1);
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HttpResponses {
    unavailable: ServiceUnavailable,
}

impl HttpResponses {
    /// Creates the classifier for which a bare 503 is transient.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            unavailable: ServiceUnavailable::Transient,
        }
    }

    /// Says what a bare 503 means.
    #[must_use]
    pub const fn with_unavailable(self, unavailable: ServiceUnavailable) -> Self {
        Self { unavailable }
    }
}

impl Classifier<HttpAnswer<'_>> for HttpResponses {
    fn classify(&self, answer: &HttpAnswer<'_>) -> Option<Failure> {
        let status = answer.status().as_u16();
        let failure = match answer.code().and_then(Failure::from_error_code) {
            Some(failure) => failure.with_fault(answer.fault()),
            None if status >= 400 => Failure::from_http_status(status, self.unavailable),
            None => return None,
        };
        if failure.retry_safety() != RetrySafety::Yes {
            return Some(failure);
        }
        let late = matches!(status, 408 | 504) && !failure.is_throttle();
        let failure = failure.with_timeout(late);
        let hint = answer.retry_after();
        Some(hint.map_or(failure, |hint| failure.with_retry_after(hint)))
    }
}

impl<B> Classifier<Response<B>> for HttpResponses {
    fn classify(&self, response: &Response<B>) -> Option<Failure> {
        self.classify(&HttpAnswer::of(response))
    }
}

impl Classifier<Parts> for HttpResponses {
    fn classify(&self, parts: &Parts) -> Option<Failure> {
        self.classify(&HttpAnswer::new(parts.status, &parts.headers))
    }
}
