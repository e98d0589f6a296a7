//! Several limits on one request: a layer over a set of send rates.

use alloc::sync::Arc;
use core::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use paceline::{
    Class, Clock, ControlLaw, Failure, MonotonicClock, Outcome, SendLimiter, SendRate, SendSet,
    law::LimitReports,
    set::{SetPermit, Weights},
    wait::{DefaultSleep, Sleep},
};
use tower_layer::Layer;
use tower_service::Service;

use super::future::{Hears, finish};
use crate::{BoxError, Classify, Conclude, Refused};

type Limiter<C, Z, const N: usize> = SendLimiter<SendSet<Arc<SendRate>, N>, C, Z>;

/// Lets requests wait for their turn at several send rates at once, and records the outcome of
/// each: [`SendRateLayer`](crate::SendRateLayer) over a [`SendSet`].
///
/// A true cost in the response ([`Classify::costs`]) is settled. Futures are boxed.
///
/// # Examples
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use paceline::{
///     Clock, MonotonicClock, SendLimiter, SendRate, SendSet, law::PacedSettings, set::Weights,
/// };
/// use paceline_tower::{HttpResults, SendSetLayer};
///
/// let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
/// let start = MonotonicClock::new().now();
/// let rate = |most| {
///     let settings = PacedSettings::fixed(most, minute)?.to_builder().burst(second).build()?;
///     Ok::<_, paceline::law::PacedSettingsError>(Arc::new(SendRate::paced(settings, start)))
/// };
/// // 600 requests and 120,000 tokens a minute.
/// let limiter = SendLimiter::new(SendSet::new([rate(600)?, rate(120_000)?]));
/// let weights = |request: &http::Request<String>| {
///     Weights::from([1, 500 + u32::try_from(request.body().len() / 4).unwrap_or(u32::MAX / 2)])
/// };
/// let layer = SendSetLayer::new(limiter, HttpResults::new(), weights);
/// # Ok::<(), paceline::law::PacedSettingsError>(())
/// ```
#[derive(Clone)]
pub struct SendSetLayer<J, W, const N: usize, C = MonotonicClock, Z = DefaultSleep> {
    limiter: Limiter<C, Z, N>,
    classifier: J,
    weights: W,
    within: Option<Duration>,
    class: Class,
}

impl<J, W, C, Z, const N: usize> SendSetLayer<J, W, N, C, Z> {
    /// Creates the layer. `classifier` decides which responses are throttled, and `weights` how
    /// many tokens of each send rate a request takes.
    pub const fn new(limiter: Limiter<C, Z, N>, classifier: J, weights: W) -> Self {
        Self {
            limiter,
            classifier,
            weights,
            within: None,
            class: Class::Foreground,
        }
    }

    /// Lets no request wait for longer than `span`, like
    /// [`SendRateLayer::within`](crate::SendRateLayer::within).
    #[must_use]
    pub const fn within(mut self, span: Duration) -> Self {
        self.within = Some(span);
        self
    }

    /// Sets the class of the layer's requests, like
    /// [`SendRateLayer::class`](crate::SendRateLayer::class).
    #[must_use]
    pub const fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }
}

impl<Svc, J: Clone, W: Clone, C: Clone, Z: Clone, const N: usize> Layer<Svc>
    for SendSetLayer<J, W, N, C, Z>
{
    type Service = SendSetService<Svc, J, W, N, C, Z>;

    fn layer(&self, inner: Svc) -> Self::Service {
        SendSetService {
            inner,
            layer: self.clone(),
        }
    }
}

/// A service whose requests wait for their turn at several send rates, from [`SendSetLayer`].
#[derive(Clone)]
pub struct SendSetService<Svc, J, W, const N: usize, C = MonotonicClock, Z = DefaultSleep> {
    inner: Svc,
    layer: SendSetLayer<J, W, N, C, Z>,
}

impl<Svc, Req, J, W, C, Z, const N: usize> Service<Req> for SendSetService<Svc, J, W, N, C, Z>
where
    Svc: Service<Req> + Clone + Send + 'static,
    Svc::Future: Send,
    Svc::Response: Send,
    Svc::Error: Into<BoxError>,
    Req: Send + 'static,
    J: Classify<Svc::Response, BoxError> + Clone + Send + 'static,
    W: Fn(&Req) -> Weights + Clone + Send + 'static,
    C: Clock + Clone + Send + 'static,
    Z: Sleep + Clone + Send + Sync + 'static,
    Z::Timer: Send,
{
    type Response = J::Answer<RatedSet<C, Z, N>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        // The ready service goes with the request.
        let clone = self.inner.clone();
        let mut ready = mem::replace(&mut self.inner, clone);
        let SendSetLayer {
            limiter,
            classifier,
            weights,
            within,
            class,
        } = self.layer.clone();
        let weights = weights(&request);
        let ask = limiter.clone().into_tokens(weights.as_slice()).class(class);
        let ask = match within {
            Some(span) => ask.within(span),
            None => ask,
        };
        Box::pin(async move {
            let permit = ask.acquire().await.map_err(Refused::from)?;
            let result = ready.call(request).await.map_err(Into::into);
            let rated = RatedSet {
                limiter,
                permit,
                success: Outcome::NotThrottled,
            };
            finish(&classifier, result, rated)
        })
    }
}

/// A request sent under several send rates, whose outcome is not recorded yet.
pub struct RatedSet<C, Z, const N: usize> {
    limiter: Limiter<C, Z, N>,
    permit: SetPermit<N>,
    /// The outcome to record for a success.
    success: Outcome,
}

impl<C: Clock, Z, const N: usize> Hears for RatedSet<C, Z, N> {
    fn observe(&self, limits: impl FnOnce() -> LimitReports) {
        let mut rates = self.limiter.set().rates();
        if rates.any(|rate| rate.law() == ControlLaw::Declared) {
            self.limiter.observe(self.permit, &limits());
        }
    }

    fn pause(&mut self, span: Duration) {
        self.success = Outcome::PauseAfter(span);
    }

    fn settle_costs(&mut self, costs: Weights) {
        // If the number of costs is wrong, or a cost too large for a line, the estimate stays.
        if self.limiter.settle(self.permit, costs.as_slice()).is_ok() {
            self.permit = self.permit.costing(costs.as_slice());
        }
    }
}

impl<C: Clock, Z, const N: usize> Conclude for RatedSet<C, Z, N> {
    fn conclude(self, failure: Option<&Failure>) {
        let outcome = failure.map_or(self.success, Outcome::from);
        self.limiter.record(self.permit, outcome);
    }
}

impl<C, Z, const N: usize> fmt::Debug for RatedSet<C, Z, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RatedSet").field(&self.permit).finish()
    }
}

impl<J, W, C, Z, const N: usize> fmt::Debug for SendSetLayer<J, W, N, C, Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendSetLayer")
            .field("limits", &N)
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

impl<Svc: fmt::Debug, J, W, C, Z, const N: usize> fmt::Debug
    for SendSetService<Svc, J, W, N, C, Z>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendSetService")
            .field("inner", &self.inner)
            .field("layer", &self.layer)
            .finish()
    }
}
