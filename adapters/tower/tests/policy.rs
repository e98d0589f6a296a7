//! In tower's own retries.

extern crate alloc;

mod support;

use alloc::sync::Arc;
use core::time::Duration;

use kit::{COST, SECOND, polled};
use paceline::{Idempotency, RetryAfter, RetryQuota, Standard};
use paceline_tower::{BoxError, QuotaBudget, RetryPolicy};
use support::{Script, by_number, call, standard};
use tokio::time::Instant;
use tower::{
    ServiceBuilder,
    retry::{Policy, Retry, budget::Budget},
};

#[tokio::test(start_paused = true)]
async fn a_success_pays_its_retry_back() {
    let strategy = standard(SECOND);
    let script = Script::of([Ok(500), Err("lost"), Ok(200), Ok(200)]);
    let policy = RetryPolicy::shared(strategy.clone(), by_number);
    let mut service = ServiceBuilder::new().retry(policy).service(script.clone());
    let begun = Instant::now();
    assert_eq!(call(&mut service).await.expect("the third"), 200);
    assert_eq!((begun.elapsed(), script.sent()), (2 * SECOND, 3));
    assert_eq!(strategy.quota().available(), 500 - COST);
    assert_eq!(call(&mut service).await.expect("the first"), 200);
    assert_eq!(strategy.quota().available(), 500 - COST + 1);
}

#[tokio::test(start_paused = true)]
async fn each_operation_has_its_own_count_and_all_have_one_quota() {
    let builder = Standard::builder().quota_capacity(3 * COST);
    let strategy = Arc::new(builder.build().expect("in range"));
    let policy = RetryPolicy::shared(strategy, by_number);
    let sent = async |policy| {
        let script = Script::of([Ok(500); 3]);
        let answer = call(&mut Retry::new(policy, script.clone())).await;
        assert_eq!(answer.expect("an answer"), 500);
        script.sent()
    };
    assert_eq!(sent(policy.clone()).await, 3); // which is all there may be
    assert_eq!(sent(policy.clone()).await, 2);
    assert_eq!(sent(policy).await, 1);
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_done_is_not_done_twice() {
    let policy = RetryPolicy::shared(standard(SECOND), by_number);
    let policy = policy.idempotency(Idempotency::NotIdempotent);
    let script = Script::of([Ok(429), Ok(500)]);
    let mut service = Retry::new(policy, script.clone());
    assert_eq!(call(&mut service).await.expect("an answer"), 500);
    assert_eq!(script.sent(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_hint_beyond_the_cap_gets_no_retry() {
    let hinted = |result: Result<&u32, &BoxError>| {
        let hint = RetryAfter::AtLeast(3 * SECOND);
        by_number(result).map(|failure| failure.with_retry_after(hint))
    };
    for (cap, sent) in [(3, 2), (2, 1)] {
        let policy = RetryPolicy::shared(standard(SECOND), hinted).max_retry_after(cap * SECOND);
        let script = Script::of([Ok(429), Ok(200)]);
        let answer = call(&mut Retry::new(policy, script.clone())).await;
        assert_eq!(answer.is_ok_and(|status| status == 200), sent == 2);
        assert_eq!(script.sent(), sent);
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_is_dropped_has_spent_what_it_paid() {
    let strategy = standard(SECOND);
    let policy = RetryPolicy::shared(strategy.clone(), by_number);
    let mut service = Retry::new(policy, Script::of([Ok(500), Ok(200)]));
    assert_eq!(polled(2, call(&mut service)).await.map(drop), None);
    assert_eq!(strategy.quota().available(), 500 - COST);
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_was_refused_stays_so() {
    let mut policy = RetryPolicy::shared(standard(SECOND), by_number);
    assert!(policy.retry(&mut 1_u32, &mut Ok(404)).is_none());
    assert!(policy.retry(&mut 1_u32, &mut Ok(500)).is_none());
    assert!(policy.clone().retry(&mut 1_u32, &mut Ok(500)).is_some());
}

#[test]
fn a_budget_is_a_quota_with_one_price() {
    let quota = Arc::new(RetryQuota::new(30));
    let budget = QuotaBudget::new(quota.clone());
    assert!(budget.withdraw() && budget.clone().withdraw());
    assert!(!budget.withdraw(), "2 are left");
    assert_eq!(budget.quota().available(), 2);
    budget.deposit();
    assert_eq!(quota.available(), 3);

    let own = budget.cost(5).credit(10);
    assert!(!own.withdraw());
    own.deposit();
    assert!(own.withdraw());
    assert_eq!(quota.available(), 8);
    (0..9).for_each(|_| own.deposit());
    assert_eq!(quota.available(), 30, "no more than fits");
    assert!(own.clone().cost(0).withdraw());
    assert!(!own.cost(31).withdraw(), "more than there can be");
}

/// A policy of a user's own, with the budget.
#[derive(Clone)]
struct Own(QuotaBudget);

impl<E> Policy<u32, u32, E> for Own {
    type Future = tokio::time::Sleep;

    fn retry(&mut self, _: &mut u32, result: &mut Result<u32, E>) -> Option<Self::Future> {
        if matches!(result, Ok(200)) {
            self.0.deposit();
            return None;
        }
        self.0
            .withdraw()
            .then(|| tokio::time::sleep(Duration::ZERO))
    }

    fn clone_request(&mut self, request: &u32) -> Option<u32> {
        Some(*request)
    }
}

#[tokio::test]
async fn a_policy_of_ones_own_stops_when_the_budget_is_gone() {
    let budget = QuotaBudget::new(Arc::new(RetryQuota::new(2 * COST)));
    let script = Script::of([Ok(500); 3]);
    let mut service = Retry::new(Own(budget), script.clone());
    assert_eq!(call(&mut service).await.expect("an answer"), 500);
    assert_eq!(script.sent(), 3);
}

#[tokio::test(start_paused = true)]
async fn inside_of_an_attempt_the_policy_retries_nothing() {
    let strategy = standard(SECOND);
    let script = Script::of([Ok(500), Ok(200)]);
    let policy = RetryPolicy::shared(strategy.clone(), by_number);
    let mut service = Retry::new(policy, script.clone());
    let outer = Some(paceline::operation::OuterAttempt::new());
    let answer = paceline::operation::within_async(outer, call(&mut service)).await;
    assert_eq!((answer.expect("an answer"), script.sent()), (500, 1));
    assert_eq!(strategy.quota().available(), 500);
}
