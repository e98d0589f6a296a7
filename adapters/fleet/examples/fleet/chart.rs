//! Who sent how much, over time: a panel for each way of sending, a band for each process.

use std::path::PathBuf;
use std::time::Duration;

use crate::rig::record::number;
use crate::scale::Scale;
use crate::svg::{Anchor, Font, Picture};
use crate::{LIMIT, Run};

const WIDTH: f64 = 860.0;
const PANEL: f64 = 170.0;
const PLOT: f64 = 120.0;
const LEFT: f64 = 60.0;
const BIN: Duration = Duration::from_millis(100);
const COLORS: [&str; 8] = [
    "#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5",
];
const INK: &str = "#333333";

const fn font(size: f64, bold: bool) -> Font {
    Font {
        size,
        bold,
        color: INK,
    }
}

/// Draws the runs, and returns where the picture is.
pub(crate) fn write(runs: &[Run], members: u8) -> std::io::Result<PathBuf> {
    let mut picture = Picture::new(WIDTH, PANEL * number(runs.len()) + 20.0);
    for (place, run) in runs.iter().enumerate() {
        panel(&mut picture, run, members, PANEL * number(place) + 30.0);
    }
    let folder = std::env::current_exe()?;
    let folder = folder.ancestors().nth(3).unwrap_or(&folder).to_owned();
    let path = folder.join("fleet.svg");
    std::fs::write(&path, picture.finish())?;
    Ok(path)
}

fn panel(picture: &mut Picture, run: &Run, members: u8, top: f64) {
    let limit = f64::from(LIMIT);
    let height = Scale::new(limit * 1.5, PLOT, 3.0);
    let bins = bins(run, members);
    let width = WIDTH - LEFT - 20.0;
    let x = |bin: usize| LEFT + width * number(bin) / number(bins.len().saturating_sub(1).max(1));
    let foot = top + PLOT;
    let title = format!("{}: {:.1} % used", run.name, run.used() * 100.0);
    picture.text((LEFT, top - 8.0), Anchor::Start, font(13.0, true), &title);
    let mut below = vec![0.0; bins.len()];
    for member in 0..usize::from(members) {
        let above: Vec<f64> = bins
            .iter()
            .zip(&below)
            .map(|(bin, low)| low + bin[member])
            .collect();
        let edge = |levels: &[f64]| -> Vec<(f64, f64)> {
            let points = levels.iter().enumerate();
            points
                .map(|(bin, &level)| (x(bin), foot - height.pixels(level)))
                .collect()
        };
        let mut outline = edge(&above);
        outline.extend(edge(&below).into_iter().rev());
        picture.outlines(&[outline], COLORS[member % COLORS.len()]);
        below = above;
    }
    for tick in height.ticks() {
        let y = foot - height.pixels(tick);
        picture.text(
            (LEFT - 6.0, y + 4.0),
            Anchor::End,
            font(10.0, false),
            &height.label(tick),
        );
        picture.line((LEFT - 3.0, y), (LEFT, y), INK, "none");
    }
    let y = foot - height.pixels(limit);
    picture.line((LEFT, y), (LEFT + width, y), "#000000", "6 4");
    picture.line((LEFT, foot), (LEFT + width, foot), INK, "none");
    let head = foot - height.pixels(height.greatest());
    picture.line((LEFT, head), (LEFT, foot), INK, "none");
    for second in 0..=run.span.as_secs() {
        let at = f64::from(u32::try_from(second).unwrap_or(0)) / run.span.as_secs_f64();
        let label = format!("{second} s");
        picture.text(
            (LEFT + width * at, foot + 14.0),
            Anchor::Middle,
            font(10.0, false),
            &label,
        );
    }
}

/// Returns what each member sent per second, in each tenth of a second.
fn bins(run: &Run, members: u8) -> Vec<Vec<f64>> {
    let count = usize::try_from(run.span.as_millis() / BIN.as_millis()).unwrap_or(1);
    let mut bins = vec![vec![0.0; usize::from(members)]; count];
    for seen in &run.all.0 {
        let bin = usize::try_from(seen.at.as_millis() / BIN.as_millis()).unwrap_or(usize::MAX);
        if let Some(bin) = bins.get_mut(bin) {
            bin[usize::from(seen.member)] += 1.0 / BIN.as_secs_f64();
        }
    }
    bins
}
