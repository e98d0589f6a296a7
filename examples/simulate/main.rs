//! Plays the limiters against services in virtual time, and prints what became of it.
//!
//! `cargo run --release --example simulate -- --scenario all [--seed 1] [--law Aws]`
//!
//! `all` leaves the scenes of ten thousand clients to be asked for by name: `--scenario internet`. The same
//! seed gives the same numbers on any machine: times are integer nanoseconds, and floating point is for printing.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    reason = "an example: its numbers are small, and for people to read"
)]

extern crate alloc;

mod law;
mod queue;
mod scene;
mod scenes;
mod service;
mod tally;
mod world;

use std::process::ExitCode;

use law::{AwsAsking, AwsInLine, Backoff, Law, Nothing, Told};
use scene::Scene;
use scenes::SCENES;
use tally::Summary;

/// What was asked for on the command line.
struct Options {
    scenario: String,
    law: String,
    seed: u64,
}

/// What plays a scene with one law.
type Play = fn(&Scene, u64) -> Summary;

fn play<L: Law>(scene: &Scene, seed: u64) -> Summary {
    world::play::<L>(scene, seed).summary()
}

const LAWS: &[(&str, Play)] = &[
    (Nothing::NAME, play::<Nothing>),
    (Backoff::NAME, play::<Backoff>),
    (AwsAsking::NAME, play::<AwsAsking>),
    (AwsInLine::NAME, play::<AwsInLine>),
    (Told::NAME, play::<Told>),
];

fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("simulate [--scenario all|NAME] [--law PART-OF-NAME] [--seed N]");
        return ExitCode::FAILURE;
    };
    let mut found = false;
    for scene in SCENES.iter().filter(|scene| options.wants(scene)) {
        found = true;
        println!("\n### {}: {}\n", scene.name, scene.question);
        println!("{HEAD}");
        let laws = LAWS.iter().filter(|law| law.0.contains(&options.law));
        for (name, play) in laws {
            println!("{}", row(name, &play(scene, options.seed)));
        }
    }
    if found {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

impl Options {
    fn wants(&self, scene: &Scene) -> bool {
        scene.name == self.scenario || (self.scenario == "all" && scene.clients < 10_000)
    }
}

fn options() -> Option<Options> {
    let mut options = Options {
        scenario: "all".into(),
        law: String::new(),
        seed: 1,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word.as_str() {
            "--scenario" => options.scenario = value,
            "--law" => options.law = value,
            "--seed" => options.seed = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(options)
}

const HEAD: &str = "\
| limiter | of the ideal | throttled | failed (refused) | wake-ups | wait p50 | p99 | Jain | 90 % after (share) |
|---|---|---|---|---|---|---|---|---|";

fn row(name: &str, s: &Summary) -> String {
    let reached: Vec<String> = s.reached.iter().map(change).collect();
    format!(
        "| {name} | {:.3} | {:.2} % | {} ({}) | {:.2} | {:.3} s | {:.3} s | {:.3} | {} |",
        s.share,
        s.throttled * 100.0,
        s.failed,
        s.refused,
        s.wakes,
        s.p50,
        s.p99,
        s.jain,
        reached.join(", ")
    )
}

fn change((reached, share): &(Option<f64>, f64)) -> String {
    let reached = reached.map_or("never".into(), |s| format!("{s:.1} s"));
    format!("{reached} ({share:.2})")
}
