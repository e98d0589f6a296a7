//! Requests over HTTP whose bodies can be cloned.

use core::time::Duration;

use http::Request;
use paceline::{
    Class, Idempotency,
    headers::AttemptHeader,
    operation::{Attempt, OuterAttempt},
    set::Weights,
};

use super::timeout;
use crate::Replay;

/// Clones requests over HTTP. [`Idempotency::of_request`] decides which of them may be carried out
/// twice: a POST without a key may not. [`Weights`] and a [`Class`] among the extensions of a
/// request are those of its attempts. The header `grpc-timeout` is the deadline of a request, and
/// is shortened to what is left.
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

    fn deadline(&self, request: &Self::Sent) -> Option<Duration> {
        timeout::read(request.headers())
    }

    fn set_time_left(&self, request: &mut Self::Sent, left: Duration) {
        timeout::shorten(request.headers_mut(), left);
    }

    fn class(&self, request: &Request<B>) -> Class {
        request.extensions().get().copied().unwrap_or_default()
    }

    fn outer(&self, request: &Self::Sent) -> Option<OuterAttempt> {
        request.extensions().get().copied()
    }

    fn mark(&self, request: &mut Self::Sent, outer: OuterAttempt) {
        request.extensions_mut().insert(outer);
    }

    fn tell(&self, request: &mut Self::Sent, attempt: &Attempt, header: AttemptHeader) {
        header.tell(attempt, request.headers_mut());
    }
}
