//! The flags.

use core::ops::Range;
use std::path::PathBuf;

use clap::Parser;

use crate::scene::Scene;

/// From so many clients on, a scene takes longer than all the others together.
const INTERNET: u32 = 10_000;

/// The limiters of the table of all scenes.
const OVERVIEW: [&str; 4] = ["Aws, in line", "Paced", "Paced, shared", "Paced, exclusive"];

/// The one that knows the limit, beside rivals.
const RULER: &str = "told the limit";

/// Plays the limiters against services in virtual time, and prints the results.
#[derive(Debug, Parser)]
#[command(name = "simulate")]
pub(crate) struct Options {
    /// A scene, `all`, or `internet` for those of ten thousand clients, which are not among all;
    /// may be repeated
    #[arg(long, value_name = "NAME", default_value = "all")]
    scenario: Vec<String>,

    /// Only limiters with this in their name; may be repeated
    #[arg(long, value_name = "PART")]
    law: Vec<String>,

    /// Plays limiters that others have published, too
    #[arg(long)]
    rivals: bool,

    /// The first seed
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    pub(crate) seed: u64,

    /// How many seeds: the tables show means, the charts the first one
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// Prints one table of all scenes, of the laws of this crate unless others are asked for
    #[arg(long)]
    pub(crate) table: bool,

    /// Prints tables in Markdown
    #[arg(long)]
    pub(crate) markdown: bool,

    /// Writes a page of charts and tables, complete in one file
    #[arg(long, value_name = "FILE.html")]
    pub(crate) plot: Option<PathBuf>,

    /// Writes one chart for each scene into this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) svg: Option<PathBuf>,
}

impl Options {
    /// Returns whether a scene was asked for.
    pub(crate) fn wants(&self, scene: &Scene) -> bool {
        let internet = scene.clients >= INTERNET;
        self.scenario.iter().any(|name| match name.as_str() {
            "all" => !internet,
            "internet" => internet,
            name => name == scene.name,
        })
    }

    /// Returns whether a limiter was asked for.
    pub(crate) fn allows(&self, law: &str) -> bool {
        if self.law.is_empty() {
            return !self.table || OVERVIEW.contains(&law) || (self.rivals && law == RULER);
        }
        self.law.iter().any(|part| law.contains(part))
    }

    /// Returns whether a limiter of others was asked for, by its name or with all of them.
    pub(crate) fn allows_rival(&self, law: &str) -> bool {
        if self.law.is_empty() {
            return self.rivals;
        }
        self.allows(law)
    }

    /// Returns the seeds after the first one.
    pub(crate) fn more_seeds(&self) -> Range<u64> {
        self.seed + 1..self.seed + self.seeds
    }

    /// Returns which seeds the numbers come from.
    pub(crate) fn seeds_in_words(&self) -> String {
        let Self { seed, seeds, .. } = self;
        match seeds {
            1 => format!(
                "All numbers come from seed {seed}; the same seed gives the same ones anywhere."
            ),
            _ => format!("Tables: means of {seeds} seeds from {seed} on. Charts: seed {seed}."),
        }
    }

    /// Returns whether there is anything to draw.
    pub(crate) fn draws(&self) -> bool {
        self.plot.is_some() || self.svg.is_some()
    }
}
