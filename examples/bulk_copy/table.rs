//! The table on standard output.

use crate::{
    columns,
    number::{grouped, percent},
    report::Report,
    settings::{Settings, Via},
};

const HEADINGS: [&str; 9] = [
    "mode",
    "sends",
    "copied",
    "failed",
    "requests",
    "throttled",
    "share",
    "seconds",
    "goodput",
];

/// Returns the table of `reports`, with what was asked above it and what the columns mean below.
pub(crate) fn table(settings: &Settings, reports: &[Report]) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned).to_vec()];
    rows.extend(reports.iter().map(|report| row(settings, report)));
    let mut lines = vec![heading(settings), String::new()];
    lines.extend(columns::lines(&rows));
    lines.push(String::new());
    lines.extend(reports.iter().filter_map(failures));
    lines.push(LEGEND.to_owned());
    lines.join("\n")
}

const LEGEND: &str = "\
sends: the most for one operation, in bulk without those that are throttled; share: of the requests, how many were throttled;
goodput: objects copied, as a share of those that the limit allowed in that time (its burst, then its rate).";

/// Returns what was asked for, in one line.
pub(crate) fn heading(settings: &Settings) -> String {
    let limits = settings.limits();
    let allowed = match settings.via {
        Via::Server => format!("{} copies/s", limits.writes),
        Via::Client => format!("{} reads/s and {} writes/s", limits.reads, limits.writes),
    };
    format!(
        "{} objects, {} at a time; the service allows {allowed} after a burst of {} and answers in {} ms",
        grouped(settings.objects().into()),
        settings.workers(),
        limits.burst,
        limits.latency.as_millis(),
    )
}

fn row(settings: &Settings, report: &Report) -> Vec<String> {
    vec![
        report.mode.name().to_owned(),
        report.attempts.to_string(),
        grouped(report.copied),
        grouped(report.failures.total()),
        grouped(report.client.sent),
        grouped(report.client.throttled),
        percent(report.throttled_share(), 1),
        format!("{:.1}", report.elapsed.as_secs_f64()),
        percent(report.goodput_share(settings), 0),
    ]
}

/// Returns why a mode gave up on objects and what else went wrong, or `None` if nothing did.
fn failures(report: &Report) -> Option<String> {
    let (failures, client) = (report.failures, report.client);
    let reasons = [
        (failures.attempts, "failed after the last send"),
        (failures.quota, "failed with the retry quota empty"),
        (failures.other, "failed otherwise"),
        (client.rejected, "requests answered with another error"),
        (client.unanswered, "requests never answered"),
    ];
    let reasons: Vec<_> = reasons
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, reason)| format!("{} {reason}", grouped(*count)))
        .collect();
    let name = report.mode.name();
    (!reasons.is_empty()).then(|| format!("{name}: {}.", reasons.join(", ")))
}
