//! The state of one operation, handed from attempt to attempt.

use alloc::boxed::Box;
use core::{any::Any, fmt, time::Duration};

#[cfg(feature = "scopes")]
use super::hold::Hold;
use crate::{
    QuotaPermit, SendPermit, Timestamp,
    atomic::sequence::Sequence,
    strategy::{
        idempotency::Idempotency,
        refusal::{ForeignToken, RefusalReason, RetryRefused},
    },
};

/// Tells strategies apart, so that a token can find its own.
///
/// # Examples
///
/// ```
/// use paceline::StrategyId;
///
/// assert_ne!(StrategyId::new(), StrategyId::new());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StrategyId(u64);

impl StrategyId {
    /// Returns an identity that no other strategy of the process has.
    #[must_use]
    #[expect(
        clippy::new_without_default,
        reason = "two defaults would not be equal"
    )]
    pub fn new() -> Self {
        static IDS: Sequence = Sequence::starting_at(1);
        Self(IDS.next())
    }
}

/// The state of one operation between attempts.
///
/// A token is moved into every call that uses it up, so using one twice does not compile:
///
/// ```compile_fail,E0382
/// use paceline::{RetryStrategy, Standard};
///
/// let strategy = Standard::new();
/// let token = strategy.acquire_initial_token(None).unwrap();
/// strategy.record_success(token).unwrap();
/// strategy.record_success(token).unwrap(); // the operation has already ended
/// ```
///
/// A token that is dropped gives up its operation. What was paid for its last retry stays paid.
///
/// # Examples
///
/// ```
/// use paceline::{Failure, RetryStrategy, Standard};
///
/// let strategy = Standard::new();
/// let token = strategy.acquire_initial_token(None).unwrap();
/// assert_eq!((token.attempt(), token.max_attempts()), (1, Some(3)));
/// let token = strategy.refresh_retry_token(token, &Failure::transient()).unwrap();
/// assert_eq!(token.attempt(), 2);
/// ```
#[derive(Debug)]
#[must_use = "a token that is dropped ends its operation without a record"]
pub struct RetryToken {
    issuer: StrategyId,
    attempt: u32,
    /// Says nothing unless `is_limited`.
    max_attempts: u32,
    is_limited: bool,
    /// In two parts, as `Option`s are below: whole they would take a word more, for which refusals have no room.
    delay_secs: u64,
    delay_nanos: u32,
    connection_reusable: bool,
    idempotency: Idempotency,
    /// In nanoseconds; as many as there are if there is no limit.
    time_left_ns: u64,
    /// The backoff before the next send without the service's hint.
    backoff_ns: u64,
    /// Says nothing unless `is_sent`.
    sent: SendPermit,
    is_sent: bool,
    paid: Option<QuotaPermit>,
    state: State,
    /// What it belongs to, if that is not the strategy as a whole.
    #[cfg(feature = "scopes")]
    hold: Hold,
}

impl RetryToken {
    /// Creates a token of the strategy `issuer` for a first send without a delay.
    pub const fn new(issuer: StrategyId) -> Self {
        Self {
            issuer,
            attempt: 1,
            max_attempts: 0,
            is_limited: false,
            delay_secs: 0,
            delay_nanos: 0,
            connection_reusable: true,
            idempotency: Idempotency::Idempotent,
            time_left_ns: u64::MAX,
            backoff_ns: 0,
            sent: SendPermit::sent_at(Timestamp::ZERO),
            is_sent: false,
            paid: None,
            state: State(None),
            #[cfg(feature = "scopes")]
            hold: Hold::NONE,
        }
    }

    /// Replaces the delay before the next send. A first token may have one too.
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay_secs = delay.as_secs();
        self.delay_nanos = delay.subsec_nanos();
        self
    }

    /// Replaces the number of the next send, counted from 1, and the most sends there may be.
    ///
    /// It is another send, so the permit of the one before is forgotten.
    pub fn with_attempt(mut self, attempt: u32, max_attempts: Option<u32>) -> Self {
        self.attempt = attempt;
        self.is_limited = max_attempts.is_some();
        self.max_attempts = max_attempts.unwrap_or(0);
        self.is_sent = false;
        self
    }

    /// Says whether the connection of the failed attempt may be used again.
    pub fn with_connection_reusable(mut self, reusable: bool) -> Self {
        self.connection_reusable = reusable;
        self
    }

    /// Says whether the operation may be carried out twice: it stays with the token. Yes by default.
    ///
    /// Our strategies refuse to retry what may not be, with [`RefusalReason::MaybeExecuted`].
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Failure, Idempotency, RefusalReason, RetryStrategy, Standard};
    ///
    /// let strategy = Standard::new();
    /// let token = strategy.acquire_initial_token(None).unwrap();
    /// let token = token.with_idempotency(Idempotency::NotIdempotent);
    /// let token = strategy.refresh_retry_token(token, &Failure::throttling()).unwrap();
    /// let refused = strategy.refresh_retry_token(token, &Failure::timeout()).unwrap_err();
    /// assert!(matches!(refused.reason(), RefusalReason::MaybeExecuted));
    /// ```
    pub fn with_idempotency(mut self, idempotency: Idempotency) -> Self {
        self.idempotency = idempotency;
        self
    }

    /// Says how much time the operation has left, to be said anew before each
    /// [`refresh_retry_token`](crate::RetryStrategy::refresh_retry_token). None by default: no limit, and
    /// so is a span beyond 2⁶⁴ − 2 ns, 584 years.
    ///
    /// Our strategies refuse a retry whose delay would use all of it up, with
    /// [`RefusalReason::OutOfTime`], and take no quota for it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{Failure, RetryAfter, RetryStrategy, Standard};
    ///
    /// let strategy = Standard::new();
    /// let token = strategy.acquire_initial_token(None).unwrap();
    /// let token = token.with_time_left(Some(Duration::from_secs(2)));
    /// let later = RetryAfter::Floor(Duration::from_secs(60));
    /// let failure = Failure::transient().with_retry_after(later);
    /// let refused = strategy.refresh_retry_token(token, &failure).unwrap_err();
    /// assert_eq!(refused.to_string(), "out of time: 2s left, and a wait of 60s");
    /// assert_eq!(refused.backoff(), Duration::from_secs(60));
    /// assert_eq!(strategy.quota().available(), 500);
    /// ```
    pub fn with_time_left(mut self, left: Option<Duration>) -> Self {
        self.time_left_ns = left.map_or(u64::MAX, nanos);
        self
    }

    /// Remembers the backoff without a hint, from which the next one may step on.
    pub(super) fn with_backoff(mut self, backoff: Duration) -> Self {
        self.backoff_ns = nanos(backoff);
        self
    }

    /// Attaches what a strategy wants to remember of the operation. Ours attach nothing.
    pub fn with_state(mut self, state: Box<dyn Any + Send + Sync>) -> Self {
        self.state = State(Some(state));
        self
    }

    /// Remembers what the next send's retry was paid with; an earlier permit is spent.
    pub(super) fn with_paid(mut self, permit: QuotaPermit) -> Self {
        self.paid = Some(permit);
        self
    }

    /// Returns the strategy that issued this token.
    #[must_use]
    pub const fn strategy(&self) -> StrategyId {
        self.issuer
    }

    /// Returns the time to wait before the next send.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        Duration::new(self.delay_secs, self.delay_nanos)
    }

    /// Returns the number of the next send: 1 for the first.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the most sends that the operation may make, or `None` if its strategy has no limit.
    #[must_use]
    pub const fn max_attempts(&self) -> Option<u32> {
        if self.is_limited {
            Some(self.max_attempts)
        } else {
            None
        }
    }

    /// Tells whether the connection of the failed attempt may be used for the next.
    ///
    /// `true` on a first token. Generation 2.0 and [`Legacy`](crate::Legacy) drop it after a
    /// transient error; generation 2.1 keeps it, and so does every generation after throttling.
    #[must_use]
    pub const fn connection_reusable(&self) -> bool {
        self.connection_reusable
    }

    /// Tells whether the operation may be carried out twice.
    #[must_use]
    pub const fn idempotency(&self) -> Idempotency {
        self.idempotency
    }

    /// Returns how much time the operation had left when it was last said, or `None` without a limit.
    #[must_use]
    pub const fn time_left(&self) -> Option<Duration> {
        match self.time_left_ns {
            u64::MAX => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }

    /// Returns the backoff before the next send without a hint: zero before the first.
    pub(super) const fn backoff(&self) -> Duration {
        Duration::from_nanos(self.backoff_ns)
    }

    /// Remembers the permit of the send in progress, for the record of its outcome.
    pub const fn sent(&mut self, permit: SendPermit) {
        self.sent = permit;
        self.is_sent = true;
    }

    /// Returns the permit of the send in progress, or `None` before it.
    #[must_use]
    pub const fn send_permit(&self) -> Option<SendPermit> {
        if self.is_sent { Some(self.sent) } else { None }
    }

    /// Returns what [`with_state`](Self::with_state) attached.
    #[must_use]
    pub fn state(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.state.0.as_deref()
    }

    /// Takes out what [`with_state`](Self::with_state) attached.
    pub fn take_state(&mut self) -> Option<Box<dyn Any + Send + Sync>> {
        self.state.0.take()
    }

    /// Attaches what the token belongs to.
    #[cfg(feature = "scopes")]
    pub(crate) fn with_hold(mut self, hold: Hold) -> Self {
        self.hold = hold;
        self
    }

    /// Returns what [`with_hold`](Self::with_hold) attached.
    #[cfg(feature = "scopes")]
    pub(crate) const fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Takes out what [`with_hold`](Self::with_hold) attached.
    #[cfg(feature = "scopes")]
    pub(crate) fn take_hold(&mut self) -> Hold {
        core::mem::take(&mut self.hold)
    }

    /// Takes out what the last retry was paid with.
    ///
    /// Whoever ends a token takes this, drops the token, and only then does what may panic: a token that would be dropped
    /// on that way has to stand in memory.
    pub(super) const fn take_paid(&mut self) -> Option<QuotaPermit> {
        self.paid.take()
    }
}

/// Returns `span` in nanoseconds, or the largest number there is.
pub(super) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// A strategy's own state, if it has attached one. Nothing of it can be printed.
struct State(Option<Box<dyn Any + Send + Sync>>);

impl Drop for State {
    #[inline]
    fn drop(&mut self) {
        if let Some(state) = self.0.take() {
            let_go(state);
        }
    }
}

/// Out of the way of the many tokens without a state: what drops those stays small enough to be inlined.
#[cold]
fn let_go(state: Box<dyn Any + Send + Sync>) {
    drop(state);
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl StrategyId {
    /// Returns `token` if this strategy issued it.
    ///
    /// # Errors
    ///
    /// Returns [`ForeignToken`] with the token in it if another one did. For strategies that users
    /// write: ours check by themselves.
    pub fn check(self, token: RetryToken) -> Result<RetryToken, ForeignToken> {
        if token.issuer == self {
            Ok(token)
        } else {
            Err(ForeignToken(token))
        }
    }
}

impl From<ForeignToken> for RetryRefused {
    fn from(foreign: ForeignToken) -> Self {
        Self::new(RefusalReason::ForeignToken(foreign.0))
    }
}
