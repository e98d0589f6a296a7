//! Several allowances of a fleet, of which a request takes from each or from none.

use core::fmt;
use core::task::Waker;
use std::sync::Arc;

use paceline::strategy::{GatePlace, NotAdmitted};
use paceline::{Outcome, SendPermit, Timestamp};

use tokio::time::Instant;

use crate::budget::Budget;
use crate::fault::FleetError;
use crate::line::Place;
use crate::wait::{self, DeadlinePassed};

/// Budgets that a request takes from together: requests and tokens a minute, say.
/// [`FleetStrategy::of_set`](crate::FleetStrategy::of_set) puts them before the sends of a strategy.
///
/// A request waits in one line, takes what it weighs of each budget, and settles what it really
/// cost once that is known. What was too much goes back to the member; what was too little is paid
/// before the next request, so that in the long run each budget is spent exactly.
///
/// Until it settles, a request counts with its weights. So on top of what the crate's documentation
/// states, the service may see what requests under way cost beyond their weights. A member holds
/// the weights of one waiting request besides its lease.
///
/// Clones are the same set.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::Outcome;
/// use paceline_fleet::{BudgetSet, Fleet, FleetError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), FleetError> {
/// # let fleet = Fleet::open("redis://127.0.0.1:1/")?; // no engine is there
/// # let fleet = &fleet;
/// # let scope = |name, n| Ok::<_, FleetError>(fleet.scope(name, n, Duration::from_secs(60))?.when_away(paceline_fleet::Away::Open));
/// let requests = scope("requests", 500)?.join()?;
/// let tokens = scope("tokens", 100_000)?.join()?;
/// let set = BudgetSet::new([requests, tokens])?;
///
/// let charge = set.acquire([1, 1_200]).await; // an estimate; send, and then:
/// charge.record(Outcome::NotThrottled);
/// charge.settle([1, 3_411]); // ... what the response says
/// # Ok(())
/// # }
/// ```
pub struct BudgetSet<const N: usize> {
    budgets: Arc<[Budget; N]>,
    /// In which order they are taken. It is the same for all sets of a process: two requests never
    /// wait for each other.
    order: [usize; N],
}

impl<const N: usize> Clone for BudgetSet<N> {
    fn clone(&self) -> Self {
        Self {
            budgets: Arc::clone(&self.budgets),
            order: self.order,
        }
    }
}

impl<const N: usize> fmt::Debug for BudgetSet<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BudgetSet").field(&self.budgets).finish()
    }
}

impl From<Budget> for BudgetSet<1> {
    fn from(budget: Budget) -> Self {
        Self {
            budgets: Arc::new([budget]),
            order: [0],
        }
    }
}

impl<const N: usize> BudgetSet<N> {
    /// Creates a set of `budgets`: one to eight, or it does not compile.
    ///
    /// # Errors
    ///
    /// [`FleetError::SameBudget`] if two of them are one member.
    pub fn new(budgets: [Budget; N]) -> Result<Self, FleetError> {
        const { assert!(N >= 1 && N <= 8, "a set has one to eight budgets") };
        let place = |index: &usize| budgets[*index].place();
        let mut order: [usize; N] = core::array::from_fn(|index| index);
        order.sort_by_key(place);
        if order.windows(2).any(|two| place(&two[0]) == place(&two[1])) {
            return Err(FleetError::SameBudget);
        }
        Ok(Self {
            budgets: Arc::new(budgets),
            order,
        })
    }

    /// Returns the budgets, as they were given.
    #[must_use]
    pub fn budgets(&self) -> &[Budget; N] {
        &self.budgets
    }

    /// Waits until it can take `weights`, one for each budget: first come, first served. A weight
    /// of 0 takes nothing and waits for nothing.
    ///
    /// Dropped before that, it takes nothing. The rate under a budget ([`over`](crate::Scope::over))
    /// is not asked.
    pub async fn acquire(&self, weights: [u32; N]) -> SetCharge<N> {
        loop {
            if let Ok(charge) = self.take(weights, None).await {
                return charge;
            }
        }
    }

    /// As [`acquire`](Self::acquire), until `deadline`.
    ///
    /// # Errors
    ///
    /// [`DeadlinePassed`] of the first budget that is known to have too little in time; nothing was
    /// taken.
    pub async fn acquire_before(
        &self,
        weights: [u32; N],
        deadline: Instant,
    ) -> Result<SetCharge<N>, DeadlinePassed> {
        self.take(weights, Some(deadline)).await
    }

    /// Returns leave for a request of `weights`, or takes its places in line one after the other.
    /// `kept` are those, from the last time. For strategies.
    pub(crate) fn admit(
        &self,
        kept: &mut GatePlace,
        weights: [u32; N],
        background: bool,
        waker: Option<&Waker>,
    ) -> Result<SendPermit, NotAdmitted> {
        let now = self.budgets[0].clock().now();
        let permit = SendPermit::sent_at(now).costing(weights[0]);
        if N == 1 && !kept.is_kept() && self.budgets[0].take_at_once(now, weights[0]) {
            return Ok(permit);
        }
        let mut held = kept.take::<Held>().unwrap_or_default();
        let wanted = self.order.iter().filter(|index| weights[**index] > 0);
        for &index in wanted.skip(held.full.len()) {
            let budget = &self.budgets[index];
            let take = || Place::take(budget.pool(), weights[index], background);
            let mut place = held.next.take().unwrap_or_else(take);
            if let Err(wait) = budget.look(&mut place, now, waker) {
                held.next = Some(place);
                kept.put(held);
                return Err(NotAdmitted::wait(wait));
            }
            held.full.push(place);
        }
        held.full.into_iter().for_each(Place::goes);
        Ok(permit)
    }

    /// Corrects what a request took of each budget to its true `costs`.
    pub(crate) fn settle(&self, weights: [u32; N], costs: &[u32]) {
        let taken = weights.into_iter().zip(costs);
        for (budget, (weight, cost)) in self.budgets.iter().zip(taken) {
            budget.pool().settle(weight, *cost);
        }
    }

    async fn take(
        &self,
        weights: [u32; N],
        deadline: Option<Instant>,
    ) -> Result<SetCharge<N>, DeadlinePassed> {
        let mut places = Vec::with_capacity(N);
        for index in self.order {
            let (budget, weight) = (&self.budgets[index], weights[index]);
            if weight > 0 {
                // Kept until all are taken: others wait behind it, and hold nothing meanwhile.
                let mut place = Place::take(budget.pool(), weight, false);
                wait::fill(&mut place, budget.pool(), budget.clock(), deadline).await?;
                places.push(place);
            }
        }
        places.into_iter().for_each(Place::goes);
        Ok(SetCharge {
            sent: core::array::from_fn(|index| self.budgets[index].clock().now()),
            set: self.clone(),
            weights,
        })
    }
}

/// The places of one request: those that have all their tokens, in the order of its set, and the
/// one that waits for them.
#[derive(Debug, Default)]
struct Held {
    full: Vec<Place>,
    next: Option<Place>,
}

/// What a request took of each budget of a [`BudgetSet`], to be settled once.
///
/// Dropped unsettled it leaves its weights spent.
#[must_use = "a charge that is dropped leaves its weights spent"]
pub struct SetCharge<const N: usize> {
    set: BudgetSet<N>,
    sent: [Timestamp; N],
    weights: [u32; N],
}

impl<const N: usize> fmt::Debug for SetCharge<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetCharge")
            .field("weights", &self.weights)
            .finish_non_exhaustive()
    }
}

impl<const N: usize> SetCharge<N> {
    /// Records the outcome of the request, in each budget that it took from: see
    /// [`Budget::record`].
    pub fn record(&self, outcome: Outcome) {
        for (index, budget) in self.set.budgets.iter().enumerate() {
            if self.weights[index] > 0 {
                let permit = SendPermit::sent_at(self.sent[index]);
                budget.record(permit.costing(self.weights[index]), outcome);
            }
        }
    }

    /// Corrects what the request took to its true `costs`, one for each budget.
    pub fn settle(self, costs: [u32; N]) {
        self.set.settle(self.weights, &costs);
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use core::{future::Future, pin::pin, task::Context, task::Poll, task::Waker};

    use tokio::sync::watch;

    use super::*;
    use crate::budget::tests::Goes;
    use crate::pool::Pool;
    use crate::snapshot::BudgetSnapshot;

    fn budget() -> (Arc<Pool>, Budget) {
        let pool = Arc::new(Pool::new());
        pool.good_until(Timestamp::from_nanos(u64::MAX));
        pool.set_rate(1_000_000);
        let (_, seen) = watch::channel(BudgetSnapshot::default());
        let budget = Budget::new(Arc::clone(&pool), Arc::new(Goes::new()), None, seen);
        (pool, budget)
    }

    fn poll<F: Future>(future: core::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_takes_of_each_or_of_none() {
        let ((requests, one), (tokens, other)) = (budget(), budget());
        let set = BudgetSet::new([one, other]).unwrap();
        requests.pour(5);
        tokens.pour(100);
        let charge = set.acquire([1, 60]).await;
        assert_eq!((requests.available(), tokens.available()), (4, 40));
        {
            let mut waits = pin!(set.acquire([1, 60]));
            assert!(poll(waits.as_mut()).is_pending());
            // No other request gets ahead, and it holds no request meanwhile.
            let mut behind = pin!(set.acquire([1, 1]));
            assert!(poll(behind.as_mut()).is_pending());
            assert!(requests.available() >= 3);
        }
        assert_eq!((requests.available(), tokens.available()), (4, 40));
        let free = set.acquire([0, 40]).await;
        assert_eq!((requests.available(), tokens.available()), (4, 0));
        let by = Instant::now() + Duration::from_millis(50);
        let late = set.acquire_before([1, 100], by).await.unwrap_err();
        assert!(late.wait > Duration::from_millis(50));
        drop((charge, free));
        assert_eq!((requests.available(), tokens.available()), (4, 0));
        assert!(!requests.has_backlog() && !tokens.has_backlog());
    }

    #[tokio::test(start_paused = true)]
    async fn a_difference_comes_back_or_is_paid_before_the_next() {
        let ((_requests, one), (tokens, other)) = (budget(), budget());
        let set = BudgetSet::new([one, other]).unwrap();
        tokens.pour(100);
        set.acquire([0, 90]).await.settle([0, 30]);
        assert_eq!(tokens.available(), 70);
        set.acquire([0, 20]).await.settle([0, 60]);
        assert_eq!(tokens.available(), 10);
        // More than there is: what is poured pays it first.
        set.acquire([0, 10]).await.settle([0, 45]);
        assert_eq!((tokens.available(), tokens.has_backlog()), (0, true));
        tokens.pour(10);
        assert_eq!((tokens.available(), tokens.has_backlog()), (0, true));
        tokens.pour(30);
        assert_eq!((tokens.available(), tokens.has_backlog()), (5, false));
    }

    #[tokio::test(start_paused = true)]
    async fn sets_that_share_budgets_do_not_wait_for_each_other() {
        let ((a, one), (b, other)) = (budget(), budget());
        let there = BudgetSet::new([one.clone(), other.clone()]).unwrap();
        let back = BudgetSet::new([other, one.clone()]).unwrap();
        let (mut first, mut second) = (pin!(there.acquire([1, 1])), pin!(back.acquire([1, 1])));
        assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
        a.pour(2);
        b.pour(2);
        let both = async { tokio::join!(first, second) };
        let taken = tokio::time::timeout(Duration::from_secs(1), both).await;
        assert!(taken.is_ok());
        assert!(matches!(
            BudgetSet::new([one.clone(), one]),
            Err(FleetError::SameBudget)
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn a_throttle_is_told_to_the_budgets_that_were_taken_from() {
        let ((requests, one), (tokens, other)) = (budget(), budget());
        let set = BudgetSet::new([one, other]).unwrap();
        requests.pour(1);
        set.acquire([1, 0]).await.record(Outcome::Throttled);
        assert!(requests.has_throttles() && !tokens.has_throttles());
    }
}
