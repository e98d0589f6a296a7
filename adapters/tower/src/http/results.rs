//! What responses over HTTP mean.

use http::Response;
use paceline::{Classifier, Failure, HttpResponses, ServiceUnavailable};

use crate::{
    Classify, Settle,
    classify::{failure_of, succeeded},
};

/// Classifies responses over HTTP by [`HttpResponses`], and errors by [`failure_of`].
///
/// A response is an answer, whatever it says: when there is no retry, the caller gets it as from the service itself.
///
/// # Examples
///
/// ```
/// use http::Response;
/// use paceline_tower::{BoxError, Classify, HttpResults};
///
/// let slow_down = Response::builder().status(429).header("retry-after", "2").body(()).unwrap();
/// let result: Result<_, &BoxError> = Ok(&slow_down);
/// assert!(HttpResults::new().classify(result).unwrap().is_throttle());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HttpResults {
    responses: HttpResponses,
}

impl HttpResults {
    /// Creates the classifier for which a bare 503 is transient.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            responses: HttpResponses::new(),
        }
    }

    /// Says what a bare 503 means.
    #[must_use]
    pub const fn with_unavailable(self, unavailable: ServiceUnavailable) -> Self {
        Self {
            responses: self.responses.with_unavailable(unavailable),
        }
    }
}

impl<B, E: 'static> Classify<Response<B>, E> for HttpResults {
    type Answer<O: Settle> = Response<B>;

    fn classify(&self, result: Result<&Response<B>, &E>) -> Option<Failure> {
        match result {
            Ok(response) => self.responses.classify(response),
            Err(error) => Some(failure_of(error)),
        }
    }

    fn answer<O: Settle>(&self, response: Response<B>, outcome: Option<O>) -> Response<B> {
        succeeded(outcome);
        response
    }
}
