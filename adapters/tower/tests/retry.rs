//! Retries, over a scripted service.

extern crate alloc;

mod support;

use alloc::sync::Arc;
use core::{future::Future, time::Duration};
use std::sync::Mutex;

use kit::{Always, COST, SECOND};
use paceline::{
    Adaptive, Clock, Execution, Failure, Idempotency, RetryAfter, RetryStrategy, Standard,
    TokioClock,
};
use paceline_tower::{BoxError, Refused, Replay, RetryLayer};
use support::{Script, by_number, call, one_a_second, standard};
use tokio::time::Instant;
use tower::{Layer, Service};

#[tokio::test(start_paused = true)]
async fn a_success_pays_its_retry_back() {
    let strategy = standard(SECOND);
    let script = Script::of([Ok(500), Err("lost"), Ok(200)]);
    let mut service = RetryLayer::shared(strategy.clone(), by_number).layer(script.clone());
    let begun = Instant::now();
    assert_eq!(call(&mut service).await.expect("the third"), 200);
    assert_eq!(begun.elapsed(), 2 * SECOND);
    assert_eq!(script.sent(), 3);
    assert_eq!(strategy.quota().available(), 500 - COST);
}

#[tokio::test(start_paused = true)]
async fn the_last_answer_is_the_callers() {
    let strategy = standard(SECOND);
    let layer = RetryLayer::shared(strategy.clone(), by_number);
    let mut service = layer.layer(Script::of([Ok(500), Ok(500), Ok(500)]));
    assert_eq!(call(&mut service).await.expect("an answer"), 500);
    assert_eq!(strategy.quota().available(), 500 - 2 * COST);
    let mut service = layer.layer(Script::of([Err("a"), Err("b"), Err("c")]));
    assert_eq!(call(&mut service).await.unwrap_err().to_string(), "c");
    let mut service = layer.layer(Script::of([Ok(404)]));
    assert_eq!(call(&mut service).await.expect("an answer"), 404);
    assert_eq!(strategy.quota().available(), 500 - 4 * COST);
}

#[tokio::test(start_paused = true)]
async fn clones_and_services_of_one_layer_share_the_quota_and_others_do_not() {
    let build = || {
        Standard::builder()
            .quota_capacity(20)
            .build()
            .expect("in range")
    };
    let one = RetryLayer::new(build(), by_number);
    let other = RetryLayer::new(build(), by_number);
    let failing = || Script::of([Ok(500), Ok(500), Ok(500)]);
    let (first, second, third) = (failing(), failing(), failing());
    assert!(call(&mut one.layer(first.clone())).await.is_ok());
    assert!(
        call(&mut one.clone().layer(second.clone()).clone())
            .await
            .is_ok()
    );
    assert!(call(&mut other.layer(third.clone())).await.is_ok());
    assert_eq!((first.sent(), second.sent(), third.sent()), (2, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn every_send_waits_for_its_turn_and_none_while_it_backs_off() {
    let strategy: Arc<dyn RetryStrategy> = one_a_second(SECOND / 10);
    let script = Script::of([Ok(500), Ok(200), Ok(200)]);
    let mut service = RetryLayer::shared(strategy, by_number).layer(script.clone());
    let begun = Instant::now();
    assert!(call(&mut service).await.is_ok());
    assert_eq!(begun.elapsed(), SECOND);
    assert!(call(&mut service).await.is_ok());
    assert_eq!(begun.elapsed(), 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_copied_is_sent_once_and_recorded() {
    #[derive(Clone)]
    struct Once;
    impl Replay<u32> for Once {
        type Sent = u32;
        fn sendable(&self, request: u32) -> u32 {
            request
        }
        fn copy(&self, _: &u32) -> Option<u32> {
            None
        }
        fn idempotency(&self, _: &u32) -> Idempotency {
            Idempotency::Idempotent
        }
    }
    let builder = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .clock(Arc::new(TokioClock::new()));
    let strategy = Arc::new(builder.build().expect("in range"));
    let script = Script::of([Ok(429), Ok(200)]);
    let layer = RetryLayer::shared(strategy.clone(), by_number).replay(Once);
    let mut service = layer.layer(script.clone());
    assert_eq!(call(&mut service).await.expect("an answer"), 429);
    assert_eq!((script.sent(), strategy.quota().available()), (1, 500));
    let now = strategy.clock().now();
    assert!(
        strategy.send_rate().try_acquire(now).is_err(),
        "it heard of the throttle"
    );
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_done_is_not_done_twice() {
    let layer = RetryLayer::shared(standard(SECOND), by_number);
    let layer = layer.idempotency(Idempotency::NotIdempotent);
    let script = Script::of([Ok(429), Ok(500), Ok(200)]);
    let mut service = layer.layer(script.clone());
    assert_eq!(call(&mut service).await.expect("an answer"), 500);
    assert_eq!(script.sent(), 2);
}

#[tokio::test(start_paused = true)]
async fn no_wait_is_begun_that_ends_after_the_deadline() {
    let strategy = standard(2 * SECOND);
    let layer = RetryLayer::shared(strategy.clone(), by_number).deadline(SECOND);
    let script = Script::of([Ok(500), Ok(200)]);
    let begun = Instant::now();
    assert_eq!(
        call(&mut layer.clone().layer(script))
            .await
            .expect("an answer"),
        500
    );
    assert_eq!(
        (begun.elapsed(), strategy.quota().available()),
        (Duration::ZERO, 500)
    );

    let adaptive = one_a_second(Duration::ZERO);
    let layer = RetryLayer::shared(adaptive, by_number).deadline(SECOND / 2);
    let mut service = layer.layer(Script::of([Ok(200), Ok(200)]));
    assert!(call(&mut service).await.is_ok());
    let refused = call(&mut service).await.unwrap_err();
    let refused = refused.downcast_ref::<Refused>().expect("a refusal");
    assert_eq!((refused.wait(), begun.elapsed()), (SECOND, Duration::ZERO));
    let text = "orders: not sent: out of time: 500ms left, and a wait of 1s";
    assert_eq!(refused.to_string(), text);
    assert_eq!(refused.name(), Some("orders"));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_of_nothing_sends_nothing() {
    let script = Script::of([Ok(200)]);
    let layer = RetryLayer::shared(standard(SECOND), by_number).deadline(Duration::ZERO);
    let refused = call(&mut layer.layer(script.clone())).await.unwrap_err();
    assert_eq!(
        refused.downcast_ref::<Refused>().map(Refused::wait),
        Some(Duration::ZERO)
    );
    assert_eq!(script.sent(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_fails_fast_makes_no_request_wait() {
    let builder = Adaptive::builder()
        .clock(Arc::new(TokioClock::new()))
        .backoff(Arc::new(Always(SECOND / 2)))
        .paced(support::one_in(SECOND))
        .fail_fast(true);
    let strategy = builder.build().expect("in range");
    let mut service = RetryLayer::new(strategy, by_number).layer(Script::of([Ok(500)]));
    let refused = call(&mut service).await.unwrap_err();
    assert_eq!(
        refused.downcast_ref::<Refused>().map(Refused::wait),
        Some(SECOND / 2)
    );
}

#[tokio::test(start_paused = true)]
async fn with_long_polling_the_answer_is_kept_back() {
    let builder = Standard::builder()
        .backoff(Arc::new(Always(SECOND)))
        .quota_capacity(0)
        .long_polling(true);
    let strategy = builder.build().expect("in range");
    let mut service = RetryLayer::new(strategy, by_number).layer(Script::of([Ok(500)]));
    let begun = Instant::now();
    assert_eq!(call(&mut service).await.expect("an answer"), 500);
    assert_eq!(begun.elapsed(), SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_hint_is_waited_for_and_a_refusal_from_below_is_not_retried() {
    let hinted = |result: Result<&u32, &BoxError>| match result {
        Ok(429) => Some(Failure::throttling().with_retry_after(RetryAfter::AtLeast(9 * SECOND))),
        Ok(_) => None,
        Err(error) => Some(paceline_tower::failure_of(error)),
    };
    let layer = RetryLayer::shared(standard(SECOND), hinted);
    let begun = Instant::now();
    assert!(
        call(&mut layer.layer(Script::of([Ok(429), Ok(200)])))
            .await
            .is_ok()
    );
    assert_eq!(begun.elapsed(), 10 * SECOND, "the hint, and the backoff");

    let below = RetryLayer::shared(standard(SECOND), by_number).deadline(Duration::ZERO);
    let script = Script::of([Ok(200)]);
    let mut service = layer.layer(below.layer(script.clone()));
    assert!(call(&mut service).await.unwrap_err().is::<Refused>());
    assert_eq!((script.sent(), begun.elapsed()), (0, 10 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn errors_are_known_by_their_causes() {
    use std::io::{Error, ErrorKind};
    let failure = |error: Error| paceline_tower::failure_of(&error);
    let refused = failure(ErrorKind::ConnectionRefused.into());
    assert_eq!(refused.execution(), Execution::NotSent);
    assert!(failure(ErrorKind::TimedOut.into()).is_timeout());
    assert_eq!(
        failure(ErrorKind::InvalidInput.into()),
        Failure::not_retryable()
    );
    assert_eq!(failure(Error::other("who knows")), Failure::transient());
    assert_eq!(paceline_tower::failure_of(&7_u32), Failure::transient());
    #[cfg(feature = "policy")]
    {
        let late: BoxError = Box::new(tower::timeout::error::Elapsed::new());
        assert_eq!(paceline_tower::failure_of(&late), Failure::timeout());
    }
}

/// Says in which scope it was asked, delays its first send, and retries whether or not work may be
/// done twice.
#[derive(Debug)]
struct Own(
    paceline::strategy::StrategyId,
    Mutex<Vec<String>>,
    TokioClock,
);

impl RetryStrategy for Own {
    fn acquire_initial_token(
        &self,
        scope: Option<&str>,
    ) -> Result<paceline::RetryToken, paceline::strategy::InitialTokenRefused> {
        let scope = scope.unwrap_or_default();
        self.1
            .lock()
            .expect("no thread panicked")
            .push(scope.to_owned());
        match scope {
            "closed" => Err(paceline::strategy::InitialTokenRefused),
            _ => Ok(paceline::RetryToken::new(self.0).with_delay(SECOND)),
        }
    }

    fn refresh_retry_token(
        &self,
        token: paceline::RetryToken,
        _: &Failure,
        _: paceline::strategy::Reports<'_>,
    ) -> Result<paceline::RetryToken, paceline::strategy::RetryRefused> {
        assert!(token.send_permit().is_some(), "it was sent");
        let next = token.attempt().saturating_add(1);
        let token = self.0.check(token)?.with_attempt(next, None);
        Ok(token.with_delay(Duration::ZERO))
    }

    fn record_success(
        &self,
        token: paceline::RetryToken,
        _: paceline::strategy::Reports<'_>,
    ) -> Result<(), paceline::strategy::ForeignToken> {
        Err(paceline::strategy::ForeignToken(token))
    }

    fn clock(&self) -> &dyn Clock {
        &self.2
    }
}

#[tokio::test(start_paused = true)]
async fn strategies_of_ones_own_are_kept_to_the_rules() {
    let (id, clock) = (paceline::strategy::StrategyId::new(), TokioClock::new());
    let own = Arc::new(Own(id, Mutex::default(), clock));
    let layer = RetryLayer::shared(own.clone(), by_number);
    let begun = Instant::now();
    let script = Script::of([Ok(429), Ok(500)]);
    let once = layer.clone().idempotency(Idempotency::NotIdempotent);
    assert_eq!(
        call(&mut once.layer(script.clone()))
            .await
            .expect("an answer"),
        500
    );
    assert_eq!((script.sent(), begun.elapsed()), (2, SECOND));

    let script = Script::of([Ok(500)]);
    let closed = layer.scope("closed");
    assert_eq!(
        call(&mut closed.layer(script.clone()))
            .await
            .expect("an answer"),
        500
    );
    assert_eq!((script.sent(), begun.elapsed()), (1, SECOND));
    assert_eq!(*own.1.lock().expect("no thread panicked"), ["", "closed"]);
}

#[tokio::test(start_paused = true)]
async fn a_future_that_was_not_polled_has_begun_nothing_and_one_that_has_ended_stays_so() {
    let strategy = one_a_second(SECOND);
    let script = Script::of([Ok(200)]);
    let mut service = RetryLayer::shared(strategy.clone(), by_number).layer(script.clone());
    core::future::poll_fn(|context| Service::<u32>::poll_ready(&mut service, context))
        .await
        .expect("it is ready");
    drop(service.call(1_u32));
    assert_eq!(script.sent(), 0);
    let rate = strategy.send_rate();
    assert_eq!(support::next_in(rate, strategy.clock()), Duration::ZERO);

    let strategy = standard(SECOND);
    let mut service = RetryLayer::shared(strategy, by_number).layer(script);
    core::future::poll_fn(|context| Service::<u32>::poll_ready(&mut service, context))
        .await
        .expect("it is ready");
    let mut future = core::pin::pin!(service.call(1_u32));
    assert_eq!(format!("{future:?}"), "RetryFuture(\"not polled\")");
    assert!(future.as_mut().await.is_ok());
    assert_eq!(format!("{future:?}"), "RetryFuture(\"done\")");
    // Polled again after its end it says nothing more.
    let mut context = core::task::Context::from_waker(core::task::Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_ready_is_waited_for_until_the_deadline() {
    let limit = tower::limit::ConcurrencyLimitLayer::new(1);
    let inner = limit.layer(Script::of([Ok(500), Ok(200)]));
    let strategy = standard(SECOND / 10);
    let deadline = Duration::from_millis(500);
    let layer = RetryLayer::shared(strategy.clone(), by_number).deadline(deadline);
    let mut service = layer.layer(inner.clone());
    // Takes the only place while the retry backs off.
    let mut other = inner;
    let hog = async move {
        tokio::time::sleep(SECOND / 20).await;
        core::future::poll_fn(|context| Service::<u32>::poll_ready(&mut other, context))
            .await
            .expect("it is ready");
        tokio::time::sleep(3 * SECOND).await;
        drop(other);
    };
    let begun = Instant::now();
    let timed = async { (call(&mut service).await, begun.elapsed()) };
    let ((answer, took), ()) = tokio::join!(timed, hog);
    assert_eq!(
        (answer.expect("the answer that there was"), took),
        (500, deadline)
    );
    drop(service);
}

#[tokio::test(start_paused = true)]
async fn what_stops_a_retry_leaves_the_last_answer() {
    // The turn of the retry would come too late.
    let layer = RetryLayer::shared(one_a_second(SECOND / 10), by_number).deadline(SECOND / 2);
    let mut service = layer.layer(Script::of([Ok(500), Ok(200)]));
    assert_eq!(call(&mut service).await.expect("an answer"), 500);
    // The strategy makes nothing wait, and there is no deadline.
    let fails_fast = || {
        let builder = Adaptive::builder()
            .clock(Arc::new(TokioClock::new()))
            .backoff(Arc::new(Always(SECOND / 2)))
            .paced(support::one_in(SECOND))
            .fail_fast(true);
        builder.build().expect("in range")
    };
    let layer = RetryLayer::new(fails_fast(), by_number);
    let mut service = layer.layer(Script::of([Err("lost")]));
    assert_eq!(call(&mut service).await.unwrap_err().to_string(), "lost");
}

#[cfg(feature = "policy")]
#[tokio::test(start_paused = true)]
async fn what_was_shed_here_costs_no_quota() {
    let limited = tower::ServiceBuilder::new()
        .load_shed()
        .layer(tower::limit::ConcurrencyLimitLayer::new(1))
        .service(Script::of([Ok(200)]));
    let builder = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .clock(Arc::new(TokioClock::new()));
    let strategy = Arc::new(builder.build().expect("in range"));
    let classify = |result: Result<&u32, &BoxError>| result.err().map(paceline_tower::failure_of);
    let layer = RetryLayer::shared(strategy.clone(), classify);
    let mut holds = layer.layer(limited);
    let mut shed = holds.clone();
    core::future::poll_fn(|context| Service::<u32>::poll_ready(&mut holds, context))
        .await
        .expect("it is ready");
    let begun = Instant::now();
    let error = call(&mut shed).await.unwrap_err();
    assert!(error.is::<tower::load_shed::error::Overloaded>(), "{error}");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(strategy.quota().available(), 500);
}
