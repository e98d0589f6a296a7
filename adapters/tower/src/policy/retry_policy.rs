//! A strategy as tower's policy.

use alloc::sync::Arc;
use core::{fmt, time::Duration};

use paceline::{
    Idempotency, RetryStrategy, RetryToken, operation::OuterAttempt, strategy::Reports,
};
use tokio::time::{Sleep, sleep};
use tower::retry::Policy;

use crate::{Classify, Clones, Replay};

/// A strategy as the policy of [`tower::retry::Retry`]: its quota and its backoff.
///
/// A policy is not asked before the first send, so no request waits for a turn here. Put
/// [`SendRateLayer`](crate::SendRateLayer) under it, or use [`RetryLayer`](crate::RetryLayer),
/// which retries and waits. Responses whose outcome comes at their end, as with gRPC, count as
/// successes when they begin.
///
/// Inside of an attempt of another loop of paceline, the policy leaves the retries to that loop. It
/// sets no mark for loops inside of the service. Switch these loops off, or use
/// [`RetryLayer`](crate::RetryLayer).
///
/// Clones share the strategy. Each operation has its own state, in the clone that tower makes
/// for it.
///
/// # Examples
///
/// ```
/// use paceline::{Failure, Standard};
/// use paceline_tower::{BoxError, RetryPolicy};
/// use tower::{ServiceBuilder, service_fn};
///
/// let classify = |result: Result<&u32, &BoxError>| result.err().map(|_| Failure::transient());
/// let service = ServiceBuilder::new()
///     .retry(RetryPolicy::new(Standard::new(), classify))
///     .service(service_fn(async |number: u32| Ok::<_, BoxError>(number)));
/// # fn is_service(_: impl tower::Service<u32>) {}
/// # is_service(service);
/// ```
pub struct RetryPolicy<S: ?Sized, C, K = Clones> {
    strategy: Arc<S>,
    classifier: C,
    replay: K,
    idempotency: Option<Idempotency>,
    max_retry_after: Option<Duration>,
    operation: Operation,
}

/// The operation that a policy is for.
#[derive(Debug)]
enum Operation {
    NotBegun,
    UnderWay(RetryToken),
    Ended,
}

impl<S: RetryStrategy, C> RetryPolicy<S, C> {
    /// Creates the policy for requests that can be cloned. `classifier` classifies the results.
    pub fn new(strategy: S, classifier: C) -> Self {
        Self::shared(Arc::new(strategy), classifier)
    }
}

impl<S: RetryStrategy + ?Sized, C> RetryPolicy<S, C> {
    /// Creates the policy of a shared strategy.
    pub const fn shared(strategy: Arc<S>, classifier: C) -> Self {
        Self {
            strategy,
            classifier,
            replay: Clones,
            idempotency: None,
            max_retry_after: None,
            operation: Operation::NotBegun,
        }
    }
}

impl<S: RetryStrategy + ?Sized, C, K> RetryPolicy<S, C, K> {
    /// Copies requests by `replay`, which must not change their type: `Clones`, `HttpRequests`, or
    /// the user's own.
    pub fn replay<L>(self, replay: L) -> RetryPolicy<S, C, L> {
        RetryPolicy {
            strategy: self.strategy,
            classifier: self.classifier,
            replay,
            idempotency: self.idempotency,
            max_retry_after: self.max_retry_after,
            operation: self.operation,
        }
    }

    /// Sets whether requests may be carried out twice, whatever [`Replay`] says.
    #[must_use]
    pub fn idempotency(mut self, idempotency: Idempotency) -> Self {
        self.idempotency = Some(idempotency);
        self
    }

    /// Accepts no longer wait than `span` from the service: 60 s by default. A service that asks
    /// for more gets no retry.
    #[must_use]
    pub const fn max_retry_after(mut self, span: Duration) -> Self {
        self.max_retry_after = Some(span);
        self
    }

    /// Takes out the token of the operation. The operation begins with the first answer.
    fn token(&mut self) -> Option<RetryToken> {
        match core::mem::replace(&mut self.operation, Operation::Ended) {
            Operation::NotBegun => self.strategy.acquire_initial_token(None).ok(),
            Operation::UnderWay(token) => Some(token),
            Operation::Ended => None,
        }
    }
}

impl<Req, Res, E, S, C, K> Policy<Req, Res, E> for RetryPolicy<S, C, K>
where
    S: RetryStrategy + ?Sized,
    C: Classify<Res, E>,
    K: Replay<Req, Sent = Req>,
{
    type Future = Sleep;

    fn retry(&mut self, request: &mut Req, result: &mut Result<Res, E>) -> Option<Sleep> {
        let token = self.token()?;
        let Some(failure) = self.classifier.classify(result.as_ref()) else {
            // A strategy that refuses its own token changes nothing about the success.
            let _recorded = self.strategy.record_success(token, Reports::new());
            return None;
        };
        let known = self.idempotency;
        let idempotency = known.unwrap_or_else(|| self.replay.idempotency(request));
        let token = token.with_idempotency(idempotency);
        let token = match self.max_retry_after {
            Some(span) => token.with_max_retry_after(span),
            None => token,
        };
        // The outer loop sends again. With no time left the failure is recorded, and no quota is
        // taken.
        let is_inside = OuterAttempt::current().is_some();
        let token = if is_inside {
            token.with_time_left(Some(Duration::ZERO))
        } else {
            token
        };
        let token = self
            .strategy
            .refresh_retry_token(token, &failure, Reports::new())
            .ok()?;
        // For strategies that do not check idempotency. The crate's own strategies have refused.
        if !idempotency.permits(&failure) || is_inside {
            return None;
        }
        let delay = token.delay();
        self.operation = Operation::UnderWay(token);
        Some(sleep(delay))
    }

    fn clone_request(&mut self, request: &Req) -> Option<Req> {
        self.replay.copy(request)
    }
}

impl<S: ?Sized, C: Clone, K: Clone> Clone for RetryPolicy<S, C, K> {
    fn clone(&self) -> Self {
        Self {
            strategy: self.strategy.clone(),
            classifier: self.classifier.clone(),
            replay: self.replay.clone(),
            idempotency: self.idempotency,
            max_retry_after: self.max_retry_after,
            operation: Operation::NotBegun,
        }
    }
}

impl<S: fmt::Debug + ?Sized, C, K> fmt::Debug for RetryPolicy<S, C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy")
            .field("strategy", &self.strategy)
            .field("idempotency", &self.idempotency)
            .field("max_retry_after", &self.max_retry_after)
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}
