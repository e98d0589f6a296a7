//! A member that sends as much as it may, to nowhere, and prints its metrics as Prometheus reads
//! them: to try what `OPERATIONS.md` says.
//!
//! `cargo run --release --example member -- redis://127.0.0.1:6379 orders 1000`: the address, the
//! scope, and what all may send per second. A number on the standard input changes that. Ctrl-C or
//! SIGTERM ends it, and it leaves the fleet.

use std::io::Error;
use std::time::Duration;

use paceline::Outcome;
use paceline_fleet::{Budget, BudgetSnapshot, Fleet};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const SECOND: Duration = Duration::from_secs(1);

async fn send(budget: Budget) {
    loop {
        let permit = budget.acquire().await;
        tokio::time::sleep(Duration::from_millis(10)).await; // the service
        budget.record(permit, Outcome::NotThrottled);
    }
}

/// The names and labels of `OPERATIONS.md`.
fn metrics(scope: &str, shown: &BudgetSnapshot) -> String {
    let labels = format!("scope=\"{scope}\",member=\"{}\"", shown.member);
    let fault = shown
        .fault
        .map_or("none".into(), |fault| format!("{fault:?}"));
    let fault = format!("{labels},fault=\"{fault}\"");
    let standing = format!("{labels},standing=\"{:?}\"", shown.standing);
    let lines = [
        ("spent_total", &labels, shown.spent),
        ("granted_total", &labels, shown.granted),
        ("expired_total", &labels, shown.expired),
        ("throttled_total", &labels, shown.throttled),
        ("asks_total", &labels, shown.asks),
        ("faults_total", &fault, shown.faults),
        ("allowance", &labels, shown.allowance / 1_000),
        ("rate", &labels, shown.rate / 1_000),
        ("share", &labels, shown.share / 1_000),
        ("demand", &labels, shown.demand / 1_000),
        ("members", &labels, shown.members.into()),
        ("held", &labels, shown.held.into()),
        ("shut", &labels, shown.shut.is_some().into()),
        ("knocks", &labels, shown.knocks.into()),
        ("standing", &standing, 1),
    ];
    let line = |(name, labels, value): (&str, &String, u64)| {
        format!("paceline_fleet_{name}{{{labels}}} {value}\n")
    };
    lines.map(line).concat()
}

/// Returns the allowances that come in, line by line.
fn allowances() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, scope, allowance] = &words[..] else {
        return Err(Error::other("ADDRESS SCOPE ALLOWANCE, please").into());
    };
    let fleet = Fleet::connect(address).await?;
    let budget = fleet.scope(scope, allowance.parse()?, SECOND)?.join()?;
    let mut workers = JoinSet::new();
    for _ in 0..100 {
        workers.spawn(send(budget.clone()));
    }
    let mut second = tokio::time::interval(SECOND);
    let mut told = allowances();
    let mut terminated = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            _ = second.tick() => println!("{}", metrics(scope, &budget.snapshot())),
            Some(allowance) = told.recv() => budget.set_allowance(allowance.trim().parse()?, SECOND)?,
            _ = tokio::signal::ctrl_c() => break,
            _ = terminated.recv() => break,
        }
    }
    // One that ends without a word may be cut off, for all that the others know.
    workers.shutdown().await;
    budget.leave().await;
    Ok(())
}
