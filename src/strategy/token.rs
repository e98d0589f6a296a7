//! The state of one operation, handed from attempt to attempt.

use alloc::boxed::Box;
use core::{error::Error, fmt, time::Duration};

#[cfg(feature = "scopes")]
use super::hold::Hold;
use crate::{
    QuotaPermit, SendPermit,
    seam::Sequence,
    set::{MOST_RATES, SetPermit},
    strategy::failure::Idempotency,
};

/// The longest wait that a service may ask for, unless the operation sets another: a minute.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The identity of a strategy. A token has the identity of the strategy that issued it.
///
/// # Examples
///
/// ```
/// use paceline::strategy::StrategyId;
///
/// assert_ne!(StrategyId::new(), StrategyId::new());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrategyId(u64);

impl StrategyId {
    /// Returns an identity that no other strategy of the process has.
    #[must_use]
    pub fn new() -> Self {
        static IDS: Sequence = Sequence::starting_at(1);
        Self(IDS.next())
    }
}

/// The state of one operation between attempts.
///
/// A token is moved into every call that uses it up, so using a token twice does not compile:
///
/// ```compile_fail,E0382
/// use paceline::{RetryStrategy, Standard, strategy::Reports};
///
/// let strategy = Standard::new();
/// let token = strategy.acquire_initial_token(None).unwrap();
/// strategy.record_success(token, Reports::new()).unwrap();
/// strategy.record_success(token, Reports::new()).unwrap(); // the operation has already ended
/// ```
///
/// A token that is dropped gives up its operation. The quota of its last retry stays spent, and a
/// send in progress goes unrecorded. Call
/// [`record_cancelled`](crate::RetryStrategy::record_cancelled) instead.
///
/// # Examples
///
/// ```
/// use paceline::{Failure, RetryStrategy, Standard, strategy::Reports};
///
/// let strategy = Standard::new();
/// let token = strategy.acquire_initial_token(None).unwrap();
/// assert_eq!((token.attempt(), token.max_attempts()), (1, Some(3)));
/// let token = strategy.refresh_retry_token(token, &Failure::transient(), Reports::new()).unwrap();
/// assert_eq!(token.attempt(), 2);
/// ```
#[must_use = "a token that is dropped ends its operation without a record"]
// The layout is in pieces of 16 bytes. A first token stores each piece at once, as a copy from the
// strategy or as zero. A token is moved by loads of 16 bytes. After narrower stores such loads
// would wait for a quarter of the time of a healthy request.
#[repr(C)]
//= Smithy: It encapsulates the state of a request in retry tokens, which it creates and refreshes.
pub struct RetryToken {
    sent: Sent,
    mark: Mark,
    terms: Terms,
    delay_ns: u64,
    paid: Paid,
    /// The use of a scope's state, if the token belongs to a scope.
    #[cfg(feature = "scopes")]
    hold: Hold,
}

const _: () = assert!(size_of::<RetryToken>() == if cfg!(feature = "scopes") { 80 } else { 64 });

/// The identity of a strategy, and the most attempts.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Mark {
    pub(super) issuer: StrategyId,
    /// The most attempts of a token; 0 if there is no limit.
    pub(super) max_attempts: u32,
    /// Padding of a piece of 16 bytes, always zero.
    pub(super) rest: u32,
}

/// The settings that a first token copies from its strategy.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Terms {
    /// In nanoseconds; `u64::MAX` if there is no limit.
    time_left_ns: u64,
    attempt: u32,
    /// In seconds; `u16::MAX` if there is no limit.
    max_retry_after_secs: u16,
    /// Bits instead of a `bool` or an enum. A `Result` with a token would use a spare value of such
    /// a byte for its errors, and would assemble the token around the byte.
    flags: u16,
}

impl Terms {
    /// In the flags: the operation is not idempotent.
    const ONCE: u16 = 1;

    /// In the flags: the loop has said that it gives the operation up.
    const GIVEN_UP: u16 = 2;

    /// In the flags: the strategy has a hook.
    const WATCHED: u16 = 4;

    /// In the flags: the operation waits in line until its deadline.
    const WAITS_OUT: u16 = 8;

    const UNLIMITED: Self = Self {
        time_left_ns: u64::MAX,
        attempt: 1,
        max_retry_after_secs: 60,
        flags: 0,
    };

    /// Returns the terms of a first attempt. `waits_out` says whether it waits in line for all of
    /// `left`. `longest_wait` is the longest wait that the service may ask for.
    pub(super) fn of_first(
        left: Option<Duration>,
        waits_out: bool,
        longest_wait: Duration,
        is_watched: bool,
    ) -> Self {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        Self {
            time_left_ns: left.map_or(u64::MAX, nanos),
            max_retry_after_secs: whole_seconds(longest_wait),
            flags: flag(is_watched, Self::WATCHED) | flag(waits_out, Self::WAITS_OUT),
            ..Self::UNLIMITED
        }
    }
}

/// The quota that was paid for the last retry, plus 1; 0 if nothing was paid.
struct Paid(u64);

impl Paid {
    const NOTHING: Self = Self(0);

    #[expect(clippy::needless_pass_by_value, reason = "held from here on")]
    fn with(permit: QuotaPermit) -> Self {
        Self(u64::from(permit.cost()).wrapping_add(1))
    }

    /// Returns the quota that was paid.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "it was 32 bits")]
    const fn cost(&self) -> Option<u32> {
        match self.0.checked_sub(1) {
            Some(cost) => Some(cost as u32),
            None => None,
        }
    }
}

impl RetryToken {
    /// Creates a token of the strategy `issuer` for a first send without a delay.
    pub const fn new(issuer: StrategyId) -> Self {
        let mark = Mark {
            issuer,
            max_attempts: 0,
            rest: 0,
        };
        Self::of(mark, Terms::UNLIMITED)
    }

    /// Creates a token for a first send without a delay.
    #[inline]
    pub(super) const fn of(mark: Mark, terms: Terms) -> Self {
        Self {
            sent: Sent::NOTHING,
            mark,
            terms,
            delay_ns: 0,
            paid: Paid::NOTHING,
            #[cfg(feature = "scopes")]
            hold: Hold::NONE,
        }
    }

    /// Replaces the delay before the next send. A span longer than 2⁶⁴ − 1 ns, 584 years, counts as
    /// this maximum. A first token may have a delay too.
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay_ns = nanos(delay);
        self
    }

    /// Replaces the number of the next send, counted from 1, and the most sends there may be, at
    /// least 1.
    ///
    /// The token forgets the permit of the previous send.
    pub fn with_attempt(mut self, attempt: u32, max_attempts: Option<u32>) -> Self {
        self.terms.attempt = attempt;
        self.mark.max_attempts = max_attempts.map_or(0, |most| most.max(1));
        self.sent = Sent::NOTHING;
        self
    }

    /// Sets whether the operation may be carried out twice. Yes by default. The token keeps the
    /// setting in later attempts.
    ///
    /// If not, paceline's strategies refuse unsafe retries with
    /// [`StopReason::MaybeExecuted`](crate::operation::StopReason::MaybeExecuted).
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{
    ///     Failure, Idempotency, RetryStrategy, Standard, operation::StopReason, strategy::Reports,
    /// };
    ///
    /// let strategy = Standard::new();
    /// let token = strategy.acquire_initial_token(None).unwrap();
    /// let token = token.with_idempotency(Idempotency::NotIdempotent);
    /// let token = strategy.refresh_retry_token(token, &Failure::throttling(), Reports::new()).unwrap();
    /// let refused = strategy.refresh_retry_token(token, &Failure::timeout(), Reports::new()).unwrap_err();
    /// assert!(matches!(refused.reason(), StopReason::MaybeExecuted));
    /// ```
    pub fn with_idempotency(mut self, idempotency: Idempotency) -> Self {
        self.terms.flags = match idempotency {
            Idempotency::Idempotent => self.terms.flags & !Terms::ONCE,
            Idempotency::NotIdempotent => self.terms.flags | Terms::ONCE,
        };
        self
    }

    /// Sets how much time the operation has left. Set it anew before each
    /// [`refresh_retry_token`](crate::RetryStrategy::refresh_retry_token). `None`, the default,
    /// means no limit. So does a span beyond 2⁶⁴ − 2 ns, 584 years.
    ///
    /// The strategies of this crate refuse a retry whose delay would use up this time, with
    /// [`StopReason::OutOfTime`](crate::operation::StopReason::OutOfTime), and take no quota for
    /// it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{Failure, RetryAfter, RetryStrategy, Standard, strategy::Reports};
    ///
    /// let strategy = Standard::new();
    /// let token = strategy.acquire_initial_token(None).unwrap();
    /// let token = token.with_time_left(Some(Duration::from_secs(2)));
    /// let later = RetryAfter::AtLeast(Duration::from_secs(60));
    /// let failure = Failure::transient().with_retry_after(later);
    /// let refused = strategy.refresh_retry_token(token, &failure, Reports::new()).unwrap_err();
    /// assert!(refused.to_string().starts_with("out of time: 2s left, and a wait of 60."));
    /// assert!(refused.backoff() >= Duration::from_secs(60));
    /// assert_eq!(strategy.quota().available(), 500);
    /// ```
    pub fn with_time_left(mut self, left: Option<Duration>) -> Self {
        self.terms.time_left_ns = left.map_or(u64::MAX, nanos);
        self
    }

    /// Sets the longest wait that the service may ask for: 60 s by default. `span` is rounded up to
    /// seconds; 18 hours and more count as no limit.
    ///
    /// Paceline's strategies refuse a retry if the service asks for a longer wait, with
    /// [`StopReason::RetryAfterTooLong`](crate::operation::StopReason::RetryAfterTooLong), and no
    /// send rate pauses for longer.
    pub fn with_max_retry_after(mut self, span: Duration) -> Self {
        self.terms.max_retry_after_secs = whole_seconds(span);
        self
    }

    /// Keeps the permit of the next retry. An earlier permit is spent.
    pub(super) fn with_paid(mut self, permit: QuotaPermit) -> Self {
        self.paid = Paid::with(permit);
        self
    }

    /// Returns the strategy that issued this token.
    #[must_use]
    #[inline]
    pub const fn strategy(&self) -> StrategyId {
        self.mark.issuer
    }

    /// Returns the time to wait before the next send.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay_ns)
    }

    /// Returns the number of the next send: 1 for the first.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.terms.attempt
    }

    /// Returns the most sends that the operation may make, or `None` if its strategy has no limit.
    #[must_use]
    pub const fn max_attempts(&self) -> Option<u32> {
        match self.mark.max_attempts {
            0 => None,
            most => Some(most),
        }
    }

    /// Returns whether the operation may be carried out twice.
    #[must_use]
    pub const fn idempotency(&self) -> Idempotency {
        if self.terms.flags & Terms::ONCE != 0 {
            Idempotency::NotIdempotent
        } else {
            Idempotency::Idempotent
        }
    }

    /// Returns the time left that was last set, or `None` without a limit.
    #[must_use]
    pub const fn time_left(&self) -> Option<Duration> {
        match self.terms.time_left_ns {
            u64::MAX => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }

    /// Returns the longest wait that the service may ask for.
    #[must_use]
    pub const fn max_retry_after(&self) -> Duration {
        of_seconds(self.terms.max_retry_after_secs)
    }

    /// Remembers the permit of the send in progress, for the record of its outcome.
    pub fn sent(&mut self, permit: SendPermit) {
        self.sent = Sent::One(permit);
    }

    /// Keeps the grant of the send in progress: `permit`, or `all` of several send rates.
    pub(crate) fn sent_by(&mut self, permit: SendPermit, all: Option<Box<Granted>>) {
        self.sent = all.map_or(Sent::One(permit), |all| Sent::Several(Some(all)));
    }

    /// Returns the permit of the send in progress from the send rate at position `limit`.
    pub(super) fn permit_of(&self, limit: usize) -> Option<SendPermit> {
        match &self.sent {
            Sent::One(permit) => (limit == 0).then_some(*permit),
            Sent::Several(granted) => granted.as_deref()?.permit.get(limit),
        }
    }

    /// Returns the permit of the send in progress, or `None` before the send.
    #[must_use]
    pub fn send_permit(&self) -> Option<SendPermit> {
        match &self.sent {
            Sent::One(permit) => Some(*permit),
            Sent::Several(granted) => first_of(&granted.as_deref()?.permit),
        }
    }

    /// Returns how many tokens the send in progress took from the limit at this position. A single
    /// limit has position 0. Before the send, the number is 0.
    #[must_use]
    pub fn tokens_of(&self, limit: usize) -> u32 {
        self.permit_of(limit).map_or(0, SendPermit::weight)
    }

    /// Returns the member that serves the send in progress, of a strategy with
    /// [several](crate::config::StrategyBuilder::members). It is 0 if there is one member, and
    /// before the send.
    #[must_use]
    pub fn member(&self) -> usize {
        match &self.sent {
            Sent::Several(Some(granted)) => granted.member,
            _ => 0,
        }
    }

    /// Returns `true` if the token's attempt was sent, as far as the token knows.
    pub(super) const fn is_sent(&self) -> bool {
        !matches!(self.sent, Sent::Several(None))
    }

    /// Returns `true` if the operation waits in line until its deadline.
    pub(crate) const fn waits_out(&self) -> bool {
        self.terms.flags & Terms::WAITS_OUT != 0
    }

    /// Returns `true` if the strategy has a hook.
    pub(crate) const fn is_watched(&self) -> bool {
        self.terms.flags & Terms::WATCHED != 0
    }

    /// Notes that the loop gave the operation up.
    pub(crate) const fn give_up(&mut self) {
        self.terms.flags |= Terms::GIVEN_UP;
    }

    /// Returns `true` if the loop gave the operation up.
    pub(super) const fn is_given_up(&self) -> bool {
        self.terms.flags & Terms::GIVEN_UP != 0
    }

    /// Attaches the use of a scope's state.
    #[cfg(feature = "scopes")]
    pub(crate) fn with_hold(mut self, hold: Hold) -> Self {
        self.hold = hold;
        self
    }

    /// Returns the use that [`with_hold`](Self::with_hold) attached.
    #[cfg(feature = "scopes")]
    pub(crate) const fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Takes out the use that [`with_hold`](Self::with_hold) attached.
    #[cfg(feature = "scopes")]
    pub(crate) fn take_hold(&mut self) -> Hold {
        core::mem::take(&mut self.hold)
    }

    /// Returns `true` if `issuer` issued the token, and nothing was paid for the send in progress.
    #[inline]
    pub(super) fn is_unpaid(&self, issuer: StrategyId) -> bool {
        self.mark.issuer == issuer && self.paid.0 == 0
    }

    /// Takes out the permit of the last retry.
    ///
    /// The call that ends a token takes the permit, drops the token, and only then does work that
    /// may panic. A token that a panic would have to drop would need a place in memory.
    #[inline]
    pub(super) fn take_paid(&mut self) -> Option<QuotaPermit> {
        let cost = self.paid.cost();
        self.paid = Paid::NOTHING;
        cost.map(QuotaPermit::of)
    }
}

/// The permit of an attempt from several send rates, and the member that granted it. Without
/// several members, the member is 0.
#[derive(Clone, Copy)]
pub(crate) struct Granted {
    pub(crate) member: usize,
    pub(super) permit: SetPermit<MOST_RATES>,
}

/// The grant of the send in progress. It is no larger than a permit.
enum Sent {
    One(SendPermit),
    /// The grant of several send rates; `None` before the send.
    Several(Option<Box<Granted>>),
}

impl Sent {
    const NOTHING: Self = Self::Several(None);
}

const _: () = assert!(size_of::<Sent>() == size_of::<SendPermit>());

/// Returns a cap in seconds, rounded up, at most `u16::MAX`.
fn whole_seconds(span: Duration) -> u16 {
    u16::try_from(span.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u16::MAX)
}

const fn of_seconds(seconds: u16) -> Duration {
    match seconds {
        u16::MAX => Duration::MAX,
        seconds => Duration::from_secs(seconds as u64),
    }
}

/// Returns a cap as tokens hold it: in whole seconds.
pub(crate) fn rounded_cap(span: Duration) -> Duration {
    of_seconds(whole_seconds(span))
}

/// Returns `span` in nanoseconds, at most `u64::MAX`.
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Debug for RetryToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryToken")
            .field("attempt", &self.attempt())
            .field("max_attempts", &self.max_attempts())
            .field("delay", &self.delay())
            .field("time_left", &self.time_left())
            .field("idempotency", &self.idempotency())
            .field("paid", &self.paid.cost())
            .finish_non_exhaustive()
    }
}

/// The number of the strategy in its events.
impl fmt::Display for StrategyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StrategyId {
    /// Returns `token` if this strategy issued it.
    ///
    /// # Errors
    ///
    /// Returns [`ForeignToken`] with the token if another strategy issued it. The method is for
    /// strategies that users write. Paceline's strategies already check.
    pub fn check(self, token: RetryToken) -> Result<RetryToken, ForeignToken> {
        if token.strategy() == self {
            Ok(token)
        } else {
            Err(ForeignToken(token))
        }
    }
}

/// Another strategy issued the token. The error contains the unchanged token.
#[derive(Debug)]
pub struct ForeignToken(pub RetryToken);

impl fmt::Display for ForeignToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FOREIGN)
    }
}

pub(super) const FOREIGN: &str = "the token was issued by another strategy";

impl Error for ForeignToken {}

/// Returns the permit of the first limit that the request took tokens from.
pub(super) fn first_of(permit: &SetPermit<MOST_RATES>) -> Option<SendPermit> {
    (0..MOST_RATES).find_map(|limit| permit.get(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> RetryToken {
        RetryToken::new(StrategyId::new())
    }

    #[test]
    fn what_a_token_says_is_what_it_was_told() {
        for idempotency in [Idempotency::NotIdempotent, Idempotency::Idempotent] {
            let once = token().with_idempotency(Idempotency::NotIdempotent);
            let told = once.with_idempotency(idempotency);
            assert_eq!(told.idempotency(), idempotency);
        }
        let delay = |span| token().with_delay(span).delay();
        let longest = Duration::from_nanos(u64::MAX);
        assert_eq!([longest, Duration::MAX].map(delay), [longest; 2]);
        assert_eq!(delay(Duration::from_nanos(7)), Duration::from_nanos(7));
    }

    #[test]
    fn what_a_retry_was_paid_with_is_taken_out_once() {
        assert!(token().take_paid().is_none());
        for cost in [0, 1, u32::MAX] {
            let mut token = token().with_paid(QuotaPermit::of(cost));
            let issuer = token.strategy();
            assert!(!token.is_unpaid(issuer), "{token:?}");
            assert_eq!(token.take_paid().map(|permit| permit.cost()), Some(cost));
            assert!(token.take_paid().is_none() && token.is_unpaid(issuer));
        }
    }
}
