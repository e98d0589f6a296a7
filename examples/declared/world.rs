//! Clients, their operations, and the network between them and the service.

use alloc::rc::Rc;
use core::cell::RefCell;
use core::future;

use fastrand::Rng;
use paceline::{Class, SendPermit};

use crate::client::{self, Law, Limiter, Seat};
use crate::scene::Scene;
use crate::service::{Response, Service};
use crate::time::{self, MILLI, SECOND, now};

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

struct World {
    scene: Scene,
    law: Law,
    limiters: Vec<Limiter>,
    service: RefCell<Service>,
    rng: RefCell<Rng>,
    tally: RefCell<Tally>,
}

/// Plays a scene.
pub(crate) fn play(scene: &Scene, law: Law, seed: u64) -> Tally {
    let world = Rc::new(World {
        scene: *scene,
        law,
        limiters: (0..scene.clients).map(|_| law.limiter(scene)).collect(),
        service: RefCell::new(Service::new(scene)),
        rng: RefCell::new(Rng::with_seed(seed)),
        tally: RefCell::default(),
    });
    world.tally.borrow_mut().parts = vec![0; scene.clients as usize];
    time::run(seed, scene.end(), || world.begin());
    world.tally.take()
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
                let at = at + self.rng.borrow_mut().u64(0..SECOND);
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
            let gap = self.rng.borrow_mut().u64(0..2 * mean);
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
        let limiter = &self.limiters[client];
        for sends in 0..SENDS {
            let permit = self.turn(limiter, weight, person).await;
            self.tally.borrow_mut().sent += 1;
            let trip = self.trip(client);
            time::sleep_until(now() + trip / 2).await;
            let response = self.answer(client, weight.into());
            let throttled = response.throttled;
            time::sleep_until(now() + trip / 2).await;
            client::record(limiter, now(), permit, throttled, &response.reports);
            let Some(hint) = throttled else {
                let is_steady = begun >= self.scene.steady();
                if self.scene.people == 0 || (person && is_steady) {
                    let waited = permit.time().as_nanos().saturating_sub(begun);
                    self.tally.borrow_mut().waits.push(waited);
                }
                return;
            };
            if sends + 1 < SENDS {
                let sleep = self.rng.borrow_mut().u64(0..SECOND << sends);
                time::sleep_until(now() + sleep + hint.min(LONGEST_HINT)).await;
            }
        }
        self.tally.borrow_mut().failed += 1;
    }

    /// Waits for the turn of a request.
    async fn turn(&self, limiter: &Limiter, weight: u32, person: bool) -> SendPermit {
        let class = if self.law == Law::Classes && !person {
            Class::Background
        } else {
            Class::Foreground
        };
        // As a waiter that is woken when its turn comes sooner would.
        let longest = (self.scene.window_nanos() / 300).clamp(50 * MILLI, SECOND);
        let mut seat = Seat::default();
        loop {
            match client::ask(limiter, &mut seat, now(), weight, class) {
                Ok(permit) => return permit,
                Err(wait) => time::sleep_until(now() + wait.min(longest).max(1)).await,
            }
        }
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
    fn answer(&self, client: usize, weight: u64) -> Response {
        let mut service = self.service.borrow_mut();
        let response = service.answer(now(), weight, &mut self.rng.borrow_mut());
        let mut tally = self.tally.borrow_mut();
        if response.throttled.is_some() {
            tally.throttled += 1;
            return response;
        }
        tally.used += weight;
        let end = self.scene.end();
        if (self.scene.steady()..end).contains(&now()) {
            tally.steady += weight;
        }
        if now() >= end / 2 {
            tally.parts[client] += weight;
        }
        response
    }
}
