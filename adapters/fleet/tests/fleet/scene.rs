//! An engine, a service and members, one scene at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use paceline_fleet::Away;

use crate::rig::engine::Engine;
use crate::rig::member::{Kind, Order, Process};
use crate::rig::record::{Record, number};
use crate::rig::service::{Limit, Service};

/// What a fleet of these tests may send per second, of a service that has room for more: it counts,
/// and does not throttle.
pub(crate) const ALLOWANCE: u32 = 1_000;
/// How many requests of one member are on their way at most.
const WORKERS: u32 = 16;
/// How far the service may see a fleet above that, in any window: what the engine keeps, what
/// `members` may hold, and what was on its way when the window began.
pub(crate) fn bound(members: u8) -> f64 {
    f64::from(ALLOWANCE) * (0.1 + 0.2) + f64::from(members) * f64::from(1 + WORKERS)
}
/// What fleets with [`Away::Alone`] may be above that: a second of everyone alone beside the
/// engine's own grants, while it is a matter of this machine's load who hears of whom.
pub(crate) const ALONE: f64 = 1_000.0;
/// How long a fleet has to use its allowance again. Seconds are the rule; others compete for these
/// processors.
pub(crate) const RECOVERY: Duration = Duration::from_secs(30);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The turn of a test. Each has the machine to itself: figures are made of time.
#[derive(Debug)]
pub(crate) struct Alone {
    _turn: MutexGuard<'static, ()>,
}

#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) engine: Engine,
    pub(crate) service: Service,
    pub(crate) members: Vec<Process>,
    _alone: Alone,
}

/// Waits for the turn of a test.
pub(crate) fn alone() -> Alone {
    let turn = ONE_AT_A_TIME.lock();
    Alone {
        _turn: turn.unwrap_or_else(PoisonError::into_inner),
    }
}

impl Scene {
    /// Starts an engine and a service, or returns `None` where there is no engine to start.
    pub(crate) async fn set() -> Option<Self> {
        let alone = alone();
        let engine = Engine::start(&[])?;
        let limit = Limit {
            rate: f64::from(ALLOWANCE) * 10.0,
            burst: f64::from(ALLOWANCE) * 10.0,
            trip: Duration::from_millis(5),
        };
        Some(Self {
            engine,
            service: Service::start(limit).await,
            members: Vec::new(),
            _alone: alone,
        })
    }

    /// Returns the order of a member that has more to send than the fleet may.
    pub(crate) fn order(&self, index: u8) -> Order {
        Order {
            allowance: ALLOWANCE,
            away: Away::Closed,
            workers: WORKERS,
            ..Order::new(
                Kind::Fleet,
                index,
                self.service.port(),
                self.engine.address(),
                Duration::from_secs(120),
            )
        }
    }

    pub(crate) fn start(&mut self, order: &Order) {
        let arguments = ["--exact", "member", "--ignored", "--nocapture"];
        self.members.push(order.start(&arguments));
    }

    pub(crate) fn start_many(&mut self, members: u8) {
        for index in 0..members {
            let order = self.order(index);
            self.start(&order);
        }
    }

    pub(crate) async fn pass(&self, millis: u64) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    /// Waits until `members` use the allowance, in equal parts, for a second; returns that, and how
    /// long it took.
    pub(crate) async fn used_again(&self, members: u8) -> (Part, Duration) {
        let began = self.service.now();
        loop {
            self.pass(250).await;
            let (part, took) = (self.last(1_000), self.service.now().saturating_sub(began));
            let (used, jain) = (part.used(), part.record.jain(members));
            if took >= Duration::from_secs(1) && used >= 0.95 && jain >= 0.97 {
                println!("used {used:.3} of the allowance, Jain {jain:.3}, {took:.1?} later");
                return (part, took);
            }
            assert!(took < RECOVERY, "used {used}, Jain {jain} after {took:?}");
        }
    }

    /// Returns what is seen in the next eight seconds.
    pub(crate) async fn steady(&self) -> Part {
        let from = self.service.now();
        self.pass(8_000).await;
        let now = self.service.now();
        Part {
            record: self.service.record().within(from, now),
            span: now.saturating_sub(from),
        }
    }

    /// Returns what was seen in the last `millis`.
    pub(crate) fn last(&self, millis: u64) -> Part {
        let now = self.service.now();
        let span = Duration::from_millis(millis);
        Part {
            record: self.service.record().within(now.saturating_sub(span), now),
            span,
        }
    }

    /// Prints what the service saw above the allowance, and fails if that is more than the bound
    /// and `more`.
    pub(crate) fn close(self, name: &str, members: u8, more: f64) {
        self.close_engines(1, name, members, more);
    }

    /// Like [`close`](Self::close), above what `engines` allow together, each a fleet of one.
    pub(crate) fn close_engines(self, engines: u8, name: &str, members: u8, more: f64) {
        let engines = f64::from(engines);
        let record = self.service.record();
        let excess = record.excess(f64::from(ALLOWANCE) * engines);
        let allowed = bound(members) * engines + more;
        println!(
            "{name}: at most {excess:.0} above the allowance in any window, of {allowed:.0} allowed"
        );
        assert!(excess <= allowed, "{name}: {excess} above the allowance");
    }
}

/// What was seen in a while.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) record: Record,
    span: Duration,
}

impl Part {
    /// Returns which share of the allowance was used.
    pub(crate) fn used(&self) -> f64 {
        number(self.record.delivered()) / f64::from(ALLOWANCE) / self.span.as_secs_f64()
    }

    /// Returns which share of it a member used.
    pub(crate) fn of(&self, member: u8) -> f64 {
        let by_member = self.record.by_member(member + 1);
        by_member[usize::from(member)] / f64::from(ALLOWANCE) / self.span.as_secs_f64()
    }
}
