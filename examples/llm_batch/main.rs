//! Sends 2,000 requests to a service that limits requests and tokens a minute, once for each way of
//! limiting the client, and shows what came of it.
//!
//! The service runs on loopback and counts as those of language models do; its minute is a few
//! seconds. What a request costs is known only after it: estimates are wrong by up to a factor of
//! three.
//!
//! ```text
//! cargo run --release --example llm_batch -- --help
//! ```
//!
//! The way through the code: [`client`] is where the crate is used; [`service`] says how the
//! service counts and why; [`transport`] joins them. Every number of the [`report`] was counted by
//! the service's [`ledger`] and by the client, and the program fails if these differ.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "an example: its numbers are small"
)]

extern crate alloc;

#[path = "../common/mod.rs"]
mod common;

mod client;
mod ledger;
mod report;
mod service;
mod settings;
#[cfg(test)]
mod tests;
mod transport;
mod workload;

use alloc::sync::Arc;
use std::{
    env,
    io::{self, Read as _},
    process::{Child, Command, ExitCode, Stdio},
};

use clap::Parser;
use common::{chart, columns, number, policer, run, server, tally};
use tokio::{task::spawn_blocking, time::Instant};

use crate::{
    client::{Batch, Part},
    report::Report,
    run::Failure,
    server::Server,
    service::Service,
    settings::{Join, Mode, Settings},
    tally::Counts,
    transport::Transport,
    workload::{Job, jobs},
};

fn main() -> ExitCode {
    let settings = Settings::parse();
    run::main("llm_batch", async move { batches(&settings).await })
}

/// Runs every way, prints what came of it, and returns the exit code.
async fn batches(settings: &Settings) -> Result<u8, Failure> {
    if let (Some(join), [mode]) = (settings.join, settings.modes().as_slice()) {
        let Part { counts, failed, .. } = part(settings, *mode, join).await?;
        let Counts {
            sent,
            done,
            throttled,
            lost,
            ..
        } = counts;
        println!("{sent} {done} {throttled} {lost} {failed}");
        return Ok(0);
    }
    let batch = |mode| {
        let settings = settings.clone();
        async move { batch(&settings, mode).await }
    };
    let reports = run::each(settings.modes(), !settings.one_by_one, batch).await?;
    println!("{}", report::table(settings, &reports));
    let differences = reports.iter().flat_map(Report::differences);
    let differences: Vec<_> = differences.collect();
    if !differences.is_empty() {
        eprintln!("{}", differences.join("\n"));
        return Ok(3);
    }
    println!("The clients and the service counted the same requests, throttles and answers.");
    run::write(&settings.svg, &report::chart(settings, &reports))?;
    println!("Chart: {}", settings.svg.display());
    let mut declared = reports
        .iter()
        .filter(|report| report.mode == Mode::Declared);
    Ok(u8::from(!declared.all(Report::kept_to_limits)))
}

/// Runs one way, in this process or in several, on its own account.
async fn batch(settings: &Settings, mode: Mode) -> Result<Report, Failure> {
    let limits = settings.limits();
    let service = Service::new(limits, all_jobs(settings));
    let service = Arc::new(service);
    let server = Server::start(Arc::clone(&service)).await?;
    let begun = Instant::now();
    let part = if settings.processes == 1 {
        let join = Join {
            port: server.address().port(),
            process: 0,
        };
        part(settings, mode, join).await?
    } else {
        let (asked, port) = (settings.clone(), server.address().port());
        spawn_blocking(move || processes(&asked, mode, port)).await??
    };
    Ok(Report {
        mode,
        limits,
        processes: settings.processes,
        elapsed: begun.elapsed(),
        client: part.counts,
        failed: part.failed,
        waits: part.waits,
        service: service.ledger(),
    })
}

fn all_jobs(settings: &Settings) -> Vec<Job> {
    let count = settings.requests as usize + settings.most_by_person();
    jobs(settings.seed, count)
}

/// Sends the part of one process.
async fn part(settings: &Settings, mode: Mode, join: Join) -> Result<Part, Failure> {
    let processes = settings.processes as usize;
    let jobs = all_jobs(settings).into_iter().enumerate();
    let (jobs, person): (Vec<_>, Vec<_>) =
        jobs.partition(|(number, _)| *number < settings.requests as usize);
    let jobs = jobs
        .into_iter()
        .filter(|(number, _)| number % processes == join.process);
    let transport = Transport::http(join.port, join.process)?;
    let workers = settings.workers();
    let batch = Batch {
        mode,
        limits: settings.limits(),
        jobs: jobs.collect(),
        person,
    };
    client::run(batch, transport, workers).await
}

/// Starts the processes of one way, and returns what they counted together.
fn processes(settings: &Settings, mode: Mode, port: u16) -> io::Result<Part> {
    let start = |process| {
        Command::new(env::current_exe()?)
            .args(settings.flags(mode))
            .arg(format!("--join={port}:{process}"))
            .stdout(Stdio::piped())
            .spawn()
    };
    let started: Vec<io::Result<Child>> = (0..settings.processes).map(start).collect();
    let (mut counts, mut failures) = (Counts::default(), 0);
    for child in started {
        let mut child = child?;
        let mut line = String::new();
        if let Some(mut output) = child.stdout.take() {
            output.read_to_string(&mut line)?;
        }
        child.wait()?;
        let numbers = line.split_whitespace().map(str::parse::<u64>);
        let numbers = numbers.collect::<Result<Vec<_>, _>>().unwrap_or_default();
        let [sent, done, throttled, lost, failed] = numbers[..] else {
            return Err(io::Error::other("a process failed"));
        };
        counts += Counts {
            sent,
            done,
            throttled,
            rejected: 0,
            lost,
        };
        failures += failed;
    }
    Ok(Part {
        counts,
        failed: failures,
        waits: Vec::new(),
    })
}
