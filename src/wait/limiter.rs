//! A send rate with a clock and a way to sleep, which together can wait.

use alloc::sync::Arc;
use core::{fmt, ops::Deref, time::Duration};

use super::{
    Acquire, DefaultSleep, LOOK_AGAIN, PlaceInLine, Sleep, Waiter, Waiting, blocking, name_of,
};
use super::{AskedFor, Limit};
use crate::seam::Deadline;
use crate::{
    Class, Clock, MonotonicClock, Outcome, SendRate, Timestamp,
    law::{LimitReports, Observed, PacedSettings, PacedSettingsError},
};

/// A [`SendRate`] with a clock and a way to sleep, so that callers can wait for tokens.
///
/// Ask for [one token](Self::token) or for [several](Self::tokens), set [how
/// long](AcquireRequest::within) the request may take, and choose a form:
///
/// | form | waits |
/// |---|---|
/// | [`try_acquire`](AcquireRequest::try_acquire) | never |
/// | [`acquire`](AcquireRequest::acquire) | in a task |
/// | [`acquire_blocking`](AcquireRequest::acquire_blocking) | on a thread |
/// | [`reserve`](AcquireRequest::reserve) | as the caller sees fit |
///
/// First come, first served. Tokens that cannot come in time are refused at once, and the error
/// says how long the wait would have been. A waiter that gives up, or is dropped, leaves no debt.
///
/// Each waiter sleeps on its own timer until its turn comes at today's rate. At a steady rate a
/// waiter wakes once. Another thread wakes a waiter only if its turn comes over 10 ms sooner. When
/// the rate rises, waiters go within 75 ms of their new turns. When the rate falls, waiters look
/// again when their old turns have come.
///
/// `R` holds the rate: an `Arc`, or a reference, such as a reference to the rate of
/// [`Adaptive`](crate::Adaptive). Several limiters of one rate share its line. All timestamps of
/// the rate have to come from the limiter's clock.
///
/// # Examples
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use paceline::{Clock, ControlLaw, MonotonicClock, Outcome, SendLimiter, SendRate};
///
/// let start = MonotonicClock::new().now();
/// let limiter = SendLimiter::new(Arc::new(SendRate::new(ControlLaw::Aws, start)));
///
/// let permit = limiter.token().acquire_blocking()?; // not throttled yet: at once
/// // ... the service says that it was too much:
/// limiter.record(permit, Outcome::Throttled);
///
/// // The next one is two seconds off, which is more than there is.
/// let refused = limiter.token().within(Duration::from_millis(500)).acquire_blocking();
/// assert!(refused.unwrap_err().wait() > Some(Duration::from_millis(500)));
/// # Ok::<(), paceline::AcquireError>(())
/// ```
#[derive(Clone)]
pub struct SendLimiter<R = Arc<SendRate>, C = MonotonicClock, Z = DefaultSleep> {
    pub(super) rate: R,
    pub(super) clock: C,
    sleep: Z,
}

impl<R> SendLimiter<R> {
    /// Creates a limiter of a rate, of a [`SendSet`](crate::SendSet) or of a
    /// [`SendPool`](crate::SendPool), by the system's clock. Tasks sleep by tokio's timer, with the
    /// feature `tokio`.
    #[must_use]
    pub fn new(rate: R) -> Self {
        Self {
            rate,
            clock: MonotonicClock::new(),
            sleep: DefaultSleep,
        }
    }
}

impl SendLimiter {
    /// Creates a limiter of `tokens` a second, by the system's clock. Bursts are a twentieth of a
    /// second's tokens, and at least one.
    ///
    /// Leave a margin of a fifth below a service's limit, as with [`PacedSettings::fixed`].
    ///
    /// # Errors
    ///
    /// If `tokens` is 0, or beyond the [range](PacedSettings::fixed).
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::SendLimiter;
    ///
    /// let limiter = SendLimiter::per_second(10)?;
    /// for page in 1..=3 {
    ///     limiter.token().acquire_blocking()?; // a tenth of a second apart
    ///     println!("page {page}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn per_second(tokens: u32) -> Result<Self, PacedSettingsError> {
        let settings = PacedSettings::fixed(tokens, Duration::from_secs(1))?;
        let start = MonotonicClock::new().now();
        Ok(Self::new(Arc::new(SendRate::paced(settings, start))))
    }
}

impl<R, C: Clock, Z> SendLimiter<R, C, Z> {
    /// Takes the time from `clock`.
    #[must_use]
    pub fn clock<D: Clock>(self, clock: D) -> SendLimiter<R, D, Z> {
        SendLimiter {
            rate: self.rate,
            clock,
            sleep: self.sleep,
        }
    }

    /// Lets tasks sleep by another runtime's timer.
    #[must_use]
    pub fn sleep_on<Y: Sleep>(self, sleep: Y) -> SendLimiter<R, C, Y> {
        SendLimiter {
            rate: self.rate,
            clock: self.clock,
            sleep,
        }
    }

    /// Returns a limiter of `rate` with references to the other parts.
    pub(super) const fn by<Q>(&self, rate: Q) -> SendLimiter<Q, &C, &Z> {
        SendLimiter {
            rate,
            clock: &self.clock,
            sleep: &self.sleep,
        }
    }
}

impl<R: Deref<Target = SendRate>, C: Clock, Z> SendLimiter<R, C, Z> {
    /// Returns the send rate.
    #[must_use]
    pub fn send_rate(&self) -> &SendRate {
        &self.rate
    }

    /// Returns how many requests to have under way, as
    /// [`SendRateSnapshot::in_flight`](crate::SendRateSnapshot::in_flight).
    #[must_use]
    pub fn in_flight(&self) -> Option<u64> {
        self.rate.snapshot(self.clock.now()).in_flight
    }

    /// Waits until [`in_flight`](Self::in_flight) differs from `last`, and returns the new value.
    /// The method looks every 50 ms.
    ///
    /// A producer that keeps so many requests under way needs no queue in front of the limiter.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "tokio")] {
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use paceline::{Adaptive, SendLimiter};
    ///
    /// let strategy = Adaptive::paced();
    /// let limiter = SendLimiter::new(strategy.send_rate()).clock(strategy.clock());
    /// let workers = limiter.in_flight();
    /// assert_eq!(workers, None); // nothing is limited: as many as there are
    /// tokio::select! {
    ///     workers = limiter.in_flight_changed(workers) => println!("{workers:?} from now on"),
    ///     () = tokio::task::yield_now() => {} // ... the work
    /// }
    /// # }
    /// # main() }
    /// ```
    pub async fn in_flight_changed(&self, last: Option<u64>) -> Option<u64>
    where
        Z: Sleep,
    {
        let mut waiter = Waiter::new(&self.sleep);
        loop {
            let now = self.in_flight();
            if now != last {
                return now;
            }
            waiter.sleep(LOOK_AGAIN).await;
        }
    }
}

/// Limiters of one send rate, of a [`SendSet`](crate::SendSet), or of a
/// [`SendPool`](crate::SendPool).
impl<L: Limit, C: Clock, Z> SendLimiter<L, C, Z> {
    /// Takes in what the service declares about its limits: see [`SendRate::observe`].
    pub fn observe(&self, permit: L::Permit, reports: &LimitReports) -> Observed {
        self.rate.hear(self.clock.now(), permit, reports)
    }

    /// Records the outcome of a request with each of its limits, and wakes the waiters whose turn
    /// now comes sooner.
    ///
    /// Call it once for every response. It does the same as [`SendRate::record_with`].
    pub fn record(&self, permit: L::Permit, outcome: Outcome) {
        self.rate.note(|| self.clock.now(), permit, outcome);
    }

    /// Asks for one token.
    pub fn token(&self) -> AcquireRequest<L::Ref<'_>, &C, &Z, L::Weights>
    where
        L: AskedFor<u32>,
    {
        self.tokens(1)
    }

    /// Asks for several tokens: a number for a send rate, or a number for each rate of a set. A
    /// pool takes the weights of a member.
    pub fn tokens<W>(&self, weights: W) -> AcquireRequest<L::Ref<'_>, &C, &Z, L::Weights>
    where
        L: AskedFor<W>,
    {
        AcquireRequest::new(self.by(self.rate.by_ref()), self.rate.weigh(weights))
    }

    /// Like [`tokens`](Self::tokens), but the request owns the limiter. With an `Arc` for the rate,
    /// the future of a clone is `'static`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "tokio")] {
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use std::sync::Arc;
    /// use paceline::{Clock, ControlLaw, MonotonicClock, SendLimiter, SendRate};
    ///
    /// let start = MonotonicClock::new().now();
    /// let limiter = SendLimiter::new(Arc::new(SendRate::new(ControlLaw::Aws, start)));
    /// let task = tokio::spawn(limiter.clone().into_tokens(1).acquire());
    /// assert!(task.await.unwrap().is_ok());
    /// # }
    /// # main() }
    /// ```
    pub fn into_tokens<W>(self, weights: W) -> AcquireRequest<L, C, Z, L::Weights>
    where
        L: AskedFor<W>,
    {
        let weights = self.rate.weigh(weights);
        AcquireRequest::new(self, weights)
    }
}

/// A request for send tokens that is about to be made, from [`SendLimiter`]. It has a weight, or a
/// weight for each limit of a [`SendSet`](crate::SendSet).
#[must_use = "a request does nothing until it is tried, awaited or reserved"]
#[derive()]
pub struct AcquireRequest<R, C, Z, W = u32> {
    pub(super) limiter: SendLimiter<R, C, Z>,
    pub(super) weight: W,
    pub(super) class: Class,
    pub(super) deadline: Deadline,
}

impl<R, C, Z, W> AcquireRequest<R, C, Z, W> {
    pub(super) const fn new(limiter: SendLimiter<R, C, Z>, weight: W) -> Self {
        Self {
            limiter,
            weight,
            class: Class::Foreground,
            deadline: Deadline::Never,
        }
    }

    /// Lets the request take `span` at most from when it is made. The request of a future is made
    /// at the first poll.
    ///
    /// A request whose turn would come later is refused at once. If its turn moves past the
    /// deadline meanwhile, the request is refused at its next look.
    ///
    /// Prefer this deadline to a timeout around the future. A timeout takes a place in line for
    /// each call and gives the place up, and every look of another waiter passes such places. With
    /// ten thousand such callers a call costs 0.3 ms of the processor, where a refusal by the
    /// deadline costs 2 µs.
    pub fn within(self, span: Duration) -> Self {
        Self {
            deadline: Deadline::Within(span),
            ..self
        }
    }

    /// Lets the request take until `deadline`, by the limiter's clock.
    pub fn by(self, deadline: Timestamp) -> Self {
        Self {
            deadline: Deadline::At(deadline),
            ..self
        }
    }

    /// Sets whether something waits for the tokens: foreground by default.
    ///
    /// Background gets the tokens that the foreground leaves over. Its waits are estimates, and
    /// deadlines refuse by these estimates.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{Class, Clock, MonotonicClock, SendLimiter, SendRate, law::PacedSettings};
    ///
    /// let settings = PacedSettings::fixed(1_000, Duration::from_secs(1))?;
    /// let rate = SendRate::paced(settings, MonotonicClock::new().now());
    /// let limiter = SendLimiter::new(&rate);
    /// let backfill = limiter.token().class(Class::Background);
    /// assert!(backfill.acquire_blocking().is_ok());
    /// # Ok::<(), paceline::law::PacedSettingsError>(())
    /// ```
    pub fn class(self, class: Class) -> Self {
        Self { class, ..self }
    }
}

impl<L: Limit, C: Clock, Z> AcquireRequest<L, C, Z, L::Weights> {
    /// Takes the tokens if they are there. The deadline is now.
    ///
    /// # Errors
    ///
    /// [`AcquireError`](crate::AcquireError) if the tokens are not there, with the time until they
    /// come, or if the weight is invalid. For a set, [`SetError`](crate::set::SetError) with the
    /// limit whose tokens would come last. For a pool, [`PoolError`](crate::pool::PoolError) with
    /// the member whose tokens would come first.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{
    ///     AcquireError, Clock, MonotonicClock, SendLimiter, SendRate, WeightError,
    ///     law::PacedSettings,
    /// };
    ///
    /// let clock = MonotonicClock::new();
    /// let minute = Duration::from_secs(60); // a token a minute
    /// let rate = SendRate::paced(PacedSettings::fixed(1, minute)?, clock.now());
    /// let limiter = SendLimiter::new(&rate);
    /// assert!(limiter.token().try_acquire().is_ok());
    /// match limiter.token().try_acquire() {
    ///     Err(AcquireError::NotInTime { wait }) => assert!(wait <= minute),
    ///     other => panic!("{other:?}"),
    /// }
    /// let never = WeightError::AboveCapacity { weight: 2, capacity: 1 };
    /// assert_eq!(limiter.tokens(2).try_acquire(), Err(never.into()));
    /// # Ok::<(), paceline::law::PacedSettingsError>(())
    /// ```
    pub fn try_acquire(self) -> Result<L::Permit, L::Error> {
        let SendLimiter { rate, clock, .. } = &self.limiter;
        rate.take_now(self.weight, self.class, || clock.now())
    }

    /// Takes a place in line and leaves the waiting to the caller. The deadline holds for this call
    /// only.
    ///
    /// # Errors
    ///
    /// The errors of [`try_acquire`](Self::try_acquire), if the tokens cannot come in time.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Clock, ControlLaw, MonotonicClock, SendLimiter, SendRate};
    ///
    /// let rate = SendRate::new(ControlLaw::Aws, MonotonicClock::new().now());
    /// let limiter = SendLimiter::new(&rate);
    /// let mut place = limiter.token().reserve()?;
    /// let permit = loop {
    ///     match place.claim() {
    ///         Ok(permit) => break permit,
    ///         Err(wait) => std::thread::sleep(wait), // or do something else
    ///     }
    /// };
    /// # let _ = permit;
    /// # Ok::<(), paceline::AcquireError>(())
    /// ```
    pub fn reserve(self) -> Result<PlaceInLine<L, C>, L::Error> {
        self.take_place().map(|(place, _)| place)
    }

    /// Waits for the tokens on this thread, which parks meanwhile. An
    /// [`Interrupt`](super::Interrupt) counts as a deadline that is now.
    ///
    /// # Errors
    ///
    /// The errors of [`try_acquire`](Self::try_acquire), if the tokens cannot come in time.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{thread, time::Duration};
    /// use paceline::{Clock, MonotonicClock, SendLimiter, SendRate, law::PacedSettings};
    ///
    /// let settings = PacedSettings::fixed(1_000, Duration::from_secs(1))?;
    /// let rate = SendRate::paced(settings, MonotonicClock::new().now());
    /// let limiter = SendLimiter::new(&rate);
    /// thread::scope(|scope| {
    ///     for _ in 0..4 {
    ///         scope.spawn(|| limiter.token().within(Duration::from_secs(1)).acquire_blocking());
    ///     }
    /// });
    /// # Ok::<(), paceline::law::PacedSettingsError>(())
    /// ```
    pub fn acquire_blocking(self) -> Result<L::Permit, L::Error> {
        if let Some(permit) = self.try_first() {
            return Ok(permit);
        }
        let (mut place, _) = self.take_place()?;
        blocking::block(&mut place.0).map_err(|why| place.refused(why))
    }

    /// Waits for the tokens in a task. The future is `Send` if its parts are, and may be dropped at
    /// any time.
    ///
    /// The future allocates when it first has to wait, if its timer allocates, and then never
    /// again. The waiters of a limiter share a table, which grows to the most waiters at one time.
    /// The errors are those of [`try_acquire`](Self::try_acquire), if the tokens cannot come in
    /// time.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "tokio")] {
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use std::time::Duration;
    /// use paceline::{Clock, ControlLaw, MonotonicClock, SendLimiter, SendRate};
    ///
    /// let rate = SendRate::new(ControlLaw::Aws, MonotonicClock::new().now());
    /// let limiter = SendLimiter::new(&rate);
    /// tokio::select! {
    ///     permit = limiter.token().within(Duration::from_secs(1)).acquire() => assert!(permit.is_ok()),
    ///     () = tokio::time::sleep(Duration::from_secs(2)) => unreachable!("its place would have gone back"),
    /// }
    /// # }
    /// # main() }
    /// ```
    pub const fn acquire(self) -> Acquire<L, C, Z>
    where
        Z: Sleep,
    {
        Acquire::new(self)
    }

    pub(super) fn try_first(&self) -> Option<L::Permit> {
        let SendLimiter { rate, clock, .. } = &self.limiter;
        rate.take_first(&self.weight, self.class, || clock.now())
    }

    pub(super) fn take_place(self) -> Result<(PlaceInLine<L, C>, Z), L::Error> {
        let SendLimiter { rate, clock, sleep } = self.limiter;
        let (held, deadline) = rate.hold(self.weight, self.class, self.deadline, || clock.now())?;
        Ok((PlaceInLine(Waiting::new(held, clock, deadline)), sleep))
    }
}

impl<R: fmt::Debug, C: fmt::Debug, Z> fmt::Debug for SendLimiter<R, C, Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendLimiter")
            .field("rate", &self.rate)
            .field("clock", &self.clock)
            .field("sleep", &name_of::<Z>())
            .finish()
    }
}

impl<R: fmt::Debug, C: fmt::Debug, Z, W: fmt::Debug> fmt::Debug for AcquireRequest<R, C, Z, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireRequest")
            .field("limiter", &self.limiter)
            .field("weight", &self.weight)
            .field("class", &self.class)
            .field("deadline", &self.deadline)
            .finish()
    }
}
