//! Clients, their operations, and the network between them and the service.

use alloc::rc::Rc;

use paceline::{Class, RetryQuota, law::LimitReports};

use crate::counts::Tally;
use crate::laws::{Entry, sdk};
use crate::limiter::{Limiter, Reply, Retry, Want};
use crate::scene::{Load, Scene};
use crate::service::Service;
use crate::time::{self, MILLI, SECOND, now};
use crate::world::turn;

/// How often an operation is tried.
const ATTEMPTS: u32 = 4;
/// What a retry after a throttle costs, and after another failure.
const THROTTLE_COST: u32 = 5;
const FAILURE_COST: u32 = 14;
/// The most that the first retry waits after a throttle, after another failure, and that any retry
/// waits.
const THROTTLE_BACKOFF: u64 = SECOND;
const FAILURE_BACKOFF: u64 = 50 * MILLI;
const LONGEST_BACKOFF: u64 = 20 * SECOND;
/// How much longer than its backoff a retry waits at most because the service said so.
const MOST_HINTED: u64 = 5 * SECOND;

/// What a task does next: a number for the checksum.
const ARRIVE: u64 = 0;
const BEGIN: u64 = 1;
const ASK: u64 = 2;
const REACH: u64 = 3;

const fn hear(reply: Reply) -> u64 {
    match reply {
        Reply::Done => 4,
        Reply::Failed => 5,
        Reply::Throttled(None) => 6,
        Reply::Throttled(Some(hint)) => 6 + hint,
    }
}

/// A client: its limiter and its retry quota.
type Client = (Box<dyn Limiter>, RetryQuota);
type World = crate::world::World<Scene, Client, Service, Tally>;

/// Plays `scene` with clients that limit themselves by `law`, and returns what happened.
pub(crate) fn play(scene: &Scene, law: &Entry, seed: u64) -> Tally {
    let limiter = |client| match client % 2 {
        1 if scene.mixed => sdk(scene),
        _ => (law.limiter)(scene),
    };
    let clients = (0..scene.clients).map(|it| (limiter(it), RetryQuota::new(scene.quota)));
    let end = scene.seconds * SECOND;
    let counts = (Service::new(scene), Tally::new(scene));
    World::play((*scene, clients), counts, (seed, end), World::begin)
}

impl World {
    fn begin(self: &Rc<Self>) {
        let Scene { load, people, .. } = self.scene;
        for client in 0..self.scene.clients {
            let at = u64::from(client) * self.scene.stagger_ms * MILLI;
            match load {
                Load::Closed(workers) => (0..workers).for_each(|_| {
                    // Threads do not all start in the same nanosecond.
                    let at = at + self.draw(0..MILLI);
                    time::spawn_at(at, Rc::clone(self).work(client));
                }),
                Load::Open(rate) => time::spawn_at(at, Rc::clone(self).arrive(client, rate, false)),
            }
            if people > 0 {
                time::spawn_at(at, Rc::clone(self).arrive(client, people, true));
            }
        }
    }

    /// Notes an event of this kind.
    fn event(&self, kind: u64) {
        let mut tally = self.tally.borrow_mut();
        // One limiter can be drawn over time; a line for each of many cannot.
        if let [(limiter, _)] = &*self.limiters {
            tally.allow(now(), |at| limiter.allowed(at));
        }
        tally.event(now(), time::task(), kind);
    }

    async fn until(&self, at: u64, kind: u64) {
        time::sleep_until(at).await;
        self.event(kind);
    }

    /// A client that does not wait for earlier operations begins one after another.
    async fn arrive(self: Rc<Self>, client: u32, rate: u64, person: bool) {
        loop {
            self.event(ARRIVE);
            let (now, wanting) = (now(), self.scene.wanting(now()));
            if wanting == now {
                let world = Rc::clone(&self);
                time::spawn_at(now, async move {
                    world.event(BEGIN);
                    world.operate(client, person).await;
                });
            }
            let gap = self.draw(0..=2 * (SECOND / rate));
            time::sleep_until(wanting.max(now + gap)).await;
        }
    }

    async fn work(self: Rc<Self>, client: u32) {
        self.event(BEGIN);
        loop {
            self.operate(client, false).await;
        }
    }

    /// Carries out one operation: until it is done, or given up.
    async fn operate(&self, client: u32, person: bool) {
        while self.scene.wanting(now()) > now() {
            self.until(self.scene.wanting(now()), BEGIN).await;
        }
        let (limiter, quota) = &self.limiters[client as usize];
        let class = if self.scene.people > 0 && !person {
            Class::Background
        } else {
            Class::Foreground
        };
        let want = Want { weight: 1, class };
        let ask = async |wait| self.ask_at(now().saturating_add(wait)).await;
        let (begun, mut attempt, mut paid) = (now(), 0, None);
        let give_up = |refused| self.tally.borrow_mut().give_up(refused);
        loop {
            let permit = turn(&**limiter, want, ask).await;
            attempt += 1;
            let reply = self.exchange(client).await;
            limiter.record(now(), permit, reply, &LimitReports::new());
            let (cost, first) = match reply {
                Reply::Done => {
                    match paid.take() {
                        Some(paid) => quota.release(paid),
                        None => quota.credit(1),
                    }
                    let waited = permit.time().as_nanos() - begun;
                    return self.tally.borrow_mut().finish(begun, waited, person);
                }
                Reply::Throttled(_) => (THROTTLE_COST, THROTTLE_BACKOFF),
                Reply::Failed => (FAILURE_COST, FAILURE_BACKOFF),
            };
            if self.scene.patient && matches!(reply, Reply::Throttled(_)) {
                attempt -= 1;
                self.back_off(now(), THROTTLE_BACKOFF, reply).await;
                continue;
            }
            if attempt >= ATTEMPTS {
                return give_up(false);
            }
            let longest = |first: u64, attempt: u32| (first << (attempt - 1)).min(LONGEST_BACKOFF);
            match limiter.retry() {
                Retry::AtOnce => {}
                Retry::Backoff => {
                    paid = quota.try_acquire(cost);
                    if paid.is_none() {
                        return give_up(true);
                    }
                    self.back_off(now(), longest(first, attempt), reply).await;
                }
                // Retries that the law rejects are used up, each with its sleep. They are drawn
                // now, not after the sleep before each.
                Retry::Throttled => {
                    let mut at = now();
                    while limiter.rejects_retry(self.rng.borrow_mut().u32(..)) {
                        at += self.draw(0..longest(THROTTLE_BACKOFF, attempt));
                        attempt += 1;
                        if attempt >= ATTEMPTS {
                            return give_up(true);
                        }
                    }
                    let most = longest(THROTTLE_BACKOFF, attempt);
                    self.back_off(at, most, reply).await;
                }
            }
        }
    }

    async fn ask_at(&self, at: u64) {
        self.until(at, ASK).await;
        self.tally.borrow_mut().wakes += 1;
    }

    /// Sends a request, and returns what the service answers.
    async fn exchange(&self, client: u32) -> Reply {
        let half = self.scene.trip(client) / 2;
        let spread = half * self.scene.jitter_percent / 100;
        let way = || half - spread + self.draw(0..=2 * spread);
        self.tally.borrow_mut().send();
        self.until(now() + way(), REACH).await;
        let reply = self.answer(client);
        self.until(now() + way(), hear(reply)).await;
        reply
    }

    fn answer(&self, client: u32) -> Reply {
        let mut service = self.service.borrow_mut();
        let reply = service.answer(now(), &mut self.rng.borrow_mut());
        let throttled = matches!(reply, Reply::Throttled(_));
        self.tally.borrow_mut().answer(now(), client, throttled);
        reply
    }

    /// Sleeps before the next attempt, `most` at most unless the service said so.
    async fn back_off(&self, from: u64, most: u64, reply: Reply) {
        let mut sleep = self.draw(0..most);
        if let Reply::Throttled(Some(hint)) = reply {
            sleep = hint.clamp(sleep, sleep + MOST_HINTED);
        }
        self.tally.borrow_mut().sleeps += 1;
        self.ask_at(from + sleep).await;
    }
}
