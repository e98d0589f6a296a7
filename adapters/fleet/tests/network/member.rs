//! A process of a member: workers that always want to send, and some that do not wait to the end.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use paceline::{Clock, Outcome, SendPermit, Timestamp};
use paceline_fleet::{Budget, Fleet};
use tokio::time::{Instant, sleep, timeout};

use crate::record::{Arrival, Record};

const SECOND: Duration = Duration::from_secs(1);
const WORKERS: usize = 24;

/// A clock that goes with the simulated host's.
#[derive(Debug)]
struct HostClock(Instant);

impl Clock for HostClock {
    fn now(&self) -> Timestamp {
        let nanos = self.0.elapsed().as_nanos();
        Timestamp::from_nanos(u64::try_from(nanos).expect("in range"))
    }
}

/// What a member is started with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Orders {
    pub(crate) rate: u32,
    pub(crate) safe_rate: u32,
    pub(crate) number: u8,
    pub(crate) seed: u64,
}

/// Joins the fleet with this lease, and sends until the process is killed.
pub(crate) async fn run(
    orders: Orders,
    lease: Duration,
    sent: Rc<RefCell<Record>>,
) -> turmoil::Result {
    let fleet = Fleet::open("redis://engine:6379")?;
    let scope = fleet.scope("scope", orders.rate, SECOND)?;
    let scope = scope.safe_rate(orders.safe_rate, SECOND)?.lease(lease)?;
    let budget = scope.clock(Arc::new(HostClock(Instant::now()))).join()?;
    let mut random = Rng::with_seed(orders.seed);
    for _ in 0..WORKERS {
        let (budget, sent, random) = (budget.clone(), Rc::clone(&sent), random.fork());
        tokio::task::spawn_local(work(orders.number, budget, sent, random));
    }
    std::future::pending().await
}

async fn work(member: u8, budget: Budget, sent: Rc<RefCell<Record>>, mut random: Rng) {
    loop {
        if let Some(permit) = ask(&budget, &mut random).await {
            sent.borrow_mut().0.push(Arrival {
                at: turmoil::sim_elapsed().expect("in the simulation"),
                member,
                throttled: false,
            });
            sleep(Duration::from_millis(random.u64(0..10))).await;
            budget.record(permit, Outcome::NotThrottled);
        }
    }
}

/// Waits for a token: to the end, until a deadline, or until it is given up.
async fn ask(budget: &Budget, random: &mut Rng) -> Option<SendPermit> {
    let span = Duration::from_millis(random.u64(0..60));
    match random.u32(..10) {
        0 => timeout(span, budget.acquire()).await.ok(),
        1 => {
            let permit = budget.acquire_before(Instant::now() + span).await.ok();
            if permit.is_none() {
                // Refused at once, as the wait is too long.
                sleep(span).await;
            }
            permit
        }
        2 => {
            let permit = budget.try_acquire(budget.clock().now()).ok();
            if permit.is_none() {
                sleep(span).await;
            }
            permit
        }
        _ => Some(budget.acquire().await),
    }
}
