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

mod bucket;
mod chart;
mod client;
#[path = "../common/columns.rs"]
mod columns;
mod ledger;
#[path = "../common/number.rs"]
mod number;
mod report;
#[path = "../common/scale.rs"]
mod scale;
mod service;
mod settings;
#[path = "../common/svg.rs"]
mod svg;
#[cfg(test)]
mod tests;
mod transport;
mod workload;

use alloc::sync::Arc;
use std::{
    env, fs,
    io::{self, Read as _},
    process::{Child, Command, ExitCode, Stdio},
};

use clap::Parser;
use tokio::{runtime, task::spawn_blocking, time::Instant};

use crate::{
    client::Counts,
    report::Report,
    service::Service,
    settings::{Join, Mode, Settings},
    transport::{Server, Transport},
    workload::{Job, jobs},
};

type Failure = Box<dyn core::error::Error + Send + Sync>;

fn main() -> ExitCode {
    match run(&Settings::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("llm_batch: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(settings: &Settings) -> Result<u8, Failure> {
    let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
    if let (Some(join), [mode]) = (settings.join, settings.modes().as_slice()) {
        let mode = *mode;
        let counts = runtime.block_on(part(settings, mode, join))?;
        println!("{}", counts.line());
        return Ok(0);
    }
    let reports = runtime.block_on(batches(settings))?;
    println!("{}", report::table(settings, &reports));
    for report in reports.iter().filter(|report| !report.counts_agree()) {
        eprintln!("{}: the counts differ: {report:?}", report.mode.name());
    }
    if !reports.iter().all(Report::counts_agree) {
        return Ok(3);
    }
    println!("The clients and the service counted the same requests, throttles and answers.");
    if let Some(folder) = settings.svg.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&settings.svg, chart::chart(settings, &reports))?;
    println!("Chart: {}", settings.svg.display());
    let mut declared = reports
        .iter()
        .filter(|report| report.mode == Mode::Declared);
    Ok(u8::from(!declared.all(Report::kept_to_limits)))
}

/// Runs every way, and returns the reports in the order of the table.
async fn batches(settings: &Settings) -> Result<Vec<Report>, Failure> {
    let mut running = Vec::new();
    let mut reports = Vec::new();
    for mode in settings.modes() {
        let asked = settings.clone();
        let batch = tokio::spawn(async move { batch(&asked, mode).await });
        if settings.one_by_one {
            reports.push(batch.await??);
        } else {
            running.push(batch);
        }
    }
    for batch in running {
        reports.push(batch.await??);
    }
    Ok(reports)
}

/// Runs one way, in this process or in several, on its own account.
async fn batch(settings: &Settings, mode: Mode) -> Result<Report, Failure> {
    let limits = settings.limits();
    let service = Service::new(limits, all_jobs(settings));
    let service = Arc::new(service);
    let server = Server::start(Arc::clone(&service)).await?;
    let begun = Instant::now();
    let client = if settings.processes == 1 {
        let join = Join {
            port: server.port,
            process: 0,
        };
        part(settings, mode, join).await?
    } else {
        let (asked, port) = (settings.clone(), server.port);
        spawn_blocking(move || processes(&asked, mode, port)).await??
    };
    Ok(Report {
        mode,
        limits,
        processes: settings.processes,
        elapsed: begun.elapsed(),
        client,
        service: service.ledger(),
    })
}

fn all_jobs(settings: &Settings) -> Vec<Job> {
    jobs(settings.seed, settings.requests as usize)
}

/// Sends the part of one process.
async fn part(settings: &Settings, mode: Mode, join: Join) -> Result<Counts, Failure> {
    let processes = settings.processes as usize;
    let jobs = all_jobs(settings).into_iter().enumerate();
    let jobs = jobs.filter(|(number, _)| number % processes == join.process);
    let transport = Transport::http(join.port, join.process)?;
    let workers = settings.workers();
    Ok(client::run(mode, settings.limits(), transport, jobs.collect(), workers).await)
}

/// Starts the processes of one way, and returns what they counted together.
fn processes(settings: &Settings, mode: Mode, port: u16) -> io::Result<Counts> {
    let start = |process| {
        Command::new(env::current_exe()?)
            .args(settings.flags(mode))
            .arg(format!("--join={port}:{process}"))
            .stdout(Stdio::piped())
            .spawn()
    };
    let started: Vec<io::Result<Child>> = (0..settings.processes).map(start).collect();
    let mut counts = Counts::default();
    for child in started {
        let mut child = child?;
        let mut line = String::new();
        if let Some(mut output) = child.stdout.take() {
            output.read_to_string(&mut line)?;
        }
        child.wait()?;
        let counted = Counts::read(&line);
        let failed = || io::Error::other("a process failed");
        counts = counts.plus(counted.ok_or_else(failed)?);
    }
    Ok(counts)
}
