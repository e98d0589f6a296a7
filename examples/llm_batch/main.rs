//! Sends 2,000 requests to a service that limits requests and tokens a minute, once for each way of
//! limiting the client, and shows what came of it.
//!
//! The service runs on loopback and counts as those of language models do; its minute is a few
//! seconds. What a request costs is known only after it: estimates are wrong by up to a factor of
//! three.
//!
//! ```text
//! cargo run --release -p paceline-examples --bin llm_batch -- --help
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
use std::process::ExitCode;

use clap::Parser;
use common::{chart, columns, number, policer, run, server, table, tally};
use tokio::time::Instant;

use crate::{
    client::{Batch, Part},
    report::Report,
    run::Failure,
    server::Server,
    service::Service,
    settings::{Mode, Settings},
    transport::Transport,
};

fn main() -> ExitCode {
    let settings = Settings::parse();
    run::main("llm_batch", async move { batches(&settings).await })
}

/// Runs every way, prints what came of it, and returns the exit code.
async fn batches(settings: &Settings) -> Result<u8, Failure> {
    let batch = |mode| {
        let settings = settings.clone();
        async move { batch(&settings, mode).await }
    };
    let reports = run::each(settings.modes(), true, batch).await?;
    println!("{}", report::table(settings, &reports));
    let differences = reports.iter().flat_map(Report::differences);
    if !run::agree(differences) {
        return Ok(3);
    }
    run::write(&settings.svg, &report::chart(settings, &reports))?;
    println!("Chart: {}", settings.svg.display());
    let mut declared = reports
        .iter()
        .filter(|report| report.mode == Mode::Declared);
    Ok(u8::from(!declared.all(Report::kept_to_limits)))
}

/// Runs one way on its own account, over sockets.
async fn batch(settings: &Settings, mode: Mode) -> Result<Report, Failure> {
    let account = Arc::new(Service::new(settings.limits(), settings.jobs(1)));
    let server = Server::start(Arc::clone(&account)).await?;
    let transport = |client| Transport::http(server.address().port(), client);
    let transports = (0..settings.clients()).map(transport);
    send(
        settings,
        mode,
        &account,
        transports.collect::<Result<_, _>>()?,
    )
    .await
}

/// Sends the batch from clients with these ways to the service.
async fn send(
    settings: &Settings,
    mode: Mode,
    account: &Service,
    transports: Vec<Transport>,
) -> Result<Report, Failure> {
    let (limits, clients) = (settings.limits(), transports.len());
    let mut jobs: Vec<_> = account.jobs().iter().copied().enumerate().collect();
    let person = jobs.split_off(settings.requests as usize);
    let begun = Instant::now();
    let mut sending = Vec::new();
    for (client, transport) in transports.into_iter().enumerate() {
        let each = jobs.iter().skip(client).step_by(clients);
        let batch = Batch {
            mode,
            limits,
            jobs: each.copied().collect(),
            person: person.clone(),
        };
        let client = client::run(batch, transport, settings.workers());
        sending.push(tokio::spawn(client));
    }
    let mut all = Part::default();
    for part in sending {
        let part = part.await??;
        all.counts += part.counts;
        all.failed += part.failed;
        all.waits.extend(part.waits);
    }
    Ok(Report {
        mode,
        limits,
        clients,
        elapsed: begun.elapsed(),
        client: all.counts,
        failed: all.failed,
        waits: all.waits,
        service: account.ledger(),
    })
}
