//! Discrete events in virtual time: clients, their operations, and the network between them and the
//! service.

use fastrand::Rng;
use paceline::{QuotaPermit, RetryQuota, SendPermit, Timestamp};

use crate::law::{Law, Retry, Seat};
use crate::laws::{Entry, sdk};
use crate::queue::Queue;
use crate::scene::{Load, MILLI, Scene};
use crate::service::{Reply, Service};
use crate::tally::Tally;

/// How often an operation is tried.
const ATTEMPTS: u32 = 4;
/// What a retry after a throttle costs, and after another failure.
const THROTTLE_COST: u32 = 5;
const FAILURE_COST: u32 = 14;
/// The most that the first retry waits after a throttle, after another failure, and that any retry
/// waits.
const THROTTLE_BACKOFF: u64 = 1_000 * MILLI;
const FAILURE_BACKOFF: u64 = 50 * MILLI;
const LONGEST_BACKOFF: u64 = 20_000 * MILLI;
/// How much longer than its backoff a retry waits at most because the service said so.
const MOST_HINTED: u64 = 5_000 * MILLI;

/// What a task does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A client that does not wait for earlier operations begins another one.
    Arrive,
    /// An operation begins.
    Begin,
    /// It asks whether it may send.
    Ask,
    /// Its request reaches the service.
    Reach,
    /// The answer reaches the client.
    Hear(Reply),
}

impl Step {
    /// Returns a number for the checksum.
    fn kind(self) -> u64 {
        match self {
            Self::Arrive => 0,
            Self::Begin => 1,
            Self::Ask => 2,
            Self::Reach => 3,
            Self::Hear(Reply::Done) => 4,
            Self::Hear(Reply::Failed) => 5,
            Self::Hear(Reply::Throttled(hint)) => 6 + hint.unwrap_or(0),
        }
    }
}

/// One operation at a time: a worker, or an operation of an open client.
struct Task<'a> {
    client: u32,
    /// Whether someone waits for it, beside a load that can wait.
    person: bool,
    step: Step,
    attempt: u32,
    begun: u64,
    permit: SendPermit,
    seat: Option<Seat<'a>>,
    paid: Option<QuotaPermit>,
}

/// Everything there is in one run.
struct World<'a> {
    scene: Scene,
    laws: &'a [Box<dyn Law>],
    quotas: Vec<RetryQuota>,
    service: Service,
    rng: Rng,
    events: Queue,
    /// Tells apart events of the same instant: first come, first served.
    serial: u64,
    tasks: Vec<Task<'a>>,
    free: Vec<usize>,
    tally: Tally,
}

/// Plays `scene` with clients that limit themselves by `law`, and returns what happened.
pub(crate) fn play(scene: &Scene, law: &Entry, seed: u64) -> Tally {
    let laws: Vec<_> = (0..scene.clients)
        .map(|client| match client % 2 {
            1 if scene.mixed => sdk(scene),
            _ => (law.limiter)(scene),
        })
        .collect();
    let mut world = World::new(scene, &laws, seed);
    world.start();
    world.run();
    world.tally
}

impl<'a> World<'a> {
    fn new(scene: &Scene, laws: &'a [Box<dyn Law>], seed: u64) -> Self {
        Self {
            scene: *scene,
            laws,
            quotas: laws.iter().map(|_| RetryQuota::new(scene.quota)).collect(),
            service: Service::new(scene),
            rng: Rng::with_seed(seed),
            events: Queue::new(),
            serial: 0,
            tasks: Vec::new(),
            free: Vec::new(),
            tally: Tally::new(scene),
        }
    }

    /// Has every client begin.
    fn start(&mut self) {
        for client in 0..self.scene.clients {
            let at = u64::from(client) * self.scene.stagger_ms * MILLI;
            match self.scene.load {
                Load::Closed(workers) => (0..workers).for_each(|_| {
                    // Threads do not all start in the same nanosecond.
                    let at = at + self.rng.u64(0..MILLI);
                    self.spawn((client, false), Step::Begin, at);
                }),
                Load::Open(_) => self.spawn((client, false), Step::Arrive, at),
            }
            if self.scene.people > 0 {
                self.spawn((client, true), Step::Arrive, at);
            }
        }
    }

    fn run(&mut self) {
        let end = self.scene.seconds * 1_000 * MILLI;
        while let Some(event) = self.events.pop() {
            let (now, task) = unpack(event);
            if now >= end {
                break;
            }
            // One limiter can be drawn over time; a line for each of many cannot.
            if let [law] = self.laws {
                self.tally.allow(now, |at| law.allowed(at));
            }
            self.tally.event(now, task, self.tasks[task].step.kind());
            self.advance(now, task);
        }
    }

    fn advance(&mut self, now: u64, task: usize) {
        match self.tasks[task].step {
            Step::Arrive => self.arrive(now, task),
            Step::Begin => self.begin(now, task),
            Step::Ask => {
                self.tally.wake();
                self.ask(now, task);
            }
            Step::Reach => self.reach(now, task),
            Step::Hear(reply) => self.hear(now, task, reply),
        }
    }

    fn arrive(&mut self, now: u64, task: usize) {
        let Task { client, person, .. } = self.tasks[task];
        let rate = match self.scene.load {
            _ if person => self.scene.people,
            Load::Open(rate) => rate,
            Load::Closed(_) => return,
        };
        let wanting = self.scene.wanting(now);
        if wanting == now {
            self.spawn((client, person), Step::Begin, now);
        }
        let mean = 1_000 * MILLI / rate;
        let gap = self.rng.u64(0..=2 * mean);
        self.after(task, Step::Arrive, wanting.max(now + gap));
    }

    fn begin(&mut self, now: u64, task: usize) {
        let wanting = self.scene.wanting(now);
        if wanting > now {
            return self.after(task, Step::Begin, wanting);
        }
        let operation = &mut self.tasks[task];
        (operation.begun, operation.attempt, operation.paid) = (now, 0, None);
        self.ask(now, task);
    }

    fn ask(&mut self, now: u64, task: usize) {
        let operation = &mut self.tasks[task];
        let law = &self.laws[operation.client as usize];
        let asked = if self.scene.people > 0 && !operation.person {
            law.ask_behind(now, &mut operation.seat)
        } else {
            law.ask(now, &mut operation.seat)
        };
        match asked {
            Ok(permit) => {
                (operation.permit, operation.seat) = (permit, None);
                operation.attempt += 1;
                self.tally.send(now);
                let way = self.half_trip(task);
                self.after(task, Step::Reach, now + way);
            }
            Err(wait) => self.after(task, Step::Ask, now.saturating_add(wait)),
        }
    }

    fn half_trip(&mut self, task: usize) -> u64 {
        let half = self.scene.trip(self.tasks[task].client) / 2;
        let spread = half * self.scene.jitter_percent / 100;
        half - spread + self.rng.u64(0..=2 * spread)
    }

    fn reach(&mut self, now: u64, task: usize) {
        let reply = self.service.answer(now, &mut self.rng);
        let throttled = matches!(reply, Reply::Throttled(_));
        self.tally.answer(now, self.tasks[task].client, throttled);
        let way = self.half_trip(task);
        self.after(task, Step::Hear(reply), now + way);
    }

    fn hear(&mut self, now: u64, task: usize, reply: Reply) {
        let operation = &mut self.tasks[task];
        let client = operation.client as usize;
        self.laws[client].record(now, operation.permit, reply);
        if reply != Reply::Done {
            return self.fail(now, task, reply);
        }
        let waited = operation.permit.time().as_nanos() - operation.begun;
        match operation.paid.take() {
            Some(paid) => self.quotas[client].release(paid),
            None => self.quotas[client].credit(1),
        }
        self.tally.finish(waited);
        if operation.person {
            self.tally.serve(operation.begun, waited);
        }
        self.end(now, task);
    }

    /// Tries once more, or gives up.
    fn fail(&mut self, now: u64, task: usize, reply: Reply) {
        let operation = &mut self.tasks[task];
        if self.scene.patient && matches!(reply, Reply::Throttled(_)) {
            operation.attempt -= 1;
            return self.back_off(now, task, THROTTLE_BACKOFF, reply);
        }
        if operation.attempt >= ATTEMPTS {
            self.tally.give_up(false);
            return self.end(now, task);
        }
        let law = &self.laws[operation.client as usize];
        let retry = law.retry();
        if retry == Retry::AtOnce {
            return self.ask(now, task);
        }
        if retry == Retry::Throttled {
            return self.back_off_throttled(now, task, reply);
        }
        let (cost, most) = match reply {
            Reply::Throttled(_) => (THROTTLE_COST, THROTTLE_BACKOFF),
            Reply::Done | Reply::Failed => (FAILURE_COST, FAILURE_BACKOFF),
        };
        operation.paid = self.quotas[operation.client as usize].try_acquire(cost);
        if operation.paid.is_none() {
            self.tally.give_up(true);
            return self.end(now, task);
        }
        let most = (most << (operation.attempt - 1)).min(LONGEST_BACKOFF);
        self.back_off(now, task, most, reply);
    }

    /// Sleeps before the next attempt that is sent, if there is one: those that the law rejects are
    /// used up, each with its sleep. They are drawn now, not after the sleep before each.
    fn back_off_throttled(&mut self, now: u64, task: usize, reply: Reply) {
        let operation = &mut self.tasks[task];
        let law = &self.laws[operation.client as usize];
        let mut at = now;
        loop {
            let most = (THROTTLE_BACKOFF << (operation.attempt - 1)).min(LONGEST_BACKOFF);
            if !law.rejects_retry(self.rng.u32(..)) {
                return self.back_off(at, task, most, reply);
            }
            at += self.rng.u64(0..most);
            operation.attempt += 1;
            if operation.attempt >= ATTEMPTS {
                self.tally.give_up(true);
                return self.end(now, task);
            }
        }
    }

    /// Sleeps before the next attempt, `most` at most unless the service said so.
    fn back_off(&mut self, now: u64, task: usize, most: u64, reply: Reply) {
        let mut sleep = self.rng.u64(0..most);
        if let Reply::Throttled(Some(hint)) = reply {
            sleep = hint.clamp(sleep, sleep + MOST_HINTED);
        }
        self.tasks[task].step = Step::Ask;
        self.tally.sleep();
        self.after(task, Step::Ask, now + sleep);
    }

    /// Ends an operation; a worker begins the next one.
    fn end(&mut self, now: u64, task: usize) {
        match self.scene.load {
            Load::Closed(_) if !self.tasks[task].person => self.begin(now, task),
            Load::Closed(_) | Load::Open(_) => self.free.push(task),
        }
    }

    fn spawn(&mut self, (client, person): (u32, bool), step: Step, at: u64) {
        let task = Task {
            client,
            person,
            step,
            attempt: 0,
            begun: at,
            permit: SendPermit::sent_at(Timestamp::ZERO),
            seat: None,
            paid: None,
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
        self.events.push(pack(at, self.serial, task));
    }
}

/// One event as a number that orders by time, then by serial. Low bits first: 24 of task, 40 of
/// serial, 64 of time.
fn pack(at: u64, serial: u64, task: usize) -> u128 {
    (u128::from(at) << 64) | (u128::from(serial & ((1 << 40) - 1)) << 24) | task as u128
}

fn unpack(event: u128) -> (u64, usize) {
    ((event >> 64) as u64, event as usize & ((1 << 24) - 1))
}
