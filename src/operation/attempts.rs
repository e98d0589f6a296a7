//! One operation under way: all of a retry loop except the waiting and the sending.

use alloc::sync::Arc;
use core::{fmt, task::Waker, time::Duration};

use super::{
    Attempt, Detached, Next, NotSending, OuterAttempt, Stop, StopReason, Verdict,
    bounds::Bounds,
    open::{Open, Who},
    spent::{Doing, Spent},
};
use crate::{
    Class, Clock, Failure, RetryStrategy, RetryToken, SendPermit, Timestamp,
    strategy::{
        AttemptCharge, EventKind, MAX_RETRY_AFTER, NotAdmitted, Reports, SendRequest, SendTurn,
        least, out_of_time,
    },
    wait::Rest,
};

mod conclude;

/// One operation under way, without input and output: it decides what comes next and leaves the
/// waiting and the sending to its host.
///
/// [`Operation::start`](crate::Operation::start) makes this value. The host calls
/// [`next`](Self::next), does what the result says, and reports each attempt with
/// [`succeeded`](Self::succeeded) or [`failed`](Self::failed). The value owns the token of the
/// operation, and with the token the use of its scope. It also owns the place in line, the
/// deadline, the cap on the service's hints, and the recording. A value that is dropped gives the
/// place and the scope back. A retry that was not sent costs nothing then. A send in progress
/// counts as [cancelled](RetryStrategy::record_cancelled), at the time of the strategy's clock.
///
/// The value is `Send` and `'static` if the strategy `S` is, such as an `Arc` or `Scopes`. It
/// allocates only if its strategy has several send rates, or if it is reported as slow.
/// [`Waiter`](crate::operation::Waiter) drives it in a task, [`wait_blocking`](Self::wait_blocking)
/// on a thread.
///
/// Times come from the host, in the form of a clock or of a [`Timestamp`]. All times have to come
/// from the [strategy's clock](RetryStrategy::clock).
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
    /// The member that served the last attempt.
    member: usize,
}

/// The state of an operation.
#[derive(Clone, Debug)]
enum Step {
    Backoff(Timestamp),
    Turn,
    Sending,
    Succeeded,
    Stopped(Stop),
}

impl<S: RetryStrategy> Attempts<S> {
    pub(super) fn start(
        strategy: S,
        scope: Option<&str>,
        mut bounds: Bounds,
        clock: Option<&dyn Clock>,
    ) -> Self {
        bounds.outer = bounds.outer.or_else(OuterAttempt::current);
        let token = strategy.acquire_initial_token(scope).ok();
        let first = token.as_ref();
        let delay = first.map_or(Duration::ZERO, RetryToken::delay);
        let total = bounds.deadline.or(first.and_then(RetryToken::time_left));
        let said = first.map(RetryToken::max_retry_after);
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
            member: 0,
        };
        let token = attempts.open.token.as_ref();
        if Spent::is_asked_for(token) {
            let own = attempts.open.strategy.clock();
            attempts.open.spent = Some(Spent::since(clock.unwrap_or(own), own));
        }
        // The clock is read only if the time is needed.
        if total.is_some() || !delay.is_zero() {
            let now = clock.unwrap_or(attempts.open.strategy.clock()).now();
            attempts.deadline = total.map(|total| now.saturating_add(total));
            if !delay.is_zero() {
                attempts.open.goes(Doing::BACKING_OFF);
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
    /// `waker` is woken if the turn of an operation in line comes sooner than this call says.
    /// Without a waker, an operation in line looks every 50 ms.
    ///
    /// While an attempt is under way, and after a success, it returns [`StopReason::OutOfTurn`].
    #[inline]
    pub fn next(&mut self, clock: &dyn Clock, waker: Option<&Waker>) -> Next {
        match self.step {
            Step::Turn => self.ask(clock, waker),
            _ => self.look(clock, waker),
        }
    }

    #[inline(never)]
    fn look(&mut self, clock: &dyn Clock, waker: Option<&Waker>) -> Next {
        match &self.step {
            Step::Backoff(_) | Step::Turn => {
                if let Some(rest) = self.backoff(clock) {
                    return Next::Sleep(rest);
                }
                self.step = Step::Turn;
                self.ask(clock, waker)
            }
            Step::Stopped(stop) => Next::Stop(stop.clone()),
            Step::Sending | Step::Succeeded => Next::Stop(self.stop_for(StopReason::OutOfTurn)),
        }
    }

    /// Asks the strategy to admit an attempt.
    fn ask(&mut self, clock: &dyn Clock, waker: Option<&Waker>) -> Next {
        let mut request = SendRequest {
            token: self.open.token.as_ref(),
            class: self.bounds.class,
            waker,
            ..SendRequest::new().weight(self.bounds.weight).at(clock)
        };
        if let Some(by) = self.deadline {
            // The deadline is checked before the turn, because a turn that has come would be spent.
            let now = clock.now();
            if let Some(reason) = self.out_of_time(now, Duration::ZERO) {
                return self.stop(reason, clock);
            }
            if !self.open.waits_out() {
                let left = by.saturating_since(now);
                request = request.within(left.saturating_sub(Duration::from_nanos(1)));
            }
        }
        if let Some(weights) = &self.bounds.weights {
            request = request.weights(weights);
        }
        if self.bounds.same_member && self.count > 0 {
            request = request.member(self.member);
        }
        if let Some(spent) = &mut self.open.spent {
            spent.pass(clock.now());
        }
        match self.open.strategy.admit(&mut self.turn, request) {
            Ok(permit) => Next::Send(self.send(permit, clock)),
            Err(not_yet) => self.not_admitted(not_yet, clock),
        }
    }

    // Not inlined, because most attempts go at once.
    #[inline(never)]
    fn not_admitted(&mut self, why: NotAdmitted, clock: &dyn Clock) -> Next {
        match why {
            NotAdmitted::Wait { wait, look_in } => {
                let now = clock.now();
                // For strategies that ignore how long a request may wait.
                if let Some(reason) = self
                    .out_of_time(now, wait)
                    .filter(|_| !self.open.waits_out())
                {
                    let background = self.bounds.class == Class::Background;
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
            NotAdmitted::NotChosen => self.stop(StopReason::NotChosen, clock),
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
        self.member = granted.as_ref().map_or(0, |granted| granted.member);
        if let Some(token) = &mut self.open.token {
            token.sent_by(permit, granted);
        }
        Attempt {
            number: self.count,
            max: self.max_attempts(),
            time_limit: least(self.time_left(clock), self.bounds.attempt_timeout),
            outer: self.bounds.outer,
            member: self.member,
        }
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

    /// Takes in what the service declares about its limits. Call it when the headers of the
    /// response come, before the outcome.
    ///
    /// # Errors
    ///
    /// [`NotSending`] if there is no attempt under way.
    pub fn observe(&self, reports: Reports<'_>) -> Result<(), NotSending> {
        self.sending()?;
        if let Some(token) = &self.open.token {
            self.open.strategy.observe(token, reports);
        }
        Ok(())
    }

    /// Returns the charge of the attempt under way, to settle with its true cost after the outcome
    /// was recorded. `None` if no attempt is under way, or if there is nothing to settle.
    pub fn charge(&self) -> Option<AttemptCharge> {
        let token = self.open.token.as_ref().filter(|_| self.is_sending())?;
        self.open.strategy.charge(token)
    }

    /// Reports that the attempt under way succeeded. The operation has ended.
    ///
    /// # Errors
    ///
    /// [`NotSending`] if no attempt is under way, since its outcome was reported already.
    #[inline]
    pub fn succeeded(&mut self, reports: Reports<'_>) -> Result<(), NotSending> {
        self.sending()?;
        self.step = Step::Succeeded;
        self.open.succeed(reports);
        Ok(())
    }

    /// Reports that the attempt under way failed, and returns what follows. An attempt that was cut
    /// off because its time was up is a [`Failure::timeout`].
    ///
    /// # Errors
    ///
    /// [`NotSending`] if no attempt is under way, since its outcome was reported already.
    pub fn failed(
        &mut self,
        failure: &Failure,
        reports: Reports<'_>,
    ) -> Result<Verdict, NotSending> {
        self.sending()?;
        let verdict = self.conclude(failure, reports);
        if let Some(part) = failure.part() {
            self.bounds.shrink(part);
        }
        Ok(verdict)
    }

    /// Reports that the next attempt failed before it was sent, for example because the host
    /// stopped waiting. Its place in line is given back.
    ///
    /// # Errors
    ///
    /// [`NotSending`] if the attempt was sent already, or if there is no next attempt.
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

    /// Returns the attempt under way as an outer attempt for the loops inside it. Pass it to
    /// [`within`](super::within), or put it into the extensions of a request. `None` if the inner
    /// loops may retry.
    ///
    /// An operation inside an outer attempt returns this outer attempt. Call it after
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

    /// Detaches the recording of the attempt under way. It is for a response that has begun, and
    /// whose end will show whether the attempt succeeded.
    ///
    /// # Errors
    ///
    /// [`NotSending`] if there is no attempt under way.
    pub fn detach(self) -> Result<Detached<S>, NotSending> {
        self.sending()?;
        Ok(Detached {
            open: self.open,
            max_retry_after: self.max_retry_after,
        })
    }

    /// Returns the time that is left of the [deadline](crate::Operation::deadline), or `None`
    /// without a deadline.
    #[must_use]
    pub fn time_left(&self, clock: &dyn Clock) -> Option<Duration> {
        Some(self.deadline?.saturating_since(clock.now()))
    }

    /// Returns the strategy.
    pub const fn strategy(&self) -> &S {
        &self.open.strategy
    }

    /// Refuses a report while no attempt is under way.
    fn sending(&self) -> Result<(), NotSending> {
        self.is_sending().then_some(()).ok_or(NotSending)
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

    /// Returns the reason if nothing may begin after `wait`.
    fn out_of_time(&self, now: Timestamp, wait: Duration) -> Option<StopReason> {
        out_of_time(wait, self.time_left(&now))
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
        // One statement, because the oldest supported compiler drops the text at its end.
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

    /// Returns the [name](RetryStrategy::name) of the strategy, or of the scope. It is for the
    /// error of a host that cuts an attempt off. A [`Stop`] already has the name.
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
