//! One panel: what one limiter sent, and what the service did with it.

#![expect(clippy::float_arithmetic, reason = "pixels")]

use crate::axes::{Axes, Cell};
use crate::figure::{BOLD, FAINT, GRID, INK, LIMITER, Played, SERVED, SMALL, TEXT, THROTTLED};
use crate::number::number;
use crate::scene::Scene;
use crate::svg::{Anchor, Picture};
use crate::tally::{BIN, Bin};
use crate::time::MILLI;
use crate::words::{rounded, short};

/// Draws a panel.
pub(crate) fn draw(picture: &mut Picture, axes: &Axes, cell: Cell, played: &Played) {
    let plot = Plot {
        axes,
        x: cell.x,
        foot: cell.y + Axes::HEAD + Axes::PLOT,
    };
    heading(picture, cell, played);
    plot.grid(picture, cell.leftmost);
    plot.rates(picture, &played.tally.bins);
    plot.limit(picture, &played.tally.scene);
    plot.limiter(picture, &played.tally.bins);
    plot.cut(picture, &played.tally.bins);
    plot.time(picture);
}

fn heading(picture: &mut Picture, cell: Cell, played: &Played) {
    let Cell { x, y, .. } = cell;
    let of = &played.first;
    let numbers = format!(
        "{} used, {} throttled, {} lost",
        rounded(of.share),
        rounded(of.throttled),
        short(played.tally.failed),
    );
    picture.text((x, y + 12.0), Anchor::Start, BOLD, played.law.name);
    picture.text((x, y + 27.0), Anchor::Start, SMALL, played.law.means);
    picture.text((x, y + 42.0), Anchor::Start, TEXT, &numbers);
}

/// Where the rates of one panel are drawn.
struct Plot<'a> {
    axes: &'a Axes,
    x: f64,
    foot: f64,
}

impl Plot<'_> {
    /// Returns the point of a rate at a time.
    fn at(&self, seconds: f64, rate: f64) -> (f64, f64) {
        let x = self.x + self.axes.time.pixels(seconds);
        (x, self.foot - self.axes.rate.pixels(rate))
    }

    /// Draws the lines behind everything, with the rates beside them if this panel is the leftmost.
    fn grid(&self, picture: &mut Picture, labels: bool) {
        let right = self.x + self.axes.width();
        for rate in self.axes.rate.ticks() {
            let (x, y) = self.at(0.0, rate);
            picture.line((x, y), (right, y), GRID, "none");
            if labels {
                let label = self.axes.rate_label(rate);
                picture.text((x - 6.0, y + 4.0), Anchor::End, SMALL, &label);
            }
        }
    }

    /// Draws what was throttled above what got through.
    fn rates(&self, picture: &mut Picture, bins: &[Bin]) {
        let served = self.outline(bins, |bin| bin.useful);
        let all = self.outline(bins, |bin| bin.useful + bin.throttled);
        picture.outlines(&[all], THROTTLED);
        picture.outlines(&[served], SERVED);
    }

    /// Returns the outline of steps from the foot up to a count.
    fn outline(&self, bins: &[Bin], count: fn(&Bin) -> u64) -> Vec<(f64, f64)> {
        let mut points = vec![self.at(0.0, 0.0)];
        let mut last = 0.0;
        for (from, to, bins) in self.steps(bins) {
            let rate = number(bins.iter().map(count).sum()) / (to - from);
            points.extend([self.at(from, rate), self.at(to, rate)]);
            last = to;
        }
        points.push(self.at(last, 0.0));
        points
    }

    /// Returns the steps: from which second to which, and the bins.
    fn steps<'b>(&self, bins: &'b [Bin]) -> impl Iterator<Item = (f64, f64, &'b [Bin])> {
        let mut from = 0.0;
        bins.chunks(self.axes.step).map(move |bins| {
            let start = from;
            from += number(bins.len() as u64 * (BIN / MILLI)) / 1_000.0;
            (start, from, bins)
        })
    }

    /// Draws the limit, except where it is above the scale.
    fn limit(&self, picture: &mut Picture, scene: &Scene) {
        let ends = scene.limit.iter().skip(1).map(|(ms, _)| *ms);
        let ends = ends.chain([scene.seconds * 1_000]);
        let mut points = Vec::new();
        for ((from, limit), to) in scene.limit.iter().zip(ends) {
            let (from, to) = (number(*from) / 1_000.0, number(to) / 1_000.0);
            let rate = number(*limit);
            points.push(self.at(from, rate));
            if rate > self.axes.rate.greatest() {
                picture.path(&points, 1.6, INK, "5 3");
                points.clear();
            } else {
                points.push(self.at(to, rate));
            }
        }
        picture.path(&points, 1.6, INK, "5 3");
    }

    /// Draws what the limiter allows, where it limits and the rate is on the scale.
    fn limiter(&self, picture: &mut Picture, bins: &[Bin]) {
        let points: Vec<_> = self
            .steps(bins)
            .map(|(from, _, bins)| {
                let rate = number(bins[0].allowed?) / 1_000.0;
                (rate <= self.axes.rate.greatest()).then(|| self.at(from, rate))
            })
            .collect();
        for run in points.split(Option::is_none) {
            let run: Vec<_> = run.iter().copied().flatten().collect();
            if run.len() > 1 {
                picture.path(&run, 2.0, LIMITER, "none");
            }
        }
    }

    /// Writes how high the highest step is, if it is too high for the plot.
    fn cut(&self, picture: &mut Picture, bins: &[Bin]) {
        let rates = self.steps(bins).map(|(from, to, bins)| {
            let sum: u64 = bins.iter().map(|bin| bin.useful + bin.throttled).sum();
            number(sum) / (to - from)
        });
        let highest = rates.fold(0.0, f64::max);
        if highest > self.axes.rate.greatest() {
            let highest = self.axes.rate_label(highest);
            let text = format!("\u{25b2} up to {highest} a second");
            let at = (self.x + self.axes.width(), self.foot - Axes::PLOT - 5.0);
            picture.text(at, Anchor::End, SMALL, &text);
        }
    }

    /// Draws the axis of time.
    fn time(&self, picture: &mut Picture) {
        let right = self.x + self.axes.width();
        picture.line((self.x, self.foot), (right, self.foot), FAINT, "none");
        for seconds in self.axes.time.ticks() {
            let (x, y) = self.at(seconds, 0.0);
            picture.line((x, y), (x, y + 4.0), FAINT, "none");
            let label = self.axes.time.label(seconds);
            picture.text((x, y + 16.0), Anchor::Middle, SMALL, &label);
        }
    }
}
