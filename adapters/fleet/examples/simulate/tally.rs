//! The results of a scene.

use std::time::Duration;

use crate::node::Node;
use crate::record::{Record, number};
use crate::scenes::{Event, Scene};
use crate::world::WARM_UP;

/// Parts of fewer requests than this say nothing about fairness.
const FEWEST: f64 = 10.0;
/// How long a silent member counts, in seconds.
const ABSENT: u64 = 2;

#[derive(Debug)]
pub(crate) struct Tally {
    scene: &'static Scene,
    used: f64,
    worst: f64,
    throttled: f64,
    fair: f64,
    above: f64,
    bound: f64,
    steps: f64,
    back: usize,
    most_steps: u64,
    first: Duration,
}

/// Returns the headings.
pub(crate) fn head() -> Vec<String> {
    let head = [
        "",
        "members",
        "allowance",
        "used",
        "worst",
        "throttled",
        "fair",
        "above",
        "of",
        "engine",
        "steps/s",
        "under 95 %",
        "first",
    ];
    head.map(str::to_owned).to_vec()
}

impl Tally {
    pub(crate) fn new(
        scene: &'static Scene,
        nodes: &[Node],
        record: &Record,
        each_second: &[u64],
        longest: Duration,
        first: Duration,
    ) -> Self {
        let steps: u64 = each_second.iter().sum();
        let second =
            |from: u64, to| record.within(Duration::from_secs(from), Duration::from_secs(to));
        let seconds = (WARM_UP..scene.length).map(|from| {
            let delivered = number(second(from, from + 1).delivered());
            (delivered, scene.limit(from))
        });
        let (delivered, given) = seconds
            .clone()
            .fold((0.0, 0.0), |(d, g), (delivered, given)| {
                (d + delivered, g + given)
            });
        let parts = seconds.map(|(delivered, given)| delivered / given);
        let short: Vec<bool> = parts.clone().map(|part| part < 0.95).collect();
        let runs = short.split(|short| !short).map(<[bool]>::len);
        let warm = usize::try_from(WARM_UP).unwrap_or(0);
        Self {
            scene,
            used: delivered / given,
            worst: parts.fold(f64::INFINITY, f64::min),
            throttled: second(WARM_UP, scene.length).throttled_share(),
            fair: fair(nodes, given, scene.length),
            above: record.excess(f64::from(scene.allowance) * scene.allowances),
            bound: scene.bound(longest),
            steps: f64::from(u32::try_from(steps).unwrap_or(u32::MAX)) * 1_000.0
                / number(record.sent()).max(1.0),
            back: runs.max().unwrap_or(0),
            most_steps: each_second.iter().skip(warm).copied().max().unwrap_or(0),
            first,
        }
    }

    pub(crate) fn row(&self) -> Vec<String> {
        vec![
            self.scene.name.to_owned(),
            self.scene.members.to_string(),
            format!("{}/s", self.scene.allowance),
            format!("{:.1} %", self.used * 100.0),
            format!("{:.1} %", self.worst * 100.0),
            format!("{:.2} %", self.throttled * 100.0),
            format!("{:.2}", self.fair),
            format!("{:.0}", self.above),
            format!("{:.0}", self.bound),
            format!("{:.0}", self.steps),
            self.most_steps.to_string(),
            format!("{} s", self.back),
            format!("{} ms", self.first.as_millis()),
        ]
    }

    /// Returns which promises were not kept.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let Self { scene, .. } = self;
        let least = [
            ("used", self.used, scene.used),
            ("used in the worst second", self.worst, scene.worst),
            ("the worst fair part", self.fair, scene.fair),
        ];
        let mut wrong = Vec::new();
        for (what, found, least) in least {
            if found < least {
                wrong.push(format!("{}: {what} is {found:.3}, not {least}", scene.name));
            }
        }
        if self.back > scene.back || self.most_steps > scene.steps {
            wrong.push(format!(
                "{}: {} s under 95 %, {} steps in a second",
                scene.name, self.back, self.most_steps
            ));
        }
        if self.first > Duration::from_millis(scene.first) {
            let first = self.first;
            wrong.push(format!("{}: a first request waited {first:?}", scene.name));
        }
        let bound = self.bound;
        if self.above > bound {
            let above = self.above;
            wrong.push(format!(
                "{}: {above:.0} above the allowance, {bound:.0} are stated",
                scene.name
            ));
        }
        wrong
    }
}

/// Returns what the worst served member got of its max-min fair part of `given`.
fn fair(nodes: &[Node], given: f64, length: u64) -> f64 {
    let span = Duration::from_secs(length - WARM_UP).as_secs_f64();
    let wants =
        |node: &Node| f64::from(u32::try_from(node.want).unwrap_or(u32::MAX)) / 1_000.0 * span;
    let mut sorted: Vec<f64> = nodes.iter().map(wants).collect();
    sorted.sort_by(f64::total_cmp);
    let (mut rest, mut level) = (given, f64::INFINITY);
    for (index, want) in sorted.iter().enumerate() {
        let left = number(sorted.len() - index);
        if want * left >= rest {
            level = rest / left;
            break;
        }
        rest -= want;
    }
    let there = nodes.iter().filter(|node| !node.replaced);
    there
        .map(|node| (node, wants(node).min(level)))
        .filter(|(_, part)| *part >= FEWEST)
        .map(|(node, part)| f64::from(u32::try_from(node.served).unwrap_or(u32::MAX)) / part)
        .fold(1.0, f64::min)
}

impl Scene {
    /// Returns what may be sent in the second that begins at `from`.
    fn limit(&self, from: u64) -> f64 {
        let mut limit = f64::from(self.allowance);
        for event in self.events {
            if let Event::Limit {
                from: since,
                percent,
            } = *event
            {
                if from >= since {
                    let percent = u32::try_from(percent).unwrap_or(100);
                    limit = f64::from(self.allowance) * f64::from(percent) / 100.0;
                }
            }
        }
        limit
    }

    /// Returns how far above the allowance any window may be: by `longest`, the longest lease and
    /// the most that the engine keeps, and by a token for each member.
    fn bound(&self, longest: Duration) -> f64 {
        let mut known = number(self.members);
        for event in self.events {
            if let Event::Churn { each, .. } = event {
                known += number(usize::try_from(each * ABSENT).unwrap_or(usize::MAX));
            }
        }
        (f64::from(self.allowance) * longest.as_secs_f64() + known) * self.allowances
    }
}
