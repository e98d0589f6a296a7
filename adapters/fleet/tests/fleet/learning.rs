//! What one member learns, all know.

use std::time::{Duration, Instant};

use crate::rig::engine::Engine;
use crate::rig::member::{Kind, Order};
use crate::rig::record::number;
use crate::rig::service::{Limit, Service};
use crate::scene::alone;

/// Four members that are told an allowance of which the service gives a half, and later a quarter.
#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_finds_a_limit_below_its_allowance_and_follows_it() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let limit = Limit {
        rate: 1_000.0,
        burst: 100.0,
        trip: Duration::from_millis(5),
    };
    let service = Service::start(limit).await;
    let arguments = ["--exact", "member", "--ignored", "--nocapture"];
    let start = |index| {
        let order = Order {
            allowance: 2_000,
            workers: 16,
            ..Order::new(
                Kind::Fleet,
                index,
                service.port(),
                engine.address(),
                Duration::from_secs(150),
            )
        };
        order.start(&arguments)
    };
    let _members: Vec<_> = (0..4).map(start).collect();
    // A law takes seconds to find a limit. Others compete for these processors: it has a minute.
    let found = async |rate: f64| {
        let began = Instant::now();
        loop {
            let from = service.now();
            tokio::time::sleep(Duration::from_secs(4)).await;
            let record = service.record().within(from, service.now());
            let span = service.now().saturating_sub(from).as_secs_f64();
            let used = number(record.delivered()) / rate / span;
            let (throttled, jain) = (record.throttled_share(), record.jain(4));
            let took = began.elapsed();
            if used >= 0.9 && throttled <= 0.03 && jain >= 0.97 {
                println!(
                    "{rate}/s of 2000/s: used {used:.3}, throttled {throttled:.4}, Jain {jain:.3} after {took:.0?}"
                );
                return;
            }
            assert!(
                took < Duration::from_secs(60),
                "used {used}, throttled {throttled}, Jain {jain}"
            );
        }
    };
    found(1_000.0).await;
    service.allow(500.0);
    found(500.0).await;
}
