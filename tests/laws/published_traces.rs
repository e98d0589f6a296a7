//! The published law over 300 random traces, against its equations in `f64`.
//!
//! Claim: with one caller every field of the snapshot is within 10⁻⁶ of the equations after every
//! operation, at rates from 0.5/s to 10⁶/s, with gaps from 1 µs to hours and throttles in any
//! order; and the wait that a refusal names is exact. Every trace follows from its seed.

use core::{ops::RangeInclusive, time::Duration};

use crate::models::law_check::CheckedRate;
use fastrand::Rng;
use paceline::{SendPermit, Timestamp};

const MICROSECOND: u64 = 1_000;
const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;

/// What kind of traces a test runs.
struct Plan {
    seeds: RangeInclusive<u64>,
    operations: RangeInclusive<u64>,
    /// The gap between operations in a phase, as log₁₀ of nanoseconds.
    gap_log10: RangeInclusive<f64>,
    /// The most operations in one phase.
    phase: u64,
    /// The most nanoseconds in one phase of more than one operation.
    phase_span: u64,
    /// Operations before the first throttle.
    quiet: RangeInclusive<u64>,
    /// One throttle in how many responses after that; 0 for none. Picked per trace.
    one_throttle_in: &'static [u64],
}

/// What the traces of one test came to.
#[derive(Debug, Default)]
struct Reach {
    operations: u64,
    grants: u64,
    refusals: u64,
    exact_waits: u64,
    fewest_throttles: Option<u64>,
    most_throttles: u64,
    shortest_gap: Option<u64>,
    longest_gap: u64,
    lowest_rate: Option<f64>,
    highest_rate: f64,
    highest_measured: f64,
}

#[test]
fn mixed_traces_follow_the_equations() {
    let reach = run(&Plan {
        seeds: 1..=270,
        operations: 200..=12_000,
        gap_log10: 3.0..=13.2,
        phase: 600,
        phase_span: 12 * HOUR,
        quiet: 0..=20,
        one_throttle_in: &[0, 2_000, 100, 10, 3, 1],
    });
    assert_eq!(reach.fewest_throttles, Some(0), "{reach:?}");
    assert!(reach.most_throttles > 3_000, "{reach:?}");
    assert_eq!(reach.shortest_gap, Some(MICROSECOND), "{reach:?}");
    assert!(reach.longest_gap > 3 * HOUR, "{reach:?}");
    assert_eq!(reach.lowest_rate, Some(0.5), "{reach:?}");
    assert!(reach.exact_waits > 10_000, "{reach:?}");
}

#[test]
fn bursts_of_a_hundred_thousand_follow_the_equations() {
    let reach = run(&Plan {
        seeds: 271..=296,
        operations: 100_000..=150_000,
        gap_log10: 3.0..=4.5,
        phase: 60_000,
        phase_span: HOUR,
        quiet: 0..=120_000,
        one_throttle_in: &[50_000, 5_000, 300],
    });
    assert!(reach.highest_rate > 5e4, "{reach:?}");
    assert!(reach.refusals > 10_000, "{reach:?}");
}

#[test]
fn a_million_a_second_follows_the_equations() {
    let reach = run(&Plan {
        seeds: 297..=300,
        operations: 1_400_000..=1_600_000,
        gap_log10: 2.65..=2.8,
        phase: 50_000,
        phase_span: HOUR,
        quiet: 1_000_000..=1_200_000,
        one_throttle_in: &[20_000, 100_000, 5_000, 200_000],
    });
    assert!(reach.highest_measured > 1e6, "{reach:?}");
    assert!(reach.highest_rate > 1e6, "{reach:?}");
}

fn run(plan: &Plan) -> Reach {
    let mut reach = Reach::default();
    for seed in plan.seeds.clone() {
        Trace::new(plan, seed).run(&mut reach);
    }
    println!("{reach:#?}");
    reach
}

/// One limiter under one random sequence of operations.
struct Trace<'a> {
    plan: &'a Plan,
    seed: u64,
    rng: Rng,
    now: u64,
    checked: CheckedRate,
    quiet: u64,
    one_throttle_in: u64,
    throttles: u64,
    /// Whether a refused caller waits until just before its time, and then until its time.
    waits_out: bool,
}

impl<'a> Trace<'a> {
    fn new(plan: &'a Plan, seed: u64) -> Self {
        println!("trace {seed}"); // shown if it fails
        let mut rng = Rng::with_seed(seed);
        // Clocks that start with the process, with the machine, and in 1970.
        let start = match seed % 3 {
            0 => 0,
            1 => rng.u64(..1_000_000 * SECOND),
            _ => 1_700_000_000 * SECOND + rng.u64(..SECOND),
        };
        let throttles = plan.one_throttle_in;
        Self {
            plan,
            seed,
            now: start,
            checked: CheckedRate::new(start),
            one_throttle_in: throttles[seed as usize % throttles.len()],
            quiet: rng.u64(plan.quiet.clone()),
            throttles: 0,
            waits_out: rng.bool(),
            rng,
        }
    }

    fn run(mut self, reach: &mut Reach) {
        let plan = self.plan;
        let operations = self.rng.u64(plan.operations.clone());
        let mut done = 0;
        while done < operations {
            let log10 = between(&mut self.rng, &plan.gap_log10);
            let gap = 10_f64.powf(log10).round() as u64;
            let longest = plan.phase.min(plan.phase_span / gap).max(1);
            let length = self.rng.u64(1..=longest).min(operations - done);
            // Responses to requests that never asked, to requests that did, or askers alone.
            let kind = self.rng.u8(..4);
            for _ in 0..length {
                self.advance(gap, reach);
                let mut permit = None;
                if kind != 0 {
                    permit = self.ask(reach);
                }
                if kind != 3 || self.quiet > 0 {
                    self.answer(permit, reach);
                }
            }
            done += length;
        }
        reach.operations += done;
        let fewest = reach.fewest_throttles.unwrap_or(self.throttles);
        reach.fewest_throttles = Some(fewest.min(self.throttles));
        reach.most_throttles = reach.most_throttles.max(self.throttles);
    }

    fn advance(&mut self, gap: u64, reach: &mut Reach) {
        let gap = match self.rng.u8(..4) {
            0 if self.quiet == 0 => self.rng.u64(gap.min(MICROSECOND)..=2 * gap),
            _ => gap,
        };
        self.now += gap;
        reach.longest_gap = reach.longest_gap.max(gap);
        reach.shortest_gap = Some(reach.shortest_gap.unwrap_or(gap).min(gap));
    }

    /// One request that asks for a token; some that are refused wait for their time and ask again.
    fn ask(&mut self, reach: &mut Reach) -> Option<SendPermit> {
        match self.checked.try_acquire(self.now) {
            Ok(permit) => {
                reach.grants += 1;
                Some(permit)
            }
            Err(wait) => {
                reach.refusals += 1;
                if !self.waits_out || self.rng.u8(..4) != 0 {
                    return None;
                }
                reach.exact_waits += 1;
                Some(self.wait_out(wait))
            }
        }
    }

    /// One response.
    fn answer(&mut self, permit: Option<SendPermit>, reach: &mut Reach) {
        let throttled = self.quiet == 0
            && self.one_throttle_in > 0
            && self.rng.u64(..self.one_throttle_in) == 0;
        self.quiet = self.quiet.saturating_sub(1);
        self.throttles += u64::from(throttled);
        let permit = permit.unwrap_or(SendPermit::sent_at(Timestamp::from_nanos(self.now)));
        self.checked.record(self.now, permit, throttled);
        let model = &self.checked.model;
        if model.enabled {
            let lowest = reach.lowest_rate.unwrap_or(model.fill_rate);
            reach.lowest_rate = Some(lowest.min(model.fill_rate));
            reach.highest_rate = reach.highest_rate.max(model.fill_rate);
        }
        reach.highest_measured = reach.highest_measured.max(model.measured_rate);
    }

    /// Refused a microsecond before the wait is over, granted when it is.
    fn wait_out(&mut self, wait: Duration) -> SendPermit {
        let seed = self.seed;
        let due = self.now + u64::try_from(wait.as_nanos()).expect("a wait is short of 2⁶⁴ ns");
        let early = due.saturating_sub(MICROSECOND);
        if early > self.now {
            let answer = self.checked.try_acquire(early);
            assert!(answer.is_err(), "trace {seed}: granted before {due} ns");
        }
        self.now = due;
        let answer = self.checked.try_acquire(due);
        answer.unwrap_or_else(|_| panic!("trace {seed}: refused at {due} ns"))
    }
}

fn between(rng: &mut Rng, range: &RangeInclusive<f64>) -> f64 {
    range.start() + rng.f64() * (range.end() - range.start())
}
