//! How much each client got, as bars from the least to the most.

#![expect(clippy::float_arithmetic, reason = "pixels")]

use crate::axes::{Axes, Cell};
use crate::figure::{FAINT, GRID, INK, Played, SERVED, SMALL, TEXT};
use crate::number::{jain, number};
use crate::svg::{Anchor, Area, Picture};
use crate::tally::Tally;

/// The most bars; of more clients, neighbours share one.
const BARS: usize = 80;
/// The highest bar that is drawn whole, in percent of an equal part.
const HIGHEST: f64 = 300.0;

/// Returns how high the scale for these runs must be.
pub(crate) fn most(played: &[Played]) -> f64 {
    let bars = played.iter().flat_map(|one| bars(&one.tally));
    bars.fold(120.0, f64::max).min(HIGHEST)
}

/// Returns what the clients got in percent of an equal part, the least first.
fn bars(tally: &Tally) -> Vec<f64> {
    let mut counts = tally.accepted.clone();
    counts.sort_unstable();
    let equal = number(counts.iter().sum()) / number(counts.len() as u64);
    let group = counts.len().div_ceil(BARS);
    let mean = |group: &[u64]| number(group.iter().sum()) / number(group.len() as u64);
    let percent = |part: f64| 100.0 * part / equal.max(f64::MIN_POSITIVE);
    counts
        .chunks(group)
        .map(|group| percent(mean(group)))
        .collect()
}

/// Draws the bars of one limiter below its panel.
pub(crate) fn draw(picture: &mut Picture, axes: &Axes, cell: Cell, tally: &Tally) {
    let Some(scale) = axes.shares else {
        return;
    };
    let foot = cell.y + Axes::BARS_TOP + Axes::BARS;
    let right = cell.x + axes.width();
    for percent in scale.ticks() {
        let y = foot - scale.pixels(percent);
        picture.line((cell.x, y), (right, y), GRID, "none");
        if cell.leftmost {
            let at = (cell.x - 6.0, y + 4.0);
            picture.text(at, Anchor::End, SMALL, &scale.label(percent));
        }
    }
    let bars = bars(tally);
    let pitch = axes.width() / number(bars.len() as u64);
    let gap = if pitch > 4.0 { 1.0 } else { 0.0 };
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
    picture.areas(&areas.collect::<Vec<_>>(), SERVED);
    let equal = foot - scale.pixels(100.0);
    picture.line((cell.x, equal), (right, equal), INK, "2 3");
    picture.line((cell.x, foot), (right, foot), FAINT, "none");
    let title = format!(
        "Jain\u{2019}s index {:.3} (1: equal parts)",
        jain(&tally.accepted)
    );
    let at = (cell.x, foot - Axes::BARS - 8.0);
    picture.text(at, Anchor::Start, TEXT, &title);
}
