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
    /// The time in which its own tokens are minted.
    pub(super) span: Duration,
    /// The time until its turn, by the last look.
    pub(super) wait: Duration,
}

/// A place in the line of each chosen member of a pool, in the order of the choice.
///
/// Dropped before the first is claimed, it gives all of them up.
pub struct PoolGuard<L: Limit, const N: usize> {
    pub(super) places: [Option<Place<L::Held>>; N],
    pub(super) claimed: Option<PoolPermit<L::Permit>>,
    /// The member whose turn came first, by the last look.
    pub(super) nearest: usize,
}

/// A turn in each nanosecond, with 127 fraction bits.
const ONE: u128 = 1 << 127;

/// Returns which of `places` comes first, each with its wait and its span, and how long it takes
/// until one of them does.
///
/// A request ahead in one line may go by another line, so the lines together are as fast as their
/// rates are together. No line brings a turn sooner than it mints the request's own tokens.
pub(super) fn foretold(
    places: impl Iterator<Item = (usize, Duration, Duration)>,
) -> (usize, Duration) {
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX).max(1);
    let (mut rates, mut least, mut nearest) = (0_u128, u64::MAX, (Duration::MAX, 0));
    for (index, wait, span) in places {
        let turn = nanos(wait);
        rates = rates.saturating_add(ONE.checked_div(turn.into()).unwrap_or(ONE));
        least = least.min(turn.min(nanos(span)));
        nearest = nearest.min((wait, index));
    }
    let together = ONE.checked_div(rates).unwrap_or(ONE);
    let together = u64::try_from(together).unwrap_or(u64::MAX);
    (nearest.1, Duration::from_nanos(together.max(least)))
}

impl<L: Limit, const N: usize> PoolGuard<L, N> {
    /// Claims the first turn that has come, and gives the other places back.
    ///
    /// # Errors
    ///
    /// How long it is until then, as [`foretold`] has it.
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

    // In every line: which turn comes first is not known before it has come.
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
/// Dropped before it is claimed it gives all of them back: those behind move up. It has no clock, so
/// that waiters who sleep are woken for that at the next response, or by their own timers. As with
/// [`Reservation`](crate::Reservation), what is forgotten (`mem::forget`) is lost.
#[must_use = "a reservation that is dropped gives its places up"]
pub struct PoolReservation<L: Limit, const N: usize>(pub(super) PoolGuard<L, N>);

impl<L: Limit, const N: usize> PoolReservation<L, N> {
    /// Takes the tokens of the first member whose turn has come, and gives the other places back.
    /// Once it has, returns the same permit ever after.
    ///
    /// # Errors
    ///
    /// The time until the first turn, never zero, at today's rates of all members together. Other
    /// requests ahead may take any member: ask again when it has passed, or sooner.
    pub fn claim(&mut self, now: Timestamp) -> Result<PoolPermit<L::Permit>, Duration> {
        self.0.claim_with(|| now)
    }
}

/// What it holds, in one line.
impl<L: Limit, const N: usize> fmt::Debug for PoolReservation<L, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolReservation({:?})", self.0)
    }
}
