//! A place in each of several lines.

use core::fmt;
use core::ops::Deref;
use core::time::Duration;

use super::{Binding, SendSet, SetError, SetPermit};
use crate::atomic::PlaceGuard;
use crate::print;
use crate::{Class, SendRate, Timestamp};

/// A place may always be taken this early, since timers are only exact to a millisecond.
const LEAST: Duration = Duration::from_millis(1);

/// A place in the line of each rate of a set. The guard keeps the rates in memory.
///
/// A guard that is dropped before all places are claimed gives up all of them.
pub struct SetGuard<R: Deref<Target = SendRate>, const N: usize> {
    places: [Option<PlaceGuard<R>>; N],
    /// The request, once all of its places have been claimed.
    claimed: Option<SetPermit<N>>,
    /// The limit that the request waited for longest, by the last look.
    pub(crate) latest: usize,
}

impl<R: Deref<Target = SendRate> + Clone, const N: usize> SetGuard<R, N> {
    /// Takes a place in the line with the longest wait, if all turns come within `patience`. The
    /// other places are taken later, while the request waits. If no limit has a wait, all places
    /// are taken now.
    ///
    /// # Errors
    ///
    /// The limit whose turn does not come within `patience`, or that refuses its weight.
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
                    // Other waiters may already stand behind these places.
                    taken.give_up(|rates| rates.for_each(|rate| rate.wake_due(now)));
                    return Err(set.refusal(now, weights, class, limit, why));
                }
            }
        }
        Ok(taken)
    }
}

impl<R: Deref<Target = SendRate>, const N: usize> SetGuard<R, N> {
    /// Lets the request go once the turn of each place has come and no declared limit holds it
    /// back. Calls `now` only if the request has not gone yet.
    ///
    /// A place that is not the last to come due is taken late, when its turn would come shortly
    /// before the last turn. So a waiter stands in no line for much longer than it has to. The
    /// place is early by at most the time in which its own tokens are minted, and by at most half
    /// of the wait. Without this slack a waiter would look again after the difference of the two
    /// turns: some nanoseconds, where limits bind in proportion. All turns are looked at before
    /// anything is claimed. So a request that waits for one limit takes nothing of another. A claim
    /// can still fail, because another request came first. The places that were claimed before then
    /// go back to their lines.
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
        // Only after all are claimed, because tokens that go back let other requests go.
        self.places
            .iter()
            .flatten()
            .for_each(|place| place.conclude(now));
        Ok(*self.claimed.insert(permit))
    }

    /// Returns how fast the limit mints that the request waits for longest.
    pub(crate) fn pace(&self, now: Timestamp) -> [Duration; 3] {
        let latest = self.places.get(self.latest).and_then(Option::as_ref);
        latest.map(|place| place.pace(now)).unwrap_or_default()
    }

    /// Takes the places that are to be taken now. Returns the limit that the request waits for
    /// longest, with the time after which to look again, or `None` if the request may go.
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
            let is_early = ahead <= place.pace(now)[0] && ahead.saturating_mul(2) <= last;
            if wait.is_some() && (is_early || ahead <= LEAST) {
                place.join(now);
            } else {
                // This place is taken after `ahead`, so that both turns come together.
                latest.wait = latest.wait.min(ahead);
            }
        }
        Some(latest)
    }

    /// Gives all places back, unless the request has gone. If there were places, `wake` gets their
    /// rates.
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
        print::places(f, self.claimed, self.places.iter().flatten().count())
    }
}

/// A place in the line of each rate of a [`SendSet`](crate::SendSet), from
/// [`SendSet::reserve`](crate::SendSet::reserve).
///
/// A reservation that is dropped before it is claimed gives all places back, and the requests
/// behind move up. A reservation has no clock. So a waiter that sleeps is woken for this at the
/// next response, or by its own timer. The tokens of a forgotten reservation (`mem::forget`) are
/// lost, as with [`Reservation`](crate::Reservation).
#[must_use = "a reservation that is dropped gives its places up"]
pub struct SetReservation<'a, const N: usize>(SetGuard<&'a SendRate, N>);

impl<'a, const N: usize> SetReservation<'a, N> {
    pub(super) const fn new(held: SetGuard<&'a SendRate, N>) -> Self {
        Self(held)
    }

    /// Takes the tokens if all turns have come. Every later call returns the same permit.
    ///
    /// Nothing is taken from any limit until the last turn has come. A line with a shorter wait is
    /// joined later.
    ///
    /// # Errors
    ///
    /// The limit whose turn comes last, and the time until this turn at today's rate. The time may
    /// shrink or grow. Ask again when the time has passed, or sooner.
    pub fn claim(&mut self, now: Timestamp) -> Result<SetPermit<N>, Binding> {
        self.0.claim_with(|| now)
    }
}

/// The held places, in one line of text.
impl<const N: usize> fmt::Debug for SetReservation<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SetReservation({:?})", self.0)
    }
}
