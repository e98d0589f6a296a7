//! The chart of one scene: a panel for each limiter.

#![expect(clippy::float_arithmetic, reason = "for people to read")]

use crate::Played;
use crate::chart::{Bars, Chart, Panel, steps};
use crate::counts::{BIN, Tally};
use crate::number::{jain, number, percent, short};
use crate::scene::{Load, Policer, Scene};
use crate::time::MILLI;

/// The most bars; of more clients, neighbours share one.
const MOST: usize = 80;
/// The highest bar that is drawn whole, in percent of an equal part.
const HIGHEST: f64 = 300.0;

/// Returns the chart as an SVG document.
pub(crate) fn figure(scene: &Scene, played: &[Played]) -> String {
    let width = step(scene);
    let step = seconds(width as u64 * (BIN / MILLI));
    let waits = scene.clients == 1;
    let bars = if waits { longest } else { shares };
    let panels = played.iter().map(|(law, runs)| Panel {
        name: law.name.to_owned(),
        lines: [law.means.to_owned(), outcome(&runs[0])],
        steps: steps(&runs[0].bins, width, seconds(BIN / MILLI)),
        bars: bars(&runs[0], width),
    });
    let panels: Vec<_> = panels.collect();
    let all = panels.iter().flat_map(|panel| panel.bars.0.iter().copied());
    let bars = if waits {
        let (unit, most) = ("seconds", all.fold(1.0, f64::max));
        let step = Some(step);
        Bars { unit, most, step }
    } else {
        let (unit, most) = ("% of equal", all.fold(120.0, f64::max).min(HIGHEST));
        let step = None;
        Bars { unit, most, step }
    };
    let mut across = format!("Across: seconds since the start. Each step is the mean of {step} s.");
    if !waits {
        across += " Bars: the clients, least served first; 100 % is an equal part.";
    } else if scene.people > 0 {
        across += " Bars: the longest that anyone waited who asked then.";
    }
    let ends = scene.limit.iter().skip(1).map(|(ms, _)| *ms);
    let ends = ends.chain([scene.seconds * 1_000]).map(seconds);
    let limits = scene
        .limit
        .iter()
        .map(|(ms, rate)| (seconds(*ms), number(*rate)));
    let limit = limits.zip(ends).map(|((from, rate), to)| (from, to, rate));
    Chart {
        title: scene.title.to_owned(),
        setting: setting(scene),
        columns: match played.len() {
            0..=3 => played.len(),
            4 => 2,
            _ => 3,
        },
        rate: ["requests", "second"],
        across,
        end: number(scene.seconds),
        highest: highest(scene, &panels),
        limit: limit.collect(),
        bars: (!waits || scene.people > 0).then_some(bars),
    }
    .draw(&panels)
}

fn seconds(millis: u64) -> f64 {
    number(millis) / 1_000.0
}

fn outcome(of: &Tally) -> String {
    // A decimal only where it matters.
    let rounded = |share: f64| percent(share, usize::from(share > 0.0 && share < 0.095));
    format!(
        "{} used, {} throttled, {} lost",
        rounded(of.share()),
        rounded(of.throttled_share()),
        short(of.failed),
    )
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
fn highest(scene: &Scene, panels: &[Panel]) -> f64 {
    let ideal = scene.ideal();
    let window = 2_000;
    let spans = ideal.iter().zip(ideal.iter().skip(window));
    let used = spans.map(|(from, to)| (to - from) / 2_000_000).max();
    let limit = scene.limit.iter().map(|(_, limit)| *limit).max();
    let usable = number(used.unwrap_or(1).min(limit.unwrap_or(1)).max(1));
    let steps = panels.iter().flat_map(|panel| &panel.steps);
    let seen = steps.map(|step| step.sent).fold(usable, f64::max);
    (seen * 1.05).clamp(usable * 1.25, usable * 2.1)
}

/// Returns what the clients got in percent of an equal part, the least first.
fn shares(of: &Tally, _: usize) -> (Vec<f64>, String) {
    let mut counts = of.accepted.clone();
    counts.sort_unstable();
    let mean = |group: &[u64]| number(group.iter().sum()) / number(group.len() as u64);
    let equal = mean(&counts).max(f64::MIN_POSITIVE);
    let groups = counts.chunks(counts.len().div_ceil(MOST));
    let shares = groups.map(|group| 100.0 * mean(group) / equal);
    let jain = jain(&of.accepted);
    let title = format!("Jain\u{2019}s index {jain:.3} (1: equal parts)");
    (shares.collect(), title)
}

/// Returns the longest that people waited in each step, in seconds.
fn longest(of: &Tally, width: usize) -> (Vec<f64>, String) {
    let steps = of.bins.chunks(width);
    let longest = steps.filter_map(|bins| bins.iter().map(|bin| bin.longest).max());
    let waits = longest.map(|longest| number(longest) / 1e9);
    let [p50, p99] = [500, 990].map(|permille| number(of.people.quantile(permille)) / 1e9);
    let title = format!("people wait {p50:.2} s, 99th percentile {p99:.2} s");
    (waits.collect(), title)
}

/// Returns what a scene is, in a sentence for people who did not write it.
fn setting(scene: &Scene) -> String {
    let far = match scene.far {
        1 => String::new(),
        far => format!(" (every second client: {})", scene.trip_us * far / 1_000),
    };
    let trip = format!("an answer takes {} ms{far}", scene.trip_us / 1_000);
    let (clients, limits) = (clients(scene), limits(scene));
    format!(
        "{clients}; {trip}; the service allows {limits}, {}.",
        counting(scene)
    )
}

fn clients(scene: &Scene) -> String {
    let many = short(scene.clients.into());
    let load = match scene.load {
        Load::Closed(workers) => short(workers.into()),
        Load::Open(rate) => short(rate),
    };
    match (scene.clients, scene.load) {
        (1, Load::Closed(_)) if scene.people > 0 => {
            format!(
                "One client with {load} workers, and people who ask for {} a second",
                scene.people
            )
        }
        (1, Load::Closed(_)) => format!("One client with {load} workers"),
        (1, Load::Open(_)) => format!("One client that wants {load} a second"),
        (_, Load::Closed(_)) if scene.mixed => {
            format!("{many} clients with {load} workers each, every second one of the AWS SDKs")
        }
        (_, Load::Closed(_)) => format!("{many} clients with {load} workers each"),
        (_, Load::Open(_)) => format!("{many} clients that want {load} a second each"),
    }
}

fn limits(scene: &Scene) -> String {
    let limits = scene.limit.iter().map(|(ms, limit)| match (ms, limit) {
        (0, 0) => "nothing".to_owned(),
        (0, 1) => "1 request a second".to_owned(),
        (0, limit) => format!("{} requests a second", short(*limit)),
        (ms, 0) => format!("from {} s on nothing", seconds(*ms)),
        (ms, limit) => format!("from {} s on {}", seconds(*ms), short(*limit)),
    });
    limits.collect::<Vec<_>>().join(", ")
}

fn counting(scene: &Scene) -> String {
    match scene.policer {
        Policer::Bucket(most) => format!("and saves at most {} unused ones", short(most)),
        Policer::Window => "counted anew in each second of the clock".to_owned(),
        Policer::Sliding => "counted over the last second".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{figure, setting};
    use crate::laws::{CLASSES, LAWS};
    use crate::play::play;
    use crate::scene::Scene;
    use crate::scenes::SCENES;

    /// Returns the chart of the first seconds of a scene.
    fn chart(name: &str) -> String {
        let scene = SCENES.iter().find(|scene| scene.name == name);
        let scene = Scene {
            seconds: 4,
            ..*scene.expect("the scene is there")
        };
        let laws = LAWS.iter().filter(|law| law.fits(&scene));
        let played = laws.map(|law| (law, vec![play(&scene, law, 1)]));
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

    #[test]
    fn a_scene_is_a_sentence() {
        let scene = SCENES.iter().find(|scene| scene.name == "outage");
        let sentence = "One client with 64 workers; an answer takes 50 ms; the service allows 500 requests a second, \
                        from 20 s on nothing, from 30 s on 500, and saves at most 100 unused ones.";
        assert_eq!(scene.map(setting).as_deref(), Some(sentence));
    }
}
