//! A trial: half a minute of faults, and a quarter without.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;
use turmoil::{Builder, Sim};

use crate::engine::{Disk, serve};
use crate::member::{Orders, run};
use crate::record::{Record, number};

const SECOND: Duration = Duration::from_secs(1);
/// How long a message takes at most where members differ, in milliseconds.
const FARTHEST: u64 = 100;
const FAULTY: Duration = Duration::from_secs(30);
const WHOLE: Duration = Duration::from_secs(45);
/// From when on, after the last fault, everything is to be as before.
const RECOVERED: Duration = Duration::from_secs(37);

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Faults {
    Kills,
    Partitions,
    Restarts,
    Forgets,
    /// All of these.
    Mixed,
    /// Nothing, but that members differ: in their distance, which changes, and in their leases,
    /// which change with each start.
    Differences,
}

/// A fleet and its luck.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    faults: Faults,
    seed: u64,
    members: u8,
    rate: u32,
    /// What each member may send alone at least.
    safe_rate: u32,
    /// One way, at most.
    latency: Duration,
    /// What the engine counts for a second, in thousandths. A broken twin counts others.
    pub(crate) pace: u32,
}

/// What has happened.
#[derive(Debug, Default)]
struct Happened {
    /// Members that were started, the first ones among them.
    started: u32,
    /// How often the engine lost its memory.
    forgot: u32,
    engine_is_down: bool,
}

impl Trial {
    pub(crate) fn draw(faults: Faults, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let members = random.u8(2..=8);
        let rate = random.u32(200..=2_000);
        Self {
            faults,
            seed,
            members,
            rate,
            safe_rate: (rate / 10 / u32::from(members)).max(1),
            latency: Duration::from_millis(random.u64(1..=15)),
            pace: 1_000,
        }
    }

    /// Plays it, or returns what was wrong.
    pub(crate) fn play(&self) -> Result<(), String> {
        let mut random = Rng::with_seed(!self.seed);
        fastrand::seed(self.seed);
        let mut sim = Builder::new()
            .rng_seed(self.seed)
            .simulation_duration(WHOLE + SECOND)
            .min_message_latency(Duration::from_millis(1))
            .max_message_latency(self.latency)
            .tcp_capacity(1 << 12)
            .build();
        let disk = Rc::new(Disk::new(self.pace));
        let sent = Rc::new(RefCell::new(Record::default()));
        let on_disk = Rc::clone(&disk);
        sim.host("engine", move || serve(Rc::clone(&on_disk)));
        let differ = self.differs();
        for number in 0..self.members {
            let (orders, sent) = (self.orders(number, &mut random), Rc::clone(&sent));
            let leases = RefCell::new(Rng::with_seed(self.seed + u64::from(number)));
            sim.host(name(number), move || {
                let lease = if differ {
                    leases.borrow_mut().u64(20..=1_000)
                } else {
                    200
                };
                run(orders, Duration::from_millis(lease), Rc::clone(&sent))
            });
        }
        let mut happened = Happened {
            started: u32::from(self.members),
            ..Happened::default()
        };
        let mut next = SECOND;
        while sim.elapsed() < FAULTY {
            sim.step().map_err(|error| error.to_string())?;
            if sim.elapsed() >= next {
                self.happen(&mut sim, &disk, &mut random, &mut happened);
                next += Duration::from_millis(random.u64(50..3_000));
            }
        }
        self.heal(&mut sim, &happened);
        while sim.elapsed() < WHOLE {
            sim.step().map_err(|error| error.to_string())?;
        }
        drop(sim);
        let mut sent = sent.take();
        sent.0.sort_by_key(|arrival| arrival.at);
        self.judge(&sent, &happened, disk.granted())
    }

    fn orders(&self, number: u8, random: &mut Rng) -> Orders {
        Orders {
            rate: self.rate,
            safe_rate: self.safe_rate,
            number,
            seed: random.u64(..),
        }
    }

    fn happen(&self, sim: &mut Sim<'_>, disk: &Disk, random: &mut Rng, happened: &mut Happened) {
        let member = name(random.u8(..self.members));
        let one = match random.u32(..4) {
            0 => Faults::Kills,
            1 => Faults::Restarts,
            2 => Faults::Forgets,
            _ => Faults::Partitions,
        };
        match if self.faults == Faults::Mixed {
            one
        } else {
            self.faults
        } {
            Faults::Kills => {
                sim.crash(member.as_str());
                sim.bounce(member.as_str());
                happened.started += 1;
            }
            Faults::Restarts | Faults::Forgets if happened.engine_is_down => {
                sim.bounce("engine");
                happened.engine_is_down = false;
            }
            restart @ (Faults::Restarts | Faults::Forgets) => {
                sim.crash("engine");
                happened.engine_is_down = true;
                if restart == Faults::Forgets {
                    disk.forget();
                    happened.forgot += 1;
                }
            }
            Faults::Differences => {
                if random.u32(..4) == 0 {
                    sim.crash(member.as_str());
                    sim.bounce(member.as_str());
                    happened.started += 1;
                }
                let far = Duration::from_millis(random.u64(1..=FARTHEST));
                sim.set_link_max_message_latency("engine", member.as_str(), far);
            }
            Faults::Partitions | Faults::Mixed => match random.u32(..5) {
                0 => sim.partition("engine", member.as_str()),
                1 => sim.partition_oneway("engine", member.as_str()),
                2 => sim.partition_oneway(member.as_str(), "engine"),
                _ => self.reconnect(sim),
            },
        }
    }

    fn reconnect(&self, sim: &mut Sim<'_>) {
        for number in 0..self.members {
            sim.repair("engine", name(number));
        }
    }

    fn heal(&self, sim: &mut Sim<'_>, happened: &Happened) {
        self.reconnect(sim);
        if happened.engine_is_down {
            sim.bounce("engine");
        }
    }

    /// Within a second a member has its first tokens, or finds that the engine is away: two if the
    /// engine is far. Alone it sends its safe rate.
    fn longest_gap(&self) -> Duration {
        let finds = if self.differs() { 2 } else { 1 };
        finds * SECOND + 2 * SECOND / self.safe_rate
    }

    fn differs(&self) -> bool {
        self.faults == Faults::Differences
    }

    /// Holds what was sent to what the crate's documentation states.
    fn judge(&self, sent: &Record, happened: &Happened, granted: u64) -> Result<(), String> {
        let rate = f64::from(self.rate);
        // `C` and `H`: one and a half times the longest lease at the allowance, and a token for each
        // member.
        let lease = if self.differs() { 1.0 } else { 0.2 };
        let held = 1.5 * lease * rate + f64::from(happened.started);
        let forgot = f64::from(happened.forgot);
        let safe = f64::from(self.safe_rate) * f64::from(self.members);
        let alone = match self.faults {
            Faults::Kills | Faults::Differences => 0.0,
            Faults::Restarts => safe,
            Faults::Partitions => rate + safe,
            // Each loss of the engine's memory may lend the allowance once more.
            Faults::Forgets => forgot * rate + safe,
            Faults::Mixed => (1.0 + forgot) * rate + safe,
        };
        let (allowed, burst) = (rate + alone, (1.0 + forgot) * held);
        let most = sent.excess(allowed);
        if most > burst {
            return Err(format!("{most} above {allowed}/s, of {burst} stated"));
        }
        let gap = sent.longest_gap(self.members, SECOND, FAULTY);
        if gap > self.longest_gap() {
            return Err(format!("a member sent nothing for {gap:?}"));
        }
        if self.faults == Faults::Kills && number(sent.sent()) > number_of(granted) {
            return Err(format!("{} sent, {granted} granted", sent.sent()));
        }
        let calm = sent.within(RECOVERED, WHOLE);
        let span = WHOLE.as_secs_f64() - RECOVERED.as_secs_f64();
        let above = calm.excess(rate);
        if above > held {
            return Err(format!("{above} above the allowance afterwards"));
        }
        let used = number(calm.sent()) / (rate * span);
        if used < 0.97 {
            return Err(format!("used {used:.3} of the allowance afterwards"));
        }
        let fair = calm.jain(self.members);
        // With round trips and leases that differ each has a tenth less than its part, or more.
        let least = if self.differs() { 0.95 } else { 0.98 };
        if fair < least {
            return Err(format!("Jain's index {fair:.3} afterwards"));
        }
        Ok(())
    }
}

fn name(number: u8) -> String {
    format!("member-{number}")
}

#[expect(clippy::cast_precision_loss, reason = "a count of a test")]
const fn number_of(count: u64) -> f64 {
    count as f64
}
