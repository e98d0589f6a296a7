//! One panel of the chart: the columns of one mode under its name and its outcome.

#![expect(clippy::float_arithmetic, reason = "pixels")]

use crate::{
    chart::{ACCEPTED, Axes, FAINT, INK, REFUSED},
    ledger::Bin,
    number::{grouped, number, percent},
    report::Report,
    svg::{Anchor, Area, Font, Picture},
};

/// The height of the columns at the end of the scale.
pub(crate) const PLOT: f64 = 110.0;

/// The space between the foot of one panel's columns and the next panel.
pub(crate) const GAP: f64 = 14.0;

/// The height of a panel with its heading.
pub(crate) const HEIGHT: f64 = 56.0 + PLOT + GAP;

/// The height at which a column that is too high for the panel has its gap.
const CUT: f64 = PLOT - 16.0;

/// The room that the label of a cut column needs.
const LABEL: f64 = 44.0;

const TEXT: Font = Font {
    size: 12.0,
    bold: false,
    color: FAINT,
};

/// Draws the panel of `report`, `top` pixels from the top.
pub(crate) fn draw(picture: &mut Picture, axes: &Axes, top: f64, report: &Report) {
    let foot = top + HEIGHT - GAP;
    heading(picture, top, report);
    grid(picture, axes, foot);
    columns(picture, axes, foot, report);
    let (left, right) = Axes::sides();
    let limit = foot - axes.requests.pixels(axes.limit);
    picture.line((left, limit), (right, limit), INK, "6 4");
    picture.line((left, foot), (right, foot), INK, "none");
    cuts(picture, axes, foot, &report.service.timeline);
    end(picture, axes, foot, report);
}

fn heading(picture: &mut Picture, top: f64, report: &Report) {
    let name = Font {
        size: 14.0,
        bold: true,
        color: INK,
    };
    let lost = match report.failures.total() {
        0 => "none lost".to_owned(),
        lost => format!("{} lost", grouped(lost)),
    };
    let outcome = format!(
        "{} of {} copied, {lost}; {} of {} requests refused ({})",
        grouped(report.copied),
        grouped(report.objects.into()),
        grouped(report.client.throttled),
        grouped(report.client.sent),
        percent(report.throttled_share(), 1),
    );
    let (left, right) = Axes::sides();
    let title = report.mode.title(report.attempts);
    picture.text((left, top + 22.0), Anchor::Start, name, &title);
    picture.text((right, top + 22.0), Anchor::End, TEXT, &outcome);
}

fn grid(picture: &mut Picture, axes: &Axes, foot: f64) {
    let (left, right) = Axes::sides();
    for value in axes.requests.ticks() {
        let y = foot - axes.requests.pixels(value);
        picture.line((left, y), (right, y), "#e4e4e4", "none");
        let label = axes.requests.label(value);
        picture.text((left - 7.0, y + 4.0), Anchor::End, TEXT, &label);
    }
    let small = Font { size: 11.0, ..TEXT };
    let middle = foot - PLOT / 2.0;
    let (first, second) = ((left - 56.0, middle), (left - 42.0, middle));
    picture.turned_text(first, Anchor::Middle, small, -90, "requests");
    picture.turned_text(second, Anchor::Middle, small, -90, "per 0.1 s");
}

/// Draws the columns: what was accepted below, what was refused on top of it.
///
/// A column that is higher than the panel is cut, and a gap shows where. What was refused of it
/// stays on top, else the first burst would look as if all of it had been accepted. The last column
/// is as wide as the part of its time that had passed when the mode was done.
fn columns(picture: &mut Picture, axes: &Axes, foot: f64, report: &Report) {
    let (mut accepted, mut refused, mut gaps) = (Vec::new(), Vec::new(), Vec::new());
    let elapsed = report.elapsed.as_secs_f64();
    for (bin, begin) in report.service.timeline.iter().zip(begins(axes)) {
        let x = axes.x(begin);
        let width = axes.x((begin + axes.bin).min(elapsed)) - x;
        let column = |from: f64, to: f64| Area {
            x,
            y: foot - to,
            width,
            height: to - from,
        };
        let sent = axes.requests.pixels(number(bin.requests));
        let mut served = number(bin.requests) - number(bin.throttled);
        served = axes.requests.pixels(served);
        if is_cut(axes, bin) {
            gaps.push(column(CUT, CUT + 2.0));
            served = served.min(if bin.throttled > 0 { CUT } else { sent });
        }
        accepted.push(column(0.0, served));
        refused.push(column(served, sent));
    }
    picture.areas(&accepted, ACCEPTED);
    picture.areas(&refused, REFUSED);
    picture.areas(&gaps, "#ffffff");
}

/// Returns whether the column of `bin` is higher than the panel.
fn is_cut(axes: &Axes, bin: &Bin) -> bool {
    number(bin.requests) > axes.requests.greatest()
}

/// Writes the true height above each run of columns that are higher than the panel.
fn cuts(picture: &mut Picture, axes: &Axes, foot: f64, timeline: &[Bin]) {
    let mut labels: Vec<Cut> = Vec::new();
    for cut in runs(axes, timeline) {
        match labels.last_mut() {
            // No room for both: the higher one stays.
            Some(last) if cut.x - last.x < LABEL => {
                if cut.highest > last.highest {
                    *last = cut;
                }
            }
            _ => labels.push(cut),
        }
    }
    for Cut { x, highest } in labels {
        let label = format!("\u{25b2} {}", grouped(highest));
        let at = (x, foot - PLOT - 5.0);
        picture.text(at, Anchor::Middle, TEXT, &label);
    }
}

/// A run of columns that are higher than the panel: its middle, and its highest.
#[derive(Clone, Copy, Debug)]
struct Cut {
    x: f64,
    highest: u64,
}

fn runs(axes: &Axes, timeline: &[Bin]) -> Vec<Cut> {
    let is_cut = |bin: &Bin| is_cut(axes, bin);
    let leftmost = Axes::sides().0 + LABEL / 2.0;
    let mut begins = begins(axes);
    let mut cuts = Vec::new();
    for run in timeline.chunk_by(|one, next| is_cut(one) == is_cut(next)) {
        let times: Vec<_> = begins.by_ref().take(run.len()).collect();
        let (first, last) = (times.first().copied(), times.last().copied());
        let ends = (first.unwrap_or(0.0), last.unwrap_or(0.0) + axes.bin);
        if run.iter().any(is_cut) {
            cuts.push(Cut {
                x: f64::midpoint(axes.x(ends.0), axes.x(ends.1)).max(leftmost),
                highest: run.iter().map(|bin| bin.requests).max().unwrap_or(0),
            });
        }
    }
    cuts
}

/// Marks the moment at which the last object was done.
fn end(picture: &mut Picture, axes: &Axes, foot: f64, report: &Report) {
    let seconds = report.elapsed.as_secs_f64();
    let (x, (left, right)) = (axes.x(seconds), Axes::sides());
    picture.line((x, foot), (x, foot - PLOT), INK, "2 2");
    let label = format!("ends after {seconds:.1} s");
    let (x, anchor) = if x > f64::midpoint(left, right) {
        (x - 5.0, Anchor::End)
    } else {
        (x + 5.0, Anchor::Start)
    };
    picture.text((x, foot - PLOT + 12.0), anchor, TEXT, &label);
}

fn begins(axes: &Axes) -> impl Iterator<Item = f64> + use<> {
    let bin = axes.bin;
    (0_u32..).map(move |index| f64::from(index) * bin)
}
