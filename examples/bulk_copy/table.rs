//! The table on standard output.

#![expect(clippy::float_arithmetic, reason = "percentages for people")]

use crate::{
    report::{Report, grouped},
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
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(reports.iter().map(|report| row(settings, report)));
    let widths = columns(&rows);
    let mut lines = vec![heading(settings), String::new()];
    for (index, row) in rows.iter().enumerate() {
        lines.push(aligned(row, &widths));
        if index == 0 {
            lines.push(widths.map(|width| "-".repeat(width)).join("  "));
        }
    }
    lines.push(String::new());
    lines.extend(reports.iter().filter_map(failures));
    lines.push(LEGEND.to_owned());
    lines.join("\n")
}

const LEGEND: &str = "\
sends: the most for one operation; share: of the requests, how many were throttled;
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

fn row(settings: &Settings, report: &Report) -> [String; 9] {
    [
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

/// Returns `share` in percent with `digits` decimals.
pub(crate) fn percent(share: f64, digits: usize) -> String {
    format!("{:.digits$} %", share * 100.0)
}

fn columns(rows: &[[String; 9]]) -> [usize; 9] {
    core::array::from_fn(|column| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    })
}

/// Returns the cells of a row in columns: the first to the left, numbers to the right.
fn aligned(row: &[String; 9], widths: &[usize; 9]) -> String {
    let cells: Vec<_> = row
        .iter()
        .zip(widths)
        .enumerate()
        .map(|(index, (cell, &width))| match index {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        })
        .collect();
    cells.join("  ")
}

#[cfg(test)]
mod tests {
    use super::{aligned, columns, percent};

    #[test]
    fn numbers_end_in_the_same_column() {
        let row = |name: &str, number: &str| {
            let mut row: [String; 9] = core::array::from_fn(|_| number.to_owned());
            name.clone_into(&mut row[0]);
            row
        };
        let rows = [row("mode", "n"), row("a", "4,003")];
        let widths = columns(&rows);
        let lines = rows.map(|row| aligned(&row, &widths));
        assert!(lines[0].starts_with("mode      n      n"));
        assert!(lines[1].starts_with("a     4,003  4,003"));
    }

    #[test]
    fn shares_are_printed_in_percent() {
        assert_eq!(percent(0.0031, 1), "0.3 %");
        assert_eq!(percent(1.0, 0), "100 %");
    }
}
