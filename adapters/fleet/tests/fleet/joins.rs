//! A thousand members.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use paceline_fleet::{Away, Budget, Fleet};

use crate::rig::engine::Engine;
use crate::rig::record::number;
use crate::scene::{Scene, alone};

const MEMBERS: usize = 1_000;
const ALLOWANCE: u32 = 5_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_members_that_join_in_a_second_share_the_allowance() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let fleets: Vec<Fleet> = (0..4)
        .map(|_| Fleet::open(&engine.address()).unwrap())
        .collect();
    let counts: Arc<Vec<AtomicU64>> = Arc::new((0..MEMBERS).map(|_| AtomicU64::new(0)).collect());
    let began = Instant::now();
    let mut members = Vec::new();
    let mut budgets = Vec::new();
    for index in 0..MEMBERS {
        let scope = fleets[index % 4]
            .scope("crowd", ALLOWANCE, Duration::from_secs(1))
            .unwrap();
        // All in one process of a test that others compete with: it may be slow to hear an answer.
        let scope = scope.lease(Duration::from_secs(1)).unwrap();
        let scope = scope.patience(Duration::from_secs(2)).unwrap();
        let budget = scope.when_away(Away::Closed).join().unwrap();
        budgets.push(budget.clone());
        members.push(tokio::spawn(spend(budget, Arc::clone(&counts), index)));
        tokio::time::sleep_until(
            (began + Duration::from_millis(u64::try_from(index).unwrap())).into(),
        )
        .await;
    }
    let told = counted(&counts);
    // What they use is a matter of processors too, so that they have time for it; what they may is
    // not.
    let (mut used, mut jain, mut before) = (0.0, 0.0, told);
    while (used < 0.9 || jain < 0.9) && began.elapsed() < Duration::from_secs(150) {
        let from = Instant::now();
        tokio::time::sleep(Duration::from_secs(4)).await;
        let after = counted(&counts);
        let got: Vec<f64> = after.iter().zip(&before).map(|(a, b)| a - b).collect();
        let sum: f64 = got.iter().sum();
        jain = sum * sum / (number(MEMBERS) * got.iter().map(|x| x * x).sum::<f64>());
        used = sum / f64::from(ALLOWANCE) / from.elapsed().as_secs_f64();
        before = after;
    }
    let minted = f64::from(ALLOWANCE) * began.elapsed().as_secs_f64();
    let share = counted(&counts).iter().sum::<f64>() / minted;
    let passed = began.elapsed();
    println!(
        "1000 members: after {passed:.1?} used {used:.3}, Jain {jain:.3}; from the start {share:.3} of the allowance"
    );
    let shown: Vec<_> = budgets.iter().map(Budget::snapshot).collect();
    let (asks, faults) = shown
        .iter()
        .fold((0, 0), |(a, f), s| (a + s.asks, f + s.faults));
    println!("1000 members: {asks} asks, {faults} of them in vain");
    for member in members {
        member.abort();
    }
    // From an empty start the engine never grants more than was minted.
    assert!(share <= 1.0, "granted {share}");
    assert!(used >= 0.9, "used {used}");
    assert!(jain >= 0.9, "Jain {jain}");
}

#[tokio::test]
async fn a_hundred_processes_share_the_allowance() {
    let Some(mut scene) = Scene::set().await else {
        return;
    };
    scene.start_many(100);
    let (_, took) = scene.used_again(100).await;
    let (steps, began) = (scene.engine.calls("evalsha"), Instant::now());
    let seen = scene.steady().await;
    let steps = (scene.engine.calls("evalsha") - steps) / began.elapsed().as_secs_f64();
    // What a hundred processes use from then on is a matter of processors.
    println!(
        "100 processes: used after {took:.1?}; then {:.3}, Jain {:.3}, {steps:.0} steps a second",
        seen.used(),
        seen.record.jain(100)
    );
    assert!(steps <= 5_500.0, "{steps} steps a second");
    scene.close("100 processes", 100, 0.0);
}

fn counted(counts: &[AtomicU64]) -> Vec<f64> {
    let count = |count: &AtomicU64| number(usize::try_from(count.load(Ordering::Relaxed)).unwrap());
    counts.iter().map(count).collect()
}

async fn spend(budget: Budget, counts: Arc<Vec<AtomicU64>>, index: usize) {
    loop {
        let _permit = budget.acquire().await;
        counts[index].fetch_add(1, Ordering::Relaxed);
    }
}
