//! The layer and its service.

use alloc::sync::Arc;
use core::{
    fmt, mem,
    task::{Context, Poll},
    time::Duration,
};

use paceline::{Idempotency, Operation, RetryStrategy, headers::AttemptHeader};
use tower_layer::Layer;
use tower_service::Service;

use super::{Retried, future::RetryFuture};
use crate::{BoxError, Classify, Clones, Replay, bounds::Bounds};

/// Retries failed requests, as one of paceline's strategies decides. The quota pays for each retry,
/// and a success pays back. With [`Adaptive`](paceline::Adaptive) every send waits for its turn.
///
/// `http` and `grpc` make the layer for their clients. [`new`](Self::new) takes the user's own
/// classifier.
///
/// The service is ready when the inner service is, and waits in its future. A future may be dropped
/// at any await: its place in line goes back at once, and the payment for a retry is spent. Clones
/// of the service, and all services of one layer, share the strategy. A response or an error that
/// is not retried goes to the caller unchanged. The layer's only own error is
/// [`Refused`](crate::Refused).
///
/// Loops of paceline in the service, such as another `RetryLayer`, leave the retries to this layer
/// ([`OuterAttempt`](paceline::operation::OuterAttempt)). Switch off other retries, such as tower's
/// own, or they multiply.
///
/// Put a timeout for one attempt under this layer. Put a timeout for all attempts around it, or use
/// [`deadline`](Self::deadline). Put a limit of concurrent requests around it, or waiting requests
/// count as concurrent.
///
/// # Examples
///
/// ```
/// use paceline::{Failure, Standard};
/// use paceline_tower::{BoxError, RetryLayer};
/// use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), BoxError> {
/// let mut calls = 0;
/// let flaky = service_fn(move |_request: &'static str| async move { Ok::<_, BoxError>("at once") });
/// let classify = |result: Result<&&str, &BoxError>| result.err().map(|_| Failure::transient());
/// let mut service = ServiceBuilder::new()
///     .layer(RetryLayer::new(Standard::new(), classify))
///     .service(flaky);
/// assert_eq!(service.ready().await?.call("hello").await?, "at once");
/// # calls += 1; let _ = calls;
/// # Ok(()) }
/// ```
pub struct RetryLayer<S: ?Sized, C, K = Clones> {
    settings: Settings<S>,
    classifier: C,
    replay: K,
}

/// The settings of the layer that do not depend on its types.
pub(super) struct Settings<S: ?Sized> {
    pub(super) strategy: Arc<S>,
    pub(super) scope: Option<Arc<str>>,
    pub(super) idempotency: Option<Idempotency>,
    pub(super) bounds: Bounds,
    pub(super) marks: bool,
    pub(super) tells: Option<AttemptHeader>,
}

impl<S: ?Sized> Settings<S> {
    /// Applies the settings. The deadline is the sooner of the layer's and of `own`, the request's.
    /// Returns `true` if the operation has a deadline.
    pub(super) fn apply<'a, T>(
        &'a self,
        mut operation: Operation<'a, T>,
        own: Option<Duration>,
    ) -> (Operation<'a, T>, bool) {
        if let Some(scope) = &self.scope {
            operation = operation.scope(scope);
        }
        let deadline = [self.bounds.deadline, own].into_iter().flatten().min();
        let bounds = Bounds {
            deadline,
            ..self.bounds
        };
        (bounds.apply(operation), deadline.is_some())
    }
}

/// Everything that the operations of a service share.
pub(super) struct Shared<S: ?Sized, C, K> {
    pub(super) classifier: C,
    pub(super) replay: K,
    pub(super) settings: Settings<S>,
}

impl<S: RetryStrategy, C> RetryLayer<S, C> {
    /// Creates the layer for requests that can be cloned, of any type. `classifier` decides what
    /// results mean.
    pub fn new(strategy: S, classifier: C) -> Self {
        Self::shared(Arc::new(strategy), classifier)
    }
}

impl<S: RetryStrategy + ?Sized, C> RetryLayer<S, C> {
    /// Creates the layer for a shared strategy, whose state others can read or use.
    pub fn shared(strategy: Arc<S>, classifier: C) -> Self {
        Self {
            settings: Settings {
                strategy,
                scope: None,
                idempotency: None,
                bounds: Bounds::default(),
                marks: false,
                tells: None,
            },
            classifier,
            replay: Clones,
        }
    }
}

impl<S: RetryStrategy + ?Sized, C, K> RetryLayer<S, C, K> {
    /// Makes the requests of the attempts by `replay`.
    pub fn replay<L>(self, replay: L) -> RetryLayer<S, C, L> {
        RetryLayer {
            settings: self.settings,
            classifier: self.classifier,
            replay,
        }
    }

    /// Sets whether requests may be carried out twice, whatever [`Replay`] says.
    #[must_use]
    pub fn idempotency(mut self, idempotency: Idempotency) -> Self {
        self.settings.idempotency = Some(idempotency);
        self
    }

    /// Names the scope of the requests, for strategies with a state for each scope.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<Arc<str>>) -> Self {
        self.settings.scope = Some(scope.into());
        self
    }

    /// Gives each operation `span`, with all its attempts and waits, from when its future is first
    /// polled. No limit by default.
    ///
    /// No backoff or wait begins that would use up the rest of the time, and no attempt begins
    /// after the deadline. If a backoff, a turn or the readiness of the inner service does not come
    /// in time, the last response is returned. Before the first attempt the error is
    /// [`Refused`](crate::Refused). An attempt under way is cut off, with the same error. A
    /// response's body is not cut off. The deadline of the request itself, `grpc-timeout`, counts
    /// too.
    ///
    /// With a deadline, a response is kept while its retry waits, and may hold its connection.
    /// Without a deadline the response is dropped.
    #[must_use]
    pub fn deadline(mut self, span: Duration) -> Self {
        self.settings.bounds.deadline = Some(span);
        self
    }

    /// Accepts no longer wait than `span` from the service: 60 s by default.
    ///
    /// A response that asks for more is returned at once, and the send rate pauses for no longer
    /// than `span`.
    #[must_use]
    pub fn max_retry_after(mut self, span: Duration) -> Self {
        self.settings.bounds.max_retry_after = Some(span);
        self
    }

    /// Lets loops of paceline in the inner service send again. Use it if the service sends several
    /// requests for one, as a paginator does. By default the loops [send
    /// once](paceline::operation::OuterAttempt), since this layer sends again.
    #[must_use]
    pub fn composite(mut self) -> Self {
        self.settings.bounds.composite = true;
        self
    }

    /// Puts the [`OuterAttempt`](paceline::operation::OuterAttempt) and the
    /// [`Attempt`](paceline::operation::Attempt) into the extensions of each request, for the
    /// services inside. The mark allocates if a request has no extensions.
    ///
    /// A loop in another task finds the outer attempt there, and sends once. Loops that the
    /// service's future polls need no mark. A service that signs requests reads from the attempt
    /// which of several keys to sign with
    /// ([`Attempt::member`](paceline::operation::Attempt::member)).
    #[must_use]
    pub fn mark_requests(mut self) -> Self {
        self.settings.marks = true;
        self
    }

    /// Sends the number of each attempt in `header`. By default no header is sent.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "http")] {
    /// use paceline::{Adaptive, headers::AttemptHeader};
    /// use paceline_tower::RetryLayer;
    ///
    /// let header = AttemptHeader::EnvoyAttemptCount;
    /// let layer = RetryLayer::http(Adaptive::paced()).tell_attempts(header);
    /// # }
    /// ```
    #[must_use]
    pub fn tell_attempts(mut self, header: AttemptHeader) -> Self {
        self.settings.tells = Some(header);
        self
    }

    /// Returns the strategy.
    #[must_use]
    pub const fn strategy(&self) -> &Arc<S> {
        &self.settings.strategy
    }
}

impl<Svc, S: ?Sized, C: Clone, K: Clone> Layer<Svc> for RetryLayer<S, C, K> {
    type Service = Retry<Svc, S, C, K>;

    fn layer(&self, inner: Svc) -> Self::Service {
        let shared = Arc::new(Shared {
            classifier: self.classifier.clone(),
            replay: self.replay.clone(),
            settings: self.settings.clone(),
        });
        Retry { inner, shared }
    }
}

/// A service that retries, from [`RetryLayer`].
pub struct Retry<Svc, S: ?Sized, C, K = Clones> {
    inner: Svc,
    shared: Arc<Shared<S, C, K>>,
}

impl<Svc, Req, S, C, K> Service<Req> for Retry<Svc, S, C, K>
where
    Svc: Service<K::Sent> + Clone,
    Svc::Error: Into<BoxError>,
    S: RetryStrategy + ?Sized + 'static,
    C: Classify<Svc::Response, BoxError>,
    K: Replay<Req>,
{
    type Response = C::Answer<Retried<S>>;
    type Error = BoxError;
    type Future = RetryFuture<Svc, Req, S, C, K>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        // The ready service goes with the request.
        let clone = self.inner.clone();
        let ready = mem::replace(&mut self.inner, clone);
        RetryFuture::new(ready, request, self.shared.clone())
    }
}

impl<S: ?Sized> Clone for Settings<S> {
    fn clone(&self) -> Self {
        Self {
            strategy: self.strategy.clone(),
            scope: self.scope.clone(),
            idempotency: self.idempotency,
            bounds: self.bounds,
            marks: self.marks,
            tells: self.tells,
        }
    }
}

impl<S: ?Sized, C: Clone, K: Clone> Clone for RetryLayer<S, C, K> {
    fn clone(&self) -> Self {
        Self {
            settings: self.settings.clone(),
            classifier: self.classifier.clone(),
            replay: self.replay.clone(),
        }
    }
}

impl<Svc: Clone, S: ?Sized, C, K> Clone for Retry<Svc, S, C, K> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            shared: self.shared.clone(),
        }
    }
}

impl<S: fmt::Debug + ?Sized> fmt::Debug for Settings<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("strategy", &self.strategy)
            .field("scope", &self.scope)
            .field("idempotency", &self.idempotency)
            .field("deadline", &self.bounds.deadline)
            .field("max_retry_after", &self.bounds.max_retry_after)
            .finish_non_exhaustive()
    }
}

impl<S: fmt::Debug + ?Sized, C, K> fmt::Debug for RetryLayer<S, C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut layer = f.debug_struct("RetryLayer");
        layer.field("settings", &self.settings);
        layer.finish_non_exhaustive()
    }
}

impl<Svc: fmt::Debug, S: fmt::Debug + ?Sized, C, K> fmt::Debug for Retry<Svc, S, C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("inner", &self.inner)
            .field("settings", &self.shared.settings)
            .finish_non_exhaustive()
    }
}
