//! One retry budget for many processes: existing quotas, kept filled from a pool at the engine.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use paceline::RetryQuota;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};

use crate::engine::Engine;
use crate::fault::{EngineFault, FleetError};
use crate::fleet::Fleet;
use crate::member::jittered;
use crate::settings::{Away, name};
use crate::snapshot::MemberId;
use crate::wire::Step;

/// How often a quota is looked at, and the longest that its member is silent in a small fleet.
const LOOK: Duration = Duration::from_millis(50);
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How many steps a second all members take that have nothing to ask for.
const IDLE_STEPS: u64 = 2_500;
/// After how many heartbeats a silent member is forgotten.
const MISSED: u32 = 4;
/// After how long a silent pool is forgotten.
const KEPT: Duration = Duration::from_secs(600);
const PATIENCE: Duration = Duration::from_millis(250);
const LARGEST: u32 = 1_000_000_000;

/// A retry budget of a fleet, before a quota joins it.
#[derive(Clone)]
#[must_use = "a scope does nothing until it is joined"]
pub struct RetryScope {
    engine: Arc<Engine>,
    name: String,
    capacity: u32,
    hold: u32,
    away: Away,
}

impl fmt::Debug for RetryScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryScope")
            .field("name", &self.name)
            .field("capacity", &self.capacity)
            .field("hold", &self.hold)
            .field("away", &self.away)
            .finish_non_exhaustive()
    }
}

impl Fleet {
    /// Begins to join a retry budget that holds at most `capacity` tokens for all its members.
    ///
    /// # Errors
    ///
    /// For a name out of range, or a capacity of 0 or above 10⁹.
    pub fn retry_budget(&self, scope: &str, capacity: u32) -> Result<RetryScope, FleetError> {
        if capacity == 0 || capacity > LARGEST {
            return Err(FleetError::Capacity { tokens: capacity });
        }
        Ok(RetryScope {
            engine: Arc::clone(&self.engine),
            name: name("scope", scope)?,
            capacity,
            hold: 50.min(capacity),
            away: Away::Alone,
        })
    }
}

impl RetryScope {
    /// Sets how many tokens a member holds. Ten are two retries, at the costs of the newest
    /// generation not one.
    ///
    /// # Errors
    ///
    /// For 0, or more than the budget has.
    pub fn hold(mut self, tokens: u32) -> Result<Self, FleetError> {
        if tokens == 0 || tokens > self.capacity {
            return Err(FleetError::Capacity { tokens });
        }
        self.hold = tokens;
        Ok(self)
    }

    /// Sets how retries are handled while the engine is away.
    ///
    /// [`Away::Alone`] leaves the quota to itself, with what it holds and what successes pay in;
    /// [`Away::Closed`] [closes](RetryQuota::close) it: no retry that costs anything goes;
    /// [`Away::Open`] fills it every 50 ms.
    pub fn when_away(mut self, away: Away) -> Self {
        self.away = away;
        self
    }

    /// Joins with `quota`, which is emptied: what it may hold, the engine grants. Strategies pay
    /// from it as before.
    ///
    /// # Errors
    ///
    /// [`FleetError::NoRuntime`] outside of a tokio runtime.
    pub fn join(self, quota: &Arc<RetryQuota>) -> Result<FleetRetryBudget, FleetError> {
        let runtime = Handle::try_current().map_err(|_| FleetError::NoRuntime)?;
        let stop = Arc::new(Notify::new());
        let told = FleetRetrySnapshot {
            member: MemberId::new(),
            ..FleetRetrySnapshot::default()
        };
        let (shown, seen) = watch::channel(told);
        quota.drain();
        let keeper = Keeper {
            hold: self.hold.min(quota.capacity()),
            scope: self,
            quota: Arc::clone(quota),
            seq: 0,
            pending: None,
            wait: LOOK,
            left: false,
            heard: false,
            told,
        };
        runtime.spawn(keeper.run(Arc::clone(&stop), shown));
        Ok(FleetRetryBudget { stop, seen })
    }
}

/// A quota's membership in a fleet's retry budget. Dropped, what the quota holds goes back.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use paceline::{RetryQuota, Standard};
/// use paceline_fleet::Fleet;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let quota = Arc::new(RetryQuota::new(500));
/// let strategy = Standard::builder().quota(Arc::clone(&quota)).build()?;
///
/// let fleet = Fleet::open("redis://127.0.0.1:6379")?;
/// let _member = fleet.retry_budget("deployment", 5_000)?.join(&quota)?;
/// assert_eq!(strategy.quota().available(), 0); // until the engine grants something, or successes pay in
/// # Ok(())
/// # }
/// ```
#[must_use = "dropped, it leaves the fleet"]
pub struct FleetRetryBudget {
    stop: Arc<Notify>,
    seen: watch::Receiver<FleetRetrySnapshot>,
}

impl fmt::Debug for FleetRetryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FleetRetryBudget")
            .field(&self.snapshot())
            .finish()
    }
}

impl FleetRetryBudget {
    /// Returns how the membership stood when its task last looked, at most a second ago.
    #[must_use]
    pub fn snapshot(&self) -> FleetRetrySnapshot {
        let mut shown = *self.seen.borrow();
        if self.seen.has_changed().is_err() {
            shown.fault = Some(EngineFault::TaskEnded);
        }
        shown
    }
}

impl Drop for FleetRetryBudget {
    fn drop(&mut self) {
        self.stop.notify_one();
    }
}

/// A membership in a retry budget, as it was when its task last looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetRetrySnapshot {
    /// Which member this is.
    pub member: MemberId,
    /// What the pool held after the last answer.
    pub pool: u32,
    /// How many members there are.
    pub members: u32,
    /// Tokens that the engine granted.
    pub granted: u64,
    /// Tokens that went back to it, those that successes had paid in among them.
    pub returned: u64,
    /// What is wrong with the engine, if the last ask came to nothing.
    pub fault: Option<EngineFault>,
    /// How many asks came to nothing.
    pub faults: u64,
}

#[derive(Debug)]
struct Keeper {
    scope: RetryScope,
    quota: Arc<RetryQuota>,
    hold: u32,
    seq: u64,
    /// The last ask, if it has no answer.
    pending: Option<Ask>,
    /// How long it waits before it asks again. It doubles while the pool has nothing, and while the
    /// engine is away.
    wait: Duration,
    /// It has said its last word, and that was heard.
    left: bool,
    heard: bool,
    told: FleetRetrySnapshot,
}

/// One ask, repeated as it is until it is answered: what goes back goes back once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ask {
    want: u32,
    back: u32,
}

impl Keeper {
    async fn run(mut self, stop: Arc<Notify>, shown: watch::Sender<FleetRetrySnapshot>) {
        let mut silent = self.heartbeat();
        loop {
            if silent >= self.wait {
                let ask = self.next();
                if ask.want > 0 || ask.back > 0 || silent >= self.heartbeat() {
                    silent = Duration::ZERO;
                    match self.step(ask, false).await {
                        Ok(granted) => self.answered(ask, granted),
                        Err(fault) => self.failed(ask, fault),
                    }
                    shown.send_replace(self.told);
                }
            }
            self.go_without();
            tokio::select! {
                () = stop.notified() => break,
                () = tokio::time::sleep(LOOK) => silent = silent.saturating_add(LOOK),
            }
        }
        if let Some(ask) = self.pending.take() {
            // Under its number: it may have been taken, and leaving has another.
            let _unheard = self.step(ask, false).await;
        }
        let ask = self.leave();
        let _unheard = self.step(ask, true).await;
        self.heard = true;
    }

    /// Returns the last ask: all that the quota holds goes back.
    fn leave(&mut self) -> Ask {
        self.left = true;
        self.seq = self.seq.saturating_add(1);
        let back = self.quota.drain();
        self.quota.reopen();
        Ask { want: 0, back }
    }

    /// Returns the next ask: the last one with its number, if it has no answer.
    fn next(&mut self) -> Ask {
        self.pending.take().unwrap_or_else(|| self.ask())
    }

    /// Returns what is missing, or too much. Between half and twice of what it should hold nothing
    /// is.
    fn ask(&mut self) -> Ask {
        self.seq = self.seq.saturating_add(1);
        let available = self.quota.available();
        if available < self.hold.div_ceil(2) {
            let want = self.hold.saturating_sub(available);
            return Ask { want, back: 0 };
        }
        let full = available == self.quota.capacity();
        let back = if full || available > self.hold.saturating_mul(2) {
            empty(&self.quota, available.saturating_sub(self.hold))
        } else {
            0
        };
        Ask { want: 0, back }
    }

    /// Returns the longest that it is silent: longer with many members, whose heartbeats are all
    /// that the engine has to do in quiet times.
    fn heartbeat(&self) -> Duration {
        let nanos = 1_000_000_000_u64.saturating_mul(u64::from(self.told.members));
        HEARTBEAT.max(Duration::from_nanos(nanos.div_ceil(IDLE_STEPS)))
    }

    fn answered(&mut self, ask: Ask, granted: u32) {
        if granted < ask.want {
            self.back_off();
        } else {
            self.wait = LOOK;
        }
    }

    fn back_off(&mut self) {
        let doubled = self.wait.saturating_mul(2).min(self.heartbeat());
        self.wait = jittered(doubled);
    }

    fn words(&self, ask: Ask, leave: bool) -> String {
        format!(
            "{} {} {} {} {} {} {}",
            self.seq,
            u8::from(leave),
            ask.want,
            ask.back,
            self.scope.capacity,
            self.heartbeat().saturating_mul(MISSED).as_micros(),
            KEPT.as_millis(),
        )
    }

    async fn step(&mut self, ask: Ask, leave: bool) -> Result<u32, EngineFault> {
        let (member, words) = (self.told.member.to_string(), self.words(ask, leave));
        let scope = &self.scope;
        let key = scope.engine.key(Step::Quota, &scope.name);
        let taken = scope
            .engine
            .take(Step::Quota, &key, &member, &words, PATIENCE);
        let numbers = taken.await?;
        let [granted, pool, members] = read(&numbers).ok_or(EngineFault::Broken)?;
        if granted > ask.want {
            return Err(EngineFault::Broken);
        }
        self.quota.reopen();
        self.quota.credit(granted);
        self.told = FleetRetrySnapshot {
            pool,
            members,
            granted: self.told.granted.saturating_add(u64::from(granted)),
            returned: self.told.returned.saturating_add(u64::from(ask.back)),
            fault: None,
            ..self.told
        };
        Ok(granted)
    }

    fn failed(&mut self, ask: Ask, fault: EngineFault) {
        self.pending = Some(ask).filter(|_| fault != EngineFault::Broken);
        self.told.fault = Some(fault);
        self.told.faults = self.told.faults.saturating_add(1);
        if let EngineFault::Broken = fault {
            self.told.member = MemberId::new();
        }
        self.back_off();
        self.go_without();
    }

    /// Keeps the quota as the caller wants it without the engine.
    fn go_without(&mut self) {
        if self.told.fault.is_none() {
            return;
        }
        match self.scope.away {
            Away::Alone => {}
            Away::Closed => self.quota.close(),
            Away::Open => _ = self.quota.refill(),
        }
    }
}

/// Dropped with a runtime that ends, it still leaves a file.
impl Drop for Keeper {
    fn drop(&mut self) {
        if self.left {
            if !self.heard {
                self.scope.engine.flush();
            }
        } else {
            let ask = self.leave();
            let (member, words) = (self.told.member.to_string(), self.words(ask, true));
            let scope = &self.scope;
            let key = scope.engine.key(Step::Quota, &scope.name);
            scope.engine.part(Step::Quota, &key, &member, &words);
        }
    }
}

fn read(numbers: &[i64]) -> Option<[u32; 3]> {
    let &[granted, pool, members] = numbers else {
        return None;
    };
    let number = |number| u32::try_from(number).ok();
    Some([number(granted)?, number(pool)?, number(members)?])
}

/// Takes as many of `most` tokens out of `quota` as there are, and returns how many.
fn empty(quota: &RetryQuota, most: u32) -> u32 {
    loop {
        let tokens = quota.available().min(most);
        if quota.try_acquire(tokens).is_some() {
            return tokens;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Arc, Ask, Away, Duration, EngineFault, Fleet, FleetError, FleetRetrySnapshot, HEARTBEAT,
        Keeper, LOOK, MemberId, RetryQuota, read,
    };

    fn keeper() -> Keeper {
        let scope =
            Fleet::open("redis://127.0.0.1:1/").and_then(|fleet| fleet.retry_budget("x", 1_000));
        let quota = Arc::new(RetryQuota::new(500));
        Keeper {
            scope: scope.expect("in range"),
            quota,
            hold: 50,
            seq: 0,
            pending: None,
            wait: LOOK,
            left: false,
            heard: false,
            told: FleetRetrySnapshot::default(),
        }
    }

    #[test]
    fn an_unanswered_ask_keeps_its_number_and_its_tokens() {
        let mut keeper = keeper();
        let first = keeper.next();
        assert_eq!((keeper.seq, first), (1, Ask { want: 0, back: 450 }));
        // Whether it was heard is not known: what goes back goes back once.
        keeper.failed(first, EngineFault::TimedOut);
        keeper.quota.credit(200);
        assert_eq!((keeper.next(), keeper.seq), (first, 1));
        assert_eq!((keeper.next(), keeper.seq), (Ask { want: 0, back: 200 }, 2));
    }

    #[test]
    fn a_member_that_gets_nothing_asks_less_and_less() {
        let mut keeper = keeper();
        let nothing = Ask { want: 50, back: 0 };
        let mut last = keeper.wait;
        for _ in 0..3 {
            keeper.answered(nothing, 49);
            assert!(keeper.wait > last * 17 / 10 && keeper.wait < last * 23 / 10);
            last = keeper.wait;
        }
        for _ in 0..5 {
            keeper.failed(nothing, EngineFault::TimedOut);
        }
        assert!(keeper.wait >= HEARTBEAT * 9 / 10 && keeper.wait <= HEARTBEAT * 11 / 10);
        keeper.answered(nothing, 50);
        assert_eq!(keeper.wait, LOOK);
        // Ten thousand of them are heard from once in four seconds each.
        keeper.told.members = 10_000;
        assert_eq!(keeper.heartbeat(), Duration::from_secs(4));
    }

    #[test]
    fn a_closed_quota_lets_no_retry_go_and_is_given_back_open() {
        let mut keeper = keeper();
        keeper.scope.away = Away::Closed;
        let ask = Ask { want: 1, back: 0 };
        keeper.failed(ask, EngineFault::TimedOut);
        keeper.quota.credit(200);
        assert!(keeper.quota.try_acquire(1).is_none());
        assert_eq!(keeper.leave(), Ask { want: 0, back: 0 });
        keeper.quota.credit(200);
        assert_eq!(keeper.quota.available(), 200);
    }

    #[test]
    fn a_record_that_is_broken_is_given_up_with_its_name() {
        let mut keeper = keeper();
        let first = keeper.next();
        keeper.failed(first, EngineFault::Broken);
        assert_ne!(keeper.told.member, MemberId::default());
        assert_eq!((keeper.next(), keeper.seq), (Ask { want: 0, back: 0 }, 2));
    }

    #[test]
    fn a_budget_has_1_to_a_billion_tokens() {
        let fleet = Fleet::open("redis://127.0.0.1:1/").expect("an address");
        let budget = |tokens| fleet.retry_budget("x", tokens).map(|scope| scope.hold);
        let wrong = |tokens| Err(FleetError::Capacity { tokens });
        assert_eq!(
            (budget(0), budget(1_000_000_001)),
            (wrong(0), wrong(1_000_000_001))
        );
        assert_eq!((budget(1), budget(1_000_000_000)), (Ok(1), Ok(50)));
        let hold = |tokens| {
            let scope = fleet.retry_budget("x", 100)?.hold(tokens);
            scope.map(|scope| scope.hold)
        };
        assert_eq!((hold(0), hold(101)), (wrong(0), wrong(101)));
        assert_eq!((hold(1), hold(100)), (Ok(1), Ok(100)));
    }

    #[test]
    fn between_half_and_twice_of_its_hold_a_quota_is_left_alone() {
        for (available, want, back) in [
            (24, 26, 0),
            (25, 0, 0),
            (100, 0, 0),
            (101, 0, 51),
            (500, 0, 450),
        ] {
            let mut keeper = keeper();
            drop(keeper.quota.try_acquire(500 - available));
            assert_eq!(keeper.ask(), Ask { want, back }, "{available}");
        }
        // A full quota takes in no more of what successes pay.
        let mut keeper = keeper();
        keeper.quota = Arc::new(RetryQuota::new(60));
        assert_eq!(keeper.ask(), Ask { want: 0, back: 10 });
        keeper.quota.credit(9);
        assert_eq!(keeper.ask(), Ask { want: 0, back: 0 });
    }

    #[test]
    fn a_fault_leaves_empties_or_fills_the_quota() {
        for (away, left) in [(Away::Alone, 300), (Away::Closed, 0), (Away::Open, 500)] {
            let mut keeper = keeper();
            keeper.scope.away = away;
            drop(keeper.quota.try_acquire(200));
            keeper.failed(Ask { want: 1, back: 0 }, EngineFault::TimedOut);
            let shown = (keeper.quota.available(), keeper.told.member);
            assert_eq!(shown, (left, MemberId::default()));
            assert_eq!(keeper.told.fault, Some(EngineFault::TimedOut));
            assert_eq!(keeper.told.faults, 1);
        }
    }

    #[test]
    fn an_answer_is_three_counts() {
        assert_eq!(read(&[1, 2, 3]), Some([1, 2, 3]));
        for wrong in [
            &[1, 2][..],
            &[1, 2, 3, 4],
            &[-1, 2, 3],
            &[1, i64::MAX, 3],
            &[1, 2, -3],
        ] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }
}
