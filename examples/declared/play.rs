//! Clients, their operations, and the network between them and the service.

use alloc::rc::Rc;
use core::future;

use paceline::{Class, law::LimitReports};

use crate::laws::Law;
use crate::limiter::{Limiter, Reply, Want};
use crate::scene::Scene;
use crate::service::Service;
use crate::time::{self, MILLI, SECOND, now};
use crate::world::turn;

/// How often an operation is sent.
const SENDS: u32 = 5;
/// The longest wait that a service is believed.
const LONGEST_HINT: u64 = 60 * SECOND;

/// What one run came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sent: u64,
    pub(crate) throttled: u64,
    pub(crate) failed: u64,
    /// Tokens used, in the whole run and in its steady part.
    pub(crate) used: u64,
    pub(crate) steady: u64,
    /// Tokens of each client in the second half.
    pub(crate) parts: Vec<u64>,
    pub(crate) waits: Vec<u64>,
}

type World = crate::world::World<Scene, Box<dyn Limiter>, Service, Tally>;

/// Plays a scene.
pub(crate) fn play(scene: &Scene, law: &Law, seed: u64) -> Tally {
    let limiters = (0..scene.clients).map(|_| (law.limiter)(scene));
    let tally = Tally {
        parts: vec![0; scene.clients as usize],
        ..Tally::default()
    };
    let counts = (Service::new(scene), tally);
    World::play(
        (*scene, limiters),
        counts,
        (seed, scene.end()),
        World::begin,
    )
}

impl World {
    fn begin(self: &Rc<Self>) {
        let scene = &self.scene;
        for client in 0..scene.clients as usize {
            let at = client as u64 * scene.stagger * SECOND;
            let arrive = |many, span, person| {
                let mean = span / many;
                time::spawn_at(at, Rc::clone(self).arrive(client, mean, person));
            };
            if scene.people > 0 {
                arrive(scene.people, 60 * SECOND, true);
            }
            if scene.open > 0 {
                arrive(scene.open, SECOND, false);
                continue;
            }
            let workers = match (client, scene.small) {
                (0, small) if small > 0 => small,
                _ => scene.workers,
            };
            for _ in 0..workers {
                let at = at + self.draw(0..SECOND);
                let world = Rc::clone(self);
                time::spawn_at(at, async move {
                    loop {
                        world.operate(client, false).await;
                    }
                });
            }
        }
    }

    async fn arrive(self: Rc<Self>, client: usize, mean: u64, person: bool) {
        loop {
            let world = Rc::clone(&self);
            let operation = async move { world.operate(client, person).await };
            time::spawn_at(now(), operation);
            let gap = self.draw(0..2 * mean);
            time::sleep_until(now() + gap).await;
        }
    }

    /// Carries out one operation: until it is done, or was sent often enough.
    async fn operate(&self, client: usize, person: bool) {
        let stay = self.scene.clients as usize - self.scene.leave as usize;
        if client >= stay && now() >= self.scene.end() / 2 {
            return future::pending().await; // it has gone
        }
        let weights = self.scene.least..=self.scene.weight;
        let (begun, weight) = (now(), self.rng.borrow_mut().u32(weights));
        let limiter = &*self.limiters[client];
        let class = if self.scene.people > 0 && !person {
            Class::Background
        } else {
            Class::Foreground
        };
        let want = Want { weight, class };
        // As a waiter that is woken when its turn comes sooner would.
        let longest = (self.scene.window_nanos() / 300).clamp(50 * MILLI, SECOND);
        let sleep = async |wait: u64| time::sleep_until(now() + wait.min(longest).max(1)).await;
        for sends in 0..SENDS {
            let permit = turn(limiter, want, sleep).await;
            self.tally.borrow_mut().sent += 1;
            let trip = self.trip(client);
            time::sleep_until(now() + trip / 2).await;
            let (reply, reports) = self.answer(client, weight.into());
            time::sleep_until(now() + trip / 2).await;
            limiter.record(now(), permit, reply, &reports);
            let Reply::Throttled(hint) = reply else {
                let is_steady = begun >= self.scene.steady();
                if self.scene.people == 0 || (person && is_steady) {
                    let waited = permit.time().as_nanos().saturating_sub(begun);
                    self.tally.borrow_mut().waits.push(waited);
                }
                return;
            };
            if sends + 1 < SENDS {
                let sleep = self.draw(0..SECOND << sends);
                let hint = hint.unwrap_or(0).min(LONGEST_HINT);
                time::sleep_until(now() + sleep + hint).await;
            }
        }
        self.tally.borrow_mut().failed += 1;
    }

    /// Returns a round trip: lognormal, nine tenths within the scene's bounds.
    #[expect(clippy::cast_sign_loss, reason = "an example")]
    fn trip(&self, client: usize) -> u64 {
        let (low, high) = (self.scene.trip.0 as f64, self.scene.trip.1 as f64);
        let (mean, deviation) = ((low * high).ln() / 2.0, (high / low).ln() / 3.29);
        // Twelve evenly spread numbers make a normal one.
        let mut rng = self.rng.borrow_mut();
        let normal: f64 = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
        let trip = (mean + deviation * normal).exp();
        let trip = trip.clamp(low / 2.0, high * 2.0);
        let far = if self.scene.far { 1 << client } else { 1 };
        (trip * MILLI as f64) as u64 * far
    }

    /// Lets the service answer a request, and counts it.
    fn answer(&self, client: usize, weight: u64) -> (Reply, LimitReports) {
        let mut service = self.service.borrow_mut();
        let answer = service.answer(now(), weight, &mut self.rng.borrow_mut());
        let mut tally = self.tally.borrow_mut();
        if answer.0 != Reply::Done {
            tally.throttled += 1;
            return answer;
        }
        tally.used += weight;
        let end = self.scene.end();
        if (self.scene.steady()..end).contains(&now()) {
            tally.steady += weight;
        }
        if now() >= end / 2 {
            tally.parts[client] += weight;
        }
        answer
    }
}
