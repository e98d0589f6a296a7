//! What each mode came to: the rows on standard output, and the chart.

#![expect(clippy::float_arithmetic, reason = "shares and seconds for people")]

use core::time::Duration;

use crate::{
    BURST,
    chart::{Chart, Panel, steps},
    columns,
    mode::Mode,
    number::{grouped, number, percent, share},
    service::{BIN, Ledger},
    settings::Settings,
    table::Column,
    tally::Counts,
};

/// The outcome of one mode: what the client and the service counted.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) mode: Mode,
    pub(crate) objects: u32,
    /// What the service allowed in a second.
    pub(crate) rate: u32,
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

    /// Returns the row of the table.
    pub(crate) fn row(&self) -> String {
        aligned(|(_, cell)| cell(self))
    }

    fn throttled(&self) -> String {
        percent(share(self.client.throttled, self.client.sent), 1)
    }

    /// Returns the objects copied as a share of those that the limit allowed in the time it took.
    ///
    /// The limit allows its burst at once and its rate from then on.
    fn goodput(&self) -> f64 {
        let allowed = f64::from(self.rate).mul_add(self.elapsed.as_secs_f64(), BURST.into());
        number(self.copied) / allowed
    }
}

/// The columns, each with its width: rows are printed one by one.
const COLUMNS: [(usize, Column<Report>); 9] = [
    (8, ("mode", |of| of.mode.name())),
    (5, ("sends", |of| of.mode.sends().to_string())),
    (7, ("copied", |of| grouped(of.copied))),
    (7, ("failed", |of| grouped(of.lost()))),
    (8, ("requests", |of| grouped(of.client.sent))),
    (9, ("throttled", |of| grouped(of.client.throttled))),
    (6, ("share", Report::throttled)),
    (
        7,
        ("seconds", |of| format!("{:.1}", of.elapsed.as_secs_f64())),
    ),
    (7, ("goodput", |of| percent(of.goodput(), 0))),
];

fn aligned(cell: impl Fn(&Column<Report>) -> String) -> String {
    let cells: Vec<_> = COLUMNS.iter().map(|(_, column)| cell(column)).collect();
    columns::aligned(&cells, &COLUMNS.map(|(width, _)| width))
}

/// Returns what was asked and the headings, for the rows to follow.
pub(crate) fn head(settings: &Settings) -> String {
    let names = aligned(|(name, _)| (*name).to_owned());
    format!("{}\n\n{names}", heading(settings))
}

/// Returns what comes below the rows: why objects were given up, and what the columns mean.
pub(crate) fn foot(reports: &[Report]) -> String {
    let mut lines = vec![String::new()];
    lines.extend(reports.iter().filter_map(failures));
    lines.push(LEGEND.to_owned());
    lines.join("\n")
}

const LEGEND: &str = "\
sends: the most for one operation, in bulk without those that are throttled; share: of the requests, how many were throttled;
goodput: objects copied, as a share of those that the limit allowed in that time (its burst, then its rate).";

/// Returns what was asked for, in one line.
fn heading(settings: &Settings) -> String {
    format!(
        "{} objects, {} at a time; the service allows {} copies/s after a burst of {BURST} and answers in 5 ms",
        grouped(settings.objects.get().into()),
        settings.workers,
        settings.limit,
    )
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
    let rate = f64::from(settings.limit.get());
    let times = reports.iter().map(|report| report.elapsed.as_secs_f64());
    let end = times.fold(1.0, f64::max);
    let panels = reports.iter().map(|report| Panel {
        name: report.mode.name(),
        lines: [
            report.mode.what().to_owned(),
            format!(
                "{:.1} s, {} copied, {} of {} requests refused",
                report.elapsed.as_secs_f64(),
                grouped(report.copied),
                report.throttled(),
                grouped(report.client.sent),
            ),
        ],
        steps: steps(&report.service.timeline, 2, BIN.as_secs_f64()),
        bars: Default::default(),
    });
    Chart {
        title: "Same copy, same limit, six ways to retry".to_owned(),
        setting: heading(settings),
        columns: 2,
        rate: ["requests", "second"],
        across: "Across: seconds since the copy began. Each step is the mean of 0.2 s.".to_owned(),
        end,
        highest: 4.0 * rate,
        limit: vec![(0.0, end, rate)],
        bars: None,
    }
    .draw(&panels.collect::<Vec<_>>())
}
