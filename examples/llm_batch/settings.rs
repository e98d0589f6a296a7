//! The flags, and the service's limits.

use core::time::Duration;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::{
    ledger::CLIENTS,
    run,
    workload::{Job, jobs},
};

/// What an account may use in a minute of the service, and how long that is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) requests: u32,
    pub(crate) tokens: u32,
    pub(crate) minute: Duration,
}

impl Limits {
    /// Returns how long the service takes for a request: a second of its minute, and a sixtieth of
    /// a second for each token of the output, which is two thirds of the cost.
    pub(crate) fn latency(&self, job: Job) -> Duration {
        let sixtieths = 60_u32.saturating_add(job.cost / 3 * 2);
        let sixtieth = self.minute.checked_div(3_600).unwrap_or_default();
        sixtieth.saturating_mul(sixtieths)
    }
}

/// How the clients limit themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// No limiter, and what is refused is sent again at once
    None,
    /// No limiter, and what is refused waits as the service says, and longer each time
    Backoff,
    /// A fixed limiter on requests, governor, at the limit of the service
    Governor,
    /// Paced by throttles: one limiter on requests
    Paced,
    /// Paced by throttles: requests and tokens
    PacedSet,
    /// Paced by what the service declares: requests and tokens
    Declared,
    /// The same, with the batch as background: only with a person
    Classes,
}

impl Mode {
    /// Returns the heading of the table and the chart.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::None => "no limiter",
            Self::Backoff => "backoff only",
            Self::Governor => "fixed: governor, requests",
            Self::Paced => "Paced, requests",
            Self::PacedSet => "Paced, requests and tokens",
            Self::Declared => "Declared, requests and tokens",
            Self::Classes => "Declared, the batch as background",
        }
    }
}

/// Sends a batch of requests to a service that limits requests and tokens a minute, once for each
/// way of limiting the client.
///
/// Each way has an account, and all run side by side. A minute of the service is a few seconds. The
/// exit code is 0 only if the declared limits were kept to: everything done, at most 0.5 %
/// throttled after the first report; 1 if not; 2 if the run could not be carried out; 3 if the
/// clients and the service counted different things.
#[derive(Clone, Debug, Parser)]
#[command(name = "llm_batch")]
pub(crate) struct Settings {
    /// Requests of the batch
    #[arg(long, value_name = "COUNT", default_value = "2000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) requests: u32,

    /// Milliseconds that a minute of the service takes
    #[arg(long, value_name = "MS", default_value = "2500", value_parser = clap::value_parser!(u32).range(100..=60_000))]
    minute_ms: u32,

    /// Requests that are in progress at the same time, of all clients
    #[arg(long, value_name = "COUNT", default_value = "96", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    workers: u32,

    /// Clients that share the account, each with its own limiter
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=CLIENTS as i64))]
    clients: u32,

    /// A way to run, may be repeated [default: all of them]
    #[arg(long = "mode", value_name = "MODE")]
    modes: Vec<Mode>,

    /// A person asks beside the batch, now and then: by default only in the declared ways
    #[arg(long, conflicts_with = "clients")]
    pub(crate) person: bool,

    /// Where the chart is written
    #[arg(long, value_name = "PATH", default_value = "target/llm_batch.svg")]
    pub(crate) svg: PathBuf,
}

impl Settings {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            requests: 200,
            tokens: 160_000,
            minute: Duration::from_millis(self.minute_ms.into()),
        }
    }

    /// Returns how many clients share the account.
    pub(crate) const fn clients(&self) -> usize {
        self.clients as usize
    }

    /// Returns the workers of each client.
    pub(crate) const fn workers(&self) -> usize {
        self.workers.div_ceil(self.clients) as usize
    }

    /// Returns the ways to run, each once, in the order of the table.
    pub(crate) fn modes(&self) -> Vec<Mode> {
        let modes = run::modes(&self.modes);
        let is_asked = |mode: &Mode| match mode {
            Mode::Classes => self.person,
            Mode::Declared => true,
            _ => !self.person || !self.modes.is_empty(),
        };
        modes.into_iter().filter(is_asked).collect()
    }

    /// Returns the requests of the batch, and after them those that a person may make.
    pub(crate) fn jobs(&self, seed: u64) -> Vec<Job> {
        let most = if self.person { 1_000 } else { 0 };
        jobs(seed, self.requests as usize + most)
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{Mode, Settings};

    #[test]
    fn the_flags_are_consistent() {
        Settings::command().debug_assert();
    }

    #[test]
    fn modes_run_once_each_and_in_the_order_of_the_table() {
        let flags = "llm_batch --mode declared --mode none --mode declared";
        let settings = Settings::try_parse_from(flags.split(' ')).expect("the flags are good");
        assert_eq!(settings.modes(), [Mode::None, Mode::Declared]);
        let modes = |flags: &str| {
            let settings = Settings::try_parse_from(flags.split(' ')).expect("the flags are good");
            settings.modes()
        };
        assert!(!modes("llm_batch").contains(&Mode::Classes));
        assert_eq!(modes("llm_batch --person"), [Mode::Declared, Mode::Classes]);
    }
}
