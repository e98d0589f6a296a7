//! What each mode came to: the table on standard output, and the chart.

#![expect(clippy::float_arithmetic, reason = "shares and seconds for people")]

use core::time::Duration;

use crate::{
    chart::{Chart, Panel},
    columns,
    mode::Mode,
    number::{grouped, number, percent, share},
    service::{BIN, Ledger},
    settings::Settings,
    tally::Counts,
};

/// The outcome of one mode: what the client and the service counted.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) mode: Mode,
    /// The most sends that one operation was allowed.
    pub(crate) attempts: u32,
    pub(crate) objects: u32,
    /// Objects that the client saw copied.
    pub(crate) copied: u64,
    /// Objects that it gave up on after the last send, and with the quota empty.
    pub(crate) out_of_attempts: u64,
    pub(crate) out_of_quota: u64,
    pub(crate) elapsed: Duration,
    pub(crate) client: Counts,
    pub(crate) service: Ledger,
}

impl Report {
    /// Returns the objects that were not copied.
    pub(crate) fn lost(&self) -> u64 {
        u64::from(self.objects) - self.copied
    }

    /// Returns every count on which the two sides differ, in words.
    pub(crate) fn differences(&self) -> Vec<String> {
        let mut found = self.client.differences(self.service.counts);
        let (copied, stored) = (self.copied, self.service.copies);
        if !(copied..=copied + self.client.lost).contains(&stored) {
            found.push(format!(
                "objects: the client counted {copied}, the service {stored}"
            ));
        }
        let name = self.mode.name();
        found.iter().map(|of| format!("{name}: {of}")).collect()
    }

    fn throttled(&self) -> String {
        percent(share(self.client.throttled, self.client.sent), 1)
    }

    /// Returns the objects copied as a share of those that the limit allowed in the time it took.
    ///
    /// The limit allows its burst at once and its rate from then on.
    fn goodput(&self, settings: &Settings) -> f64 {
        let limits = settings.limits();
        let rate = f64::from(limits.rate);
        number(self.copied) / rate.mul_add(self.elapsed.as_secs_f64(), limits.burst.into())
    }
}

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
fn heading(settings: &Settings) -> String {
    let limits = settings.limits();
    format!(
        "{} objects, {} at a time; the service allows {} copies/s after a burst of {} and answers in {} ms",
        grouped(settings.objects().into()),
        settings.workers(),
        limits.rate,
        limits.burst,
        limits.latency.as_millis(),
    )
}

fn row(settings: &Settings, report: &Report) -> Vec<String> {
    vec![
        report.mode.name(),
        report.attempts.to_string(),
        grouped(report.copied),
        grouped(report.lost()),
        grouped(report.client.sent),
        grouped(report.client.throttled),
        report.throttled(),
        format!("{:.1}", report.elapsed.as_secs_f64()),
        percent(report.goodput(settings), 0),
    ]
}

/// Returns why a mode gave up on objects and what else went wrong, or `None` if nothing did.
fn failures(report: &Report) -> Option<String> {
    let other = report.lost() - report.out_of_attempts - report.out_of_quota;
    let reasons = [
        (report.out_of_attempts, "failed after the last send"),
        (report.out_of_quota, "failed with the retry quota empty"),
        (other, "failed otherwise"),
        (
            report.client.rejected,
            "requests answered with another error",
        ),
        (report.client.lost, "requests never answered"),
    ];
    let reasons = reasons.iter().filter(|(count, _)| *count > 0);
    let reasons: Vec<_> = reasons
        .map(|(count, reason)| format!("{} {reason}", grouped(*count)))
        .collect();
    let name = report.mode.name();
    (!reasons.is_empty()).then(|| format!("{name}: {}.", reasons.join(", ")))
}

/// Returns the chart as an SVG document.
pub(crate) fn chart(settings: &Settings, reports: &[Report]) -> String {
    let heading = heading(settings);
    let chart = Chart {
        title: "Same copy, same limit, six ways to retry",
        lines: heading.split("; ").map(str::to_owned).collect(),
        unit: "requests",
        time: "seconds since the copy began",
        bin: BIN.as_secs_f64(),
        limit: f64::from(settings.limits().rate) * BIN.as_secs_f64(),
        highest: 4.0,
    };
    let panels = reports.iter().map(|report| Panel {
        name: report.mode.title(report.attempts),
        outcome: format!(
            "{:.1} s, {} of {} copied, {} of {} requests refused ({})",
            report.elapsed.as_secs_f64(),
            grouped(report.copied),
            grouped(report.objects.into()),
            grouped(report.client.throttled),
            grouped(report.client.sent),
            report.throttled(),
        ),
        time: report.elapsed.as_secs_f64(),
        timeline: &report.service.timeline,
    });
    chart.draw(&panels.collect::<Vec<_>>())
}
