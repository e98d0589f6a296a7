//! Requests that can be sent again.

use core::time::Duration;

use paceline::{
    Class, Idempotency,
    headers::AttemptHeader,
    operation::{Attempt, OuterAttempt},
    set::Weights,
};

/// Makes the requests of an operation's attempts from the caller's request.
///
/// [`Clones`] clones the request. `HttpRequests` also clones it, and knows which methods may be
/// repeated. `Buffered` is for bodies that cannot be cloned.
///
/// # Examples
///
/// Only queries are sent again:
///
/// ```
/// use paceline::Idempotency;
/// use paceline_tower::Replay;
///
/// #[derive(Clone, Debug)]
/// enum Request {
///     Query(u32),
///     Order(u32),
/// }
///
/// #[derive(Clone, Debug)]
/// struct Queries;
///
/// impl Replay<Request> for Queries {
///     type Sent = Request;
///     fn sendable(&self, request: Request) -> Request {
///         request
///     }
///     fn copy(&self, request: &Request) -> Option<Request> {
///         matches!(request, Request::Query(_)).then(|| request.clone())
///     }
///     fn idempotency(&self, _: &Request) -> Idempotency {
///         Idempotency::Idempotent
///     }
/// }
/// ```
pub trait Replay<Req> {
    /// The requests that the service in the layer gets.
    type Sent;

    /// Turns the caller's request into the request that is sent.
    fn sendable(&self, request: Req) -> Self::Sent;

    /// Returns a copy for another attempt. `None` means that there is only one attempt.
    fn copy(&self, request: &Self::Sent) -> Option<Self::Sent>;

    /// Returns whether `request` may be carried out twice.
    fn idempotency(&self, request: &Self::Sent) -> Idempotency;

    /// Returns how many tokens of each send rate `request` takes, for a strategy with
    /// [several](paceline::config::StrategyBuilder::also). The default is `None`, which takes one
    /// of each.
    fn weights(&self, request: &Self::Sent) -> Option<Weights> {
        let _ = request;
        None
    }

    /// Returns the time that `request` itself allows for all its attempts and waits, as the header
    /// `grpc-timeout` does. The sooner of it and
    /// [`RetryLayer::deadline`](crate::RetryLayer::deadline) counts. `None` by default.
    fn deadline(&self, request: &Self::Sent) -> Option<Duration> {
        let _ = request;
        None
    }

    /// Sets how much time is left for an attempt. Does nothing by default.
    fn set_time_left(&self, request: &mut Self::Sent, left: Duration) {
        let _ = (request, left);
    }

    /// Returns the class of `request`, foreground by default.
    fn class(&self, request: &Self::Sent) -> Class {
        let _ = request;
        Class::Foreground
    }

    /// Returns the attempt of an outer loop from the extensions of `request`, which is then sent
    /// once. The default is `None`. The outer attempt of the same task is found without this
    /// method.
    fn outer(&self, request: &Self::Sent) -> Option<OuterAttempt> {
        let _ = request;
        None
    }

    /// Puts the attempt into `request`, for the services inside and for loops in other tasks: see
    /// [`RetryLayer::mark_requests`](crate::RetryLayer::mark_requests). Does nothing by default.
    fn mark(&self, request: &mut Self::Sent, attempt: Attempt, outer: Option<OuterAttempt>) {
        let _ = (request, attempt, outer);
    }

    /// Adds the number of the attempt to `request`: see
    /// [`RetryLayer::tell_attempts`](crate::RetryLayer::tell_attempts). Does nothing by default.
    fn tell(&self, request: &mut Self::Sent, attempt: &Attempt, header: AttemptHeader) {
        let _ = (request, attempt, header);
    }
}

/// Clones requests of any type, and treats them as idempotent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clones;

impl<Req: Clone> Replay<Req> for Clones {
    type Sent = Req;

    fn sendable(&self, request: Req) -> Req {
        request
    }

    fn copy(&self, request: &Req) -> Option<Req> {
        Some(request.clone())
    }

    fn idempotency(&self, _request: &Req) -> Idempotency {
        Idempotency::Idempotent
    }
}
