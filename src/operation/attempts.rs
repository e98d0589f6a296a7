//! One operation under way: everything that a retry loop does but waiting and sending.

use alloc::sync::Arc;
use core::{error::Error, fmt, task::Waker, time::Duration};

use super::{
    Attempt, OuterAttempt, Stop, StopReason,
    bounds::Bounds,
    spent::{Doing, Spent},
};
use crate::{
    Clock, Failure, RetrySafety, RetryStrategy, RetryToken, SendPermit, Timestamp,
    strategy::{
        AttemptCharge, Event, EventKind, MAX_RETRY_AFTER, NotAdmitted, Reports, SendRequest,
        SendTurn, StrategyId, hint_too_long,
    },
    wait::Rest,
};

/// One operation under way, without input and output: it decides what comes next and leaves the
/// waiting and the sending to its host.
///
/// From [`Operation::start`](crate::Operation::start). The host asks [`next`](Self::next), does
/// what it says, and reports how each attempt went with [`succeeded`](Self::succeeded) or
/// [`failed`](Self::failed). The value owns the token of the operation and with it the use of its
/// scope, the place in line, the deadline, the cap on the service's hints, and the recording.
/// Dropped at any point it gives the place and the scope back. A retry that was not sent costs
/// nothing then, and a send in progress counts as
/// [cancelled](RetryStrategy::record_cancelled), at the time of the strategy's clock.
///
/// It is `Send` and `'static` where the strategy `S` is: an `Arc`, or `Scopes`. It allocates
/// nothing, unless its strategy has several send rates or it is reported as slow.
/// [`Waiter`](crate::operation::Waiter) drives it in a task, [`wait_blocking`](Self::wait_blocking)
/// on a thread.
///
/// Times come from the host, in the form of a clock or of a [`Timestamp`]. They have to be of the
/// [strategy's clock](RetryStrategy::clock).
///
/// # Examples
///
/// The loop of a host with its own sleep:
///
/// ```
/// use std::thread::sleep;
/// use paceline::{
///     Failure, Operation, RetryStrategy, Standard, operation::{Attempts, Next}, strategy::Reports,
/// };
///
/// fn send(number: u32) -> Result<&'static str, Failure> {
///     if number == 1 { Err(Failure::transient()) } else { Ok("sent") }
/// }
///
/// let strategy = Standard::new();
/// let clock = strategy.clock();
/// let mut attempts: Attempts<_> = Operation::new(&strategy).start();
/// let response = loop {
///     match attempts.next(clock, None) {
///         Next::Sleep(rest) | Next::InLine(rest) => sleep(rest.span()),
///         Next::Stop(stop) => break Err(stop.to_string()),
///         Next::Send(attempt) => match send(attempt.number()) {
///             Ok(response) => {
///                 attempts.succeeded(Reports::at(clock))?;
///                 break Ok(response);
///             }
///             Err(failure) => drop(attempts.failed(&failure, Reports::at(clock))?),
///         },
///         _ => break Err("a step that this host does not know".to_owned()),
///     }
/// };
/// assert_eq!(response, Ok("sent"));
/// # Ok::<(), paceline::operation::NotSending>(())
/// ```
#[must_use = "an operation does nothing unless it is asked what comes next"]
pub struct Attempts<S: RetryStrategy> {
    open: Open<S>,
    bounds: Bounds,
    /// The longest wait that the service may ask for.
    max_retry_after: Duration,
    deadline: Option<Timestamp>,
    turn: SendTurn,
    step: Step,
    /// The attempts begun.
    count: u32,
    /// Whether the request can be sent again.
    repeatable: bool,
}

/// The strategy, or the scope, that an operation belongs to.
struct Who {
    strategy: Option<StrategyId>,
    name: Option<Arc<str>>,
}

/// An operation that has not ended as long as there is a token. Dropped before it is given up.
struct Open<S: RetryStrategy> {
    strategy: S,
    /// `None` if the strategy gave none, and after the last attempt.
    token: Option<RetryToken>,
    /// Where its time went; `None` if it is not to be reported.
    spent: Option<Spent>,
}

impl<S: RetryStrategy> Open<S> {
    /// Ends an operation of which the loop says that it gives it up.
    fn give_up(&mut self, reports: Reports<'_>) {
        if let Some(token) = &mut self.token {
            token.give_up();
        }
        self.cancel(reports);
    }

    /// Returns the strategy, or the scope, that the operation belongs to.
    fn who(&self) -> Who {
        let token = self.token.as_ref();
        Who {
            strategy: token
                .map(RetryToken::strategy)
                .or_else(|| self.strategy.id()),
            name: self.strategy.name(token),
        }
    }

    /// Hands an event to `tracing` and to the strategy's hook.
    fn tell(&self, who: &Who, kind: EventKind<'_>) {
        let event = Event::new(who.strategy, who.name.as_deref(), kind);
        #[cfg(feature = "tracing")]
        event.trace();
        self.strategy.notify(&event);
    }

    /// Notes what the operation does from now on.
    #[inline]
    fn goes(&mut self, doing: Doing) {
        if let Some(spent) = &mut self.spent {
            spent.goes(doing);
        }
    }

    /// Tells of a slow operation that it has ended. To be called while its token is there.
    #[inline]
    fn ends(&mut self, reports: Reports<'_>) {
        if self.spent.is_some() {
            self.ends_slowly(reports);
        }
    }

    // Out of the way of operations that are not reported.
    #[cold]
    #[inline(never)]
    fn ends_slowly(&mut self, reports: Reports<'_>) {
        let own = self.strategy.clock();
        let Some(mut spent) = self.spent.take() else {
            return;
        };
        // Dropped without a word of the clock that it began by.
        if spent.is_own() || reports.has_clock() {
            spent.pass(reports.clock(own).now());
            spent.show(|kind| self.tell(&self.who(), kind));
        }
    }

    /// Gives back what the operation holds.
    // Out of the way of one that has ended.
    #[cold]
    fn cancel(&mut self, reports: Reports<'_>) {
        self.ends(reports);
        if let Some(token) = self.token.take() {
            // A strategy that refuses its own token has nothing to give back.
            let _recorded = self.strategy.record_cancelled(token, reports);
        }
    }
}

impl<S: RetryStrategy> Drop for Open<S> {
    #[inline]
    fn drop(&mut self) {
        if self.token.is_some() {
            self.cancel(Reports::new());
        }
    }
}

/// Where an operation stands.
#[derive(Clone, Debug)]
enum Step {
    Backoff(Timestamp),
    Turn,
    Sending,
    Succeeded,
    Stopped(Stop),
}

/// What the host of an [`Attempts`] does next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// Sleep: a backoff. No place in line is held meanwhile.
    Sleep(Rest),
    /// Wait in line: ask again at the end of the rest, or when the waker is woken.
    InLine(Rest),
    /// Send this attempt.
    Send(Attempt),
    /// Stop. There is no further attempt.
    Stop(Stop),
}

/// What follows a failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// There is another attempt, after this backoff. [`Attempts::next`] says the same.
    Again(Rest),
    /// There is none. The host sleeps [`Stop::delay`], which is nearly always zero, and returns the
    /// failure.
    Stop(Stop),
}

/// An outcome was reported while no attempt was under way. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NotSending;

impl fmt::Display for NotSending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an outcome was reported while no attempt was under way")
    }
}

impl Error for NotSending {}

impl<S: RetryStrategy> Attempts<S> {
    pub(super) fn start(
        strategy: S,
        scope: Option<&str>,
        mut bounds: Bounds,
        clock: Option<&dyn Clock>,
    ) -> Self {
        bounds.outer = bounds.outer.or_else(OuterAttempt::current);
        let token = strategy.acquire_initial_token(scope).ok();
        let delay = token.as_ref().map_or(Duration::ZERO, RetryToken::delay);
        let total = bounds
            .total
            .or_else(|| token.as_ref().and_then(RetryToken::time_left));
        let said = token.as_ref().map(RetryToken::max_retry_after);
        let max_retry_after = bounds.max_retry_after.or(said).unwrap_or(MAX_RETRY_AFTER);
        let mut attempts = Self {
            open: Open {
                strategy,
                token,
                spent: None,
            },
            bounds,
            max_retry_after,
            deadline: None,
            turn: SendTurn::new(),
            step: Step::Turn,
            count: 0,
            repeatable: true,
        };
        let token = attempts.open.token.as_ref();
        if Spent::is_asked_for(token) {
            let own = attempts.open.strategy.clock();
            attempts.open.spent = Some(Spent::since(clock.unwrap_or(own), own));
        }
        // No clock is read that is not needed.
        if total.is_some() || !delay.is_zero() {
            let now = clock.unwrap_or(attempts.open.strategy.clock()).now();
            attempts.deadline = total.map(|total| now.saturating_add(total));
            if !delay.is_zero() {
                attempts.open.goes(Doing::BackingOff);
                attempts.step = Step::Backoff(now.saturating_add(delay));
                if let Some(reason) = attempts.out_of_time(now, delay) {
                    let clock = clock.unwrap_or(&now);
                    let _stopped = attempts.stop(reason, clock);
                }
            }
        }
        attempts
    }

    /// Returns what comes next. A second call at the same time changes nothing, but
    /// [`Next::Send`] is returned once for each attempt.
    ///
    /// `waker` is woken when the turn of an operation in line comes sooner than it was said to.
    /// Without one, an operation in line looks every 50 ms.
    ///
    /// Asked while an attempt is under way, or after a success, it says [`StopReason::OutOfTurn`].
    #[inline]
    pub fn next(&mut self, clock: &dyn Clock, waker: Option<&Waker>) -> Next {
        match self.step {
            Step::Turn => self.ask(clock, waker),
            _ => self.look(clock, waker),
        }
    }

    #[inline(never)]
    fn look(&mut self, clock: &dyn Clock, waker: Option<&Waker>) -> Next {
        match self.step {
            Step::Backoff(until) => {
                let now = clock.now();
                if now < until {
                    return Next::Sleep(Rest::between(now, until));
                }
                self.step = Step::Turn;
                self.ask(clock, waker)
            }
            Step::Turn => self.ask(clock, waker),
            Step::Stopped(ref stop) => Next::Stop(stop.clone()),
            Step::Sending | Step::Succeeded => Next::Stop(self.stop_for(StopReason::OutOfTurn)),
        }
    }

    /// Asks the strategy to admit an attempt.
    fn ask(&mut self, clock: &dyn Clock, waker: Option<&Waker>) -> Next {
        let mut request = SendRequest::new().weight(self.bounds.weight).at(clock);
        if let Some(by) = self.deadline {
            // Asked before the turn is: one that has come would be spent.
            let now = clock.now();
            if let Some(reason) = self.out_of_time(now, Duration::ZERO) {
                return self.stop(reason, clock);
            }
            if !self.waits_out() {
                let left = by.saturating_since(now);
                request = request.within(left.saturating_sub(Duration::from_nanos(1)));
            }
        }
        request = request.class(self.bounds.class);
        if let Some(weights) = &self.bounds.weights {
            request = request.weights(weights);
        }
        if let Some(token) = &self.open.token {
            request = request.token(token);
        }
        if let Some(waker) = waker {
            request = request.waker(waker);
        }
        if let Some(spent) = &mut self.open.spent {
            spent.pass(clock.now());
        }
        match self.open.strategy.admit(&mut self.turn, request) {
            Ok(permit) => Next::Send(self.send(permit, clock)),
            Err(not_yet) => self.not_admitted(not_yet, clock),
        }
    }

    // Out of the way of an attempt that goes at once.
    #[inline(never)]
    fn not_admitted(&mut self, why: NotAdmitted, clock: &dyn Clock) -> Next {
        match why {
            NotAdmitted::Wait { wait, look_in } => {
                let now = clock.now();
                // Of a strategy that does not ask how long a request may wait.
                if let Some(reason) = self.out_of_time(now, wait).filter(|_| !self.waits_out()) {
                    let background = self.bounds.class.is_background();
                    self.open.tell(
                        &self.open.who(),
                        EventKind::SendRefused { wait, background },
                    );
                    return self.stop(reason, clock);
                }
                self.open.goes(Doing::waits_for(self.turn.limit()));
                // Background may rest for longer than its estimate.
                let until = now.saturating_add(look_in);
                let until = self.deadline.map_or(until, |by| until.min(by));
                Next::InLine(Rest::between(now, until))
            }
            NotAdmitted::Refused { wait } => {
                let reason = self.out_of_time(clock.now(), wait);
                self.stop(reason.unwrap_or(StopReason::SendRefused { wait }), clock)
            }
            NotAdmitted::Stalled { span } => self.stop(StopReason::Stalled { span }, clock),
            NotAdmitted::Weight(error) => self.stop(StopReason::Weight(error), clock),
            NotAdmitted::Set(error) => self.stop(StopReason::Set(error), clock),
        }
    }

    fn send(&mut self, permit: SendPermit, clock: &dyn Clock) -> Attempt {
        let granted = self.turn.take_granted();
        self.turn = SendTurn::new();
        self.step = Step::Sending;
        self.count = self.count.saturating_add(1);
        if let Some(spent) = &mut self.open.spent {
            spent.sends();
        }
        if let Some(token) = &mut self.open.token {
            token.sent(permit);
            token.sent_by_set(granted);
        }
        let max = self.max_attempts();
        let left = self.deadline.map(|by| by.saturating_since(clock.now()));
        let limit = match (left, self.bounds.attempt) {
            (Some(left), Some(limit)) => Some(left.min(limit)),
            (left, limit) => left.or(limit),
        };
        Attempt::new(self.count, max)
            .with_time_limit(limit)
            .with_outer(self.bounds.outer)
    }

    /// Marks the backoff as slept. Use it if your sleep uses another clock.
    pub fn slept(&mut self) {
        if let Step::Backoff(_) = self.step {
            self.step = Step::Turn;
        }
    }

    /// Returns the backoff that is left before the next attempt, or `None` if there is none.
    #[must_use]
    pub fn backoff(&self, clock: &dyn Clock) -> Option<Rest> {
        let Step::Backoff(until) = self.step else {
            return None;
        };
        let now = clock.now();
        (now < until).then(|| Rest::between(now, until))
    }

    /// Sets whether the request can be sent again: yes by default. If not, a failure that would be
    /// retried stops the operation with [`StopReason::NotRepeatable`], and no quota is taken.
    pub const fn set_repeatable(&mut self, repeatable: bool) {
        self.repeatable = repeatable;
    }

    /// Takes in what the service declares about its limits when the headers of its response come,
    /// ahead of the outcome.
    ///
    /// # Errors
    ///
    /// [`NotSending`] if there is no attempt under way.
    pub fn observe(&self, reports: Reports<'_>) -> Result<(), NotSending> {
        let Step::Sending = self.step else {
            return Err(NotSending);
        };
        if let Some(token) = &self.open.token {
            self.open.strategy.observe(token, reports);
        }
        Ok(())
    }

    /// Returns what the attempt under way took of the send rates, to be settled with its true cost
    /// after its outcome was recorded: `None` if there is none under way, or nothing to settle.
    pub fn charge(&self) -> Option<AttemptCharge> {
        let token = self.open.token.as_ref().filter(|_| self.is_sending())?;
        self.open.strategy.charge(token)
    }

    /// Reports that the attempt under way succeeded. The operation has ended.
    ///
    /// # Errors
    ///
    /// [`NotSending`] if there is no attempt under way: it has been reported already.
    #[inline]
    pub fn succeeded(&mut self, reports: Reports<'_>) -> Result<(), NotSending> {
        let Step::Sending = self.step else {
            return Err(NotSending);
        };
        self.step = Step::Succeeded;
        self.open.ends(reports);
        if let Some(token) = self.open.token.take() {
            // A strategy that refuses its own token changes nothing about the success.
            let _recorded = self.open.strategy.record_success(token, reports);
        }
        Ok(())
    }

    /// Reports that the attempt under way failed, and returns what follows. One that was cut off
    /// because its time was up is a [`Failure::timeout`].
    ///
    /// # Errors
    ///
    /// [`NotSending`] if there is no attempt under way: it has been reported already.
    pub fn failed(
        &mut self,
        failure: &Failure,
        reports: Reports<'_>,
    ) -> Result<Verdict, NotSending> {
        let Step::Sending = self.step else {
            return Err(NotSending);
        };
        Ok(self.conclude(failure, reports))
    }

    /// Reports that the next attempt failed before it was sent: the host gave up waiting for it,
    /// say. Its place in line is given back.
    ///
    /// # Errors
    ///
    /// [`NotSending`] if it was sent already, or there is no next attempt.
    pub fn not_sent(
        &mut self,
        failure: &Failure,
        reports: Reports<'_>,
    ) -> Result<Verdict, NotSending> {
        let (Step::Backoff(_) | Step::Turn) = self.step else {
            return Err(NotSending);
        };
        self.turn = SendTurn::new();
        Ok(self.conclude(failure, reports))
    }

    /// Ends an attempt that failed.
    fn conclude(&mut self, failure: &Failure, reports: Reports<'_>) -> Verdict {
        let now = reports.clock(self.open.strategy.clock()).now();
        let who = self.open.who();
        if let Some(spent) = &mut self.open.spent {
            spent.pass(now);
            spent.goes(Doing::BackingOff);
        }
        match self.decide(failure, reports, now) {
            Ok(token) => {
                let (delay, until) = (token.delay(), now.saturating_add(token.delay()));
                let attempt = self.count;
                self.open.tell(
                    &who,
                    EventKind::Retrying {
                        attempt,
                        failure,
                        delay,
                    },
                );
                self.open.token = Some(token);
                self.step = if delay.is_zero() {
                    Step::Turn
                } else {
                    Step::Backoff(until)
                };
                Verdict::Again(Rest::between(now, until))
            }
            Err(stop) => {
                // The token may be gone.
                if let Some(spent) = self.open.spent.take() {
                    spent.show(|kind| self.open.tell(&who, kind));
                }
                let stop = self.gave_up(who, stop, Some(failure));
                self.step = Step::Stopped(stop.clone());
                Verdict::Stop(stop)
            }
        }
    }

    /// Records a failure, and returns the token of another attempt if there is to be one.
    fn decide(
        &mut self,
        failure: &Failure,
        reports: Reports<'_>,
        now: Timestamp,
    ) -> Result<RetryToken, Stop> {
        let Some(token) = self.open.token.take() else {
            return Err(self.stop_for(StopReason::InitialTokenRefused));
        };
        let left = self.deadline.map(|by| by.saturating_since(now));
        // No time is what paceline's strategies look at last before the quota: they record and take
        // none.
        let another = self.repeatable && self.bounds.outer.is_none();
        let said = if another { left } else { Some(Duration::ZERO) };
        let longest = self.max_retry_after;
        let token = token
            .with_idempotency(self.bounds.idempotency)
            .with_max_retry_after(longest)
            .with_time_left(said);
        let next = match self
            .open
            .strategy
            .refresh_retry_token(token, failure, reports)
        {
            Ok(token) => token,
            Err(refused) => {
                let reason = match refused.reason() {
                    StopReason::OutOfTime { .. } if !another => self.no_other(),
                    reason => reason,
                };
                // No sleep begins that would end after the deadline.
                let delay = refused.delay();
                let delay = match left {
                    Some(left) if delay >= left => Duration::ZERO,
                    _ => delay,
                };
                return Err(Stop {
                    name: None,
                    reason,
                    attempts: self.count,
                    backoff: refused.backoff(),
                    delay: u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX),
                });
            }
        };
        // For strategies that do not ask: paceline's have refused.
        let reason = if !self.bounds.idempotency.permits(failure) {
            Some(StopReason::MaybeExecuted)
        } else if !another {
            Some(self.no_other())
        } else if let Some(reason) = hint_too_long(failure, next.delay(), longest) {
            Some(reason)
        } else {
            self.out_of_time(now, next.delay())
        };
        match reason {
            None => Ok(next),
            Some(reason) => {
                self.open.token = Some(next);
                self.open.give_up(reports);
                Err(self.stop_for(reason))
            }
        }
    }

    /// Returns why there is no other attempt, whatever the strategy says.
    const fn no_other(&self) -> StopReason {
        match self.bounds.outer {
            Some(_) => StopReason::LeftToOuter,
            None => StopReason::NotRepeatable,
        }
    }

    /// Returns the attempt under way as the loops inside of it are to see it: for
    /// [`within`](super::within), or for the extensions of a request. `None` if they may retry.
    ///
    /// An operation inside of an outer attempt returns that one. To be asked after
    /// [`set_repeatable`](Self::set_repeatable).
    #[must_use]
    pub const fn outer(&self) -> Option<OuterAttempt> {
        if self.bounds.outer.is_some() {
            return self.bounds.outer;
        }
        let max = self.max_attempts();
        let alone = matches!(max, Some(0 | 1));
        if alone || self.bounds.composite || !self.repeatable || !self.is_sending() {
            return None;
        }
        Some(OuterAttempt::of(self.count, max))
    }

    /// Detaches what is left to be recorded of the attempt under way: the response has begun, and
    /// its end will show whether it succeeded.
    ///
    /// # Errors
    ///
    /// [`NotSending`] if there is no attempt under way.
    pub fn detach(self) -> Result<Detached<S>, NotSending> {
        let Step::Sending = self.step else {
            return Err(NotSending);
        };
        Ok(Detached {
            open: self.open,
            max_retry_after: self.max_retry_after,
        })
    }

    /// Returns the time that is left of the [deadline](crate::Operation::deadline), or `None`
    /// without one.
    #[must_use]
    pub fn time_left(&self, clock: &dyn Clock) -> Option<Duration> {
        Some(self.deadline?.saturating_since(clock.now()))
    }

    /// Returns the strategy.
    pub const fn strategy(&self) -> &S {
        &self.open.strategy
    }

    /// Returns `true` if an attempt is under way.
    #[must_use]
    pub const fn is_sending(&self) -> bool {
        matches!(self.step, Step::Sending)
    }

    /// Returns the most attempts there may be, or `None` if the strategy has no limit. Inside of an
    /// outer attempt it is 1.
    #[must_use]
    pub const fn max_attempts(&self) -> Option<u32> {
        match &self.open.token {
            Some(_) if self.bounds.outer.is_some() => Some(1),
            Some(token) => token.max_attempts(),
            None => Some(if self.count == 0 { 1 } else { self.count }),
        }
    }

    /// Returns the attempts begun so far.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns `true` if the operation waits in line until its deadline.
    fn waits_out(&self) -> bool {
        let token = self.open.token.as_ref();
        token.is_some_and(RetryToken::waits_out)
    }

    /// Returns why nothing may begin after `wait`, if that is so.
    fn out_of_time(&self, now: Timestamp, wait: Duration) -> Option<StopReason> {
        let left = self.deadline?.saturating_since(now);
        (wait >= left).then_some(StopReason::OutOfTime { wait, left })
    }

    /// Ends the operation, whose thread is interrupted.
    #[cold]
    pub(super) fn interrupted(&mut self, clock: &dyn Clock) -> Stop {
        if let Step::Backoff(_) | Step::Turn = self.step {
            let _stopped = self.stop(StopReason::Interrupted, clock);
        }
        match &self.step {
            Step::Stopped(stop) => stop.clone(),
            _ => self.stop_for(StopReason::OutOfTurn),
        }
    }

    fn stop(&mut self, reason: StopReason, clock: &dyn Clock) -> Next {
        let stop = self.gave_up(self.open.who(), self.stop_for(reason), None);
        self.open.ends(Reports::at(clock));
        self.turn = SendTurn::new();
        self.open.give_up(Reports::at(clock));
        self.step = Step::Stopped(stop.clone());
        Next::Stop(stop)
    }

    /// Emits that the operation was given up, and returns the stop with the name.
    fn gave_up(&self, who: Who, mut stop: Stop, failure: Option<&Failure>) -> Stop {
        // In one statement: the oldest compiler keeps the text no longer.
        self.open.tell(
            &who,
            EventKind::GaveUp {
                attempts: stop.attempts(),
                reason: format_args!("{}", stop.why()),
                failure,
            },
        );
        stop.name = who.name;
        stop
    }

    /// Returns the [name](RetryStrategy::name) of the strategy, or of the scope: for the error of a
    /// host that cuts an attempt off. A [`Stop`] has it.
    #[must_use]
    pub fn name(&self) -> Option<Arc<str>> {
        match &self.step {
            Step::Stopped(stop) => stop.name.clone(),
            _ => self.open.strategy.name(self.open.token.as_ref()),
        }
    }

    const fn stop_for(&self, reason: StopReason) -> Stop {
        Stop {
            name: None,
            reason,
            attempts: self.count,
            backoff: Duration::ZERO,
            delay: 0,
        }
    }
}

impl<S: RetryStrategy> fmt::Debug for Attempts<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempts")
            .field("count", &self.count)
            .field("step", &self.step)
            .field("deadline", &self.deadline)
            .field("strategy", &self.open.strategy)
            .finish_non_exhaustive()
    }
}

/// An attempt whose response has begun: its outcome is known when the response ends, as with gRPC's
/// trailers and streamed bodies. From [`Attempts::detach`].
///
/// The response is on its way to the caller, so a failure is recorded and not retried, and no quota
/// is taken for it. Dropped before it is recorded, it counts as
/// [cancelled](RetryStrategy::record_cancelled).
///
/// # Examples
///
/// ```
/// use paceline::{Adaptive, ControlLaw, Failure, Operation, RetryStrategy, operation::Next, strategy::Reports};
///
/// let strategy = Adaptive::new(ControlLaw::Aws);
/// let clock = strategy.clock();
/// let mut attempts = Operation::new(&strategy).start();
/// let Next::Send(_) = attempts.next(clock, None) else { unreachable!() };
/// let body = attempts.detach()?; // goes with the body
/// body.failed(&Failure::throttling(), Reports::at(clock)); // its trailers say so
/// assert!(strategy.snapshot().rate.is_some_and(|rate| rate.enabled));
/// # Ok::<(), paceline::operation::NotSending>(())
/// ```
#[must_use = "its outcome is to be recorded"]
pub struct Detached<S: RetryStrategy> {
    open: Open<S>,
    max_retry_after: Duration,
}

impl<S: RetryStrategy> Detached<S> {
    /// Returns what the attempt took of the send rates, to be settled with its true cost: `None` if
    /// there is nothing to settle.
    pub fn charge(&self) -> Option<AttemptCharge> {
        self.open.strategy.charge(self.open.token.as_ref()?)
    }

    /// Reports that the response ended well.
    pub fn succeeded(mut self, reports: Reports<'_>) {
        self.open.ends(reports);
        if let Some(token) = self.open.token.take() {
            // A strategy that refuses its own token changes nothing about the success.
            let _recorded = self.open.strategy.record_success(token, reports);
        }
    }

    /// Reports that the response ended badly.
    pub fn failed(mut self, failure: &Failure, reports: Reports<'_>) {
        self.open.ends(reports);
        if let Some(token) = self.open.token.take() {
            let token = token.with_max_retry_after(self.max_retry_after);
            let failure = failure.with_retry_safety(RetrySafety::No);
            // What the strategy decides changes nothing about a response that has begun.
            let _refused = self
                .open
                .strategy
                .refresh_retry_token(token, &failure, reports);
        }
    }
}

impl<S: RetryStrategy> fmt::Debug for Detached<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detached")
            .field(
                "attempt",
                &self.open.token.as_ref().map(RetryToken::attempt),
            )
            .field("strategy", &self.open.strategy)
            .finish_non_exhaustive()
    }
}
