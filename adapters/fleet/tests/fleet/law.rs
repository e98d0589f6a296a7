//! The law of the script beside that of the core: the same throttle, and the same rate at every
//! time after it.

use paceline::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp};

use crate::rig::script::ScriptEngine;
use crate::step::{ASK, Step};

const fn at(micros: u64) -> Timestamp {
    Timestamp::from_nanos(1_000 * micros)
}

/// Returns what a core is at that was throttled at `cut` after it had delivered `rate` a second.
fn core(rate: u64, cut: u64) -> SendRate {
    let core = SendRate::new(ControlLaw::Paced, at(1_000_000));
    let mut now = 1_000_000;
    while now < cut {
        core.record(at(now), SendPermit::sent_at(at(now)), Outcome::NotThrottled);
        now += 1_000_000 / rate;
    }
    core.record(at(cut), SendPermit::sent_at(at(cut)), Outcome::Throttled);
    core
}

#[test]
fn after_a_cut_both_laws_are_at_the_same_rate() {
    for rate in [20, 100, 1_000, 10_000] {
        let cut = 4_500_000;
        let core = core(rate, cut);
        let peak = core.snapshot(at(cut)).last_max_rate;
        let mut worst: f64 = 0.0;
        for millis in [
            0, 100, 500, 1_000, 2_000, 2_500, 4_000, 6_000, 8_000, 12_000, 15_000,
        ] {
            let now = cut + 1_000 * millis;
            let mut engine = ScriptEngine::new();
            // A scope as such a cut leaves it, asked for without a pause since.
            let state = format!(
                "{now} 0 100000000 100000000 {now} 1 1 {peak} {cut} 0 1000 0 0 {now} 0 0 0 0 {cut} 1 100000 100000 0 0 0"
            );
            engine.write("s", &state);
            let ask = Step {
                ceiling: 100_000_000,
                ..ASK
            };
            let answer = engine
                .take(now, "a", &ask.words())
                .expect("the step is taken");
            let script = f64::from(u32::try_from(answer[2] / 10).unwrap()) / 100.0;
            let cores = core.snapshot(at(now)).fill_rate;
            worst = worst.max((script / cores - 1.0).abs());
            assert!(
                worst < 0.02,
                "{rate}/s, {millis} ms: {script} at the engine, {cores} in the core"
            );
        }
        println!("{rate}/s, peak {peak:.1}: at most {worst:.4} apart");
    }
}
