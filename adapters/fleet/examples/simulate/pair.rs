//! Requests and tokens a second, of which each request takes both: 16 members with a strategy each,
//! whose estimates are off by a factor of three, half of them to either side.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use fastrand::Rng;
use paceline::operation::{Attempts, Next};
use paceline::strategy::Reports;
use paceline::{Clock, Failure, Operation, Standard, Timestamp};
use tokio::sync::watch;

use crate::budget::Budget;
use crate::member::Member;
use crate::pool::{Pool, after};
use crate::script::ScriptEngine;
use crate::set::BudgetSet;
use crate::settings::Settings;
use crate::snapshot::BudgetSnapshot;
use crate::strategy::FleetStrategy;

const MEMBERS: usize = 16;
/// What the service allows in a second: the tokens bind.
const LIMITS: [u32; 2] = [1_000, 60_000];
/// It takes a burst of ten seconds, answers after a second, and says then what a request cost: 200
/// tokens on average.
const BURST: f64 = 10.0;
const TRIP: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(5);
const LENGTH: u64 = 60;
/// What is not in the figures.
const WARM_UP: Duration = Duration::from_secs(10);

/// One member of one of the two scopes.
#[derive(Debug)]
struct Half {
    member: Member,
    pool: Arc<Pool>,
}

/// The time, set from outside.
#[derive(Debug, Default)]
struct Virtual(AtomicU64);

impl Clock for Virtual {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Relaxed))
    }
}

type Strategy = Arc<FleetStrategy<Standard, 2>>;

/// An operation, and what it really costs.
type Sends = (Attempts<Strategy>, u32);

/// A process with both, one request in line, and those under way.
#[derive(Debug)]
struct Process {
    halves: [Half; 2],
    strategy: Strategy,
    clock: Arc<Virtual>,
    waiting: Option<Sends>,
    under_way: VecDeque<(Timestamp, bool, Sends)>,
    over: bool,
}

/// What came of it: the used part of each limit, and how many requests were throttled.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) used: [f64; 2],
    pub(crate) throttled: u64,
}

impl Process {
    fn new(index: usize, clock: &Arc<Virtual>) -> Self {
        let half = |limit| {
            let settings = Settings::new(limit, Duration::from_secs(1)).expect("in range");
            Half {
                member: Member::new(settings, clock.now()),
                pool: Arc::new(Pool::new()),
            }
        };
        let halves = LIMITS.map(half);
        let budget = |half: &Half| {
            let (_, seen) = watch::channel(BudgetSnapshot::default());
            Budget::new(Arc::clone(&half.pool), clock.clone(), None, seen)
        };
        let set = BudgetSet::new(halves.each_ref().map(budget)).expect("two members");
        let inside = Standard::builder().clock(clock.clone()).build();
        let inside = inside.expect("in range");
        Self {
            halves,
            strategy: Arc::new(FleetStrategy::of_set(inside, set)),
            clock: Arc::clone(clock),
            waiting: None,
            under_way: VecDeque::new(),
            over: index % 2 == 0,
        }
    }

    /// Returns the next operation, once its attempt is let go.
    fn take(&mut self, random: &mut Rng) -> Option<Sends> {
        let (mut attempts, cost) = self.waiting.take().unwrap_or_else(|| {
            let cost = random.u32(100..=300);
            let estimate = if self.over { cost * 3 } else { cost / 3 };
            let operation = Operation::new(Arc::clone(&self.strategy)).weights([1, estimate]);
            (operation.start(), cost)
        });
        match attempts.next(&*self.clock, None) {
            Next::Send(_) => Some((attempts, cost)),
            Next::InLine(_) => {
                self.waiting = Some((attempts, cost));
                None
            }
            other => panic!("{other:?}"),
        }
    }

    /// Reports what was answered, and settles it.
    fn settle(&mut self) {
        let (now, reports) = (self.clock.now(), Reports::at(&*self.clock));
        while self.under_way.front().is_some_and(|(due, ..)| *due <= now) {
            let Some((_, throttled, (mut attempts, cost))) = self.under_way.pop_front() else {
                break;
            };
            let charge = attempts.charge().expect("it is under way");
            if throttled {
                let failed = attempts.failed(&Failure::throttling(), reports);
                failed.expect("it is under way");
            } else {
                attempts.succeeded(reports).expect("it is under way");
            }
            charge.settle(&[1, cost]).expect("two costs");
        }
    }
}

/// Plays it, with the engine's script.
pub(crate) fn play() -> Came {
    fastrand::seed(7);
    let mut random = Rng::with_seed(7);
    let mut engines = [ScriptEngine::new(), ScriptEngine::new()];
    let settings =
        LIMITS.map(|limit| Settings::new(limit, Duration::from_secs(1)).expect("in range"));
    let start = Timestamp::from_nanos(1_000_000_000);
    let clock = Arc::new(Virtual(AtomicU64::new(start.as_nanos())));
    let mut processes: Vec<_> = (0..MEMBERS)
        .map(|index| Process::new(index, &clock))
        .collect();
    let limits = LIMITS.map(f64::from);
    let (mut room, mut used, mut throttled) = (limits.map(|limit| limit * BURST), [0.0, 0.0], 0);
    let mut elapsed = Duration::ZERO;
    while elapsed < Duration::from_secs(LENGTH) {
        let now = after(start, elapsed);
        clock.0.store(now.as_nanos(), Relaxed);
        for (room, limit) in room.iter_mut().zip(limits) {
            *room = (*room + limit * TICK.as_secs_f64()).min(limit * BURST);
        }
        for (index, process) in processes.iter_mut().enumerate() {
            process.settle();
            for (half, (engine, settings)) in process
                .halves
                .iter_mut()
                .zip(engines.iter_mut().zip(&settings))
            {
                half.member.tick(now, &half.pool);
                if half.member.is_due(now, &half.pool) {
                    let ask = half.member.ask(now, &half.pool);
                    let micros = u64::try_from(elapsed.as_micros()).expect("a short time");
                    let answer = engine.take(micros, &index.to_string(), &ask.words(settings));
                    let answer = ask
                        .read(&answer.expect("the script answers"))
                        .expect("an answer");
                    half.member.answered(now, now, answer, &half.pool);
                }
            }
            while let Some((attempts, cost)) = process.take(&mut random) {
                let costs = [1.0, f64::from(cost)];
                let is_served = room[0] >= costs[0] && room[1] >= costs[1];
                throttled += u64::from(!is_served);
                for place in [0, 1] {
                    let cost = if is_served { costs[place] } else { 0.0 };
                    room[place] -= cost;
                    used[place] += if elapsed >= WARM_UP { cost } else { 0.0 };
                }
                let answer = (after(now, TRIP), !is_served, (attempts, cost));
                process.under_way.push_back(answer);
            }
        }
        elapsed += TICK;
    }
    let span = elapsed.saturating_sub(WARM_UP).as_secs_f64();
    Came {
        used: [used[0] / limits[0] / span, used[1] / limits[1] / span],
        throttled,
    }
}

impl Came {
    pub(crate) fn row(&self) -> String {
        format!(
            "requests and tokens, 16 members, estimates off by 3: used {:.3} and {:.3}, {} throttled",
            self.used[0], self.used[1], self.throttled
        )
    }

    /// Returns which promise was not kept.
    pub(crate) fn wrong(&self) -> Option<String> {
        let kept = self.used[1] >= 0.99 && self.used[1] <= 1.01 && self.throttled == 0;
        (!kept).then(|| format!("pair: {}", self.row()))
    }
}
