//! The chart of one scene: a panel for each limiter, all with the same scales.

#![expect(clippy::float_arithmetic, reason = "pixels")]

use crate::axes::{Axes, Cell};
use crate::laws::Entry;
use crate::number::number;
use crate::scene::Scene;
use crate::summary::Summary;
use crate::svg::{Anchor, Area, Font, Picture};
use crate::tally::Tally;
use crate::words::wrapped;
use crate::{panel, setting};

pub(crate) const SERVED: &str = "#56b4e9";
pub(crate) const THROTTLED: &str = "#d55e00";
pub(crate) const LIMITER: &str = "#5b1a8a";
pub(crate) const INK: &str = "#1a1a1a";
pub(crate) const FAINT: &str = "#555555";
pub(crate) const GRID: &str = "#e2e2e2";

/// The font of everything small.
pub(crate) const SMALL: Font = Font {
    size: 11.0,
    bold: false,
    color: FAINT,
};
pub(crate) const TEXT: Font = Font {
    color: INK,
    ..SMALL
};
pub(crate) const BOLD: Font = Font {
    size: 13.0,
    bold: true,
    color: INK,
};

/// One limiter and its results.
pub(crate) struct Played {
    pub(crate) law: &'static Entry,
    /// The run of the first seed.
    pub(crate) tally: Tally,
    pub(crate) first: Summary,
    /// Of all seeds.
    pub(crate) summary: Summary,
}

/// The first line below the head begins here, and how far apart lines are.
const TOP: f64 = 26.0;
const LINE: f64 = 16.0;
/// How many characters fit into a line of the title, and of the text below it.
const TITLE: usize = 86;
const WIDE: usize = 132;

/// Returns the chart as an SVG document.
pub(crate) fn figure(scene: &Scene, played: &[Played]) -> String {
    let title = wrapped(scene.title, TITLE);
    let setting = wrapped(&setting::setting(scene), WIDE);
    let head = TOP + LINE * count(title.len() + setting.len()) + 2.2 * LINE;
    let axes = Axes::of(scene, played, head);
    let mut picture = Picture::new(Axes::WIDTH, axes.height());
    let mut y = TOP;
    let title_font = Font { size: 15.0, ..BOLD };
    for (font, lines) in [(title_font, &title), (SMALL, &setting)] {
        for line in lines {
            picture.text((Axes::MARGIN, y), Anchor::Start, font, line);
            y += LINE + if font.bold { 3.0 } else { 0.0 };
        }
    }
    legend(&mut picture, y + 6.0, scene);
    for (index, one) in played.iter().enumerate() {
        let cell = axes.cell(index);
        panel::draw(&mut picture, &axes, cell, one);
        if let Some((bars, scale)) = &axes.bars {
            bars.draw(scale, &mut picture, &axes, cell, one);
        }
    }
    captions(&mut picture, &axes);
    picture.finish()
}

/// Draws what the colors are.
fn legend(picture: &mut Picture, y: f64, scene: &Scene) {
    let mut x = Axes::MARGIN;
    let mut say = |picture: &mut Picture, text: &str| {
        picture.text((x + 22.0, y), Anchor::Start, TEXT, text);
        let at = x;
        x += 22.0 + 5.95 * count(text.chars().count()) + 16.0;
        at
    };
    let swatch = |x: f64| Area {
        x,
        y: y - 10.0,
        width: 16.0,
        height: 11.0,
    };
    let x = say(picture, "got through");
    picture.areas(&[swatch(x)], SERVED);
    let x = say(
        picture,
        "throttled, on top: the upper edge is all that was sent",
    );
    picture.areas(&[swatch(x)], THROTTLED);
    let middle = y - 4.5;
    let x = say(picture, "the service\u{2019}s limit");
    picture.path(&[(x, middle), (x + 17.0, middle)], 1.6, INK, "5 3");
    if scene.clients == 1 {
        let x = say(picture, "what the limiter allows");
        picture.path(&[(x, middle), (x + 17.0, middle)], 2.0, LIMITER, "none");
    }
}

/// Names the axes.
fn captions(picture: &mut Picture, axes: &Axes) {
    for row in 0..axes.rows() {
        let Cell { y, .. } = axes.cell(row * axes.columns());
        let middle = y + Axes::HEAD + Axes::PLOT / 2.0;
        let at = (Axes::MARGIN + 4.0, middle);
        picture.turned_text(at, Anchor::Middle, SMALL, -90, "requests per second");
        if let Some((bars, _)) = &axes.bars {
            let at = (Axes::MARGIN + 4.0, y + Axes::BARS_TOP + Axes::BARS / 2.0);
            picture.turned_text(at, Anchor::Middle, SMALL, -90, bars.words().0);
        }
    }
    let mut text = format!(
        "Across: seconds since the start. Each step is the mean of {} s.",
        axes.step_seconds()
    );
    if let Some((bars, _)) = &axes.bars {
        text += bars.words().1;
    }
    let at = (Axes::WIDTH / 2.0, axes.height() - 10.0);
    picture.text(at, Anchor::Middle, SMALL, &text);
}

fn count(of: usize) -> f64 {
    number(of as u64)
}

#[cfg(test)]
mod tests {
    use super::{Played, figure};
    use crate::laws::{CLASSES, LAWS};
    use crate::scene::Scene;
    use crate::scenes::SCENES;
    use crate::summary::Summary;
    use crate::world::play;

    /// Returns the chart of the first seconds of a scene.
    fn chart(name: &str) -> String {
        let scene = SCENES.iter().find(|scene| scene.name == name);
        let scene = Scene {
            seconds: 4,
            ..*scene.expect("the scene is there")
        };
        let played = LAWS.iter().filter(|law| law.fits(&scene)).map(|law| {
            let tally = play(&scene, law, 1);
            let summary = Summary::of(&tally);
            let first = summary.clone();
            Played {
                law,
                tally,
                first,
                summary,
            }
        });
        figure(&scene, &played.collect::<Vec<_>>())
    }

    #[test]
    fn every_limiter_has_a_panel_and_only_several_clients_have_bars() {
        let (one, several) = (chart("bucket"), chart("10-clients"));
        let laws = LAWS.iter().filter(|law| law.name != CLASSES);
        for law in laws.clone() {
            assert!(one.contains(&format!(">{}<", law.name)), "{}", law.name);
        }
        let bars = |chart: &str| chart.matches("Jain\u{2019}s index").count();
        assert_eq!((bars(&one), bars(&several)), (0, laws.count()));
    }

    #[test]
    fn the_scene_of_two_classes_has_a_panel_more_and_waits() {
        let classes = chart("classes");
        assert!(classes.contains(&format!(">{CLASSES}<")));
        assert_eq!(classes.matches("people wait").count(), LAWS.len());
    }

    #[test]
    fn a_rate_above_the_scale_is_told() {
        // The bucket is full at the start: more than a thousand a second get through for a moment,
        // unless the client keeps to the limit.
        let cut = chart("bucket").matches("\u{25b2} up to 1,").count();
        assert!(cut > 0 && cut < LAWS.len(), "{cut}");
    }
}
