//! A place in each of several lines.

use core::fmt;
use core::ops::Deref;
use core::time::Duration;

use super::{Binding, SendSet, SetError, SetPermit};
use crate::atomic::PlaceGuard;
use crate::{Class, SendRate, Timestamp};

/// A place is taken early by so much in any case: what timers are exact to.
const LEAST: Duration = Duration::from_millis(1);

/// A place in the line of each rate of a set, with what keeps the rates in memory.
///
/// Dropped before all are claimed, it gives all of them up.
pub struct SetGuard<R: Deref<Target = SendRate>, const N: usize> {
    places: [Option<PlaceGuard<R>>; N],
    /// The request, once all of its places have been claimed.
    claimed: Option<SetPermit<N>>,
    /// The limit that it waited for longest when it was last asked.
    pub(crate) latest: usize,
}

impl<R: Deref<Target = SendRate> + Clone, const N: usize> SetGuard<R, N> {
    /// Takes a place for each of `weights` that has to wait as long as any other, if all turns come
    /// within `patience`. The others are taken later, while the request waits.
    ///
    /// # Errors
    ///
    /// With the limit that refuses: its turn does not come within `patience`, or it has no such
    /// weight.
    pub fn take(
        set: &SendSet<R, N>,
        now: Timestamp,
        weights: &[u32; N],
        class: Class,
        patience: Option<Duration>,
    ) -> Result<Self, SetError> {
        let mut taken = Self {
            places: [const { None }; N],
            claimed: None,
            latest: 0,
        };
        let longest = set.binding(now, weights, class);
        let all = set.rates.iter().zip(weights).zip(&mut taken.places);
        for (limit, ((rate, weight), place)) in all.enumerate() {
            let Some(rate) = rate.as_ref().filter(|_| *weight > 0) else {
                continue;
            };
            let waits = longest.is_none_or(|longest| longest.limit == limit);
            let held = if waits {
                PlaceGuard::take(rate.clone(), now, *weight, class, patience)
            } else {
                PlaceGuard::later(rate.clone(), now, *weight, class, patience)
            };
            match held {
                Ok(held) => *place = Some(held),
                Err(why) => {
                    // Waiters behind these places may have seen them.
                    taken.give_up(|rates| rates.for_each(|rate| rate.wake_due(now)));
                    return Err(set.refusal(now, weights, class, limit, why));
                }
            }
        }
        Ok(taken)
    }
}

impl<R: Deref<Target = SendRate>, const N: usize> SetGuard<R, N> {
    /// Sends the request once the turn of each place has come, and no declared limit bars it. Asks
    /// for the time only if the request has not been let go yet.
    ///
    /// A place that is not the last to come due is taken when the time until that one is about as
    /// long as its own line: a waiter stands in no line for much longer than it has to. It is taken
    /// early by the time in which its own tokens are minted, at most, and by half of the wait. If the
    /// place had to come due with the last one, a waiter would look each time when the difference of
    /// the two turns has passed: some nanoseconds, where limits bind in proportion. All is looked at
    /// before anything is claimed, so that a request which waits for one limit takes nothing of
    /// another. If a claim fails all the same, because another request came first, those before it
    /// go back to their places.
    pub(crate) fn claim_with(
        &mut self,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<SetPermit<N>, Binding> {
        if let Some(permit) = self.claimed {
            return Ok(permit);
        }
        let now = now();
        if let Some(latest) = self.look(now) {
            return Err(latest);
        }
        let mut permit = SetPermit::NOTHING;
        for limit in 0..N {
            let Some(place) = &mut self.places[limit] else {
                continue;
            };
            match place.claim(now) {
                Ok(claimed) => permit.put(limit, claimed),
                Err(wait) => {
                    for place in self.places.iter_mut().flatten() {
                        place.unclaim();
                    }
                    self.latest = limit;
                    return Err(Binding { limit, wait });
                }
            }
        }
        // Not before all are claimed: what goes back lets others go.
        self.places
            .iter()
            .flatten()
            .for_each(|place| place.conclude(now));
        Ok(*self.claimed.insert(permit))
    }

    /// Takes the places whose time has come to be taken, and returns the limit that the request
    /// waits for longest, with the time after which to look again; `None` if it may go.
    fn look(&mut self, now: Timestamp) -> Option<Binding> {
        let mut waits = [None; N];
        let mut latest: Option<Binding> = None;
        for (limit, (place, wait)) in self.places.iter_mut().zip(&mut waits).enumerate() {
            *wait = place.as_mut().and_then(|place| place.wait(now));
            let this = wait.map(|wait| Binding { limit, wait });
            latest = match (latest, this) {
                (Some(latest), Some(this)) => Some(latest.later(this)),
                (one, other) => one.or(other),
            };
        }
        let mut latest = latest?;
        self.latest = latest.limit;
        let last = latest.wait;
        for (place, wait) in self.places.iter_mut().zip(waits) {
            let Some(place) = place.as_mut().filter(|place| !place.is_in_line()) else {
                continue;
            };
            let ahead = last.saturating_sub(wait.unwrap_or(Duration::ZERO));
            let is_early = ahead <= place.span(now) && ahead.saturating_mul(2) <= last;
            if wait.is_some() && (is_early || ahead <= LEAST) {
                place.join(now);
            } else {
                // It is taken then, so that both turns come together.
                latest.wait = latest.wait.min(ahead);
            }
        }
        Some(latest)
    }

    /// Gives all places back, unless the request has been let go. If there are any, `wake` gets
    /// their rates.
    pub(crate) fn give_up(&mut self, wake: impl FnOnce(&mut dyn Iterator<Item = &SendRate>)) {
        if self.claimed.is_some() {
            return;
        }
        for place in self.places.iter_mut().flatten() {
            place.give_up();
        }
        let mut rates = self
            .places
            .iter()
            .flatten()
            .map(PlaceGuard::rate)
            .peekable();
        if rates.peek().is_some() {
            wake(&mut rates);
        }
        self.places = [const { None }; N];
    }
}

impl<R: Deref<Target = SendRate>, const N: usize> SetGuard<R, N> {
    /// Returns the place that the request waits for longest.
    pub(crate) fn latest(&mut self) -> Option<&mut PlaceGuard<R>> {
        self.places.get_mut(self.latest)?.as_mut()
    }
}

impl<R: Deref<Target = SendRate>, const N: usize> Drop for SetGuard<R, N> {
    fn drop(&mut self) {
        self.give_up(|_| {});
    }
}

impl<R: Deref<Target = SendRate>, const N: usize> fmt::Debug for SetGuard<R, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = self.places.iter().flatten().count();
        match self.claimed {
            Some(permit) => write!(f, "claimed: {permit:?}"),
            None => write!(f, "{places} places"),
        }
    }
}

/// A place in the line of each rate of a [`SendSet`](crate::SendSet), from
/// [`SendSet::reserve`](crate::SendSet::reserve).
///
/// Dropped before it is claimed it gives all of them back: those behind move up. It has no clock,
/// so that waiters who sleep are woken for that at the next response, or by their own timers. As
/// with [`Reservation`](crate::Reservation), what is forgotten (`mem::forget`) is lost.
#[must_use = "a reservation that is dropped gives its places up"]
pub struct SetReservation<'a, const N: usize>(SetGuard<&'a SendRate, N>);

impl<'a, const N: usize> SetReservation<'a, N> {
    pub(super) const fn new(held: SetGuard<&'a SendRate, N>) -> Self {
        Self(held)
    }

    /// Takes the tokens if all turns have come. Once they have, returns the same permit ever after.
    ///
    /// Until the last turn has come nothing is taken from any limit. A line whose turn would come
    /// sooner is joined later.
    ///
    /// # Errors
    ///
    /// The limit whose turn comes last, and the time until then at today's rate. It may shrink or
    /// grow: ask again when it has passed, or sooner.
    pub fn claim(&mut self, now: Timestamp) -> Result<SetPermit<N>, Binding> {
        self.0.claim_with(|| now)
    }
}

/// What it holds, in one line.
impl<const N: usize> fmt::Debug for SetReservation<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SetReservation({:?})", self.0)
    }
}
