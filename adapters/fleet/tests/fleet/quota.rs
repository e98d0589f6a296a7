//! One retry budget for several quotas.

use std::sync::Arc;
use std::time::{Duration, Instant};

use paceline::RetryQuota;
use paceline_fleet::{Away, Fleet};

use crate::rig::engine::Engine;
use crate::scene::alone;

async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[tokio::test]
async fn what_successes_pay_into_one_quota_pays_for_retries_of_another() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let fleet = Fleet::open(&engine.address()).unwrap();
    let quotas = [500, 500].map(|capacity| Arc::new(RetryQuota::new(capacity)));
    let join = |quota| {
        fleet
            .retry_budget("deploy", 1_000)
            .unwrap()
            .join(quota)
            .unwrap()
    };
    let [one, other] = [join(&quotas[0]), join(&quotas[1])];
    pass(300).await;
    // No member remembers the pool: it starts empty.
    assert_eq!((quotas[0].available(), quotas[1].available()), (0, 0));
    quotas[0].credit(400);
    // The other one has got nothing so far, and asks once a second by now.
    pass(1_500).await;
    let held = (quotas[0].available(), quotas[1].available());
    println!("of 400 paid into one: held {held:?}, {:?}", one.snapshot());
    assert_eq!(held, (50, 50));
    assert_eq!(one.snapshot().returned, 350);
    assert_eq!(
        (other.snapshot().granted, other.snapshot().members),
        (50, 2)
    );
    assert!(format!("{one:?}").starts_with("FleetRetryBudget(FleetRetrySnapshot { member: "));
    // What they should hold they hold: one ask in a second is enough.
    let calls = |engine: &Engine| {
        let stats = engine.says("INFO commandstats").unwrap();
        let calls = stats.split_once("evalsha:calls=").unwrap().1;
        calls.split(',').next().unwrap().parse::<u32>().unwrap()
    };
    let before = calls(&engine);
    pass(500).await;
    assert!(calls(&engine) <= before + 2);
    // What a member holds goes back when it leaves.
    drop(other);
    pass(300).await;
    let state = engine.says("HGET paceline:quota:v1:{deploy} s").unwrap();
    assert_eq!(state, "$3\r\n350\r\n");
}

#[tokio::test]
async fn the_pool_holds_no_more_than_its_capacity_and_the_members_no_more_than_they_may() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let fleet = Fleet::open(&engine.address()).unwrap();
    let quotas: Vec<_> = (0..5).map(|_| Arc::new(RetryQuota::new(500))).collect();
    let members: Vec<_> = quotas
        .iter()
        .map(|quota| {
            fleet
                .retry_budget("deploy", 100)
                .unwrap()
                .hold(20)
                .unwrap()
                .join(quota)
                .unwrap()
        })
        .collect();
    pass(200).await;
    for quota in &quotas {
        quota.credit(500);
    }
    pass(1_500).await;
    let held: u32 = quotas.iter().map(|quota| quota.available()).sum();
    let pool = members[0].snapshot();
    println!("of 2500 paid in: {held} held, {pool:?}");
    assert!(held <= 5 * 40 && pool.pool <= 100, "{held} held, {pool:?}");
}

#[tokio::test]
async fn one_that_leaves_right_after_an_ask_gives_back_and_is_gone() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let fleet = Fleet::open(&engine.address()).unwrap();
    let budget = || fleet.retry_budget("leaves", 1_000).unwrap();
    let quotas = [0, 1].map(|_| Arc::new(RetryQuota::new(500)));
    for quota in &quotas {
        drop(quota.try_acquire(500));
    }
    let stays = budget().hold(20).unwrap().join(&quotas[0]).unwrap();
    let leaves = budget().hold(20).unwrap().join(&quotas[1]).unwrap();
    let began = Instant::now();
    while leaves.snapshot().members == 0 {
        assert!(began.elapsed() < Duration::from_secs(5), "{leaves:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // It has asked just now, and has nothing to ask for until it looks again.
    quotas[1].credit(200);
    drop(leaves);
    let began = Instant::now();
    while stays.snapshot().members != 1 || stays.snapshot().pool + quotas[0].available() < 200 {
        assert!(began.elapsed() < Duration::from_secs(2), "{stays:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn without_the_engine_a_quota_is_left_alone_emptied_or_filled() {
    let _alone = alone();
    let fleet = Fleet::open("redis://127.0.0.1:1/").unwrap();
    for (away, left) in [(Away::Alone, 7), (Away::Closed, 0), (Away::Open, 500)] {
        let quota = Arc::new(RetryQuota::new(500));
        let member = fleet
            .retry_budget("deploy", 1_000)
            .unwrap()
            .when_away(away)
            .join(&quota)
            .unwrap();
        quota.credit(7);
        pass(500).await;
        assert_eq!(quota.available(), left, "{away:?}");
        assert!(member.snapshot().fault.is_some());
    }
}

#[tokio::test]
async fn a_fault_is_shown_until_the_next_answer() {
    let _alone = alone();
    let Some(mut engine) = Engine::start(&[]) else {
        return;
    };
    let fleet = Fleet::open(&engine.address()).unwrap();
    let quota = Arc::new(RetryQuota::new(500));
    let member = fleet.retry_budget("deploy", 1_000).unwrap().join(&quota);
    let member = member.unwrap();
    let shows = async |fault: bool| {
        let began = Instant::now();
        while member.snapshot().members != 1 || member.snapshot().fault.is_some() != fault {
            assert!(began.elapsed() < Duration::from_secs(10), "{member:?}");
            pass(10).await;
        }
    };
    shows(false).await;
    engine.stop();
    shows(true).await;
    engine.start_again();
    shows(false).await;
    assert!(member.snapshot().faults > 0);
}
