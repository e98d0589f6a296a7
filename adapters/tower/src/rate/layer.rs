//! The layer and its service.

use alloc::sync::Arc;
use core::{
    fmt, mem,
    ops::Deref,
    task::{Context, Poll},
    time::Duration,
};

use paceline::{
    Class, Clock, MonotonicClock, SendLimiter, SendRate,
    wait::{DefaultSleep, Sleep},
};
use tower_layer::Layer;
use tower_service::Service;

use super::future::{Rated, SendRateFuture};
use crate::{BoxError, Classify};

/// Lets requests wait for their turn at a [`SendRate`], and records the outcome of each.
///
/// Use it for services that have retries already; [`RetryLayer`](crate::RetryLayer) over
/// [`Adaptive`](paceline::Adaptive) has its own send rate. Put this layer under the layer that
/// retries, so that every attempt takes a turn.
///
/// The service can be cloned, and clones share the rate. It is ready when the inner service is, and
/// waits in its future. So a ready task that does not call holds up no other task. A request that
/// is dropped while it waits gives its place back. Put a limit of concurrent requests around this
/// layer, or waiting requests count as concurrent.
///
/// # Examples
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use paceline::{Clock, MonotonicClock, SendLimiter, SendRate, law::PacedSettings};
/// use paceline_tower::{HttpResults, SendRateLayer};
///
/// let settings = PacedSettings::fixed(100, Duration::from_secs(1))?; // 100 a second
/// let rate = Arc::new(SendRate::paced(settings, MonotonicClock::new().now()));
/// let layer = SendRateLayer::new(SendLimiter::new(rate), HttpResults::new());
/// let layer = layer.within(Duration::from_secs(5));
/// # Ok::<(), paceline::law::PacedSettingsError>(())
/// ```
#[derive(Clone)]
pub struct SendRateLayer<J, R = Arc<SendRate>, C = MonotonicClock, Z = DefaultSleep> {
    limiter: SendLimiter<R, C, Z>,
    classifier: J,
    within: Option<Duration>,
    class: Class,
}

impl<J, R, C, Z> SendRateLayer<J, R, C, Z> {
    /// Creates the layer. `classifier` decides which responses are throttled.
    pub const fn new(limiter: SendLimiter<R, C, Z>, classifier: J) -> Self {
        Self {
            limiter,
            classifier,
            within: None,
            class: Class::Foreground,
        }
    }

    /// Lets no request wait for longer than `span`. A request whose turn comes later fails at once,
    /// with [`Refused`](crate::Refused). No limit by default.
    #[must_use]
    pub const fn within(mut self, span: Duration) -> Self {
        self.within = Some(span);
        self
    }

    /// Sets the class of the layer's requests, [`Class::Foreground`] by default. For a back-fill,
    /// make a second layer over the same limiter.
    #[must_use]
    pub const fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }
}

impl<Svc, J: Clone, R: Clone, C: Clone, Z: Clone> Layer<Svc> for SendRateLayer<J, R, C, Z> {
    type Service = SendRateService<Svc, J, R, C, Z>;

    fn layer(&self, inner: Svc) -> Self::Service {
        SendRateService {
            inner,
            layer: self.clone(),
        }
    }
}

/// A service whose requests wait for their turn, from [`SendRateLayer`].
#[derive(Clone)]
pub struct SendRateService<Svc, J, R = Arc<SendRate>, C = MonotonicClock, Z = DefaultSleep> {
    inner: Svc,
    layer: SendRateLayer<J, R, C, Z>,
}

impl<Svc, Req, J, R, C, Z> Service<Req> for SendRateService<Svc, J, R, C, Z>
where
    Svc: Service<Req> + Clone,
    Svc::Error: Into<BoxError>,
    J: Classify<Svc::Response, BoxError> + Clone,
    R: Deref<Target = SendRate> + Clone + Unpin,
    C: Clock + Clone + Unpin,
    Z: Sleep + Clone + Unpin,
{
    type Response = J::Answer<Rated<R, C, Z>>;
    type Error = BoxError;
    type Future = SendRateFuture<Svc, Req, J, R, C, Z>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        // The ready service goes with the request.
        let clone = self.inner.clone();
        let ready = mem::replace(&mut self.inner, clone);
        let SendRateLayer {
            limiter,
            classifier,
            within,
            class,
        } = self.layer.clone();
        let ask = limiter.clone().into_tokens(1).class(class);
        let ask = match within {
            Some(span) => ask.within(span),
            None => ask,
        };
        SendRateFuture::new(ready, request, limiter, classifier, ask.acquire())
    }
}

impl<J, R: fmt::Debug, C: fmt::Debug, Z> fmt::Debug for SendRateLayer<J, R, C, Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendRateLayer")
            .field("limiter", &self.limiter)
            .field("within", &self.within)
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

impl<Svc, J, R, C, Z> fmt::Debug for SendRateService<Svc, J, R, C, Z>
where
    Svc: fmt::Debug,
    R: fmt::Debug,
    C: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendRateService")
            .field("inner", &self.inner)
            .field("layer", &self.layer)
            .finish()
    }
}
