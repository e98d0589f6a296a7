//! Adaptive mode: standard mode, and a send rate that follows the service's throttling.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::{array, fmt, iter, slice, time::Duration};

use super::{
    builder::StrategyBuilder,
    charge::AttemptCharge,
    engine::{Engine, by_engine},
    event::Event,
    failure::Failure,
    members::{Choice, Members},
    refusal::{InitialTokenRefused, NotAdmitted, RetryRefused},
    reports::Reports,
    request::SendRequest,
    retry_strategy::RetryStrategy,
    settings::Settings,
    snapshot::StrategySnapshot,
    token::{ForeignToken, RetryToken, StrategyId, nanos},
    turn::{Manner, SendTurn, weight_of},
};
use crate::cells::{Condition, Drought};
use crate::{
    Clock, ControlLaw, Outcome, RetryQuota, SendPermit, SendRate, SendSet, Timestamp,
    law::{DeclaredSettings, PacedSettings, PacedSettingsError},
    set::{MOST_RATES, SetPermit, Weights},
};

mod admit;
mod build;
mod record;

/// The least wait that an event explains, and the least time between two events that count
/// refusals.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// The adaptive mode of the AWS SDKs: [`Standard`](crate::Standard), and every send waits for its
/// turn once the service has throttled.
///
/// A control law moves the send rate, and the caller chooses the law. [`ControlLaw::Aws`] is the
/// published law, to the letter. [`ControlLaw::Paced`] is paceline's law ([`paced`](Self::paced)).
/// The paced law sends two to three times as much where one client has a limit alone.
///
/// All operations of one strategy share one send rate. Use a strategy for each resource that is
/// throttled separately: for S3 a prefix, for DynamoDB a table. Otherwise one hot resource slows
/// all others. Every outcome is recorded before the retry decision. Backoff and turn add up: an
/// operation holds no place in line during a backoff.
///
/// # Examples
///
/// ```
/// use paceline::{Adaptive, ControlLaw, Failure, RetryStrategyExt};
///
/// let strategy = Adaptive::builder().law(ControlLaw::Paced).max_attempts(4).build()?;
/// let answer = strategy.run(|attempt| {
///     assert_eq!(attempt.to_string(), "attempt=1; max=4");
///     Ok::<_, Failure>("copied")
/// });
/// assert_eq!(answer.unwrap(), "copied");
/// # Ok::<(), paceline::config::SettingsError>(())
/// ```
///
/// Tasks and threads share one strategy, and with it quota and rate, through an [`Arc`]. An `Arc`
/// of a strategy is a strategy too, so its clones can be passed wherever a strategy is expected:
///
/// ```
/// use std::{sync::Arc, thread};
/// use paceline::{Adaptive, Failure, RetryStrategyExt};
///
/// let strategy = Arc::new(Adaptive::paced());
/// let workers = [1, 2].map(|worker| {
///     let strategy = Arc::clone(&strategy);
///     thread::spawn(move || strategy.run(|_| Ok::<_, Failure>(worker)))
/// });
/// let answers = workers.map(|worker| worker.join().unwrap().unwrap());
/// assert_eq!(answers, [1, 2]);
/// ```
//= AWS: Two token buckets are used by the SDK: a retry token bucket and a request rate token
//= bucket.
//= AWS: This step is only used in adaptive retry mode.
pub struct Adaptive {
    pub(super) engine: Engine<Pace>,
    /// The first send rate, shared with the places in its line.
    rate: Arc<SendRate>,
    /// Whether an unlimited request needs no clock and leaves only a count. The strategy then has
    /// one send rate, no exact timing and no hook, and is not in bulk.
    is_plain: bool,
    /// All send rates. If there are several members, the rates of the first member.
    set: SendSet<Arc<SendRate>>,
    /// The members, if there are several.
    members: Option<Box<Members>>,
    /// `Some` in bulk only.
    drought: Option<Box<Drought>>,
}

/// The settings of sends that strategies from one builder share.
#[derive(Debug)]
pub(super) struct Pace {
    pub(super) manner: Manner,
    pub(super) law: ControlLaw,
    /// `None` for the defaults of the law.
    pub(super) paced: Option<PacedSettings>,
    pub(super) declared: Option<DeclaredSettings>,
    /// The further send rates.
    pub(super) also: Vec<DeclaredSettings>,
    /// The number of members, each with such rates.
    pub(super) members: usize,
    pub(super) choosing: Option<Choice>,
    /// How long all attempts may be throttled, in bulk. `None` if not in bulk.
    pub(super) stall_timeout: Option<Duration>,
}

impl Pace {
    /// Creates the send rates of a member, which start at `now`. Returns the first rate, and the
    /// set of all rates.
    fn rates(&self, now: Timestamp) -> (Arc<SendRate>, SendSet<Arc<SendRate>>) {
        let rate = match (self.law, self.paced) {
            (ControlLaw::Paced, settings) if self.stall_timeout.is_some() => SendRate::paced(
                settings
                    .unwrap_or_else(PacedSettings::new)
                    .starting_slowly(),
                now,
            ),
            (ControlLaw::Declared, _) => {
                let settings = self.declared.unwrap_or(DeclaredSettings::new());
                SendRate::declared(settings, now)
            }
            (_, Some(settings)) => SendRate::paced(settings, now),
            (law, None) => SendRate::new(law, now),
        };
        let rate = Arc::new(rate);
        let also = self.also.iter();
        let also = also.map(|settings| Arc::new(SendRate::declared(*settings, now)));
        // The builder has checked that there are at most eight rates.
        let set = SendSet::of_first(iter::once(Arc::clone(&rate)).chain(also));
        (rate, set)
    }
}

impl Adaptive {
    /// Creates the strategy with the defaults in [`Settings`] and with `law`.
    #[must_use]
    pub fn new(law: ControlLaw) -> Self {
        Self::builder().law(law).build_checked()
    }

    /// Creates the strategy with the defaults in [`Settings`] and the law [`ControlLaw::Paced`]. To
    /// change a setting, start from the builder:
    ///
    /// ```
    /// use paceline::{Adaptive, law::PacedSettings};
    ///
    /// let builder = Adaptive::builder().paced(PacedSettings::new());
    /// let strategy = builder.max_attempts(5).build()?;
    /// # Ok::<(), paceline::config::SettingsError>(())
    /// ```
    #[must_use]
    pub fn paced() -> Self {
        Self::builder().paced(PacedSettings::new()).build_checked()
    }

    /// Creates a strategy for pipelines, which copy, load or delete many objects and may lose none.
    /// It is [`paced`](Self::paced), and retries throttled requests until they succeed.
    ///
    /// - A throttled attempt does not count for `max_attempts` and takes nothing from the quota,
    ///   because the send rate holds the next attempt back. Other failures are limited as
    ///   ever. An outage of half a minute loses operations unless each operation has twenty
    ///   attempts and each worker 280 tokens of the quota
    ///   (`.max_attempts(20).quota_capacity(280 * workers)`).
    /// - An operation ends at its deadline, which is a day unless
    ///   [set](crate::config::StrategyBuilder::deadline). It also ends when everything has been
    ///   throttled for 5 minutes
    ///   ([`stall_timeout`](crate::config::StrategyBuilder::stall_timeout)), with
    ///   [`StopReason::Stalled`](crate::operation::StopReason::Stalled). So it does not wait for a
    ///   disabled account. From then on an operation that would have to wait is refused likewise,
    ///   until an operation succeeds.
    /// - The rate begins low, and rises with each round trip until the first throttle
    ///   ([`slow_start`](crate::law::PacedSettingsBuilder::slow_start)), so that hundreds of
    ///   workers do not find the limit all at once.
    ///
    /// Only responses that the client classifies as throttling count as throttled. Object stores
    /// throttle with 503, which is transient by default. The adapters' constructors for bulk
    /// classify 503 as throttling. In your own client use `ServiceUnavailable::Throttle` of the
    /// feature `classify`.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Adaptive, Failure, RetryStrategyExt};
    ///
    /// let strategy = Adaptive::builder().bulk().max_attempts(1).build()?;
    /// let copied = strategy.run(|attempt| match attempt.number() {
    ///     1 => Err(Failure::throttling()),
    ///     number => Ok(number),
    /// });
    /// assert_eq!(copied.unwrap(), 2);
    /// # Ok::<(), paceline::config::SettingsError>(())
    /// ```
    #[must_use]
    pub fn bulk() -> Self {
        Self::builder().bulk().build_checked()
    }

    /// Creates the strategy with the defaults in [`Settings`] and the law [`ControlLaw::Declared`],
    /// which follows what the service declares in its responses.
    ///
    /// The strategy needs the declared limits. Adapters read them from the headers, and the
    /// attempts of a [`reporting`](crate::Operation::reporting) operation return them. A plain
    /// `run` brings no limits. A loop of another crate adds the limits to the [`Reports`] of an
    /// outcome. For other settings call `declared` of the [builder](Self::builder).
    #[must_use]
    pub fn declared() -> Self {
        Self::builder()
            .declared(DeclaredSettings::new())
            .build_checked()
    }

    /// Creates a strategy for a service that limits requests and tokens a minute, like services of
    /// language models. It is for limits that are known and not declared in responses.
    ///
    /// A send takes one request and the tokens of
    /// [`Operation::weights`](crate::Operation::weights). A heavy send waits until its tokens are
    /// saved up. At most the tokens of 10 s are saved up, a sixth of `tokens`. If the service
    /// declares token limits all the same, the strategy obeys them.
    ///
    /// # Errors
    ///
    /// If one of the limits is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Adaptive, Failure, RetryStrategyExt};
    ///
    /// let strategy = Adaptive::per_minute(500, 200_000)?;
    /// let estimate = 1_200; // the prompt's tokens, and the most that may come back
    /// let answer = strategy.operation().weights([1, estimate]).run(|_| Ok::<_, Failure>("hi"));
    /// assert_eq!(answer.unwrap(), "hi");
    /// # Ok::<(), paceline::law::PacedSettingsError>(())
    /// ```
    pub fn per_minute(requests: u32, tokens: u32) -> Result<Self, PacedSettingsError> {
        Ok(Self::builder()
            .per_minute(requests, tokens)?
            .build_checked())
    }

    /// Starts from the defaults in [`Settings`]. `law`, `paced`, `declared`, `bulk` or `per_minute`
    /// of the builder names the law.
    pub fn builder() -> StrategyBuilder<Self> {
        StrategyBuilder::new()
    }

    /// Creates the strategy with a send rate that starts now.
    pub(super) fn from_engine(engine: Engine<Pace>) -> Self {
        let pace = &engine.common.pace;
        let now = engine.common.clock.now();
        let bulk = pace.stall_timeout.is_some();
        let drought = bulk.then(|| Box::new(Drought::new()));
        let (rate, set) = pace.rates(now);
        let rest = (1..pace.members).map(|_| pace.rates(now).1);
        let sets = iter::once(set.clone()).chain(rest).collect::<Vec<_>>();
        // The builder has checked that there are at most 16 members.
        let members = Members::new(sets.into_iter(), pace.choosing.clone()).map(Box::new);
        let is_several = set.is_several() || members.is_some();
        Self {
            is_plain: !is_several && !bulk && !pace.manner.exact_timing && !engine.is_watched,
            set,
            members,
            engine,
            rate,
            drought,
        }
    }

    /// Returns the settings that this mode shares with [`Standard`](crate::Standard).
    #[must_use]
    pub fn settings(&self) -> &Settings {
        self.engine.settings()
    }

    /// Returns the quota that retries are paid from.
    #[must_use]
    pub fn quota(&self) -> &RetryQuota {
        &self.engine.quota
    }

    /// Returns the send rate, or the first member's rate if there are several members. Its
    /// timestamps come from the strategy's clock.
    #[must_use]
    pub fn send_rate(&self) -> &SendRate {
        &self.rate
    }

    /// Changes the settings of [`ControlLaw::Paced`]: see [`SendRate::set_paced`].
    ///
    /// # Errors
    ///
    /// The errors of [`SendRate::set_paced`]. Nothing is changed then.
    pub fn set_paced(&self, settings: PacedSettings) -> Result<(), PacedSettingsError> {
        let now = self.clock().now();
        for set in self.sets() {
            set.rates()
                .take(1)
                .try_for_each(|rate| rate.set_paced(settings, now))?;
        }
        Ok(())
    }

    /// Returns the send rates of each [member](StrategyBuilder::members): one set, unless the
    /// strategy has several members.
    #[must_use]
    pub fn sets(&self) -> &[SendSet<Arc<SendRate>>] {
        let members = self.members.as_deref();
        members.map_or(slice::from_ref(&self.set), Members::all)
    }

    /// Returns all send rates of all members.
    fn rates(&self) -> impl Iterator<Item = &SendRate> {
        self.sets().iter().flat_map(SendSet::rates)
    }

    /// Returns the send rates that the attempt of `token` took its tokens from.
    fn set_of(&self, token: &RetryToken) -> &SendSet<Arc<SendRate>> {
        self.sets().get(token.member()).unwrap_or(&self.set)
    }

    /// Returns `true` if an attempt takes tokens of several send rates, or of one of several.
    fn is_several(&self) -> bool {
        self.set.is_several() || self.members.is_some()
    }

    /// Forgets every throttle: see [`SendRate::forget_throttles`]. The quota does not change;
    /// [`RetryQuota::refill`] fills it.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Adaptive, ControlLaw, Failure, RetryStrategy, strategy::Reports};
    ///
    /// let strategy = Adaptive::new(ControlLaw::Aws);
    /// let token = strategy.acquire_initial_token(None).unwrap();
    /// drop(strategy.refresh_retry_token(token, &Failure::throttling(), Reports::new()));
    /// assert!(strategy.snapshot().rate.is_some_and(|rate| rate.enabled));
    /// strategy.forget_throttles(); // the limit was raised
    /// assert!(strategy.snapshot().rate.is_some_and(|rate| !rate.enabled));
    /// ```
    pub fn forget_throttles(&self) {
        let now = self.clock().now();
        for rate in self.rates() {
            rate.forget_throttles(now);
        }
        self.engine.counts.note(Condition::Unheard, false);
        self.look_for_changes();
    }

    /// Returns the clock that times the sends.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        &*self.engine.common.clock
    }

    /// Returns the law that moves the send rate.
    #[must_use]
    pub fn law(&self) -> ControlLaw {
        self.rate.law()
    }

    fn bulk_limits(&self) -> Option<(&Drought, u64)> {
        let drought = self.drought.as_deref()?;
        Some((drought, nanos(self.engine.common.pace.stall_timeout?)))
    }

    /// Records a success in the send rate.
    // Not inlined, because most successes are unlimited first attempts.
    #[inline(never)]
    fn record_success_closely(&self, token: &RetryToken, reports: Reports<'_>) {
        let outcome = reports.pause();
        let outcome = outcome.map_or(Outcome::NotThrottled, Outcome::PauseAfter);
        self.record(token, outcome, reports);
        if let Some(drought) = &self.drought {
            drought.delivered();
        }
    }
}

//= AWS: For adaptive retry mode only, the fill rate of the request rate token bucket is updated
//= based on the type of response received.
impl RetryStrategy for Adaptive {
    by_engine!();

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        failure: &Failure,
        reports: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        let token = self.engine.id().check(token)?;
        let outcome = match Outcome::from(failure) {
            // The send rate pauses for no longer than the operation would.
            Outcome::ThrottledFor(hint) => Outcome::ThrottledFor(hint.min(token.max_retry_after())),
            outcome => outcome,
        };
        self.record(&token, outcome, reports);
        let weighed = self.weigh(failure, reports);
        self.engine.refresh(token, failure, weighed)
    }

    #[inline]
    fn record_success(
        &self,
        mut token: RetryToken,
        reports: Reports<'_>,
    ) -> Result<(), ForeignToken> {
        let goes_untimed = self.is_plain && reports.says_nothing();
        if goes_untimed && token.is_unpaid(self.engine.id()) && self.rate.count_untimed() {
            drop(token);
            self.engine.credit();
            return Ok(());
        }
        if token.strategy() != self.engine.id() {
            return Err(ForeignToken(token));
        }
        self.record_success_closely(&token, reports);
        let (paid, attempts) = (token.take_paid(), token.attempt());
        drop(token);
        self.engine.succeed(paid, attempts);
        Ok(())
    }

    fn record_cancelled(
        &self,
        token: RetryToken,
        reports: Reports<'_>,
    ) -> Result<(), ForeignToken> {
        let mut token = self.engine.id().check(token)?;
        if token.is_sent() {
            self.record(&token, Outcome::Unknown, reports);
        }
        self.engine.give_back(&mut token);
        Ok(())
    }

    fn snapshot(&self) -> StrategySnapshot {
        let now = self.clock().now();
        let mut further = self.set.rates().skip(1);
        StrategySnapshot {
            law: Some(self.law()),
            rate: Some(self.rate.snapshot(now)),
            further_rates: array::from_fn(|_| Some(further.next()?.snapshot(now))),
            ..self.engine.snapshot()
        }
    }

    fn observe(&self, token: &RetryToken, reports: Reports<'_>) {
        if token.strategy() != self.engine.id() {
            return;
        }
        let now = reports.clock(self.clock()).now();
        self.hear(token, reports, now);
    }

    fn charge(&self, token: &RetryToken) -> Option<AttemptCharge> {
        if token.strategy() != self.engine.id() {
            return None;
        }
        let sent_at = token.send_permit()?.time();
        let permit: SetPermit<MOST_RATES> = SetPermit::of(self.taken(token, sent_at));
        let (set, clock) = (
            self.set_of(token).clone(),
            Arc::clone(&self.engine.common.clock),
        );
        let all: [u32; MOST_RATES] = array::from_fn(|limit| weight_of(&permit, limit));
        let estimate = Weights::of(all.get(..set.rates().count())?).ok()?;
        let settle = move |costs: &[u32]| set.settle(clock.now(), permit, costs);
        Some(AttemptCharge::new(estimate, settle))
    }

    fn obeys_limits(&self) -> bool {
        self.rate.law() == ControlLaw::Declared || self.set.is_several()
    }

    #[inline]
    fn admit(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
    ) -> Result<SendPermit, NotAdmitted> {
        // An attempt that goes at once holds nothing and counts nothing.
        let is_plain = self.is_plain && request.tokens() == 1 && !turn.is_in_line();
        if is_plain && self.rate.is_untimed() {
            return Ok(SendPermit::NO_TIME);
        }
        self.admit_limited(turn, request)
    }

    fn is_idle(&self) -> bool {
        let now = self.clock().now();
        self.engine.is_idle() && self.rates().all(|rate| rate.is_idle(now))
    }
}

impl fmt::Debug for Adaptive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let snapshot = self.snapshot();
        let rate = self.rate.snapshot(self.clock().now());
        let mut shown = f.debug_struct("Adaptive");
        if let Some(name) = &self.engine.name {
            shown.field("name", name);
        }
        shown
            .field("law", &self.law())
            .field("max_attempts", &self.settings().max_attempts)
            .field("quota", &snapshot.quota.available)
            .field("rate", &format_args!("{rate}"))
            .finish_non_exhaustive()
    }
}
