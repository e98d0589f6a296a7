//! Plays random systems, and prints which of the promises they broke.
//!
//! `--seed 1 --systems 300`, `--narrow`, `--untold`, `--unusable`, `--classes`, `--operations`, `--only N`,
//! `--replay "kind=1 limit=5 ..."`, `--verbose`, and `--shrink`, which prints a smaller system for each that fails;
//! `--print` plays none.

use std::env;
use std::process::ExitCode;
use std::time::Instant;

use paceline_fuzz::systems::{Played, Range, Summary, System, draw};

fn line(number: u64, system: &System, played: &Played) -> String {
    let faults: Vec<_> = played.faults.iter().map(ToString::to_string).collect();
    format!(
        "{number}: {} | used {:.3}, refused {} of {}, gap {} ms, longest wait {} ms | {system}",
        faults.join("; "),
        played.share(),
        played.refused,
        played.sent,
        played.gap,
        played.wait
    )
}

fn main() -> ExitCode {
    let (mut seed, mut systems, mut only, mut replay) = (1_u64, 300_u64, None, None);
    let (mut range, mut is_verbose) = (Range::Wide, false);
    let (mut shrinks, mut prints) = (false, false);
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|value| value.parse().ok());
        match arg.as_str() {
            "--seed" => seed = number().unwrap_or(seed),
            "--systems" => systems = number().unwrap_or(systems),
            "--only" => only = number(),
            "--narrow" => range = Range::Narrow,
            "--classes" => range = Range::Classes,
            "--operations" => range = Range::Operations,
            "--untold" => range = Range::Untold,
            "--unusable" => range = Range::Unusable,
            "--verbose" => is_verbose = true,
            "--print" => prints = true,
            "--shrink" => shrinks = true,
            "--replay" => replay = args.next(),
            other => {
                eprintln!("no argument {other}");
                return ExitCode::from(2);
            }
        }
    }
    let mut summary = Summary::default();
    let begun = Instant::now();
    if let Some(text) = replay {
        match text.parse::<System>() {
            Ok(system) => println!("{}", line(0, &system, summary.play(0, system.clone()))),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        }
    } else {
        let numbers = only.map_or(0..systems, |only| only..only + 1);
        for number in numbers {
            let system = draw(range, seed * 1_000_003 + number);
            if prints {
                println!("{number}: {system}");
                continue;
            }
            let was = Instant::now();
            let played = summary.play(number, system.clone());
            if is_verbose {
                println!("{:.2?} {}", was.elapsed(), line(number, &system, played));
            }
        }
    }
    if !is_verbose {
        for (number, system, played) in summary.failed() {
            println!("{}", line(number, system, played));
        }
    }
    if shrinks {
        for (number, system, played) in summary.failed() {
            let name = played.worst();
            println!("{number}, {name}: {}", system.shrunk(name));
        }
    }
    println!("{summary}{:.1?}", begun.elapsed());
    ExitCode::from(u8::from(summary.failed().next().is_some()))
}
