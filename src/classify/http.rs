//! What responses over HTTP mean.

use http::Response;

use super::ServiceUnavailable;
use super::{Classifier, HttpResponseParts};
use crate::{Failure, RetrySafety};

/// Classifies responses over HTTP by their error code, else by their status.
///
/// | response | failure |
/// |---|---|
/// | an error code of [`Failure::from_error_code`], or one of the [service](Self::with_service), whatever the status | as that says |
/// | status 400 and above, with another code or none | as [`Failure::from_http_status`] says, and 504 is a timeout |
/// | any other | unknown: it is no failure |
///
/// A retryable failure gets the hint of [`HttpResponseParts::retry_after`]. A hint does not make a
/// failure retryable, and an invalid hint is ignored. Transient failures of status 408 or 504 are
/// timeouts, whatever their code.
///
/// It classifies [`HttpResponseParts`], which may have an error code from the body, and the
/// `Response` of `http`.
///
/// # Where SDKs differ
///
/// | | here | elsewhere |
/// |---|---|---|
/// | bare 429 | throttling | the same in botocore 1.44 and JavaScript; not retried in smithy-rs |
/// | 504 | timeout, as Smithy's guide allows: in generation 2.0 a retry costs 10 | 10 in smithy-rs, 5 in botocore |
/// | 500, 502, 503 | transient: in generation 2.0 a retry costs 5 | 5 in botocore, Go and Java; 10 in smithy-rs, JavaScript and Kotlin, where every transient error costs that |
/// | throttling | in generation 2.0 a retry costs 5 | 5 in all but Kotlin: 10 |
/// | 408 | transient, timeout | the same in smithy-python; its error code decides in botocore and smithy-rs |
/// | `Retry-After` | read | the same in JavaScript; only `x-amz-retry-after` in the other SDKs |
///
/// In generation 2.1 a retry costs 14, and 5 after throttling, here and in every SDK.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "http")] {
/// use std::time::Duration;
/// use http::Response;
/// use paceline::{
///     Failure, RetryAfter, RetryStrategyExt, Standard,
///     classify::{Classifier, HttpClassifier},
/// };
///
/// let http = HttpClassifier::new();
/// let response = |status| Response::builder().status(status).header("retry-after", "2").body(());
/// let slow_down = http.classify(&response(429).unwrap()).unwrap();
/// assert!(slow_down.is_throttle());
/// assert_eq!(slow_down.retry_after(), Some(RetryAfter::AtLeast(Duration::from_secs(2))));
///
/// let classify = |response: &Response<()>| http.classify(response).unwrap_or(Failure::not_retryable());
/// let stopped = Standard::new()
///     .run_with(classify, |_| Err::<(), _>(response(404).unwrap()))
///     .unwrap_err();
/// assert_eq!(stopped.attempts(), 1);
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HttpClassifier {
    unavailable: ServiceUnavailable,
    service: Option<&'static str>,
}

impl HttpClassifier {
    /// Creates the classifier for which a bare 503 is transient.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            unavailable: ServiceUnavailable::Transient,
            service: None,
        }
    }

    /// Sets what a bare 503 means.
    #[must_use]
    pub const fn with_unavailable(mut self, unavailable: ServiceUnavailable) -> Self {
        self.unavailable = unavailable;
        self
    }

    /// Sets the AWS service, which adds the error codes that only this service has. See
    /// [`Failure::from_service_error_code`].
    #[must_use]
    pub const fn with_service(mut self, service: &'static str) -> Self {
        self.service = Some(service);
        self
    }

    fn by_code(&self, code: &str) -> Option<Failure> {
        match self.service {
            Some(service) => Failure::from_service_error_code(service, code),
            None => Failure::from_error_code(code),
        }
    }
}

impl Classifier<HttpResponseParts<'_>> for HttpClassifier {
    fn classify(&self, parts: &HttpResponseParts<'_>) -> Option<Failure> {
        let status = parts.status().as_u16();
        let by_code = parts.code().and_then(|code| self.by_code(code));
        let failure = match by_code {
            Some(failure) => failure.with_fault(parts.fault()),
            None if status >= 400 => Failure::from_http_status(status, self.unavailable),
            None => return None,
        };
        if failure.retry_safety() != RetrySafety::Yes {
            return Some(failure);
        }
        let late = matches!(status, 408 | 504) && !failure.is_throttle();
        let failure = failure.with_timeout(late);
        let hint = parts.retry_after();
        Some(hint.map_or(failure, |hint| failure.with_retry_after(hint)))
    }
}

impl<B> Classifier<Response<B>> for HttpClassifier {
    fn classify(&self, response: &Response<B>) -> Option<Failure> {
        self.classify(&HttpResponseParts::of(response))
    }
}
