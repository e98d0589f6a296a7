//! Plays the limiters against services in virtual time, and prints the results.
//!
//! ```text
//! cargo run --release --example simulate -- --scenario all [--svg FOLDER]
//! ```
//!
//! `all` leaves the scenes of ten thousand clients to be asked for by name: `--scenario internet`;
//! and what others have published, [`rivals`], by `--rivals`. The same seed gives the same numbers
//! on any machine: times are integer nanoseconds, and floating point is for printing.
//!
//! The way through the code: [`scenes`] are data, explained in [`scene`]; [`law`] has the limiters,
//! which [`laws`] lists; [`world`] plays a scene with one of them against a [`service`], and counts
//! in a [`tally`]. [`summary`] and [`table`] are what is printed; [`figure`] is the chart of a
//! scene.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "an example: its numbers are small"
)]

extern crate alloc;

#[path = "../common/mod.rs"]
mod common;

mod axes;
mod bars;
mod figure;
mod law;
mod laws;
mod options;
mod panel;
mod rivals;
mod scene;
mod scenes;
mod service;
mod setting;
mod summary;
mod table;
mod tally;
#[cfg(test)]
mod tests;
mod waits;
mod words;
mod world;

use std::io;
use std::process::ExitCode;

use clap::Parser;
use common::{columns, number, policer, run, scale, svg, time};

use figure::Played;
use laws::{Entry, LAWS, RIVALS};
use options::Options;
use scene::Scene;
use scenes::SCENES;
use summary::Summary;

fn main() -> ExitCode {
    match compare(&Options::parse()) {
        Ok(0) => {
            let names: Vec<_> = SCENES.iter().map(|scene| scene.name).collect();
            eprintln!(
                "simulate: no such scene or limiter; scenes: {}",
                names.join(" ")
            );
            ExitCode::FAILURE
        }
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("simulate: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Plays what was asked for, and returns how many scenes that were.
fn compare(options: &Options) -> io::Result<usize> {
    let mut rows = Vec::new();
    let mut count = 0;
    for scene in SCENES.iter().filter(|scene| options.wants(scene)) {
        let rivals = RIVALS.iter().filter(|law| options.allows_rival(law.name));
        let laws = LAWS
            .iter()
            .filter(|law| options.allows(law.name) && law.fits(scene));
        let laws = laws.chain(rivals);
        let played: Vec<Played> = laws.map(|law| play(scene, law, options)).collect();
        if played.is_empty() {
            break;
        }
        count += 1;
        let summaries = played.iter().map(|one| (one.law.name, one.summary.clone()));
        let summaries: Vec<_> = summaries.collect();
        if options.table {
            rows.push((*scene, summaries));
            continue;
        }
        println!("\n### {}: {}", scene.name, scene.title);
        for table in table::tables(scene, &summaries) {
            println!("\n{}", table::text(&table, options.markdown));
        }
        if let Some(folder) = &options.svg {
            let name = scene.name.replace(['/', ','], "-");
            let chart = figure::figure(scene, &played);
            run::write(&folder.join(format!("{name}.svg")), &chart)?;
        }
    }
    if options.table {
        println!("{}", table::text(&table::overview(&rows), options.markdown));
    }
    Ok(count)
}

/// Plays one limiter with every seed.
fn play(scene: &Scene, law: &'static Entry, options: &Options) -> Played {
    let tally = world::play(scene, law, options.seed);
    let mut summaries = vec![Summary::of(&tally)];
    let more = options.more_seeds();
    summaries.extend(more.map(|seed| Summary::of(&world::play(scene, law, seed))));
    Played {
        law,
        tally,
        first: summaries[0].clone(),
        summary: Summary::mean(&summaries),
    }
}
