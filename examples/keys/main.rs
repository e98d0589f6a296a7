//! Eight keys of 40 requests a minute behind one call, and 64 workers, in virtual time: a pool
//! beside keys that are picked before the wait.
//!
//! ```text
//! cargo run --release -p paceline-examples --bin keys [-- --svg examples/keys/chart.svg]
//! ```
//!
//! The service says nothing of its limits: it counts whole minutes, and answers with 429. The paced
//! law learns the limit of each key. All requests wait by wakers and timers of a
//! [`SendLimiter`].
#![allow(
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "an example: its numbers are small, and for people to read"
)]

extern crate alloc;

#[path = "../common/mod.rs"]
mod common;
#[cfg(test)]
mod tests;

use alloc::{rc::Rc, sync::Arc};
use core::cell::Cell;
use std::{fs, io, path::PathBuf};

use clap::Parser;
use paceline::{ControlLaw, Outcome, SendLimiter, SendPool, SendRate, Timestamp};

use common::{
    chart::{Bars, Chart, Panel, steps},
    number, policer, table, tally, time,
};
use number::share;
use policer::{Counting, Policer};
use tally::{Bin, quantile};
use time::{MILLI, SECOND, Virtual, now};

const KEYS: usize = 8;
const WORKERS: usize = 64;
/// The requests of a key in each minute.
const LIMIT: u64 = 40;
const MINUTE: u64 = 60 * SECOND;
/// What is not counted: the law finds the limits.
const BEGINNING: u64 = 10 * MINUTE;
const END: u64 = 70 * MINUTE;

/// Which key serves a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Picked at random, before the wait.
    Random,
    /// One after the other, before the wait.
    InTurn,
    /// The first that lets it go.
    Pool,
}

impl Mode {
    const ALL: [Self; 3] = [Self::Random, Self::InTurn, Self::Pool];

    const fn name(self) -> &'static str {
        match self {
            Self::Random => "a key picked at random",
            Self::InTurn => "the keys in turn",
            Self::Pool => "SendPool",
        }
    }
}

/// What happened after the beginning, and each minute from the start.
#[derive(Debug)]
struct Tally {
    done: [u64; KEYS],
    throttled: u64,
    waits: Vec<u64>,
    minutes: Vec<Bin>,
}

impl Tally {
    fn sum(&self) -> u64 {
        self.done.iter().sum()
    }

    /// Returns the part of all limits that was used.
    fn used(&self) -> f64 {
        share(self.sum(), LIMIT * KEYS as u64 * (END - BEGINNING) / MINUTE)
    }

    /// Returns the part of the requests that was throttled, in percent.
    fn refused(&self) -> f64 {
        100.0 * share(self.throttled, self.sum() + self.throttled)
    }

    /// Returns a quantile of the waits for a turn, in seconds.
    fn wait(&self, permille: usize) -> f64 {
        quantile(&self.waits, permille) as f64 / 1e9
    }
}

type Keys = [SendLimiter<Arc<SendRate>, Virtual, Virtual>; KEYS];
type Pool = SendLimiter<SendPool<Arc<SendRate>, KEYS>, Virtual, Virtual>;
type World = common::world::World<(Mode, Cell<usize>), (Keys, Pool), [Policer; KEYS], Tally>;

impl World {
    /// Waits for a turn, and returns the key and what records the outcome.
    async fn turn(&self) -> (usize, impl FnOnce(Outcome)) {
        let ((mode, next), (keys, pool)) = (&self.scene, &self.limiters[0]);
        let key = match mode {
            Mode::Random => self.draw(0..KEYS as u64) as usize,
            Mode::InTurn => next.replace((next.get() + 1) % KEYS),
            Mode::Pool => {
                let permit = pool.clone().into_tokens(1).acquire().await;
                let permit = permit.expect("no deadline");
                let record: Box<dyn FnOnce(Outcome)> =
                    Box::new(move |outcome| pool.record(permit, outcome));
                return (permit.index(), record);
            }
        };
        let permit = keys[key].clone().into_tokens(1).acquire().await;
        let permit = permit.expect("no deadline");
        (
            key,
            Box::new(move |outcome| keys[key].record(permit, outcome)),
        )
    }

    async fn work(self: Rc<Self>) {
        loop {
            let asked = now();
            let (key, record) = self.turn().await;
            let waited = now() - asked;
            let half = || self.draw(190 * MILLI..310 * MILLI);
            time::sleep_until(now() + half()).await;
            let done = self.answer(key, waited);
            time::sleep_until(now() + half()).await;
            record(if done {
                Outcome::NotThrottled
            } else {
                Outcome::Throttled
            });
        }
    }

    /// Lets the service answer a request with `key`: whether it is done.
    fn answer(&self, key: usize, waited: u64) -> bool {
        let (service, mut tally) = (&mut self.service.borrow_mut()[key], self.tally.borrow_mut());
        let done = service.look(now(), LIMIT) > 0;
        service.take(done);
        let minute = &mut tally.minutes[(now() / MINUTE) as usize];
        if done {
            minute.admitted += 1;
        } else {
            minute.refused += 1;
        }
        if now() >= BEGINNING {
            tally.done[key] += u64::from(done);
            tally.throttled += u64::from(!done);
            tally.waits.push(waited);
        }
        done
    }
}

fn play(mode: Mode, seed: u64) -> Tally {
    let rates: [_; KEYS] =
        core::array::from_fn(|_| Arc::new(SendRate::new(ControlLaw::Paced, Timestamp::ZERO)));
    let keys = rates
        .clone()
        .map(|rate| SendLimiter::new(rate).clock(Virtual).sleep_on(Virtual));
    let pool = SendPool::new(rates).expect("eight keys");
    let pool = SendLimiter::new(pool).clock(Virtual).sleep_on(Virtual);
    let service = [(); KEYS].map(|()| Policer::new(Counting::Window, MINUTE, None, LIMIT));
    let tally = Tally {
        done: [0; KEYS],
        throttled: 0,
        waits: Vec::new(),
        minutes: vec![Bin::default(); (END / MINUTE + 1) as usize],
    };
    let scene = ((mode, Cell::new(0)), [(keys, pool)].into_iter());
    let mut tally = World::play(scene, (service, tally), (seed, END), |world| {
        for _ in 0..WORKERS {
            time::spawn(Rc::clone(world).work());
        }
    });
    tally.waits.sort_unstable();
    tally
}

const COLUMNS: &[table::Column<(Mode, Tally)>] = &[
    ("key", |(mode, _)| mode.name().to_owned()),
    ("used", |(_, tally)| format!("{:.3}", tally.used())),
    ("throttled", |(_, tally)| {
        format!("{:.2} %", tally.refused())
    }),
    ("least used key", |(_, tally)| {
        let least = tally.done.iter().min().copied().unwrap_or(0);
        let whole = LIMIT * (END - BEGINNING) / MINUTE;
        format!("{:.3}", share(least, whole))
    }),
    ("wait p50, s", |(_, tally)| {
        format!("{:.1}", tally.wait(500))
    }),
    ("wait p99, s", |(_, tally)| {
        format!("{:.1}", tally.wait(990))
    }),
];

fn chart(runs: &[(Mode, Tally)]) -> String {
    let minutes = (END / MINUTE) as f64;
    let all = (LIMIT * KEYS as u64) as f64;
    let chart = Chart {
        title: "Eight keys of 40 requests a minute, and 64 workers".to_owned(),
        setting:
            "Virtual time. The service counts whole minutes for each key and says nothing of its \
                  limits: the paced law learns them from 429. A trip takes 0.38 to 0.62 s."
                .to_owned(),
        columns: runs.len(),
        rate: ["requests", "minute"],
        across: "minutes".to_owned(),
        end: minutes,
        highest: all * 1.2,
        limit: vec![(0.0, minutes, all)],
        bars: Some(Bars {
            unit: "% of a limit",
            most: 100.0,
            step: None,
        }),
    };
    let panels = runs.iter().map(|(mode, tally)| {
        let whole = LIMIT * (END - BEGINNING) / MINUTE;
        let bars = tally.done.iter().map(|done| 100.0 * share(*done, whole));
        Panel {
            name: mode.name().to_owned(),
            lines: [
                format!("{:.1} % of the limits used", 100.0 * tally.used()),
                format!("{:.2} % throttled", tally.refused()),
            ],
            steps: steps(&tally.minutes[..(END / MINUTE) as usize], 1, 1.0),
            bars: (bars.collect(), "what of each key was used".to_owned()),
        }
    });
    chart.draw(&panels.collect::<Vec<_>>())
}

/// Plays a pool of eight keys in virtual time.
#[derive(Debug, Parser)]
#[command(name = "keys")]
struct Options {
    /// The seed
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,

    /// Draws the chart into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

fn main() -> io::Result<()> {
    let options = Options::parse();
    let runs = Mode::ALL.map(|mode| (mode, play(mode, options.seed)));
    println!("{}", table::text(&table::rows(COLUMNS, &runs), true));
    match options.svg {
        Some(file) => fs::write(file, chart(&runs)),
        None => Ok(()),
    }
}
