//! The handle: over a rate of one's own, in a strategy, with a deadline, and at the end.

use std::sync::Arc;
use std::time::Duration;

use paceline::{
    Adaptive, Failure, MonotonicClock, Outcome, RetryStrategyExt, SendRate, Standard,
    law::PacedSettings,
};
use paceline_fleet::{Away, Budget, Fleet, FleetStrategy, Scope, Standing};
use tokio::time::Instant;

use crate::rig::engine::Engine;
use crate::scene::alone;

fn scope(engine: &Engine, allowance: u32) -> Scope {
    let fleet = Fleet::open(&engine.address()).unwrap();
    fleet
        .scope("budget", allowance, Duration::from_secs(1))
        .unwrap()
}

async fn leased(scope: Scope) -> Budget {
    let budget = scope.when_away(Away::Closed).join().unwrap();
    while budget.snapshot().standing != Standing::Leased {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    budget
}

#[tokio::test]
async fn a_rate_of_ones_own_is_asked_too_and_costs_the_fleet_nothing_when_it_refuses() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let clock = Arc::new(MonotonicClock::new());
    let settings = PacedSettings::fixed(1, Duration::from_secs(100)).unwrap();
    let local = Arc::new(SendRate::paced(settings, paceline::Clock::now(&*clock)));
    let budget = leased(scope(&engine, 1_000).clock(clock).over(local)).await;
    let permit = budget.acquire().await;
    budget.record(permit, Outcome::NotThrottled);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let refused = (0..20)
        .filter(|_| budget.try_acquire(budget.clock().now()).is_err())
        .count();
    let deadline = Instant::now() + Duration::from_millis(50);
    assert!(budget.acquire_before(deadline).await.is_err());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!((refused, budget.snapshot().spent), (20, 1));
}

#[tokio::test]
async fn a_wait_for_a_rate_of_ones_own_ends_before_its_deadline() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let clock = Arc::new(MonotonicClock::new());
    let settings = PacedSettings::fixed(50, Duration::from_secs(1)).unwrap();
    let local = Arc::new(SendRate::paced(settings, paceline::Clock::now(&*clock)));
    let budget = leased(scope(&engine, 1_000).clock(clock).over(local)).await;
    let deadline = Instant::now() + Duration::from_secs(30);
    for _ in 0..20 {
        assert!(budget.acquire_before(deadline).await.is_ok());
    }
}

#[tokio::test]
async fn a_member_of_twice_the_weight_sends_twice_as_much() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let mut budgets = Vec::new();
    for weight in [2, 1] {
        let heavy = scope(&engine, 600).weight(weight).unwrap();
        let budget = leased(heavy).await;
        for _ in 0..8 {
            let budget = budget.clone();
            tokio::spawn(async move {
                loop {
                    let permit = budget.acquire().await;
                    budget.record(permit, Outcome::NotThrottled);
                    tokio::task::yield_now().await;
                }
            });
        }
        budgets.push(budget);
    }
    let spent = || [0, 1].map(|index: usize| budgets[index].snapshot().spent);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = spent();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let after = spent();
    let parts = [after[0] - before[0], after[1] - before[1]];
    println!("weights 2 and 1 sent {parts:?} of 2400");
    assert!(parts[0] + parts[1] >= 2_200, "{parts:?}");
    assert!(parts[0] * 10 >= parts[1] * 17, "{parts:?}");
    assert!(parts[0] * 10 <= parts[1] * 23, "{parts:?}");
}

#[tokio::test]
async fn a_wait_ends_by_its_deadline_and_takes_nothing() {
    let _alone = alone();
    let fleet = Fleet::open("redis://127.0.0.1:1/").unwrap();
    let scope = fleet
        .scope("budget", 1_000, Duration::from_secs(1))
        .unwrap();
    let budget = scope.when_away(Away::Closed).join().unwrap();
    let began = Instant::now();
    let deadline = began + Duration::from_millis(100);
    let late = budget.acquire_before(deadline).await.unwrap_err();
    // Refused once the wait is longer than what is left: at the deadline, or sooner.
    assert!(Instant::now() + late.wait > deadline, "{late:?}");
    assert_eq!(budget.snapshot().spent, 0);
}

#[tokio::test]
async fn those_who_wait_are_served_in_their_order() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let budget = scope(&engine, 100).when_away(Away::Closed).join().unwrap();
    let (order, mut served) = tokio::sync::mpsc::unbounded_channel();
    for place in 0..20 {
        let (budget, order) = (budget.clone(), order.clone());
        tokio::spawn(async move {
            let _permit = budget.acquire().await;
            order.send(place).unwrap();
        });
    }
    let mut places = Vec::new();
    for _ in 0..20 {
        places.push(served.recv().await.unwrap());
    }
    assert_eq!(places, (0..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_a_strategy_sends_is_paid_from_the_budget_and_its_throttles_are_told() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let budget = leased(scope(&engine, 1_000)).await;
    let standard = FleetStrategy::new(Standard::new(), budget.clone());
    let adaptive = FleetStrategy::new(Adaptive::paced(), budget.clone());
    let mut sends = 0;
    let throttled = standard.run_async(|_| {
        sends += 1;
        let first = sends == 1;
        async move {
            if first {
                Err(Failure::throttling())
            } else {
                Ok(())
            }
        }
    });
    assert!(throttled.await.is_ok());
    assert!(
        adaptive
            .run_async(async |_| Ok::<_, Failure>(()))
            .await
            .is_ok()
    );
    tokio::time::sleep(Duration::from_millis(500)).await;
    let shown = budget.snapshot();
    assert_eq!((sends, shown.spent, shown.throttled), (2, 3, 1));
    assert!(shown.rate < 1_000_000, "{shown:?}");
}

#[tokio::test]
async fn the_last_handle_leaves_the_fleet_and_gives_back_what_it_holds() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let stays = leased(scope(&engine, 1_000)).await;
    let leaves = leased(scope(&engine, 1_000)).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(stays.snapshot().members, 2);
    let clone = leaves.clone();
    drop(leaves);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(stays.snapshot().members, 2);
    drop(clone);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(stays.snapshot().members, 1);
}
