//! What a request asks of one limiter, whatever its class.
//!
//! | asked | foreground | background |
//! |---|---|---|
//! | [`take`](Ask::take) | a token of a lease or the bucket; several as a place | spare tokens |
//! | [`queue_up`](Ask::queue_up) | the last place in line | the last place behind the line |
//! | [`wait`](Ask::wait) | the time until the last place is due | an estimate of that |
//! | [`check`](Ask::check) | whether the bucket can ever hold as much | the same |
//!
//! Nothing is written where the answer is no, but for tokens that the calling thread hands back.

use core::fmt;
use core::time::Duration;

use super::SendRate;
use super::acquire::{Engaged, Words};
use super::gate::{GateWord, LONGEST_QUIET};
use super::permit::{AcquireError, Class, Order, SendPermit, WeightError};
use super::table::WaiterSlot;
use crate::Timestamp;
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
        self.ask(now, weight, Class::Foreground).permit()
    }

    /// Returns a view of the limiter by which requests are [background](crate::Class::Background):
    /// they get the tokens that are there and that no foreground request waits for.
    #[must_use]
    pub const fn background(&self) -> Background<'_, Self> {
        Background::new(self)
    }

    /// Returns what a request asks of the limiter.
    #[inline]
    pub(crate) const fn ask(&self, now: Timestamp, weight: u32, class: Class) -> Ask<'_> {
        Ask {
            rate: self,
            now,
            weight,
            class,
        }
    }
}

/// A view of a [`SendRate`] or a [`SendSet`](crate::SendSet) by which requests are
/// [background](crate::Class::Background): from [`SendRate::background`].
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use paceline::{AcquireError, SendRate, Timestamp, law::PacedSettings};
///
/// // 10 tokens/s.
/// let settings = PacedSettings::fixed(10, Duration::from_secs(1))?;
/// let (rate, now) = (SendRate::paced(settings, Timestamp::ZERO), Timestamp::ZERO);
/// assert!(rate.try_acquire(now).is_ok());
/// let mut backfill = rate.background().reserve(now);
/// let mut person = rate.reserve(now); // comes later, and goes first
/// let later = Timestamp::from_nanos(150_000_000);
/// assert!(backfill.claim(later).is_err());
/// assert!(person.claim(later).is_ok());
/// assert!(backfill.claim(Timestamp::from_nanos(250_000_000)).is_ok());
/// # Ok::<(), paceline::law::PacedSettingsError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Background<'a, R>(&'a R);

impl<'a, R> Background<'a, R> {
    pub(crate) const fn new(of: &'a R) -> Self {
        Self(of)
    }

    pub(crate) const fn of(&self) -> &'a R {
        self.0
    }
}

impl<R: fmt::Debug> fmt::Debug for Background<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Background").field(self.0).finish()
    }
}

impl Background<'_, SendRate> {
    /// Takes a token if one is there that no request waits for, or returns about how long it will
    /// be until there is one.
    ///
    /// # Errors
    ///
    /// The wait, never zero: an estimate.
    pub fn try_acquire(&self, now: Timestamp) -> Result<SendPermit, Duration> {
        let taken = self.0.ask(now, 1, Class::Background).permit();
        taken.map_err(|error| error.wait().unwrap_or(Duration::MAX))
    }

    /// Takes `weight` tokens at once, or takes nothing.
    ///
    /// # Errors
    ///
    /// As [`SendRate::try_acquire_n`]. The wait is an estimate.
    pub fn try_acquire_n(&self, now: Timestamp, weight: u32) -> Result<SendPermit, AcquireError> {
        self.0.ask(now, weight, Class::Background).permit()
    }
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

/// What a request asks of one limiter: so many tokens, at a time, for one class.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(super) rate: &'a SendRate,
    pub(super) now: Timestamp,
    pub(super) weight: u32,
    pub(super) class: Class,
}

impl Ask<'_> {
    /// Takes the tokens at once, or takes nothing.
    #[inline]
    pub(crate) fn take(self) -> Result<Order, AcquireError> {
        if self.weight == 1 && !self.class.is_background() {
            return self.take_one().map_err(|nanos| AcquireError::NotInTime {
                wait: Duration::from_nanos(nanos),
            });
        }
        self.take_seldom()
    }

    /// Does what [`take`](Self::take) does for background, or for a weight.
    // Out of the way of a request for one token.
    #[inline(never)]
    fn take_seldom(self) -> Result<Order, AcquireError> {
        if self.class.is_background() {
            self.take_behind()
        } else {
            self.take_heavy()
        }
    }

    /// As [`take`](Self::take), with a permit.
    #[inline]
    pub(crate) fn permit(self) -> Result<SendPermit, AcquireError> {
        let order = self.take()?;
        Ok(SendPermit::with_order(self.now, self.weight, order))
    }

    /// Takes a token, or returns the nanoseconds until there is one.
    ///
    /// The answer comes in registers. A permit would be written in parts and then loaded whole, and
    /// such a load waits for the stores: 5 ns.
    #[inline]
    pub(super) fn take_one(self) -> Result<Order, u64> {
        let gate = self.rate.gate.look();
        if !gate.is_engaged() {
            return Ok(Order::NONE);
        }
        let words = self.rate.words.get();
        if let Some((lease, changes)) = words.and_then(Words::lease) {
            if lease.spend(changes, self.now.as_nanos()) {
                return Ok(Order::CHARGED);
            }
        }
        take_one_slowly(self.rate, gate, self.now)
    }

    fn take_heavy(self) -> Result<Order, AcquireError> {
        let Self { rate, weight, .. } = self;
        if let Some(engaged) = rate.words().filter(|_| rate.law.listens()) {
            engaged.line().make_room(weight);
        }
        let turn = self.queue_up(Some(Duration::ZERO))?;
        let (Turn::Placed { place, slot }, Some(engaged)) = (turn, rate.words()) else {
            return Ok(Order::NONE);
        };
        let sent = engaged
            .reports()
            .sent(engaged.law.elapsed(self.now), weight, false);
        let order = sent.map_err(|nanos| {
            engaged.give_up(place, weight, slot);
            engaged.not_in_time(self.now, nanos)
        })?;
        engaged.line().close(weight);
        let over = engaged.reports().over(weight);
        if over > 0 {
            engaged.line().give_back(over);
        }
        Ok(order)
    }

    /// Takes a place in the line of the class, if its turn comes within `patience`.
    ///
    /// No place if the limiter limits nothing. A refusal writes nothing: requests that are refused
    /// over and over leave no places given up behind, of which the limiter remembers only so many.
    pub(super) fn queue_up(self, patience: Option<Duration>) -> Result<Turn, AcquireError> {
        let Self { now, weight, .. } = self;
        if self.class.is_background() {
            self.check()?;
            return self.queue_up_behind(patience);
        }
        if weight == 0 {
            return Err(WeightError::Zero.into());
        }
        let Some(engaged) = self.rate.engaged() else {
            return Ok(Turn::Unlimited);
        };
        let elapsed = engaged.law.elapsed(now);
        if weight > 1 || patience.is_some() {
            engaged.lending().hand_back(elapsed);
            // Time may have moved the rate, and the capacity with it, since it was last looked at.
            engaged.adaptation().catch_up(elapsed);
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

    /// As [`queue_up`](Self::queue_up), whatever the capacity and the wait are. If the line is full
    /// it returns the time until it is not.
    pub(super) fn queue_up_anyhow(self) -> Result<Turn, Duration> {
        let Self { now, weight, .. } = self;
        if self.class.is_background() {
            let queued = self.queue_up_behind(None);
            return queued.map_err(|_full| Duration::from_nanos(LONGEST_QUIET));
        }
        let Some(engaged) = self.rate.engaged() else {
            return Ok(Turn::Unlimited);
        };
        let queued = engaged.queue_up(now, weight, None);
        queued.map_err(|_full| {
            let elapsed = engaged.law.elapsed(now);
            let last = engaged.line().last_rank();
            let first = last.plus(units(weight)).less(LONGEST_QUEUE);
            let line = engaged.line_at(elapsed);
            let nanos = line.and_then(|line| engaged.wait_of(&line, elapsed, first));
            engaged.wait(now, nanos.unwrap_or(1))
        })
    }

    /// Returns how long it would be until the tokens came, `None` if they are there.
    pub(crate) fn wait(self) -> Option<Duration> {
        let Self { now, weight, .. } = self;
        let engaged = self.rate.engaged()?;
        let elapsed = engaged.law.elapsed(now);
        engaged.lending().hand_back(elapsed);
        engaged.adaptation().catch_up(elapsed);
        let wait = if self.class.is_background() {
            let second = engaged.second_line();
            second.release(elapsed);
            second.wait(elapsed, weight)
        } else {
            let line = engaged.line_at(elapsed)?;
            let cancelled = engaged.line().waiters.total();
            let last = line.spilled(elapsed, engaged.line().issued(), cancelled);
            let less = cancelled.wrapping_add(engaged.reports().over(weight));
            let rank = last.plus(units(weight)).less_tokens(less);
            engaged.wait_of(&line, elapsed, rank)
        };
        let nanos = wait.max(engaged.reports().may_go(elapsed, weight).err())?;
        Some(engaged.wait(now, nanos))
    }

    /// Returns the time in which the tokens are minted, at today's rate or the rate after a pause;
    /// the time in which the tokens were minted that are there for the waiters ahead; and for how
    /// long nothing goes.
    pub(crate) fn pace(self) -> [Duration; 3] {
        let Some(engaged) = self.rate.engaged() else {
            return [Duration::ZERO; 3];
        };
        let elapsed = engaged.law.elapsed(self.now);
        let Some(line) = engaged.line_at(elapsed) else {
            return [Duration::ZERO; 3];
        };
        let barred = engaged.reports().may_go(elapsed, self.weight).err();
        if line.is_paused() {
            let resumed = engaged.resumed(&line, elapsed);
            let token = Duration::from_nanos(resumed.rate.nanos_per_token());
            let pause = resumed.since.saturating_sub(elapsed);
            let closed = Duration::from_nanos(pause.max(barred.unwrap_or(0)));
            return [token.saturating_mul(self.weight), Duration::ZERO, closed];
        }
        let closed = Duration::from_nanos(barred.unwrap_or(0));
        let nanos = line.rate.nanos_per_token();
        let span = Duration::from_nanos(nanos).saturating_mul(self.weight);
        if self.class.is_background() {
            return [span, span, closed];
        }
        // What was minted less what was promised, and of that what is not claimed yet.
        let tokens = engaged.line();
        let cancelled = tokens.waiters.total();
        let promised = tokens.issued().less_tokens(cancelled);
        let open = tokens.open_tokens().saturating_mul(TOKEN);
        let minted = line.minted_at(elapsed).to_place().since(promised);
        let there = minted.saturating_add_unsigned(open);
        let there = u64::try_from(there).unwrap_or(0);
        let there = u128::from(there).saturating_mul(nanos.into());
        let there = there.checked_div(TOKEN.into()).unwrap_or(0);
        let there = u64::try_from(there).unwrap_or(u64::MAX);
        [span, Duration::from_nanos(there), closed]
    }

    /// Returns the whole tokens that are left, of the declared limit with the least or else in the
    /// bucket, and whether none can be had: in a pause, or where a declared limit is spent.
    pub(crate) fn room(self) -> (u64, bool) {
        let Some(engaged) = self.rate.engaged() else {
            return (u64::MAX, false);
        };
        let elapsed = engaged.law.elapsed(self.now);
        engaged.adaptation().catch_up(elapsed);
        let Some(line) = engaged.line_at(elapsed) else {
            return (u64::MAX, false);
        };
        let held = engaged.available(&line, elapsed) >> u64::BITS;
        let limits = engaged.law.limits();
        let declared = limits.and_then(|limits| limits.left(elapsed, engaged.sent()));
        let left = declared.unwrap_or(u64::try_from(held).unwrap_or(u64::MAX));
        let is_barred = engaged.reports().may_go(elapsed, self.weight).is_err();
        (left, is_barred || line.is_paused())
    }

    /// Refuses a weight that can never be taken at once.
    pub(crate) fn check_now(self) -> Result<(), WeightError> {
        let Self { now, weight, .. } = self;
        self.check()?;
        match self.rate.words() {
            Some(engaged) if weight > 1 && self.rate.law.listens() => {
                engaged.line().make_room(weight);
                engaged.weigh(engaged.law.elapsed(now), weight, None)
            }
            _ => Ok(()),
        }
    }

    /// Refuses a weight that there is no place for.
    pub(crate) fn check(self) -> Result<(), WeightError> {
        let Self { now, weight, .. } = self;
        if weight == 0 {
            return Err(WeightError::Zero);
        }
        let Some(engaged) = self.rate.engaged() else {
            return Ok(());
        };
        engaged.reports().check(weight)?;
        engaged.weigh_to_wait(engaged.law.elapsed(now), weight)
    }
}

impl Engaged<'_> {
    fn queue_up(
        &self,
        now: Timestamp,
        weight: u32,
        patience: Option<Duration>,
    ) -> Result<Turn, AcquireError> {
        let elapsed = self.law.elapsed(now);
        self.lending().hand_back(elapsed);
        let Some(line) = self.line_at(elapsed) else {
            return Ok(Turn::Unlimited);
        };
        let cancelled = self.line().waiters.total();
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
        self.line().open(weight);
        // One that is due has no need of a slot.
        let is_due = minted.since(place.less_tokens(cancelled.wrapping_add(over))) >= 0;
        let slot = if is_due {
            None
        } else {
            self.line().waiters.join(place, weight)
        };
        self.line().retire(&line, elapsed);
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
        let place = self.line().issue(|issued| {
            let next = line.spilled(elapsed, issued, cancelled).plus(units(weight));
            let rank = next.less_tokens(cancelled);
            if rank.since(minted) > to_signed(LONGEST_QUEUE) {
                let waiting = self.waiting(line, elapsed);
                return Err(WeightError::LineFull { weight, waiting }.into());
            }
            check(rank).map(|()| next)
        })?;
        self.line().forget_hint();
        Ok(place)
    }

    /// Promises `tokens` behind all that is promised, whenever they come: for background, or
    /// because they have been spent already. `None` if there is no line. Places that are in line
    /// already keep their turns.
    pub(super) fn debit(&self, elapsed: u64, tokens: u32) -> Result<Option<Place>, WeightError> {
        let Some(line) = self.line_at(elapsed) else {
            return Ok(None);
        };
        let cancelled = self.line().waiters.total();
        match self.promise(elapsed, &line, cancelled, tokens, |_| Ok(())) {
            Err(AcquireError::Weight(error)) => Err(error),
            place => Ok(place.ok()),
        }
    }

    /// Gives `tokens` back, as many of them as fit the bucket.
    pub(super) fn credit(&self, elapsed: u64, tokens: u32) {
        if let Some(line) = self.line_at(elapsed) {
            self.line().credit(&line, elapsed, tokens);
        }
    }

    /// Gives up the open `place`, which is for `weight` tokens.
    pub(super) fn give_up(&self, place: Place, weight: u32, slot: Option<WaiterSlot>) {
        self.lending().hand_back_last();
        self.line().give_up(place, weight, slot);
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

/// Takes a token where that takes more than a look at the age of a lease.
#[inline(never)]
fn take_one_slowly(rate: &SendRate, gate: GateWord, now: Timestamp) -> Result<Order, u64> {
    match rate.words() {
        None => Ok(Order::NONE),
        Some(engaged) => engaged.try_acquire(gate, now),
    }
}

/// Returns `weight` tokens in the units of a place.
fn units(weight: u32) -> u64 {
    u64::from(weight).wrapping_mul(TOKEN)
}
