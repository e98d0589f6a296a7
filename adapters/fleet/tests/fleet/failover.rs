//! Fail-overs in which connections stay: the old primary becomes a replica, and goes on answering.

use std::time::Duration;

use crate::rig::engine::Engine;
use crate::rig::proxy::Proxy;
use crate::scene::{Scene, bound};

/// How long healing may take: two seconds, and the half second that has to be full before it is
/// seen.
const HEALED: Duration = Duration::from_millis(2_500);

/// Lets a replica take over that last heard of the primary `behind` ago, while connections to the
/// old one stay.
async fn managed(behind: Duration) {
    let Some(mut scene) = Scene::set().await else {
        return;
    };
    let Some(replica) = Engine::start(&["--repl-diskless-sync-delay", "0"]) else {
        return;
    };
    let proxy = Proxy::to(scene.engine.port()).await;
    for index in 0..4 {
        let mut order = scene.order(index);
        order.engine = proxy.address();
        scene.start(&order);
    }
    scene.used_again(4).await;
    replica.follow(&scene.engine).await;
    replica.says("REPLICAOF NO ONE").expect("it answers");
    tokio::time::sleep(behind).await;
    proxy.turn_to(replica.port());
    let old = format!("REPLICAOF 127.0.0.1 {}", replica.port());
    scene.engine.says(&old).expect("it answers");
    let began = scene.service.now();
    let healed = loop {
        scene.pass(50).await;
        let took = scene.service.now().saturating_sub(began);
        if took > Duration::from_millis(500) && scene.last(500).used() >= 0.9 {
            break took;
        }
        assert!(
            took < HEALED,
            "used {} after {took:?}",
            scene.last(500).used()
        );
    };
    println!("a managed fail-over, {behind:?} behind: used again after {healed:.2?}");
    scene.used_again(4).await;
    scene.close("managed fail-over", 4, bound(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_managed_fail_over_heals_by_itself() {
    managed(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_does_one_to_a_replica_two_seconds_behind() {
    managed(Duration::from_secs(2)).await;
}
