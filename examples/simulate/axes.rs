//! Where things are in the chart of a scene.

#![expect(clippy::float_arithmetic, reason = "pixels")]

use crate::bars::Bars;
use crate::figure::Played;
use crate::number::number;
use crate::scale::Scale;
use crate::scene::{Policer, Scene};
use crate::tally::BIN;
use crate::time::MILLI;
use crate::words::short;

/// The scales that all panels share, so that they can be compared by eye.
#[derive(Debug)]
pub(crate) struct Axes {
    /// Seconds.
    pub(crate) time: Scale,
    /// Requests per second.
    pub(crate) rate: Scale,
    /// The bars below each panel, if there are any.
    pub(crate) bars: Option<(Bars, Scale)>,
    /// How many bins of the tally make a step of the chart.
    pub(crate) step: usize,
    panels: usize,
    head: f64,
}

/// The left upper corner of a panel, and whether it stands at the left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) leftmost: bool,
}

impl Axes {
    pub(crate) const WIDTH: f64 = 840.0;
    pub(crate) const MARGIN: f64 = 14.0;
    /// The height of what is above the plot of a panel, of the plot, and of the bars below.
    pub(crate) const HEAD: f64 = 62.0;
    pub(crate) const PLOT: f64 = 120.0;
    pub(crate) const BARS: f64 = 56.0;
    /// Where the bars begin.
    pub(crate) const BARS_TOP: f64 = Self::HEAD + Self::PLOT + 46.0;
    /// The space between panels, and left of them for the labels.
    const GAP: f64 = 24.0;
    const LEFT: f64 = 62.0;
    const FOOT: f64 = 30.0;

    /// Returns the axes for these runs below a head of this height.
    pub(crate) fn of(scene: &Scene, played: &[Played], head: f64) -> Self {
        let step = step(scene);
        let panels = played.len().max(1);
        let width = width(panels);
        Self {
            time: Scale::new(number(scene.seconds), width, 5.0),
            rate: Scale::new(highest(scene, played, step), Self::PLOT, 5.0),
            bars: Bars::of(scene, step).map(|bars| (bars, bars.scale(played))),
            step,
            panels,
            head,
        }
    }

    /// Returns where a panel is.
    pub(crate) fn cell(&self, index: usize) -> Cell {
        let (row, column) = (index / self.columns(), index % self.columns());
        Cell {
            x: Self::LEFT + number(column as u64) * (self.width() + Self::GAP),
            y: self.head + number(row as u64) * self.row_height(),
            leftmost: column == 0,
        }
    }

    /// Returns the width of a plot.
    pub(crate) fn width(&self) -> f64 {
        width(self.panels)
    }

    pub(crate) fn columns(&self) -> usize {
        columns(self.panels)
    }

    pub(crate) fn rows(&self) -> usize {
        self.panels.div_ceil(self.columns())
    }

    fn row_height(&self) -> f64 {
        if self.bars.is_some() {
            Self::BARS_TOP + Self::BARS + 26.0
        } else {
            Self::HEAD + Self::PLOT + 36.0
        }
    }

    /// Returns the height of the chart.
    pub(crate) fn height(&self) -> f64 {
        self.head + number(self.rows() as u64) * self.row_height() + Self::FOOT
    }

    /// Returns a rate in few characters, with decimals if those on the scale need them.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate for the eye"
    )]
    pub(crate) fn rate_label(&self, rate: f64) -> String {
        if self.rate.greatest() < 5.0 {
            return self.rate.label(rate);
        }
        short(rate.round() as u64)
    }

    /// Returns how long a step is.
    pub(crate) fn step_seconds(&self) -> f64 {
        number(self.step as u64 * (BIN / MILLI)) / 1_000.0
    }
}

fn columns(panels: usize) -> usize {
    match panels {
        1..=3 => panels,
        4 => 2,
        _ => 3,
    }
}

fn width(panels: usize) -> f64 {
    let columns = number(columns(panels) as u64);
    let gaps = (columns - 1.0) * Axes::GAP;
    (Axes::WIDTH - Axes::LEFT - Axes::MARGIN - gaps) / columns
}

/// Returns how many bins make a step: so that there are not too many of them, nor too few requests
/// in one, and where the service counts whole seconds at least one of these.
fn step(scene: &Scene) -> usize {
    let limit = scene.limit.iter().map(|(_, limit)| *limit).max();
    let most_steps = usize::try_from(scene.seconds * 10 / 120).unwrap_or(1);
    let few_requests = usize::try_from(50 / limit.unwrap_or(1).max(1)).unwrap_or(1);
    let counted = match scene.policer {
        Policer::Bucket(_) => 1,
        Policer::Window | Policer::Sliding => 10,
    };
    let least = most_steps.max(few_requests).max(counted);
    let steps = [1, 2, 5, 10, 20, 50, 100];
    steps.into_iter().find(|step| *step >= least).unwrap_or(100)
}

/// Returns the highest rate to draw: not more than twice what can be used, else one burst makes all
/// else flat.
fn highest(scene: &Scene, played: &[Played], step: usize) -> f64 {
    let ideal = scene.ideal();
    let window = 2_000;
    let spans = ideal.iter().zip(ideal.iter().skip(window));
    let used = spans.map(|(from, to)| (to - from) / 2_000_000).max();
    let limit = scene.limit.iter().map(|(_, limit)| *limit).max();
    let usable = number(used.unwrap_or(1).min(limit.unwrap_or(1)).max(1));
    let per_second = 10.0 / number(step as u64);
    let bins = played.iter().flat_map(|one| one.tally.bins.chunks(step));
    let rates = bins.map(|bins| {
        let sum: u64 = bins.iter().map(|bin| bin.useful + bin.throttled).sum();
        number(sum) * per_second
    });
    let seen = rates.fold(usable, f64::max);
    (seen * 1.05).clamp(usable * 1.25, usable * 2.1)
}
