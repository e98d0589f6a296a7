//! A chart of lines with logarithmic axes.

use crate::svg::{Anchor, Font, Picture};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 300.0;
const TOP: f64 = 34.0;
const FOOT: f64 = 44.0;
/// The least distance between two names.
const APART: f64 = 14.0;

const GRID: &str = "#e4e4e4";
const INK: &str = "#333333";

const TEXT: Font = Font {
    size: 11.0,
    bold: false,
    color: INK,
};
const TITLE: Font = Font {
    size: 13.0,
    bold: true,
    color: INK,
};

/// A line, solid as far as it was measured.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) color: &'static str,
    pub(crate) measured: Vec<(f64, f64)>,
    /// Dashed; begins where the other ends.
    pub(crate) predicted: Vec<(f64, f64)>,
}

/// What a chart shows, besides its lines.
#[derive(Debug)]
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    pub(crate) x_name: &'a str,
    pub(crate) y_name: &'a str,
    /// Where ticks belong, and what they are called.
    pub(crate) x_ticks: Vec<(f64, String)>,
}

/// Maps values to pixels by their logarithm.
#[derive(Clone, Copy, Debug)]
struct Axis {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// Creates an axis; a single value is in the middle.
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let values = values.filter(|value| *value > 0.0).map(f64::log10);
        let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let (least, most) = if least < most {
            (least, most)
        } else {
            (least - 0.5, least + 0.5)
        };
        Self {
            least,
            most,
            from,
            to,
        }
    }

    fn at(self, value: f64) -> f64 {
        let share = (value.log10() - self.least) / (self.most - self.least);
        self.from + share * (self.to - self.from)
    }

    /// Returns the powers of ten that are on the axis.
    fn decades(self) -> impl Iterator<Item = i32> {
        #[expect(clippy::cast_possible_truncation, reason = "a few decades")]
        let (first, last) = (self.least.ceil() as i32, self.most.floor() as i32);
        first..=last
    }
}

/// Returns the chart as an SVG document.
pub(crate) fn draw(chart: &Chart<'_>, lines: &[Series]) -> String {
    let mut picture = Picture::new(WIDTH, HEIGHT);
    let points = || {
        lines
            .iter()
            .flat_map(|line| line.measured.iter().chain(&line.predicted))
    };
    let ticks = chart.x_ticks.iter().map(|tick| tick.0);
    let x = Axis::over(ticks, LEFT, WIDTH - RIGHT);
    let y = Axis::over(points().map(|point| point.1), HEIGHT - FOOT, TOP);
    picture.text((LEFT, 18.0), Anchor::Start, TITLE, chart.title);
    grid(&mut picture, chart, x, y);
    for line in lines {
        let at = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
            points.iter().map(|(a, b)| (x.at(*a), y.at(*b))).collect()
        };
        picture.path(&at(&line.predicted), 1.4, line.color, "3 4");
        let measured = at(&line.measured);
        picture.path(&measured, 2.0, line.color, "none");
        for (px, py) in measured {
            picture.path(&[(px - 2.5, py), (px + 2.5, py)], 5.0, line.color, "none");
        }
    }
    names(&mut picture, lines, y);
    picture.finish()
}

fn grid(picture: &mut Picture, chart: &Chart<'_>, x: Axis, y: Axis) {
    let foot = HEIGHT - FOOT;
    for (value, name) in &chart.x_ticks {
        let px = x.at(*value);
        picture.line((px, TOP), (px, foot), GRID, "none");
        picture.text((px, foot + 16.0), Anchor::Middle, TEXT, name);
    }
    for decade in y.decades() {
        let value = 10_f64.powi(decade);
        let py = y.at(value);
        picture.line((LEFT, py), (WIDTH - RIGHT, py), GRID, "none");
        let label = if decade < 0 {
            format!("{value:.*}", usize::try_from(-decade).unwrap_or(0))
        } else {
            format!("{value:.0}")
        };
        picture.text((LEFT - 6.0, py + 4.0), Anchor::End, TEXT, &label);
    }
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    picture.text((middle, foot + 34.0), Anchor::Middle, TEXT, chart.x_name);
    let middle = f64::midpoint(TOP, foot);
    picture.turned_text((14.0, middle), Anchor::Middle, TEXT, -90, chart.y_name);
}

/// Writes the names where the lines end, from top to bottom, without overlap.
fn names(picture: &mut Picture, lines: &[Series], y: Axis) {
    let mut ends: Vec<(f64, &Series)> = lines
        .iter()
        .filter_map(|line| {
            let last = line.predicted.last().or(line.measured.last())?;
            Some((y.at(last.1), line))
        })
        .collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = TOP - APART;
    let count = ends.len();
    for (index, (wanted, line)) in ends.into_iter().enumerate() {
        // So that there is space for all that come below.
        let below = u32::try_from(count - index).map_or(0.0, f64::from);
        let lowest = HEIGHT - FOOT + 30.0 - APART * below;
        let at = wanted.min(lowest).max(free + APART);
        let font = Font {
            color: line.color,
            ..TEXT
        };
        picture.text(
            (WIDTH - RIGHT + 8.0, at + 4.0),
            Anchor::Start,
            font,
            &line.name,
        );
        free = at;
    }
}

#[cfg(test)]
mod tests {
    use super::{Axis, Chart, Series, draw};

    #[test]
    fn decades_are_evenly_spaced() {
        let axis = Axis::over([1.0, 1_000.0, 10.0].into_iter(), 0.0, 300.0);
        let found = [1.0, 10.0, 100.0, 1_000.0].map(|value| axis.at(value).round().to_string());
        assert_eq!(found, ["0", "100", "200", "300"]);
        assert_eq!(axis.decades().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn what_is_predicted_is_dashed() {
        let chart = Chart {
            title: "a < b",
            x_name: "x",
            y_name: "y",
            x_ticks: vec![(1.0, "1".to_owned()), (2.0, "2".to_owned())],
        };
        let line = Series {
            name: "one".to_owned(),
            color: "#123456",
            measured: vec![(1.0, 1.0), (2.0, 10.0)],
            predicted: vec![(2.0, 10.0), (8.0, 20.0)],
        };
        let svg = draw(&chart, &[line]);
        assert!(svg.contains("a &lt; b") && svg.contains(">one</text>"));
        assert_eq!(svg.matches("stroke-dasharray=\"3 4\"").count(), 1);
        assert!(!svg.contains("NaN"));
    }
}
