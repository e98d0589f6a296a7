//! The limits behind a limiter: one send rate, a set, or a pool of either.

use core::{fmt, ops::Deref, task::Waker, time::Duration};

use crate::atomic::PlaceGuard;
use crate::law::{LimitReports, Observed};
use crate::set::{SetError, SetGuard, SetPermit};
use crate::{AcquireError, Class, Outcome, SendPermit, SendRate, SendSet, Timestamp};

/// What a request holds while it waits for its turn: a place in one line, or in several.
pub trait InLine {
    /// The permit of the request once its turn has come.
    type Permit;

    /// Takes the tokens if the turn has come.
    ///
    /// # Errors
    ///
    /// The time until the turn.
    fn claim_with(&mut self, now: impl FnOnce() -> Timestamp) -> Result<Self::Permit, Duration>;

    /// Wakes `waker` if the turn comes sooner than in `wait`. Returns the time after which to look
    /// again, or `None` if the waker cannot be woken.
    fn stand(&mut self, now: Timestamp, wait: Duration, waker: &Waker) -> Option<Duration>;

    /// Gives up the places at the time `now`, and wakes the waiters whose turn comes by this.
    fn leave(&mut self, now: impl FnOnce() -> Timestamp);

    /// Returns the limit that the request waits for longest, or the nearest member of a pool; 0
    /// where there is only one.
    fn limit(&self) -> usize {
        0
    }

    /// Returns the limit that the request waits for at the nearest member of a pool; 0 elsewhere.
    fn limit_of_member(&self) -> usize {
        0
    }

    /// Returns the time in which the request's tokens are minted, the time in which the tokens were
    /// minted that are there for waiters ahead, and for how long nothing goes. Pools ask their
    /// members.
    fn pace(&self, _: Timestamp) -> [Duration; 3] {
        [Duration::ZERO; 3]
    }
}

impl<R: Deref<Target = SendRate>> InLine for PlaceGuard<R> {
    type Permit = SendPermit;

    fn claim_with(&mut self, now: impl FnOnce() -> Timestamp) -> Result<SendPermit, Duration> {
        Self::claim_with(self, now)
    }

    fn stand(&mut self, now: Timestamp, wait: Duration, waker: &Waker) -> Option<Duration> {
        Self::stand(self, now, wait, waker)
    }

    fn leave(&mut self, now: impl FnOnce() -> Timestamp) {
        if self.give_up() {
            self.rate().wake_due(now());
        }
    }

    fn pace(&self, now: Timestamp) -> [Duration; 3] {
        Self::pace(self, now)
    }
}

impl<R: Deref<Target = SendRate>, const N: usize> InLine for SetGuard<R, N> {
    type Permit = SetPermit<N>;

    fn claim_with(&mut self, now: impl FnOnce() -> Timestamp) -> Result<SetPermit<N>, Duration> {
        Self::claim_with(self, now).map_err(|binding| binding.wait)
    }

    // The request is due when the last turn comes. If another line turns out to be later, the
    // request sees this at its next look.
    fn stand(&mut self, now: Timestamp, wait: Duration, waker: &Waker) -> Option<Duration> {
        self.latest()?.stand(now, wait, waker)
    }

    fn leave(&mut self, now: impl FnOnce() -> Timestamp) {
        self.give_up(|rates| {
            let now = now();
            rates.for_each(|rate| rate.wake_due(now));
        });
    }

    fn limit(&self) -> usize {
        self.latest
    }

    fn pace(&self, now: Timestamp) -> [Duration; 3] {
        self.pace(now)
    }
}

/// The time by which tokens have to come.
#[derive(Clone, Copy, Debug)]
pub enum Deadline {
    /// The request has no deadline.
    Never,
    /// This time after the request is made.
    Within(Duration),
    /// At this time.
    At(Timestamp),
}

impl Deadline {
    /// Returns the deadline of a request that is made at `now`, and the time until then.
    pub(crate) fn of(self, now: Timestamp) -> Option<(Timestamp, Duration)> {
        let deadline = match self {
            Self::Never => return None,
            Self::Within(span) => now.saturating_add(span),
            Self::At(deadline) => deadline,
        };
        Some((deadline, deadline.saturating_since(now)))
    }
}

/// What [`Limit::ahead`] returns.
pub(crate) type Ahead = (Option<Duration>, [Duration; 3], usize);

/// The limits of a limiter: a pointer to a [`SendRate`], a [`SendSet`], or a
/// [`SendPool`](crate::SendPool) of either. No other type can implement this trait.
pub trait Limit: Sized {
    /// The tokens that a request asks for.
    type Weights;
    /// The permit of a request that may go.
    type Permit: Copy + fmt::Debug;
    /// Why a request is refused.
    type Error: Copy + fmt::Debug;
    #[doc(hidden)]
    type Held: InLine<Permit = Self::Permit>;
    /// The same limit, borrowed.
    #[doc(hidden)]
    type Ref<'a>: Limit<Weights = Self::Weights, Permit = Self::Permit, Error = Self::Error> + Clone
    where
        Self: 'a;

    #[doc(hidden)]
    fn by_ref(&self) -> Self::Ref<'_>;

    /// Takes the tokens now, or takes nothing.
    #[doc(hidden)]
    fn take_now(
        &self,
        weights: Self::Weights,
        class: Class,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<Self::Permit, Self::Error>;

    /// Takes tokens that are in the bucket, without a place in line.
    #[doc(hidden)]
    fn take_first(
        &self,
        _: &Self::Weights,
        _: Class,
        _: impl FnOnce() -> Timestamp,
    ) -> Option<Self::Permit> {
        None
    }

    /// Takes the places of a request that has to wait, and returns its deadline.
    #[doc(hidden)]
    fn hold(
        self,
        weights: Self::Weights,
        class: Class,
        deadline: Deadline,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<(Self::Held, Option<Timestamp>), Self::Error>;

    /// Takes in what the service declares about its limits.
    #[doc(hidden)]
    fn hear(&self, now: Timestamp, permit: Self::Permit, reports: &LimitReports) -> Observed;

    /// Records the outcome of a request.
    #[doc(hidden)]
    fn note(&self, now: impl FnOnce() -> Timestamp, permit: Self::Permit, outcome: Outcome);

    /// Returns the error of a request that `limit` refuses, in a pool the limit `of_member`.
    #[doc(hidden)]
    fn refused(limit: usize, of_member: usize, why: AcquireError) -> Self::Error;

    /// Returns the wait that a refused request would have had, or `None` if it can never go.
    #[doc(hidden)]
    fn wait_of(error: &Self::Error) -> Option<Duration>;

    /// Returns the whole tokens that are left, and whether the limit is closed: shut, paused or
    /// spent.
    #[doc(hidden)]
    fn room(&self, now: Timestamp, weights: &Self::Weights, class: Class) -> (u64, bool);

    /// Returns the wait of a request at the end of the line, how fast the line mints as
    /// [`InLine::pace`] says, and the limit that the request waits for. The wait is `None` if the
    /// tokens are there. The error says why the request is refused.
    #[doc(hidden)]
    fn ahead(
        &self,
        now: Timestamp,
        weights: &Self::Weights,
        class: Class,
    ) -> Result<Ahead, Self::Error>;

    /// Returns `true` if both are the same limiter.
    #[doc(hidden)]
    fn is_same(&self, other: &Self) -> bool;

    /// Returns `Ok` if this limiter takes the same weights as `first`.
    #[doc(hidden)]
    fn check_like(&self, first: &Self) -> Result<(), Self::Error>;
}

/// A [`Limit`] that takes weights of the type `W`. A send rate takes a `u32`. A set takes an array
/// or a slice with a number for each rate.
pub trait AskedFor<W>: Limit {
    #[doc(hidden)]
    fn weigh(&self, weights: W) -> Self::Weights;
}

/// One send rate.
impl<R: Deref<Target = SendRate>> Limit for R {
    type Weights = u32;
    type Permit = SendPermit;
    type Error = AcquireError;
    type Held = PlaceGuard<R>;
    type Ref<'a>
        = &'a SendRate
    where
        Self: 'a;

    #[inline]
    fn by_ref(&self) -> &SendRate {
        self
    }

    #[inline]
    fn take_now(
        &self,
        weight: u32,
        class: Class,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<SendPermit, AcquireError> {
        if weight != 1 || class.is_background() {
            return self.ask(now(), weight, class).permit();
        }
        let taken = self.try_acquire_with(now);
        taken.map_err(|wait| AcquireError::NotInTime { wait })
    }

    // A limiter that obeys declared limits takes nothing here, because a refused request may count
    // there. Neither does background, which stands behind the line.
    fn take_first(
        &self,
        weight: &u32,
        class: Class,
        now: impl FnOnce() -> Timestamp,
    ) -> Option<SendPermit> {
        if *weight != 1 || class.is_background() || self.law.listens() {
            return None;
        }
        self.try_acquire_with(now).ok()
    }

    fn hold(
        self,
        weight: u32,
        class: Class,
        deadline: Deadline,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<(PlaceGuard<R>, Option<Timestamp>), AcquireError> {
        let rate = match PlaceGuard::take_untimed(self, weight) {
            Ok(held) => return Ok((held, None)),
            Err(rate) => rate,
        };
        let now = now();
        let (deadline, patience) = deadline.of(now).unzip();
        let held = PlaceGuard::take(rate, now, weight, class, patience)?;
        Ok((held, deadline))
    }

    fn hear(&self, now: Timestamp, permit: SendPermit, reports: &LimitReports) -> Observed {
        self.observe(now, permit, reports)
    }

    fn note(&self, now: impl FnOnce() -> Timestamp, permit: SendPermit, outcome: Outcome) {
        self.record_with(now, permit, outcome);
    }

    fn refused(_: usize, _: usize, why: AcquireError) -> AcquireError {
        why
    }

    fn wait_of(error: &AcquireError) -> Option<Duration> {
        error.wait()
    }

    fn room(&self, now: Timestamp, weight: &u32, class: Class) -> (u64, bool) {
        self.ask(now, *weight, class).room()
    }

    fn ahead(&self, now: Timestamp, weight: &u32, class: Class) -> Result<Ahead, AcquireError> {
        let ask = self.ask(now, *weight, class);
        ask.check()?;
        Ok((ask.wait(), ask.pace(), 0))
    }

    fn is_same(&self, other: &Self) -> bool {
        let (own, other): (&SendRate, &SendRate) = (self, other);
        core::ptr::eq(own, other)
    }

    fn check_like(&self, _: &Self) -> Result<(), AcquireError> {
        Ok(())
    }
}

impl<R: Deref<Target = SendRate>> AskedFor<u32> for R {
    fn weigh(&self, weight: u32) -> u32 {
        weight
    }
}

/// Several send rates. The weights are checked when the request is made.
impl<R: Deref<Target = SendRate> + Clone, const N: usize> Limit for SendSet<R, N> {
    type Weights = Result<[u32; N], SetError>;
    type Permit = SetPermit<N>;
    type Error = SetError;
    type Held = SetGuard<R, N>;
    type Ref<'a>
        = SendSet<&'a SendRate, N>
    where
        Self: 'a;

    fn by_ref(&self) -> SendSet<&SendRate, N> {
        self.borrowed()
    }

    fn take_now(
        &self,
        weights: Self::Weights,
        class: Class,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<SetPermit<N>, SetError> {
        self.take(now(), &weights?, class)
    }

    fn hold(
        self,
        weights: Self::Weights,
        class: Class,
        deadline: Deadline,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<(SetGuard<R, N>, Option<Timestamp>), SetError> {
        let (weights, now) = (weights?, now());
        let (deadline, patience) = deadline.of(now).unzip();
        let held = SetGuard::take(&self, now, &weights, class, patience)?;
        Ok((held, deadline))
    }

    fn hear(&self, now: Timestamp, permit: SetPermit<N>, reports: &LimitReports) -> Observed {
        self.observe(now, &permit, reports)
    }

    fn note(&self, now: impl FnOnce() -> Timestamp, permit: SetPermit<N>, outcome: Outcome) {
        self.record(now(), &permit, outcome);
    }

    fn refused(limit: usize, _: usize, error: AcquireError) -> SetError {
        SetError::Limit { limit, error }
    }

    fn wait_of(error: &SetError) -> Option<Duration> {
        error.wait()
    }

    fn room(&self, now: Timestamp, weights: &Self::Weights, class: Class) -> (u64, bool) {
        weights
            .as_ref()
            .map_or((0, false), |weights| self.room(now, weights, class))
    }

    fn ahead(
        &self,
        now: Timestamp,
        weights: &Self::Weights,
        class: Class,
    ) -> Result<Ahead, SetError> {
        self.ahead(now, weights.as_ref().map_err(|error| *error)?, class)
    }

    fn is_same(&self, other: &Self) -> bool {
        let others = other.rates().map(core::ptr::from_ref::<SendRate>);
        self.rates().map(core::ptr::from_ref).eq(others)
    }

    fn check_like(&self, first: &Self) -> Result<(), SetError> {
        let weights = [1; N];
        let given = first.rates().count();
        self.checked(weights.get(..given).unwrap_or(&weights))
            .map(drop)
    }
}

impl<R, const N: usize, W> AskedFor<W> for SendSet<R, N>
where
    R: Deref<Target = SendRate> + Clone,
    W: AsRef<[u32]>,
{
    fn weigh(&self, weights: W) -> Self::Weights {
        self.checked(weights.as_ref())
    }
}
