//! The send rate alone.

extern crate alloc;

mod support;

use alloc::sync::Arc;
use core::time::Duration;

use kit::SECOND;
use paceline::{
    Class, Clock, ControlLaw, Failure, RetryAfter, SendLimiter, SendRate, SendSet, TokioClock,
    law::PacedSettings,
    set::{SetError, Weights},
};
use paceline_tower::{BoxError, Classify, Conclude, Refused, SendRateLayer, SendSetLayer};
use support::{Script, by_number, call, next_in, one_in};
use tokio::time::Instant;
use tower::{Layer, ServiceBuilder, ServiceExt};

/// One request a second.
#[expect(clippy::type_complexity, reason = "a classifier has no shorter name")]
fn layer() -> (
    Arc<SendRate>,
    TokioClock,
    SendRateLayer<
        impl Fn(Result<&u32, &BoxError>) -> Option<Failure> + Clone,
        Arc<SendRate>,
        TokioClock,
    >,
) {
    let clock = TokioClock::new();
    let rate = Arc::new(SendRate::paced(one_in(SECOND), clock.now()));
    let layer = SendRateLayer::new(SendLimiter::new(rate.clone()).clock(clock), by_number);
    (rate, clock, layer)
}

#[tokio::test(start_paused = true)]
async fn clones_take_turns_and_wait_in_the_call() {
    let (_, _, layer) = layer();
    let script = Script::of([Ok(200), Ok(200), Ok(200)]);
    let service = layer.layer(script.clone());
    let begun = Instant::now();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let mut service = service.clone();
        calls.spawn(async move {
            let ready = ServiceExt::<u32>::ready(&mut service).await;
            ready.expect("at once, even if others wait");
            assert_eq!(begun.elapsed(), Duration::ZERO);
            call(&mut service).await.expect("an answer");
            begun.elapsed()
        });
    }
    let mut ended = support::all(calls).await;
    ended.sort();
    assert_eq!(ended, [Duration::ZERO, SECOND, 2 * SECOND]);
}

/// A second layer on the same limiter is the back-fill's.
#[tokio::test(start_paused = true)]
async fn a_layer_of_background_lets_the_others_go_first() {
    let (rate, clock, layer) = layer();
    assert_eq!(next_in(&rate, &clock), Duration::ZERO);
    let behind = layer.clone().class(Class::Background);
    let services = [behind, layer].map(|layer| layer.layer(Script::of([Ok(200)])));
    let begun = Instant::now();
    let [backfill, person] = services.map(|mut service| async move {
        call(&mut service).await.expect("an answer");
        begun.elapsed()
    });
    let (backfill, person) = tokio::join!(backfill, person);
    assert_eq!((backfill.as_secs(), person), (2, SECOND));
    assert_eq!(rate.snapshot(clock.now()).background.released, 1);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_comes_too_late_is_refused_at_once() {
    let (rate, clock, layer) = layer();
    let layer = layer.within(SECOND);
    let script = Script::of([Ok(200), Ok(200)]);
    let service = layer.layer(script.clone());
    let (mut first, mut second, mut third) = (service.clone(), service.clone(), service);
    let (first, second, third) =
        tokio::join!(call(&mut first), call(&mut second), call(&mut third));
    assert!(first.is_ok() && second.is_ok());
    let refused = third.unwrap_err();
    assert_eq!(
        refused.downcast_ref::<Refused>().map(Refused::wait),
        Some(SECOND.saturating_mul(2))
    );
    assert_eq!(script.sent(), 2);
    assert_eq!(next_in(&rate, &clock), SECOND); // the third left no debt

    let never = layer.within(Duration::ZERO).layer(Script::of([]));
    let refused = call(&mut never.clone()).await.unwrap_err();
    assert_eq!(
        refused.downcast_ref::<Refused>().map(Refused::wait),
        Some(SECOND)
    );
}

#[tokio::test(start_paused = true)]
async fn the_rate_hears_of_throttling_and_of_nothing_else() {
    let clock = TokioClock::new();
    let throttled = |law| Arc::new(SendRate::new(law, clock.now()));
    let rate = throttled(ControlLaw::Aws);
    let layer = SendRateLayer::new(SendLimiter::new(rate.clone()).clock(clock), by_number);
    let script = Script::of([Ok(500), Err("lost"), Ok(404), Ok(200), Ok(429)]);
    let mut service = layer.layer(script);
    for _ in 0..4 {
        let _any = call(&mut service).await;
        assert_eq!(next_in(&rate, &clock), Duration::ZERO);
    }
    assert_eq!(call(&mut service).await.expect("an answer"), 429);
    assert_eq!(next_in(&rate, &clock), 2 * SECOND);

    let hinted = |_: Result<&u32, &BoxError>| {
        Some(Failure::throttling().with_retry_after(RetryAfter::AtLeast(9 * SECOND)))
    };
    let rate = throttled(ControlLaw::Paced);
    let layer = SendRateLayer::new(SendLimiter::new(rate.clone()).clock(clock), hinted);
    assert!(call(&mut layer.layer(Script::of([Ok(200)]))).await.is_ok());
    assert!(
        next_in(&rate, &clock) >= 9 * SECOND,
        "it pauses for the hint"
    );
}

#[tokio::test(start_paused = true)]
async fn it_stands_in_a_stack_with_others() {
    let (_, _, layer) = layer();
    let service = ServiceBuilder::new()
        .concurrency_limit(2)
        .layer(layer)
        .timeout(SECOND)
        .service(Script::of([Ok(200), Ok(200)]));
    let begun = Instant::now();
    assert!(call(&mut service.clone()).await.is_ok());
    assert!(call(&mut service.clone()).await.is_ok()); // the timeout begins with its turn
    assert_eq!(begun.elapsed(), SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_future_that_was_not_polled_has_taken_nothing() {
    let (rate, clock, layer) = layer();
    let mut service = layer.layer(Script::of([]));
    core::future::poll_fn(|context| tower::Service::<u32>::poll_ready(&mut service, context))
        .await
        .expect("it is ready");
    let future = tower::Service::call(&mut service, 1_u32);
    assert_eq!(format!("{future:?}"), "SendRateFuture(\"in line\")");
    drop(future);
    assert_eq!(next_in(&rate, &clock), Duration::ZERO);
}

/// Classifies by number, and takes what a response costs of two limits for its number.
#[derive(Clone)]
struct Costing;

impl Classify<u32, BoxError> for Costing {
    type Answer<O: Conclude> = u32;

    fn classify(&self, result: Result<&u32, &BoxError>) -> Option<Failure> {
        by_number(result)
    }

    fn costs(&self, response: &u32) -> Option<Weights> {
        Some([1, *response].into())
    }

    fn answer<O: Conclude>(&self, response: u32, outcome: Option<O>) -> u32 {
        if let Some(outcome) = outcome {
            outcome.conclude(None);
        }
        response
    }
}

/// 5 requests and 1,000 tokens a second.
#[tokio::test(start_paused = true)]
async fn a_set_waits_for_its_last_turn_and_settles_what_it_cost() {
    let clock = TokioClock::new();
    let rate = |tokens| {
        let settings = PacedSettings::fixed(tokens, SECOND)
            .and_then(|fixed| fixed.to_builder().burst(SECOND).build());
        Arc::new(SendRate::paced(settings.expect("in range"), clock.now()))
    };
    let limiter = SendLimiter::new(SendSet::new([rate(5), rate(1_000)])).clock(clock);
    let layer = SendSetLayer::new(limiter, Costing, |_: &u32| Weights::from([1, 600]));
    let mut service = layer.layer(Script::of([Ok(200), Ok(204), Ok(429), Ok(200)]));
    let begun = Instant::now();
    for ended in [0, 0, 4] {
        // 600 are taken and 200, 204 or 429 paid: the third waits for 4 of 600.
        call(&mut service).await.expect("an answer");
        assert_eq!(begun.elapsed().as_millis(), ended);
    }
    let mut hasty = layer.within(SECOND / 100).layer(Script::of([]));
    let refused = call(&mut hasty).await.expect_err("nothing is granted");
    let refused = refused.downcast_ref::<Refused>().expect("it was refused");
    assert!(refused.wait() > SECOND / 100);
    let Some(SetError::Limit { limit, .. }) = refused.set() else {
        panic!("{refused}");
    };
    assert!(limit < 2);
}
