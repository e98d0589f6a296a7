//! Requests that can be sent again.

use core::time::Duration;

use paceline::{
    Class, Idempotency,
    headers::AttemptHeader,
    operation::{Attempt, OuterAttempt},
    set::Weights,
};

/// Makes the requests of an operation's attempts out of the one that the caller made.
///
/// [`Clones`] clones it; `HttpRequests` does too, and knows which methods may be repeated;
/// `Buffered` is for bodies that cannot be cloned.
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
    /// What the service in the layer is sent.
    type Sent;

    /// Turns the caller's request into what is sent.
    fn sendable(&self, request: Req) -> Self::Sent;

    /// Returns a copy for another attempt, or `None` if there can be none: then there is one
    /// attempt.
    fn copy(&self, request: &Self::Sent) -> Option<Self::Sent>;

    /// Returns whether `request` may be carried out twice.
    fn idempotency(&self, request: &Self::Sent) -> Idempotency;

    /// Returns how many tokens of each send rate `request` takes, for a strategy with
    /// [several](paceline::config::StrategyBuilder::also). `None` by default: one of each.
    fn weights(&self, request: &Self::Sent) -> Option<Weights> {
        let _ = request;
        None
    }

    /// Returns the time that `request` itself allows for all its attempts and waits, as the header
    /// `grpc-timeout` does. It counts beside [`RetryLayer::deadline`](crate::RetryLayer::deadline).
    /// `None` by default.
    fn deadline(&self, request: &Self::Sent) -> Option<Duration> {
        let _ = request;
        None
    }

    /// Sets how much time is left for an attempt. Does nothing by default.
    fn set_time_left(&self, request: &mut Self::Sent, left: Duration) {
        let _ = (request, left);
    }

    /// Returns whether something waits for `request`: foreground by default.
    fn class(&self, request: &Self::Sent) -> Class {
        let _ = request;
        Class::Foreground
    }

    /// Returns the attempt of an outer loop that `request` carries among its extensions: then it is
    /// sent once. `None` by default; the attempt that the task itself is inside of is found without
    /// it.
    fn outer(&self, request: &Self::Sent) -> Option<OuterAttempt> {
        let _ = request;
        None
    }

    /// Lets `request` carry its attempt to the services inside, and to loops that run in other
    /// tasks: see
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

/// Clones requests of any type, and takes them for idempotent.
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
