//! Waiting for the tokens of a set: one wait, one deadline, one cancellation.

use core::{fmt, future::poll_fn, ops::Deref};

use super::place::Waiting;
use super::{AcquireRequest, SendLimiter, Sleep, Waiter, blocking};
use crate::set::{Binding, SetError, SetGuard, SetPermit};
use crate::{
    AcquireError, Clock, Outcome, SendRate, SendSet,
    law::{LimitReports, Observed},
};

/// Several limits on one request.
///
/// A request waits for the limit whose turn comes last: it sleeps once, and is woken when that turn
/// comes sooner. First come, first served in each line.
///
/// # Examples
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use paceline::{
///     Clock, MonotonicClock, Outcome, SendLimiter, SendRate, SendSet, law::PacedSettings,
/// };
///
/// let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
/// let settings = |n| PacedSettings::fixed(n, minute)?.to_builder().burst(second).build();
/// let start = MonotonicClock::new().now();
/// let requests = Arc::new(SendRate::paced(settings(500)?, start));
/// let tokens = Arc::new(SendRate::paced(settings(200_000)?, start));
/// let limiter = SendLimiter::new(SendSet::new([requests, tokens]));
///
/// let permit = limiter.tokens([1, 1_200]).within(minute).acquire_blocking()?;
/// // ... the response says that it took 3,411 tokens:
/// limiter.settle(permit, &[1, 3_411])?;
/// limiter.record(&permit, Outcome::NotThrottled);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<R: Deref<Target = SendRate>, C: Clock, Z, const N: usize> SendLimiter<SendSet<R, N>, C, Z> {
    /// Returns the set.
    #[must_use]
    pub const fn set(&self) -> &SendSet<R, N> {
        self.of()
    }

    /// Takes in what the service declares about its limits: see [`SendSet::observe`].
    pub fn observe(&self, permit: &SetPermit<N>, reports: &LimitReports) -> Observed {
        self.of().observe(self.now(), permit, reports)
    }

    /// Records the outcome of a request with each of its limits: see [`SendSet::record`].
    pub fn record(&self, permit: &SetPermit<N>, outcome: Outcome) {
        self.of().record(self.now(), permit, outcome);
    }

    /// Records the outcome of a request of which the service says which `limits` throttled it: see
    /// [`SendSet::record_by`].
    pub fn record_by(&self, permit: &SetPermit<N>, outcome: Outcome, limits: &[usize]) {
        self.of().record_by(self.now(), permit, outcome, limits);
    }

    /// Corrects what a request took to its true `costs`: see [`SendSet::settle`].
    ///
    /// # Errors
    ///
    /// As [`SendSet::settle`].
    pub fn settle(&self, permit: SetPermit<N>, costs: &[u32]) -> Result<(), SetError> {
        self.of().settle(self.now(), permit, costs)
    }

    /// Asks for the weight of each limit at once: as many as the set has rates.
    pub fn tokens(
        &self,
        weights: impl AsRef<[u32]>,
    ) -> AcquireRequest<SendSet<&SendRate, N>, &C, &Z, Checked<N>> {
        self.by(self.of().by_ref()).into_tokens(weights)
    }

    /// As [`tokens`](Self::tokens), and owns what it takes: with `Arc`s for the rates, the future
    /// of a clone is `'static`.
    pub fn into_tokens(
        self,
        weights: impl AsRef<[u32]>,
    ) -> AcquireRequest<SendSet<R, N>, C, Z, Checked<N>> {
        let weights = self.of().checked(weights.as_ref());
        AcquireRequest::new(self, weights)
    }
}

/// The weights of a request, if they fit its set.
type Checked<const N: usize> = Result<[u32; N], SetError>;

/// The forms of a request for the tokens of a set.
impl<R, C, Z, const N: usize> AcquireRequest<SendSet<R, N>, C, Z, Checked<N>>
where
    R: Deref<Target = SendRate> + Clone,
    C: Clock,
{
    /// Takes the tokens if they are there. The deadline is now.
    ///
    /// # Errors
    ///
    /// As [`SendSet::try_acquire`].
    pub fn try_acquire(self) -> Result<SetPermit<N>, SetError> {
        let weights = self.weight?;
        let set = self.limiter.of();
        set.take(self.limiter.now(), &weights, self.class)
    }

    /// Takes its places and leaves the waiting to the caller. The deadline holds for this call
    /// only.
    ///
    /// # Errors
    ///
    /// [`SetError`] if the tokens cannot come in time, with the limit that they would come last of,
    /// or if there is no such request.
    pub fn reserve(self) -> Result<SetPlaces<R, C, N>, SetError> {
        self.take_places().map(|(places, _)| SetPlaces(places))
    }

    /// Waits for the tokens on this thread, which parks meanwhile. An
    /// [`Interrupt`](super::Interrupt) counts as a deadline that is now.
    ///
    /// # Errors
    ///
    /// As [`reserve`](Self::reserve).
    pub fn acquire_blocking(self) -> Result<SetPermit<N>, SetError> {
        let (mut places, _) = self.take_places()?;
        let acquired = blocking::block(&mut places);
        acquired.map_err(|wait| refused(&mut places, wait))
    }

    /// Waits for the tokens in a task. The future is `Send` where its parts are, and may be dropped
    /// at any time: its places go back.
    ///
    /// # Errors
    ///
    /// As [`reserve`](Self::reserve).
    pub async fn acquire(self) -> Result<SetPermit<N>, SetError>
    where
        Z: Sleep,
    {
        let (mut places, sleep) = self.take_places()?;
        let mut waiter = Waiter::new(sleep);
        let acquired = poll_fn(|cx| waiter.poll_place(&mut places, cx)).await;
        acquired.map_err(|wait| refused(&mut places, wait))
    }

    fn take_places(self) -> Result<(Waiting<SetGuard<R, N>, C>, Z), SetError> {
        let weights = self.weight?;
        let (set, clock, sleep) = self.limiter.into_parts();
        let now = clock.now();
        let deadline = self.deadline.of(now);
        let patience = deadline.map(|deadline| deadline.saturating_since(now));
        let held = SetGuard::take(&set, now, &weights, self.class, patience)?;
        Ok((Waiting::new(held, clock, deadline), sleep))
    }
}

/// Returns the error of a request whose turn has moved past its deadline.
fn refused<R: Deref<Target = SendRate>, C: Clock, const N: usize>(
    places: &mut Waiting<SetGuard<R, N>, C>,
    why: AcquireError,
) -> SetError {
    let limit = places.held().latest().map_or(0, |(limit, _)| limit);
    match why {
        AcquireError::NotInTime { wait } => SetError::NotInTime(Binding { limit, wait }),
        AcquireError::Weight(error) => SetError::Weight { limit, error },
    }
}

/// A place in the line of each rate of a set, for callers that do the waiting themselves. From
/// [`AcquireRequest::reserve`].
///
/// It has a clock, so that dropping it wakes the waiters behind it at once. A
/// [`SetReservation`](crate::set::SetReservation) is the same without a clock.
#[must_use = "places that are dropped are given up"]
pub struct SetPlaces<R: Deref<Target = SendRate>, C: Clock, const N: usize>(
    Waiting<SetGuard<R, N>, C>,
);

impl<R: Deref<Target = SendRate>, C: Clock, const N: usize> SetPlaces<R, C, N> {
    /// Takes the tokens if all turns have come. Once they have, returns the same permit ever after.
    ///
    /// # Errors
    ///
    /// The limit whose turn comes last, and the time until then at today's rate.
    pub fn claim(&mut self) -> Result<SetPermit<N>, Binding> {
        self.0.claim().map_err(|wait| {
            let limit = self.0.held().latest().map_or(0, |(limit, _)| limit);
            Binding { limit, wait }
        })
    }
}

impl<R: Deref<Target = SendRate>, C: Clock, const N: usize> fmt::Debug for SetPlaces<R, C, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetPlaces")
            .field("deadline", &self.0.deadline())
            .finish_non_exhaustive()
    }
}
