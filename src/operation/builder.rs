//! One operation that is about to run, and its settings.

use core::{fmt, marker::PhantomData, time::Duration};

use super::{Attempts, OuterAttempt, Plain, Reporting, bounds::Bounds};
use crate::{
    Class, Clock, Idempotency, RetryStrategy,
    set::Weights,
    strategy::{choose, rounded_cap},
    wait::{DefaultSleep, Sleep, name_of},
};

/// An operation that is about to run, from [`RetryStrategyExt::operation`] or [`new`](Self::new).
///
/// [`run`](Self::run) and [`run_async`](Self::run_async) run the operation. [`start`](Self::start)
/// leaves the waiting and the sending to the caller.
///
/// `S` is the strategy, and `Z` the way in which the thread or the task sleeps. `A` is the kind of
/// answers: results, or [results with reports](Self::reporting).
///
/// [`RetryStrategyExt::operation`]: crate::RetryStrategyExt::operation
#[must_use = "an operation does nothing until it is run"]
pub struct Operation<'a, S, Z = DefaultSleep, A = Plain> {
    pub(super) strategy: S,
    pub(super) scope: Option<&'a str>,
    pub(super) bounds: Bounds,
    pub(super) clock: Option<&'a dyn Clock>,
    pub(super) sleep: Z,
    pub(super) answers: PhantomData<A>,
}

impl<S: RetryStrategy> Operation<'_, S> {
    /// Prepares an operation of `strategy`: a reference, an `Arc`, or a clone of `Scopes`.
    pub fn new(strategy: S) -> Self {
        Self {
            strategy,
            scope: None,
            bounds: Bounds::default(),
            clock: None,
            sleep: DefaultSleep,
            answers: PhantomData,
        }
    }
}

impl<S: RetryStrategy, Z, A> Operation<'_, S, Z, A> {
    /// Begins the operation, and leaves the waiting and the sending to the caller.
    pub fn start(self) -> Attempts<S> {
        Attempts::start(self.strategy, self.scope, self.bounds, self.clock)
    }
}

impl<'a, S, Z, A> Operation<'a, S, Z, A> {
    /// Names the scope of the operation. `Scopes` (feature `scopes`) keeps a state for each scope.
    /// Paceline's other strategies ignore the name.
    pub fn scope(self, scope: &'a str) -> Self {
        Self {
            scope: Some(scope),
            ..self
        }
    }

    choose! {
        bounds:
        /// Sets whether the operation may be carried out twice. Yes by default.
        ///
        /// If not, the operation is retried only after failures which show that nothing was done,
        /// whatever the strategy. After other failures it stops with
        /// [`StopReason::MaybeExecuted`](crate::operation::StopReason::MaybeExecuted).
        ///
        /// # Examples
        ///
        /// ```
        /// use paceline::{Failure, Idempotency, RetryStrategyExt, Standard, operation::StopReason};
        ///
        /// let stopped = Standard::new()
        ///     .operation()
        ///     .idempotency(Idempotency::NotIdempotent)
        ///     .run(|_| Err::<(), _>(Failure::timeout()))
        ///     .unwrap_err();
        /// assert_eq!((stopped.attempts(), stopped.why()), (1, StopReason::MaybeExecuted));
        /// ```
        idempotency(idempotency: Idempotency);

        /// Sets how many tokens of the send rate each attempt takes: 1 by default.
        weight(tokens: u32);

        /// Sets whether something waits for the operation: foreground by default. All attempts have
        /// this class.
        ///
        /// Background gets the tokens of the send rate that the foreground leaves over. A strategy
        /// without a send rate has no classes.
        ///
        /// # Examples
        ///
        /// ```
        /// use paceline::{Adaptive, Class, Failure, RetryStrategyExt};
        ///
        /// let strategy = Adaptive::paced();
        /// let copied = strategy.operation().class(Class::Background).run(|_| Ok::<_, Failure>("copied"));
        /// assert_eq!(copied.unwrap(), "copied");
        /// ```
        class(class: Class);

        /// Gives the operation `span` from its start, with all its attempts and waits. The default
        /// is the strategy's deadline
        /// ([`StrategyBuilder::deadline`](crate::config::StrategyBuilder::deadline)). Most
        /// strategies have no deadline.
        ///
        /// No backoff or wait begins that would use up the time left, and no attempt begins after
        /// the deadline. Instead the operation stops at once with
        /// [`StopReason::OutOfTime`](crate::operation::StopReason::OutOfTime), which says how long
        /// the operation would have waited. No quota is taken if a backoff does not fit. The wait
        /// for a turn is computed at today's rate. To wait in line all the same is a
        /// [choice](crate::config::StrategyBuilder::wait_out_deadlines).
        ///
        /// Asynchronous loops cut off an attempt under way; blocking loops cannot. An attempt can
        /// read the time left ([`Attempt::time_limit`](crate::operation::Attempt::time_limit)).
        ///
        /// # Examples
        ///
        /// ```
        /// use std::time::Duration;
        /// use paceline::{Failure, RetryAfter, RetryStrategyExt, Standard, operation::StopReason};
        ///
        /// let minute = Duration::from_secs(60);
        /// let stopped = Standard::new()
        ///     .operation()
        ///     .deadline(Duration::from_secs(5))
        ///     .run(|_| Err::<(), _>(Failure::throttling().with_retry_after(RetryAfter::AtLeast(minute))))
        ///     .unwrap_err();
        /// assert!(matches!(stopped.why(), StopReason::OutOfTime { .. }));
        /// assert!(stopped.wait() >= minute);
        /// ```
        deadline(span: Duration);

        /// Gives each attempt `span`, or the time left of the [`deadline`](Self::deadline) if this
        /// is less.
        ///
        /// An attempt can read its limit
        /// ([`Attempt::time_limit`](crate::operation::Attempt::time_limit)) and hand it to its
        /// client. The asynchronous loop also cuts the attempt off. This counts as a timeout, after
        /// which the work may have been done. With a `span` of zero an attempt ends where it first
        /// waits.
        ///
        /// # Examples
        ///
        /// ```
        /// use std::time::Duration;
        /// use paceline::{Failure, RetryStrategyExt, Standard};
        ///
        /// let second = Duration::from_secs(1);
        /// let answer = Standard::new().operation().attempt_timeout(second).run(|attempt| {
        ///     assert_eq!(attempt.time_limit(), Some(second));
        ///     Ok::<_, Failure>("in time")
        /// });
        /// assert_eq!(answer.unwrap(), "in time");
        /// ```
        attempt_timeout(span: Duration);
    }

    /// Sets how many tokens of each send rate every attempt takes, for a strategy with several
    /// rates ([`StrategyBuilder::also`](crate::config::StrategyBuilder::also)). Without a number
    /// for each rate the operation stops with
    /// [`StopReason::Weight`](crate::operation::StopReason::Weight).
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{
    ///     Adaptive, Failure, RetryStrategyExt,
    ///     law::{DeclaredSettings, Dimension}, operation::StopReason, set::SetError,
    /// };
    ///
    /// let tokens = DeclaredSettings::new().dimension(Dimension::Tokens);
    /// let strategy = Adaptive::builder().declared(DeclaredSettings::new()).also(tokens).build()?;
    /// let answer = strategy.operation().weights([1, 1_200]).run(|_| Ok::<_, Failure>("sent"));
    /// assert_eq!(answer.unwrap(), "sent");
    ///
    /// let wrong = strategy.operation().weights([1, 2, 3]).run(|_| Ok::<_, Failure>(()));
    /// let error = SetError::Weights { given: 3, rates: 2 };
    /// assert_eq!(wrong.unwrap_err().why(), StopReason::Weight(error));
    /// # Ok::<(), paceline::config::SettingsError>(())
    /// ```
    pub fn weights(mut self, tokens: impl Into<Weights>) -> Self {
        self.bounds.weights = Some(tokens.into());
        self
    }

    /// Accepts no longer wait than `span` from the service. The default is the cap of the
    /// strategy's first token, or 60 s. `span` is rounded up to seconds; 18 hours and more count as
    /// no limit.
    ///
    /// A service that asks for more, with `Retry-After` or another hint, stops the operation at
    /// once with
    /// [`StopReason::RetryAfterTooLong`](crate::operation::StopReason::RetryAfterTooLong), which
    /// says how long the service asked for. The send rate that operations share pauses for no
    /// longer than `span` either.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{Failure, RetryAfter, RetryStrategyExt, Standard, operation::StopReason};
    ///
    /// let hour = Duration::from_secs(3_600);
    /// let stopped = Standard::new()
    ///     .run(|_| Err::<(), _>(Failure::throttling().with_retry_after(RetryAfter::AtLeast(hour))))
    ///     .unwrap_err();
    /// let max = Duration::from_secs(60);
    /// assert_eq!(stopped.why(), StopReason::RetryAfterTooLong { asked: hour, max });
    /// ```
    pub fn max_retry_after(mut self, span: Duration) -> Self {
        self.bounds.max_retry_after = Some(rounded_cap(span));
        self
    }

    /// Keeps retries at the member that served the first attempt, for a strategy with several
    /// members ([`StrategyBuilder::members`](crate::config::StrategyBuilder::members)). By default
    /// each attempt goes by the first member that lets it go.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Adaptive, ControlLaw, Failure, RetryStrategyExt};
    ///
    /// let strategy = Adaptive::builder().law(ControlLaw::Paced).members(2).build()?;
    /// let mut served = Vec::new();
    /// let _failed = strategy.operation().same_member().run(|attempt| {
    ///     served.push(attempt.member());
    ///     Err::<(), _>(Failure::transient())
    /// });
    /// assert_eq!(served, [0, 0, 0]);
    /// # Ok::<(), paceline::config::SettingsError>(())
    /// ```
    pub fn same_member(mut self) -> Self {
        self.bounds.same_member = true;
        self
    }

    /// Use it when each attempt consists of several requests, as with a paginator or an upload in
    /// parts. Loops inside an attempt may then send their requests again.
    ///
    /// By default an attempt is one request, and paceline's loops inside of it
    /// [send once](OuterAttempt).
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Failure, RetryStrategyExt, Standard};
    ///
    /// let (all, page) = (Standard::new(), Standard::new());
    /// let mut answers = [Ok(1), Err(Failure::transient()), Ok(2)].into_iter();
    /// let pages = all.operation().composite().run(|_| {
    ///     let first = page.run(|_| answers.next().unwrap());
    ///     let second = page.run(|_| answers.next().unwrap()); // sent twice
    ///     Ok::<_, Failure>((first.unwrap(), second.unwrap()))
    /// });
    /// assert_eq!(pages.unwrap(), (1, 2));
    /// ```
    pub fn composite(mut self) -> Self {
        self.bounds.composite = true;
        self
    }

    /// Use it when the operation runs inside an attempt of another loop. The operation then sends
    /// once. It is for hosts that find an [`OuterAttempt`] with the request, for example in the
    /// extensions of an `http` request. `None` changes nothing.
    ///
    /// An outer attempt on this thread is found without this call.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Failure, RetryStrategyExt, Standard, operation::{OuterAttempt, StopReason}};
    ///
    /// let stopped = Standard::new()
    ///     .operation()
    ///     .inside(Some(OuterAttempt::new()))
    ///     .run(|_| Err::<(), _>(Failure::transient()))
    ///     .unwrap_err();
    /// assert_eq!((stopped.attempts(), stopped.why()), (1, StopReason::LeftToOuter));
    /// ```
    pub fn inside(mut self, outer: Option<OuterAttempt>) -> Self {
        self.bounds.outer = outer.or(self.bounds.outer);
        self
    }

    /// Lets each attempt return the service's reports beside its result: limits, the true cost, and
    /// when to come back. It is for `run`, `run_with`, `run_async` and `run_async_with`.
    ///
    /// A strategy whose law is [`ControlLaw::Declared`](crate::ControlLaw::Declared) needs these
    /// reports, because it paces by declared limits. A plain [`Result`] brings no reports. The
    /// attempt makes the same [`Reports`](crate::strategy::Reports) that [`Attempts`] take, and
    /// puts them [beside](crate::strategy::Reports::beside) its result. A closure that returns a
    /// bare `Result` does not compile; `Reports::new().beside(result)` reports nothing. `?` returns
    /// an error that reports nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{
    ///     Adaptive, Failure, RetryStrategy, RetryStrategyExt, classify::ServiceUnavailable,
    ///     law::{LimitReport, LimitReports}, strategy::Reports,
    /// };
    ///
    /// struct Response { status: u16, left: u64 }
    /// # fn send() -> Result<Response, Failure> { Ok(Response { status: 200, left: 599 }) }
    ///
    /// let strategy = Adaptive::declared();
    /// let answer = strategy.operation().reporting().run(|_| {
    ///     let response = send()?;
    ///     // `HeaderLimits` reads them from headers.
    ///     let left = LimitReport::new(response.left).limit(600).window(Duration::from_secs(60));
    ///     let limits = LimitReports::from(left);
    ///     Reports::new().declaring(&limits).beside(match response.status {
    ///         200 => Ok("found"),
    ///         other => Err(Failure::from_http_status(other, ServiceUnavailable::Transient)),
    ///     })
    /// });
    /// assert_eq!(answer.unwrap(), "found");
    /// let declared = strategy.snapshot().rate.and_then(|rate| rate.declared);
    /// assert_eq!(declared.map(|limit| limit.limit), Some(600));
    /// ```
    pub fn reporting(self) -> Operation<'a, S, Z, Reporting> {
        self.with(|sleep| sleep)
    }

    /// Takes the time from `clock` in place of the [strategy's](RetryStrategy::clock): for
    /// deadlines, backoffs, and the times that the strategy gets. For strategies with a send rate
    /// both clocks have to agree.
    pub fn clock(mut self, clock: &'a dyn Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    fn with<Y, B>(self, sleep: impl FnOnce(Z) -> Y) -> Operation<'a, S, Y, B> {
        Operation {
            strategy: self.strategy,
            scope: self.scope,
            bounds: self.bounds,
            clock: self.clock,
            sleep: sleep(self.sleep),
            answers: PhantomData,
        }
    }

    /// Sleeps by `sleep` instead of on the thread, so that tests can move a clock of their own.
    ///
    /// For the blocking loop. Such a sleep cannot be ended early, so an operation in line looks
    /// every 50 ms.
    pub fn sleep_by<Y: FnMut(Duration)>(self, sleep: Y) -> Operation<'a, S, Y, A> {
        self.with(|_| sleep)
    }

    /// Sleeps by the timers of another runtime than tokio's. For the asynchronous loop.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "async-io")] {
    /// use paceline::{Failure, RetryStrategyExt, Standard, wait::AsyncIoSleep};
    ///
    /// let strategy = Standard::new();
    /// let operation = strategy.operation().sleep_on(AsyncIoSleep::new());
    /// let answer = async_io::block_on(operation.run_async(async |_| Ok::<_, Failure>(42)));
    /// assert_eq!(answer.unwrap(), 42);
    /// # }
    /// ```
    pub fn sleep_on<Y: Sleep>(self, sleep: Y) -> Operation<'a, S, Y, A> {
        self.with(|_| sleep)
    }
}

impl<S: fmt::Debug, Z, A> fmt::Debug for Operation<'_, S, Z, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("strategy", &self.strategy)
            .field("scope", &self.scope)
            .field("idempotency", &self.bounds.idempotency)
            .field("class", &self.bounds.class)
            .field("deadline", &self.bounds.deadline)
            .field("attempt_timeout", &self.bounds.attempt_timeout)
            .field("sleep", &name_of::<Z>())
            .finish_non_exhaustive()
    }
}
