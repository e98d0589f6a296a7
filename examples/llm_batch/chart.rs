//! The chart: the tokens that each way had admitted and refused, one panel below the other.

#![expect(clippy::float_arithmetic, reason = "pixels")]

use crate::{
    ledger::BINS,
    number::{grouped, number, percent},
    report::{Report, heading},
    scale::Scale,
    settings::Settings,
    svg::{Anchor, Area, Font, Picture},
};

const ADMITTED: &str = "#4878b0";
const REFUSED: &str = "#e8743b";
const INK: &str = "#222222";
const FAINT: &str = "#666666";
const GRID: &str = "#e4e4e4";

const WIDTH: f64 = 720.0;
const HEADER: f64 = 118.0;
const FOOTER: f64 = 52.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 20.0;
const PLOT: f64 = 84.0;
const PANEL: f64 = 62.0 + PLOT;

const NAME: Font = Font {
    size: 17.0,
    bold: true,
    color: INK,
};
const TEXT: Font = Font {
    size: 15.0,
    bold: false,
    color: FAINT,
};

/// Returns the chart as an SVG document.
pub(crate) fn chart(settings: &Settings, reports: &[Report]) -> String {
    let panels: f64 = reports.iter().map(|_| PANEL).sum();
    let mut picture = Picture::new(WIDTH, HEADER + panels + FOOTER);
    let longest = reports.iter().map(Report::time).fold(1.0, f64::max);
    let time = Scale::new(longest, WIDTH - LEFT - RIGHT, 9.0);
    // Three times the limit: what is higher is cut.
    let tokens = Scale::new(3.0, PLOT, 3.0);
    header(&mut picture, settings);
    let mut foot = HEADER;
    for report in reports {
        foot += PANEL;
        panel(&mut picture, &time, &tokens, foot, report);
    }
    for minute in time.ticks() {
        let label = time.label(minute);
        let at = (LEFT + time.pixels(minute), foot + 20.0);
        picture.text(at, Anchor::Middle, TEXT, &label);
    }
    let at = (f64::midpoint(LEFT, WIDTH - RIGHT), foot + 42.0);
    picture.text(at, Anchor::Middle, TEXT, "minutes of the service");
    picture.finish()
}

fn header(picture: &mut Picture, settings: &Settings) {
    let title = Font {
        size: 19.0,
        bold: true,
        color: INK,
    };
    let small = Font { size: 14.0, ..TEXT };
    picture.text(
        (16.0, 30.0),
        Anchor::Start,
        title,
        "One batch, one account, six ways to limit the client",
    );
    for (line, y) in heading(settings).split("; ").zip([54.0, 74.0]) {
        picture.text((16.0, y), Anchor::Start, small, line);
    }
    let swatch = |x: f64| Area {
        x,
        y: 87.0,
        width: 14.0,
        height: 14.0,
    };
    picture.areas(&[swatch(16.0)], ADMITTED);
    picture.text((37.0, 100.0), Anchor::Start, TEXT, "tokens admitted");
    picture.areas(&[swatch(188.0)], REFUSED);
    picture.text((209.0, 100.0), Anchor::Start, TEXT, "refused");
    picture.line((304.0, 94.0), (336.0, 94.0), INK, "6 4");
    picture.text((344.0, 100.0), Anchor::Start, TEXT, "the limit");
}

fn panel(picture: &mut Picture, time: &Scale, tokens: &Scale, foot: f64, report: &Report) {
    let (left, right) = (LEFT, WIDTH - RIGHT);
    let title = (16.0, foot - PLOT - 36.0);
    picture.text(title, Anchor::Start, NAME, report.mode.title());
    let said = format!(
        "{:.1} min, {} throttled, {} failed, {} of the limit used",
        report.time(),
        percent(report.throttled(), 1),
        grouped(report.client.failed),
        percent(report.used(), 0),
    );
    picture.text((16.0, foot - PLOT - 15.0), Anchor::Start, TEXT, &said);
    for value in tokens.ticks() {
        let y = foot - tokens.pixels(value);
        picture.line((left, y), (right, y), GRID, "none");
        let label = format!("{value:.0}\u{d7}");
        picture.text((left - 8.0, y + 5.0), Anchor::End, TEXT, &label);
    }
    let limit = f64::from(report.limits.tokens) / f64::from(BINS);
    let width = time.pixels(1.0 / f64::from(BINS));
    let (mut admitted, mut refused, mut gaps) = (Vec::new(), Vec::new(), Vec::new());
    for (bin, index) in report.service.timeline.iter().zip(0_u32..) {
        let x = left + time.pixels(f64::from(index) / f64::from(BINS));
        let below = tokens.pixels(number(bin.admitted) / limit);
        let all = tokens.pixels(number(bin.admitted + bin.refused) / limit);
        let column = |from: f64, to: f64| Area {
            x,
            y: foot - to,
            width: width.min(right - x),
            height: to - from,
        };
        if number(bin.admitted + bin.refused) / limit > tokens.greatest() {
            gaps.push(column(PLOT - 12.0, PLOT - 9.0));
        }
        admitted.push(column(0.0, below));
        refused.push(column(below, all));
    }
    picture.areas(&admitted, ADMITTED);
    picture.areas(&refused, REFUSED);
    picture.areas(&gaps, "#ffffff");
    let line = foot - tokens.pixels(1.0);
    picture.line((left, line), (right, line), INK, "6 4");
    picture.line((left, foot), (right, foot), INK, "none");
}
