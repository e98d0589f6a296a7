//! What a run is asked to do: the flags, and what follows from them.

use core::{num::NonZeroU32, time::Duration};
use std::path::PathBuf;

use clap::Parser;

use crate::{mode::Mode, run, service::Limits};

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
    /// Objects to copy in each mode [default: 4003; with --quick 1000]
    #[arg(long, value_name = "COUNT")]
    objects: Option<NonZeroU32>,

    /// Requests a second that the service allows [default: 100; with --full-scale
    /// 3500]
    #[arg(long, value_name = "PER_SECOND")]
    limit: Option<NonZeroU32>,

    /// Requests that the service serves at once after a pause
    #[arg(long, value_name = "COUNT", default_value = "100")]
    burst: NonZeroU32,

    /// Objects that are copied at the same time
    #[arg(long, value_name = "COUNT", default_value = "64")]
    workers: NonZeroU32,

    /// Most sends for one operation in the modes that retry [default: legacy 5, standard 3,
    /// adaptive, paced and bulk 4]
    #[arg(long, value_name = "COUNT")]
    attempts: Option<NonZeroU32>,

    /// Milliseconds that the service takes for an answer, refusals included
    #[arg(long, value_name = "MS", default_value = "5")]
    latency_ms: u32,

    /// The real service's limit, 3500/s, with the modes one after another so that they get the
    /// whole machine
    #[arg(long)]
    full_scale: bool,

    /// 1000 objects in place of 4003: a quarter of the time
    #[arg(long)]
    quick: bool,

    /// Run the modes one after another, as is done with more than 128 workers: each may hold two
    /// open sockets
    #[arg(long)]
    one_by_one: bool,

    /// A mode to run, may be repeated [default: all of them]
    #[arg(long = "mode", value_name = "MODE")]
    modes: Vec<Mode>,

    /// Where the chart is written
    #[arg(long, value_name = "PATH", default_value = "target/bulk_copy.svg")]
    pub(crate) svg: PathBuf,
}

impl Settings {
    /// Returns how many objects each mode copies.
    pub(crate) fn objects(&self) -> u32 {
        let default = if self.quick { 1_000 } else { 4_003 };
        self.objects.map_or(default, NonZeroU32::get)
    }

    /// Returns how many of them are in progress at the same time.
    pub(crate) const fn workers(&self) -> u32 {
        self.workers.get()
    }

    /// Returns the flag that overrides the modes' attempts.
    pub(crate) const fn attempts(&self) -> Option<NonZeroU32> {
        self.attempts
    }

    /// Returns what each service allows.
    pub(crate) fn limits(&self) -> Limits {
        let default = if self.full_scale { 3_500 } else { 100 };
        let limit = self.limit.map_or(default, NonZeroU32::get);
        Limits {
            rate: limit,
            burst: self.burst.get(),
            latency: Duration::from_millis(self.latency_ms.into()),
        }
    }

    /// Returns the modes to run, each once, in the order of the table.
    pub(crate) fn modes(&self) -> Vec<Mode> {
        run::modes(&self.modes)
    }

    /// Returns whether the modes run at the same time.
    pub(crate) const fn side_by_side(&self) -> bool {
        !self.one_by_one && !self.full_scale && self.workers() <= MOST_SIDE_BY_SIDE
    }
}

#[cfg(test)]
mod tests {
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
        let limits = settings.limits();
        assert_eq!((settings.objects(), settings.workers()), (4_003, 64));
        assert_eq!((limits.rate, limits.burst), (100, 100));
        assert_eq!(limits.latency.as_millis(), 5);
        assert_eq!(settings.modes(), run::modes::<Mode>(&[]));
    }

    #[test]
    fn many_workers_have_the_machine_to_themselves() {
        assert!(settings("--workers 128").side_by_side());
        assert!(!settings("--workers 129").side_by_side());
        assert!(!settings("--one-by-one").side_by_side());
        assert!(!settings("--full-scale").side_by_side());
    }

    #[test]
    fn a_limit_that_is_given_overrides_the_real_one() {
        assert_eq!(settings("--full-scale").limits().rate, 3_500);
        assert_eq!(settings("--full-scale --limit 5").limits().rate, 5);
    }

    #[test]
    fn a_count_that_is_given_overrides_the_quick_one() {
        assert_eq!(settings("--quick").objects(), 1_000);
        assert_eq!(settings("--quick --objects 12").objects(), 12);
    }

    #[test]
    fn modes_run_once_each_and_in_the_order_of_the_table() {
        let modes = settings("--mode adaptive --mode none --mode adaptive").modes();
        assert_eq!(modes, [Mode::None, Mode::Adaptive]);
    }

    #[test]
    fn nothing_can_be_zero_but_the_latency() {
        for flag in ["objects", "limit", "burst", "workers", "attempts"] {
            let flag = format!("--{flag}=0");
            assert!(Settings::try_parse_from(["bulk_copy", &flag]).is_err());
        }
        assert!(settings("--latency-ms 0").limits().latency.is_zero());
    }
}
