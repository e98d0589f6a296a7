//! The chart of a limit that counts minutes: a panel for each limiter.

use super::{MINUTE, Makes, Scene, index, number, play, share};
use crate::chart::{Chart, Panel, steps};
use crate::number::percent;
use crate::tally::Bin;

/// So many are drawn, from the first request on.
const MINUTES: u64 = 20;

/// Returns the chart of a scene as an SVG document; `None` if its limit does not count minutes.
pub(super) fn chart(scene: &Scene, laws: &[&(&str, Makes)], seed: u64) -> Option<String> {
    let (_, limit, MINUTE, _) = *scene.limits.first()? else {
        return None;
    };
    let scene = Scene {
        seconds: (0, MINUTES * MINUTE),
        ..*scene
    };
    let panels: Vec<_> = laws.iter().map(|law| panel(&scene, law, seed)).collect();
    let chart = Chart {
        title: format!("{limit} requests a minute, found"),
        setting: format!(
            "{} workers ask without an end, and wait longer after each refusal. The service does not declare its limit, and counts it from one minute to the next.",
            scene.workers * scene.clients
        ),
        columns: if panels.len() == 4 {
            2
        } else {
            panels.len().min(3)
        },
        rate: ["requests", "minute"],
        across: "Across: minutes since the start. Each step is a minute.".to_owned(),
        end: number(MINUTES),
        highest: 3.0 * number(limit),
        limit: vec![(0.0, number(MINUTES), number(limit))],
        bars: None,
    };
    Some(chart.draw(&panels))
}

fn panel(scene: &Scene, law: &(&str, Makes), seed: u64) -> Panel {
    let tally = play(scene, law.1, seed);
    let in_minute = |of: &[u64], minute| -> u64 {
        let seconds = of.iter().skip(index(minute * MINUTE));
        seconds.take(index(MINUTE)).sum()
    };
    let bins: Vec<_> = (0..MINUTES)
        .map(|minute| {
            Bin::of(
                in_minute(&tally.seconds, minute),
                in_minute(&tally.refused, minute),
            )
        })
        .collect();
    let (done, refused) = (tally.done(), tally.refused());
    let used = percent(number(done) / scene.allowed(), 0);
    let throttled = percent(share(refused, done + refused), 1);
    Panel {
        name: law.0.to_owned(),
        lines: [format!("{used} used, {throttled} throttled"), String::new()],
        steps: steps(&bins, 1, 1.0),
        bars: (Vec::new(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LAWS, SCENES};
    use super::chart;

    fn drawn(name: &str) -> Option<String> {
        let scene = SCENES.iter().find(|scene| scene.name == name);
        let laws: Vec<_> = LAWS[..4].iter().collect();
        chart(scene.expect("there is such a scene"), &laws, 1)
    }

    #[test]
    fn only_a_limit_of_minutes_has_a_chart() {
        assert!(drawn("10 in 60 s").is_some_and(|chart| chart.contains("10 requests a minute")));
        assert_eq!(drawn("15 in 900 s"), None);
    }

    #[test]
    fn the_committed_chart_is_the_one_that_is_drawn() {
        let committed = include_str!("../charts/40-in-60-s-windows.svg");
        assert_eq!(drawn("40 in 60 s, windows").as_deref(), Some(committed));
    }
}
