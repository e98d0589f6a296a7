//! Places in line, for one token or several, and requests that do not wait for longer than they
//! say.

use core::fmt;
use core::ops::Deref;
use core::time::Duration;

use super::SendRate;
use super::acquire::Engaged;
use super::gate::LONGEST_QUIET;
use super::permit::{AcquireError, Class, Order, SendPermit, WeightError};
use super::waiters::WaiterSlot;
use crate::Timestamp;
use crate::atomic::sync::Ordering::Relaxed;
use crate::fixed::{Rate, to_signed};
use crate::line::{LONGEST_QUEUE, Line, Place, TOKEN, capacity};

impl SendRate {
    /// Takes `weight` tokens at once, or takes nothing and says how long it will be until there are
    /// as many.
    ///
    /// The rate is then one of tokens: a permit counts in [`record`](Self::record) for as many as
    /// it took.
    ///
    /// # Errors
    ///
    /// [`AcquireError::NotInTime`] if there are fewer. [`WeightError::Zero`], and
    /// [`WeightError::AboveCapacity`] if the bucket does not hold as many at today's rate: a [place
    /// in line](Self::reserve_n) saves them up. A limiter that limits nothing lets any other weight
    /// go.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use paceline::{AcquireError, SendRate, Timestamp, WeightError, law::PacedSettings};
    ///
    /// // 5 tokens/s, of which the bucket holds a second's worth.
    /// let second = Duration::from_secs(1);
    /// let settings = PacedSettings::fixed(5, second)?.to_builder().burst(second).build()?;
    /// let (rate, now) = (SendRate::paced(settings, Timestamp::ZERO), Timestamp::ZERO);
    /// assert_eq!(rate.try_acquire_n(now, 4).unwrap().weight(), 4);
    /// let wait = Duration::from_millis(400);
    /// assert_eq!(rate.try_acquire_n(now, 3), Err(AcquireError::NotInTime { wait }));
    /// let never = WeightError::AboveCapacity { weight: 6, capacity: 5 };
    /// assert_eq!(rate.try_acquire_n(now, 6), Err(never.into()));
    /// # Ok::<(), paceline::law::PacedSettingsError>(())
    /// ```
    pub fn try_acquire_n(&self, now: Timestamp, weight: u32) -> Result<SendPermit, AcquireError> {
        let order = self.try_order_n(now, weight)?;
        Ok(SendPermit::with_order(now, weight, order))
    }

    /// As [`try_acquire_n`](Self::try_acquire_n), and leaves it to the caller to make a permit.
    #[inline]
    pub(crate) fn try_order_n(&self, now: Timestamp, weight: u32) -> Result<Order, AcquireError> {
        if weight == 1 {
            return self.try_order(now).map_err(|nanos| {
                let wait = Duration::from_nanos(nanos);
                AcquireError::NotInTime { wait }
            });
        }
        self.try_heavy(now, weight)
    }

    #[inline(never)]
    fn try_heavy(&self, now: Timestamp, weight: u32) -> Result<Order, AcquireError> {
        if let Some(engaged) = self.words().filter(|_| self.listens()) {
            engaged.make_room(weight);
        }
        let turn = self.queue_up(now, weight, Some(Duration::ZERO))?;
        let (Turn::Placed { place, slot }, Some(engaged)) = (turn, self.words()) else {
            return Ok(Order::NONE);
        };
        engaged.close(weight);
        let sent = engaged.reports().send(engaged.elapsed(now), weight);
        let over = engaged.reports().over(weight);
        if sent.is_ok() && over > 0 {
            engaged.give_back(over);
        }
        sent.map_err(|nanos| {
            engaged.give_up(place, weight, slot);
            let wait = engaged.wait(now, nanos);
            AcquireError::NotInTime { wait }
        })
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
        Reservation::take(self, now, weight, Class::Foreground)
    }

    /// Takes a place in line for `weight` tokens, if its turn comes within `patience`.
    ///
    /// None if the limiter limits nothing. A refusal writes nothing: requests that are refused over
    /// and over leave no places given up behind, of which the limiter remembers only so many.
    pub(super) fn queue_up(
        &self,
        now: Timestamp,
        weight: u32,
        patience: Option<Duration>,
    ) -> Result<Turn, AcquireError> {
        if weight == 0 {
            return Err(WeightError::Zero.into());
        }
        let Some(engaged) = self.engaged() else {
            return Ok(Turn::Unlimited);
        };
        let elapsed = engaged.elapsed(now);
        if weight > 1 || patience.is_some() {
            engaged.lending().hand_back(elapsed);
            // Time may have moved the rate, and the capacity with it, since it was last looked at.
            engaged.catch_up(elapsed);
        }
        engaged.reports().check(weight)?;
        if patience == Some(Duration::ZERO) {
            engaged.weigh(elapsed, weight, None)?;
            engaged.reports().goes_first(None, elapsed);
        } else {
            engaged.weigh_to_wait(elapsed, weight)?;
        }
        engaged.queue_up(now, weight, patience)
    }

    /// Returns how long it would be until `weight` tokens came that were asked for now, `None` if
    /// they are there.
    pub(crate) fn wait_for(&self, now: Timestamp, weight: u32) -> Option<Duration> {
        let engaged = self.engaged()?;
        let elapsed = engaged.elapsed(now);
        engaged.lending().hand_back(elapsed);
        engaged.catch_up(elapsed);
        let line = engaged.line_at(elapsed)?;
        let cancelled = engaged.waiters.total();
        let last = line.spilled(elapsed, engaged.issued(), cancelled);
        let less = cancelled.wrapping_add(engaged.reports().over(weight));
        let rank = last.plus(units(weight)).less_tokens(less);
        let wait = engaged.wait_of(&line, elapsed, rank);
        let nanos = wait.max(engaged.reports().barred(elapsed, weight))?;
        Some(engaged.wait(now, nanos))
    }

    /// As [`wait_for`](Self::wait_for), of a request of `class`.
    pub(crate) fn wait_of(&self, now: Timestamp, weight: u32, class: Class) -> Option<Duration> {
        if class.is_background() {
            self.wait_behind(now, weight)
        } else {
            self.wait_for(now, weight)
        }
    }

    /// Refuses a weight that can never be taken at once.
    pub(crate) fn check_now(&self, now: Timestamp, weight: u32) -> Result<(), WeightError> {
        self.check(now, weight)?;
        match self.words() {
            Some(engaged) if weight > 1 && self.listens() => {
                engaged.make_room(weight);
                engaged.weigh(engaged.elapsed(now), weight, None)
            }
            _ => Ok(()),
        }
    }

    /// Refuses a weight that there is no place for.
    pub(crate) fn check(&self, now: Timestamp, weight: u32) -> Result<(), WeightError> {
        if weight == 0 {
            return Err(WeightError::Zero);
        }
        let Some(engaged) = self.engaged() else {
            return Ok(());
        };
        engaged.reports().check(weight)?;
        engaged.weigh_to_wait(engaged.elapsed(now), weight)
    }

    /// Takes a place in line for `weight` tokens, whatever the capacity is, or none if the limiter
    /// limits nothing.
    ///
    /// If the line is full it returns the time until it is not.
    pub(super) fn queue_up_anyhow(&self, now: Timestamp, weight: u32) -> Result<Turn, Duration> {
        let Some(engaged) = self.engaged() else {
            return Ok(Turn::Unlimited);
        };
        let queued = engaged.queue_up(now, weight, None);
        queued.map_err(|_full| {
            let elapsed = engaged.elapsed(now);
            let first = engaged.last_rank().plus(units(weight)).less(LONGEST_QUEUE);
            let line = engaged.line_at(elapsed);
            let nanos = line.and_then(|line| engaged.wait_of(&line, elapsed, first));
            engaged.wait(now, nanos.unwrap_or(1))
        })
    }
}

impl Engaged<'_> {
    fn queue_up(
        &self,
        now: Timestamp,
        weight: u32,
        patience: Option<Duration>,
    ) -> Result<Turn, AcquireError> {
        let elapsed = self.elapsed(now);
        self.lending().hand_back(elapsed);
        let Some(line) = self.line_at(elapsed) else {
            return Ok(Turn::Unlimited);
        };
        let cancelled = self.waiters.total();
        let minted = line.minted_at(elapsed).to_place();
        let over = self.reports().over(weight);
        let place = self.promise(elapsed, &line, cancelled, weight, |rank| {
            let Some(patience) = patience else {
                return Ok(());
            };
            let reports = self.reports();
            let barred = reports.barred(elapsed, weight);
            let barred = barred.map(|nanos| nanos.min(reports.until_foretold(elapsed)));
            let wait = self.wait_of(&line, elapsed, rank.less_tokens(over));
            let wait = wait.max(barred);
            match wait.map(|nanos| self.wait(now, nanos)) {
                Some(wait) if wait > patience => Err(AcquireError::NotInTime { wait }),
                _ => Ok(()),
            }
        })?;
        self.open(weight);
        // One that is due has no need of a slot.
        let is_due = minted.since(place.less_tokens(cancelled.wrapping_add(over))) >= 0;
        let slot = if is_due {
            None
        } else {
            self.waiters.join(place, weight)
        };
        self.retire(&line, elapsed);
        Ok(Turn::Placed { place, slot })
    }

    /// Promises `weight` tokens behind all that is promised, unless `check` refuses their rank.
    fn promise(
        &self,
        elapsed: u64,
        line: &Line,
        cancelled: u64,
        weight: u32,
        check: impl Fn(Place) -> Result<(), AcquireError>,
    ) -> Result<Place, AcquireError> {
        let minted = line.minted_at(elapsed).to_place();
        let place = self.issue(|issued| {
            let next = line.spilled(elapsed, issued, cancelled).plus(units(weight));
            let rank = next.less_tokens(cancelled);
            if rank.since(minted) > to_signed(LONGEST_QUEUE) {
                let waiting = self.waiting(line, elapsed);
                return Err(WeightError::LineFull { weight, waiting }.into());
            }
            check(rank).map(|()| next)
        })?;
        self.forget_hint();
        Ok(place)
    }

    /// Promises `tokens` behind all that is promised, whenever they come: for background, or
    /// because they have been spent already. `None` if there is no line. Places that are in line
    /// already keep their turns.
    pub(super) fn debit(&self, elapsed: u64, tokens: u32) -> Result<Option<Place>, WeightError> {
        let Some(line) = self.line_at(elapsed) else {
            return Ok(None);
        };
        let cancelled = self.waiters.total();
        match self.promise(elapsed, &line, cancelled, tokens, |_| Ok(())) {
            Err(AcquireError::Weight(error)) => Err(error),
            place => Ok(place.ok()),
        }
    }

    /// Gives `tokens` back, as many of them as fit the bucket.
    pub(super) fn credit(&self, elapsed: u64, tokens: u32) {
        let Some(line) = self.line_at(elapsed) else {
            return;
        };
        self.spill(&line, elapsed);
        let held = line.minted_at(elapsed).to_place().since(self.last_rank());
        let capacity = i64::try_from(line.capacity()).unwrap_or(i64::MAX);
        let room = capacity.saturating_sub(held).max(0).unsigned_abs();
        self.give_back(u64::from(tokens).min(room.div_ceil(TOKEN)));
    }

    /// Notes that a place for `weight` tokens is open.
    pub(super) fn open(&self, weight: u32) {
        // Relaxed, as in `close`: a count, of which nothing is published. It is raised after the
        // place is taken, so that what is written off by it is never more than was
        // promised. Model: `forget::what_is_owed_stays_owed_when_places_have_come_and_gone`.
        self.promised.open.fetch_add(u64::from(weight), Relaxed);
    }

    /// Notes that a place for `weight` tokens is open no longer.
    pub(super) fn close(&self, weight: u32) {
        self.promised.open.fetch_sub(u64::from(weight), Relaxed);
    }

    /// Returns the tokens of the places that are open.
    pub(super) fn open_tokens(&self) -> u64 {
        self.promised.open.load(Relaxed)
    }

    /// Gives `tokens` back that stand before every place there is.
    pub(super) fn give_back(&self, tokens: u64) {
        // Before and after: see `Gate`.
        self.gate.disturb();
        self.waiters.write_off(tokens);
        self.forget_hint();
        self.gate.disturb();
    }

    /// Gives up `place`, which is for `weight` tokens. The last one in line is taken back.
    pub(super) fn give_up(&self, place: Place, weight: u32, slot: Option<WaiterSlot>) {
        self.lending().hand_back_last();
        self.gate.disturb();
        let before = place.less_tokens(u64::from(weight));
        if self.take_back(place, before) {
            self.waiters.leave(slot);
        } else {
            // There is no clock here: by the time of the last change.
            let (_, line) = self.read();
            let minted = line.minted_at(line.since).to_place();
            self.waiters.give_up(slot, place, weight, minted);
        }
        self.forget_hint();
        self.gate.disturb();
    }

    /// Refuses a weight to a request that waits, if the bucket holds less at the highest rate. At a
    /// lower one, and with declared limits, it is saved up for while it stands in line.
    fn weigh_to_wait(&self, elapsed: u64, weight: u32) -> Result<(), WeightError> {
        if weight == 1 || self.law.listens() {
            return Ok(());
        }
        let paced = self.law.get().paced();
        match paced.and_then(|paced| paced.highest()) {
            None => Ok(()),
            highest => self.weigh(elapsed, weight, highest),
        }
    }

    /// Refuses a weight that the bucket never holds `at` a rate: that of today, or the one after
    /// the pause, if none is given.
    fn weigh(&self, elapsed: u64, weight: u32, at: Option<Rate>) -> Result<(), WeightError> {
        // One at any rate.
        if weight == 1 {
            return Ok(());
        }
        let Some(line) = self.line_at(elapsed) else {
            return Ok(());
        };
        let resumed = || {
            let state = self.state.load();
            self.law.get().resumed(state)
        };
        let at = at.or_else(|| line.is_paused().then(resumed));
        let held = at.map_or_else(|| line.capacity(), |rate| capacity(rate, line.burst));
        let held = held.max(line.least);
        let capacity = u32::try_from(held >> TOKEN.trailing_zeros()).unwrap_or(u32::MAX);
        if weight > capacity {
            return Err(WeightError::AboveCapacity { weight, capacity });
        }
        Ok(())
    }
}

/// Returns `weight` tokens in the units of a place.
fn units(weight: u32) -> u64 {
    u64::from(weight).wrapping_mul(TOKEN)
}

/// What a reservation holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    /// No place: the limiter limited nothing when it was asked.
    Unlimited,
    /// A place in line, and the waiter's slot. One that was due at once has none.
    Placed {
        place: Place,
        slot: Option<WaiterSlot>,
    },
    /// A place behind the line, where background stands.
    Behind {
        place: Place,
        slot: Option<WaiterSlot>,
    },
    /// The place has been used, if there was one. What it took beyond what its turn waited for goes
    /// back once the claim is final.
    Claimed(SendPermit, Option<(Place, u64)>),
}

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
    pub(super) const fn new(rate: &'a SendRate, turn: Turn, class: Class) -> Self {
        Self(PlaceGuard::new(rate, turn, 1, class))
    }

    /// Takes a place for `weight` tokens, whenever its turn comes.
    pub(super) fn take(
        rate: &'a SendRate,
        now: Timestamp,
        weight: u32,
        class: Class,
    ) -> Result<Self, WeightError> {
        match PlaceGuard::take(rate, now, weight, class, None) {
            Ok(held) => Ok(Self(held)),
            Err(AcquireError::Weight(error)) => Err(error),
            // Not without a deadline.
            Err(AcquireError::NotInTime { .. }) => Ok(Self::new(rate, Turn::Unlimited, class)),
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
        f.debug_struct("Reservation")
            .field(
                "in_line",
                &matches!(self.0.turn, Turn::Placed { .. } | Turn::Behind { .. }),
            )
            .field("class", &self.0.class)
            .field("weight", &self.0.weight)
            .finish_non_exhaustive()
    }
}

/// A place in line, with whatever keeps its limiter in memory. Dropped, it is given up.
pub(crate) struct PlaceGuard<R: Deref<Target = SendRate>> {
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
    pub(crate) fn take(
        rate: R,
        now: Timestamp,
        weight: u32,
        class: Class,
        patience: Option<Duration>,
    ) -> Result<Self, AcquireError> {
        // Taken now it would be good whatever is declared before it is claimed.
        let turn = if weight > 0
            && rate
                .words()
                .is_some_and(|engaged| engaged.reports().is_unbound())
        {
            Turn::Unlimited
        } else if class.is_background() {
            rate.queue_up_behind(now, weight, patience)?
        } else {
            rate.queue_up(now, weight, patience)?
        };
        Ok(Self::new(rate, turn, weight, class))
    }

    /// Takes a place that is claimed already, if the request may go without a look at the clock; or
    /// returns `rate`.
    #[cfg(feature = "std")]
    pub(crate) fn take_untimed(rate: R, weight: u32) -> Result<Self, R> {
        match rate.go_untimed() {
            Some(permit) if weight == 1 => {
                let turn = Turn::Claimed(permit, None);
                Ok(Self::new(rate, turn, weight, Class::Foreground))
            }
            _ => Err(rate),
        }
    }

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
        rate.check(now, weight)?;
        match rate.wait_of(now, weight, class) {
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
            if let Ok(turn) = self.queue_up(now) {
                self.turn = turn;
            }
        }
    }

    /// Takes a place in the line of its class, or returns the time until that has room.
    fn queue_up(&self, now: Timestamp) -> Result<Turn, Duration> {
        if !self.class.is_background() {
            return self.rate.queue_up_anyhow(now, self.weight);
        }
        let queued = self.rate.queue_up_behind_anyhow(now, self.weight, None);
        queued.map_err(|_full| Duration::from_nanos(LONGEST_QUIET))
    }

    /// Returns the time until it may be claimed, or would be if it took its place now; `None` if it
    /// may be.
    pub(crate) fn wait(&mut self, now: Timestamp) -> Option<Duration> {
        match (self.turn, self.rate.words()) {
            (Turn::Claimed(..), _) | (_, None) => None,
            (Turn::Unlimited, _) => self.rate.wait_of(now, self.weight, self.class),
            (_, Some(engaged)) => {
                let elapsed = engaged.elapsed(now);
                let nanos = self.nanos_until(engaged, elapsed);
                let barred = || engaged.reports().barred(elapsed, self.weight);
                let nanos = nanos.or_else(|| {
                    barred()?;
                    // Time may have lifted it.
                    engaged.catch_up(elapsed);
                    barred()
                });
                nanos.map(|nanos| engaged.wait(now, nanos))
            }
        }
    }

    /// Returns the time in which its tokens are minted, at today's rate.
    pub(crate) fn span(&self, now: Timestamp) -> Duration {
        let engaged = self.rate.engaged();
        let line = engaged.and_then(|engaged| engaged.line_at(engaged.elapsed(now)));
        let token = line.map_or(0, |line| line.rate.nanos_per_token());
        Duration::from_nanos(token).saturating_mul(self.weight)
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
                    engaged.open(self.weight);
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
            self.turn = self.queue_up(now)?;
        }
        let (turn, weight) = (self.turn, self.weight);
        let mut permit = SendPermit::of_weight(now, weight);
        let mut used = None;
        if let (Turn::Placed { place, slot } | Turn::Behind { place, slot }, Some(engaged)) =
            (turn, self.rate.words())
        {
            let elapsed = engaged.elapsed(now);
            let sent = match self.nanos_until(engaged, elapsed) {
                Some(nanos) => Err(nanos),
                None => engaged.reports().send_due(elapsed, weight),
            };
            let order = sent.map_err(|nanos| engaged.wait(now, nanos))?;
            permit = SendPermit::with_order(now, weight, order);
            // What its turn did not wait for goes back once the claim is final.
            let over = if let Turn::Behind { .. } = turn {
                engaged.second_line().claim(place, weight, slot)
            } else {
                engaged.close(weight);
                engaged.waiters.leave(slot);
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
                engaged.give_back(over);
            }
            engaged.wake_due(engaged.elapsed(now));
        }
    }

    /// Returns the nanoseconds until the turn of its place, `None` if it has come or there is none.
    fn nanos_until(&self, engaged: Engaged<'_>, elapsed: u64) -> Option<u64> {
        let place = match self.turn {
            Turn::Placed { place, .. } => place,
            Turn::Behind { place, .. } => {
                return engaged
                    .second_line()
                    .nanos_until(place, self.weight, elapsed);
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
                engaged.close(self.weight);
                engaged.give_up(place, self.weight, slot);
            }
        }
        true
    }
}

impl<R: Deref<Target = SendRate>> Drop for PlaceGuard<R> {
    fn drop(&mut self) {
        self.give_up();
    }
}
