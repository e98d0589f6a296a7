//! A place in the line of each member, until the first turn comes.

use core::fmt;
use core::task::Waker;
use core::time::Duration;

use super::PoolPermit;
use crate::Timestamp;
use crate::limit::{InLine, Limit};

/// A place in the line of one member.
pub(super) struct Place<H> {
    pub(super) index: usize,
    pub(super) held: H,
    /// The time in which the request's tokens are minted.
    pub(super) span: Duration,
    /// The time until the turn, by the last look.
    pub(super) wait: Duration,
}

/// A place in the line of each chosen member of a pool, in the order of the choice.
///
/// A guard that is dropped before a turn is claimed gives up all places.
pub struct PoolGuard<L: Limit, const N: usize> {
    pub(super) places: [Option<Place<L::Held>>; N],
    pub(super) claimed: Option<PoolPermit<L::Permit>>,
    /// The member whose turn came first, by the last look.
    pub(super) nearest: usize,
}

/// Returns the index of the place whose turn comes first, and the least time until any turn comes.
/// Each of `places` has its index, its wait and its span.
///
/// A request ahead in one line may go by another line, so the lines together are as fast as the sum
/// of their rates. When the turn comes, each line but one has minted a part of a token that serves
/// no request. No line brings a turn sooner than it mints the request's own tokens.
pub(super) fn foretold(
    places: impl Iterator<Item = (usize, Duration, Duration)>,
) -> (usize, Duration) {
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX).max(1);
    let (mut turns, mut tokens) = (Together::default(), Together::default());
    let (mut parts, mut least, mut nearest) = (0_u64, u64::MAX, (Duration::MAX, 0));
    for (index, wait, span) in places {
        turns.add(nanos(wait));
        tokens.add(nanos(span));
        least = least.min(nanos(wait).min(nanos(span)));
        nearest = nearest.min((wait, index));
        parts = parts.saturating_add(1);
    }
    let parts = tokens.nanos().saturating_mul(parts.saturating_sub(1));
    let wait = turns.nanos().saturating_sub(parts).max(least);
    (nearest.1, Duration::from_nanos(wait))
}

/// A frequency, summed over all lines: events in a nanosecond, with 127 fraction bits.
#[derive(Default)]
struct Together(u128);

impl Together {
    const ONE: u128 = 1 << 127;

    /// Adds a line with an event every `nanos` nanoseconds.
    fn add(&mut self, nanos: u64) {
        let rate = Self::ONE.checked_div(nanos.into());
        self.0 = self.0.saturating_add(rate.unwrap_or(Self::ONE));
    }

    /// Returns the nanoseconds from one event to the next.
    fn nanos(&self) -> u64 {
        let nanos = Self::ONE.checked_div(self.0);
        nanos.map_or(u64::MAX, |nanos| u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl<L: Limit, const N: usize> PoolGuard<L, N> {
    /// Claims the first turn that has come, and gives the other places back.
    ///
    /// # Errors
    ///
    /// The time until the first turn, as [`foretold`] computes it.
    pub(super) fn claim(&mut self, now: Timestamp) -> Result<PoolPermit<L::Permit>, Duration> {
        for place in self.places.iter_mut().flatten() {
            match place.held.claim_with(|| now) {
                Ok(permit) => {
                    let claimed = PoolPermit::new(place.index, permit);
                    self.claimed = Some(claimed);
                    // The claimed place has nothing to give back.
                    self.give_up(now);
                    return Ok(claimed);
                }
                Err(wait) => place.wait = wait,
            }
        }
        let places = self.places.iter().flatten();
        let places = places.map(|place| (place.index, place.wait, place.span));
        let (nearest, wait) = foretold(places);
        self.nearest = nearest;
        Err(wait)
    }

    fn give_up(&mut self, now: Timestamp) {
        for place in &mut self.places {
            if let Some(mut place) = place.take() {
                place.held.leave(|| now);
            }
        }
    }
}

impl<L: Limit, const N: usize> InLine for PoolGuard<L, N> {
    type Permit = PoolPermit<L::Permit>;

    fn claim_with(&mut self, now: impl FnOnce() -> Timestamp) -> Result<Self::Permit, Duration> {
        match self.claimed {
            Some(claimed) => Ok(claimed),
            None => self.claim(now()),
        }
    }

    // The waker stands in every line, because it is not known which turn comes first.
    fn stand(&mut self, now: Timestamp, _: Duration, waker: &Waker) -> Option<Duration> {
        let mut next = Duration::MAX;
        for Place { held, wait, .. } in self.places.iter_mut().flatten() {
            next = next.min(held.stand(now, *wait, waker)?);
        }
        Some(next)
    }

    fn leave(&mut self, now: impl FnOnce() -> Timestamp) {
        if self.places.iter().any(Option::is_some) {
            self.give_up(now());
        }
    }

    fn limit(&self) -> usize {
        self.nearest
    }
}

impl<L: Limit, const N: usize> fmt::Debug for PoolGuard<L, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = self.places.iter().flatten().count();
        match self.claimed {
            Some(permit) => write!(f, "claimed: {permit:?}"),
            None => write!(f, "{places} places"),
        }
    }
}

/// A place in the line of each member of a [`SendPool`](crate::SendPool), from
/// [`SendPool::reserve`](crate::SendPool::reserve).
///
/// A reservation that is dropped before it is claimed gives all places back, and the requests
/// behind move up. A reservation has no clock. So a sleeping waiter is woken for this at the next
/// response, or by its own timer. The tokens of a forgotten reservation (`mem::forget`) are lost,
/// as with [`Reservation`](crate::Reservation).
#[must_use = "a reservation that is dropped gives its places up"]
pub struct PoolReservation<L: Limit, const N: usize>(pub(super) PoolGuard<L, N>);

impl<L: Limit, const N: usize> PoolReservation<L, N> {
    /// Takes the tokens of the first member whose turn has come, and gives the other places back.
    /// Every later call returns the same permit.
    ///
    /// # Errors
    ///
    /// The least time until the first turn, at today's rates of all members together. Never zero.
    /// It may change, because the requests ahead may go by any member. Ask again when the time has
    /// passed, or sooner.
    pub fn claim(&mut self, now: Timestamp) -> Result<PoolPermit<L::Permit>, Duration> {
        self.0.claim_with(|| now)
    }
}

/// The held places, in one line.
impl<L: Limit, const N: usize> fmt::Debug for PoolReservation<L, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolReservation({:?})", self.0)
    }
}
