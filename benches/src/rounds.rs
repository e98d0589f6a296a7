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

/// What came of one case and one number of threads in a round.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// None if the machine was disturbed in every attempt.
    pub sample: Option<Sample>,
    /// What the empty loop on two threads scaled to, the less of before and after. None of one
    /// thread, which has a core whatever another one does.
    pub empty: Option<f64>,
    /// How many attempts there were.
    pub attempts: usize,
}

/// How often a case is attempted in a round, at most.
const ATTEMPTS: usize = 4;

/// The turns of one case, by round.
#[derive(Debug)]
pub struct Measured<'a> {
    /// The case.
    pub case: &'a Case,
    /// For each round, one for each number of threads in the order of [`Course::threads`].
    pub turns: Vec<Vec<Turn>>,
}

impl Measured<'_> {
    /// Returns the samples at a number of threads, by its place in the course.
    fn samples(&self, threads: usize) -> impl Iterator<Item = Option<Sample>> {
        self.turns
            .iter()
            .map(move |turns| turns.get(threads)?.sample)
    }

    /// Returns how many rounds count at a number of threads.
    #[must_use]
    pub fn kept(&self, threads: usize) -> usize {
        self.samples(threads).flatten().count()
    }

    /// Returns the operations per microsecond at a number of threads, by its place in the course.
    #[must_use]
    pub fn rate(&self, threads: usize) -> Option<Spread> {
        Spread::of(self.samples(threads).flatten().map(|sample| sample.rate))
    }

    /// Returns the nanoseconds of an operation on one thread.
    #[must_use]
    pub fn nanos(&self) -> Option<Spread> {
        self.rate(0).map(|rate| rate.inverse(1e3))
    }

    /// Returns what the second number of threads of the course does, over the first, in the rounds
    /// that count for both.
    #[must_use]
    pub fn scaling(&self) -> Option<Spread> {
        ratio(self.samples(1), self.samples(0))
    }

    /// Returns the share granted, at the most threads.
    #[must_use]
    pub fn granted(&self) -> Option<f64> {
        let most = self.turns.first()?.len() - 1;
        Some(Spread::of(self.samples(most).flatten().map(|sample| sample.granted))?.median)
    }

    /// Returns this rate over the other's, in the rounds that count for both.
    #[must_use]
    pub fn over(&self, other: &Self, threads: usize) -> Option<Spread> {
        ratio(self.samples(threads), other.samples(threads))
    }
}

fn ratio(
    mine: impl Iterator<Item = Option<Sample>>,
    theirs: impl Iterator<Item = Option<Sample>>,
) -> Option<Spread> {
    let ratio = |(mine, theirs): (Option<Sample>, Option<Sample>)| Some(mine?.rate / theirs?.rate);
    Spread::of(mine.zip(theirs).filter_map(ratio))
}

/// All that was measured.
#[derive(Debug)]
pub struct Results<'a> {
    /// The course.
    pub course: Course,
    /// The cases, in their order.
    pub cases: Vec<Measured<'a>>,
    /// Nanoseconds of a line's transfer, once in each round in which the machine was quiet.
    pub transfer: Option<Spread>,
    /// How many rounds those were.
    pub quiet_rounds: usize,
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

    fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.cases
            .iter()
            .flat_map(|case| case.turns.iter().flatten())
    }

    /// Returns how many attempts were dropped, and how many there were.
    #[must_use]
    pub fn dropped(&self) -> (usize, usize) {
        let attempts: usize = self.turns().map(|turn| turn.attempts).sum();
        let kept = self.turns().filter(|turn| turn.sample.is_some()).count();
        (attempts - kept, attempts)
    }

    /// Returns what the empty loop scaled to, in the turns that count.
    #[must_use]
    pub fn empty(&self) -> Option<Spread> {
        let kept = self.turns().filter(|turn| turn.sample.is_some());
        Spread::of(kept.filter_map(|turn| turn.empty))
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

    /// Returns what a line's way from core to core takes, if two threads had their cores before and
    /// after. Tried a few times.
    fn transfer(&mut self) -> Option<f64> {
        self.empty = self.bracket.scaling();
        (0..ATTEMPTS).find_map(|_| {
            let before = self.empty;
            let transfer = line_transfer(&self.cores);
            self.empty = self.bracket.scaling();
            (before.min(self.empty) >= LEAST).then_some(transfer)
        })
    }

    /// Measures a case until the machine was undisturbed, a few times at most.
    fn turn(&mut self, ready: &Ready, threads: usize) -> Turn {
        let mut turn = Turn {
            sample: None,
            empty: None,
            attempts: 0,
        };
        while turn.sample.is_none() && turn.attempts < ATTEMPTS {
            turn.attempts += 1;
            let slices = self.course.plan.slices;
            let sample = measure(&ready.stage, threads, ready.times, slices, &self.cores);
            turn.empty = (threads > 1).then(|| {
                let before = self.empty;
                self.empty = self.bracket.scaling();
                before.min(self.empty)
            });
            let quiet = turn.empty.is_none_or(|empty| empty >= LEAST) && !sample.disturbed;
            turn.sample = quiet.then_some(sample);
        }
        turn
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
    let mut ready: Vec<Ready> = cases.iter().map(|case| bench.prepare(case)).collect();
    let mut measured: Vec<_> = cases.iter().map(|case| (case, Vec::new())).collect();
    let mut transfers = Vec::new();
    for round in 0..course.rounds {
        told(round);
        transfers.extend(bench.transfer());
        for (ready, (case, turns)) in ready.iter_mut().zip(&mut measured) {
            // Made anew, or cases that time moves on would come to measure something else. What
            // calibrates a counter, or may be made only once, stays.
            if round > 0 && case.countable {
                *ready = bench.prepare(case);
            }
            let threads = course.threads.iter();
            turns.push(threads.map(|&threads| bench.turn(ready, threads)).collect());
        }
    }
    let cases = measured
        .into_iter()
        .map(|(case, turns)| Measured { case, turns });
    Results {
        cases: cases.collect(),
        quiet_rounds: transfers.len(),
        transfer: Spread::of(transfers),
        took: began.elapsed(),
        course,
    }
}
