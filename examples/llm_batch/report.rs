//! What one way came to, and the table of all.

#![expect(clippy::float_arithmetic, reason = "shares and times for people")]

use core::time::Duration;

use crate::{
    chart::{Chart, Panel, steps},
    columns,
    ledger::{BINS, Ledger},
    number::{grouped, jain, number, percent, share},
    run,
    settings::{Limits, Mode, Settings},
    table::{Column, rows},
    tally::{Counts, quantile},
};

/// Minutes that are left out of the steady share: the first bucket is used in them.
const FIRST: u32 = 2;

/// The outcome of one way.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) mode: Mode,
    pub(crate) limits: Limits,
    pub(crate) clients: usize,
    pub(crate) elapsed: Duration,
    pub(crate) client: Counts,
    /// Requests that were given up.
    pub(crate) failed: u64,
    /// How long the person waited, the least first.
    pub(crate) waits: Vec<Duration>,
    pub(crate) service: Ledger,
}

impl Report {
    fn minutes(&self, span: Duration) -> f64 {
        span.as_secs_f64() / self.limits.minute.as_secs_f64()
    }

    /// Returns the time that it took, in minutes of the service.
    pub(crate) fn time(&self) -> f64 {
        self.minutes(self.elapsed)
    }

    /// Returns the time in which the service would have admitted the same at the best.
    pub(crate) fn ideal(&self) -> f64 {
        let tokens = number(self.service.tokens) / f64::from(self.limits.tokens);
        let requests = number(self.service.counts.done) / f64::from(self.limits.requests);
        (tokens.max(requests) - 1.0).max(0.0)
    }

    pub(crate) fn throttled(&self) -> f64 {
        share(self.client.throttled, self.client.sent)
    }

    /// Returns the share of the requests that were throttled, of those that came after the first
    /// answer.
    pub(crate) fn throttled_later(&self) -> f64 {
        let early = self.service.throttled_early;
        let sent = self.client.sent.saturating_sub(self.service.sent_early);
        share(self.client.throttled.saturating_sub(early), sent)
    }

    /// Returns the tokens used of all that were offered, the first bucket included.
    pub(crate) fn used(&self) -> f64 {
        let offered = 1.0 + self.minutes(self.service.last_admitted);
        number(self.service.tokens) / f64::from(self.limits.tokens) / offered
    }

    /// Returns the tokens a minute that were used from the third minute on, of the limit. `None` if
    /// the batch had ended by then.
    pub(crate) fn steady(&self) -> Option<f64> {
        let whole = self.minutes(self.service.last_admitted) * f64::from(BINS);
        let bins = self.service.timeline.iter().zip(0_u32..);
        let steady = bins.filter(|(_, bin)| *bin >= FIRST * BINS && f64::from(*bin) + 1.0 <= whole);
        let (tokens, count) = steady.fold((0, 0_u32), |(tokens, count), (bin, _)| {
            (tokens + bin.admitted, count + 1)
        });
        let offered = f64::from(self.limits.tokens) * f64::from(count) / f64::from(BINS);
        (count >= BINS).then(|| number(tokens) / offered)
    }

    /// Returns Jain's index of the clients' tokens when half of the batch was admitted.
    pub(crate) fn jain(&self) -> Option<f64> {
        let parts = self.service.parts_at_half.filter(|_| self.clients > 1)?;
        Some(jain(&parts[..self.clients]))
    }

    /// Returns the counts on which the clients and the service differ, in words.
    pub(crate) fn differences(&self) -> Vec<String> {
        let found = self.client.differences(self.service.counts);
        let name = run::name(&self.mode);
        found.iter().map(|of| format!("{name}: {of}")).collect()
    }

    /// Returns how long the person waited, in words and in seconds of the service's minute.
    pub(crate) fn person(&self) -> Option<String> {
        let seconds = |permille| 60.0 * self.minutes(quantile(&self.waits, permille));
        let text = format!(
            "{}: the person asked {} times, and waited {:.1} s at the median, {:.1} s at the 99th percentile",
            self.mode.title(),
            self.waits.len(),
            seconds(500),
            seconds(990),
        );
        (!self.waits.is_empty()).then_some(text)
    }

    /// Returns whether everything was done with hardly a throttle.
    pub(crate) fn kept_to_limits(&self) -> bool {
        self.failed + self.client.lost == 0 && self.throttled_later() <= 0.005
    }
}

const COLUMNS: [Column<Report>; 11] = [
    ("client", |of| of.mode.title().to_owned()),
    ("done", |of| grouped(of.client.done)),
    ("failed", |of| grouped(of.failed)),
    ("minutes", |of| format!("{:.1}", of.time())),
    ("ideal", |of| format!("{:.1}", of.ideal())),
    ("sent", |of| grouped(of.client.sent)),
    ("throttled", |of| percent(of.throttled(), 1)),
    ("after 1st report", |of| percent(of.throttled_later(), 2)),
    ("used", |of| percent(of.used(), 1)),
    ("from min 3", |of| {
        let steady = of.steady().map(|steady| percent(steady, 1));
        steady.unwrap_or_else(|| "–".to_owned())
    }),
    // Only of several clients.
    ("Jain", |of| {
        let jain = of.jain().map(|jain| format!("{jain:.3}"));
        jain.unwrap_or_else(|| "–".to_owned())
    }),
];

/// Returns the table, with what was asked above it and what the columns mean below.
pub(crate) fn table(settings: &Settings, reports: &[Report]) -> String {
    let count = COLUMNS.len() - usize::from(settings.clients() == 1);
    let mut lines = vec![heading(settings), String::new()];
    lines.extend(columns::lines(&rows(&COLUMNS[..count], reports)));
    lines.push(String::new());
    lines.push(LEGEND.to_owned());
    lines.extend(reports.iter().filter_map(Report::person));
    lines.join("\n")
}

const LEGEND: &str = "\
minutes: of the service, until the last answer; ideal: the least in which the service would have admitted as much;
throttled: of the requests sent; after 1st report: of those that came after the first answer had gone out;
used: tokens of all that the service offered until the last admission, the full first bucket included;
from min 3: tokens a minute used of the limit, from the third minute on.";

/// Returns the chart as an SVG document.
pub(crate) fn chart(settings: &Settings, reports: &[Report]) -> String {
    let limit = f64::from(settings.limits().tokens);
    let end = reports.iter().map(Report::time).fold(1.0, f64::max);
    let panels = reports.iter().map(|report| Panel {
        name: report.mode.title().to_owned(),
        lines: [
            format!(
                "{} requests done, {} failed",
                grouped(report.client.done),
                grouped(report.failed)
            ),
            format!(
                "{:.1} min, {} throttled, {} of the limit used",
                report.time(),
                percent(report.throttled(), 1),
                percent(report.used(), 0),
            ),
        ],
        steps: steps(&report.service.timeline, 1, 1.0 / f64::from(BINS)),
        bars: Default::default(),
    });
    Chart {
        title: "One batch, one account, six ways to limit the client".to_owned(),
        setting: heading(settings),
        columns: 2,
        rate: ["tokens", "minute"],
        across: "Across: minutes of the service. Each step is the mean of 15 s.".to_owned(),
        end,
        highest: 3.0 * limit,
        limit: vec![(0.0, end, limit)],
        bars: None,
    }
    .draw(&panels.collect::<Vec<_>>())
}

/// Returns what was asked for, in one line.
fn heading(settings: &Settings) -> String {
    let limits = settings.limits();
    let clients = match settings.clients() {
        1 => "one client".to_owned(),
        clients => format!("{clients} clients"),
    };
    format!(
        "{} requests from {clients}, {} at a time; {} requests and {} tokens a minute, which takes {:.1} s",
        grouped(settings.requests.into()),
        settings.workers() * settings.clients(),
        grouped(limits.requests.into()),
        grouped(limits.tokens.into()),
        limits.minute.as_secs_f64(),
    )
}
