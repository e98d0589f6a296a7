//! Members far from the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use paceline_fleet::{Fleet, Scope};

use crate::rig::engine::Engine;
use crate::rig::parts::{Members, figures};
use crate::rig::proxy::Proxy;
use crate::scene::{Scene, alone};

#[tokio::test(flavor = "multi_thread")]
async fn members_far_away_use_the_allowance() {
    for millis in [10, 100, 250, 600] {
        let Some(mut scene) = Scene::set().await else {
            return;
        };
        let round_trip = Duration::from_millis(millis);
        let proxy = Proxy::far(scene.engine.port(), round_trip).await;
        for index in 0..4 {
            let mut order = scene.order(index);
            order.engine = proxy.address();
            scene.start(&order);
        }
        let (_, took) = scene.used_again(4).await;
        scene.pass(4_000).await;
        let used = scene.last(4_000).used();
        println!("a round trip of {round_trip:?}: after {took:.1?}, then used {used:.3}");
        assert!(used >= 0.95, "used {used} at {round_trip:?}");
        // What is stated: the lease grows by two round trips, and what the engine keeps by one.
        let more = 3.0 * round_trip.as_secs_f64() * 1_000.0;
        scene.close("far away", 4, more);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_lease_wastes_nothing() {
    let _alone = alone();
    for millis in [200, 500, 1_000] {
        let Some(engine) = Engine::start(&[]) else {
            return;
        };
        let taken = Arc::new(AtomicU32::new(0));
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let fleet = Fleet::open(&engine.address()).unwrap();
                let scope = fleet.scope("long", 1_000, Duration::from_secs(1)).unwrap();
                let scope = scope.lease(Duration::from_millis(millis)).unwrap();
                let (budget, taken) = (scope.join().unwrap(), Arc::clone(&taken));
                tokio::spawn(async move {
                    loop {
                        let _permit = budget.acquire().await;
                        taken.fetch_add(1, Relaxed);
                    }
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_secs(3)).await;
        let (began, before) = (Instant::now(), taken.load(Relaxed));
        tokio::time::sleep(Duration::from_secs(5)).await;
        let got = f64::from(taken.load(Relaxed) - before) / 1_000.0;
        let used = got / began.elapsed().as_secs_f64();
        println!("leases of {millis} ms: used {used:.3}");
        for worker in workers {
            worker.abort();
        }
        assert!(used >= 0.95, "used {used} with leases of {millis} ms");
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// Returns a scope that all members of a test share.
fn shared(address: &str, lease: Duration) -> Scope {
    let scope = Fleet::open(address).and_then(|fleet| fleet.scope("shared", 1_000, SECOND));
    scope
        .and_then(|scope| scope.lease(lease))
        .expect("in range")
}

const LEASE: Duration = Duration::from_millis(200);

#[tokio::test(flavor = "multi_thread")]
async fn members_near_and_far_have_their_parts() {
    let _alone = alone();
    for (near, far, millis) in [(8, 8, 200), (12, 4, 250)] {
        let Some(engine) = Engine::start(&[]) else {
            return;
        };
        let proxy = Proxy::far(engine.port(), Duration::from_millis(millis)).await;
        let addresses = [vec![engine.address(); near], vec![proxy.address(); far]].concat();
        let scopes = addresses.iter().map(|address| shared(address, LEASE));
        let mut members = Members::join(1_000, scopes.collect()).await;
        let [used, worst, jain] = figures(&members.parts(8 * SECOND).await);
        println!(
            "{near} near, {far} at {millis} ms: used {used:.3}, worst {worst:.3}, Jain {jain:.4}"
        );
        assert!(used >= 0.97 && worst >= 0.9, "used {used}, worst {worst}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_use_the_allowance_whatever_each_answer_takes() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let jitter = Duration::from_millis(200);
    let proxy = Proxy::shaky(engine.port(), Duration::ZERO, jitter).await;
    let scopes = (0..8).map(|_| shared(&proxy.address(), LEASE));
    let mut members = Members::join(1_000, scopes.collect()).await;
    let [used, worst, jain] = figures(&members.parts(8 * SECOND).await);
    println!("0 to 200 ms each way: used {used:.3}, worst {worst:.3}, Jain {jain:.4}");
    assert!(used >= 0.97 && jain >= 0.97, "used {used}, Jain {jain}");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_with_leases_of_two_lengths_have_their_parts() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let scope = |lease| shared(&engine.address(), lease);
    let scopes = (0..8).map(|index| scope(if index < 4 { SECOND } else { LEASE }));
    let mut members = Members::join(1_000, scopes.collect()).await;
    let [used, worst, jain] = figures(&members.parts(8 * SECOND).await);
    println!("leases of 1 s and 200 ms: used {used:.3}, worst {worst:.3}, Jain {jain:.4}");
    assert!(used >= 0.97 && worst >= 0.9, "used {used}, worst {worst}");
    // They change over, one after the other.
    for index in 0..8 {
        members
            .replace(index, scope(if index < 4 { LEASE } else { SECOND }))
            .await;
        let [used, worst, _] = figures(&members.parts(SECOND).await);
        println!("{index} changed: used {used:.3}, worst {worst:.3}");
        assert!(worst >= 0.3, "{index}: used {used}, worst {worst}");
    }
    let [used, worst, _] = figures(&members.parts(8 * SECOND).await);
    assert!(used >= 0.97 && worst >= 0.9, "used {used}, worst {worst}");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_far_away_have_a_token_soon() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let proxy = Proxy::far(engine.port(), LEASE).await;
    let began = Instant::now();
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let budget = shared(&proxy.address(), LEASE).join().unwrap();
            tokio::spawn(async move {
                let _permit = budget.acquire().await;
                (began.elapsed(), budget)
            })
        })
        .collect();
    let mut waited = Vec::new();
    for waiting in waiting {
        waited.push(waiting.await.unwrap().0);
    }
    let longest = waited.iter().max().unwrap();
    println!("a round trip of {LEASE:?}: each has a token after {longest:.2?}");
    // A trip each to connect, to greet, to load, to join, and to have what was minted since.
    assert!(*longest < 7 * LEASE, "{waited:?}");
}
