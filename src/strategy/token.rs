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

/// The longest wait that a service may ask for, unless the operation says otherwise: a minute.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The identity of a strategy, by which a token finds the one that issued it.
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
/// A token is moved into every call that uses it up, so using one twice does not compile:
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
/// A token that is dropped gives up its operation. What was paid for its last retry stays paid, and
/// a send in progress goes unrecorded:
/// [`record_cancelled`](crate::RetryStrategy::record_cancelled) does both better.
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
// In pieces of 16 bytes, each of which is stored at once when a first token is made: copied from
// the strategy, or zero. A token is moved by loads of 16 bytes, and such a load waits for narrower
// stores: a quarter of the time of a healthy request.
#[repr(C)]
//= Smithy: It encapsulates the state of a request in retry tokens, which it creates and refreshes.
pub struct RetryToken {
    sent: Sent,
    mark: Mark,
    terms: Terms,
    delay_ns: u64,
    paid: Paid,
    /// What it belongs to, if that is not the strategy as a whole.
    #[cfg(feature = "scopes")]
    hold: Hold,
}

const _: () = assert!(size_of::<RetryToken>() == if cfg!(feature = "scopes") { 80 } else { 64 });

/// What tells a strategy from others, and the most attempts.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Mark {
    pub(super) issuer: StrategyId,
    /// Of a token: 0 if there is no limit.
    pub(super) max_attempts: u32,
    /// The rest of a piece: always zero.
    pub(super) rest: u32,
}

/// What a first token has of its strategy's settings.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Terms {
    /// In nanoseconds; as many as there are if there is no limit.
    time_left_ns: u64,
    attempt: u32,
    /// In seconds; as many as there are if there is no limit.
    max_retry_after_secs: u16,
    /// Bits, and no `bool` or enum: a result with a token in it would be told from an error by one
    /// of their bytes, and the token put together around that byte.
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

    /// Returns the terms of a first attempt that has so much time left, waits in line until then or
    /// not, may be asked to wait so long, and belongs to a strategy with a hook or without.
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

/// What the last retry was paid with, in a word that is 0 for nothing.
struct Paid(u64);

impl Paid {
    const NOTHING: Self = Self(0);

    #[expect(clippy::needless_pass_by_value, reason = "held from here on")]
    fn with(permit: QuotaPermit) -> Self {
        Self(u64::from(permit.cost()).wrapping_add(1))
    }

    /// Returns what it cost.
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

    /// Replaces the delay before the next send: a span beyond 2⁶⁴ − 1 ns, 584 years, counts as
    /// that. A first token may have one too.
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay_ns = nanos(delay);
        self
    }

    /// Replaces the number of the next send, counted from 1, and the most sends there may be, at
    /// least 1.
    ///
    /// It is another send, so the permit of the one before is forgotten.
    pub fn with_attempt(mut self, attempt: u32, max_attempts: Option<u32>) -> Self {
        self.terms.attempt = attempt;
        self.mark.max_attempts = max_attempts.map_or(0, |most| most.max(1));
        self.sent = Sent::NOTHING;
        self
    }

    /// Sets whether the operation may be carried out twice: it stays with the token. Yes by
    /// default.
    ///
    /// Our strategies refuse to retry what may not be, with
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

    /// Sets how much time the operation has left, to be said anew before each
    /// [`refresh_retry_token`](crate::RetryStrategy::refresh_retry_token). None by default: no
    /// limit, and so is a span beyond 2⁶⁴ − 2 ns, 584 years.
    ///
    /// The strategies of this crate refuse a retry whose delay would use all of it up, with
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

    /// Sets how long a wait that the service asks for may be: 60 s by default. It is rounded up to
    /// seconds; 18 hours and more count as no limit.
    ///
    /// Paceline's strategies refuse a retry for which the service asks for more, with
    /// [`StopReason::RetryAfterTooLong`](crate::operation::StopReason::RetryAfterTooLong), and no
    /// send rate pauses for longer.
    pub fn with_max_retry_after(mut self, span: Duration) -> Self {
        self.terms.max_retry_after_secs = whole_seconds(span);
        self
    }

    /// Remembers what the next send's retry was paid with; an earlier permit is spent.
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

    /// Returns how much time the operation had left when it was last said, or `None` without a
    /// limit.
    #[must_use]
    pub const fn time_left(&self) -> Option<Duration> {
        match self.terms.time_left_ns {
            u64::MAX => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }

    /// Returns how long a wait that the service asks for may be.
    #[must_use]
    pub const fn max_retry_after(&self) -> Duration {
        of_seconds(self.terms.max_retry_after_secs)
    }

    /// Remembers the permit of the send in progress, for the record of its outcome.
    pub fn sent(&mut self, permit: SendPermit) {
        self.sent = Sent::One(permit);
    }

    /// Remembers what the send in progress was granted: `permit`, or `all` by several send rates.
    pub(crate) fn sent_by(&mut self, permit: SendPermit, all: Option<Box<Granted>>) {
        self.sent = all.map_or(Sent::One(permit), |all| Sent::Several(Some(all)));
    }

    /// Returns what the send in progress was granted by the send rate at this position.
    pub(super) fn permit_of(&self, limit: usize) -> Option<SendPermit> {
        match &self.sent {
            Sent::One(permit) => (limit == 0).then_some(*permit),
            Sent::Several(granted) => granted.as_deref()?.permit.get(limit),
        }
    }

    /// Returns the permit of the send in progress, or `None` before it.
    #[must_use]
    pub fn send_permit(&self) -> Option<SendPermit> {
        match &self.sent {
            Sent::One(permit) => Some(*permit),
            Sent::Several(granted) => first_of(&granted.as_deref()?.permit),
        }
    }

    /// Returns how many tokens the send in progress took of the limit at this position of several,
    /// or of the only one: 0 if it took none, or is not sent.
    #[must_use]
    pub fn tokens_of(&self, limit: usize) -> u32 {
        self.permit_of(limit).map_or(0, SendPermit::weight)
    }

    /// Returns the member of a strategy with
    /// [several](crate::config::StrategyBuilder::members) that serves the send in progress: 0 of one
    /// member, or before the send.
    #[must_use]
    pub fn member(&self) -> usize {
        match &self.sent {
            Sent::Several(Some(granted)) => granted.member,
            _ => 0,
        }
    }

    /// Whether its attempt was sent, as far as the token knows.
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

    /// Remembers that the loop has said that it gives the operation up.
    pub(crate) const fn give_up(&mut self) {
        self.terms.flags |= Terms::GIVEN_UP;
    }

    /// Returns `true` if the loop has said that it gives the operation up.
    pub(super) const fn is_given_up(&self) -> bool {
        self.terms.flags & Terms::GIVEN_UP != 0
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

    /// Returns `true` if it is a token of `issuer`, and the send in progress is no retry that was
    /// paid for.
    #[inline]
    pub(super) fn is_unpaid(&self, issuer: StrategyId) -> bool {
        self.mark.issuer == issuer && self.paid.0 == 0
    }

    /// Takes out what the last retry was paid with.
    ///
    /// The call that ends a token takes this, drops the token, and only then does what may panic: a
    /// token that would be dropped on that way has to stand in memory.
    #[inline]
    pub(super) fn take_paid(&mut self) -> Option<QuotaPermit> {
        let cost = self.paid.cost();
        self.paid = Paid::NOTHING;
        cost.map(QuotaPermit::of)
    }
}

/// The permit of an attempt of a strategy with several send rates, and the member that granted it:
/// 0 if there is one.
#[derive(Clone, Copy)]
pub(crate) struct Granted {
    pub(crate) member: usize,
    pub(super) permit: SetPermit<MOST_RATES>,
}

/// What the send in progress was granted. It takes no more room than a permit.
enum Sent {
    One(SendPermit),
    /// By a strategy with several send rates; nothing before the send.
    Several(Option<Box<Granted>>),
}

impl Sent {
    const NOTHING: Self = Self::Several(None);
}

const _: () = assert!(size_of::<Sent>() == size_of::<SendPermit>());

/// Returns a cap in seconds, rounded up, or the largest number there is.
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

/// Returns `span` in nanoseconds, or the largest number there is.
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

/// The number by which events name the strategy.
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
    /// Returns [`ForeignToken`] with the token in it if another one did. For strategies that users
    /// write: ours check by themselves.
    pub fn check(self, token: RetryToken) -> Result<RetryToken, ForeignToken> {
        if token.strategy() == self {
            Ok(token)
        } else {
            Err(ForeignToken(token))
        }
    }
}

/// The token was issued by another strategy. Here it is again; nothing has changed.
#[derive(Debug)]
pub struct ForeignToken(pub RetryToken);

impl fmt::Display for ForeignToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FOREIGN)
    }
}

pub(super) const FOREIGN: &str = "the token was issued by another strategy";

impl Error for ForeignToken {}

/// Returns the permit of the first limit that the request took tokens of.
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
