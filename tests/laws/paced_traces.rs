//! The paced law over 600 random traces with each preset, against a model of it in `f64`.
//!
//! Claim: with one caller the fields of the snapshot are within 10⁻⁶ of the model's, relative to
//! them or to 1 where that is more, in cycles to 0.001, after every response and at random times
//! after it; at 0.1 to 10⁶ responses a second, with requests sent up to 17 s before, hints,
//! silences, idle hours, and windows of half a second to an hour.
//! The model rounds what the limiter's words round (see there), so that what is left is far below
//! the tolerance: 2⁻³² of the peak, times a few. After each comparison it goes on from the
//! limiter's peak: a peak that lies at the edge of two of its steps, 10⁻⁷ apart at 2/s, would be
//! cubed into the next. Each trace follows from its seed.

use core::time::Duration;

use crate::models::paced_model::{Answers, Cycles, PacedModel, Preset};
use fastrand::Rng;
use paceline::{Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings};

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;
const TOLERANCE: f64 = 1e-6;

/// How the responses of a phase come.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// With gaps like this one, and one throttle in so many.
    Open { gap: u64, one_in: u64 },
    /// As fast as the law allows, and throttled above the service's limit.
    Closed,
    /// All at once: none is throttled while the service has so many saved up, then five in six.
    /// They take about the same time.
    Herd { gap: u64, saved: u64 },
    /// As fast as the law allows, and so many accepted in each window of such a length. Some
    /// throttles say when the next one begins, and some requests come late.
    Windows {
        room: u64,
        length: u64,
        hints: bool,
        late: bool,
    },
}

/// A limiter and its model under one random sequence of responses.
struct Trace {
    seed: u64,
    rng: Rng,
    limiter: SendRate,
    model: PacedModel,
    start: u64,
    now: u64,
    /// The longest trip of the phase.
    trip: u64,
    /// The service's limit per second, and what it has left of it.
    limit: f64,
    left: f64,
    /// How many there were in the herd.
    responses: u64,
    /// The window of the service, and what it has accepted in that.
    window: u64,
    accepted: u64,
}

impl Trace {
    fn new(seed: u64, preset: Preset) -> Self {
        let settings = match preset {
            Preset::Usual => PacedSettings::new(),
            Preset::Shared => PacedSettings::shared(),
            Preset::Exclusive => PacedSettings::exclusive(),
            Preset::Sloped => {
                let sloped = PacedSettings::builder().max_slope(20, Duration::from_secs(1));
                sloped.build().expect("in range")
            }
        };
        let mut rng = Rng::with_seed(seed);
        let start = [0, 1_700_000_000 * SECOND + 7][rng.usize(..2)];
        Self {
            seed,
            limiter: SendRate::paced(settings, Timestamp::from_nanos(start)),
            model: PacedModel::new(preset),
            start,
            now: rng.u64(..10 * SECOND),
            trip: 0,
            limit: 10_f64.powf(rng.f64() * 4.0),
            left: 0.0,
            responses: 0,
            window: 0,
            accepted: 0,
            rng,
        }
    }

    fn run(mut self) -> Answers {
        for index in 0..8 {
            self.trip = 1 << self.rng.u32(10..35);
            let phase = if index == 0 && self.rng.bool() {
                self.trip = 1 << self.rng.u32(16..28);
                Phase::Herd {
                    gap: self.trip / self.rng.u64(100..1_000),
                    saved: self.rng.u64(40..200),
                }
            } else if self.seed % 2 == 0 && self.rng.u8(..4) > 0 {
                self.trip = 1 << self.rng.u32(10..30);
                self.windows()
            } else if self.rng.bool() {
                Phase::Closed
            } else {
                Phase::Open {
                    gap: 10_f64.powf(3.0 + self.rng.f64() * 7.0) as u64,
                    one_in: [2, 5, 30, u64::MAX, u64::MAX][self.rng.usize(..5)],
                }
            };
            let most = match phase {
                Phase::Herd { .. } => 1_500,
                Phase::Open { one_in, .. } if one_in == u64::MAX => 4_000,
                _ => 400,
            };
            for _ in 0..self.rng.u64(1..most) {
                self.respond(phase);
            }
            // A silence now and then.
            let idle = [0, 0, SECOND, 20 * SECOND, HOUR][self.rng.usize(..5)];
            self.now += self.rng.u64(..=idle);
        }
        self.model.answers
    }

    fn respond(&mut self, phase: Phase) {
        let throttled = match phase {
            Phase::Open { gap, one_in } => {
                self.now += self.rng.u64(..=2 * gap);
                self.rng.u64(..one_in) == 0
            }
            Phase::Closed => self.send_as_allowed(),
            Phase::Windows {
                room, length, late, ..
            } => self.send_in_windows(room, length, late),
            Phase::Herd { gap, saved } => {
                self.now += self.rng.u64(..=2 * gap);
                self.responses += 1;
                self.responses > saved && self.rng.u8(..6) > 0
            }
        };
        let shortest = match phase {
            Phase::Herd { .. } => self.trip - self.trip / 8,
            _ => 0,
        };
        let sent = self.now - self.rng.u64(shortest..=self.trip).min(self.now);
        let permit = SendPermit::sent_at(self.time(sent));
        let now = self.time(self.now);
        if throttled {
            let hint = match phase {
                Phase::Windows { length, hints, .. } => {
                    let left = (self.window + 1) * length - self.now;
                    (hints && self.rng.bool()).then_some(Duration::from_nanos(left))
                }
                _ => self.hint(),
            };
            self.limiter.record(
                now,
                permit,
                hint.map_or(Outcome::Throttled, Outcome::ThrottledFor),
            );
            let nanos = hint.unwrap_or_default().as_nanos() as u64;
            self.model.throttle(self.now, sent, nanos);
        } else {
            self.limiter.record(now, permit, Outcome::NotThrottled);
            self.model.succeed(self.now, sent);
        }
        self.compare(self.now);
        let kept = self.limiter.snapshot(now).last_max_rate;
        self.model.take_over(kept);
        let later = self.rng.u64(..) >> self.rng.u32(20..64);
        self.compare(self.now + later);
    }

    /// Lets a request go at the law's rate, and returns whether it was too much for the service.
    fn send_as_allowed(&mut self) -> bool {
        let rate = self.model.fill_rate(self.now).clamp(0.1, 2.0 * self.limit);
        let gap = (1e9 / rate * (0.8 + 0.4 * self.rng.f64())) as u64;
        self.now += gap;
        let burst = (self.limit / 5.0).max(1.0);
        self.left = burst.min(self.left + self.limit * gap as f64 / 1e9);
        let throttled = self.left < 1.0;
        self.left -= f64::from(u8::from(!throttled));
        throttled
    }

    /// A window of 0.5 s to an hour, for 1 to 300.
    fn windows(&mut self) -> Phase {
        Phase::Windows {
            room: 300_f64.powf(self.rng.f64()) as u64,
            length: (0.5e9 * 7_200_f64.powf(self.rng.f64())) as u64,
            hints: self.rng.bool(),
            late: self.rng.bool(),
        }
    }

    /// Lets a request go as soon as the law allows one, or later, and returns whether the window
    /// of the service has room for no more.
    fn send_in_windows(&mut self, room: u64, length: u64, late: bool) -> bool {
        let from = self.now.max(self.model.paused_until());
        let rate = self.model.fill_rate(from).min(1e4);
        let times = if late && self.rng.u8(..32) == 0 {
            self.rng.f64() * 40.0
        } else {
            1.0 + 0.01 * self.rng.f64()
        };
        self.now = from + (1e9 / rate * times) as u64;
        if self.now / length != self.window {
            (self.window, self.accepted) = (self.now / length, 0);
        }
        self.accepted += 1;
        self.accepted > room
    }

    /// One throttle in eight says for how long, rarely for more than a minute.
    fn hint(&mut self) -> Option<Duration> {
        let hint = Duration::from_nanos((1 << 37) >> self.rng.u32(..37));
        (self.rng.u8(..8) == 0).then_some(hint)
    }

    fn time(&self, elapsed: u64) -> Timestamp {
        Timestamp::from_nanos(self.start + elapsed)
    }

    fn compare(&self, now: u64) {
        let got = self.limiter.snapshot(self.time(now));
        let model = &self.model;
        let seed = self.seed;
        assert_eq!(
            got.enabled, model.enabled,
            "enabled: trace {seed} at {now} ns"
        );
        for (name, got, want) in [
            ("fill_rate", got.fill_rate, model.fill_rate(now)),
            ("last_max_rate", got.last_max_rate, model.last_max_rate()),
            ("measured_rate", got.measured_rate, model.measured_rate(now)),
        ] {
            let off = (got - want).abs();
            assert!(
                off <= TOLERANCE * want.max(model.least()),
                "{name}: trace {seed} at {now} ns: got {got}, want {want}, off by {off:e}; {model:?}"
            );
        }
    }
}

/// Plays 600 traces, and asserts that each rule has answered but `never`.
fn follows_the_model(preset: Preset, never: &[usize]) {
    let mut sum = [0; Answers::RULES];
    let mut traces = Cycles::default().counts();
    for seed in 1..=600 {
        let answers = Trace::new(seed, preset).run();
        for ((_, traces), (_, times)) in traces.iter_mut().zip(answers.cycles.counts()) {
            *traces += u64::from(times > 0);
        }
        for (sum, times) in sum.iter_mut().zip(answers.counts()) {
            *sum += times;
        }
    }
    println!("{sum:?} {traces:?}");
    for (rule, times) in sum.into_iter().enumerate() {
        assert_eq!(times <= 5, never.contains(&rule), "rule {rule} of {sum:?}");
    }
    for (rule, times) in traces {
        // What would be beyond the slope.
        let is_never = preset == Preset::Sloped && ["rested", "left", "came_back"].contains(&rule);
        assert_eq!(
            times < 8,
            is_never,
            "{rule} in {times} traces, of {traces:?}"
        );
    }
}

#[test]
fn random_traces_follow_the_model() {
    follows_the_model(Preset::Usual, &[]);
}

/// The rate delivered is no measure of what one of many may send.
#[test]
fn random_traces_for_a_shared_limit_follow_the_model() {
    follows_the_model(Preset::Shared, &[Answers::MEASURED]);
}

#[test]
fn random_traces_for_an_exclusive_limit_follow_the_model() {
    follows_the_model(Preset::Exclusive, &[]);
}

/// Nothing lifts the rate, and the limiter does not switch itself off.
#[test]
fn random_traces_with_a_slope_follow_the_model() {
    follows_the_model(Preset::Sloped, &Answers::LIFTED_AND_ENDED);
}
