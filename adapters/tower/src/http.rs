//! HTTP: what responses mean, and which requests can be sent twice.

/// The methods of [`Replay`](crate::Replay) that need only the head of a request over HTTP.
macro_rules! of_the_head {
    () => {
        fn weights(&self, request: &Self::Sent) -> Option<paceline::set::Weights> {
            request.extensions().get().copied()
        }

        fn deadline(&self, request: &Self::Sent) -> Option<core::time::Duration> {
            crate::http::timeout::read(request.headers())
        }

        fn set_time_left(&self, request: &mut Self::Sent, left: core::time::Duration) {
            crate::http::timeout::shorten(request.headers_mut(), left);
        }

        fn class(&self, request: &Self::Sent) -> paceline::Class {
            request.extensions().get().copied().unwrap_or_default()
        }

        fn outer(&self, request: &Self::Sent) -> Option<paceline::operation::OuterAttempt> {
            request.extensions().get().copied()
        }

        fn mark(
            &self,
            request: &mut Self::Sent,
            attempt: paceline::operation::Attempt,
            outer: Option<paceline::operation::OuterAttempt>,
        ) {
            request.extensions_mut().insert(attempt);
            outer.map(|outer| request.extensions_mut().insert(outer));
        }

        fn tell(
            &self,
            request: &mut Self::Sent,
            attempt: &paceline::operation::Attempt,
            header: paceline::headers::AttemptHeader,
        ) {
            header.tell(attempt, request.headers_mut());
        }
    };
}

mod bodies;
mod buffered;
mod requests;
mod results;
mod timeout;

pub use bodies::{BodyReader, ReadBodies};
pub use buffered::{Buffered, Replayed};
pub use requests::HttpRequests;
pub use results::HttpResults;

use alloc::sync::Arc;

use paceline::{Adaptive, RetryStrategy, classify::ServiceUnavailable};

use crate::RetryLayer;

impl<S: RetryStrategy> RetryLayer<S, HttpResults, HttpRequests> {
    /// Creates the layer for clients of HTTP whose bodies can be cloned. Other clients add
    /// `.replay(Buffered::up_to(65_536))`.
    ///
    /// A request that may not be carried out twice is retried only if it was rejected: see
    /// [`Idempotency::of_request`].
    ///
    /// [`Idempotency::of_request`]: paceline::Idempotency::of_request
    pub fn http(strategy: S) -> Self {
        RetryLayer::shared(Arc::new(strategy), HttpResults::new()).replay(HttpRequests)
    }
}

impl RetryLayer<Adaptive, HttpResults, HttpRequests> {
    /// Creates the layer of [`http`](Self::http) with [`Adaptive::bulk`], for pipelines that may
    /// lose no request to throttling. A bare 503 is throttling, after which any request is sent
    /// again.
    ///
    /// For other settings build the strategy with
    /// [`bulk`](paceline::config::StrategyBuilder::bulk), and use
    /// [`HttpResults::with_unavailable`].
    #[must_use]
    pub fn bulk() -> Self {
        let results = HttpResults::new().with_unavailable(ServiceUnavailable::Throttle);
        RetryLayer::shared(Arc::new(Adaptive::bulk()), results).replay(HttpRequests)
    }
}
