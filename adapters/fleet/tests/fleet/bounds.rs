//! The bounds of the documentation, held to members that do as they like: the very script, in
//! virtual time.

use std::time::Duration;

use fastrand::Rng;

use crate::rig::record::{Arrival, Record};
use crate::rig::script::ScriptEngine;

/// What all may send per second.
const RATE: f64 = 1_000.0;
/// The leases that members have, in microseconds. Each has half of its own kept.
const LEASES: [&[u64]; 2] = [&[200_000], &[50_000, 200_000, 500_000]];
const MEMBERS: usize = 12;
const TRIAL: u64 = 8_000_000;
const VALID: u64 = 1_000_000;
/// What a lone step may round up.
const ROUNDED: f64 = 1e-3;

#[derive(Clone, Debug)]
struct Rogue {
    name: String,
    lease: u64,
    seq: u64,
    held: u64,
    good_until: u64,
    stopped_until: u64,
    demand: u64,
    last: Option<String>,
    /// What it may send alone, and since when.
    alone: (f64, u64),
}

impl Rogue {
    fn new(random: &mut Rng, leases: &[u64]) -> Self {
        Self {
            name: format!("{:016x}", random.u64(..)),
            lease: leases[random.usize(..leases.len())],
            seq: 0,
            held: 0,
            good_until: 0,
            stopped_until: 0,
            demand: random.u64(0..5_000),
            last: None,
            alone: (0.0, 0),
        }
    }

    /// What it can spend at `now`: the rest has died with its lease.
    const fn holds(&self, now: u64) -> u64 {
        if now < self.good_until { self.held } else { 0 }
    }
}

#[derive(Debug)]
struct Trial {
    random: Rng,
    leases: &'static [u64],
    engine: ScriptEngine,
    rogues: Vec<Rogue>,
    now: u64,
    granted: u64,
    record: Record,
    /// What members that were killed might send alone, if they were only cut off.
    lost: Vec<(f64, u64)>,
    most_alone: f64,
    most_held: u64,
    most_members: u32,
}

impl Trial {
    fn new(seed: u64, leases: &'static [u64]) -> Self {
        let mut random = Rng::with_seed(seed);
        let rogues = (0..MEMBERS).map(|_| Rogue::new(&mut random, leases));
        let rogues = rogues.collect();
        Self {
            random,
            leases,
            engine: ScriptEngine::new(),
            rogues,
            now: 0,
            granted: 0,
            record: Record::default(),
            lost: Vec::new(),
            most_alone: 0.0,
            most_held: 0,
            most_members: 0,
        }
    }

    /// Time passes, and one of them does something.
    fn act(&mut self) {
        self.now += self.random.u64(0..3_000);
        let index = self.random.usize(..MEMBERS);
        if self.rogues[index].stopped_until > self.now {
            return;
        }
        match self.random.u32(..100) {
            0 => {
                // Killed, or cut off for good, and another one started.
                self.lost.push(self.rogues[index].alone);
                self.rogues[index] = Rogue::new(&mut self.random, self.leases);
            }
            1 => {
                self.rogues[index].stopped_until = self.now + self.random.u64(0..5_000_000);
            }
            2..5 => self.rogues[index].demand = self.random.u64(0..5_000),
            5..60 => self.ask(index, false),
            60..65 => self.ask(index, true),
            // Now all hoard, now all spend.
            _ if self.now / 1_000_000 % 2 == 0 => {}
            _ => self.spend(index),
        }
        let held = self.rogues.iter().map(|rogue| rogue.holds(self.now)).sum();
        self.most_held = self.most_held.max(held);
        let there = self.rogues.iter().map(|rogue| rogue.alone);
        let all = there.chain(self.lost.iter().copied());
        let alone = all.map(|part| alone_at(part, self.now)).sum::<f64>();
        self.most_alone = self.most_alone.max(alone);
    }

    fn ask(&mut self, index: usize, again: bool) {
        let (now, random) = (self.now, &mut self.random);
        let rogue = &mut self.rogues[index];
        rogue.held = rogue.holds(now);
        let again = again && rogue.last.is_some();
        if !again {
            let back = random.u64(..=rogue.held) * u64::from(random.u32(..20) == 0);
            rogue.held -= back;
            rogue.seq += 1;
            let throttled = u64::from(random.u32(..50) == 0);
            rogue.last = Some(format!(
                "{} 0 {} {} {back} {} {} {throttled} 0 5000 0 1000 1000 1 {} {} 2000000 600000 1 {:.3}",
                rogue.seq,
                random.u64(0..2_000),
                rogue.held,
                rogue.demand,
                random.u64(0..100),
                rogue.lease / 2,
                rogue.lease,
                alone_at(rogue.alone, now) / 1_000.0,
            ));
        }
        let words = rogue.last.as_deref().unwrap_or_default();
        // After a fall back the engine may have forgotten a number, or know a later one that no
        // member has.
        let Ok(answer) = self.engine.take(now, &rogue.name, words) else {
            return;
        };
        if !again {
            let granted = u64::try_from(answer[0]).expect("no grant is negative");
            rogue.held += granted;
            rogue.good_until = now + VALID;
            rogue.alone = (number(u64::try_from(answer[5]).expect("it is a rate")), now);
            self.granted += granted;
        }
        let members = u32::try_from(answer[3]).expect("few members");
        self.most_members = self.most_members.max(members);
    }

    fn spend(&mut self, index: usize) {
        let rogue = &mut self.rogues[index];
        let spent = match self.random.u32(..4) {
            0 => self.random.u64(..=rogue.holds(self.now)),
            _ => rogue.holds(self.now),
        };
        rogue.held -= spent.min(rogue.held);
        let seen = Arrival {
            at: Duration::from_micros(self.now),
            member: 0,
            throttled: false,
        };
        self.record.0.extend((0..spent).map(|_| seen));
    }

    /// Returns what the longest lease is at the allowance.
    fn lease(&self) -> f64 {
        let longest = self.leases.iter().copied().max();
        RATE * Duration::from_micros(longest.unwrap_or(0)).as_secs_f64()
    }

    fn kept(&self) -> f64 {
        self.lease() / 2.0
    }

    fn held_bound(&self) -> f64 {
        self.lease() + f64::from(self.most_members)
    }

    fn minted(&self) -> f64 {
        RATE * Duration::from_micros(self.now).as_secs_f64() + ROUNDED
    }
}

/// Returns what is left at `now` of what may be sent alone, in thousandths: it halves in 300 s, by
/// straight lines between the halves.
fn alone_at((part, since): (f64, u64), now: u64) -> f64 {
    let halves = Duration::from_micros(now - since).as_secs_f64() / 300.0;
    part * 0.5_f64.powf(halves.floor()) * (1.0 - halves.fract() / 2.0)
}

#[expect(clippy::cast_precision_loss, reason = "counts of a test")]
fn number(count: u64) -> f64 {
    count as f64
}

#[test]
fn whatever_members_do_no_more_is_granted_held_or_sent_than_is_stated() {
    for leases in LEASES {
        let (mut held, mut excess, mut used) = (0.0_f64, 0.0_f64, 0.0_f64);
        for seed in 0..15 {
            let mut trial = Trial::new(seed, leases);
            while trial.now < TRIAL {
                trial.act();
            }
            let granted = number(trial.granted);
            assert!(granted <= trial.minted(), "seed {seed}: granted {granted}");
            let most = number(trial.most_held);
            assert!(most <= trial.held_bound(), "seed {seed}: held {most}");
            let above = trial.record.excess(RATE);
            let bound = trial.kept() + trial.held_bound();
            assert!(above <= bound, "seed {seed}: {above} of {bound}");
            held = held.max(most / trial.held_bound());
            excess = excess.max(above / bound);
            used = used.max(granted / trial.minted());
        }
        println!(
            "of the bounds with leases {leases:?}: held {held:.3}, sent {excess:.3}; of what was minted {used:.3}"
        );
        // A bound that no run comes near would say nothing.
        assert!(held > 0.9 && excess > 0.3 && used > 0.3);
    }
}

#[test]
fn members_cut_off_in_any_order_never_have_more_than_the_rate() {
    let mut most = 0.0_f64;
    for seed in 2_000..2_015 {
        let mut trial = Trial::new(seed, LEASES[1]);
        while trial.now < 2 * TRIAL {
            trial.act();
        }
        let alone = trial.most_alone / 1_000.0;
        assert!(alone <= RATE + ROUNDED, "seed {seed}: {alone} alone");
        most = most.max(alone);
    }
    println!("of the allowance, alone: {:.3}", most / RATE);
    assert!(most > 0.9 * RATE, "{most} alone");
}

#[test]
fn an_engine_that_forgot_grants_at_most_one_lease_again() {
    let mut excess = 0.0_f64;
    for seed in 0..15 {
        let mut trial = Trial::new(1_000 + seed, LEASES[1]);
        while trial.now < 4_000_000 {
            trial.act();
        }
        let (old, kept) = (trial.engine.stored(), trial.granted);
        while trial.now < 4_000_000 + seed * 60_000 {
            trial.act();
        }
        // A replica that has heard nothing of the last 0 to 0.9 s, or a restart without a disk.
        if seed % 4 == 0 {
            trial.engine.forget();
        } else {
            trial.engine.fall_back(old);
        }
        let lost = trial.granted - kept;
        while trial.now < TRIAL {
            trial.act();
        }
        let granted = number(trial.granted);
        let most = trial.minted() + trial.kept();
        assert!(
            granted <= most,
            "seed {seed}: {granted} of {most}, {lost} lost"
        );
        let above = trial.record.excess(RATE);
        let bound = 2.0 * (trial.kept() + trial.held_bound());
        assert!(above <= bound, "seed {seed}: {above} of {bound}");
        excess = excess.max(above / bound);
    }
    println!("of the bound after a fail-over: sent {excess:.3}");
}
