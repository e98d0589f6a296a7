//! Cases in turn, round after round, in one process.

use core::time::Duration;
use std::thread;
use std::time::Instant;

use core_affinity::CoreId;

use crate::bracket::{Bracket, LEAST, line_transfer};
use crate::case::{Case, Stage};
use crate::pool::{Plan, Sample, calibrate, cores, measure};
use crate::stats::Spread;

/// What is measured, and for how long.
#[derive(Clone, Debug)]
pub struct Course {
    /// The numbers of threads.
    pub threads: Vec<usize>,
    /// How often each case has its turn.
    pub rounds: usize,
    /// A turn.
    pub plan: Plan,
}

/// A turn of one case: a sample for each number of threads, and what the empty loop scaled to
/// before and after.
#[derive(Clone, Debug)]
pub struct Turn {
    /// In the order of [`Course::threads`].
    pub samples: Vec<Sample>,
    /// The less of both.
    pub empty: f64,
    /// How many attempts were dropped before this one.
    pub dropped: usize,
}

/// How often a case is attempted in a round, at most.
const ATTEMPTS: usize = 4;

impl Turn {
    /// Whether the machine was undisturbed.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.empty >= LEAST && self.samples.iter().all(|sample| !sample.disturbed)
    }
}

/// The turns of one case, by round.
#[derive(Debug)]
pub struct Measured<'a> {
    /// The case.
    pub case: &'a Case,
    /// One for each round.
    pub turns: Vec<Turn>,
}

impl Measured<'_> {
    /// Returns the turns that count.
    pub fn kept(&self) -> impl Iterator<Item = &Turn> {
        self.turns.iter().filter(|turn| turn.is_kept())
    }

    /// Returns the operations per microsecond at a number of threads, by its place in the course.
    #[must_use]
    pub fn rate(&self, threads: usize) -> Option<Spread> {
        Spread::of(self.kept().map(|turn| turn.samples[threads].rate))
    }

    /// Returns the nanoseconds of an operation on one thread.
    #[must_use]
    pub fn nanos(&self) -> Option<Spread> {
        self.rate(0).map(|rate| rate.inverse(1e3))
    }

    /// Returns what the second number of threads of the course does, over the first, turn by turn.
    #[must_use]
    pub fn scaling(&self) -> Option<Spread> {
        let ratio = |turn: &Turn| Some(turn.samples.get(1)?.rate / turn.samples[0].rate);
        Spread::of(self.kept().filter_map(ratio))
    }

    /// Returns the share granted, at the most threads.
    #[must_use]
    pub fn granted(&self) -> Option<f64> {
        let shares = self.kept().filter_map(|turn| turn.samples.last());
        Some(Spread::of(shares.map(|sample| sample.granted))?.median)
    }

    /// Returns this rate over the other's, in the rounds that count for both.
    #[must_use]
    pub fn over(&self, other: &Self, threads: usize) -> Option<Spread> {
        let both = self.turns.iter().zip(&other.turns);
        let kept = both.filter(|(mine, theirs)| mine.is_kept() && theirs.is_kept());
        Spread::of(
            kept.map(|(mine, theirs)| mine.samples[threads].rate / theirs.samples[threads].rate),
        )
    }
}

/// All that was measured.
#[derive(Debug)]
pub struct Results<'a> {
    /// The course.
    pub course: Course,
    /// The cases, in their order.
    pub cases: Vec<Measured<'a>>,
    /// Nanoseconds of a line's transfer, once a round.
    pub transfer: Option<Spread>,
    /// How long it took.
    pub took: Duration,
}

impl<'a> Results<'a> {
    /// Returns the case of this path and name.
    #[must_use]
    pub fn find(&self, case: &Case, name: &str) -> Option<&Measured<'a>> {
        let mut cases = self.cases.iter();
        cases.find(|other| other.case.path == case.path && other.case.name == name)
    }

    /// Returns how many attempts were dropped, and how many there were.
    #[must_use]
    pub fn dropped(&self) -> (usize, usize) {
        let turns = self.cases.iter().flat_map(|case| &case.turns);
        let attempts: usize = turns.clone().map(|turn| turn.dropped + 1).sum();
        (
            attempts - turns.filter(|turn| turn.is_kept()).count(),
            attempts,
        )
    }

    /// Returns what the empty loop scaled to, in the turns that count.
    #[must_use]
    pub fn empty(&self) -> Option<Spread> {
        let kept = self.cases.iter().flat_map(Measured::kept);
        Spread::of(kept.map(|turn| turn.empty))
    }
}

/// A case, ready to be measured.
struct Ready {
    stage: Stage,
    times: u64,
}

/// Where and how cases are measured.
struct Bench<'a> {
    bracket: Bracket,
    course: &'a Course,
    cores: Vec<CoreId>,
    /// What the empty loop scaled to last.
    empty: f64,
}

impl Bench<'_> {
    fn prepare(&self, case: &Case) -> Ready {
        // On a thread that ends: its number, and what else belongs to a thread, is free for those
        // that are measured.
        let prepare = || {
            let stage = (case.stage)();
            let times = calibrate(&stage, self.course.plan.length);
            Ready { stage, times }
        };
        let ready = thread::scope(|scope| scope.spawn(prepare).join());
        ready.expect("a case is made")
    }

    /// Measures a case until the machine was undisturbed, a few times at most.
    fn turn(&mut self, ready: &Ready) -> Turn {
        let mut dropped = 0;
        loop {
            let turn = self.attempt(ready, dropped);
            dropped += 1;
            if turn.is_kept() || dropped == ATTEMPTS {
                return turn;
            }
        }
    }

    fn attempt(&mut self, ready: &Ready, dropped: usize) -> Turn {
        let before = self.empty;
        let Plan { slices, .. } = self.course.plan;
        let samples = self.course.threads.iter();
        let samples = samples
            .map(|&threads| measure(&ready.stage, threads, ready.times, slices, &self.cores));
        let samples = samples.collect();
        self.empty = self.bracket.scaling();
        Turn {
            samples,
            empty: before.min(self.empty),
            dropped,
        }
    }
}

/// Measures the cases in turn. `told` hears which round begins.
///
/// # Panics
///
/// If an operation does.
pub fn run(cases: &[Case], course: Course, mut told: impl FnMut(usize)) -> Results<'_> {
    let began = Instant::now();
    let cores = cores();
    let mut bench = Bench {
        bracket: Bracket::new(cores.clone()),
        course: &course,
        cores,
        empty: 0.0,
    };
    let ready: Vec<Ready> = cases.iter().map(|case| bench.prepare(case)).collect();
    let mut measured: Vec<_> = cases.iter().map(|case| (case, Vec::new())).collect();
    let mut transfers = Vec::new();
    for round in 0..course.rounds {
        told(round);
        transfers.push(line_transfer(&bench.cores));
        bench.empty = bench.bracket.scaling();
        for (ready, (_, turns)) in ready.iter().zip(&mut measured) {
            turns.push(bench.turn(ready));
        }
    }
    let cases = measured
        .into_iter()
        .map(|(case, turns)| Measured { case, turns });
    Results {
        cases: cases.collect(),
        transfer: Spread::of(transfers),
        took: began.elapsed(),
        course,
    }
}
