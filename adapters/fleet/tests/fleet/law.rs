//! The law of the script beside that of the core: told the same, both are at the same rate.

use std::collections::VecDeque;
use std::time::Duration;

use paceline::law::PacedSettings;
use paceline::{Outcome, SendPermit, SendRate, Timestamp};

use crate::rig::script::ScriptEngine;
use crate::step::{ASK, Step};

/// When the core begins. Its rate moves in steps of 2^24 ns since then.
const START: u64 = 1_000_000;
/// 125 of these steps, which are whole microseconds.
const STEPS: u64 = 2_097_152;
/// No ceiling, nor one that a member reaches.
const UNLIMITED: u64 = 100_000_000;

const fn at(micros: u64) -> Timestamp {
    Timestamp::from_nanos(1_000 * micros)
}

fn new_core() -> SendRate {
    core_of(Duration::from_secs(1))
}

/// Returns a core with a floor of a token in each `span`.
fn core_of(span: Duration) -> SendRate {
    let settings = PacedSettings::builder().floor(1, span);
    SendRate::paced(settings.build().expect("in range"), at(START))
}

/// Returns a core that was throttled at the end, after it had delivered `rate` a second for so many
/// microseconds; the request that was throttled took `trip`.
fn cut(rate: u64, span: u64, trip: u64) -> SendRate {
    let core = new_core();
    let mut now = START;
    while now < START + span {
        core.record(at(now), SendPermit::sent_at(at(now)), Outcome::NotThrottled);
        now += 1_000_000 / rate;
    }
    throttle(&core, START + span, trip);
    core
}

fn throttle(core: &SendRate, now: u64, trip: u64) {
    let sent = SendPermit::sent_at(at(now - trip));
    core.record(at(now), sent, Outcome::Throttled);
}

/// Returns the rate of a scope at `now` that was cut at `since`, in thousandths.
fn script_rate(now: u64, since: u64, peak: f64, ramp: u64, trip: u64) -> f64 {
    let mut engine = ScriptEngine::new();
    let lease = trip.min(ASK.lease);
    let own = trip - lease;
    // Asked for without a pause since.
    let state = format!(
        "{now} 0 {UNLIMITED} {UNLIMITED} {now} 1 1 {peak} {since} {ramp} {own} 0 0 {now} 0 0 0 0 {since} 1 100000 \
         100000 0 0 0"
    );
    engine.write("s", &state);
    let ask = Step {
        ceiling: UNLIMITED,
        lease,
        ..ASK
    };
    let answer = engine.take(now, "a", &ask.words());
    let rate = answer.expect("the step is taken")[2];
    #[expect(clippy::cast_precision_loss, reason = "a rate of a test")]
    return rate as f64;
}

/// Asserts that both rates are equal, up to the thousandth that the engine answers in, and to the
/// microseconds that it counts trips in.
fn assert_same(core: f64, script: f64, what: &str) {
    let error = (script - 1_000.0 * core).abs();
    assert!(
        error <= 1.1 + 1e-5 * script,
        "{what}: {core} in the core, {script} thousandths at the engine"
    );
}

#[test]
fn after_a_cut_both_laws_are_at_the_same_rate() {
    // A core keeps a trip with three significant bits of units of 2^24 ns: these it keeps whole.
    for trip in [0, 201_327, 469_763, 1_073_742] {
        for rate in [1, 3, 5, 10, 20, 100, 1_000, 10_000] {
            // Eight responses, and a window that is over.
            let span = STEPS * 14;
            let core = cut(rate, span, trip);
            let since = START + span;
            let peak = core.snapshot(at(since)).last_max_rate;
            assert!(peak > 0.0, "{rate}/s: there was a cut");
            for steps in 0..20 {
                // A microsecond late, for the core's step to have begun.
                let now = since + STEPS * steps + 1;
                if now - since > 30_000_000 {
                    break; // where the laws differ on purpose
                }
                let script = script_rate(now, since, peak, 0, trip);
                // Beyond the peak the core goes no further than is used, and here nothing is.
                if script > 1_000.0 * peak {
                    break;
                }
                let core = core.snapshot(at(now)).fill_rate;
                assert_same(
                    core,
                    script,
                    &format!("{rate}/s, trip {trip}, step {steps}"),
                );
            }
        }
    }
}

/// A core and a scope of one member that are told of the same responses, and a service.
#[derive(Debug)]
struct Both {
    core: SendRate,
    engine: ScriptEngine,
    seq: u64,
    limit: u64,
    trip: u64,
    /// What the service has saved up, in millionths of a request, and since when.
    saved: u64,
    last: u64,
    /// Requests under way: when the response comes, when it was sent, and whether it is throttled.
    under_way: VecDeque<(u64, u64, bool)>,
    next: u64,
    peak: f64,
    cuts: u32,
    /// What the script granted that was not sent.
    granted: i64,
    floor: &'static str,
}

/// One request, in millionths.
const REQUEST: u64 = 1_000_000;
const TRIP: u64 = 10_000;

impl Both {
    fn new(limit: u64) -> Self {
        Self {
            core: new_core(),
            engine: ScriptEngine::new(),
            seq: 0,
            limit,
            trip: TRIP,
            saved: 5 * REQUEST,
            last: START,
            under_way: VecDeque::new(),
            next: START,
            peak: 0.0,
            cuts: 0,
            granted: 0,
            floor: "1",
        }
    }

    /// Plays a tenth of a millisecond: the core sends as fast as it may. The service is out if it
    /// says for how long.
    fn play(&mut self, now: u64, out: Option<Duration>) {
        self.hear_all(now, out);
        // A little under the limit for a while, for both to have an estimate of it.
        // And in an outage, for the one that has not paused yet to hear of it too.
        let sends = if now < START + 5_000_000 || out.is_some() {
            let due = now >= self.next;
            if due {
                self.next = now + 5 * REQUEST / 4 / self.limit;
            }
            due
        } else {
            self.core.try_acquire(at(now)).is_ok()
        };
        if sends {
            self.send(now, 5 * REQUEST, out.is_some());
        }
    }

    /// Plays a tenth of a millisecond of so many workers, of which two can send in it.
    fn herd(&mut self, now: u64, workers: usize, most: u64) {
        self.hear_all(now, None);
        for _ in 0..2 {
            if self.under_way.len() < workers && self.core.try_acquire(at(now)).is_ok() {
                self.send(now, most, false);
            }
        }
    }

    fn hear_all(&mut self, now: u64, out: Option<Duration>) {
        while let Some(&(due, sent, throttled)) = self.under_way.front() {
            if due > now {
                break;
            }
            self.under_way.pop_front();
            self.hear(now, sent, throttled, out.unwrap_or_default());
        }
    }

    /// Sends a request to the service, which saves up so many millionths of one at most.
    fn send(&mut self, now: u64, most: u64, out: bool) {
        let saved = self.saved + (now - self.last) * self.limit;
        (self.saved, self.last) = (saved.min(most), now);
        let throttled = self.saved < REQUEST || out;
        self.saved -= u64::from(!throttled) * REQUEST;
        self.under_way.push_back((now + self.trip, now, throttled));
    }

    fn hear(&mut self, now: u64, sent: u64, throttled: bool, hint: Duration) {
        let outcome = match (throttled, hint) {
            (false, _) => Outcome::NotThrottled,
            (true, Duration::ZERO) => Outcome::Throttled,
            (true, hint) => Outcome::ThrottledFor(hint),
        };
        self.core
            .record(at(now), SendPermit::sent_at(at(sent)), outcome);
        self.seq += 1;
        let told = Step {
            seq: self.seq,
            spent: 1,
            throttled: u64::from(throttled),
            age: now - sent,
            trip: now - sent,
            pause: u64::from(throttled) * u64::try_from(hint.as_micros()).expect("a short one"),
            want: 1,
            floor: self.floor,
            ..LONE
        };
        let words = format!(
            "{} 0 {}",
            told.words(),
            u64::from(!throttled) * (now - sent)
        );
        let answer = self
            .engine
            .take(now, "a", &words)
            .expect("the step is taken");
        self.granted += answer[0];
    }

    /// Plays a step of one of the laws alone, whose service saves up so much: whether it sent.
    fn alone(&mut self, now: u64, by_script: bool, most: u64, out: bool) -> bool {
        self.hear_all(now, None);
        let sends = if by_script {
            self.seq += 1;
            let asks = Step {
                seq: self.seq,
                want: 1,
                floor: self.floor,
                ..LONE
            };
            let answer = self.engine.take(now, "a", &asks.words());
            self.granted += answer.expect("the step is taken")[0];
            self.granted > 0
        } else {
            self.core.try_acquire(at(now)).is_ok()
        };
        if sends {
            self.granted -= i64::from(by_script);
            self.send(now, most, out);
        }
        sends
    }

    /// Returns the rate of the script as a part of the core's.
    fn compare(&mut self, now: u64) -> f64 {
        let core = self.core.snapshot(at(now));
        self.cuts += u32::from((core.last_max_rate - self.peak).abs() > 1e-9);
        self.peak = core.last_max_rate;
        let asks = Step {
            floor: self.floor,
            ..LONE
        };
        #[expect(clippy::cast_precision_loss, reason = "a rate of a test")]
        let script = self.engine.rate_of("b", now, &asks.words()) as f64;
        script / 1_000.0 / core.fill_rate
    }
}

/// The ask of a member whose lease is no longer than its request.
const LONE: Step = Step {
    ceiling: UNLIMITED,
    lease: 0,
    ..ASK
};

#[test]
fn in_front_of_a_service_both_laws_cut_alike() {
    for limit in [20, 100, 1_000] {
        let (mut both, mut worst) = (Both::new(limit), 0.0_f64);
        for now in (START..START + 40_000_000).step_by(100) {
            both.play(now, None);
            if now % 50_000 == 0 && now > START + 8_000_000 {
                worst = worst.max((both.compare(now) - 1.0).abs());
            }
        }
        let cuts = both.cuts;
        println!("{limit}/s: {cuts} cuts in 32 s, the rates at most {worst:.4} apart");
        // The core's rate moves in steps of 17 ms, and a window may end a response later.
        assert!(cuts >= 10, "{limit}/s: {cuts} cuts");
        assert!(worst <= 0.02, "{limit}/s: {worst} apart");
    }
}

#[test]
fn both_laws_knock_as_often_in_an_outage_and_are_back_as_soon() {
    let (from, to, end) = (12_000_000, 22_000_000, 40_000_000);
    let [core, script] = [false, true].map(|by_script| {
        let mut both = Both::new(100);
        let (mut knocks, mut back, mut sent) = (0, 0, 0);
        for now in (START..START + end).step_by(1_000) {
            let time = now - START;
            let is_out = (from..to).contains(&time);
            if both.alone(now, by_script, 5 * REQUEST, is_out) {
                knocks += u32::from((from + 1_000_000..to).contains(&time));
                sent += u32::from(time >= to + 8_000_000);
                back = if back == 0 && time >= to {
                    time - to
                } else {
                    back
                };
            }
        }
        println!("{knocks} knocks in 9 s, back after {back} us, {sent} in the last 10 s");
        (knocks, back, sent)
    });
    assert!(core.0.abs_diff(script.0) <= 2, "{core:?}, {script:?}");
    assert!(core.1 <= 4_000_000 && script.1 <= 4_000_000);
    assert!(core.2.min(script.2) >= 970 && core.2.max(script.2) <= 1_020);
}

#[test]
fn a_window_of_a_minute_is_learned_by_both_laws_alike() {
    // A core that is asked late loses that time, and the script keeps a token for it.
    for (by_script, step) in [(false, 10_000), (true, 100_000)] {
        let mut both = Both::new(0);
        both.core = core_of(Duration::from_secs(1_000));
        both.floor = "0.001";
        let (mut sent, mut refused) = (0, 0);
        for now in (START..START + 7_200 * REQUEST).step_by(step) {
            if (now - START) % (60 * REQUEST) == 0 {
                both.saved = 40 * REQUEST;
            }
            let left = both.saved;
            let is_late = now > START + 3_600 * REQUEST;
            if both.alone(now, by_script, 40 * REQUEST, false) && is_late {
                (sent, refused) = (sent + 1, refused + u32::from(left < REQUEST));
            }
        }
        println!("{sent} sent in an hour of 2400, {refused} refused; by the script: {by_script}");
        assert!(
            sent - refused >= 2_300 && refused <= 60,
            "{sent}, {refused}"
        );
    }
}

#[test]
fn a_hint_of_an_outage_pauses_both_laws_alike() {
    let mut both = Both::new(100);
    let (from, to) = (START + 12_000_000, START + 13_000_000);
    let (mut worst, mut paused) = (0.0_f64, 0);
    for now in (START..START + 30_000_000).step_by(100) {
        let out = (from..to).contains(&now);
        both.play(now, out.then_some(Duration::from_secs(3)));
        if now % 50_000 == 0 && now > START + 8_000_000 {
            let asked = Step { want: 1, ..LONE };
            let stored = both.engine.stored();
            let granted = both.engine.take(now, "b", &asked.words());
            both.engine.fall_back(stored);
            if both.core.snapshot(at(now)).fill_rate < 1.0 {
                assert_eq!(granted.expect("the step is taken")[0], 0);
                paused += 1;
            } else if !(from..to + 4_000_000).contains(&now) {
                worst = worst.max((both.compare(now) - 1.0).abs());
            }
        }
    }
    println!("paused for {paused} looks of 50 ms, then at most {worst:.4} apart");
    assert!((50..=90).contains(&paused), "paused for {paused} looks");
    // Of the cut after it one may have heard a response more.
    assert!(worst <= 0.04, "{worst} apart");
}

#[test]
fn after_a_herd_both_laws_correct_the_first_cut_alike() {
    // No multiple of four steps of the play, so that no request was sent at a quarter of a trip.
    const TRIP: u64 = 50_200;
    const BURST: u64 = 100 * REQUEST;
    for limit in [300, 400, 700] {
        let mut both = Both::new(limit);
        (both.trip, both.saved) = (TRIP, BURST);
        let (mut first, mut corrected) = (None, None);
        for now in (START..START + 2_000_000).step_by(100) {
            both.herd(now, 512, BURST);
            let peak = both.core.snapshot(at(now)).last_max_rate;
            let cut = *first.get_or_insert((now, peak));
            if peak <= 0.0 {
                first = None;
            } else if peak < cut.1 {
                corrected = Some(now);
                break;
            }
        }
        let (cut, _) = first.expect("it was throttled");
        let now = corrected.expect("the first cut was corrected");
        assert!(now > cut + TRIP, "{limit}/s: corrected too soon");
        // A microsecond late, for the core's step to have begun.
        for steps in 1..10 {
            let at_step = START + STEPS * steps + 1;
            // Beyond the peak the core goes no further than is used.
            let core = both.core.snapshot(at(at_step));
            let most = core.last_max_rate / core.fill_rate;
            let apart = both.compare(at_step).min(most.max(1.0)) - 1.0;
            assert!(apart.abs() <= 1e-4, "{limit}/s: {apart} apart");
        }
    }
}
