//! The handle of a scope of send tokens.

use core::fmt;
use core::task::Waker;
use core::time::Duration;
use std::sync::Arc;

use paceline::{Clock, Outcome, SendPermit, SendRate, Timestamp};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::fault::FleetError;
use crate::line::Place;
use crate::pool::{Pool, after};
use crate::settings::nano;
use crate::snapshot::{BudgetSnapshot, MemberId};
use crate::wait::{self, DeadlinePassed};

/// The longest time that a spent plan stops a scope.
const MONTH: Duration = Duration::from_secs(31 * 86_400);

/// A member of a fleet that shares one allowance of sends.
///
/// It stands where a [`SendRate`] stands, with the same verbs. Taking a token reads one word that
/// requests only read, and moves one word; telling an outcome that is not a throttle does nothing
/// at all, since what was spent says it. A task asks the engine ahead of need.
///
/// Clones are the same member. With the last one it leaves the fleet, and what it did not spend
/// goes back.
///
/// # Memory ordering
///
/// None is promised: do not publish data through a budget.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::{Clock, MonotonicClock, Outcome};
/// use paceline_fleet::{Fleet, FleetError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), FleetError> {
/// let fleet = Fleet::open("redis://127.0.0.1:1/")?; // no engine is there
/// let budget = fleet.scope("orders", 2_000, Duration::from_secs(1))?.join()?;
///
/// let permit = budget.acquire().await; // alone, at the floor of 0.5/s
/// budget.record(permit, Outcome::NotThrottled);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Budget {
    shared: Arc<Shared>,
}

/// As its [snapshot](Budget::snapshot), the first lines of it.
impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.snapshot();
        f.debug_struct("Budget")
            .field("member", &shown.member)
            .field("standing", &shown.standing)
            .field("share", &shown.share)
            .field("held", &shown.held)
            .field("fault", &shown.fault)
            .finish_non_exhaustive()
    }
}

struct Shared {
    pool: Arc<Pool>,
    clock: Arc<dyn Clock>,
    local: Option<Arc<SendRate>>,
    shown: watch::Receiver<BudgetSnapshot>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.pool.close();
        self.pool.stop.notify_one();
    }
}

impl Budget {
    pub(crate) fn new(
        pool: Arc<Pool>,
        clock: Arc<dyn Clock>,
        local: Option<Arc<SendRate>>,
        shown: watch::Receiver<BudgetSnapshot>,
    ) -> Self {
        let shared = Shared {
            pool,
            clock,
            local,
            shown,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the clock that permits are timed by.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        &*self.shared.clock
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.shared.pool
    }

    /// Returns where it stands among all members of this process.
    pub(crate) fn place(&self) -> *const Pool {
        Arc::as_ptr(&self.shared.pool)
    }

    /// Takes a token, or takes nothing and returns how long it may be until there is one.
    ///
    /// `now` is by the budget's [`clock`](Self::clock).
    ///
    /// # Errors
    ///
    /// The wait is an estimate, and never zero. No waiter in [`acquire`](Self::acquire) is
    /// overtaken.
    pub fn try_acquire(&self, now: Timestamp) -> Result<SendPermit, Duration> {
        let Shared { pool, local, .. } = &*self.shared;
        pool.try_take(now, 1)?;
        let Some(local) = local else {
            return Ok(SendPermit::sent_at(now));
        };
        local.try_acquire(now).inspect_err(|_| pool.untake(1))
    }

    /// Takes `weight` tokens if that needs no line.
    pub(crate) fn take_at_once(&self, now: Timestamp, weight: u32) -> bool {
        let Shared { pool, local, .. } = &*self.shared;
        local.is_none() && pool.take_in_turn(now, weight)
    }

    /// Looks at a place in its line, and then asks the rate under it.
    pub(crate) fn look(
        &self,
        place: &mut Place,
        now: Timestamp,
        waker: Option<&Waker>,
    ) -> Result<(), Duration> {
        place.look(now, waker)?;
        match &self.shared.local {
            // The head of the line asks for all members of it: what it waits for it waits for here.
            Some(local) => local.try_acquire(now).map(drop),
            None => Ok(()),
        }
    }

    /// Returns `true` if no request waits for a token.
    pub(crate) fn is_idle(&self) -> bool {
        !self.shared.pool.has_backlog()
    }

    /// Waits for a token: first come, first served.
    ///
    /// Dropped before that, it takes nothing.
    pub async fn acquire(&self) -> SendPermit {
        loop {
            if let Ok(permit) = self.wait(None).await {
                return permit;
            }
        }
    }

    /// Waits for a token until `deadline`.
    ///
    /// # Errors
    ///
    /// Returns [`DeadlinePassed`] as soon as it is known that there will be none, by what waits
    /// before and the member's rate; nothing was taken.
    pub async fn acquire_before(&self, deadline: Instant) -> Result<SendPermit, DeadlinePassed> {
        self.wait(Some(deadline)).await
    }

    async fn wait(&self, deadline: Option<Instant>) -> Result<SendPermit, DeadlinePassed> {
        let Shared {
            pool, clock, local, ..
        } = &*self.shared;
        let now = wait::take(pool, &**clock, 1, deadline).await?;
        let Some(local) = local else {
            return Ok(SendPermit::sent_at(now));
        };
        let token = Token(pool);
        let mut place = local.reserve(now);
        while let Err(wait) = place.claim(clock.now()) {
            let wake = Instant::now().checked_add(wait);
            match (deadline, wake) {
                (Some(deadline), Some(wake)) if wake > deadline => {
                    let member = pool.member();
                    return Err(DeadlinePassed { wait, member });
                }
                _ => tokio::time::sleep(wait).await,
            }
        }
        core::mem::forget(token);
        Ok(SendPermit::sent_at(clock.now()))
    }

    /// Records the outcome of a request.
    ///
    /// A throttle lowers the rate of the whole fleet. A hint pauses it if nothing gets through. The
    /// success of a [knock](BudgetSnapshot::knocks) opens the scope at once. Anything else changes
    /// nothing, and needs not be recorded unless there is a [`SendRate`] underneath.
    pub fn record(&self, permit: SendPermit, outcome: Outcome) {
        let Shared {
            pool, clock, local, ..
        } = &*self.shared;
        let hint = match outcome {
            Outcome::Throttled | Outcome::PartlyThrottled(_) => Some(Duration::ZERO),
            Outcome::ThrottledFor(hint) => Some(hint),
            _ => None,
        };
        if outcome == Outcome::NotThrottled {
            pool.done(permit);
        }
        if hint.is_none() && local.is_none() {
            return;
        }
        let now = clock.now();
        if let Some(hint) = hint {
            pool.throttled(now, permit, hint);
        }
        if let Some(local) = local {
            local.record(now, permit, outcome);
        }
    }

    /// Lets no member send for `span`, a month at most: the service says that a plan, a day or a
    /// week is spent.
    ///
    /// The engine keeps the time over restarts of all processes. Of several spans the latest end
    /// holds. To take the time back, delete the scope's key and restart the processes that told it.
    /// What members hold of their leases may still go. A [`FleetStrategy`](crate::FleetStrategy)
    /// does this where the strategy inside hears that a limit of an hour or longer is spent.
    pub fn shut_for(&self, span: Duration) {
        let Shared { pool, clock, .. } = &*self.shared;
        pool.shut(after(clock.now(), span.min(MONTH)));
    }

    /// Returns which member this is, of all that its scope has.
    #[must_use]
    pub fn member(&self) -> MemberId {
        self.shared.pool.member()
    }

    /// Changes what all members together may send: `tokens` in each `per`, from the next ask on.
    ///
    /// The least holds of what the members with requests say. So the first member that is told less
    /// slows the whole fleet down, and more counts once each of them was told. A service may
    /// declare it in its responses: tell the budget each time, which costs nothing while it is the
    /// same. An initial rate that was set, a floor and a safe rate stay, as far as the allowance
    /// has room.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline_fleet::{Budget, FleetError};
    ///
    /// # #[allow(dead_code)]
    /// fn limit_seen(budget: &Budget, header: &str) -> Result<(), FleetError> {
    ///     let Ok(limit) = header.parse() else { return Ok(()) };
    ///     budget.set_allowance(limit, Duration::from_secs(60))
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`FleetError::Rate`] for a rate out of range.
    pub fn set_allowance(&self, tokens: u32, per: Duration) -> Result<(), FleetError> {
        self.shared
            .pool
            .set_allowance(nano("allowance", tokens, per)?);
        Ok(())
    }

    /// Drops this handle. If it is the last one, waits until the member has left: what it did not
    /// spend has gone back then.
    ///
    /// A task of a runtime that ends is not run any more. So a program that ends calls this, or the
    /// engine hears nothing, and a lease is lost. With a file (`Fleet::local`) the end of the
    /// runtime is enough.
    pub async fn leave(self) {
        let Some(shared) = Arc::into_inner(self.shared) else {
            return;
        };
        let mut shown = shared.shown.clone();
        drop(shared);
        while shown.changed().await.is_ok() {}
    }

    /// Returns how the member stood when its task last looked.
    #[must_use]
    pub fn snapshot(&self) -> BudgetSnapshot {
        BudgetSnapshot {
            member: self.member(),
            ..*self.shared.shown.borrow()
        }
    }

    /// Waits until the standing or the fault is another than in `last`, and returns how the member
    /// stands then.
    ///
    /// Once its task has ended it returns at once. Dropped before that, it changes nothing.
    pub async fn changed(&self, last: &BudgetSnapshot) -> BudgetSnapshot {
        let other = |now: &BudgetSnapshot| (now.standing, now.fault) != (last.standing, last.fault);
        let _ended = self.shared.shown.clone().wait_for(other).await.is_err();
        self.snapshot()
    }
}

/// A token that goes back unless it is forgotten.
struct Token<'a>(&'a Pool);

impl Drop for Token<'_> {
    fn drop(&mut self) {
        self.0.untake(1);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use paceline::law::PacedSettings;

    use super::*;

    /// A clock that stands.
    #[derive(Debug)]
    struct Stands;

    impl Clock for Stands {
        fn now(&self) -> Timestamp {
            Timestamp::from_nanos(9)
        }
    }

    /// A clock that goes with the runtime's.
    #[derive(Debug)]
    pub(crate) struct Goes(Instant);

    impl Goes {
        pub(crate) fn new() -> Self {
            Self(Instant::now())
        }
    }

    impl Clock for Goes {
        fn now(&self) -> Timestamp {
            Timestamp::ZERO.saturating_add(self.0.elapsed())
        }
    }

    #[test]
    fn a_plan_is_spent_for_a_month_at_most() {
        let pool = Arc::new(Pool::new());
        let (_, seen) = watch::channel(BudgetSnapshot::default());
        let budget = Budget::new(Arc::clone(&pool), Arc::new(Timestamp::ZERO), None, seen);
        budget.shut_for(Duration::MAX);
        let until = Duration::from_nanos(pool.shut_until().as_nanos());
        assert_eq!(until, MONTH);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_ends_at_its_deadline_is_in_time() {
        let pool = Arc::new(Pool::new());
        pool.good_until(Timestamp::from_nanos(u64::MAX));
        pool.pour(4);
        let settings = PacedSettings::fixed(1, Duration::from_secs(1)).expect("in range");
        let local = Arc::new(SendRate::paced(settings, Timestamp::ZERO));
        let (_shown, seen) = watch::channel(BudgetSnapshot::default());
        let clock = Arc::new(Goes::new());
        let budget = Budget::new(Arc::clone(&pool), clock, Some(local), seen);
        let _first = budget.acquire().await;
        let wait = Duration::from_secs(1);
        let began = Instant::now();
        let within = |span| budget.acquire_before(began + span);
        let early = within(Duration::from_millis(999)).await;
        let member = pool.member();
        assert_eq!(early.map(drop), Err(DeadlinePassed { wait, member }));
        assert_eq!((began.elapsed(), pool.available()), (Duration::ZERO, 3));
        let permit = within(wait).await.expect("in time");
        assert_eq!(permit.time(), Timestamp::ZERO.saturating_add(wait));
        assert_eq!((began.elapsed(), pool.available()), (wait, 2));
    }

    #[test]
    fn a_throttle_and_its_hint_are_told_and_a_success_is_not() {
        let pool = Arc::new(Pool::new());
        let (_shown, seen) = watch::channel(BudgetSnapshot::default());
        let budget = Budget::new(Arc::clone(&pool), Arc::new(Stands), None, seen);
        let told = |outcome| {
            budget.record(SendPermit::sent_at(Timestamp::from_nanos(4)), outcome);
            let told = pool.throttles();
            (
                told.count,
                told.trip.as_nanos(),
                told.pause_until.as_nanos(),
            )
        };
        assert_eq!(told(Outcome::NotThrottled), (0, 0, 0));
        assert_eq!(told(Outcome::Throttled), (1, 5, 0));
        let hint = Duration::from_nanos(7);
        assert_eq!(told(Outcome::ThrottledFor(hint)), (1, 5, 16));
    }
}
