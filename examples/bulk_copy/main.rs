//! Copies 4,003 objects through a service that throttles, once for each way of retrying, and shows
//! what came of it.
//!
//! A job that copies every file under one prefix of an object store meets the store's limit on
//! requests per second. How the client retries decides whether the job succeeds. This program makes
//! that visible with real sockets: a small object service with S3's limit and S3's refusal, scaled
//! down to any laptop, and a client that copies through the crate's strategies.
//!
//! ```text
//! cargo run --release -p paceline-examples --bin bulk_copy -- --help
//! ```
//!
//! The way through the code: [`settings`] are the flags; [`client`] is where the crate is used;
//! [`service`] throttles. Every number in the [`report`] and the chart was counted by the client
//! and by the service, and the program fails if these differ.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "an example: its numbers are small"
)]

extern crate alloc;

#[path = "../common/mod.rs"]
mod common;

mod client;
mod mode;
mod progress;
mod report;
mod s3;
mod service;
mod settings;

use alloc::sync::Arc;
use std::process::ExitCode;

use clap::Parser;
use common::{chart, columns, number, policer, run, server, table, tally};
use paceline::operation::StopReason;

use crate::{
    client::{Client, copy},
    mode::Mode,
    progress::Progress,
    report::Report,
    run::Failure,
    server::Server,
    service::Service,
    settings::Settings,
};

/// The requests that the service serves at once after a pause.
const BURST: u32 = 100;

/// A mode that paces its sends lost an object, or none did run.
const INCOMPLETE: u8 = 1;
/// The client and the service counted different things.
const MISCOUNTED: u8 = 3;

fn main() -> ExitCode {
    let settings = Settings::parse();
    run::main("bulk_copy", async move { copies(&settings).await })
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

/// Runs every mode, prints what came of it, and returns the exit code.
async fn copies(settings: &Settings) -> Result<u8, Failure> {
    allow_sockets();
    println!("{}", report::head(settings));
    let progress = Progress::default();
    let shown = progress.show();
    let job = |mode| {
        let (settings, progress) = (settings.clone(), progress.clone());
        async move {
            let report = job(mode, &settings, &progress).await?;
            progress::ended(&report);
            Ok(report)
        }
    };
    let reports = run::each(settings.modes(), settings.side_by_side(), job).await?;
    shown.abort();
    println!("{}", report::foot(&reports));
    let differences = reports.iter().flat_map(Report::differences);
    if !run::agree(differences) {
        return Ok(MISCOUNTED);
    }
    run::write(&settings.svg, &report::chart(settings, &reports))?;
    println!("Chart: {}", settings.svg.display());
    Ok(verdict(&reports))
}

/// Copies all objects in one mode, and returns what both sides counted.
async fn job(mode: Mode, settings: &Settings, progress: &Progress) -> Result<Report, Failure> {
    let (objects, rate) = (settings.objects.get(), settings.limit.get());
    let service = Arc::new(Service::new((rate, BURST), objects as usize));
    let server = Server::start(Arc::clone(&service)).await?;
    let (client, strategy) = (Client::new(server.address())?, mode.strategy()?);
    progress.begins(mode, &client);
    let each = client.clone();
    let work = move |_, number: usize| {
        let (client, strategy) = (each.clone(), Arc::clone(&strategy));
        async move { copy(&client, &*strategy, number).await }
    };
    let workers = settings.workers.get() as usize;
    let ended = run::workers(workers, objects as usize, work).await?;
    let elapsed = service.age();
    let count = |of: fn(&Result<(), StopReason>) -> bool| {
        ended.iter().filter(|ended| of(ended)).map(|_| 1).sum()
    };
    Ok(Report {
        mode,
        objects,
        rate,
        copied: count(Result::is_ok),
        out_of_attempts: count(|ended| matches!(ended, Err(StopReason::MaxAttempts { .. }))),
        out_of_quota: count(|ended| matches!(ended, Err(StopReason::QuotaExhausted { .. }))),
        elapsed,
        client: client.counts(),
        service: service.ledger(),
    })
}

/// Returns the exit code, and says on standard error why it is not that of success.
fn verdict(reports: &[Report]) -> u8 {
    let paced = reports.iter().filter(|report| report.mode.paces_sends());
    let paced: Vec<_> = paced.collect();
    if paced.is_empty() {
        eprintln!("neither adaptive nor paced nor bulk did run, so nothing is shown to succeed");
    }
    for report in paced.iter().filter(|report| report.lost() > 0) {
        let (name, lost) = (report.mode.name(), report.lost());
        eprintln!("{name} lost {lost} of {} objects", report.objects);
    }
    if paced.is_empty() || paced.iter().any(|report| report.lost() > 0) {
        return INCOMPLETE;
    }
    0
}
