//! A chart of several runs: what each had admitted and refused over time, in a panel each, all with
//! the same scales so that they can be compared by eye.

#![expect(clippy::float_arithmetic, reason = "pixels")]

use super::{
    number::{number, short},
    scale::Scale,
    svg::{Anchor, Area, Font, Picture},
    tally::Bin,
};

const ADMITTED: &str = "#56b4e9";
const REFUSED: &str = "#d55e00";
const LIMITER: &str = "#5b1a8a";
const INK: &str = "#1a1a1a";
const FAINT: &str = "#555555";
const GRID: &str = "#e2e2e2";

const SMALL: Font = Font {
    size: 11.0,
    bold: false,
    color: FAINT,
};
const TEXT: Font = Font {
    color: INK,
    ..SMALL
};
const BOLD: Font = Font {
    size: 13.0,
    bold: true,
    color: INK,
};

const WIDTH: f64 = 840.0;
const MARGIN: f64 = 14.0;
/// The first line begins here, and how far apart lines are.
const TOP: f64 = 26.0;
const LINE: f64 = 16.0;
/// How many characters fit into a line of the title, and of the text below it.
const TITLE: usize = 86;
const WIDE: usize = 132;
/// The height of what is above the plot of a panel, of the plot, and of the bars below.
const HEAD: f64 = 62.0;
const PLOT: f64 = 120.0;
const BARS: f64 = 56.0;
/// Where the bars begin.
const BARS_TOP: f64 = HEAD + PLOT + 46.0;
/// The space between panels, left of them for the labels, and below all.
const GAP: f64 = 24.0;
const LEFT: f64 = 62.0;
const FOOT: f64 = 30.0;

/// What the panels have in common.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    /// What was played, in a sentence.
    pub(crate) setting: String,
    /// How many panels stand beside each other.
    pub(crate) columns: usize,
    /// What is counted, and in what time.
    pub(crate) rate: [&'static str; 2],
    /// What the time is counted in.
    pub(crate) across: String,
    /// When the time ends.
    pub(crate) end: f64,
    /// What is higher is cut.
    pub(crate) highest: f64,
    /// From when, until when, and how much.
    pub(crate) limit: Vec<(f64, f64, f64)>,
    pub(crate) bars: Option<Bars>,
}

/// What the bars below each panel are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bars {
    pub(crate) unit: &'static str,
    pub(crate) most: f64,
    /// The time that each belongs to. `None`: they are shares, in percent of an equal one.
    pub(crate) step: Option<f64>,
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) name: String,
    /// What it is, and what came of it.
    pub(crate) lines: [String; 2],
    pub(crate) steps: Vec<Step>,
    /// The bars, and what is written above them.
    pub(crate) bars: (Vec<f64>, String),
}

/// The rates of a span of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) admitted: f64,
    /// Admitted or refused.
    pub(crate) sent: f64,
    /// What the limiter allowed at its start, if it limited.
    pub(crate) allowed: Option<f64>,
}

/// Returns the rates of a time line by steps of so many bins, each of which takes so long.
pub(crate) fn steps(timeline: &[Bin], width: usize, bin: f64) -> Vec<Step> {
    let mut from = 0.0;
    let step = |bins: &[Bin]| {
        let begun = from;
        from += number(bins.len() as u64) * bin;
        let rate = |of: fn(&Bin) -> u64| number(bins.iter().map(of).sum()) / (from - begun);
        Step {
            from: begun,
            to: from,
            admitted: rate(|bin| bin.admitted),
            sent: rate(|bin| bin.admitted + bin.refused),
            allowed: bins[0].allowed.map(|allowed| number(allowed) / 1_000.0),
        }
    };
    timeline.chunks(width).map(step).collect()
}

impl Chart {
    /// Returns the chart as an SVG document.
    pub(crate) fn draw(&self, panels: &[Panel]) -> String {
        let (title, setting) = (wrapped(&self.title, TITLE), wrapped(&self.setting, WIDE));
        let head = TOP + LINE * count(title.len() + setting.len()) + 2.2 * LINE;
        let rows = panels.len().div_ceil(self.columns);
        let row_height = match self.bars {
            Some(_) => BARS_TOP + BARS + 26.0,
            None => HEAD + PLOT + 36.0,
        };
        let height = head + count(rows) * row_height + FOOT;
        let mut picture = Picture::new(WIDTH, height);
        let mut y = TOP;
        let title_font = Font { size: 15.0, ..BOLD };
        for (font, lines) in [(title_font, &title), (SMALL, &setting)] {
            for line in lines {
                picture.text((MARGIN, y), Anchor::Start, font, line);
                y += LINE + if font.bold { 3.0 } else { 0.0 };
            }
        }
        let mut allowed = panels.iter().flat_map(|panel| &panel.steps);
        legend(
            &mut picture,
            y + 6.0,
            allowed.any(|step| step.allowed.is_some()),
        );
        let columns = count(self.columns);
        let width = (WIDTH - LEFT - MARGIN - (columns - 1.0) * GAP) / columns;
        for (index, panel) in panels.iter().enumerate() {
            let (row, column) = (index / self.columns, index % self.columns);
            let y = head + count(row) * row_height;
            let mut plot = Plot {
                chart: self,
                picture: &mut picture,
                time: Scale::new(self.end, width, 5.0),
                rate: Scale::new(self.highest, PLOT, 5.0),
                x: LEFT + count(column) * (width + GAP),
                width,
                y,
                foot: y + HEAD + PLOT,
                leftmost: column == 0,
            };
            plot.draw(panel);
            if let Some(bars) = self.bars {
                plot.bars(bars, panel);
            }
        }
        for row in 0..rows {
            let y = head + count(row) * row_height;
            let mut name = |y, text: &str| {
                picture.turned_text((MARGIN + 4.0, y), Anchor::Middle, SMALL, -90, text);
            };
            name(y + HEAD + PLOT / 2.0, &self.rate.join(" per "));
            if let Some(bars) = self.bars {
                name(y + BARS_TOP + BARS / 2.0, bars.unit);
            }
        }
        let at = (WIDTH / 2.0, height - 10.0);
        picture.text(at, Anchor::Middle, SMALL, &self.across);
        picture.finish()
    }
}

/// Draws what the colors are.
fn legend(picture: &mut Picture, y: f64, limiter: bool) {
    let mut x = MARGIN;
    let mut say = |picture: &mut Picture, text: &str| {
        picture.text((x + 22.0, y), Anchor::Start, TEXT, text);
        let at = x;
        x += 22.0 + 5.95 * count(text.chars().count()) + 16.0;
        at
    };
    let upper_edge = "throttled, on top: the upper edge is all that was sent";
    for (text, color) in [("got through", ADMITTED), (upper_edge, REFUSED)] {
        let x = say(picture, text);
        picture.areas(&[Area::new((x, y - 10.0), 16.0, 11.0)], color);
    }
    let middle = y - 4.5;
    let x = say(picture, "the service\u{2019}s limit");
    picture.path(&[(x, middle), (x + 17.0, middle)], 1.6, INK, "5 3");
    if limiter {
        let x = say(picture, "what the limiter allows");
        picture.path(&[(x, middle), (x + 17.0, middle)], 2.0, LIMITER, "none");
    }
}

/// Where one panel is drawn.
struct Plot<'a> {
    chart: &'a Chart,
    picture: &'a mut Picture,
    time: Scale,
    rate: Scale,
    x: f64,
    width: f64,
    y: f64,
    foot: f64,
    leftmost: bool,
}

impl Plot<'_> {
    fn draw(&mut self, panel: &Panel) {
        let (x, y) = (self.x, self.y);
        self.text((x, y + 12.0), Anchor::Start, BOLD, &panel.name);
        self.text((x, y + 27.0), Anchor::Start, SMALL, &panel.lines[0]);
        self.text((x, y + 42.0), Anchor::Start, TEXT, &panel.lines[1]);
        self.grid(self.rate, self.foot, Self::rate_label);
        let sent = self.outline(panel, |step| step.sent);
        let admitted = self.outline(panel, |step| step.admitted);
        self.picture.outlines(&[sent], REFUSED);
        self.picture.outlines(&[admitted], ADMITTED);
        self.limit();
        self.limiter(panel);
        let highest = panel.steps.iter().map(|step| step.sent).fold(0.0, f64::max);
        if highest > self.chart.highest {
            let (highest, unit) = (self.rate_label(highest), self.chart.rate[1]);
            let text = format!("\u{25b2} up to {highest} a {unit}");
            let at = (x + self.width, self.foot - PLOT - 5.0);
            self.text(at, Anchor::End, SMALL, &text);
        }
        self.line((x, self.foot), (x + self.width, self.foot), FAINT, "none");
        for time in self.time.ticks() {
            let (x, y) = self.at(time, 0.0);
            self.line((x, y), (x, y + 4.0), FAINT, "none");
            let label = self.time.label(time);
            self.text((x, y + 16.0), Anchor::Middle, SMALL, &label);
        }
    }

    fn text(&mut self, at: (f64, f64), anchor: Anchor, font: Font, text: &str) {
        self.picture.text(at, anchor, font, text);
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), color: &str, dash: &str) {
        self.picture.line(from, to, color, dash);
    }

    /// Returns the point of a rate at a time.
    fn at(&self, time: f64, rate: f64) -> (f64, f64) {
        let x = self.x + self.time.pixels(time);
        (x, self.foot - self.rate.pixels(rate))
    }

    /// Returns a rate in few characters, with decimals if those on the scale need them.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate for the eye"
    )]
    fn rate_label(&self, rate: f64) -> String {
        if self.chart.highest < 5.0 {
            return self.rate.label(rate);
        }
        short(rate.round() as u64)
    }

    /// Draws the lines behind everything, with their values beside them if this panel is the
    /// leftmost.
    fn grid(&mut self, scale: Scale, foot: f64, label: impl Fn(&Self, f64) -> String) {
        for value in scale.ticks() {
            let (x, y) = (self.x, foot - scale.pixels(value));
            self.line((x, y), (x + self.width, y), GRID, "none");
            if self.leftmost {
                let label = label(self, value);
                self.text((x - 6.0, y + 4.0), Anchor::End, SMALL, &label);
            }
        }
    }

    /// Returns the outline of steps from the foot up to a rate.
    fn outline(&self, panel: &Panel, rate: fn(&Step) -> f64) -> Vec<(f64, f64)> {
        let mut points = vec![self.at(0.0, 0.0)];
        for step in &panel.steps {
            points.extend([step.from, step.to].map(|time| self.at(time, rate(step))));
        }
        let end = panel.steps.last().map_or(0.0, |step| step.to);
        points.push(self.at(end, 0.0));
        points
    }

    /// Draws the limit, except where it is above the scale.
    fn limit(&mut self) {
        let mut points = Vec::new();
        for (from, to, rate) in &self.chart.limit {
            points.push(self.at(*from, *rate));
            if *rate > self.chart.highest {
                self.picture.path(&points, 1.6, INK, "5 3");
                points.clear();
            } else {
                points.push(self.at(*to, *rate));
            }
        }
        self.picture.path(&points, 1.6, INK, "5 3");
    }

    /// Draws what the limiter allows, where it limits and the rate is on the scale.
    fn limiter(&mut self, panel: &Panel) {
        let on_scale = |step: &Step| step.allowed.filter(|rate| *rate <= self.chart.highest);
        for run in panel.steps.split(|step| on_scale(step).is_none()) {
            let points = run
                .iter()
                .map(|step| self.at(step.from, step.allowed.unwrap_or(0.0)));
            let points: Vec<_> = points.collect();
            if points.len() > 1 {
                self.picture.path(&points, 2.0, LIMITER, "none");
            }
        }
    }

    /// Draws the bars below the panel.
    fn bars(&mut self, of: Bars, panel: &Panel) {
        let (foot, scale) = (self.y + BARS_TOP + BARS, Scale::new(of.most, BARS, 3.0));
        self.grid(scale, foot, |_, value| scale.label(value));
        let (bars, title) = &panel.bars;
        let (pitch, color) = match of.step {
            Some(step) => (self.time.pixels(step), LIMITER),
            None => (self.width / count(bars.len()), ADMITTED),
        };
        let gap = if of.step.is_none() && pitch > 4.0 {
            1.0
        } else {
            0.0
        };
        let mut x = self.x;
        let areas = bars.iter().map(|bar| {
            let (left, height) = (x, scale.pixels(*bar));
            x += pitch;
            Area::new((left, foot - height), pitch - gap, height)
        });
        self.picture.areas(&areas.collect::<Vec<_>>(), color);
        let right = self.x + self.width;
        if of.step.is_none() {
            let equal = foot - scale.pixels(100.0);
            self.line((self.x, equal), (right, equal), INK, "2 3");
        }
        self.line((self.x, foot), (right, foot), FAINT, "none");
        self.text((self.x, foot - BARS - 8.0), Anchor::Start, TEXT, title);
    }
}

fn count(of: usize) -> f64 {
    number(of as u64)
}

/// Breaks a text into lines of at most so many characters, as long as its words are not longer.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + word.chars().count() < most {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{Chart, Panel, Step, wrapped};

    #[test]
    fn a_step_that_is_cut_tells_its_height() {
        let chart = Chart {
            title: "title".to_owned(),
            setting: "setting".to_owned(),
            columns: 1,
            rate: ["requests", "second"],
            across: "seconds".to_owned(),
            end: 2.0,
            highest: 40.0,
            limit: vec![(0.0, 2.0, 10.0)],
            bars: None,
        };
        let draw = |sent| {
            let (from, to, admitted, allowed) = (0.0, 0.1, 1.0, None);
            chart.draw(&[Panel {
                name: "name".to_owned(),
                lines: ["it", "came"].map(str::to_owned),
                steps: vec![Step {
                    from,
                    to,
                    admitted,
                    sent,
                    allowed,
                }],
                bars: (Vec::new(), String::new()),
            }])
        };
        let (fits, cut) = (draw(40.0), draw(1_041.0));
        assert!(fits.contains(">name<") && !fits.contains("up to"), "{fits}");
        assert!(cut.contains(">\u{25b2} up to 1,041 a second<"), "{cut}");
    }

    #[test]
    fn lines_are_full_and_no_longer() {
        assert_eq!(wrapped("aa bb cc dd", 5), ["aa bb", "cc dd"]);
        assert_eq!(wrapped("aa bb cc dd", 4), ["aa", "bb", "cc", "dd"]);
    }
}
