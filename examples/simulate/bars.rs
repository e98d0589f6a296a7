//! Bars below a panel: how much each client got, least first, or how long people waited, for each
//! step of time.

#![expect(clippy::float_arithmetic, reason = "pixels")]

use crate::axes::{Axes, Cell};
use crate::figure::{FAINT, GRID, INK, LIMITER, Played, SERVED, SMALL, TEXT};
use crate::number::{jain, number};
use crate::scale::Scale;
use crate::scene::Scene;
use crate::svg::{Anchor, Area, Picture};
use crate::tally::{Bin, Tally};

/// The most bars; of more clients, neighbours share one.
const MOST: usize = 80;
/// The highest bar that is drawn whole, in percent of an equal part.
const HIGHEST: f64 = 300.0;

/// What the bars of a scene are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bars {
    /// Percent of an equal part.
    Shares,
    /// Seconds, by steps of so many bins.
    Waits(usize),
}

impl Bars {
    /// Returns the bars of a scene in which there is something to compare.
    pub(crate) fn of(scene: &Scene, step: usize) -> Option<Self> {
        match scene.clients {
            1 => (scene.people > 0).then_some(Self::Waits(step)),
            _ => Some(Self::Shares),
        }
    }

    /// Returns the scale for these runs.
    pub(crate) fn scale(self, played: &[Played]) -> Scale {
        let bars = played.iter().flat_map(|one| self.bars(&one.tally));
        let most = match self {
            Self::Shares => bars.fold(120.0, f64::max).min(HIGHEST),
            Self::Waits(_) => bars.fold(1.0, f64::max),
        };
        Scale::new(most, Axes::BARS, 3.0)
    }

    fn bars(self, tally: &Tally) -> Vec<f64> {
        let Self::Waits(step) = self else {
            return shares(tally);
        };
        let longest = |bins: &[Bin]| bins.iter().map(|bin| bin.longest).max();
        let steps = tally.bins.chunks(step);
        steps
            .map(|bins| number(longest(bins).unwrap_or(0)) / 1e9)
            .collect()
    }

    /// Returns the unit, and a sentence on what they are.
    pub(crate) const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Shares => (
                "% of equal",
                " Bars: the clients, least served first; 100 % is an equal part.",
            ),
            Self::Waits(_) => (
                "seconds",
                " Bars: the longest that anyone waited who asked then.",
            ),
        }
    }

    /// Draws the bars of one limiter below its panel.
    pub(crate) fn draw(
        self,
        scale: &Scale,
        picture: &mut Picture,
        axes: &Axes,
        cell: Cell,
        played: &Played,
    ) {
        let foot = cell.y + Axes::BARS_TOP + Axes::BARS;
        let right = cell.x + axes.width();
        for value in scale.ticks() {
            let y = foot - scale.pixels(value);
            picture.line((cell.x, y), (right, y), GRID, "none");
            if cell.leftmost {
                let at = (cell.x - 6.0, y + 4.0);
                picture.text(at, Anchor::End, SMALL, &scale.label(value));
            }
        }
        let bars = self.bars(&played.tally);
        let (pitch, color, title) = match self {
            Self::Shares => {
                let jain = jain(&played.tally.accepted);
                let title = format!("Jain\u{2019}s index {jain:.3} (1: equal parts)");
                (axes.width() / number(bars.len() as u64), SERVED, title)
            }
            Self::Waits(_) => {
                let (p50, p99) = (played.first.people_p50, played.first.people_p99);
                let title = format!("people wait {p50:.2} s, 99th percentile {p99:.2} s");
                (axes.time.pixels(axes.step_seconds()), LIMITER, title)
            }
        };
        let gap = if self == Self::Shares && pitch > 4.0 {
            1.0
        } else {
            0.0
        };
        let mut x = cell.x;
        let areas = bars.iter().map(|bar| {
            let height = scale.pixels(*bar);
            let left = x;
            x += pitch;
            Area {
                x: left,
                y: foot - height,
                width: pitch - gap,
                height,
            }
        });
        picture.areas(&areas.collect::<Vec<_>>(), color);
        if self == Self::Shares {
            let equal = foot - scale.pixels(100.0);
            picture.line((cell.x, equal), (right, equal), INK, "2 3");
        }
        picture.line((cell.x, foot), (right, foot), FAINT, "none");
        let at = (cell.x, foot - Axes::BARS - 8.0);
        picture.text(at, Anchor::Start, TEXT, &title);
    }
}

/// Returns what the clients got in percent of an equal part, the least first.
fn shares(tally: &Tally) -> Vec<f64> {
    let mut counts = tally.accepted.clone();
    counts.sort_unstable();
    let mean = |group: &[u64]| number(group.iter().sum()) / number(group.len() as u64);
    let equal = mean(&counts).max(f64::MIN_POSITIVE);
    let groups = counts.chunks(counts.len().div_ceil(MOST));
    groups.map(|group| 100.0 * mean(group) / equal).collect()
}
