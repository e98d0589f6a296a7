//! Members far from the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use paceline_fleet::Fleet;

use crate::rig::engine::Engine;
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
