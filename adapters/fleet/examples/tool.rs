//! A small command line tool that shares its limit with all its other runs on this machine.
//!
//! `cargo run --example tool -- 5` sends five requests. Start it several times at once: together
//! the runs send five requests a second, and none of them is throttled.

use std::io::Error;
use std::time::{Duration, Instant};

use paceline::Outcome;
use paceline_fleet::{Fleet, Standing};

/// The service that the tool calls: its client and its errors would be here.
async fn call() -> Outcome {
    tokio::time::sleep(Duration::from_millis(20)).await;
    Outcome::NotThrottled
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let requests: u32 = std::env::args().nth(1).map_or(Ok(3), |word| word.parse())?;
    // A folder of this user. For several users it is one that they all may write.
    let folder = std::env::temp_dir().join("paceline-example-tool");
    std::fs::create_dir_all(&folder)?;
    let began = Instant::now();
    let fleet = Fleet::local(folder.join("limits"))?;
    let budget = fleet
        .scope("the-service", 5, Duration::from_secs(1))?
        .join()?;
    for request in 1..=requests {
        let permit = budget.acquire().await;
        let outcome = call().await;
        budget.record(permit, outcome);
        println!("request {request} answered after {:?}", began.elapsed());
    }
    // A file that cannot be used is an error of `Fleet::local`. A file that fails later does not stop
    // the tool: it goes on alone, slowly, and says so.
    let shown = budget.snapshot();
    if let (true, Some(fault)) = (shown.standing != Standing::Leased, shown.fault) {
        return Err(Error::other(format!("the limit was not shared: {fault}")).into());
    }
    Ok(())
}
