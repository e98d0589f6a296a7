//! Plays the limiters against services in virtual time, and prints the results.
//!
//! ```text
//! cargo run --release -p paceline-examples --bin simulate -- --scenario all [--svg FOLDER]
//! ```
//!
//! `all` leaves the scenes of ten thousand clients to be asked for by name: `--scenario internet`;
//! and what others have published, [`rivals`], by `--rivals`. The same seed gives the same numbers
//! on any machine: times are integer nanoseconds, and floating point is for printing.
//!
//! The way through the code: [`scenes`] are data, explained in [`scene`]; [`laws`] lists the
//! limiters; [`play`] plays a scene with one of them against a [`service`], and counts in a
//! [`counts`]. [`tables`] is what is printed; [`figure`] is the chart of a scene.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "an example: its numbers are small"
)]

extern crate alloc;

#[path = "../common/mod.rs"]
mod common;

mod counts;
mod cycles;
mod figure;
mod laws;
mod options;
mod play;
mod rivals;
mod scene;
mod scenes;
mod service;
mod sharing;
mod tables;
#[cfg(test)]
mod tests;
mod windows;

use std::io;
use std::process::ExitCode;

use clap::Parser;
use common::{chart, limiter, number, policer, run, table, tally, time, world};

use laws::{Entry, LAWS, RIVALS};
use options::Options;
use scenes::SCENES;

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
    if options.windows {
        let table = windows::compare(options)?;
        println!("{}", table::text(&table, options.markdown));
        return Ok(table.len() - 1);
    }
    let mut rows = Vec::new();
    let mut count = 0;
    for scene in SCENES.iter().filter(|scene| options.wants(scene)) {
        let rivals = RIVALS.iter().filter(|law| options.allows_rival(law.name));
        let laws = LAWS
            .iter()
            .filter(|law| options.allows(law.name) && law.fits(scene));
        let seeds = || options.seed..options.seed + options.seeds;
        let runs = |law| seeds().map(|seed| play::play(scene, law, seed)).collect();
        let played = |law| (law, runs(law));
        let played: Vec<Played> = laws.chain(rivals).map(played).collect();
        if played.is_empty() {
            break;
        }
        count += 1;
        if options.table {
            rows.push((scene.name, tables::cells(&played)));
            continue;
        }
        println!("\n### {}: {}", scene.name, scene.title);
        for table in tables::tables(scene, &played) {
            println!("\n{}", table::text(&table, options.markdown));
        }
        if let Some(folder) = &options.svg {
            let name = scene.name.replace(['/', ','], "-");
            let chart = figure::figure(scene, &played);
            run::write(&folder.join(format!("{name}.svg")), &chart)?;
        }
    }
    if options.table {
        println!(
            "{}",
            table::text(&tables::overview(&rows), options.markdown)
        );
    }
    Ok(count)
}

/// A limiter, and its runs, one for each seed.
type Played = (&'static Entry, Vec<counts::Tally>);
