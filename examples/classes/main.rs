//! Foreground beside a back-fill that never ends, on one limit, in virtual time.
//!
//! ```text
//! cargo run --release -p paceline-examples --bin classes [-- --scenario NAME]
//! ```
//!
//! Each scene is played three times: with the foreground alone, with all in one line, and with the
//! back-fill as background. All requests go through the public functions of a
//! [`SendLimiter`](paceline::SendLimiter), and wait by its wakers and timers.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "an example: its numbers are small, and for people to read"
)]

extern crate alloc;

mod client;
#[path = "../common/mod.rs"]
mod common;
mod scene;

use clap::Parser;

use common::{number, policer, tally, time, world};

use client::{Mode, Tally, millis, play};
use scene::{SCENES, Scene};

/// Plays classes against services in virtual time.
#[derive(Debug, Parser)]
#[command(name = "classes")]
struct Options {
    /// Scenes whose name contains this
    #[arg(long, value_name = "PART", default_value = "")]
    scenario: String,

    /// The seed
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,
}

fn main() {
    let options = Options::parse();
    println!(
        "Foreground's wait p50 / p99 in ms · limit used; of the classes also the background's part of \
         what is left, its longest gap in s, and what is throttled: all / foreground, one line's in brackets.\n"
    );
    println!("| scene | alone | one line | classes | background | throttled | answered p99, ms |");
    println!("|---|---|---|---|---|---|---|");
    let scenes = SCENES.iter();
    for scene in scenes.filter(|scene| scene.name.contains(&options.scenario)) {
        println!("{}", row(scene, options.seed));
    }
}

fn row(scene: &Scene, seed: u64) -> String {
    let [alone, line, classes] =
        [Mode::Alone, Mode::OneLine, Mode::Classes].map(|mode| play(scene, mode, seed));
    let [foreground, all] = classes.throttled();
    format!(
        "| {} | {} | {} | {} | {:.3}, {:.2} | {all:.2} / {foreground:.2} ({:.2}) | {:.0} ({:.0}) |",
        scene.name,
        cell(&alone, scene),
        cell(&line, scene),
        cell(&classes, scene),
        classes.background_share(scene),
        classes.longest_gap(),
        line.throttled()[1],
        millis(&classes.answers, 990),
        millis(&line.answers, 990),
    )
}

fn cell(tally: &Tally, scene: &Scene) -> String {
    let [median, most] = [500, 990].map(|permille| millis(&tally.waits, permille));
    format!("{median:.1} / {most:.1} · {:.3}", tally.used(scene))
}
