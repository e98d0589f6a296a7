//! The clients of a scene, and what is counted.

use alloc::{rc::Rc, sync::Arc};
use core::cell::RefCell;
use core::time::Duration;

use fastrand::Rng;
use paceline::law::{DeclaredSettings, PacedSettings, Spend};
use paceline::{Class, ControlLaw, Outcome, SendLimiter, SendRate, Timestamp};

use crate::scene::{Comes, Known, Scene};
use crate::service::Service;
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
    waits: Vec<u64>,
    answers: Vec<u64>,
    /// Tokens done, of the foreground and of the background.
    done: [u64; 2],
    /// Requests, and those throttled.
    sent: [u64; 2],
    refused: [u64; 2],
    last: Option<u64>,
    gap: u64,
}

fn quantile(sorted: &[u64], permille: usize) -> f64 {
    let index = (sorted.len() * permille / 1_000).min(sorted.len().saturating_sub(1));
    sorted.get(index).map_or(0.0, |nanos| *nanos as f64 / 1e6)
}

fn percent(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}

impl Tally {
    pub(crate) fn wait(&self, permille: usize) -> f64 {
        quantile(&self.waits, permille)
    }

    pub(crate) fn answered(&self, permille: usize) -> f64 {
        quantile(&self.answers, permille)
    }

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

    pub(crate) fn throttled(&self) -> f64 {
        let sum = |counts: [u64; 2]| counts[0] + counts[1];
        percent(sum(self.refused), sum(self.sent))
    }

    pub(crate) fn foreground_throttled(&self) -> f64 {
        percent(self.refused[0], self.sent[0])
    }
}

type Limiter = SendLimiter<Arc<SendRate>, Virtual, Virtual>;

#[derive(Clone)]
struct Client {
    scene: Scene,
    limiter: Limiter,
    service: Rc<RefCell<Service>>,
    tally: Rc<RefCell<Tally>>,
    rng: Rc<RefCell<Rng>>,
    /// When the foreground comes, and how heavy it is: the same in all modes.
    arrivals: Rc<RefCell<Rng>>,
    /// How its back-fill is marked.
    class: Class,
}

fn rate(scene: &Scene, mode: Mode) -> SendRate {
    let second = Duration::from_secs(1);
    let fixed = || {
        let tokens = u32::try_from(scene.limit).unwrap_or(u32::MAX);
        let settings = PacedSettings::fixed(tokens, second).unwrap_or_default();
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
            SendRate::paced(settings.build().unwrap_or_default(), Timestamp::ZERO)
        }
        Known::Learned => SendRate::new(ControlLaw::Paced, Timestamp::ZERO),
        Known::Fixed => fixed(),
        Known::Even => declared(Spend::Even),
        Known::Fast => declared(Spend::Fast),
    }
}

impl Client {
    fn weight(&self, index: usize) -> u32 {
        let rng = [&self.arrivals, &self.rng][index];
        let weight = rng.borrow_mut().u64(1..=self.scene.heaviest);
        u32::try_from(weight).unwrap_or(1)
    }

    /// Sends a request until it is done, and returns its first wait.
    async fn operate(&self, class: Class, index: usize) -> u64 {
        let weight = match self.scene.background {
            Some(weight) if index == 1 => weight,
            _ => self.weight(index),
        };
        let (mut first, mut attempt) = (None, 0_u32);
        loop {
            let asked = now();
            let request = self.limiter.clone().into_tokens(weight).class(class);
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
            let half = || self.rng.borrow_mut().u64(15 * MILLI..25 * MILLI);
            time::sleep_until(sent + half()).await;
            let at = now();
            let (done, reports) = self.service.borrow_mut().answer(at, weight.into());
            if now() >= BEGINNING {
                let mut tally = self.tally.borrow_mut();
                tally.sent[index] += 1;
                tally.refused[index] += u64::from(!done);
                tally.done[index] += if done { u64::from(weight) } else { 0 };
            }
            time::sleep_until(at + half()).await;
            if let Some(reports) = reports {
                self.limiter.observe(permit, &reports);
            }
            if done {
                self.limiter.record(permit, Outcome::NotThrottled);
                return first.unwrap_or(0);
            }
            self.limiter.record(permit, Outcome::Throttled);
            let most = (SECOND << attempt.min(4)).min(20 * SECOND);
            attempt += 1;
            let backoff = self.rng.borrow_mut().u64(0..most);
            time::sleep_until(now() + backoff).await;
        }
    }

    async fn work(self) {
        loop {
            self.operate(self.class, 1).await;
        }
    }

    async fn person(self) {
        let begun = now();
        let waited = self.operate(Class::Foreground, 0).await;
        if begun >= BEGINNING {
            let mut tally = self.tally.borrow_mut();
            tally.waits.push(waited);
            tally.answers.push(now() - begun);
        }
    }

    /// Lets the foreground come.
    async fn people(self) {
        let scene = self.scene;
        let mean_weight = scene.heaviest.div_ceil(2);
        // Of one client, between two requests.
        let clients = u64::try_from(scene.clients).unwrap_or(1);
        let between = scene.token() * mean_weight * clients * 100 / scene.percent;
        let exponential = |mean: u64| {
            let draw = 1.0 - self.arrivals.borrow_mut().f64();
            (-draw.ln() * mean as f64)
                .round()
                .to_string()
                .parse::<u64>()
                .unwrap_or(mean)
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
                time::spawn(self.clone().person());
            }
        }
    }
}

/// Plays `scene`, and returns what happened.
pub(crate) fn play(scene: &Scene, mode: Mode, seed: u64) -> Tally {
    let service = Rc::new(RefCell::new(Service::new(scene)));
    let tally = Rc::new(RefCell::new(Tally::default()));
    let rng = Rc::new(RefCell::new(Rng::with_seed(seed)));
    let mut arrivals = Rng::with_seed(!seed);
    let class = match mode {
        Mode::Classes => Class::Background,
        Mode::Alone | Mode::OneLine => Class::Foreground,
    };
    time::run(seed, scene.seconds * SECOND, || {
        for _ in 0..scene.clients {
            let limiter = SendLimiter::new(Arc::new(rate(scene, mode)));
            let client = Client {
                scene: *scene,
                limiter: limiter.clock(Virtual).sleep_on(Virtual),
                service: Rc::clone(&service),
                tally: Rc::clone(&tally),
                rng: Rc::clone(&rng),
                arrivals: Rc::new(RefCell::new(arrivals.fork())),
                class,
            };
            if mode != Mode::Alone {
                (0..scene.workers).for_each(|_| time::spawn(client.clone().work()));
            }
            time::spawn(client.people());
        }
    });
    let mut tally = tally.take();
    tally.waits.sort_unstable();
    tally.answers.sort_unstable();
    tally
}
