//! Places in line, for one token or several, and requests that do not wait for longer than they
//! say.

use core::time::Duration;

use super::SendRate;
use super::acquire::Engaged;
use super::permit::{AcquireError, Class, Order, SendPermit, WeightError};
use super::place::{Reservation, Turn};
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
        let sent = engaged.reports().sent(engaged.elapsed(now), weight, false);
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
        let nanos = wait.max(engaged.reports().may_go(elapsed, weight).err())?;
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
            let barred = reports.may_go(elapsed, weight).err();
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
