//! Tokens that one thread has taken in advance.

use core::fmt;
use core::num::NonZeroU32;
use core::ops::Deref;
use core::time::Duration;

use super::SendRate;
use super::permit::{Order, Outcome, Recorded, SendPermit, WeightError};
use crate::Timestamp;

/// How long tokens are kept, in nanoseconds.
const KEPT: u64 = 50_000_000;
/// How long a success may go without a look at the curve, in nanoseconds.
const UNSEEN: u64 = 1_000_000;

/// A handful of tokens of a [`SendRate`], for one thread that sends often.
///
/// Each limited request of [`SendRate`] writes a word that all threads share, and every success
/// looks at the law. This takes up to `batch` tokens with one such write and looks at the law once
/// in a millisecond; all in between stays within the thread. Have one for each thread, or each
/// connection; it is not shared. It holds a `&SendRate` ([`SendRate::credit`]), or an
/// `Arc<SendRate>` for those that outlive the place they are made in ([`SendCredit::new`]).
///
/// # What it costs in exactness
///
/// Nothing is granted that was not minted. But of the tokens that the bucket has given out, up to
/// `batch` are held by each credit, until its next call after 50 ms or its drop. One that falls
/// idle should [give them back](Self::give_back):
///
/// - others find that many fewer. Batches much smaller than what each thread gets in 50 ms make
///   that little.
/// - `batch` requests of each credit may go at once on top of the
///   [capacity](crate::SendRateSnapshot::capacity).
/// - a waiter for less than a batch is passed by those tokens, and by no later ones.
///
/// A throttle that has been recorded, by anyone, ends what is held: the tokens go back. The rate
/// follows the law up to a millisecond late, and so do the ends of windows, if no other thread
/// records.
///
/// # Examples
///
/// ```
/// use core::{num::NonZeroU32, time::Duration};
/// use paceline::{Outcome, SendRate, Timestamp, law::PacedSettings};
///
/// let settings = PacedSettings::fixed(10_000, Duration::from_secs(1))?;
/// let rate = SendRate::paced(settings, Timestamp::ZERO);
/// let mut credit = rate.credit(NonZeroU32::new(32).expect("not 0"));
/// let now = Timestamp::from_nanos(1_000_000);
/// let permit = credit.try_acquire(now).expect("the bucket is full");
/// credit.record(now, permit, Outcome::NotThrottled);
/// assert_eq!(credit.held(), 31);
/// # Ok::<(), paceline::law::PacedSettingsError>(())
/// ```
#[must_use = "tokens are taken when one is asked for"]
pub struct SendCredit<R: Deref<Target = SendRate>> {
    rate: R,
    batch: NonZeroU32,
    held: u32,
    /// The version of the last throttle when they were taken.
    version: u64,
    /// When they were taken, after the limiter's start.
    taken: u64,
    /// When the law was looked at last.
    looked: u64,
}

impl<R: Deref<Target = SendRate>> fmt::Debug for SendCredit<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendCredit")
            .field("batch", &self.batch)
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

impl SendRate {
    /// Returns a credit that takes up to `batch` tokens at a time, for one thread.
    pub const fn credit(&self, batch: NonZeroU32) -> SendCredit<&Self> {
        SendCredit::new(self, batch)
    }
}

impl SendRate {
    /// Corrects what the request of `permit` took to its true cost.
    pub(crate) fn settle(
        &self,
        now: Timestamp,
        permit: SendPermit,
        cost: u32,
    ) -> Result<(), WeightError> {
        let more = i64::from(cost).wrapping_sub(permit.weight().into());
        let charged = self.words().filter(|_| permit.is_charged() && more != 0);
        let Some(engaged) = charged else {
            return Ok(());
        };
        let elapsed = engaged.elapsed(now);
        let tokens = u32::try_from(more.unsigned_abs()).unwrap_or(u32::MAX);
        // What is left of a declared limit makes the rate: a debt of the bucket would be paid
        // twice, and would outlast a report that has the cost in it.
        let settled = if engaged.settle_limits(elapsed, permit, more) {
            Ok(())
        } else if more > 0 {
            engaged.debit(elapsed, tokens)
        } else {
            engaged.credit(elapsed, tokens);
            Ok(())
        };
        engaged.after_settling(elapsed);
        settled
    }

    /// Gives back what the request of `permit` took, which is not sent.
    pub(crate) fn take_back(&self, now: Timestamp, permit: SendPermit) {
        if let Some(engaged) = self.words().filter(|_| permit.is_charged()) {
            let elapsed = engaged.elapsed(now);
            engaged.settle_limits(elapsed, permit, i64::from(permit.weight()).wrapping_neg());
            engaged.credit(elapsed, permit.weight());
            engaged.after_settling(elapsed);
        }
    }
}

impl<R: Deref<Target = SendRate>> SendCredit<R> {
    /// Creates a credit that takes up to `batch` tokens of `rate` at a time, for one thread.
    pub const fn new(rate: R, batch: NonZeroU32) -> Self {
        Self {
            rate,
            batch,
            held: 0,
            version: 0,
            taken: 0,
            looked: 0,
        }
    }

    /// Takes a token, or takes nothing and returns how long it will be until there is one.
    ///
    /// # Errors
    ///
    /// As [`SendRate::try_acquire`].
    #[inline]
    pub fn try_acquire(&mut self, now: Timestamp) -> Result<SendPermit, Duration> {
        let Some(engaged) = self.rate.engaged() else {
            return Ok(SendPermit::sent_at(now));
        };
        // A time that goes back, as after a reset, is past both spans.
        let good = self.rate.elapsed(now).wrapping_sub(self.taken) <= KEPT
            && engaged.state.load().version() == self.version;
        match self.held.checked_sub(1) {
            Some(left) if good => {
                self.held = left;
                Ok(SendPermit::with_order(now, 1, Order::CHARGED))
            }
            _ => self.refill(now),
        }
    }

    #[inline(never)]
    fn refill(&mut self, now: Timestamp) -> Result<SendPermit, Duration> {
        if self.give_all_back() {
            self.rate.wake_due(now);
        }
        let Some(engaged) = self.rate.engaged() else {
            return Ok(SendPermit::sent_at(now));
        };
        // The line that is taken from is then as new as this throttle, or newer: the thread that
        // answers to one may have stopped before it took effect.
        let version = engaged.state.load().version();
        engaged.apply_state(engaged.elapsed(now));
        let taken = engaged.try_acquire_up_to(now, self.batch.get())?;
        self.held = taken.saturating_sub(1);
        self.version = version;
        self.taken = self.rate.elapsed(now);
        Ok(SendPermit::with_order(now, 1, Order::CHARGED))
    }

    /// Records the outcome of a request, which any limiter or credit may have let go: as
    /// [`SendRate::record`].
    #[inline]
    #[allow(
        clippy::must_use_candidate,
        reason = "called for its effect, which the models' atomics hide"
    )]
    pub fn record(&mut self, now: Timestamp, permit: SendPermit, outcome: Outcome) -> Recorded {
        let elapsed = self.rate.elapsed(now);
        let seen = elapsed.wrapping_sub(self.looked) < UNSEEN;
        if seen && outcome == Outcome::NotThrottled {
            self.rate.meter.count(permit.weight());
            Recorded::Counted
        } else {
            self.looked = elapsed;
            self.rate.record(now, permit, outcome)
        }
    }

    /// Returns how many tokens it holds.
    #[must_use]
    pub const fn held(&self) -> u32 {
        self.held
    }

    /// Gives the tokens that it holds back to the bucket, and wakes the waiters whose turn that
    /// brings, as of the last time that the credit was given.
    pub fn give_back(&mut self) {
        if self.give_all_back() {
            if let Some(engaged) = self.rate.words() {
                engaged.wake_due(self.taken.max(self.looked));
            }
        }
    }

    /// Gives the tokens that it holds back. False if it holds none.
    fn give_all_back(&mut self) -> bool {
        let held = core::mem::take(&mut self.held);
        if let Some(engaged) = self.rate.words().filter(|_| held > 0) {
            engaged.give_back(u64::from(held));
        }
        held > 0
    }
}

impl<R: Deref<Target = SendRate>> Drop for SendCredit<R> {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::paced::PacedSettings;

    /// The thread that answers to a throttle may stop before it takes effect.
    #[test]
    fn a_throttle_that_has_yet_to_take_effect_is_taken_from_no_more() {
        let second = Duration::from_secs(1);
        let settings = PacedSettings::builder().initial_rate(1_000, second).build();
        let settings = settings.expect("in range");
        let rate = SendRate::paced(settings, Timestamp::ZERO);
        let now = Timestamp::from_nanos(1_000_000_000);
        let limited = rate.words().expect("it limits from the start");
        let last = limited.state.load();
        // A pause of ten seconds: the highest of the law's bits says that it is one.
        let pause = last.next(11_000_000_000, last.memory() | 1 << 48);
        assert!(limited.state.replace(last, pause));
        let mut credit = rate.credit(NonZeroU32::new(32).expect("not 0"));
        assert!(credit.try_acquire(now).is_err());
        assert_eq!(credit.held(), 0);
    }
    #[test]
    fn a_success_looks_at_the_curve_once_in_a_millisecond() {
        let at = Timestamp::from_nanos;
        let second = 1_000_000_000;
        let rate = SendRate::new(crate::ControlLaw::Aws, Timestamp::ZERO);
        for now in [0, 0, 0, 0, second] {
            rate.record(at(now), SendPermit::sent_at(at(now)), Outcome::NotThrottled);
        }
        rate.record(
            at(second),
            SendPermit::sent_at(at(second)),
            Outcome::Throttled,
        );
        let mut credit = rate.credit(NonZeroU32::new(32).expect("not 0"));
        let looked = 2 * second;
        let mut fill = |now| {
            credit.record(at(now), SendPermit::sent_at(at(now)), Outcome::NotThrottled);
            rate.words().map(|limited| limited.line.head().rate())
        };
        let seen = fill(looked);
        assert_eq!(fill(looked + UNSEEN - 1), seen);
        assert!(fill(looked + UNSEEN) > seen);
    }

    #[test]
    fn a_credit_that_holds_nothing_gives_nothing_back() {
        let settings = PacedSettings::fixed(10, Duration::from_secs(1)).expect("in range");
        let rate = SendRate::paced(settings, Timestamp::ZERO);
        let seen = rate.gate.load();
        drop(rate.credit(NonZeroU32::new(32).expect("not 0")));
        assert_eq!(rate.gate.load(), seen);
    }
}
