//! The retry decision of `Standard` and `Adaptive`: the same checks in the same order.

use alloc::sync::Arc;
use core::time::Duration;

use super::{
    costs::cost_after,
    event::{Event, EventKind, Hook},
    failure::Failure,
    quota::QuotaSource,
    refusal::{RetryRefused, StopReason},
    settings::{RetryGeneration, Settings, permits},
    snapshot::{StrategyCounts, StrategySnapshot},
    token::{Mark, RetryToken, StrategyId, Terms},
};
use crate::cells::{Condition, Counts, Tally};
use crate::seam::LONG_UNUSED;
use crate::{Clock, QuotaPermit, RetryAfter};

/// The tokens that a success without a retry adds to the quota.
const SUCCESS_CREDIT: u32 = 1;

/// The most that a clamped hint may add to the backoff in generation 2.1.
const HINT_HEADROOM: Duration = Duration::from_secs(5);

/// The settings that strategies from one builder share. `P` has the settings of sends.
#[derive(Debug)]
pub(super) struct Common<P> {
    pub(super) settings: Settings,
    /// The clock of sends and of deadlines.
    pub(super) clock: Arc<dyn Clock>,
    pub(super) pace: P,
    /// The function called for each event.
    pub(super) hook: Option<Hook>,
    /// The terms of a first attempt.
    pub(super) first: Terms,
    /// The most attempts; 0 if there is no limit.
    pub(super) most: u32,
}

/// How a failed attempt counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weighed {
    /// As an attempt, whose retry is paid.
    Counts,
    /// As nothing, because it was throttled and the send rate holds the next attempt back.
    Free,
    /// As nothing, and without a retry, because everything has been throttled for this time.
    Stalled(Duration),
}

/// The state of retries, without the state of sends.
pub(super) struct Engine<P = ()> {
    pub(super) mark: Mark,
    /// Whether there is a hook. Requests read this copy without following a pointer.
    pub(super) is_watched: bool,
    pub(super) name: Option<Arc<str>>,
    pub(super) common: Arc<Common<P>>,
    pub(super) quota: QuotaSource,
    pub(super) counts: Counts,
}

/// The parts that all strategies of one builder share, with the quota of the first strategy.
#[derive(Debug)]
pub(super) struct Plan<P> {
    pub(super) common: Arc<Common<P>>,
    pub(super) quota: QuotaSource,
    pub(super) name: Option<Arc<str>>,
}

impl<P> Plan<P> {
    /// Makes one more engine, with `name`, or else with the builder's name.
    pub(super) fn engine(&self, name: Option<&str>) -> Engine<P> {
        let mark = Mark {
            issuer: StrategyId::new(),
            max_attempts: self.common.most,
            rest: 0,
        };
        Engine {
            mark,
            is_watched: self.common.hook.is_some(),
            name: name.map(Arc::from).or_else(|| self.name.clone()),
            common: Arc::clone(&self.common),
            quota: self.quota.another(),
            counts: Counts::new(),
        }
    }
}

impl<P> Engine<P> {
    /// Returns the number that distinguishes this strategy from others.
    #[inline]
    pub(super) const fn id(&self) -> StrategyId {
        self.mark.issuer
    }

    /// Calls the hook, if there is one.
    #[inline]
    pub(super) fn show<'a>(&self, kind: impl FnOnce() -> EventKind<'a>) {
        if self.is_watched {
            self.call_hook(kind);
        }
    }

    // Cold, because most strategies have no hook.
    #[cold]
    #[inline(never)]
    fn call_hook<'a>(&self, kind: impl FnOnce() -> EventKind<'a>) {
        self.notify(&Event::new(Some(self.id()), self.name.as_deref(), kind()));
    }

    /// Returns `true` if something may listen to events, so that their values are worth computing.
    pub(super) const fn is_heard(&self) -> bool {
        cfg!(feature = "tracing") || self.is_watched
    }

    /// Hands an event to `tracing` and to the hook. Without either, `kind` is not called.
    pub(super) fn tell<'a>(&self, kind: impl FnOnce() -> EventKind<'a>) {
        if self.is_heard() {
            let event = Event::new(Some(self.id()), self.name.as_deref(), kind());
            #[cfg(feature = "tracing")]
            event.trace();
            self.notify(&event);
        }
    }

    /// Calls the hook with an event of an operation.
    pub(super) fn notify(&self, event: &Event<'_>) {
        if let Some(hook) = &self.common.hook {
            hook.call(event);
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.common.settings
    }

    /// Returns `true` if a new strategy would decide on retries alike, as far as the quota goes.
    ///
    /// A quota that is not full counts as new once nothing was paid from it for [`LONG_UNUSED`].
    /// Only successes fill a quota, and there may be no more successes.
    pub(super) fn is_idle(&self) -> bool {
        let unpaid = || self.now().saturating_sub(self.counts.paid_at());
        self.quota.is_as_new() || unpaid() >= LONG_UNUSED
    }

    fn now(&self) -> u64 {
        self.common.clock.now().as_nanos()
    }

    /// Returns the token of a first send, whatever the quota holds.
    #[inline]
    pub(super) fn initial_token(&self) -> RetryToken {
        RetryToken::of(self.mark, self.common.first)
    }

    /// Decides on a retry, and counts and emits the decision.
    pub(super) fn refresh(
        &self,
        token: RetryToken,
        failure: &Failure,
        weighed: Weighed,
    ) -> Result<RetryToken, RetryRefused> {
        if failure.is_throttle() {
            self.counts.one(Tally::Throttled);
        }
        let attempt = token.attempt();
        let answer = self.decide(token, failure, weighed);
        match &answer {
            Ok(_) => {
                self.counts.one(Tally::Granted);
                if self.counts.note(Condition::Exhausted, false) {
                    let available = self.quota.available();
                    self.tell(|| EventKind::QuotaRecovered { available });
                }
            }
            Err(refused) => {
                let reason = refused.reason();
                self.note_refusal(reason);
                self.tell(|| EventKind::RetryRefused {
                    attempt,
                    failure,
                    reason,
                });
            }
        }
        answer
    }

    fn note_refusal(&self, reason: StopReason) {
        self.counts.one(match reason {
            StopReason::MaxAttempts { .. } => Tally::RefusedAttempts,
            StopReason::NotRetryable | StopReason::MaybeExecuted => Tally::RefusedSafety,
            StopReason::OutOfTime { .. }
            | StopReason::RetryAfterTooLong { .. }
            | StopReason::Stalled { .. } => Tally::RefusedTime,
            StopReason::QuotaExhausted { .. } => Tally::RefusedQuota,
            _ => Tally::RefusedOther,
        });
        if let StopReason::QuotaExhausted { available, needed } = reason {
            if self.counts.note(Condition::Exhausted, true) {
                self.tell(|| EventKind::QuotaExhausted { available, needed });
            }
        }
    }

    /// Decides on a retry. The checks are, in order: retry safety, idempotency, attempts, time for
    /// the delay, and quota.
    ///
    /// In this order, the last failing attempt costs no quota, and a delay that does not fit takes
    /// none ("Retry behavior", AWS SDKs and Tools Reference Guide). `token` must be of this
    /// strategy.
    fn decide(
        &self,
        token: RetryToken,
        failure: &Failure,
        weighed: Weighed,
    ) -> Result<RetryToken, RetryRefused> {
        let refused = RetryRefused::new;
        permit(&token, failure)?;
        let (attempt, max) = (token.attempt(), self.settings().max_attempts);
        match weighed {
            Weighed::Counts if attempt >= max => {
                return Err(refused(StopReason::MaxAttempts { max }));
            }
            Weighed::Stalled(span) => return Err(refused(StopReason::Stalled { span })),
            Weighed::Counts | Weighed::Free => {}
        }
        let delay = self.delay(attempt, failure);
        if let Some(reason) = hint_too_long(failure, delay, token.max_retry_after()) {
            return Err(refused(reason).with_backoff(delay));
        }
        if let Some(reason) = out_of_time(delay, token.time_left()) {
            return Err(refused(reason).with_backoff(delay));
        }
        let limit = token.max_attempts();
        let token = token.with_delay(delay);
        if weighed == Weighed::Free {
            return Ok(token.with_attempt(attempt, limit));
        }
        let needed = cost_after(failure, self.settings().generation);
        let Some(permit) = self.quota.try_acquire(needed) else {
            let available = self.quota.available();
            return Err(refused(StopReason::QuotaExhausted { available, needed })
                .with_backoff(delay)
                .waiting(self.settings().long_polling));
        };
        self.counts.paid(self.now());
        Ok(token
            .with_attempt(attempt.saturating_add(1), limit)
            .with_paid(permit))
    }

    /// Pays back the last retry of an operation that succeeded. An operation without a retry brings
    /// a credit.
    #[inline]
    pub(super) fn succeed(&self, paid: Option<QuotaPermit>, attempts: u32) {
        if self.is_watched {
            return self.succeed_shown(paid, attempts);
        }
        self.pay_back(paid);
    }

    // The hook is checked first, so that nothing of a first token is loaded for the check.
    #[cold]
    #[inline(never)]
    fn succeed_shown(&self, paid: Option<QuotaPermit>, attempts: u32) {
        self.pay_back(paid);
        self.show(|| EventKind::Succeeded { attempts });
    }

    //= AWS: Tokens are added to the token bucket if the request is successful.
    fn pay_back(&self, paid: Option<QuotaPermit>) {
        match paid {
            Some(permit) => self.add(permit.cost()),
            None => self.credit(),
        }
    }

    /// Credits an operation that succeeded and needed no retry.
    #[inline]
    pub(super) fn credit(&self) {
        self.add(SUCCESS_CREDIT);
    }

    #[inline]
    fn add(&self, amount: u32) {
        let credited = self.quota.add(amount);
        if credited != 0 {
            self.counts.add(Tally::Credited, credited);
        }
    }

    /// Gives back the quota that was paid for the next attempt, which will not be sent.
    ///
    /// An attempt that was sent has used up its quota.
    pub(super) fn give_back(&self, token: &mut RetryToken) {
        if !token.is_given_up() {
            self.show(|| EventKind::Cancelled {
                attempts: token.attempt().saturating_sub(u32::from(!token.is_sent())),
            });
        }
        if token.is_sent() {
            return;
        }
        if let Some(permit) = token.take_paid() {
            self.quota.release(permit);
        }
    }

    /// Returns the state of retries.
    pub(super) fn snapshot(&self) -> StrategySnapshot {
        StrategySnapshot {
            quota: self.quota.snapshot(),
            counts: StrategyCounts::of(&self.counts),
            ..StrategySnapshot::default()
        }
    }

    /// Returns the delay before the `retry`-th retry: the backoff, with the service's hint taken
    /// into account.
    ///
    /// A hint that is a floor is added to the backoff. Clients that are refused together get the
    /// same hint, and the jitter spreads them after it.
    fn delay(&self, retry: u32, failure: &Failure) -> Duration {
        let settings = self.settings();
        let random = settings.random.next_u64();
        let throttle = failure.is_throttle();
        let backoff = settings.backoff.delay(retry, throttle, random);
        //= Smithy: A retry strategy may choose a delay that is longer than this, but should not
        //= choose a delay that is shorter than this since it is information directly from the
        //= service.
        match failure.retry_after() {
            None => backoff,
            Some(RetryAfter::AtLeast(hint)) => hint.saturating_add(backoff),
            Some(RetryAfter::Clamped(hint)) => match settings.generation {
                RetryGeneration::V2_0 => hint.min(settings.max_backoff),
                RetryGeneration::V2_1 => hint.clamp(backoff, backoff.saturating_add(HINT_HEADROOM)),
            },
        }
    }
}

/// Refuses a retry that must not be made, whatever is left of attempts, time and quota.
pub(super) fn permit(token: &RetryToken, failure: &Failure) -> Result<(), RetryRefused> {
    if !permits(failure) {
        return Err(RetryRefused::new(StopReason::NotRetryable));
    }
    if !token.idempotency().permits(failure) {
        return Err(RetryRefused::new(StopReason::MaybeExecuted));
    }
    Ok(())
}

/// Returns the reason to refuse a `delay` longer than `max`, for which the service asked.
pub(crate) fn hint_too_long(
    failure: &Failure,
    delay: Duration,
    max: Duration,
) -> Option<StopReason> {
    let (RetryAfter::AtLeast(asked) | RetryAfter::Clamped(asked)) = failure.retry_after()?;
    (asked > max && delay > max).then_some(StopReason::RetryAfterTooLong { asked, max })
}

/// Returns the reason to refuse a `delay` after which no time is left to send.
pub(crate) fn out_of_time(delay: Duration, left: Option<Duration>) -> Option<StopReason> {
    let left = left.filter(|left| delay >= *left)?;
    Some(StopReason::OutOfTime { wait: delay, left })
}

/// Implements the methods of [`RetryStrategy`](crate::RetryStrategy) that `Standard` and `Adaptive`
/// leave to their engine.
macro_rules! by_engine {
    () => {
        fn acquire_initial_token(
            &self,
            _scope: Option<&str>,
        ) -> Result<RetryToken, InitialTokenRefused> {
            Ok(self.engine.initial_token())
        }

        fn clock(&self) -> &dyn Clock {
            &*self.engine.common.clock
        }

        fn id(&self) -> Option<StrategyId> {
            Some(self.engine.id())
        }

        fn name(&self, _token: Option<&RetryToken>) -> Option<Arc<str>> {
            self.engine.name.clone()
        }

        fn notify(&self, event: &Event<'_>) {
            self.engine.notify(event);
        }
    };
}
pub(super) use by_engine;
