//! Requests over HTTP whose bodies can be cloned.

use http::Request;
use paceline::Idempotency;

use crate::Replay;

/// Clones requests over HTTP. [`Idempotency::of_request`] decides which of them may be carried out
/// twice: a POST without a key may not.
///
/// [`Weights`](paceline::set::Weights) and a [`Class`](paceline::Class) in the extensions of a
/// request apply to its attempts. The header `grpc-timeout` is the deadline of a request, and is
/// shortened to the time left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HttpRequests;

impl<B: Clone> Replay<Request<B>> for HttpRequests {
    type Sent = Request<B>;

    fn sendable(&self, request: Request<B>) -> Request<B> {
        request
    }

    fn copy(&self, request: &Request<B>) -> Option<Request<B>> {
        Some(request.clone())
    }

    fn idempotency(&self, request: &Request<B>) -> Idempotency {
        Idempotency::of_request(request)
    }

    of_the_head!();
}
