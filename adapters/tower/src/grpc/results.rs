//! What responses of gRPC mean.

use alloc::string::{String, ToString as _};
use core::fmt::{self, Write as _};

use http::{HeaderMap, HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use paceline::{
    Failure,
    classify::{Classifier, RefusalClassifier},
    operation::Stop,
};

use super::{
    body::GrpcBody,
    status::{DEADLINE_EXCEEDED, STATUS, UNAVAILABLE, bit, code, failure},
};
use crate::{BoxError, Classify, Conclude, Refused, classify::failure_of};

/// Classifies responses of gRPC by their status code, and errors by [`failure_of`].
///
/// | code | failure |
/// |---|---|
/// | `RESOURCE_EXHAUSTED` | as [`RefusalClassifier`] says of a 429 with its message: throttling, unless no wait can mend it |
/// | `UNAVAILABLE`, and what [`retrying`](Self::retrying) adds | transient |
/// | any other but `OK` | not retryable; `DEADLINE_EXCEEDED` is a timeout |
/// | none, with another HTTP status than 200 | as [`RefusalClassifier`] says: it is a proxy's answer |
///
/// `grpc-retry-pushback-ms` says when to come back. A negative number, or text, forbids a retry.
/// Without this header the delay of a `google.rpc.RetryInfo` in the status's details counts. A
/// delay does not make a failure retryable.
///
/// A request that a layer ends without an answer is answered `DEADLINE_EXCEEDED` if time was up,
/// else `UNAVAILABLE`, with the [`Refused`] in the response's extensions.
///
/// A response without messages has the code in its headers, and can be retried. All other responses
/// have the code in their trailers. Such a response has begun and goes to the caller ("gRPC Retry
/// Design", A6). Its [`GrpcBody`] reports the code when it comes, so that throttling in trailers
/// counts too.
///
/// # Examples
///
/// ```
/// use http::Response;
/// use paceline::Failure;
/// use paceline_tower::{BoxError, Classify, GrpcResults};
///
/// let response = |code| Response::builder().header("grpc-status", code).body(()).unwrap();
/// let classify = |code| GrpcResults::new().classify(Ok::<_, &BoxError>(&response(code)));
/// assert!(classify("8").unwrap().is_throttle());
/// assert_eq!(classify("14"), Some(Failure::transient()));
/// assert_eq!(classify("0"), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GrpcResults {
    /// A bit for each code.
    retryable: u32,
}

impl GrpcResults {
    /// Creates the classifier. `UNAVAILABLE` is transient.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            retryable: bit(UNAVAILABLE),
        }
    }

    /// Makes another code transient, such as 10 (`ABORTED`). `OK` stays a success, and numbers
    /// above 16 are no codes.
    #[must_use]
    pub const fn retrying(self, code: u32) -> Self {
        Self {
            retryable: self.retryable | bit(code),
        }
    }

    /// Returns the failure in the trailers of a response.
    pub(super) fn trailers(self, trailers: &HeaderMap) -> Option<Failure> {
        match code(trailers) {
            Some(code) => failure(code, trailers, self.retryable),
            None => Some(Failure::not_retryable()),
        }
    }
}

/// Shows the transient codes.
impl fmt::Debug for GrpcResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let codes = (0..u32::BITS).filter(|code| self.retryable & bit(*code) != 0);
        f.write_str("GrpcResults(")?;
        f.debug_list().entries(codes).finish()?;
        f.write_str(")")
    }
}

impl Default for GrpcResults {
    fn default() -> Self {
        Self::new()
    }
}

impl<B, E: 'static> Classify<Response<B>, E> for GrpcResults {
    type Answer<O: Conclude> = Response<GrpcBody<B, O>>;

    fn classify(&self, result: Result<&Response<B>, &E>) -> Option<Failure> {
        let response = match result {
            Ok(response) => response,
            Err(error) => return Some(failure_of(error)),
        };
        if response.extensions().get::<Refused>().is_some() {
            return Some(Failure::not_retryable()); // by a layer below
        }
        let headers = response.headers();
        match code(headers) {
            Some(code) => failure(code, headers, self.retryable),
            None if response.status() == StatusCode::OK => None,
            None => RefusalClassifier::new().classify(response),
        }
    }

    fn stopped(&self, mut response: Response<B>, stop: Stop) -> Response<B> {
        response.extensions_mut().insert(stop);
        response
    }

    fn refused<O: Conclude>(&self, refused: Refused) -> Result<Self::Answer<O>, BoxError> {
        let mut response = Response::new(GrpcBody::none(*self));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        let code = if refused.is_deadline() {
            DEADLINE_EXCEEDED
        } else {
            UNAVAILABLE
        };
        headers.insert(STATUS, HeaderValue::from(code));
        if let Ok(message) = HeaderValue::try_from(percent_encoded(&refused.to_string())) {
            headers.insert("grpc-message", message);
        }
        response.extensions_mut().insert(refused);
        Ok(response)
    }

    fn answer<O: Conclude>(&self, response: Response<B>, outcome: Option<O>) -> Self::Answer<O> {
        let mut outcome = outcome;
        if response.headers().contains_key(STATUS) {
            crate::classify::succeeded(outcome.take());
        }
        response.map(|body| GrpcBody::new(body, outcome, *self))
    }
}

/// Returns a message as gRPC encodes it: bytes that are not printable ASCII, and percent signs,
/// become `%` and two digits. The name of a scope may contain any bytes.
fn percent_encoded(message: &str) -> String {
    let mut encoded = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b'%' | ..b' ' | 0x7f.. => {
                let _never_fails = write!(encoded, "%{byte:02X}");
            }
            _ => encoded.push(byte.into()),
        }
    }
    encoded
}
