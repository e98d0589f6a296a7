//! Plays limiters against services that declare their limits, in virtual time.
//!
//! ```text
//! cargo run --release --example declared -- [--scene PART] [--law PART] [--seed FIRST] [--seeds COUNT]
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

mod client;
#[path = "../common/mod.rs"]
mod common;
mod scene;
mod service;
mod sets;
#[cfg(test)]
mod tests;
mod throttle;
mod world;

use clap::Parser;

use client::{LAWS, Law};
use common::{number, policer, time};
use scene::{SCENES, Scene};
use service::Service;
use sets::{SET_SCENES, SetScene, SetTally, play_set};
use time::SECOND;
use world::{Tally, play};

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
    for scene in SCENES {
        if !options.scene.is_empty()
            && !options
                .scene
                .iter()
                .any(|part| scene.name.starts_with(part.as_str()))
        {
            continue;
        }
        for law in LAWS {
            if !law.fits(scene) {
                continue;
            }
            if !options.law.is_empty() && !options.law.iter().any(|part| law.name() == part) {
                continue;
            }
            let seeds = options.seed..options.seed + options.seeds;
            let figures: Vec<_> = seeds
                .map(|seed| Figures::of(scene, &play(scene, law, seed)))
                .collect();
            println!("{}", line(scene, law, &Figures::mean(&figures)));
        }
    }
    for scene in SET_SCENES {
        let is_asked = |part: &String| scene.name.starts_with(part.as_str());
        if options.scene.is_empty() || options.scene.iter().any(is_asked) {
            println!("{}", set_line(scene, &options));
        }
    }
}

fn set_line(scene: &SetScene, options: &Options) -> String {
    let seeds = options.seed..options.seed + options.seeds;
    let runs: Vec<_> = seeds.map(|seed| play_set(scene, seed)).collect();
    let mean = |of: fn(&SetTally) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    format!(
        "| {} | {} | Declared | {:.3} | {:.2} % | {:.0} | | | | |",
        scene.name,
        scene.what,
        mean(SetTally::used),
        mean(SetTally::throttled) * 100.0,
        mean(|tally| tally.failed as f64),
    )
}

fn line(scene: &Scene, law: Law, figures: &Figures) -> String {
    let jain = if scene.clients > 1 {
        format!("{:.3}", figures.jain)
    } else {
        "–".to_owned()
    };
    format!(
        "| {} | {} | {} | {:.3} | {:.2} % | {:.0} | {jain} | {:.1} s | {:.0} s | {:.3} |",
        scene.name,
        scene.what,
        law.name(),
        figures.used,
        figures.throttled * 100.0,
        figures.failed,
        figures.p50,
        figures.p99,
        figures.of_all,
    )
}

/// The figures of one run, or the means of several.
#[derive(Clone, Copy, Debug, Default)]
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
        let offered = |from, whole| Service::offered(scene, from, scene.end(), whole) as f64;
        let mut waits = tally.waits.clone();
        waits.sort_unstable();
        let quantile = |permille: usize| {
            let index = waits.len().saturating_sub(1) * permille / 1_000;
            waits.get(index).copied().unwrap_or(0) as f64 / SECOND as f64
        };
        Self {
            used: tally.steady as f64 / offered(scene.steady(), false),
            throttled: tally.throttled as f64 / tally.sent.max(1) as f64,
            failed: tally.failed as f64,
            jain: number::jain(&tally.parts),
            p50: quantile(500),
            p99: quantile(990),
            of_all: tally.used as f64 / offered(0, true),
        }
    }

    fn mean(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        Self {
            used: mean(|f| f.used),
            throttled: mean(|f| f.throttled),
            failed: mean(|f| f.failed),
            jain: mean(|f| f.jain),
            p50: mean(|f| f.p50),
            p99: mean(|f| f.p99),
            of_all: mean(|f| f.of_all),
        }
    }
}
