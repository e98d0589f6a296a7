//! Requests and tokens a second, of which each request takes both: 16 members whose estimates are
//! off by a factor of three, half of them to either side.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use paceline::Timestamp;

use crate::line::Place;
use crate::member::Member;
use crate::pool::{Pool, after};
use crate::script::ScriptEngine;
use crate::settings::Settings;

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

/// A process with both, one request in line, and those under way.
#[derive(Debug)]
struct Process {
    halves: [Half; 2],
    waiting: Option<(u32, [u32; 2], Vec<Place>)>,
    under_way: VecDeque<(Timestamp, [u32; 2], u32)>,
    over: bool,
}

/// What came of it: the used part of each limit, and how many requests were throttled.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) used: [f64; 2],
    pub(crate) throttled: u64,
}

impl Process {
    fn new(index: usize, now: Timestamp) -> Self {
        let half = |limit| {
            let settings = Settings::new(limit, Duration::from_secs(1)).expect("in range");
            Half {
                member: Member::new(settings, now),
                pool: Arc::new(Pool::new()),
            }
        };
        Self {
            halves: LIMITS.map(half),
            waiting: None,
            under_way: VecDeque::new(),
            over: index % 2 == 0,
        }
    }

    /// As `BudgetSet` takes it: returns what the request costs, once it has taken all.
    fn take(&mut self, now: Timestamp, random: &mut Rng) -> Option<(u32, [u32; 2])> {
        let over = self.over;
        let (cost, weights, mut places) = self.waiting.take().unwrap_or_else(|| {
            let cost = random.u32(100..=300);
            let estimate = if over { cost * 3 } else { cost / 3 };
            (cost, [1, estimate], Vec::new())
        });
        for (index, half) in self.halves.iter().enumerate() {
            if places.len() == index {
                places.push(Place::take(&half.pool, weights[index], false));
            }
            if places[index].look(now, None).is_err() {
                self.waiting = Some((cost, weights, places));
                return None;
            }
        }
        places.into_iter().for_each(Place::goes);
        Some((cost, weights))
    }

    /// Settles what was answered.
    fn settle(&mut self, now: Timestamp) {
        while let Some((due, weights, cost)) = self.under_way.front().copied() {
            if due > now {
                break;
            }
            self.under_way.pop_front();
            self.halves[1].pool.settle(weights[1], cost);
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
    let mut processes: Vec<_> = (0..MEMBERS)
        .map(|index| Process::new(index, start))
        .collect();
    let limits = LIMITS.map(f64::from);
    let (mut room, mut used, mut throttled) = (limits.map(|limit| limit * BURST), [0.0, 0.0], 0);
    let mut elapsed = Duration::ZERO;
    while elapsed < Duration::from_secs(LENGTH) {
        let now = after(start, elapsed);
        for (room, limit) in room.iter_mut().zip(limits) {
            *room = (*room + limit * TICK.as_secs_f64()).min(limit * BURST);
        }
        for (index, process) in processes.iter_mut().enumerate() {
            process.settle(now);
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
            while let Some((cost, weights)) = process.take(now, &mut random) {
                let costs = [1.0, f64::from(cost)];
                if room[0] < costs[0] || room[1] < costs[1] {
                    throttled += 1;
                } else {
                    for place in [0, 1] {
                        room[place] -= costs[place];
                        used[place] += if elapsed >= WARM_UP {
                            costs[place]
                        } else {
                            0.0
                        };
                    }
                }
                process
                    .under_way
                    .push_back((after(now, TRIP), weights, cost));
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
