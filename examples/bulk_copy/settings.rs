//! What a run is asked to do: the flags, and what follows from them.

use core::num::NonZeroU32;
use std::path::PathBuf;

use clap::Parser;

use crate::{mode::Mode, run};

/// The most workers with which the modes run at the same time.
const MOST_SIDE_BY_SIDE: u32 = 128;

/// Copies objects through a service that throttles, once for each way of retrying.
///
/// Every mode has its own service on loopback, with its own limit, and the modes run side
/// by side. The exit code is 0 only if adaptive, paced and bulk copied everything; 1 if one did
/// not, or none of them was run; 2 for flags that make no sense or a run that could not start; 3 if
/// the client and the service counted different things.
#[derive(Clone, Debug, Parser)]
#[command(name = "bulk_copy")]
pub(crate) struct Settings {
    /// Objects to copy in each mode
    #[arg(long, value_name = "COUNT", default_value = "4003")]
    pub(crate) objects: NonZeroU32,

    /// Requests a second that the service allows, after a burst of 100
    #[arg(long, value_name = "PER_SECOND", default_value = "100")]
    pub(crate) limit: NonZeroU32,

    /// Objects that are copied at the same time; with more than 128 the modes run one after
    /// another, since each copy may hold two open sockets
    #[arg(long, value_name = "COUNT", default_value = "64")]
    pub(crate) workers: NonZeroU32,

    /// A mode to run, may be repeated [default: all of them]
    #[arg(long = "mode", value_name = "MODE")]
    modes: Vec<Mode>,

    /// Where the chart is written
    #[arg(long, value_name = "PATH", default_value = "target/bulk_copy.svg")]
    pub(crate) svg: PathBuf,
}

impl Settings {
    /// Returns the modes to run, each once, in the order of the table.
    pub(crate) fn modes(&self) -> Vec<Mode> {
        run::modes(&self.modes)
    }

    /// Returns whether the modes run at the same time.
    pub(crate) const fn side_by_side(&self) -> bool {
        self.workers.get() <= MOST_SIDE_BY_SIDE
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU32;

    use clap::{CommandFactory, Parser};

    use super::Settings;
    use crate::{mode::Mode, run};

    fn settings(flags: &str) -> Settings {
        let words = ["bulk_copy"].into_iter().chain(flags.split_whitespace());
        Settings::try_parse_from(words).expect("the flags are good")
    }

    #[test]
    fn the_flags_are_consistent() {
        Settings::command().debug_assert();
    }

    #[test]
    fn the_defaults_are_those_of_the_story_scaled_down() {
        let settings = settings("");
        let counts = [settings.objects, settings.limit, settings.workers];
        assert_eq!(counts.map(NonZeroU32::get), [4_003, 100, 64]);
        assert_eq!(settings.modes(), run::modes::<Mode>(&[]));
    }

    #[test]
    fn many_workers_have_the_machine_to_themselves() {
        assert!(settings("--workers 128").side_by_side());
        assert!(!settings("--workers 129").side_by_side());
    }

    #[test]
    fn modes_run_once_each_and_in_the_order_of_the_table() {
        let modes = settings("--mode adaptive --mode none --mode adaptive").modes();
        assert_eq!(modes, [Mode::None, Mode::Adaptive]);
    }

    #[test]
    fn nothing_can_be_zero() {
        for flag in ["objects", "limit", "workers"] {
            let flag = format!("--{flag}=0");
            assert!(Settings::try_parse_from(["bulk_copy", &flag]).is_err());
        }
    }
}
