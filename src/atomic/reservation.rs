//! A place in line.

use core::{ops::Deref, time::Duration};

use super::permit::SendPermit;
use super::send_rate::SendRate;
#[cfg(feature = "std")]
use super::weight::AcquireError;
use crate::Timestamp;
use crate::line::Place;

/// What a reservation holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    /// No place: the limiter limited nothing when it was asked.
    Unlimited,
    /// A place in line.
    Placed(Place),
    /// The place has been used.
    Claimed(SendPermit),
}

/// A place in line for a [`SendRate`].
///
/// Its turn comes when as many tokens have been minted as there are places before it, and itself, that were not
/// given up. If the rate rises it comes sooner, if it falls later. Dropped unclaimed, its token
/// goes back: those behind it move up by one, nobody ahead of it notices. It has no clock, so that waiters who sleep are
/// woken for that at the next response, or by their own timers.
///
/// Forgotten (`mem::forget`), its token is lost. A place must be claimed or dropped before another 2³⁸
/// tokens have been minted: at 10⁶ tokens/s, within three days.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use paceline::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp};
///
/// let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
/// rate.record(Timestamp::ZERO, SendPermit::sent_at(Timestamp::ZERO), Outcome::Throttled);
///
/// // At 0.5 tokens/s the places are two seconds apart.
/// let mut first = rate.reserve(Timestamp::ZERO);
/// let mut second = rate.reserve(Timestamp::ZERO);
/// assert_eq!(second.claim(Timestamp::ZERO), Err(Duration::from_secs(4)));
/// drop(first);
/// assert_eq!(second.claim(Timestamp::ZERO), Err(Duration::from_secs(2)));
/// assert!(second.claim(Timestamp::from_nanos(2_000_000_000)).is_ok());
/// ```
#[derive(Debug)]
#[must_use = "a reservation that is dropped gives its place up"]
pub struct Reservation<'a>(Held<&'a SendRate>);

impl<'a> Reservation<'a> {
    pub(super) const fn new(rate: &'a SendRate, turn: Turn, weight: u32) -> Self {
        Self(Held::new(rate, turn, weight))
    }

    /// Takes the token if the turn has come. Once it has, returns the same permit ever after.
    ///
    /// # Errors
    ///
    /// If the turn has not come: the time until then at today's rate, never zero. It may shrink, when the rate
    /// rises or somebody ahead gives up, and grow, when the rate falls: ask again when it has passed, or
    /// sooner.
    pub fn claim(&mut self, now: Timestamp) -> Result<SendPermit, Duration> {
        self.0.claim_with(|| now)
    }

    /// As [`claim`](Self::claim), and asks for the time only if the turn has not been claimed yet.
    ///
    /// # Errors
    ///
    /// As [`claim`](Self::claim).
    pub fn claim_with(&mut self, now: impl FnOnce() -> Timestamp) -> Result<SendPermit, Duration> {
        self.0.claim_with(now)
    }

    /// Whether it is no place: the limiter limited nothing when it was asked.
    #[cfg(feature = "std")]
    pub(crate) const fn is_free(&self) -> bool {
        matches!(self.0.turn, Turn::Unlimited)
    }

    /// Returns the same place, for those who do more with it.
    #[cfg(feature = "std")]
    pub(crate) fn into_held(self) -> Held<&'a SendRate> {
        self.0
    }
}

/// A place in line, with whatever keeps its limiter in memory. Dropped, it is given up.
#[derive(Debug)]
pub(crate) struct Held<R: Deref<Target = SendRate>> {
    pub(super) rate: R,
    pub(super) turn: Turn,
    weight: u32,
    #[cfg(feature = "wake")]
    pub(super) stand: Option<super::waiters::Stand>,
}

impl<R: Deref<Target = SendRate>> Held<R> {
    const fn new(rate: R, turn: Turn, weight: u32) -> Self {
        Self {
            rate,
            turn,
            weight,
            #[cfg(feature = "wake")]
            stand: None,
        }
    }

    /// Takes a place for `weight` tokens, if its turn comes within `patience`.
    #[cfg(feature = "std")]
    pub(crate) fn take(
        rate: R,
        now: Timestamp,
        weight: u32,
        patience: Option<Duration>,
    ) -> Result<Self, AcquireError> {
        let turn = rate.queue_up(now, weight, patience)?;
        Ok(Self::new(rate, turn, weight))
    }

    /// Takes a place that is claimed already, if the request may go without a look at the clock; or returns `rate`.
    #[cfg(feature = "std")]
    pub(crate) fn take_untimed(rate: R, weight: u32) -> Result<Self, R> {
        match rate.go_untimed() {
            Some(permit) if weight == 1 => Ok(Self::new(rate, Turn::Claimed(permit), weight)),
            _ => Err(rate),
        }
    }

    #[cfg(feature = "std")]
    pub(crate) fn rate(&self) -> &SendRate {
        &self.rate
    }

    /// Takes the tokens if the turn has come, or returns the time until then. Asks for the time only if it has not been
    /// claimed yet.
    pub(crate) fn claim_with(
        &mut self,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<SendPermit, Duration> {
        if let Turn::Claimed(permit) = self.turn {
            return Ok(permit);
        }
        let now = now();
        if let Turn::Unlimited = self.turn {
            self.turn = self.rate.queue_up_anyhow(now, self.weight);
        }
        if let Turn::Placed(place) = self.turn {
            let limited = self.rate.limited();
            if let Some(wait) = limited.and_then(|limited| limited.check(place, now)) {
                return Err(wait);
            }
            self.leave(place);
            self.rate.nudge(now);
        }
        let permit = SendPermit::of_weight(now, self.weight);
        self.turn = Turn::Claimed(permit);
        Ok(permit)
    }

    /// Gives the place up, unless it has been claimed.
    ///
    /// Returns whether there was a place.
    pub(crate) fn give_up(&mut self) -> bool {
        if let Turn::Placed(place) = self.turn {
            self.turn = Turn::Unlimited;
            self.leave(place);
            if let Some(limited) = self.rate.limited() {
                limited.cancellations.cancel(place, self.weight);
            }
            return true;
        }
        false
    }
}

impl<R: Deref<Target = SendRate>> Drop for Held<R> {
    fn drop(&mut self) {
        self.give_up();
    }
}
