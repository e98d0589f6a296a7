//! A chart of several runs: what each had admitted and refused over time, one panel below the
//! other.

#![expect(clippy::float_arithmetic, reason = "pixels")]

use super::{
    number::{grouped, number},
    scale::Scale,
    svg::{Anchor, Area, Font, Picture},
    tally::Bin,
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
const RIGHT: f64 = WIDTH - 20.0;
const PLOT: f64 = 84.0;
const PANEL: f64 = 62.0 + PLOT;

const TITLE: Font = Font {
    size: 19.0,
    bold: true,
    color: INK,
};
const NAME: Font = Font {
    size: 17.0,
    ..TITLE
};
const TEXT: Font = Font {
    size: 15.0,
    bold: false,
    color: FAINT,
};
const SMALL: Font = Font { size: 14.0, ..TEXT };

/// What the panels have in common.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: &'static str,
    /// One line, or two.
    pub(crate) lines: Vec<String>,
    /// What is admitted.
    pub(crate) unit: &'static str,
    /// What the time is counted in.
    pub(crate) time: &'static str,
    /// The width of a bin, in that.
    pub(crate) bin: f64,
    /// What the service admits in a bin.
    pub(crate) limit: f64,
    /// What is higher, in limits, is cut.
    pub(crate) highest: f64,
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Panel<'a> {
    pub(crate) name: String,
    pub(crate) outcome: String,
    /// How long it took.
    pub(crate) time: f64,
    pub(crate) timeline: &'a [Bin],
}

impl Chart {
    /// Returns the chart as an SVG document.
    pub(crate) fn draw(&self, panels: &[Panel<'_>]) -> String {
        let height = panels.iter().map(|_| PANEL).sum::<f64>();
        let mut picture = Picture::new(WIDTH, HEADER + height + FOOTER);
        let longest = panels
            .iter()
            .map(|panel| panel.time)
            .fold(self.bin, f64::max);
        let time = Scale::new(longest, RIGHT - LEFT, 9.0);
        self.header(&mut picture);
        let mut foot = HEADER;
        for panel in panels {
            foot += PANEL;
            self.panel(&mut picture, &time, foot, panel);
        }
        for tick in time.ticks() {
            let at = (LEFT + time.pixels(tick), foot + 20.0);
            picture.text(at, Anchor::Middle, TEXT, &time.label(tick));
        }
        let at = (f64::midpoint(LEFT, RIGHT), foot + 42.0);
        picture.text(at, Anchor::Middle, TEXT, self.time);
        picture.finish()
    }

    fn header(&self, picture: &mut Picture) {
        picture.text((16.0, 30.0), Anchor::Start, TITLE, self.title);
        for (line, y) in self.lines.iter().zip([54.0, 74.0]) {
            picture.text((16.0, y), Anchor::Start, SMALL, line);
        }
        let admitted = format!("{} admitted", self.unit);
        for (x, color, text) in [(16.0, ADMITTED, &*admitted), (204.0, REFUSED, "refused")] {
            picture.areas(&[area(x, 87.0, 14.0, 14.0)], color);
            picture.text((x + 21.0, 100.0), Anchor::Start, TEXT, text);
        }
        picture.line((304.0, 94.0), (336.0, 94.0), INK, "6 4");
        picture.text((344.0, 100.0), Anchor::Start, TEXT, "the limit");
    }

    fn panel(&self, picture: &mut Picture, time: &Scale, foot: f64, panel: &Panel<'_>) {
        picture.text((16.0, foot - PLOT - 36.0), Anchor::Start, NAME, &panel.name);
        picture.text(
            (16.0, foot - PLOT - 15.0),
            Anchor::Start,
            TEXT,
            &panel.outcome,
        );
        let limits = Scale::new(self.highest, PLOT, 3.0);
        for value in limits.ticks() {
            let y = foot - limits.pixels(value);
            picture.line((LEFT, y), (RIGHT, y), GRID, "none");
            let label = format!("{value:.0}\u{d7}");
            picture.text((LEFT - 8.0, y + 5.0), Anchor::End, TEXT, &label);
        }
        let (mut admitted, mut refused, mut gaps) = (Vec::new(), Vec::new(), Vec::new());
        let (mut highest, width) = (0, time.pixels(self.bin));
        for (bin, index) in panel.timeline.iter().zip(0_u32..) {
            let x = LEFT + time.pixels(f64::from(index) * self.bin);
            let all = bin.admitted + bin.refused;
            let [below, above] = [bin.admitted, all].map(|count| number(count) / self.limit);
            let column = |from: f64, to: f64| area(x, foot - to, width.min(RIGHT - x), to - from);
            let (mut split, top) = (limits.pixels(below), limits.pixels(above));
            if above > self.highest {
                highest = all.max(highest);
                gaps.push(column(PLOT - 12.0, PLOT - 9.0));
                // What was refused stays on top, else all of it would look admitted.
                split = split.min(if bin.refused > 0 { PLOT - 12.0 } else { PLOT });
            }
            admitted.push(column(0.0, split));
            refused.push(column(split, top));
        }
        picture.areas(&admitted, ADMITTED);
        picture.areas(&refused, REFUSED);
        picture.areas(&gaps, "#ffffff");
        let line = foot - limits.pixels(1.0);
        picture.line((LEFT, line), (RIGHT, line), INK, "6 4");
        picture.line((LEFT, foot), (RIGHT, foot), INK, "none");
        if highest > 0 {
            let label = format!("\u{25b2} up to {}", grouped(highest));
            picture.text((RIGHT, foot - PLOT - 5.0), Anchor::End, SMALL, &label);
        }
    }
}

const fn area(x: f64, y: f64, width: f64, height: f64) -> Area {
    Area {
        x,
        y,
        width,
        height,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::Bin;
    use super::{Chart, Panel};

    #[test]
    fn a_column_that_is_cut_short_tells_its_height() {
        let chart = Chart {
            title: "title",
            lines: vec!["line".to_owned()],
            unit: "requests",
            time: "seconds",
            bin: 0.1,
            limit: 10.0,
            highest: 4.0,
        };
        let draw = |refused| {
            let (name, outcome) = ("name".to_owned(), "outcome".to_owned());
            let admitted = 1;
            let panel = Panel {
                name,
                outcome,
                time: 2.0,
                timeline: &[Bin { admitted, refused }],
            };
            chart.draw(&[panel])
        };
        let (fits, cut) = (draw(39), draw(1_040));
        assert!(fits.contains(">name<") && !fits.contains("up to"), "{fits}");
        assert!(cut.contains(">\u{25b2} up to 1,041<"), "{cut}");
    }
}
