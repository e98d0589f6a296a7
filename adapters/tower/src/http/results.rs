//! What responses over HTTP mean.

use core::time::Duration;

use http::Response;
use paceline::{
    Failure,
    classify::{
        Classifier, HeaderLimits, HttpResponseParts, RefusalClassifier, ServiceUnavailable,
        graphql_limits, pause_after,
    },
    law::LimitReports,
    operation::Stop,
};

use super::bodies::Judged;
use crate::{
    Classify, Conclude,
    classify::{failure_of, succeeded},
};

/// Classifies responses over HTTP by [`RefusalClassifier`], and errors by [`failure_of`].
///
/// A layer [`ReadBodies`](crate::ReadBodies) below adds a classifier that reads bodies, which
/// decides before the table.
///
/// Without a retry, the caller gets any response as the service sent it. A success of a request
/// with [`Weights`](paceline::set::Weights) has an
/// [`AttemptCharge`](paceline::strategy::AttemptCharge) in its extensions, for a cost in the body.
/// A failed response that is not retried has a [`Stop`] in its extensions, with the reason and the
/// number of attempts.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpResults {
    responses: RefusalClassifier,
}

impl HttpResults {
    /// Creates the classifier. A bare 503 is [overload](ServiceUnavailable::Overloaded): the 503
    /// lowers the send rate, and a POST without an idempotency key is not sent again. With
    /// [`with_unavailable`](Self::with_unavailable)`(ServiceUnavailable::Transient)` a bare 503 is
    /// transient, as in the AWS SDKs.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            responses: RefusalClassifier::new(),
        }
    }

    /// Sets what a bare 503 means.
    #[must_use]
    pub const fn with_unavailable(self, unavailable: ServiceUnavailable) -> Self {
        Self {
            responses: self.responses.with_unavailable(unavailable),
        }
    }
}

impl Default for HttpResults {
    fn default() -> Self {
        Self::new()
    }
}

impl<B, E: 'static> Classify<Response<B>, E> for HttpResults {
    type Answer<O: Conclude> = Response<B>;

    fn classify(&self, result: Result<&Response<B>, &E>) -> Option<Failure> {
        match result {
            Ok(response) => {
                let judged = response.extensions().get::<Judged>();
                let judged = judged.and_then(|judged| judged.failure);
                judged.or_else(|| self.responses.classify(response))
            }
            Err(error) => Some(failure_of(error)),
        }
    }

    fn limits(&self, response: &Response<B>) -> LimitReports {
        let parts = HttpResponseParts::of(response);
        let mut limits = HeaderLimits::new().read(&parts);
        if let Some(Judged { read, .. }) = response.extensions().get() {
            for limit in graphql_limits(&parts.with_refusal(read)).iter() {
                limits.push(*limit);
            }
        }
        limits
    }

    fn pause(&self, response: &Response<B>) -> Option<Duration> {
        pause_after(&HttpResponseParts::of(response))
    }

    fn stopped(&self, mut response: Response<B>, stop: Stop) -> Response<B> {
        response.extensions_mut().insert(stop);
        response
    }

    fn answer<O: Conclude>(&self, response: Response<B>, outcome: Option<O>) -> Response<B> {
        let mut response = response;
        response.extensions_mut().remove::<Judged>();
        // The cost may stand in the body, which the caller reads.
        if let Some(charge) = outcome.as_ref().and_then(Conclude::charge) {
            response.extensions_mut().insert(charge);
        }
        succeeded(outcome);
        response
    }
}
