//! A place in the line of each member, until the first turn comes.

use core::fmt;
use core::task::Waker;
use core::time::Duration;

use super::PoolPermit;
use crate::Timestamp;
use crate::limit::{InLine, Limit};
use crate::print;

/// A place in the line of one member.
pub(super) struct Place<H> {
    pub(super) index: usize,
    pub(super) held: H,
    /// How fast the line mints, by the last look: see [`InLine::pace`].
    pub(super) pace: [Duration; 3],
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

/// Returns the index of the place whose turn comes first, and a time before which no turn comes at
/// today's rates. Each of `places` has its index, its wait and its pace.
///
/// A request ahead in one line may go by another line, so that the lines together serve the
/// requests ahead as fast as the sum of their rates. Let `w` be the own tokens, `rᵢ` the rate of a
/// line, `tᵢ` the wait in it, and `uᵢ` what it has minted for the waiters ahead. Then `tᵢ·rᵢ + uᵢ`
/// tokens stand there up to the own ones. At least the least of these go before the turn, and all
/// lines together have `Σuᵢ` of them now. So the turn comes after `(min(tᵢ·rᵢ + uᵢ) − Σuᵢ) / Σrᵢ`.
/// Nor does it come before some line has minted the own tokens: after `min(w − uᵢ)/rᵢ`. Where
/// nothing goes in any line for a while, all times count from the first end of that.
pub(super) fn foretold(
    places: impl Iterator<Item = (usize, Duration, [Duration; 3])> + Clone,
) -> (usize, Duration) {
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let closed = places.clone().map(|(.., [.., closed])| nanos(closed)).min();
    let closed = closed.unwrap_or(0);
    // Rates are own weights in a nanosecond, with 88 fraction bits.
    let (mut ahead, mut there, mut rates) = (u128::MAX, 0_u128, 0_u128);
    let (mut least, mut nearest) = (u64::MAX, (u64::MAX, 0));
    for (index, wait, [span, minted, _]) in places {
        let [wait, span, minted] = [wait, span, minted].map(nanos);
        let rate = (1_u128 << 88).wrapping_div(span.max(1).into());
        let of = |nanos: u64| rate.saturating_mul(nanos.into());
        let open = wait.saturating_sub(closed);
        ahead = ahead.min(of(open.saturating_add(minted)));
        there = there.saturating_add(of(minted));
        rates = rates.saturating_add(rate);
        least = least.min(span.saturating_sub(minted));
        nearest = nearest.min((wait, index));
    }
    let lacking = ahead.saturating_sub(there).saturating_add(rates >> 1);
    let wait = lacking.checked_div(rates);
    let wait = wait.map_or(u64::MAX, |wait| u64::try_from(wait).unwrap_or(u64::MAX));
    let wait = wait.max(least).saturating_add(closed).min(nearest.0).max(1);
    (nearest.1, Duration::from_nanos(wait))
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
                Err(wait) => {
                    place.wait = wait;
                    place.pace = place.held.pace(now);
                }
            }
        }
        let places = self.places.iter().flatten();
        let places = places.map(|place| (place.index, place.wait, place.pace));
        let (nearest, wait) = foretold(places);
        self.nearest = nearest;
        Err(wait)
    }

    fn nearest(&self) -> Option<&Place<L::Held>> {
        let mut places = self.places.iter().flatten();
        places.find(|place| place.index == self.nearest)
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

    fn limit_of_member(&self) -> usize {
        self.nearest().map_or(0, |place| place.held.limit())
    }

    fn pace(&self, _: Timestamp) -> [Duration; 3] {
        self.nearest().map(|place| place.pace).unwrap_or_default()
    }
}

impl<L: Limit, const N: usize> fmt::Debug for PoolGuard<L, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print::places(f, self.claimed, self.places.iter().flatten().count())
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
