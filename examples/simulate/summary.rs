//! What a table shows of a run, or of several with different seeds.

#![expect(clippy::float_arithmetic, reason = "for people to read")]

use crate::number::{jain, number, share};
use crate::scene::Scene;
use crate::tally::{BIN, Tally};
use crate::time::MILLI;

/// How long a rate must be held to count as reached, in bins: two seconds.
const HELD: u64 = 20;
/// How many bins there are in a second.
const PER_SECOND: f64 = 10.0;

/// Means over the runs.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) sent: f64,
    pub(crate) useful: f64,
    /// What the ideal client gets through.
    pub(crate) ideal: f64,
    /// Requests that got through, of the ideal.
    pub(crate) share: f64,
    /// Of the requests sent.
    pub(crate) throttled: f64,
    /// Operations, and of these the ones for whose retry the quota did not pay.
    pub(crate) failed: f64,
    pub(crate) refused: f64,
    /// For each request.
    pub(crate) wakes: f64,
    /// Seconds that half, and all but one of a hundred, waited at most.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// The same of the requests that someone waits for.
    pub(crate) people_p50: f64,
    pub(crate) people_p99: f64,
    /// Jain's index.
    pub(crate) jain: f64,
    /// Of an equal part, what the clients under test got, where there are others.
    pub(crate) part: Option<f64>,
    /// After the start, and after each change of the limit to another one than nothing.
    pub(crate) phases: Vec<Phase>,
}

/// The results of a run while one limit held.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    /// Whether it began with the start, not with a change.
    pub(crate) first: bool,
    /// Of the ideal.
    pub(crate) share: f64,
    /// Until nine tenths of the ideal were reached, and 99 of a hundred.
    pub(crate) most: Reached,
    pub(crate) nearly_all: Reached,
}

/// When a rate was reached and held, in those runs in which it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reached {
    seconds: f64,
    times: u32,
    runs: u32,
}

impl Reached {
    /// Returns the mean, and of how many runs if not of all.
    pub(crate) fn words(self) -> String {
        let Self {
            seconds,
            times,
            runs,
        } = self;
        let mean = seconds / f64::from(times.max(1));
        match times {
            0 => "never".to_owned(),
            _ if times == runs => format!("{mean:.1} s"),
            _ => format!("{mean:.1} s in {times} of {runs}"),
        }
    }

    fn mean(of: &[Self]) -> Self {
        Self {
            seconds: of.iter().map(|one| one.seconds).sum(),
            times: of.iter().map(|one| one.times).sum(),
            runs: of.iter().map(|one| one.runs).sum(),
        }
    }
}

impl Summary {
    /// Sums up one run.
    pub(crate) fn of(tally: &Tally) -> Self {
        let ideal = tally.scene.ideal();
        let whole = ideal.last().copied().unwrap_or(0);
        Self {
            sent: number(tally.sent),
            useful: number(tally.useful),
            ideal: number(whole / 1_000_000),
            share: share(tally.useful * 1_000_000, whole),
            throttled: share(tally.throttled, tally.sent),
            failed: number(tally.failed),
            refused: number(tally.refused),
            wakes: share(tally.wakes.saturating_sub(tally.sleeps), tally.sent),
            p50: seconds(tally.waits.quantile(500)),
            p99: seconds(tally.waits.quantile(990)),
            people_p50: seconds(tally.people.quantile(500)),
            people_p99: seconds(tally.people.quantile(990)),
            jain: jain(&tally.accepted),
            part: tally.scene.mixed.then(|| part(tally)),
            phases: phases(&tally.scene)
                .map(|(from, to)| Phase::of(tally, &ideal, from, to))
                .collect(),
        }
    }

    /// Returns the means of several runs of one scene, of which there is at least one.
    pub(crate) fn mean(runs: &[Self]) -> Self {
        let of = |field: fn(&Self) -> f64| mean(runs.iter().map(field));
        let phases = (0..runs[0].phases.len()).map(|index| {
            let all = runs.iter().map(|run| &run.phases[index]);
            Phase::mean(&all.collect::<Vec<_>>())
        });
        Self {
            sent: of(|run| run.sent),
            useful: of(|run| run.useful),
            ideal: of(|run| run.ideal),
            share: of(|run| run.share),
            throttled: of(|run| run.throttled),
            failed: of(|run| run.failed),
            refused: of(|run| run.refused),
            wakes: of(|run| run.wakes),
            p50: of(|run| run.p50),
            p99: of(|run| run.p99),
            people_p50: of(|run| run.people_p50),
            people_p99: of(|run| run.people_p99),
            jain: of(|run| run.jain),
            part: runs[0].part.map(|_| of(|run| run.part.unwrap_or_default())),
            phases: phases.collect(),
        }
    }
}

impl Phase {
    fn of(tally: &Tally, ideal: &[u64], from: u64, to: u64) -> Self {
        let run = Run { tally, ideal };
        Self {
            first: from == 0,
            share: share(run.useful(from, to) * 1_000_000, run.wanted(from, to)),
            most: run.reached(from, to, 900),
            nearly_all: run.reached(from, to, 990),
        }
    }

    fn mean(of: &[&Self]) -> Self {
        let reached = |field: fn(&Self) -> Reached| {
            let all: Vec<_> = of.iter().map(|phase| field(phase)).collect();
            Reached::mean(&all)
        };
        Self {
            first: of.iter().all(|phase| phase.first),
            share: mean(of.iter().map(|phase| phase.share)),
            most: reached(|phase| phase.most),
            nearly_all: reached(|phase| phase.nearly_all),
        }
    }
}

/// A run beside the ideal one. Spans are in bins.
struct Run<'a> {
    tally: &'a Tally,
    ideal: &'a [u64],
}

impl Run<'_> {
    fn useful(&self, from: u64, to: u64) -> u64 {
        let bins = self.tally.bins.iter().skip(index(from));
        bins.take(index(to - from)).map(|bin| bin.useful).sum()
    }

    /// Returns millionths of requests.
    fn wanted(&self, from: u64, to: u64) -> u64 {
        let sum = |bin: u64| match index(bin * BIN / MILLI) {
            0 => 0,
            ms => self.ideal.get(ms - 1).copied().unwrap_or(0),
        };
        sum(to) - sum(from)
    }

    /// Returns when so many thousandths of the ideal were reached, and held for two seconds.
    fn reached(&self, from: u64, to: u64, permille: u64) -> Reached {
        let mut starts = from..to.saturating_sub(HELD).max(from);
        let at = starts.find(|bin| {
            let wanted = self.wanted(*bin, bin + HELD);
            wanted > 0 && self.useful(*bin, bin + HELD) * 1_000_000_000 >= wanted * permille
        });
        Reached {
            seconds: at.map_or(0.0, |bin| number(bin - from) / PER_SECOND),
            times: at.into_iter().map(|_| 1).sum(),
            runs: 1,
        }
    }
}

/// Returns from which bin to which each limit holds that allows something.
fn phases(scene: &Scene) -> impl Iterator<Item = (u64, u64)> {
    let starts = scene.limit.iter().map(|(ms, _)| *ms);
    let ends = starts.skip(1).chain([scene.seconds * 1_000]);
    let phases = scene.limit.iter().zip(ends);
    let open = phases.filter(|((_, limit), _)| *limit > 0);
    open.map(|((from, _), to)| (from * MILLI / BIN, to * MILLI / BIN))
}

/// Returns what every second client got, as a share of an equal part.
fn part(tally: &Tally) -> f64 {
    let tested: u64 = tally.accepted.iter().step_by(2).sum();
    2.0 * share(tested, tally.accepted.iter().sum())
}

fn mean(of: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = number(of.len() as u64);
    of.sum::<f64>() / count
}

fn seconds(nanos: u64) -> f64 {
    if nanos <= 16 {
        0.0
    } else {
        number(nanos) / 1e9
    }
}

fn index(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::Summary;
    use crate::number::jain;
    use crate::scenes::SCENES;
    use crate::tally::Tally;

    /// Returns a tally of `halved` whose client sends nothing until this bin, and then what the
    /// limit allows.
    fn silent_until(start: usize) -> Tally {
        let scene = SCENES.iter().find(|scene| scene.name == "halved");
        let mut tally = Tally::new(scene.expect("the scene is there"));
        for (index, bin) in tally.bins.iter_mut().enumerate().skip(start) {
            bin.useful = if (200..400).contains(&index) { 25 } else { 50 };
        }
        tally
    }

    fn reached(of: &Summary) -> Vec<String> {
        of.phases.iter().map(|phase| phase.most.words()).collect()
    }

    #[test]
    fn a_limit_is_reached_when_it_is_used_for_two_seconds() {
        // From 2.8 s on, nine tenths of the next two seconds are used.
        assert_eq!(
            reached(&Summary::of(&silent_until(30))),
            ["2.8 s", "0.0 s", "0.0 s"]
        );
        assert_eq!(reached(&Summary::of(&silent_until(600))), ["never"; 3]);
    }

    #[test]
    fn a_mean_says_in_how_many_runs_the_limit_was_reached() {
        let runs = [30, 50, 600].map(|start| Summary::of(&silent_until(start)));
        let mean = Summary::mean(&runs);
        assert_eq!(reached(&mean)[0], "3.8 s in 2 of 3");
    }

    #[test]
    fn the_part_of_the_clients_under_test_is_1_if_all_get_the_same() {
        let scene = SCENES.iter().find(|scene| scene.name == "10-clients-mixed");
        let mut tally = Tally::new(scene.expect("the scene is there"));
        for (tested, others, part) in [(7, 7, "1.00"), (3, 1, "1.50"), (0, 5, "0.00")] {
            tally.accepted = [tested, others].repeat(5);
            let of = Summary::of(&tally).part;
            assert_eq!(of.map(|of| format!("{of:.2}")).as_deref(), Some(part));
        }
    }

    #[test]
    fn equal_parts_are_fair_and_one_that_gets_all_is_not() {
        let scene = SCENES.iter().find(|scene| scene.name == "10-clients");
        let mut tally = Tally::new(scene.expect("the scene is there"));
        tally.accepted = vec![7; 10];
        assert_eq!(format!("{:.3}", jain(&tally.accepted)), "1.000");
        tally.accepted = [vec![7], vec![0; 9]].concat();
        assert_eq!(format!("{:.3}", jain(&tally.accepted)), "0.100");
    }
}
