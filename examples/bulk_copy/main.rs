//! Copies 4,003 objects through a service that throttles, once for each way of retrying, and shows
//! what came of it.
//!
//! A job that copies every file under one prefix of an object store meets the store's limit on
//! requests per second. How the client retries decides whether the job succeeds. This program makes
//! that visible with real sockets: a small object service with S3's limit and S3's refusal, scaled
//! down to any laptop, and a client that copies through the crate's strategies.
//!
//! ```text
//! cargo run --release --example bulk_copy -- --help
//! ```
//!
//! The way through the code: [`settings`] are the flags; [`job`] runs one mode, with a [`service`]
//! and workers that each [`copy`] an object at a time; [`copy`] is where the crate is
//! used. Every number in the [`table`] and the [`chart`] was counted by the client's [`tally`] and
//! by the service's [`ledger`], and the program fails if these differ.

extern crate alloc;

mod chart;
mod client;
#[path = "../common/columns.rs"]
mod columns;
mod copy;
mod job;
mod ledger;
mod mode;
#[path = "../common/number.rs"]
mod number;
mod panel;
mod policer;
mod progress;
mod report;
mod s3;
#[path = "../common/scale.rs"]
mod scale;
mod service;
mod settings;
mod store;
mod strategies;
#[path = "../common/svg.rs"]
mod svg;
mod table;
mod tally;

use alloc::sync::Arc;
use std::{
    fs,
    io::{self, IsTerminal},
    path::Path,
    process::ExitCode,
};

use clap::Parser;
use tokio::runtime;

use crate::{
    job::RunFailure, mode::Mode, progress::Progress, report::Report, settings::Settings,
    strategies::Plan,
};

/// A mode that paces its sends lost an object, or none did run.
const INCOMPLETE: u8 = 1;
/// The run could not be carried out.
const BROKEN: u8 = 2;
/// The client and the service counted different things.
const MISCOUNTED: u8 = 3;

fn main() -> ExitCode {
    match run(&Settings::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bulk_copy: {error}");
            ExitCode::from(BROKEN)
        }
    }
}

/// Lets the process open as many sockets as the system allows: thousands of workers need more than
/// the usual 1,024.
#[cfg(unix)]
fn allow_sockets() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Refused, the limit is what it was, and requests beyond it are shown as never answered.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(not(unix))]
fn allow_sockets() {}

fn run(settings: &Settings) -> Result<ExitCode, RunFailure> {
    allow_sockets();
    let plans = plans(settings)?;
    for (mode, plan) in &plans {
        if let Some(warning) = &plan.warning {
            eprintln!("{}: {warning}.", mode.name());
        }
    }
    let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
    let reports = runtime.block_on(copies(settings, plans))?;
    if io::stderr().is_terminal() {
        eprintln!(); // the last bar ends without one
    }
    println!("{}", table::table(settings, &reports));
    if !counts_agree(&reports) {
        return Ok(ExitCode::from(MISCOUNTED));
    }
    println!("The client and the service counted the same requests, throttles and objects.");
    write_chart(&settings.svg, &chart::chart(settings, &reports))?;
    println!("Chart: {}", settings.svg.display());
    Ok(verdict(&reports))
}

fn plans(settings: &Settings) -> Result<Vec<(Mode, Plan)>, RunFailure> {
    let plan = |mode| {
        let plan = Plan::new(mode, settings.attempts(), settings.workers())?;
        Ok((mode, plan))
    };
    settings.modes().into_iter().map(plan).collect()
}

/// Runs every mode and returns the reports in the order of `plans`.
async fn copies(settings: &Settings, plans: Vec<(Mode, Plan)>) -> Result<Vec<Report>, RunFailure> {
    let progress = Progress::default();
    let settings = Arc::new(settings.clone());
    let mut running = Vec::new();
    let mut reports = Vec::new();
    for (mode, plan) in plans {
        let bar = progress.bar(mode, settings.objects());
        let asked = Arc::clone(&settings);
        let job = tokio::spawn(async move { job::run(mode, plan, &asked, bar).await });
        if settings.side_by_side() {
            running.push(job);
        } else {
            reports.push(job.await??);
        }
    }
    for job in running {
        reports.push(job.await??);
    }
    Ok(reports)
}

fn write_chart(path: &Path, chart: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, chart)
}

/// Says on standard error on which counts the two sides differ, and returns whether there are none.
fn counts_agree(reports: &[Report]) -> bool {
    let mut agree = true;
    for report in reports {
        for mismatch in report.mismatches() {
            eprintln!("{}: {mismatch}", report.mode.name());
            agree = false;
        }
    }
    agree
}

/// Returns the exit code, and says on standard error why it is not that of success.
fn verdict(reports: &[Report]) -> ExitCode {
    let paces = |report: &&Report| report.mode.paces_sends();
    if !reports.iter().any(|report| paces(&report)) {
        eprintln!("neither adaptive nor paced nor bulk did run, so nothing is shown to succeed");
        return ExitCode::from(INCOMPLETE);
    }
    let mut code = ExitCode::SUCCESS;
    for report in reports
        .iter()
        .filter(paces)
        .filter(|report| !report.is_complete())
    {
        let (name, lost) = (report.mode.name(), report.failures.total());
        eprintln!("{name} lost {lost} of {} objects", report.objects);
        code = ExitCode::from(INCOMPLETE);
    }
    code
}
