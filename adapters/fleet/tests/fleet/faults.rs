//! What goes wrong on purpose, and what it costs.
//!
//! The bounds hold by construction, however busy the machine is. What is used again is waited for,
//! and how long that took is printed.

use std::time::Duration;

use paceline_fleet::Away;

use crate::rig::engine::Engine;
use crate::rig::proxy::Proxy;
use crate::scene::{ALLOWANCE, ALONE, RECOVERY, Scene, bound};

/// How long the engine is away: with `FLEET_LONG` as long as in the field.
fn outage() -> u64 {
    if std::env::var_os("FLEET_LONG").is_some() {
        10_000
    } else {
        3_000
    }
}

fn start_all(scene: &mut Scene, away: Away) {
    for index in 0..4 {
        let mut order = scene.order(index);
        order.away = away;
        scene.start(&order);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_and_sixteen_members_use_the_allowance_in_equal_parts() {
    for members in [2, 16] {
        let Some(mut scene) = Scene::set().await else {
            return;
        };
        scene.start_many(members);
        let (_, took) = scene.used_again(members).await;
        let steady = scene.steady().await;
        let jain = steady.record.jain(members);
        println!(
            "no fault, {members} members: after {took:.1?}, for 8 s used {:.3}, Jain {jain:.3}",
            steady.used()
        );
        assert!(steady.used() >= 0.95, "used {}", steady.used());
        scene.close(&format!("{members} members"), members, 0.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_killed_in_the_middle_of_a_lease_leaves_its_share_to_the_others() {
    let Some(mut scene) = Scene::set().await else {
        return;
    };
    start_all(&mut scene, Away::Closed);
    scene.used_again(4).await;
    let killed = scene.members.pop().expect("there are four");
    killed.signal("-KILL");
    scene.pass(1_000).await;
    scene.used_again(3).await;
    scene.close("killed", 4, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_member_wakes_up_with_nothing_to_spend() {
    let Some(mut scene) = Scene::set().await else {
        return;
    };
    start_all(&mut scene, Away::Closed);
    scene.used_again(4).await;
    scene.members[3].signal("-STOP");
    scene.pass(10_000).await;
    let without = scene.last(1_000);
    scene.members[3].signal("-CONT");
    scene.pass(200).await;
    let woken = scene.last(200).of(3);
    let (used, its) = (without.used(), without.of(3));
    println!(
        "stopped for 10 s: the others used {used:.3}; woken, it sent {woken:.3} of the allowance in 200 ms"
    );
    assert!(its < 0.001, "stopped, it sent {its}");
    // What it held is dead; what it sends it was granted since, and no more than its hold.
    assert!(woken < 1.0, "woken, it sent {woken}");
    scene.used_again(4).await;
    scene.close("stopped", 4, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_engine_members_go_on_alone_and_come_back_without_a_burst() {
    let Some(mut scene) = Scene::set().await else {
        return;
    };
    start_all(&mut scene, Away::Alone);
    scene.used_again(4).await;
    scene.engine.stop();
    scene.pass(outage()).await;
    let alone = scene.last(1_000).used();
    scene.engine.start_again();
    println!("engine restarted: used {alone:.3} alone");
    assert!((0.5..=1.2).contains(&alone), "used {alone} alone");
    scene.pass(1_000).await;
    scene.used_again(4).await;
    scene.close("engine restarted", 4, ALONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_engine_a_closed_scope_sends_nothing() {
    let Some(mut scene) = Scene::set().await else {
        return;
    };
    start_all(&mut scene, Away::Closed);
    scene.used_again(4).await;
    scene.engine.stop();
    scene.pass(outage()).await;
    let closed = scene.last(1_500).used();
    scene.engine.start_again();
    println!("closed: used {closed:.3} without the engine");
    assert!(closed < 0.001, "used {closed} without the engine");
    scene.used_again(4).await;
    // An engine that forgot: no more than what it keeps, and a lease each, a second time.
    scene.close("closed", 4, bound(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_scope_is_open_without_the_engine_and_closed_with_it() {
    let Some(mut scene) = Scene::set().await else {
        return;
    };
    start_all(&mut scene, Away::Open);
    scene.used_again(4).await;
    scene.engine.stop();
    scene.pass(outage()).await;
    let open = scene.last(1_000).used();
    scene.engine.start_again();
    scene.pass(2_000).await;
    scene.used_again(4).await;
    let back = scene.last(1_000).used();
    println!("open: used {open:.3} without the engine, {back:.3} with it");
    assert!(open > 1.5 && back < 1.5, "used {open}, then {back}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_engine_is_an_engine_that_is_away() {
    let Some(mut scene) = Scene::set().await else {
        return;
    };
    start_all(&mut scene, Away::Alone);
    scene.used_again(4).await;
    let pause = format!("CLIENT PAUSE {} ALL", outage());
    assert_eq!(scene.engine.says(&pause).ok().as_deref(), Some("+OK\r\n"));
    scene.pass(outage()).await;
    let paused = scene.last(1_000).used();
    println!("engine paused: used {paused:.3} meanwhile");
    assert!((0.5..=1.2).contains(&paused), "used {paused} meanwhile");
    scene.pass(1_000).await;
    scene.used_again(4).await;
    scene.close("engine paused", 4, ALONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_cut_off_adds_no_more_than_its_last_share() {
    for away in [Away::Closed, Away::Alone] {
        let Some(mut scene) = Scene::set().await else {
            return;
        };
        let proxy = Proxy::to(scene.engine.port()).await;
        scene.start_many(3);
        let mut order = scene.order(3);
        (order.engine, order.away) = (proxy.address(), away);
        scene.start(&order);
        scene.used_again(4).await;
        let began = scene.service.now();
        proxy.cut();
        scene.pass(outage() + 1_000).await;
        let cut = scene.last(1_000);
        let (used, its) = (cut.used(), cut.of(3));
        proxy.join();
        println!("cut off, {away:?}: used {used:.3}, of it {its:.3} by that member");
        assert!(its < if away == Away::Alone { 0.35 } else { 0.001 });
        let seconds = scene.service.now().saturating_sub(began).as_secs_f64() + 1.0;
        scene.used_again(4).await;
        let share = if away == Away::Alone { 350.0 } else { 0.0 };
        scene.close("cut off", 4, share * seconds);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_takes_over_without_a_burst() {
    let Some(mut scene) = Scene::set().await else {
        return;
    };
    let now = ["--repl-diskless-sync-delay", "0"];
    let Some(replica) = Engine::start(&now) else {
        return;
    };
    replica.follow(&scene.engine).await;
    let proxy = Proxy::to(scene.engine.port()).await;
    for index in 0..4 {
        let mut order = scene.order(index);
        order.engine = proxy.address();
        scene.start(&order);
    }
    scene.used_again(4).await;
    proxy.cut();
    scene.engine.stop();
    replica.says("REPLICAOF NO ONE").expect("it answers");
    proxy.turn_to(replica.port());
    proxy.join();
    scene.pass(1_000).await;
    scene.used_again(4).await;
    scene.close("fail-over", 4, bound(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_an_hour_ahead_changes_nothing() {
    let Some(mut scene) = Scene::set().await else {
        return;
    };
    scene.start_many(3);
    let mut order = scene.order(3);
    order.ahead = Duration::from_secs(3_600);
    scene.start(&order);
    scene.used_again(4).await;
    scene.close("an hour ahead", 4, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_sick_member_costs_at_most_its_share() {
    let Some(mut scene) = Scene::set().await else {
        return;
    };
    start_all(&mut scene, Away::Closed);
    scene.used_again(4).await;
    scene.service.make_sick(Some(3));
    scene.pass(5_000).await;
    scene.pass(10_000).await;
    let used = scene.last(10_000).used();
    println!("one of four throttled on all requests: the others used {used:.3} in seconds 5 to 15");
    assert!(used >= 0.95, "used {used}");
    scene.service.make_sick(None);
    let (_, took) = scene.used_again(4).await;
    println!("well again, it had its part after {took:.1?}");
    scene.close("one sick member", 4, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_20_s_of_throttling_for_all_the_fleet_is_back_in_a_quarter_of_that() {
    let Some(mut scene) = Scene::set().await else {
        return;
    };
    start_all(&mut scene, Away::Closed);
    scene.used_again(4).await;
    // What was shut for longer than it was open before may be a window.
    scene.pass(22_000).await;
    scene.service.allow(0.0);
    scene.pass(20_000).await;
    let throttled = scene.last(5_000).record.throttled();
    scene.service.allow(f64::from(ALLOWANCE) * 10.0);
    let began = scene.service.now();
    let back = loop {
        scene.pass(50).await;
        let took = scene.service.now().saturating_sub(began);
        if took > Duration::from_millis(500) && scene.last(500).used() >= 0.95 {
            break took;
        }
        assert!(
            // A knock comes a quarter later than the last one. Then there is a second of ramp, and
            // the half second that has to be full before it is seen.
            took < Duration::from_millis(6_500),
            "used {} after {took:?}",
            scene.last(500).used()
        );
    };
    println!("throttled for 20 s, at last {throttled} in 5 s: back at 0.95 after {back:.1?}");
    scene.used_again(4).await;
    scene.close("throttled for 20 s", 4, 0.0);
}

/// Half of the members end in an outage, and new ones take their place that have never seen the
/// engine.
async fn half_restarted(safe: u32) -> f64 {
    let Some(mut scene) = Scene::set().await else {
        return f64::NAN;
    };
    start_all(&mut scene, Away::Alone);
    scene.used_again(4).await;
    scene.engine.stop();
    scene.pass(outage()).await;
    scene.members.truncate(2);
    for index in 2..4 {
        let mut order = scene.order(index);
        (order.away, order.safe) = (Away::Alone, safe);
        scene.start(&order);
    }
    scene.pass(outage()).await;
    let used = scene.last(2_000).used();
    println!("half restarted in an outage, safe rate {safe}/s: used {used:.3}");
    scene.engine.start_again();
    scene.pass(1_000).await;
    scene.used_again(4).await;
    scene.close("half restarted in an outage", 4, ALONE);
    used
}

#[tokio::test(flavor = "multi_thread")]
async fn members_started_in_an_outage_send_their_safe_rate() {
    // Two last shares of a quarter, and two floors of half a token a second.
    let used = half_restarted(0).await;
    assert!(used.is_nan() || (0.4..=0.6).contains(&used), "used {used}");
    // The allowance by the number of members.
    let used = half_restarted(ALLOWANCE / 4).await;
    assert!(used.is_nan() || (0.9..=1.1).contains(&used), "used {used}");
}

/// Half of the members see a promoted replica, and the other half the old primary, which goes on
/// unless it is `fenced`.
async fn split(fenced: bool) {
    let Some(mut scene) = Scene::set().await else {
        return;
    };
    let Some(replica) = Engine::start(&["--repl-diskless-sync-delay", "0"]) else {
        return;
    };
    replica.follow(&scene.engine).await;
    let fence = format!("CONFIG SET min-replicas-to-write {}", u8::from(fenced));
    assert_eq!(scene.engine.says(&fence).ok().as_deref(), Some("+OK\r\n"));
    let proxy = Proxy::to(scene.engine.port()).await;
    for index in 0..4 {
        let mut order = scene.order(index);
        if index > 1 {
            order.engine = proxy.address();
        }
        scene.start(&order);
    }
    scene.used_again(4).await;
    proxy.cut();
    replica.says("REPLICAOF NO ONE").expect("it answers");
    proxy.turn_to(replica.port());
    scene.pass(100).await;
    proxy.join();
    scene.pass(outage() + 2_000).await;
    let used = scene.last(1_000).used();
    println!("two engines, the old primary fenced: {fenced}: used {used:.3}");
    let engines = if fenced { 1 } else { 2 };
    let fleets = f64::from(engines);
    assert!((0.9..=1.1).contains(&(used / fleets)), "used {used}");
    proxy.cut();
    let order = "CONFIG SET min-replicas-to-write 0";
    scene.engine.says(order).expect("it answers");
    scene.pass(100).await;
    proxy.turn_to(scene.engine.port());
    proxy.join();
    scene.pass(1_000).await;
    scene.used_again(4).await;
    let last = scene.last(1_000).used();
    assert!(last <= 1.2, "used {last} after the split");
    // While the fence comes up both grant what they keep, and a lease for each.
    let more = if fenced { bound(4) } else { 0.0 };
    scene.close_engines(engines, "two engines", 4, more);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_engines_that_take_writes_are_two_fleets() {
    split(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_primary_without_replicas_stops_if_it_is_told_to() {
    split(true).await;
}

/// Empties the engine every so many milliseconds.
async fn emptied(every: u64) {
    let Some(mut scene) = Scene::set().await else {
        return;
    };
    start_all(&mut scene, Away::Alone);
    scene.used_again(4).await;
    let began = scene.service.now();
    let (lasts, longest) = (Duration::from_millis(outage() + 2_000), 2 * RECOVERY);
    let mut times = 0;
    let used = loop {
        scene.engine.says("FLUSHALL").expect("it answers");
        times += 1;
        scene.pass(every).await;
        let (used, took) = (
            scene.last(outage() + 500).used(),
            scene.service.now().saturating_sub(began),
        );
        // A busy machine takes longer, and sends late what it sends.
        if took >= lasts && (0.9..=1.2).contains(&used) {
            break used;
        }
        assert!(took < longest, "used {used} after {took:?}");
    };
    println!("emptied every {every} ms, {times} times: used {used:.3}");
    scene.pass(1_000).await;
    scene.used_again(4).await;
    scene.close(&format!("emptied every {every} ms"), 4, ALONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_emptied_faster_than_the_asks_is_away() {
    emptied(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_emptied_more_slowly_than_the_asks_is_away() {
    // A busy member asks each 100 ms.
    for every in [50, 150, 500, 1_000] {
        emptied(every).await;
    }
}
