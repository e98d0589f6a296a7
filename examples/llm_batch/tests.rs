//! What the example claims, in virtual time: a run takes no time, and gives the same each time.

use alloc::sync::Arc;

use clap::Parser;

use crate::{
    batch,
    report::{Report, chart, table},
    run, send,
    service::Service,
    settings::{Mode, Settings},
    transport::Transport,
};

fn settings(flags: &str) -> Settings {
    let flags = ["llm_batch"].into_iter().chain(flags.split_whitespace());
    Settings::try_parse_from(flags).expect("the flags are good")
}

/// Sends the whole batch without sockets.
async fn virtual_batch(mode: Mode, seed: u64) -> Report {
    virtual_batch_of("", mode, seed).await
}

async fn virtual_batch_of(flags: &str, mode: Mode, seed: u64) -> Report {
    let settings = settings(flags);
    let limits = settings.limits();
    let service = Arc::new(Service::new(limits, settings.jobs(seed)));
    let direct = |client| Transport::Direct(Arc::clone(&service), client);
    let transports = (0..settings.clients()).map(direct).collect();
    let report = send(&settings, mode, &service, transports);
    let report = tokio::time::timeout(100 * limits.minute, report).await;
    let report = report.expect("a hundred minutes are enough");
    report.expect("no worker fails")
}

#[tokio::test(start_paused = true)]
async fn four_clients_use_declared_limits_without_throttles() {
    let report = virtual_batch_of("--clients 4", Mode::Declared, 1).await;
    assert_eq!(report.differences(), [""; 0]);
    assert_eq!((report.client.done, report.failed), (2_000, 0));
    assert!(report.throttled_later() <= 0.005, "{report:?}");
    assert!(report.used() >= 0.9, "{}", report.used());
    assert!(report.jain() >= Some(0.9), "{:?}", report.jain());
}

#[tokio::test(start_paused = true)]
async fn a_person_goes_before_a_batch_that_is_background() {
    let play = |mode| virtual_batch_of("--person", mode, 1);
    let (line, classes) = (play(Mode::Declared).await, play(Mode::Classes).await);
    let nine_tenths = |report: &Report| report.waits[report.waits.len() * 9 / 10];
    assert!(classes.waits.len() > 50, "{classes:?}");
    assert!(
        nine_tenths(&classes) * 10 < nine_tenths(&line),
        "{:?} and {:?}",
        classes.person(),
        line.person()
    );
    assert_eq!(classes.failed, 0);
    assert!(classes.throttled_later() <= 0.005, "{classes:?}");
    // Three eighths of the first bucket are left alone.
    assert!(classes.used() >= 0.92, "{}", classes.used());
    assert!(classes.steady() >= Some(0.95), "{:?}", classes.steady());
}

#[tokio::test(start_paused = true)]
async fn declared_limits_are_used_without_throttles() {
    for seed in [1, 2, 3] {
        let report = virtual_batch(Mode::Declared, seed).await;
        assert_eq!(report.differences(), [""; 0]);
        assert_eq!((report.client.done, report.failed), (2_000, 0));
        assert!(report.throttled_later() <= 0.005, "{report:?}");
        assert!(report.used() >= 0.95, "{}", report.used());
        assert!(report.steady() >= Some(0.97), "{:?}", report.steady());
        assert!(report.time() <= report.ideal() + 2.5, "{}", report.time());
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_not_told_throttles() {
    // The least share that each throttles, and that it uses; governor has a clock that cannot be
    // stopped.
    for (mode, least, used) in [
        (Mode::None, 0.9, 0.9),
        (Mode::Backoff, 0.5, 0.9),
        (Mode::Paced, 0.02, 0.9),
        (Mode::PacedSet, 0.01, 0.8),
    ] {
        let report = virtual_batch(mode, 1).await;
        assert_eq!(report.differences(), [""; 0]);
        assert!(
            report.throttled() >= least,
            "{mode:?}: {}",
            report.throttled()
        );
        assert!(report.used() >= used, "{mode:?}: {}", report.used());
        let paces = matches!(mode, Mode::Paced | Mode::PacedSet);
        assert_eq!(report.failed == 0, paces, "{mode:?}: {report:?}");
    }
}

#[tokio::test]
async fn both_sides_of_a_socket_count_the_same() {
    let settings = settings("--requests 60 --minute-ms 400");
    let mut reports = Vec::new();
    for mode in run::modes(&[]) {
        let report = batch(&settings, mode).await.expect("a port is free");
        assert_eq!(report.differences(), [""; 0]);
        reports.push(report);
    }
    let (table, chart) = (table(&settings, &reports), chart(&settings, &reports));
    for mode in run::modes::<Mode>(&[]) {
        assert!(table.contains(mode.title()) && chart.contains(mode.title()));
    }
}
