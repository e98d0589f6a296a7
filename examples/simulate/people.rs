//! How long people waited, where other requests can wait: a bar for each step of time.

#![expect(clippy::float_arithmetic, reason = "pixels")]

use crate::axes::{Axes, Cell};
use crate::figure::{FAINT, GRID, LIMITER, Played, SMALL, TEXT};
use crate::number::number;
use crate::svg::{Anchor, Area, Picture};
use crate::tally::{Bin, Tally};

/// Returns how high the scale for these runs must be.
pub(crate) fn most(played: &[Played]) -> f64 {
    let bins = played.iter().flat_map(|one| &one.tally.bins);
    let longest = bins.map(|bin| bin.longest).max();
    (number(longest.unwrap_or(0)) / 1e9).max(1.0)
}

fn bars(tally: &Tally, step: usize) -> impl Iterator<Item = f64> {
    let longest = |bins: &[Bin]| bins.iter().map(|bin| bin.longest).max();
    let bars = tally.bins.chunks(step);
    bars.map(move |bins| number(longest(bins).unwrap_or(0)) / 1e9)
}

/// Draws the bars of one limiter below its panel.
pub(crate) fn draw(picture: &mut Picture, axes: &Axes, cell: Cell, played: &Played) {
    let Some(scale) = axes.waits else {
        return;
    };
    let foot = cell.y + Axes::BARS_TOP + Axes::BARS;
    let right = cell.x + axes.width();
    for seconds in scale.ticks() {
        let y = foot - scale.pixels(seconds);
        picture.line((cell.x, y), (right, y), GRID, "none");
        if cell.leftmost {
            let at = (cell.x - 6.0, y + 4.0);
            picture.text(at, Anchor::End, SMALL, &scale.label(seconds));
        }
    }
    let pitch = axes.time.pixels(axes.step_seconds());
    let mut x = cell.x;
    let areas = bars(&played.tally, axes.step).map(|bar| {
        let height = scale.pixels(bar);
        let left = x;
        x += pitch;
        Area {
            x: left,
            y: foot - height,
            width: pitch,
            height,
        }
    });
    picture.areas(&areas.collect::<Vec<_>>(), LIMITER);
    picture.line((cell.x, foot), (right, foot), FAINT, "none");
    let title = format!(
        "people wait {:.2} s, 99th percentile {:.2} s",
        played.first.people_p50, played.first.people_p99
    );
    let at = (cell.x, foot - Axes::BARS - 8.0);
    picture.text(at, Anchor::Start, TEXT, &title);
}
