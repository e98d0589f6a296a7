//! Plays limiters against services that declare their limits, in virtual time.
//!
//! ```text
//! cargo run --release -p paceline-examples --bin declared -- [--scene PART] [--law PART] [--seed FIRST] [--seeds COUNT]
//! ```
//!
//! Each line: the share of the limit that was used in steady state, how many of the requests were
//! throttled, operations that failed, Jain's index of the clients' parts in the second half, the
//! median and the 99th percentile of the waits from the first ask to the send that succeeded, and
//! the share of all that was offered, the first full bucket included. Means over the seeds. The
//! same seed gives the same numbers on any machine.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "an example: its numbers are small"
)]
#![allow(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "figures for people to read"
)]

extern crate alloc;

#[path = "../common/mod.rs"]
mod common;
mod laws;
mod play;
mod scene;
mod service;
#[cfg(test)]
mod tests;
mod throttle;

use clap::Parser;

use common::{limiter, number, policer, tally, time, world};
use laws::{LAWS, Law};
use play::{Tally, play};
use scene::{SCENES, Scene};
use service::Service;

/// Plays limiters against services that declare their limits, and prints the results.
#[derive(Debug, Parser)]
#[command(name = "declared")]
struct Options {
    /// Only scenes whose name begins like this; may be repeated
    #[arg(long, value_name = "PART")]
    scene: Vec<String>,

    /// Only limiters with this in their name; may be repeated
    #[arg(long, value_name = "PART")]
    law: Vec<String>,

    /// The first seed
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,

    /// How many seeds
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
}

fn main() {
    let options = Options::parse();
    println!("| scene | | limiter | used | throttled | failed | Jain | p50 | p99 | of all |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let (scenes, laws) = (&options.scene, &options.law);
    let is_asked = |scene: &&Scene| {
        scenes.is_empty() || scenes.iter().any(|part| scene.name.starts_with(part))
    };
    let is_played = |law: &&Law| laws.is_empty() || laws.iter().any(|name| law.name == name);
    for scene in SCENES.iter().filter(is_asked) {
        for law in LAWS.iter().filter(is_played).filter(|law| law.fits(scene)) {
            let seeds = options.seed..options.seed + options.seeds;
            let figures = seeds.map(|seed| Figures::of(scene, &play(scene, law, seed)));
            println!("{}", line(scene, law, &figures.collect::<Vec<_>>()));
        }
    }
}

fn line(scene: &Scene, law: &Law, figures: &[Figures]) -> String {
    let mean = |of: fn(&Figures) -> f64| number::mean(figures.iter().map(of));
    let jain = if scene.clients > 1 {
        format!("{:.3}", mean(|of| of.jain))
    } else {
        "–".to_owned()
    };
    format!(
        "| {} | {} | {} | {:.3} | {:.2} % | {:.0} | {jain} | {:.1} s | {:.0} s | {:.3} |",
        scene.name,
        scene.what,
        law.name,
        mean(|of| of.used),
        mean(|of| of.throttled) * 100.0,
        mean(|of| of.failed),
        mean(|of| of.p50),
        mean(|of| of.p99),
        mean(|of| of.of_all),
    )
}

/// The figures of one run.
#[derive(Clone, Copy, Debug)]
struct Figures {
    used: f64,
    throttled: f64,
    failed: f64,
    jain: f64,
    p50: f64,
    p99: f64,
    of_all: f64,
}

impl Figures {
    fn of(scene: &Scene, tally: &Tally) -> Self {
        let offered = |from, whole| Service::offered(scene, from, scene.end(), whole);
        let mut waits = tally.waits.clone();
        waits.sort_unstable();
        let seconds = |permille| number::number(tally::quantile(&waits, permille)) / 1e9;
        Self {
            used: number::share(tally.steady, offered(scene.steady(), false)),
            throttled: number::share(tally.throttled, tally.sent),
            failed: tally.failed as f64,
            jain: number::jain(&tally.parts),
            p50: seconds(500),
            p99: seconds(990),
            of_all: number::share(tally.used, offered(0, true)),
        }
    }
}
