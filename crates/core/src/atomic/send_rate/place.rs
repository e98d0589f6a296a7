//! A place in line: its states, and how it is claimed and given up.

use core::fmt;
use core::ops::Deref;
use core::task::Waker;
use core::time::Duration;

use super::SendRate;
use super::acquire::Engaged;
use super::ask::{Ask, Background, Turn};
use super::limits::Phase;
use super::permit::{AcquireError, Class, SendPermit, WeightError};

use crate::Timestamp;

/// A place in line for a [`SendRate`].
///
/// Its turn comes once there is a token for it and for every place still ahead of it. If the rate
/// rises, the turn comes sooner; if it falls, later. Dropped unclaimed, its token goes back: places
/// behind it move up by one, places ahead do not change. A reservation has no clock. So waiters
/// that move up are woken by the next response, or by their own timers.
///
/// Forgotten (`mem::forget`), its token is lost. A place must be claimed or dropped before another
/// 2³⁸ tokens have been minted: at 10⁶ tokens/s, within three days.
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
#[must_use = "a reservation that is dropped gives its place up"]
pub struct Reservation<'a>(PlaceGuard<&'a SendRate>);

impl<'a> Reservation<'a> {
    /// Takes a place for one token. A place that the line has no room for is asked for again when
    /// it is claimed.
    pub(super) fn take_one(ask: Ask<'a>) -> Self {
        let turn = ask.queue_up_anyhow().unwrap_or(Turn::Unlimited);
        Self(PlaceGuard::new(ask.rate, turn, 1, ask.class))
    }

    /// Takes a place, whenever its turn comes.
    pub(super) fn take(ask: Ask<'a>) -> Result<Self, WeightError> {
        match PlaceGuard::take(ask.rate, ask.now, ask.weight, ask.class, None) {
            Err(AcquireError::Weight(error)) => Err(error),
            Ok(held) => Ok(Self(held)),
            // Not without a deadline.
            Err(AcquireError::NotInTime { .. }) => Ok(Self::take_one(ask)),
        }
    }

    /// Takes the token if the turn has come. Once it has, returns the same permit ever after.
    ///
    /// # Errors
    ///
    /// If the turn has not come: the time until then at today's rate, never zero. It may shrink,
    /// when the rate rises or a place ahead is given up, and grow, when the rate falls: ask again
    /// when it has passed, or sooner.
    pub fn claim(&mut self, now: Timestamp) -> Result<SendPermit, Duration> {
        self.0.claim_with(|| now)
    }
}

impl fmt::Debug for Reservation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl SendRate {
    /// Takes a place in line: first come, first served.
    ///
    /// While the limiter limits nothing there is no line: the reservation looks again when it is
    /// claimed.
    pub fn reserve(&self, now: Timestamp) -> Reservation<'_> {
        Reservation::take_one(self.ask(now, 1, Class::Foreground))
    }

    /// Takes a place in line for `weight` tokens at once.
    ///
    /// It holds up those behind it for as long as that many tokens take, and gives them all back if
    /// it is dropped. It may be for more than the bucket holds at today's rate. While the limiter
    /// limits nothing, the place is taken when it is claimed, and its weight is not checked any
    /// more.
    ///
    /// # Errors
    ///
    /// [`WeightError::Zero`], and [`WeightError::AboveCapacity`] if the bucket does not hold as
    /// many at the [ceiling](crate::law::PacedSettingsBuilder::ceiling), or a service has declared
    /// less.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use paceline::{SendRate, Timestamp, law::PacedSettings};
    ///
    /// let second = Duration::from_secs(1);
    /// let settings = PacedSettings::fixed(5, second)?.to_builder().burst(second).build()?;
    /// let (rate, now) = (SendRate::paced(settings, Timestamp::ZERO), Timestamp::ZERO);
    /// let mut first = rate.reserve_n(now, 5).unwrap();
    /// assert!(first.claim(now).is_ok(), "the bucket was full");
    /// let second = rate.reserve_n(now, 4).unwrap();
    /// let mut third = rate.reserve_n(now, 2).unwrap();
    /// assert_eq!(third.claim(now), Err(Duration::from_millis(1_200)));
    /// drop(second);
    /// assert_eq!(third.claim(now), Err(Duration::from_millis(400)));
    /// # Ok::<(), paceline::law::PacedSettingsError>(())
    /// ```
    pub fn reserve_n(&self, now: Timestamp, weight: u32) -> Result<Reservation<'_>, WeightError> {
        Reservation::take(self.ask(now, weight, Class::Foreground))
    }
}

impl<'a> Background<'a, SendRate> {
    /// Takes a place behind the line: first come, first served among background.
    pub fn reserve(&self, now: Timestamp) -> Reservation<'a> {
        Reservation::take_one(self.of().ask(now, 1, Class::Background))
    }

    /// Takes a place behind the line for `weight` tokens at once.
    ///
    /// The calls that claim it save them up: what the bucket cannot hold between two looks is lost.
    /// So claim a heavy place every 50 ms, as a `SendLimiter` does, not only
    /// after the wait. Dropped, what was saved up for it goes back with the next response, or the
    /// next look of background.
    ///
    /// # Errors
    ///
    /// As [`SendRate::reserve_n`].
    pub fn reserve_n(&self, now: Timestamp, weight: u32) -> Result<Reservation<'a>, WeightError> {
        Reservation::take(self.of().ask(now, weight, Class::Background))
    }
}

/// A place in line, with whatever keeps its limiter in memory. Dropped, it is given up.
pub struct PlaceGuard<R: Deref<Target = SendRate>> {
    pub(super) rate: R,
    pub(super) turn: Turn,
    pub(super) weight: u32,
    pub(super) class: Class,
}

impl<R: Deref<Target = SendRate>> PlaceGuard<R> {
    const fn new(rate: R, turn: Turn, weight: u32, class: Class) -> Self {
        Self {
            rate,
            turn,
            weight,
            class,
        }
    }

    /// Takes a place for `weight` tokens, if its turn comes within `patience`.
    ///
    /// # Errors
    ///
    /// If it does not, or there is no such weight.
    pub fn take(
        rate: R,
        now: Timestamp,
        weight: u32,
        class: Class,
        patience: Option<Duration>,
    ) -> Result<Self, AcquireError> {
        let is_unbound = |engaged: Engaged<'_>| engaged.reports().phase() == Phase::Unbound;
        // A place taken now would be good whatever is declared before its claim.
        let turn = if weight > 0 && rate.words().is_some_and(is_unbound) {
            Turn::Unlimited
        } else {
            rate.ask(now, weight, class).queue_up(patience)?
        };
        Ok(Self::new(rate, turn, weight, class))
    }

    /// Takes a place that is claimed already, if the request may go without a look at the clock; or
    /// returns `rate`.
    pub(crate) fn take_untimed(rate: R, weight: u32) -> Result<Self, R> {
        if weight != 1 || !rate.is_untimed() {
            return Err(rate);
        }
        let turn = Turn::Claimed(SendPermit::NO_TIME, None);
        Ok(Self::new(rate, turn, weight, Class::Foreground))
    }

    /// Returns whose place it is.
    pub(crate) fn rate(&self) -> &SendRate {
        &self.rate
    }

    /// Takes no place yet: [`join`](Self::join) does, or the claim. Refuses a weight that there is
    /// no place for, and a wait of more than `patience`.
    pub(crate) fn later(
        rate: R,
        now: Timestamp,
        weight: u32,
        class: Class,
        patience: Option<Duration>,
    ) -> Result<Self, AcquireError> {
        let ask = rate.ask(now, weight, class);
        ask.check()?;
        match ask.wait() {
            Some(wait) if patience.is_some_and(|patience| wait > patience) => {
                Err(AcquireError::NotInTime { wait })
            }
            _ => Ok(Self::new(rate, Turn::Unlimited, weight, class)),
        }
    }

    /// Returns `true` if it stands in line, or need not any more.
    pub(crate) const fn is_in_line(&self) -> bool {
        !matches!(self.turn, Turn::Unlimited)
    }

    /// Takes its place, if it has none and there is a line. If the line is full it stays without
    /// one, and asks again.
    pub(crate) fn join(&mut self, now: Timestamp) {
        if let Turn::Unlimited = self.turn {
            if let Ok(turn) = self.ask(now).queue_up_anyhow() {
                self.turn = turn;
            }
        }
    }

    fn ask(&self, now: Timestamp) -> Ask<'_> {
        self.rate.ask(now, self.weight, self.class)
    }

    /// Returns the time until it may be claimed, or would be if it took its place now; `None` if it
    /// may be.
    pub(crate) fn wait(&mut self, now: Timestamp) -> Option<Duration> {
        match (self.turn, self.rate.words()) {
            (Turn::Claimed(..), _) | (_, None) => None,
            (Turn::Unlimited, _) => self.ask(now).wait(),
            (_, Some(engaged)) => {
                let elapsed = engaged.law.elapsed(now);
                let nanos = self.nanos_until(engaged, elapsed);
                let barred = || engaged.reports().may_go(elapsed, self.weight).err();
                let nanos = nanos.or_else(|| {
                    barred()?;
                    // Time may have lifted it.
                    engaged.adaptation().catch_up(elapsed);
                    barred()
                });
                nanos.map(|nanos| engaged.wait(now, nanos))
            }
        }
    }

    /// Returns how fast its line mints: see [`Ask::pace`].
    pub(crate) fn pace(&self, now: Timestamp) -> [Duration; 3] {
        self.ask(now).pace()
    }

    /// Puts a place that was claimed back into the line, where it was. Where there was no line, it
    /// has none again.
    pub(crate) fn unclaim(&mut self) {
        let Turn::Claimed(permit, place) = self.turn else {
            return;
        };
        self.turn = match (place, self.rate.words()) {
            (Some((place, over)), Some(engaged)) => {
                engaged.reports().unsend(permit);
                if self.class.is_background() {
                    engaged.second_line().behind.unclaim(self.weight, over);
                    Turn::Behind { place, slot: None }
                } else {
                    engaged.line().open(self.weight);
                    Turn::Placed { place, slot: None }
                }
            }
            _ => Turn::Unlimited,
        };
    }

    /// Takes the tokens if the turn has come, or returns the time until then. Asks for the time
    /// only if it has not been claimed yet.
    pub(crate) fn claim_with(
        &mut self,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<SendPermit, Duration> {
        if let Turn::Claimed(permit, _) = self.turn {
            return Ok(permit);
        }
        let now = now();
        let permit = self.claim(now)?;
        self.conclude(now);
        Ok(permit)
    }

    /// Takes the tokens if the turn has come. [`conclude`](Self::conclude) makes that final, and
    /// [`unclaim`](Self::unclaim) undoes it.
    pub(crate) fn claim(&mut self, now: Timestamp) -> Result<SendPermit, Duration> {
        if let Turn::Unlimited = self.turn {
            self.turn = self.ask(now).queue_up_anyhow()?;
        }
        let (turn, weight) = (self.turn, self.weight);
        let mut permit = SendPermit::of_weight(now, weight);
        let mut used = None;
        if let (Turn::Placed { place, slot } | Turn::Behind { place, slot }, Some(engaged)) =
            (turn, self.rate.words())
        {
            let elapsed = engaged.law.elapsed(now);
            let sent = match self.nanos_until(engaged, elapsed) {
                Some(nanos) => Err(nanos),
                None => engaged.reports().sent(elapsed, weight, true),
            };
            let order = sent.map_err(|nanos| engaged.wait(now, nanos))?;
            permit = SendPermit::with_order(now, weight, order);
            // What its turn did not wait for goes back once the claim is final.
            let over = if let Turn::Behind { .. } = turn {
                engaged.second_line().claim(place, weight, slot)
            } else {
                engaged.line().close(weight);
                engaged.line().waiters.leave(slot);
                Some(engaged.reports().over(weight))
            };
            used = over.map(|over| (place, over));
        }
        self.turn = Turn::Claimed(permit, used);
        Ok(permit)
    }

    /// Gives back what the claimed place took beyond what its turn waited for, and wakes the
    /// waiters whose turn that brings.
    pub(crate) fn conclude(&self, now: Timestamp) {
        if let (Turn::Claimed(_, Some((_, over))), Some(engaged)) = (self.turn, self.rate.words()) {
            if over > 0 && self.class.is_background() {
                engaged.second_line().behind.waiters.write_off(over);
            } else if over > 0 {
                engaged.line().give_back(over);
            }
            engaged.waking().due(engaged.law.elapsed(now));
        }
    }

    /// Returns the nanoseconds until the turn of its place, `None` if it has come or there is none.
    fn nanos_until(&self, engaged: Engaged<'_>, elapsed: u64) -> Option<u64> {
        let place = match self.turn {
            Turn::Placed { place, .. } => place,
            Turn::Behind { place, .. } => {
                let second = engaged.second_line();
                return second.nanos_until(place, self.weight, elapsed);
            }
            Turn::Unlimited | Turn::Claimed(..) => return None,
        };
        let last = place.less_tokens(engaged.reports().over(self.weight));
        let wait = engaged.nanos_until(last, elapsed)?;
        if engaged.reports().goes_first(Some(last), elapsed) {
            return engaged.nanos_until(last, elapsed);
        }
        Some(wait)
    }

    /// Gives the place up, unless it has been claimed.
    ///
    /// Returns whether there was a place.
    pub(crate) fn give_up(&mut self) -> bool {
        let turn = self.turn;
        let (Turn::Placed { place, slot } | Turn::Behind { place, slot }) = turn else {
            return false;
        };
        self.turn = Turn::Unlimited;
        match (turn, self.rate.words()) {
            (_, None) => {}
            (Turn::Behind { .. }, Some(engaged)) => {
                let second = engaged.second_line();
                second.behind.give_up(place, self.weight, slot);
            }
            (_, Some(engaged)) => {
                engaged.give_up(place, self.weight, slot);
            }
        }
        true
    }
}

impl<R: Deref<Target = SendRate>> PlaceGuard<R> {
    /// Lets `waker` be woken when the turn comes sooner than in `wait`, and returns when to look
    /// again, by the waiter's own timer. `None` if there are too many waiters
    /// already.
    ///
    /// The line may have moved meanwhile: the caller looks at it once more.
    pub(crate) fn stand(
        &mut self,
        now: Timestamp,
        wait: Duration,
        waker: &Waker,
    ) -> Option<Duration> {
        let engaged = self.rate.words()?;
        let elapsed = engaged.law.elapsed(now);
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        let (waiters, place, slot) = match &mut self.turn {
            Turn::Placed { place, slot } => (engaged.line().waiters, *place, slot),
            Turn::Behind { place, slot } => (&engaged.second_line().behind.waiters, *place, slot),
            Turn::Unlimited | Turn::Claimed(..) => return None,
        };
        *slot = slot.take().or_else(|| waiters.join(place, self.weight));
        let slot = (*slot)?;
        let sleep = if self.class.is_background() {
            let second = engaged.second_line();
            second.next_look(place, self.weight, elapsed, nanos)
        } else if waiters.is_first(place) {
            engaged.waking().next_look(elapsed, nanos)
        } else {
            nanos
        };
        waiters.stand(slot, elapsed.saturating_add(sleep), waker);
        engaged.line().head.touch();
        Some(Duration::from_nanos(sleep))
    }
}

impl<R: Deref<Target = SendRate>> fmt::Debug for PlaceGuard<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_line = matches!(self.turn, Turn::Placed { .. } | Turn::Behind { .. });
        f.debug_struct("Reservation")
            .field("in_line", &in_line)
            .field("class", &self.class)
            .field("weight", &self.weight)
            .finish_non_exhaustive()
    }
}

impl<R: Deref<Target = SendRate>> Drop for PlaceGuard<R> {
    fn drop(&mut self) {
        self.give_up();
    }
}
