//! Fleets of up to a thousand members in virtual time: the members' own code, and the engine's own
//! script in Lua.
//!
//! Prints a line for each scene, and fails if one left the bounds of the crate's documentation, or
//! its own.
//!
//! `cargo run --release --example simulate -- [file] [SCENE...]`: all by default. The same numbers
//! come out each time. `file` plays them with a file as the engine, those with a replica left out.
//! `-- chart > unknown.svg` draws a limit that no member knows, and plays nothing else.
//!
//! The way through the code: [`scenes`] are data; [`world`] plays one; a [`node`] is a member with
//! its requests; the service is that of [`world`], the engine that of the rig.
#![allow(
    clippy::duplicate_mod,
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    dead_code,
    unreachable_pub,
    reason = "figures for people, of which each program uses a part; and modules of the crate"
)]

// The member as it is, below its task: neither is public, and both are without a clock.
#[path = "../../src/alone.rs"]
mod alone;
#[path = "../../src/budget.rs"]
mod budget;
#[path = "../../../../examples/common"]
mod common {
    pub(crate) mod chart;
    pub(crate) mod columns;
    pub(crate) mod number;
    pub(crate) mod scale;
    pub(crate) mod svg;
    pub(crate) mod tally;
}
#[path = "../../src/demand.rs"]
mod demand;
#[cfg(feature = "local")]
mod disk;
#[path = "../../src/fault.rs"]
mod fault;
#[path = "../../src/line.rs"]
mod line;
/// The file as the engine has it, below its thread.
#[cfg(feature = "local")]
#[path = "../../src/local"]
mod local {
    pub(crate) mod file;
    pub(crate) mod script;
    pub(crate) mod time;
}
#[path = "../../src/member.rs"]
mod member;
mod node;
mod pair;
#[path = "../../src/pool.rs"]
mod pool;
#[path = "../../src/pour.rs"]
mod pour;
#[path = "../../rig/record.rs"]
mod record;
mod scenes;
#[path = "../../rig/script.rs"]
mod script;
#[path = "../../src/set.rs"]
mod set;
#[path = "../../src/settings.rs"]
mod settings;
#[path = "../../src/snapshot.rs"]
mod snapshot;
#[path = "../../src/strategy.rs"]
mod strategy;
mod tally;
mod unknown;
#[path = "../../src/wait.rs"]
mod wait;
#[path = "../../src/wire.rs"]
mod wire;
mod world;

use std::process::ExitCode;

use scenes::{SCENES, Scene};
pub use settings::Away;
use world::World;

fn main() -> ExitCode {
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    if wanted == ["chart"] {
        print!("{}", unknown::chart());
        return ExitCode::SUCCESS;
    }
    let on_file = wanted.first().is_some_and(|word| word == "file");
    wanted.drain(..usize::from(on_file));
    let named = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let mut rows = vec![tally::head()];
    let mut wrong = Vec::new();
    let mut played_any = false;
    let played = |scene: &&Scene| named(scene.name) && !(on_file && scene.has_replica());
    for scene in SCENES.iter().filter(played) {
        let tally = World::new(scene, on_file).play();
        rows.push(tally.row());
        wrong.extend(tally.wrong());
        played_any = true;
    }
    if named("pair") && !on_file {
        let came = pair::play();
        println!("{}\n", came.row());
        wrong.extend(came.wrong());
        played_any = true;
    }
    if named("unknown") && !on_file {
        wrong.extend(unknown::table());
        played_any = true;
    }
    println!("{}\n", common::columns::lines(&rows).join("\n"));
    println!(
        "used: of the allowance, or of what the service gives, after the warm-up; worst: in the worst second of that"
    );
    println!(
        "fair: what the worst served member got of its max-min fair part; above: the most by which any window"
    );
    println!(
        "exceeded the allowance, of what is stated; engine: steps for each 1,000 requests; first: the longest that"
    );
    println!("the first request of a member waited");
    for line in &wrong {
        println!("failed: {line}");
    }
    if wrong.is_empty() && played_any {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[cfg(test)]
mod tests {
    use super::{SCENES, World};

    /// The ones with few members; the others take too long without optimization.
    #[test]
    fn scenes_keep_their_promises_and_come_out_the_same() {
        for scene in SCENES.iter().filter(|scene| scene.members <= 100) {
            let tally = World::new(scene, false).play();
            assert_eq!(tally.wrong(), Vec::<String>::new(), "{}", scene.name);
        }
        assert_eq!(super::pair::play().wrong(), None);
        for scene in super::unknown::FAULTS {
            assert_eq!(scene.play(1).wrong(scene), None);
        }
        let row = || World::new(&SCENES[0], false).play().row();
        assert_eq!(row(), row());
    }

    #[cfg(feature = "local")]
    #[test]
    fn scenes_on_a_file_keep_their_promises_too() {
        let few = |scene: &&super::Scene| scene.members <= 100 && !scene.has_replica();
        for scene in SCENES.iter().filter(few) {
            let tally = World::new(scene, true).play();
            assert_eq!(tally.wrong(), Vec::<String>::new(), "{}", scene.name);
        }
    }
}
