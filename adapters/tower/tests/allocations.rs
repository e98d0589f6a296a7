//! What a healthy request costs in allocations, beside the same service without paceline.

extern crate alloc;

use alloc::sync::Arc;
use core::future::{Ready, poll_fn, ready};
use core::task::{Context, Poll};

use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use paceline::{
    Adaptive, Clock, ControlLaw, MonotonicClock, RetryStrategy, SendLimiter, SendRate, Standard,
};
use paceline_tower::{
    BoxError, GrpcResults, HttpRequests, HttpResults, RetryLayer, RetryPolicy, SendRateLayer,
};
use tower::{Layer, Service, retry::Policy};

type Body = Full<Bytes>;

/// Answers at once that all is well.
#[derive(Clone, Debug)]
struct Well;

impl<B> Service<Request<B>> for Well {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Ready<Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        ready(Ok(Response::new(Body::default())))
    }
}

/// Clones the request as every policy has to, and never retries.
#[derive(Clone)]
struct Never;

impl<Res, E> Policy<Request<Body>, Res, E> for Never {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Request<Body>, _: &mut Result<Res, E>) -> Option<Ready<()>> {
        None
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        Some(request.clone())
    }
}

/// Counts the allocations of one request, once everything is warm.
fn allocations<S, B>(mut service: S) -> u64
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    B: http_body::Body + Unpin,
{
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    let mut once = || {
        runtime.block_on(async {
            let request = Request::get("http://localhost/a?b=c")
                .header("accept", "text/plain")
                .header("user-agent", "a test")
                .body(Body::from("a body"));
            poll_fn(|context| service.poll_ready(context))
                .await
                .expect("ready");
            let answer = service.call(request.expect("a request")).await;
            let mut body = answer.expect("all is well").into_body();
            while body.frame().await.is_some() {}
        });
    };
    for _ in 0..3 {
        once();
    }
    allocation_counter::measure(once).count_total
}

#[test]
fn retries_allocate_what_towers_own_do() {
    let host = allocations(tower::retry::Retry::new(Never, Well));
    let strategies: [Arc<dyn RetryStrategy>; 2] =
        [Arc::new(Standard::new()), Arc::new(Adaptive::paced())];
    for strategy in strategies {
        let layer = RetryLayer::shared(strategy.clone(), HttpResults::new()).replay(HttpRequests);
        assert_eq!(allocations(layer.layer(Well)), host, "{strategy:?}");
        let grpc = RetryLayer::shared(strategy.clone(), GrpcResults::new()).replay(HttpRequests);
        assert_eq!(allocations(grpc.layer(Well)), host, "{strategy:?}");
        let policy = RetryPolicy::shared(strategy.clone(), HttpResults::new());
        let retry = tower::retry::Retry::new(policy.replay(HttpRequests), Well);
        assert_eq!(allocations(retry), host, "{strategy:?}");
    }
}

#[test]
fn one_attempt_allocates_nothing() {
    let once = Standard::builder()
        .max_attempts(1)
        .build()
        .expect("in range");
    assert_eq!(
        allocations(RetryLayer::http(once).layer(Well)),
        allocations(Well)
    );
}

#[test]
fn a_body_that_is_kept_is_not_copied() {
    let layer = RetryLayer::grpc(Standard::new());
    let host = allocations(tower::retry::Retry::new(Never, Well));
    assert_eq!(allocations(layer.layer(Well)), host);
}

#[test]
fn the_send_rate_allocates_nothing() {
    let now = MonotonicClock::new().now();
    for law in [ControlLaw::Aws, ControlLaw::Paced] {
        let rate = Arc::new(SendRate::new(law, now));
        let layer = SendRateLayer::new(SendLimiter::new(rate.clone()), HttpResults::new());
        assert_eq!(allocations(layer.layer(Well)), allocations(Well), "{law:?}");
        let layer = SendRateLayer::new(SendLimiter::new(rate), GrpcResults::new());
        assert_eq!(allocations(layer.layer(Well)), allocations(Well), "{law:?}");
    }
}
