//! What the layers hand on besides the outcome: weights, declared limits, true costs.

extern crate alloc;

use alloc::sync::Arc;
use core::{
    future::{Ready, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use paceline::{
    Adaptive, ControlLaw, Failure, RetryStrategy, SendLimiter, SendRate, Timestamp,
    law::PacedSettings, set::Weights,
};
use paceline_tower::{
    BoxError, Buffered, Classify, Conclude, HttpRequests, HttpResults, Replay, RetryLayer,
    SendRateLayer,
};
use tower::{Layer, ServiceExt, service_fn};

type Said = Response<()>;

/// Reads the true cost from a header.
#[derive(Clone, Copy)]
struct Costs;

impl<E> Classify<Said, E> for Costs {
    type Answer<O: Conclude> = Said;

    fn classify(&self, _: Result<&Said, &E>) -> Option<Failure> {
        None
    }

    fn costs(&self, response: &Said) -> Option<Weights> {
        let cost = response.headers().get("x-cost")?.to_str().ok()?;
        Some([cost.parse().ok()?].into())
    }

    fn answer<O: Conclude>(&self, response: Said, outcome: Option<O>) -> Said {
        if let Some(outcome) = outcome {
            outcome.conclude(None);
        }
        response
    }
}

/// Answers with a header.
fn answered<R>(name: &'static str, value: &'static str, _: R) -> Ready<Result<Said, BoxError>> {
    let response = Response::builder().header(name, value).body(());
    ready(response.map_err(BoxError::from))
}

/// One token a second, of which the bucket holds ten, at a time that stands still.
fn ten_tokens() -> Arc<Adaptive> {
    let settings = PacedSettings::fixed(1, Duration::from_secs(1)).expect("in range");
    let settings = settings.to_builder().burst(Duration::from_secs(10)).build();
    let builder = Adaptive::builder().paced(settings.expect("in range"));
    let builder = builder.clock(Arc::new(Timestamp::ZERO));
    Arc::new(builder.build().expect("in range"))
}

/// Returns the tokens that are left, in thousandths.
fn left(strategy: &Adaptive) -> String {
    let snapshot = strategy.send_rate().snapshot(strategy.clock().now());
    format!("{:.3}", snapshot.available)
}

fn of_five() -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::default());
    request.extensions_mut().insert(Weights::from([5]));
    request
}

/// Sends two requests of five tokens, the second of which costs two in truth. Returns what is left
/// after each.
async fn two_requests<K>(replay: K) -> [String; 2]
where
    K: Replay<Request<Full<Bytes>>> + Clone,
{
    let strategy = ten_tokens();
    let mut seen = [const { String::new() }; 2];
    for (seen, header) in seen.iter_mut().zip(["x-other", "x-cost"]) {
        let layer = RetryLayer::shared(strategy.clone(), Costs).replay(replay.clone());
        let service = layer.layer(service_fn(move |request| answered(header, "2", request)));
        service.oneshot(of_five()).await.expect("an answer");
        *seen = left(&strategy);
    }
    seen
}

#[tokio::test]
async fn a_request_takes_its_weight_and_costs_what_its_response_says() {
    assert_eq!(two_requests(HttpRequests).await, ["5.000", "3.000"]);
    assert_eq!(two_requests(Buffered::up_to(9)).await, ["5.000", "3.000"]);
}

#[tokio::test]
async fn declared_limits_reach_the_strategy_and_the_rate() {
    let inner = service_fn(|request: Request<Full<Bytes>>| {
        answered("ratelimit", "\"hour\";r=7;t=60", request)
    });
    let strategy = Arc::new(Adaptive::declared());
    let layer = RetryLayer::shared(strategy.clone(), HttpResults::new()).replay(HttpRequests);
    layer
        .layer(inner)
        .oneshot(of_five())
        .await
        .expect("an answer");
    let limit = strategy
        .send_rate()
        .snapshot(strategy.clock().now())
        .declared;
    assert_eq!(
        limit.map(|limit| limit.policy.to_string()).as_deref(),
        Some("hour")
    );

    let rate = Arc::new(SendRate::new(ControlLaw::Declared, Timestamp::ZERO));
    let limiter = SendLimiter::new(rate.clone()).clock(Timestamp::ZERO);
    let layer = SendRateLayer::new(limiter, HttpResults::new());
    layer
        .layer(inner)
        .oneshot(of_five())
        .await
        .expect("an answer");
    let limit = rate.snapshot(Timestamp::ZERO).declared;
    assert_eq!(
        limit.map(|limit| limit.policy.to_string()).as_deref(),
        Some("hour")
    );
}
