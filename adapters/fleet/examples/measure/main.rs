//! What a fleet costs: a healthy request with and without it, and what the engine has to do.
//!
//! `cargo run --release --example measure`
#![expect(
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "figures for people"
)]

#[path = "../../rig/mod.rs"]
mod rig;

use std::sync::Arc;
use std::time::{Duration, Instant};

use paceline::{
    Clock, ControlLaw, MonotonicClock, Outcome, SendRate, Timestamp, law::PacedSettings,
};
use paceline_fleet::{Budget, Fleet};
use rig::engine::Engine;

const SECOND: Duration = Duration::from_secs(1);
/// Requests that are timed together.
const BATCH: u32 = 1_000;
const BATCHES: usize = 2_000;

/// Returns the median time of a request, in nanoseconds, over batches in which all were let go.
fn healthy(clock: &dyn Clock, mut request: impl FnMut(Timestamp) -> bool) -> f64 {
    let mut times = Vec::with_capacity(BATCHES);
    while times.len() < BATCHES {
        let began = Instant::now();
        let granted = (0..BATCH).all(|_| request(clock.now()));
        let time = began.elapsed();
        if granted {
            times.push(time.as_nanos() as f64 / f64::from(BATCH));
        } else {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    times.sort_by(f64::total_cmp);
    times[BATCHES / 2]
}

async fn requests(engine: &Engine) {
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
    let alone = |rate: &SendRate| {
        healthy(&*clock, |now| {
            let permit = rate.try_acquire(now);
            permit.is_ok_and(|permit| {
                rate.record(now, permit, Outcome::NotThrottled);
                true
            })
        })
    };
    let unlimited = alone(&SendRate::new(ControlLaw::Paced, clock.now()));
    let ceiling = PacedSettings::builder()
        .ceiling(1_000_000_000, SECOND)
        .build()
        .expect("in range");
    let limited = alone(&SendRate::paced(ceiling, clock.now()));
    let fleet = Fleet::open(&engine.address()).expect("an address");
    let scope = fleet
        .scope("cost", 1_000_000_000, SECOND)
        .expect("in range");
    let budget = scope.clock(Arc::clone(&clock)).join().expect("a runtime");
    let _first = budget.acquire().await;
    let leased = {
        let (budget, clock) = (budget.clone(), Arc::clone(&clock));
        let timed = tokio::task::spawn_blocking(move || {
            healthy(&*clock, |now| {
                let permit = budget.try_acquire(now);
                permit.is_ok_and(|permit| {
                    budget.record(permit, Outcome::NotThrottled);
                    true
                })
            })
        });
        timed.await.expect("it returns")
    };
    println!("a request, acquire and record, one thread, the clock included, median:");
    println!("  no fleet, not limited yet   {unlimited:6.1} ns");
    println!("  no fleet, with a ceiling    {limited:6.1} ns");
    println!("  fleet                       {leased:6.1} ns");
}

/// One member of a crowd, which sends `rate` requests per second for `span`, and returns how many
/// were let go.
async fn send(budget: Budget, rate: u32, span: Duration) -> u64 {
    let mut sent = 0;
    let each = Duration::from_millis(20);
    let end = Instant::now() + span;
    let mut beat = tokio::time::interval(each);
    while Instant::now() < end {
        beat.tick().await;
        let now = budget.clock().now();
        let wanted = rate / 50;
        let granted = |_: &u32| budget.try_acquire(now).is_ok();
        sent += (0..wanted).take_while(granted).count() as u64;
    }
    sent
}

async fn crowd(engine: &Engine, members: u32, rate: u32, lease: Duration) {
    let fleets: Vec<_> = (0..4)
        .map(|_| Fleet::open(&engine.address()).expect("an address"))
        .collect();
    let span = Duration::from_secs(6);
    let scope = format!("crowd-{}", lease.as_millis());
    let mut budgets = Vec::new();
    for index in 0..members {
        let fleet = &fleets[index as usize % fleets.len()];
        let scope = fleet
            .scope(&scope, members * rate * 5 / 4, SECOND)
            .expect("in range");
        budgets.push(
            scope
                .lease(lease)
                .expect("in range")
                .join()
                .expect("a runtime"),
        );
    }
    let sending: Vec<_> = budgets
        .iter()
        .map(|budget| tokio::spawn(send(budget.clone(), rate, span)))
        .collect();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (began, steps, used) = (Instant::now(), engine.calls("evalsha"), engine.processor());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let seconds = began.elapsed().as_secs_f64();
    let (steps, used) = (
        (engine.calls("evalsha") - steps) / seconds,
        (engine.processor() - used) / seconds,
    );
    let mut sent = 0;
    for member in sending {
        sent += member.await.expect("it returns");
    }
    let faults: u64 = budgets.iter().map(|budget| budget.snapshot().faults).sum();
    let sent = sent as f64 / span.as_secs_f64();
    println!(
        "{members} members x {rate} requests/s, leases of {lease:?}: {sent:.0} requests/s let go, {steps:.0} steps/s,"
    );
    println!(
        "  {:.1} per 1,000 requests, {:.0} % of a core at the engine, {:.1} us each; {faults} asks in vain",
        steps / sent * 1_000.0,
        used * 100.0,
        used / steps * 1e6
    );
}

/// Asks as fast as the engine answers, for members of one scope.
async fn limit(engine: &Engine, members: u64) {
    let script = redis::Script::new(include_str!("../../src/step.lua"));
    let client = redis::Client::open(engine.address()).expect("an address");
    let mut asking = Vec::new();
    let (began, used) = (Instant::now(), engine.processor());
    let end = began + Duration::from_secs(3);
    for lane in 0..32 {
        let mut connection = client
            .get_multiplexed_async_connection()
            .await
            .expect("it answers");
        let script = script.clone();
        asking.push(tokio::spawn(async move {
            let mut steps = 0_u64;
            while Instant::now() < end {
                let member = format!("{lane}-{}", steps % (members / 32).max(1));
                let words = format!(
                    "{} 0 10 0 0 5000 10 0 0 0 0 1000000 1000000 1 100000 200000 2000000 600000",
                    steps + 1
                );
                let mut step = script.key(format!("limit-{members}"));
                step.arg(member).arg(words);
                let answer: Vec<i64> = step.invoke_async(&mut connection).await.expect("a step");
                steps += u64::from(answer.len() == 4);
            }
            steps
        }));
    }
    let mut steps = 0;
    for lane in asking {
        steps += lane.await.expect("it returns");
    }
    let (seconds, used) = (began.elapsed().as_secs_f64(), engine.processor() - used);
    let each = used / steps as f64 * 1e6;
    println!(
        "the engine at its limit, {members} members in one scope: {:.0} steps/s, {each:.1} us of processor each;",
        steps as f64 / seconds
    );
    println!("  one core alone would do {:.0}/s", 1e6 / each);
}

#[tokio::main]
async fn main() {
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    requests(&engine).await;
    for members in [32, 1_000] {
        limit(&engine, members.max(32)).await;
    }
    crowd(&engine, 1_000, 1_000, Duration::from_millis(200)).await;
    crowd(&engine, 1_000, 1_000, Duration::from_secs(1)).await;
}
