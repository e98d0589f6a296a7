//! Discrete events in virtual time.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use fastrand::Rng;
use paceline::{Class, Reservation, SendPermit, SendRate, Timestamp};

use crate::client::{self, Law};
use crate::scene::{MILLI, SECOND, Scene};
use crate::service::{Response, Service};

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

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive,
    Begin,
    Ask,
    Reach,
    Hear,
}

struct Task<'a> {
    client: usize,
    /// Whether someone waits for it, beside workers that can wait.
    person: bool,
    step: Step,
    sends: u32,
    begun: u64,
    weight: u32,
    permit: SendPermit,
    seat: Option<Reservation<'a>>,
    trip: u64,
    response: Option<Response>,
}

struct World<'a> {
    scene: Scene,
    law: Law,
    limiters: &'a [Option<SendRate>],
    service: Service,
    rng: Rng,
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    serial: u64,
    tasks: Vec<Task<'a>>,
    free: Vec<usize>,
    tally: Tally,
}

/// Plays a scene.
pub(crate) fn play(scene: &Scene, law: Law, seed: u64) -> Tally {
    let limiters: Vec<_> = (0..scene.clients).map(|_| law.limiter(scene)).collect();
    let mut world = World {
        scene: *scene,
        law,
        limiters: &limiters,
        service: Service::new(scene),
        rng: Rng::with_seed(seed),
        events: BinaryHeap::new(),
        serial: 0,
        tasks: Vec::new(),
        free: Vec::new(),
        tally: Tally {
            parts: vec![0; scene.clients as usize],
            ..Tally::default()
        },
    };
    world.run();
    world.tally
}

impl World<'_> {
    fn run(&mut self) {
        for client in 0..self.scene.clients {
            let at = u64::from(client) * self.scene.stagger * SECOND;
            if self.scene.people > 0 {
                self.spawn((client as usize, true), Step::Arrive, at);
            }
            if self.scene.open > 0 {
                self.spawn((client as usize, false), Step::Arrive, at);
                continue;
            }
            let workers = match (client, self.scene.small) {
                (0, small) if small > 0 => small,
                _ => self.scene.workers,
            };
            for _ in 0..workers {
                let at = at + self.rng.u64(0..SECOND);
                self.spawn((client as usize, false), Step::Begin, at);
            }
        }
        while let Some(Reverse((now, _, task))) = self.events.pop() {
            if now >= self.scene.end() {
                break;
            }
            match self.tasks[task].step {
                Step::Arrive => self.arrive(now, task),
                Step::Begin => self.begin(now, task),
                Step::Ask => self.ask(now, task),
                Step::Reach => self.reach(now, task),
                Step::Hear => self.hear(now, task),
            }
        }
    }

    fn arrive(&mut self, now: u64, task: usize) {
        let Task { client, person, .. } = self.tasks[task];
        self.spawn((client, person), Step::Begin, now);
        let (many, span) = if person {
            (self.scene.people, 60 * SECOND)
        } else {
            (self.scene.open, SECOND)
        };
        let gap = self.rng.u64(0..2 * span / many);
        self.after(task, Step::Arrive, now + gap);
    }

    fn begin(&mut self, now: u64, task: usize) {
        let left = self.scene.clients as usize - self.scene.leave as usize;
        if self.tasks[task].client >= left && now >= self.scene.end() / 2 {
            return; // it has gone
        }
        let weight = self.rng.u32(self.scene.least..=self.scene.weight);
        let operation = &mut self.tasks[task];
        (operation.begun, operation.sends, operation.weight) = (now, 0, weight);
        self.ask(now, task);
    }

    fn ask(&mut self, now: u64, task: usize) {
        let operation = &mut self.tasks[task];
        let limiter = self.limiters[operation.client].as_ref();
        let class = if self.law == Law::Classes && !operation.person {
            Class::Background
        } else {
            Class::Foreground
        };
        let seat = &mut operation.seat;
        match client::ask(limiter, seat, now, operation.weight, class) {
            Ok(permit) => {
                operation.permit = permit;
                operation.sends += 1;
                self.tally.sent += 1;
                let trip = self.trip(self.tasks[task].client);
                self.tasks[task].trip = trip;
                self.after(task, Step::Reach, now + trip / 2);
            }
            Err(wait) => {
                // As a waiter that is woken when its turn comes sooner would.
                let longest = (self.scene.window_nanos() / 300).clamp(50 * MILLI, SECOND);
                let wait = wait.min(longest).max(1);
                self.after(task, Step::Ask, now + wait);
            }
        }
    }

    /// Returns a round trip: lognormal, nine tenths within the scene's bounds.
    #[expect(
        clippy::float_arithmetic,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an example"
    )]
    fn trip(&mut self, client: usize) -> u64 {
        let (low, high) = (self.scene.trip.0 as f64, self.scene.trip.1 as f64);
        let (mean, deviation) = ((low * high).ln() / 2.0, (high / low).ln() / 3.29);
        // Twelve evenly spread numbers make a normal one.
        let normal: f64 = (0..12).map(|_| self.rng.f64()).sum::<f64>() - 6.0;
        let trip = (mean + deviation * normal)
            .exp()
            .clamp(low / 2.0, high * 2.0);
        let far = if self.scene.far { 1 << client } else { 1 };
        (trip * MILLI as f64) as u64 * far
    }

    fn reach(&mut self, now: u64, task: usize) {
        let operation = &self.tasks[task];
        let (client, weight) = (operation.client, u64::from(operation.weight));
        let response = self.service.answer(now, weight, &mut self.rng);
        if response.throttled.is_some() {
            self.tally.throttled += 1;
        } else {
            self.tally.used += weight;
            let whole = self.scene.end();
            if (self.scene.steady()..whole).contains(&now) {
                self.tally.steady += weight;
            }
            if now >= whole / 2 {
                self.tally.parts[client] += weight;
            }
        }
        let back = self.tasks[task].trip / 2;
        self.tasks[task].response = Some(response);
        self.after(task, Step::Hear, now + back);
    }

    fn hear(&mut self, now: u64, task: usize) {
        let operation = &mut self.tasks[task];
        let Some(response) = operation.response.take() else {
            return;
        };
        let limiter = self.limiters[operation.client].as_ref();
        client::record(
            limiter,
            now,
            operation.permit,
            response.throttled,
            &response.reports,
        );
        let Some(hint) = response.throttled else {
            let sent = operation.permit.time().as_nanos();
            let is_steady = operation.begun >= self.scene.steady();
            if self.scene.people == 0 || (operation.person && is_steady) {
                self.tally.waits.push(sent.saturating_sub(operation.begun));
            }
            return self.end(now, task);
        };
        if operation.sends >= SENDS {
            self.tally.failed += 1;
            return self.end(now, task);
        }
        let most = SECOND << (operation.sends - 1);
        let sleep = self.rng.u64(0..most);
        let sleep = sleep + hint.min(LONGEST_HINT);
        self.after(task, Step::Ask, now + sleep);
    }

    fn end(&mut self, now: u64, task: usize) {
        if self.scene.open > 0 || self.tasks[task].person {
            self.free.push(task);
        } else {
            self.begin(now, task);
        }
    }

    fn spawn(&mut self, (client, person): (usize, bool), step: Step, at: u64) {
        let task = Task {
            client,
            person,
            step,
            sends: 0,
            begun: at,
            weight: 1,
            permit: SendPermit::sent_at(Timestamp::ZERO),
            seat: None,
            trip: 0,
            response: None,
        };
        let index = if let Some(index) = self.free.pop() {
            self.tasks[index] = task;
            index
        } else {
            self.tasks.push(task);
            self.tasks.len() - 1
        };
        self.after(index, step, at);
    }

    fn after(&mut self, task: usize, step: Step, at: u64) {
        self.tasks[task].step = step;
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, task)));
    }
}
