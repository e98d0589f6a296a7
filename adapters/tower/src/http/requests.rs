//! Requests over HTTP whose bodies can be cloned.

use http::Request;
use paceline::{Idempotency, set::Weights};

use crate::Replay;

/// Clones requests over HTTP. [`Idempotency::of_request`] decides which of them may be carried out
/// twice: a POST without a key may not. [`Weights`] among the extensions of a request are those of
/// its attempts.
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

    fn weights(&self, request: &Request<B>) -> Option<Weights> {
        request.extensions().get().copied()
    }
}
