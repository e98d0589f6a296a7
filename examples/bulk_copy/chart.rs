//! The chart: what each mode sent and what was refused, one panel below the other on one time axis.

#![expect(clippy::float_arithmetic, reason = "pixels")]

use crate::{
    ledger::BIN,
    number::{grouped, number},
    panel,
    report::Report,
    scale::Scale,
    settings::{Settings, Via},
    svg::{Anchor, Area, Font, Picture},
};

pub(crate) const ACCEPTED: &str = "#4878b0";
pub(crate) const REFUSED: &str = "#e8743b";
pub(crate) const INK: &str = "#222222";
pub(crate) const FAINT: &str = "#666666";

const WIDTH: f64 = 1_160.0;
const HEADER: f64 = 104.0;
const FOOTER: f64 = 56.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 24.0;

/// Returns the chart as an SVG document.
pub(crate) fn chart(settings: &Settings, reports: &[Report]) -> String {
    let panels: f64 = reports.iter().map(|_| panel::HEIGHT).sum();
    let mut picture = Picture::new(WIDTH, HEADER + panels + FOOTER);
    let axes = Axes::of(settings, reports);
    header(&mut picture, settings, &axes);
    let mut top = HEADER;
    for report in reports {
        panel::draw(&mut picture, &axes, top, report);
        top += panel::HEIGHT;
    }
    time_axis(&mut picture, &axes, top);
    picture.finish()
}

/// The scales that all panels share, so that they can be compared by eye.
#[derive(Debug)]
pub(crate) struct Axes {
    /// Seconds, over the width of the chart.
    pub(crate) time: Scale,
    /// Requests per bin, over the height of a panel.
    pub(crate) requests: Scale,
    /// The requests per bin that the limit allows.
    pub(crate) limit: f64,
    /// The length of a bin in seconds.
    pub(crate) bin: f64,
}

impl Axes {
    fn of(settings: &Settings, reports: &[Report]) -> Self {
        let bin = BIN.as_secs_f64();
        let per_object = f64::from(settings.requests_per_object());
        let limit = f64::from(settings.objects_per_second()) * per_object * bin;
        let longest = reports.iter().map(|report| report.elapsed.as_secs_f64());
        let longest = longest.fold(bin, f64::max);
        let highest = reports.iter().flat_map(|report| &report.service.timeline);
        let highest = highest.fold(1.0, |most, bin| number(bin.requests).max(most));
        // Without a cut, one burst of hundreds would leave the limit a pixel high.
        let cut = highest.min((limit * 4.0).max(1.0));
        Self {
            time: Scale::new(longest, WIDTH - LEFT - RIGHT, 10.0),
            requests: Scale::new(cut, panel::PLOT, 4.0),
            limit,
            bin,
        }
    }

    /// Returns the pixel column of a time.
    pub(crate) fn x(&self, seconds: f64) -> f64 {
        LEFT + self.time.pixels(seconds)
    }

    /// Returns the pixel columns that the plot begins and ends at.
    pub(crate) const fn sides() -> (f64, f64) {
        (LEFT, WIDTH - RIGHT)
    }
}

fn header(picture: &mut Picture, settings: &Settings, axes: &Axes) {
    let title = Font {
        size: 20.0,
        bold: true,
        color: INK,
    };
    let text = Font {
        size: 13.0,
        bold: false,
        color: FAINT,
    };
    let limits = settings.limits();
    let allowed = match settings.via {
        Via::Server => format!("{} copies per second", grouped(limits.writes.into())),
        Via::Client => format!(
            "{} reads and {} writes per second",
            grouped(limits.reads.into()),
            grouped(limits.writes.into())
        ),
    };
    let asked = format!(
        "Copying {} objects, {} at a time, through a service that accepts {allowed} \
         (after a first burst of {}) and answers 503 Slow Down to the rest.",
        grouped(settings.objects().into()),
        settings.workers(),
        grouped(limits.burst.into()),
    );
    let headline = "Same copy, same limit: what each way of retrying sends, and what is refused";
    picture.text((LEFT, 34.0), Anchor::Start, title, headline);
    picture.text((LEFT, 58.0), Anchor::Start, text, &asked);
    legend(picture, axes, text);
}

fn legend(picture: &mut Picture, axes: &Axes, font: Font) {
    const BASE: f64 = 89.0;
    let mut say = |x: f64, text: &str| picture.text((LEFT + x, BASE), Anchor::Start, font, text);
    say(20.0, "requests accepted");
    say(190.0, "requests refused");
    let limit = (axes.limit * 10.0).round() / 10.0;
    say(372.0, &format!("the limit: {limit} per 0.1 s"));
    say(580.0, "column: requests sent in 0.1 s");
    say(830.0, "\u{25b2} n: cut short, n requests");
    let swatch = |x: f64| Area {
        x: LEFT + x,
        y: BASE - 11.0,
        width: 14.0,
        height: 12.0,
    };
    picture.areas(&[swatch(0.0)], ACCEPTED);
    picture.areas(&[swatch(170.0)], REFUSED);
    let middle = BASE - 5.0;
    let (from, to) = ((LEFT + 338.0, middle), (LEFT + 364.0, middle));
    picture.line(from, to, INK, "6 4");
}

fn time_axis(picture: &mut Picture, axes: &Axes, top: f64) {
    let font = Font {
        size: 12.0,
        bold: false,
        color: FAINT,
    };
    for seconds in axes.time.ticks() {
        let x = axes.x(seconds);
        picture.line(
            (x, top - panel::GAP),
            (x, top - panel::GAP + 5.0),
            FAINT,
            "none",
        );
        let label = axes.time.label(seconds);
        picture.text((x, top - panel::GAP + 19.0), Anchor::Middle, font, &label);
    }
    let (left, right) = Axes::sides();
    let title = "seconds since the copy began";
    let middle = f64::midpoint(left, right);
    let at = (middle, top - panel::GAP + 42.0);
    picture.text(at, Anchor::Middle, font, title);
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use clap::Parser;

    use super::chart;
    use crate::{
        ledger::{Ledger, Verdict},
        mode::Mode,
        report::{Failures, Report},
        settings::Settings,
        tally::Counts,
    };

    /// A mode that sent `sent` requests in its first tenth of a second, and nothing after that.
    fn report(mode: Mode, sent: u64) -> Report {
        let mut service = Ledger::default();
        (0..sent).for_each(|_| service.enter(Duration::ZERO, Verdict::Throttled));
        Report {
            mode,
            attempts: 3,
            objects: 4_003,
            copied: 0,
            failures: Failures::default(),
            stored: 0,
            elapsed: Duration::from_secs(2),
            client: Counts::default(),
            service,
        }
    }

    #[test]
    fn every_mode_has_a_panel_with_its_name() {
        let settings = Settings::parse_from(["bulk_copy"]);
        let chart = chart(&settings, &Mode::ALL.map(|mode| report(mode, 1)));
        for mode in Mode::ALL {
            assert!(chart.contains(&format!(">{}", mode.title(3))));
        }
    }

    #[test]
    fn a_column_that_is_cut_short_tells_its_height() {
        let settings = Settings::parse_from(["bulk_copy", "--limit", "100"]);
        let fits = chart(&settings, &[report(Mode::None, 40)]);
        assert!(!fits.contains(">\u{25b2} 40<"), "{fits}");
        let cut = chart(&settings, &[report(Mode::None, 1_041)]);
        assert!(cut.contains(">\u{25b2} 1,041<"), "{cut}");
    }
}
