//! Who pays for throttles: one member if they are its own, all if all see them. The very script, in
//! virtual time.

use crate::rig::script::ScriptEngine;
use crate::step::{ASK, Step};

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
const RATE: u64 = 1_000;
/// How far time goes in one turn: each member asks every fourth.
const TICK: u64 = 25_000;

/// Members that want more than there is, ask ten times a second, and spend what they get at once.
#[derive(Debug)]
struct World {
    engine: ScriptEngine,
    micros: u64,
    /// What each has spent, and what of it was throttled, since its last ask.
    told: Vec<(u64, u64)>,
    seq: u64,
    /// Parts of a throttle that have not come yet, in percent.
    carry: Vec<u64>,
    delivered: Vec<u64>,
    /// What a throttled response says, in microseconds.
    hint: u64,
}

impl World {
    fn new(members: usize) -> Self {
        Self {
            engine: ScriptEngine::new(),
            micros: 1_000_000_000,
            told: vec![(0, 0); members],
            seq: 0,
            carry: vec![0; members],
            delivered: vec![0; members],
            hint: 0,
        }
    }

    /// Plays so many milliseconds, and returns what was delivered of each in them; `percent` of
    /// what each sends is throttled.
    fn play(&mut self, millis: u64, percent: impl Fn(usize) -> u64) -> Vec<u64> {
        let (end, before) = (self.micros + 1_000 * millis, self.delivered.clone());
        while self.micros < end {
            self.micros += TICK;
            self.seq += 1;
            for (index, member) in NAMES.into_iter().enumerate().take(self.told.len()) {
                if self.seq % 4 != u64::try_from(index % 4).unwrap() {
                    continue;
                }
                let (spent, throttled) = self.told[index];
                let step = Step {
                    member,
                    seq: self.seq,
                    spent,
                    throttled,
                    age: 50_000 * u64::from(throttled > 0),
                    pause: self.hint * u64::from(throttled > 0),
                    want: 500,
                    ..ASK
                };
                let done = 50_000 * u64::from(spent > throttled);
                let words = format!("{} 0 {done}", step.words());
                let answer = self.engine.take(self.micros, member, &words).unwrap();
                let spent = u64::try_from(answer[0]).unwrap();
                self.carry[index] += spent * percent(index);
                let throttled = self.carry[index] / 100;
                self.carry[index] %= 100;
                self.told[index] = (spent, throttled);
                self.delivered[index] += spent - throttled;
            }
        }
        self.delivered
            .iter()
            .zip(before)
            .map(|(now, then)| now - then)
            .collect()
    }
}

fn share(delivered: u64, millis: u64) -> f64 {
    let whole = RATE * millis / 1_000;
    f64::from(u32::try_from(delivered).unwrap()) / f64::from(u32::try_from(whole).unwrap())
}

#[test]
fn one_sick_member_costs_the_others_nothing() {
    let scenes = [(2, 100), (4, 100), (8, 100), (4, 20), (4, 2)];
    for ((members, percent), hint) in scenes.into_iter().flat_map(|s| [(s, 0), (s, 3_000_000)]) {
        let mut world = World::new(members);
        world.hint = hint;
        world.play(5_000, |_| 0);
        let sick = |index| if index == 0 { percent } else { 0 };
        world.play(5_000, sick);
        let got = world.play(40_000, sick);
        let others: u64 = got[1..].iter().sum();
        let used = share(others, 40_000);
        println!(
            "1 of {members} throttled on {percent} %, hint {hint} us: the others used {used:.3}"
        );
        let parts = f64::from(u32::try_from(members).unwrap());
        assert!(
            used >= 0.98 * (parts - 1.0) / parts,
            "{members} {percent}: {used}"
        );
        // And it is back when it is well.
        world.play(8_000, |_| 0);
        let well = world.play(4_000, |_| 0);
        assert!(
            share(well[0], 4_000) >= 0.85 / parts,
            "{members} {percent}: {well:?}"
        );
    }
}

#[test]
fn throttles_that_all_see_slow_all() {
    for percent in [100, 10] {
        let mut world = World::new(4);
        world.play(5_000, |_| 0);
        let from = world.engine.steps;
        world.play(1_500, |_| percent);
        assert!(world.engine.steps > from);
        let at = world.micros + 1;
        let slowed = world.engine.rate_of("a", at, &ASK.words());
        let answer = world.engine.take(at, "new", &ASK.words()).unwrap();
        println!("{percent} % of all throttled: {slowed} thousandths after 1.5 s, {answer:?}");
        // Where nothing gets through the service is shut: its rate stays, and none is granted.
        let is_shut = answer[10] > 0;
        assert_eq!(is_shut, percent == 100);
        assert!(is_shut || slowed < 900_000, "{percent} %: {slowed}");
    }
}

/// A knock comes a quarter later than the last one. What was shut for longer than it was open
/// before may be a window: then the way back is longer.
#[test]
fn after_20_s_of_throttling_all_are_back_in_a_quarter_of_that_and_a_second() {
    for pause in 0..8 {
        let mut world = World::new(4);
        world.play(30_000, |_| 0);
        let throttled: u64 = world.play(20_000 + 100 * pause, |_| 100).iter().sum();
        assert_eq!(throttled, 0);
        world.play(6_000, |_| 0);
        let back = share(world.play(1_000, |_| 0).iter().sum(), 1_000);
        println!("throttled for 20 s: {back:.3} in the seventh second after");
        assert!(back >= 0.9, "{back}");
        let on = share(world.play(1_000, |_| 0).iter().sum(), 1_000);
        assert!(on >= 0.95, "{on}");
    }
}
