//! Many processes and one allowance: each alone, and as a fleet.
//!
//! Starts a `redis-server` and a service that throttles, and lets the same processes send to it
//! under the published law, under the paced law, as a fleet that knows the limit, and as one that
//! was given two and a half times that and has to find out. Prints a table, draws who sent how much
//! (`fleet.svg` in the folder for builds), and fails unless the fleet stayed within the allowance
//! and used 97 % of it.
//!
//! `cargo run --release --example fleet -- [MEMBERS] [SECONDS]`: 8 and 10 by default.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    reason = "figures for people"
)]

mod chart;
#[path = "../../../../examples/common/columns.rs"]
mod columns;
#[path = "../../rig/mod.rs"]
mod rig;
#[path = "../../../../examples/common/scale.rs"]
mod scale;
#[path = "../../../../examples/common/svg.rs"]
mod svg;

use std::process::ExitCode;
use std::time::Duration;

use paceline_fleet::Away;
use rig::engine::Engine;
use rig::member::{Kind, Order, obey, order};
use rig::record::{Record, number};
use rig::service::{Limit, Service};

/// What the service allows, per second.
const LIMIT: u32 = 2_000;
/// What is left out of the figures: processes start, laws look for the limit.
const WARM_UP: Duration = Duration::from_secs(2);

/// What one way of sending came to.
#[derive(Debug)]
struct Run {
    name: &'static str,
    all: Record,
    measured: Record,
    span: Duration,
    steps: f64,
}

impl Run {
    fn used(&self) -> f64 {
        number(self.measured.delivered())
            / f64::from(LIMIT)
            / self.span.saturating_sub(WARM_UP).as_secs_f64()
    }

    fn row(&self, members: u8) -> Vec<String> {
        let per_thousand = self.steps / number(self.all.sent()).max(1.0) * 1_000.0;
        vec![
            self.name.to_owned(),
            format!("{:.1} %", self.used() * 100.0),
            format!("{:.2} %", self.measured.throttled_share() * 100.0),
            format!("{:.3}", self.measured.jain(members)),
            format!("{:.0}", self.all.excess(f64::from(LIMIT))),
            format!("{per_thousand:.0}"),
        ]
    }
}

/// Runs `members` processes for `span`.
async fn run(
    engine: &Engine,
    (name, kind, allowance): (&'static str, Kind, u32),
    members: u8,
    span: Duration,
) -> Run {
    engine.says("FLUSHALL").expect("the engine answers");
    let steps = engine.calls("evalsha");
    let service = Service::start(Limit {
        rate: f64::from(LIMIT),
        burst: f64::from(LIMIT) / 10.0,
        trip: Duration::from_millis(10),
    });
    let service = service.await;
    let start = |index| {
        let order = Order {
            allowance,
            // By default it would go on alone, and then no bound is without exception.
            away: Away::Closed,
            workers: 512 / u32::from(members),
            ..Order::new(kind, index, service.port(), engine.address(), span)
        };
        order.start(&[])
    };
    let processes: Vec<_> = (0..members).map(start).collect();
    tokio::time::sleep(span).await;
    let all = service.record();
    let steps = engine.calls("evalsha") - steps;
    drop(processes);
    Run {
        name,
        measured: all.within(WARM_UP, span),
        all,
        span,
        steps,
    }
}

/// Returns what is wrong with how the fleet did, if anything is.
fn verdict(fleet: &Run, members: u8) -> Option<String> {
    let limit = f64::from(LIMIT);
    // What the engine keeps, what members hold, and a token for each: see the crate's
    // documentation.
    let bound = limit * (0.1 + 0.2) + 2.0 * f64::from(members);
    let excess = fleet.all.excess(limit);
    if excess > bound {
        return Some(format!(
            "{excess:.0} above the allowance, {bound:.0} are within it"
        ));
    }
    let sent = number(fleet.all.sent());
    if sent > limit * fleet.span.as_secs_f64() {
        return Some(format!(
            "{sent} sent, more than the allowance of the whole run"
        ));
    }
    (fleet.used() < 0.97).then(|| format!("{:.1} % of the allowance used", fleet.used() * 100.0))
}

async fn all(members: u8, span: Duration) -> Result<(), String> {
    let engine = Engine::start(&[]).ok_or("without a redis-server there is no fleet")?;
    let ways = [
        ("published law, alone", Kind::PublishedAlone, LIMIT),
        ("paced law, alone", Kind::PacedAlone, LIMIT),
        ("fleet, told the limit", Kind::Fleet, LIMIT),
        ("fleet, told 2.5 times that", Kind::Fleet, LIMIT * 5 / 2),
    ];
    println!("{members} processes, {LIMIT}/s allowed in all, {span:?} each");
    let head = ["", "used", "throttled", "Jain", "above", "engine/1,000"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut runs = Vec::new();
    for way in ways {
        let run = run(&engine, way, members, span).await;
        rows.push(run.row(members));
        runs.push(run);
    }
    println!("\n{}\n", columns::lines(&rows).join("\n"));
    println!("above: the most by which any window exceeded the limit, in requests");
    println!("engine/1,000: scripts the engine ran for each 1,000 requests");
    let path = chart::write(&runs, members).map_err(|error| error.to_string())?;
    println!("who sent how much: {}", path.display());
    verdict(&runs[2], members).map_or(Ok(()), Err)
}

fn main() -> ExitCode {
    if let Some(order) = order() {
        obey(&order);
        return ExitCode::SUCCESS;
    }
    let argument = |place: usize| {
        std::env::args()
            .nth(place)
            .and_then(|word| word.parse::<u8>().ok())
    };
    let members = argument(1).unwrap_or(8).clamp(1, 64);
    let span = Duration::from_secs(u64::from(argument(2).unwrap_or(10).max(4)));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match runtime.block_on(all(members, span)) {
        Ok(()) => {
            println!("the fleet stayed within its allowance, and used it");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("failed: {why}");
            ExitCode::FAILURE
        }
    }
}
