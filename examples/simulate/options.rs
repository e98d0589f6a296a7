//! The flags.

use std::path::PathBuf;

use clap::Parser;

use crate::laws::{LAWS, RIVALS};
use crate::scene::Scene;

/// From so many clients on, a scene takes longer than all the others together.
const INTERNET: u32 = 10_000;

/// The limiters of the table of all scenes.
const OVERVIEW: [&str; 4] = ["Aws, in line", "Paced", "Paced, shared", "Paced, exclusive"];

/// The one that knows the limit, beside rivals.
const RULER: &str = "told the limit";

/// Plays the limiters against services in virtual time, and prints the results.
#[expect(clippy::struct_excessive_bools, reason = "flags")]
#[derive(Debug, Parser)]
#[command(name = "simulate")]
pub(crate) struct Options {
    /// A scene, `all`, or `internet` for those of ten thousand clients, which are not among all;
    /// may be repeated
    #[arg(long, value_name = "NAME", default_value = "all")]
    scenario: Vec<String>,

    /// Only the limiter of this name, or those with this in their name if there is none; may be
    /// repeated
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
    pub(crate) seeds: u64,

    /// Prints one table of all scenes, of the laws of this crate unless others are asked for
    #[arg(long)]
    pub(crate) table: bool,

    /// Prints the table of limits that are windows, of scenes and limiters with these parts in
    /// their names
    #[arg(long)]
    pub(crate) windows: bool,

    /// Prints tables in Markdown
    #[arg(long)]
    pub(crate) markdown: bool,

    /// Writes one chart for each scene into this folder; of windows, for those that count minutes
    #[arg(long, value_name = "FOLDER")]
    pub(crate) svg: Option<PathBuf>,
}

impl Options {
    /// Returns whether a scene was asked for.
    pub(crate) fn wants(&self, scene: &Scene) -> bool {
        let internet = scene.clients >= INTERNET;
        self.scenario.iter().any(|name| match name.as_str() {
            // The table has one kind of request.
            "all" => !(internet || self.table && scene.people > 0),
            "internet" => internet,
            name => name == scene.name,
        })
    }

    /// Returns whether a limiter was asked for.
    pub(crate) fn allows(&self, law: &str) -> bool {
        if self.law.is_empty() {
            return !self.table || OVERVIEW.contains(&law) || (self.rivals && law == RULER);
        }
        let is_name = |part: &str| LAWS.iter().chain(RIVALS).any(|law| law.name == part);
        let mut parts = self.law.iter();
        parts.any(|part| law == part || (!is_name(part) && law.contains(part)))
    }

    /// Returns whether a scene of windows was asked for.
    pub(crate) fn plays(&self, scene: &str) -> bool {
        let mut parts = self.scenario.iter();
        parts.any(|part| part == "all" || scene.contains(&**part))
    }

    /// Returns whether limiters were asked for by their names.
    pub(crate) fn chooses(&self) -> bool {
        !self.law.is_empty()
    }

    /// Returns whether a limiter was asked for in such a scene.
    pub(crate) fn names(&self, law: &str) -> bool {
        self.law.is_empty() || self.law.iter().any(|part| law.contains(&**part))
    }

    /// Returns whether a limiter of others was asked for, by its name or with all of them.
    pub(crate) fn allows_rival(&self, law: &str) -> bool {
        if self.law.is_empty() {
            return self.rivals;
        }
        self.allows(law)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::Options;
    use crate::laws::{LAWS, RIVALS};

    fn played(arguments: &[&str]) -> Vec<&'static str> {
        let options = Options::parse_from([&["simulate"], arguments].concat());
        let rivals = RIVALS.iter().filter(|law| options.allows_rival(law.name));
        let laws = LAWS.iter().filter(|law| options.allows(law.name));
        laws.chain(rivals).map(|law| law.name).collect()
    }

    #[test]
    fn a_limiter_is_chosen_by_its_name_or_a_part_of_it() {
        assert_eq!(played(&["--law", "Paced"]), ["Paced"]);
        assert_eq!(played(&["--law", "shared"]), ["Paced, shared"]);
        assert_eq!(played(&["--law", "Aws"]).len(), 2);
        assert_eq!(played(&["--law", "Lance"]), ["Lance"]);
    }

    #[test]
    fn beside_rivals_the_table_has_the_one_that_knows_the_limit() {
        assert_eq!(played(&["--table"]).last(), Some(&"Paced, exclusive"));
        let names = played(&["--table", "--rivals"]);
        assert_eq!(names[4], "told the limit");
        assert_eq!(names.len(), 5 + RIVALS.len());
    }
}
