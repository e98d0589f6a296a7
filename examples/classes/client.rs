//! The clients of a scene, and what is counted.

use alloc::{rc::Rc, sync::Arc};
use core::cell::RefCell;
use core::time::Duration;

use fastrand::Rng;
use paceline::law::{DeclaredSettings, LimitReports, PacedSettings, Spend};
use paceline::{Class, ControlLaw, Outcome, SendLimiter, SendRate, Timestamp};

use crate::number::{number, share};
use crate::policer::Policer;
use crate::scene::{Comes, Known, Scene};
use crate::tally::quantile;
use crate::time::{self, MILLI, SECOND, Virtual, now};

/// Who shares the limit, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The foreground alone.
    Alone,
    /// All are foreground.
    OneLine,
    /// The back-fill is background.
    Classes,
}

/// What is not counted: the clients find the limit.
const BEGINNING: u64 = 60 * SECOND;

/// What happened.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) waits: Vec<u64>,
    pub(crate) answers: Vec<u64>,
    /// Tokens done, of the foreground and of the background.
    done: [u64; 2],
    /// Requests, and those throttled.
    sent: [u64; 2],
    refused: [u64; 2],
    last: Option<u64>,
    gap: u64,
}

impl Tally {
    fn allowed(scene: &Scene) -> f64 {
        (scene.seconds * SECOND - BEGINNING) as f64 / scene.token() as f64
    }

    pub(crate) fn used(&self, scene: &Scene) -> f64 {
        (self.done[0] + self.done[1]) as f64 / Self::allowed(scene)
    }

    pub(crate) fn background_share(&self, scene: &Scene) -> f64 {
        let left = Self::allowed(scene) - self.done[0] as f64;
        self.done[1] as f64 / left.max(1.0)
    }

    pub(crate) fn longest_gap(&self) -> f64 {
        self.gap as f64 / 1e9
    }

    /// Returns what was throttled, in percent: of the foreground, and of all.
    pub(crate) fn throttled(&self) -> [f64; 2] {
        let sum = |counts: [u64; 2]| counts[0] + counts[1];
        let of_all = share(sum(self.refused), sum(self.sent));
        [share(self.refused[0], self.sent[0]), of_all].map(|share| 100.0 * share)
    }
}

/// Returns a quantile in milliseconds.
pub(crate) fn millis(sorted: &[u64], permille: usize) -> f64 {
    number(quantile(sorted, permille)) / 1e6
}

/// A client: its limiter, and what says when its foreground comes, and how heavy it is: the same in
/// all modes.
type Client = (SendLimiter<Arc<SendRate>, Virtual, Virtual>, RefCell<Rng>);
type World = crate::world::World<(Scene, Mode), Client, Policer, Tally>;

fn rate(scene: &Scene, mode: Mode) -> SendRate {
    let second = Duration::from_secs(1);
    let fixed = || {
        let tokens = u32::try_from(scene.limit).unwrap_or(u32::MAX);
        let settings = PacedSettings::fixed(tokens, second).unwrap_or(PacedSettings::new());
        SendRate::paced(settings, Timestamp::ZERO)
    };
    let declared = |spend| {
        let settings = DeclaredSettings::new().spend(spend);
        SendRate::declared(settings, Timestamp::ZERO)
    };
    match scene.known {
        // The ruler knows the limit.
        Known::Learned if mode == Mode::Alone && scene.clients == 1 => fixed(),
        Known::Learned if scene.heaviest > 1 => {
            let settings = PacedSettings::builder().burst(Duration::from_millis(50));
            SendRate::paced(
                settings.build().unwrap_or(PacedSettings::new()),
                Timestamp::ZERO,
            )
        }
        Known::Learned => SendRate::new(ControlLaw::Paced, Timestamp::ZERO),
        Known::Fixed => fixed(),
        Known::Even => declared(Spend::Even),
        Known::Fast => declared(Spend::Fast),
    }
}

impl World {
    fn begin(self: &Rc<Self>) {
        let (scene, mode) = self.scene;
        for client in 0..scene.clients {
            if mode != Mode::Alone {
                (0..scene.workers).for_each(|_| time::spawn(Rc::clone(self).work(client)));
            }
            time::spawn(Rc::clone(self).people(client));
        }
    }

    /// Sends a request of the foreground, 0, or of the background, 1, until it is done, and returns
    /// its first wait.
    async fn operate(&self, client: usize, index: usize) -> u64 {
        let ((scene, mode), (limiter, arrivals)) = (self.scene, &self.limiters[client]);
        let weight = match scene.background {
            Some(weight) if index == 1 => weight,
            _ => [arrivals, &self.rng][index]
                .borrow_mut()
                .u64(1..=scene.heaviest) as u32,
        };
        let class = match mode {
            Mode::Classes if index == 1 => Class::Background,
            _ => Class::Foreground,
        };
        let (mut first, mut attempt) = (None, 0_u32);
        loop {
            let asked = now();
            let request = limiter.clone().into_tokens(weight).class(class);
            let Ok(permit) = request.acquire().await else {
                return first.unwrap_or(0); // a weight above a rate that has just fallen
            };
            let sent = now();
            first.get_or_insert(sent - asked);
            if index == 1 && now() >= BEGINNING {
                let mut tally = self.tally.borrow_mut();
                let gap = tally.last.map_or(0, |last| sent - last);
                tally.gap = tally.gap.max(gap);
                tally.last = Some(sent);
            }
            let half = || self.draw(15 * MILLI..25 * MILLI);
            time::sleep_until(sent + half()).await;
            let at = now();
            let (done, reports) = self.answer(weight.into(), index);
            time::sleep_until(at + half()).await;
            if let Some(reports) = reports {
                limiter.observe(permit, &reports);
            }
            if done {
                limiter.record(permit, Outcome::NotThrottled);
                return first.unwrap_or(0);
            }
            limiter.record(permit, Outcome::Throttled);
            let most = (SECOND << attempt.min(4)).min(20 * SECOND);
            attempt += 1;
            time::sleep_until(now() + self.draw(0..most)).await;
        }
    }

    /// Lets the service answer a request: whether it is done, and what is declared.
    fn answer(&self, weight: u64, index: usize) -> (bool, Option<LimitReports>) {
        let (scene, mut service) = (&self.scene.0, self.service.borrow_mut());
        let done = service.look(now(), scene.limit) >= weight;
        let used = if done { weight } else { 0 };
        service.take(used);
        if now() >= BEGINNING {
            let mut tally = self.tally.borrow_mut();
            tally.sent[index] += 1;
            tally.refused[index] += u64::from(!done);
            tally.done[index] += used;
        }
        let report = || LimitReports::from(service.report(scene.limit));
        (done, scene.declares().then(report))
    }

    async fn work(self: Rc<Self>, client: usize) {
        loop {
            self.operate(client, 1).await;
        }
    }

    async fn person(self: Rc<Self>, client: usize) {
        let begun = now();
        let waited = self.operate(client, 0).await;
        if begun >= BEGINNING {
            let mut tally = self.tally.borrow_mut();
            tally.waits.push(waited);
            tally.answers.push(now() - begun);
        }
    }

    /// Lets the foreground come.
    async fn people(self: Rc<Self>, client: usize) {
        let scene = self.scene.0;
        let mean_weight = scene.heaviest.div_ceil(2);
        // Of one client, between two requests.
        let clients = u64::try_from(scene.clients).unwrap_or(1);
        let between = scene.token() * mean_weight * clients * 100 / scene.percent;
        let exponential = |mean: u64| {
            let draw = 1.0 - self.limiters[client].1.borrow_mut().f64();
            (-draw.ln() * mean as f64).round() as u64
        };
        let mut pulse_ends = now() + exponential(2 * SECOND);
        loop {
            let (wait, at_once) = match scene.comes {
                Comes::Clumps(many) => (between * many, many),
                Comes::Steadily | Comes::Bursts => (exponential(between), 1),
            };
            let mut next = now() + wait;
            if let Comes::Bursts = scene.comes {
                while next > pulse_ends {
                    // What is left of the wait goes on after the pause.
                    let pause = exponential(2 * SECOND);
                    next += pause;
                    pulse_ends += pause + exponential(2 * SECOND);
                }
            }
            time::sleep_until(next).await;
            for _ in 0..at_once {
                time::spawn(Rc::clone(&self).person(client));
            }
        }
    }
}

/// Plays `scene`, and returns what happened.
pub(crate) fn play(scene: &Scene, mode: Mode, seed: u64) -> Tally {
    let mut arrivals = Rng::with_seed(!seed);
    let clients = (0..scene.clients).map(|_| {
        let limiter = SendLimiter::new(Arc::new(rate(scene, mode)));
        let limiter = limiter.clock(Virtual).sleep_on(Virtual);
        (limiter, RefCell::new(arrivals.fork()))
    });
    let (window, full) = (scene.window * SECOND, scene.burst.unwrap_or(scene.limit));
    let service = Policer::new(scene.counting, window, scene.burst, full);
    let counts = (service, Tally::default());
    let end = scene.seconds * SECOND;
    let mut tally = World::play(((*scene, mode), clients), counts, (seed, end), World::begin);
    tally.waits.sort_unstable();
    tally.answers.sort_unstable();
    tally
}
