//! An existing strategy, as a member of a fleet.

use core::{iter, time::Duration};

use paceline::{
    Failure, Outcome, RetryStrategy, RetryToken, SendPermit,
    law::LimitReports,
    set::{SetError, Weights},
    snapshot::StrategySnapshot,
    strategy::{
        AttemptCharge, ForeignToken, InitialTokenRefused, NotAdmitted, Reports, RetryRefused,
        SendRequest, SendTurn,
    },
};

use crate::budget::Budget;
use crate::set::BudgetSet;

/// A spent limit of a shorter window is for the members' own laws.
const HOUR: Duration = Duration::from_secs(3_600);

/// A strategy whose sends are paid from a [`Budget`] or from several, and whose throttles slow the
/// fleet.
///
/// An attempt waits in the line of the budget: first come, first served, with background behind
/// foreground. It takes as many tokens as it has weight. One whose turn comes after its deadline is
/// refused at once, with the wait. The line is that of [`Budget::acquire`] as well.
///
/// Of several budgets ([`of_set`](Self::of_set)) it takes what
/// [`Operation::weights`](paceline::Operation::weights) says, of each or of none: see [`BudgetSet`].
/// Without that it takes its weight of the first, and one token of each other. One that gives up
/// in the line of a later budget gives back what it has of the budgets. The token of a rate under
/// one of them ([`over`](crate::Scope::over)) stays spent.
///
/// What an attempt really cost settles it: with the outcome
/// ([`Reports::costing`](paceline::strategy::Reports::costing)), or later
/// ([`Attempts::charge`](paceline::operation::Attempts::charge)). Fewer costs than there are
/// budgets are ignored.
///
/// Retries are decided by the strategy inside, whose own turn to send is asked for first: with
/// [`Standard`](paceline::Standard) there is none, with [`Adaptive`](paceline::Adaptive) both have
/// to let a send go. To share the retries too, give the strategy a quota that joins a [retry
/// budget](crate::Fleet::retry_budget).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::{Failure, RetryStrategyExt, Standard};
/// use paceline_fleet::{Fleet, FleetStrategy};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let fleet = Fleet::open("redis://127.0.0.1:1/")?; // no engine is there
/// let budget = fleet.scope("orders", 2_000, Duration::from_secs(1))?.join()?;
/// let strategy = FleetStrategy::new(Standard::new(), budget);
/// let answer = tokio::task::spawn_blocking(move || strategy.run(|_| Ok::<_, Failure>("sent")));
/// assert_eq!(answer.await?.unwrap(), "sent");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FleetStrategy<S, const N: usize = 1> {
    inside: S,
    set: BudgetSet<N>,
}

impl<S> FleetStrategy<S> {
    /// Puts `budget` before the sends of `inside`.
    pub fn new(inside: S, budget: Budget) -> Self {
        Self::of_set(inside, BudgetSet::from(budget))
    }

    /// Returns the budget that sends are paid from.
    pub fn budget(&self) -> &Budget {
        &self.set.budgets()[0]
    }
}

impl<S, const N: usize> FleetStrategy<S, N> {
    /// Puts the budgets of `set` before the sends of `inside`. All have one clock, as they have
    /// unless told otherwise.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{RetryStrategy, RetryStrategyExt, Standard, operation::Next, strategy::Reports};
    /// use paceline_fleet::{Away, BudgetSet, Fleet, FleetStrategy};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let fleet = Fleet::open("redis://127.0.0.1:1/")?; // no engine is there
    /// let minute = Duration::from_secs(60);
    /// let scope = |name, most| Ok::<_, paceline_fleet::FleetError>(fleet.scope(name, most, minute)?.when_away(Away::Open));
    /// let set = BudgetSet::new([scope("requests", 500)?.join()?, scope("tokens", 100_000)?.join()?])?;
    /// let strategy = FleetStrategy::of_set(Standard::new(), set);
    /// # tokio::time::sleep(Duration::from_millis(400)).await;
    /// let mut attempts = strategy.operation().weights([1, 1_200]).start();
    /// let Next::Send(_) = attempts.next(strategy.clock(), None) else { unreachable!() };
    /// let charge = attempts.charge().expect("it is under way");
    /// attempts.succeeded(Reports::new())?; // the headers are there
    /// charge.settle(&[1, 3_411])?; // ... the body says what it cost
    /// # Ok(())
    /// # }
    /// ```
    pub const fn of_set(inside: S, set: BudgetSet<N>) -> Self {
        Self { inside, set }
    }

    /// Returns the strategy that decides about retries.
    pub const fn inside(&self) -> &S {
        &self.inside
    }

    /// Returns the budgets that sends are paid from.
    pub const fn set(&self) -> &BudgetSet<N> {
        &self.set
    }

    /// Returns what an attempt takes of each budget.
    fn weights(request: SendRequest<'_>) -> Result<[u32; N], SetError> {
        let mut weights = [1; N];
        match request.tokens_of_each().map(Weights::as_slice) {
            None => weights[0] = request.tokens().max(1),
            // The others may be for the strategy inside.
            Some(each) if N == 1 => weights[0] = each[0],
            Some(each) if each.len() == N => weights.copy_from_slice(each),
            Some(each) => {
                let (given, rates) = (each.len(), N);
                return Err(SetError::Weights { given, rates });
            }
        }
        Ok(weights)
    }

    /// Records the outcome of a send in each budget that it took from, and settles its cost.
    fn record(&self, sent: Sent<N>, outcome: Outcome, reports: Reports<'_>) {
        for (budget, taken) in self.set.budgets().iter().zip(sent.taken) {
            let time = match sent.permit {
                Some(_) if taken == 0 => continue,
                Some(permit) => permit.time(),
                None => budget.clock().now(),
            };
            budget.record(SendPermit::sent_at(time), outcome);
        }
        let costs = reports.costs().map(Weights::as_slice);
        if let Some(costs) = costs.and_then(|costs| costs.get(..N)) {
            self.set.settle(sent.taken, costs);
        }
    }
}

impl<S: RetryStrategy, const N: usize> FleetStrategy<S, N> {
    /// Stops all members until the reset, if `reports` say that nothing is left of a limit, and the
    /// strategy inside knows the limit for one of an hour or longer.
    fn shut_if_spent(&self, reports: Reports<'_>) {
        let limits = reports.limits().into_iter().flat_map(LimitReports::iter);
        if !limits.into_iter().any(|limit| limit.remaining() == 0) {
            return;
        }
        let StrategySnapshot {
            rate,
            further_rates,
            ..
        } = self.inside.snapshot();
        let declared = iter::once(rate).chain(further_rates).flatten();
        let spent = declared
            .filter_map(|rate| rate.declared)
            .filter(|limit| limit.remaining < 1.0 && limit.window >= HOUR);
        if let Some(span) = spent.filter_map(|limit| limit.resets_in).max() {
            for budget in self.set.budgets() {
                budget.shut_for(span);
            }
        }
    }
}

/// The send in progress, if there is one, and what it took of each budget.
#[derive(Clone, Copy)]
struct Sent<const N: usize> {
    permit: Option<SendPermit>,
    taken: [u32; N],
}

impl<const N: usize> Sent<N> {
    fn of(token: &RetryToken) -> Self {
        Self {
            permit: token.send_permit(),
            taken: core::array::from_fn(|index| token.tokens_of(index)),
        }
    }
}

impl<S: RetryStrategy, const N: usize> RetryStrategy for FleetStrategy<S, N> {
    fn acquire_initial_token(
        &self,
        scope: Option<&str>,
    ) -> Result<RetryToken, InitialTokenRefused> {
        self.inside.acquire_initial_token(scope)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        failure: &Failure,
        reports: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        let outcome = match Outcome::from(failure) {
            Outcome::ThrottledFor(hint) => Outcome::ThrottledFor(hint.min(token.max_retry_after())),
            outcome => outcome,
        };
        self.record(Sent::of(&token), outcome, reports);
        let refreshed = self.inside.refresh_retry_token(token, failure, reports);
        self.shut_if_spent(reports);
        refreshed
    }

    fn record_success(&self, token: RetryToken, reports: Reports<'_>) -> Result<(), ForeignToken> {
        let sent = Sent::of(&token);
        self.inside.record_success(token, reports)?;
        self.record(sent, Outcome::NotThrottled, reports);
        self.shut_if_spent(reports);
        Ok(())
    }

    fn observe(&self, token: &RetryToken, reports: Reports<'_>) {
        self.inside.observe(token, reports);
        self.shut_if_spent(reports);
    }

    fn inside(&self) -> Option<&dyn RetryStrategy> {
        Some(&self.inside)
    }

    fn record_cancelled(
        &self,
        token: RetryToken,
        reports: Reports<'_>,
    ) -> Result<(), ForeignToken> {
        let sent = Sent::of(&token);
        self.inside.record_cancelled(token, reports)?;
        if sent.permit.is_some() {
            self.record(sent, Outcome::Unknown, reports);
        }
        Ok(())
    }

    fn charge(&self, token: &RetryToken) -> Option<AttemptCharge> {
        let sent = Sent::of(token);
        let _under_way = sent.permit?;
        let inside = self.inside.charge(token);
        // The one of more rates: each settles with the first costs.
        let of_inside = inside.as_ref().map(AttemptCharge::estimate);
        let estimate = match of_inside.filter(|inside| inside.as_slice().len() > N) {
            Some(estimate) => *estimate,
            None => Weights::of(&sent.taken).ok()?,
        };
        let budgets = self.set.clone();
        Some(AttemptCharge::new(estimate, move |costs| {
            budgets.settle(sent.taken, costs);
            inside.as_ref().map_or(Ok(()), |inside| {
                let rates = inside.estimate().as_slice().len();
                inside.settle(costs.get(..rates).unwrap_or(costs))
            })
        }))
    }

    fn admit(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
    ) -> Result<SendPermit, NotAdmitted> {
        let weights = Self::weights(request)?;
        // What a rate underneath the budget took is not for the strategy inside to settle.
        let gate = |place: &mut _| {
            let (background, waker) = (request.is_background(), request.to_wake());
            self.set.admit(place, weights, background, waker)
        };
        let permit = turn.gated(|turn| self.inside.admit(turn, request), gate)?;
        if N > 1 || request.tokens_of_each().is_some() {
            turn.note(permit, &Weights::of(&weights)?);
        }
        Ok(permit)
    }

    fn is_idle(&self) -> bool {
        self.inside.is_idle() && self.set.budgets().iter().all(Budget::is_idle)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::sync::{Arc, Mutex};

    use paceline::law::{LimitReport, LimitReports, PacedSettings, Reset};
    use paceline::operation::{Next, StopReason, Verdict};
    use paceline::scope::ScopesBuilder;
    use paceline::strategy::{Event, in_class};
    use paceline::{
        Adaptive, Class, Clock, Operation, RetryStrategyExt, SendRate, Standard, Timestamp,
    };
    use tokio::sync::watch;

    use super::*;
    use crate::budget::tests::Goes;
    use crate::pool::Pool;
    use crate::snapshot::BudgetSnapshot;

    /// Returns a budget whose engine holds nothing back.
    fn open(clock: Arc<dyn Clock>, local: Option<Arc<SendRate>>) -> Budget {
        let pool = Arc::new(Pool::new());
        pool.open();
        let (_, seen) = watch::channel(BudgetSnapshot::default());
        Budget::new(pool, clock, local, seen)
    }

    /// A thousand tokens a second, and a bucket of as many.
    fn thousand() -> PacedSettings {
        let second = Duration::from_secs(1);
        PacedSettings::fixed(1_000, second)
            .and_then(|fixed| fixed.to_builder().burst(second).build())
            .unwrap()
    }

    #[test]
    fn what_the_service_declares_reaches_the_strategy_inside() {
        let budget = open(Arc::new(Timestamp::ZERO), None);
        let known =
            |strategy: &FleetStrategy<Adaptive>| Some(strategy.snapshot().rate?.declared?.limit);
        let strategy = FleetStrategy::new(Adaptive::declared(), budget.clone());
        assert!(strategy.obeys_limits());
        assert_eq!(known(&strategy), None);
        let token = strategy.acquire_initial_token(None).unwrap();
        let reset = Reset::In(Duration::from_secs(60));
        let limits = LimitReports::from(LimitReport::new(30).limit(60).reset(reset));
        strategy.observe(&token, Reports::new().declaring(&limits));
        assert_eq!(known(&strategy), Some(60));
        assert!(!FleetStrategy::new(Adaptive::paced(), budget).obeys_limits());
    }

    #[test]
    fn a_spent_day_stops_the_fleet_until_its_reset() {
        let day = Duration::from_secs(86_400);
        for (left, window, shut) in [(1, day, false), (0, day / 1_440, false), (0, day, true)] {
            let pool = Arc::new(Pool::new());
            pool.open();
            let (_, seen) = watch::channel(BudgetSnapshot::default());
            let budget = Budget::new(Arc::clone(&pool), Arc::new(Timestamp::ZERO), None, seen);
            let strategy = FleetStrategy::new(Adaptive::declared(), budget);
            let clock = Timestamp::ZERO;
            let mut attempts = Operation::new(&strategy).start();
            let Next::Send(_) = attempts.next(&clock, None) else {
                panic!("nothing is known yet")
            };
            let reset = Reset::In(window / 2);
            let report = LimitReport::new(left).limit(60).window(window).reset(reset);
            let limits = LimitReports::from(report);
            attempts
                .succeeded(Reports::at(&clock).declaring(&limits))
                .expect("it is this strategy's");
            let until = Duration::from_nanos(pool.shut_until().as_nanos());
            assert_eq!(until >= day / 2, shut, "{left} of {window:?}: {until:?}");
        }
    }

    #[test]
    fn a_success_pays_back_what_the_retry_cost() {
        let budget = open(Arc::new(Timestamp::ZERO), None);
        let strategy = FleetStrategy::new(Standard::new(), budget);
        let full = strategy.inside().quota().available();
        let token = strategy.acquire_initial_token(None).unwrap();
        let failure = Failure::transient();
        let token = strategy
            .refresh_retry_token(token, &failure, Reports::new())
            .unwrap();
        assert!(strategy.inside().quota().available() < full);
        strategy.record_success(token, Reports::new()).unwrap();
        assert_eq!(strategy.inside().quota().available(), full);
    }

    #[test]
    fn what_a_send_took_of_the_strategy_inside_can_be_settled() {
        let clock = Arc::new(Timestamp::ZERO);
        let inside = Adaptive::builder().paced(thousand()).clock(clock.clone());
        let strategy = FleetStrategy::new(inside.build().unwrap(), open(clock.clone(), None));
        let available = || format!("{:.0}", strategy.snapshot().rate.unwrap().available);
        let mut attempts = Operation::new(&strategy).weight(600).start();
        assert!(matches!(attempts.next(&*clock, None), Next::Send(_)));
        let charge = attempts.charge().unwrap();
        attempts.succeeded(Reports::at(&*clock)).unwrap();
        assert_eq!(available(), "400");
        charge.settle(&[150]).unwrap();
        assert_eq!(available(), "850");
    }

    #[test]
    fn its_events_have_the_name_of_the_strategy_inside() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hook = {
            let heard = Arc::clone(&heard);
            move |event: &Event<'_>| heard.lock().unwrap().push(event.to_string())
        };
        let inside = Standard::builder().name("orders").on_event(hook);
        let clock = Arc::new(Timestamp::ZERO);
        let inside = inside.clock(clock.clone()).build().unwrap();
        let strategy = FleetStrategy::new(inside, open(clock.clone(), None));
        let mut attempts = Operation::new(&strategy).start();
        assert!(matches!(attempts.next(&*clock, None), Next::Send(_)));
        let verdict = attempts.failed(&Failure::not_retryable(), Reports::at(&*clock));
        assert!(matches!(verdict, Ok(Verdict::Stop(_))));
        let heard = heard.lock().unwrap();
        let last =
            "orders: gave up: attempts 1, the failure is not retryable, error; not retryable";
        assert_eq!(heard.last().unwrap(), last);
    }

    #[test]
    fn what_a_rate_underneath_took_is_not_the_strategys() {
        let local = SendRate::paced(thousand(), Timestamp::ZERO);
        let budget = open(Arc::new(Timestamp::ZERO), Some(Arc::new(local)));
        let strategy = FleetStrategy::new(Standard::new(), budget);
        let permit = strategy.admit(&mut SendTurn::new(), SendRequest::new());
        assert_eq!(permit.unwrap(), SendPermit::sent_at(Timestamp::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_underneath_is_cut_to_what_got_through() {
        let clock = Arc::new(Goes::new());
        let local = Arc::new(SendRate::paced(PacedSettings::new(), Timestamp::ZERO));
        let budget = open(clock.clone(), Some(Arc::clone(&local)));
        let strategy = FleetStrategy::new(Standard::new(), budget);
        for number in 1..=300 {
            let mut attempts = Operation::new(&strategy).start();
            assert!(matches!(attempts.next(&*clock, None), Next::Send(_)));
            tokio::time::advance(Duration::from_millis(10)).await;
            let reports = Reports::at(&*clock);
            if number == 300 {
                attempts.failed(&Failure::throttling(), reports).unwrap();
            } else if number % 2 == 0 {
                attempts.failed(&Failure::transient(), reports).unwrap();
            } else {
                attempts.succeeded(reports).unwrap();
            }
        }
        // A hundred a second were sent, and the last one was too many.
        let limited = local.snapshot(clock.now()).fill_rate;
        assert!((75.0..100.0).contains(&limited), "{limited}");
    }

    /// A pool that gets so many tokens each 10 ms, by the clock of the runtime.
    fn poured(clock: &Arc<Goes>, tokens: u32) -> (Arc<Pool>, Budget) {
        let pool = Arc::new(Pool::new());
        pool.good_until(Timestamp::from_nanos(u64::MAX));
        pool.set_rate(100_000 * u64::from(tokens));
        let (_, seen) = watch::channel(BudgetSnapshot::default());
        let budget = Budget::new(Arc::clone(&pool), clock.clone(), None, seen);
        let pours = Arc::clone(&pool);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(10)).await;
                pours.pour(tokens);
            }
        });
        (pool, budget)
    }

    /// One that gets a hundred a second.
    fn hundred() -> (Arc<Pool>, Budget, Arc<Goes>) {
        let clock = Arc::new(Goes::new());
        let (pool, budget) = poured(&clock, 1);
        (pool, budget, clock)
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_workers_are_served_in_turn() {
        let (_pool, budget, _) = hundred();
        let strategy = Arc::new(FleetStrategy::new(Standard::new(), budget));
        let workers: Vec<_> = (0..100)
            .map(|_| {
                let strategy = Arc::clone(&strategy);
                tokio::spawn(async move {
                    let mut waits = Vec::new();
                    for _ in 0..5 {
                        let began = tokio::time::Instant::now();
                        let sent = strategy.run_async(async |_| Ok::<_, Failure>(())).await;
                        assert!(sent.is_ok());
                        waits.push(began.elapsed().as_millis());
                    }
                    waits.split_off(1)
                })
            })
            .collect();
        for worker in workers {
            let waits = worker.await.unwrap();
            // Each is behind the 99 others; the timer has steps of a millisecond.
            assert!(
                waits.iter().all(|wait| (998..=1_002).contains(wait)),
                "{waits:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_is_refused_at_once_with_the_wait_of_the_line() {
        let (pool, budget, clock) = hundred();
        let inside = Standard::builder().clock(clock.clone()).build();
        let strategy = FleetStrategy::new(inside.unwrap(), budget);
        let _before = crate::line::Place::take(&pool, 400, false);
        let deadline = |span| Operation::new(&strategy).deadline(span).start();
        let mut early = deadline(Duration::from_millis(3_999));
        let Next::Stop(stop) = early.next(&*clock, None) else {
            panic!("it cannot be in time");
        };
        assert!(
            matches!(stop.why(), StopReason::OutOfTime { wait, .. } if wait == Duration::from_secs(4)),
            "{stop:?}"
        );
        drop(early);
        let mut late = deadline(Duration::from_millis(4_001));
        assert!(matches!(late.next(&*clock, None), Next::InLine(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_takes_its_weight_and_background_goes_last() {
        let (pool, budget, clock) = hundred();
        let strategy = Arc::new(FleetStrategy::new(Standard::new(), budget));
        let backfill = in_class(Arc::clone(&strategy), Class::Background);
        let mut behind = Operation::new(&backfill).start();
        let mut heavy = Operation::new(&strategy).weight(10).start();
        pool.pour(9);
        assert!(matches!(heavy.next(&*clock, None), Next::InLine(_)));
        assert!(matches!(behind.next(&*clock, None), Next::InLine(_)));
        pool.pour(1);
        assert!(matches!(behind.next(&*clock, None), Next::InLine(_)));
        assert!(matches!(heavy.next(&*clock, None), Next::Send(_)));
        assert_eq!(pool.available(), 0);
        pool.pour(1);
        assert!(matches!(behind.next(&*clock, None), Next::Send(_)));
        // Given up in line, a place is free, and its tokens are back.
        let mut given_up = Operation::new(&strategy).weight(10).start();
        pool.pour(5);
        assert!(matches!(given_up.next(&*clock, None), Next::InLine(_)));
        assert!(!strategy.is_idle());
        drop(given_up);
        assert_eq!((pool.available(), pool.has_backlog()), (5, false));
    }

    /// Plays operations that are cancelled, late and heavy, on budgets that get so many hundreds of
    /// tokens a second, and take up to as many of each as `heaviest`.
    async fn cancelled_late_and_heavy<const N: usize>(hundreds: [u32; N], heaviest: [u32; N]) {
        use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

        let clock = Arc::new(Goes::new());
        let both = hundreds.map(|tokens| poured(&clock, tokens));
        let pools = both.each_ref().map(|(pool, _)| Arc::clone(pool));
        let budgets = BudgetSet::new(both.map(|(_, budget)| budget)).unwrap();
        let inside = Standard::builder().clock(clock.clone()).build();
        let strategy = Arc::new(FleetStrategy::of_set(inside.unwrap(), budgets));
        let sent: Arc<[AtomicU64; N]> = Arc::new(core::array::from_fn(|_| AtomicU64::new(0)));
        let workers: Vec<_> = (0..30)
            .map(|seed| {
                let (strategy, sent) = (Arc::clone(&strategy), Arc::clone(&sent));
                tokio::spawn(async move {
                    let mut random = fastrand::Rng::with_seed(seed);
                    loop {
                        let mut weights = heaviest.map(|most| random.u32(0..=most));
                        weights[0] = weights[0].max(1);
                        let operation = Operation::new(&*strategy);
                        let mut operation = if N == 1 {
                            operation.weight(weights[0])
                        } else {
                            operation.weights(Weights::of(&weights).unwrap())
                        };
                        if random.bool() {
                            operation =
                                operation.deadline(Duration::from_millis(random.u64(..900)));
                        }
                        let sends = operation.run_async(async |_| {
                            for (sent, weight) in sent.iter().zip(weights) {
                                sent.fetch_add(weight.into(), Relaxed);
                            }
                            Ok::<_, Failure>(())
                        });
                        let patience = Duration::from_millis(random.u64(1..1_500));
                        // Given up in line, refused at once, or sent.
                        let _how = tokio::time::timeout(patience, sends).await;
                        tokio::time::sleep(Duration::from_millis(random.u64(..50))).await;
                    }
                })
            })
            .collect();
        let counted = || sent.each_ref().map(|sent| sent.load(Relaxed));
        let most = |second: u64| {
            let a_second = hundreds.map(|hundreds| u64::from(hundreds).saturating_mul(100));
            a_second.map(|tokens| tokens.saturating_mul(second))
        };
        let mut before = 0;
        for second in 1..=60 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (so_far, most) = (counted(), most(second));
            let kept = so_far.iter().zip(most).all(|(sent, most)| *sent <= most);
            assert!(kept, "{so_far:?} after {second} s");
            let first = so_far[0];
            assert!(first > before, "none gets through in second {second}");
            before = first;
        }
        for worker in workers {
            worker.abort();
            let _ended = worker.await;
        }
        // What was not sent is there.
        for ((pool, sent), most) in pools.iter().zip(counted()).zip(most(60)) {
            let there = sent.saturating_add(u64::from(pool.available()));
            assert!(there.abs_diff(most) <= most / 3_000, "{there} of {most}");
            assert!(!pool.has_backlog());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn cancelled_late_and_heavy_operations_never_send_more_and_never_stop_the_line() {
        cancelled_late_and_heavy([1], [6]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn nor_do_those_of_several_budgets() {
        // Each binds for a part of the operations.
        cancelled_late_and_heavy([1, 4], [6, 26]).await;
        cancelled_late_and_heavy([3, 1], [6, 6]).await;
    }

    /// A strategy with two budgets that hold so much, and their pools.
    fn pair<S>(inside: S, held: [u32; 2]) -> (FleetStrategy<S, 2>, [Arc<Pool>; 2]) {
        let both = held.map(|tokens| {
            let (pool, clock) = (Arc::new(Pool::new()), Arc::new(Timestamp::ZERO));
            pool.good_until(Timestamp::from_nanos(u64::MAX));
            pool.set_rate(1_000_000);
            pool.pour(tokens);
            let (_, seen) = watch::channel(BudgetSnapshot::default());
            let budget = Budget::new(Arc::clone(&pool), clock, None, seen);
            (pool, budget)
        });
        let pools = both.each_ref().map(|(pool, _)| Arc::clone(pool));
        let set = BudgetSet::new(both.map(|(_, budget)| budget)).unwrap();
        (FleetStrategy::of_set(inside, set), pools)
    }

    fn held(pools: &[Arc<Pool>; 2]) -> [u32; 2] {
        pools.each_ref().map(|pool| pool.available())
    }

    #[test]
    fn an_attempt_takes_of_each_budget_or_waits_for_all() {
        let (strategy, pools) = pair(Standard::new(), [10, 100]);
        let start = |weights: [u32; 2]| Operation::new(&strategy).weights(weights).start();
        let mut first = start([1, 60]);
        assert!(matches!(first.next(&Timestamp::ZERO, None), Next::Send(_)));
        assert_eq!(held(&pools), [9, 40]);
        let [mut waits, mut behind] = [start([1, 60]), start([1, 1])];
        assert!(matches!(
            waits.next(&Timestamp::ZERO, None),
            Next::InLine(_)
        ));
        assert!(matches!(
            behind.next(&Timestamp::ZERO, None),
            Next::InLine(_)
        ));
        // Those that take nothing of it do not wait for it.
        let mut none = start([0, 0]);
        assert!(matches!(none.next(&Timestamp::ZERO, None), Next::Send(_)));
        pools[1].pour(20);
        assert!(matches!(waits.next(&Timestamp::ZERO, None), Next::Send(_)));
        assert!(matches!(
            behind.next(&Timestamp::ZERO, None),
            Next::InLine(_)
        ));
        drop(behind);
        assert_eq!(held(&pools), [8, 0]);
        assert!(strategy.is_idle());
        // Without weights it takes one of each; with three there is no such operation.
        pools[1].pour(5);
        let mut plain = Operation::new(&strategy).weight(3).start();
        assert!(matches!(plain.next(&Timestamp::ZERO, None), Next::Send(_)));
        assert_eq!(held(&pools), [5, 4]);
        let mut wrong = Operation::new(&strategy).weights([1, 2, 3]).start();
        let Next::Stop(stop) = wrong.next(&Timestamp::ZERO, None) else {
            panic!("it has two budgets");
        };
        let (given, rates) = (3, 2);
        let error = SetError::Weights { given, rates };
        assert!(matches!(stop.why(), StopReason::Weight(why) if why == error));
        assert_eq!(held(&pools), [5, 4]);
    }

    #[test]
    fn given_up_in_line_it_gives_back_what_it_has_of_each() {
        let (strategy, pools) = pair(Standard::new(), [1, 20]);
        let mut waits = Operation::new(&strategy).weights([2, 60]).start();
        assert!(matches!(
            waits.next(&Timestamp::ZERO, None),
            Next::InLine(_)
        ));
        pools[0].pour(1);
        assert!(matches!(
            waits.next(&Timestamp::ZERO, None),
            Next::InLine(_)
        ));
        assert!(!strategy.is_idle());
        drop(waits);
        assert_eq!(held(&pools), [2, 20]);
        assert!(strategy.is_idle());
    }

    #[test]
    fn costs_settle_with_the_outcome_or_later_and_once() {
        let (strategy, pools) = pair(Standard::new(), [10, 100]);
        let send = || {
            let mut attempts = Operation::new(&strategy).weights([1, 60]).start();
            assert!(matches!(
                attempts.next(&Timestamp::ZERO, None),
                Next::Send(_)
            ));
            attempts
        };
        let costs = Weights::from([1, 20]);
        let mut attempts = send();
        let reports = Reports::new().costing(&costs);
        attempts.succeeded(reports).unwrap();
        assert_eq!(held(&pools), [9, 80]);
        let mut attempts = send();
        let charge = attempts.charge().unwrap();
        assert_eq!(charge.estimate().as_slice(), [1, 60]);
        attempts.succeeded(Reports::new()).unwrap();
        assert_eq!(held(&pools), [8, 20]);
        assert!(charge.settle(&[30]).is_err());
        for _ in 0..2 {
            charge.settle(&[1, 30]).unwrap();
            assert_eq!(held(&pools), [8, 50]);
        }
        // A failure costs too, and its retry is another attempt.
        pools[1].pour(50);
        let mut attempts = send();
        let retries = attempts.failed(&Failure::transient(), reports);
        assert!(matches!(retries, Ok(Verdict::Again(_))));
        assert_eq!(held(&pools), [7, 80]);
    }

    #[test]
    fn what_was_taken_of_both_is_settled_with_both() {
        let clock = Arc::new(Timestamp::ZERO);
        let inside = Adaptive::builder().paced(thousand()).clock(clock.clone());
        let (strategy, pools) = pair(inside.build().unwrap(), [10, 900]);
        let available = || format!("{:.0}", strategy.snapshot().rate.unwrap().available);
        let mut attempts = Operation::new(&strategy).weights([4, 600]).start();
        assert!(matches!(attempts.next(&*clock, None), Next::Send(_)));
        assert_eq!((available().as_str(), held(&pools)), ("996", [6, 300]));
        let charge = attempts.charge().unwrap();
        attempts.succeeded(Reports::at(&*clock)).unwrap();
        charge.settle(&[1, 150]).unwrap();
        assert_eq!((available().as_str(), held(&pools)), ("999", [9, 750]));
    }

    #[test]
    fn one_budget_is_settled_too() {
        let budget = open(Arc::new(Timestamp::ZERO), None);
        let pool = Arc::clone(budget.pool());
        pool.good_until(Timestamp::from_nanos(u64::MAX));
        pool.pour(600);
        let strategy = FleetStrategy::new(Standard::new(), budget);
        let mut attempts = Operation::new(&strategy).weight(600).start();
        assert!(matches!(
            attempts.next(&Timestamp::ZERO, None),
            Next::Send(_)
        ));
        let costs = Weights::from([150]);
        attempts.succeeded(Reports::new().costing(&costs)).unwrap();
        assert_eq!(pool.available(), 450);
    }

    #[test]
    fn a_throttle_is_told_to_the_budgets_that_it_took_from() {
        let (strategy, pools) = pair(Standard::new(), [10, 100]);
        let mut attempts = Operation::new(&strategy).weights([0, 60]).start();
        assert!(matches!(
            attempts.next(&Timestamp::ZERO, None),
            Next::Send(_)
        ));
        let verdict = attempts.failed(&Failure::throttling(), Reports::new());
        assert!(matches!(verdict, Ok(Verdict::Again(_))));
        let told = pools.each_ref().map(|pool| pool.throttles().count);
        assert_eq!(told, [0, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn it_stands_in_scopes_and_around_them() {
        let (pool, budget, clock) = hundred();
        let each = budget.clone();
        let scopes =
            ScopesBuilder::new(move |_| Ok(FleetStrategy::new(Standard::new(), each.clone())));
        let inner = Standard::builder().scopes().build().unwrap();
        let strategies: [Box<dyn RetryStrategy>; 2] = [
            Box::new(scopes.build().unwrap()),
            Box::new(FleetStrategy::new(inner, budget)),
        ];
        for strategy in &strategies {
            let mut attempts = Operation::new(strategy).scope("a").weight(3).start();
            pool.pour(2);
            assert!(matches!(attempts.next(&*clock, None), Next::InLine(_)));
            pool.pour(1);
            assert!(matches!(attempts.next(&*clock, None), Next::Send(_)));
            attempts.succeeded(Reports::at(&*clock)).unwrap();
            assert_eq!(pool.available(), 0);
        }
    }
}
