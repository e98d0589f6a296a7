//! The send rate: a line of tokens whose slope a control law moves.

mod acquire;
mod adapt;
mod admin;
mod ask;
mod behind;
mod controller;
mod gate;
mod head;
mod hint;
mod lease;
mod lend;
mod limits;
mod meter;
#[cfg(all(loom, feature = "loom"))]
#[path = "../../../models/send_rate.rs"]
pub(super) mod modelled;
mod place;
mod record;
mod release;
mod reports;
mod settle;
mod snapshot;
mod state;
mod table;
mod token_line;
mod waiters;
mod wake;

use core::time::Duration;

use self::acquire::{Engaged, Words};
use self::controller::BoundLaw;
use self::gate::Gate;
use super::lazy::Lazy;
use crate::law::paced::PacedSettings;
use crate::law::{Controller, DeclaredSettings, Dimension};
use crate::permit::{self, Class, Order, SendPermit};
use crate::{ControlLaw, Timestamp};

pub use self::ask::Background;
use self::meter::Meter;
pub use self::place::{PlaceGuard, Reservation};
pub use self::snapshot::{BackgroundSnapshot, DeclaredLimit, SendRateSnapshot};

/// A token bucket for sends, refilled by time at a rate that adapts to throttling.
///
/// A limiter from [`new`](Self::new) limits nothing until the first throttle. With a ceiling a
/// limiter limits from the start. While the rate is limited, each request needs a token: take a
/// token with [`try_acquire`](Self::try_acquire), or a place in line with
/// [`reserve`](Self::reserve). Report every response with [`record`](Self::record).
///
/// No call waits for another thread, where [`is_lock_free`](Self::is_lock_free). A thread that
/// stops at any instruction, even for good, does not keep others from acquiring, recording or
/// reading. While nothing is limited, a request writes one count. Threads share the count's cache
/// line only if there are more than four threads for each core, or without the feature `std`.
///
/// # Time
///
/// Every call takes the time as an argument, from one monotonic clock for each limiter.
///
/// - A timestamp before the start counts as the start. One over 146 years after the start counts as
///   that instant.
/// - A caller whose clock lags gets no extra tokens. If its clock is over a second behind the last
///   change of rate, the caller is refused until the clock catches up.
/// - After a timestamp far in the future, callers at true time wait until that time has come, or
///   until [`reset`](Self::reset) is called with the true time.
/// - What was granted after a change of rate's timestamp counts at the new rate. So a change by a
///   clock that lags costs the lag times the old rate in tokens, paid at the new rate: give
///   [`set_paced`](Self::set_paced) the newest time there is.
///
/// # Leases
///
/// Under [`ControlLaw::Paced`] a busy thread takes several tokens at once, a lease, and spends them
/// without a word that other threads write. One thread alone sees no difference: a full bucket is
/// exact to the token. From `t1` to `t2` several threads are granted at most what the bucket holds
/// and what is minted from `t1 − S` to `t2`. `S` is 2¹⁸ ns, 0.26 ms.
///
/// - *Size*: at most an eighth of the tokens that are there, 4,096 tokens, and what the rate brings
///   in `S`, shared by the cores, counted as a power of two. A lease begins with two tokens, at
///   7,630 a second for each core. A bucket that holds less than 16 tokens has no leases.
/// - *Others* may be refused tokens that a thread has and does not spend. Places in line wait for
///   such tokens no longer than for spent tokens.
/// - *End*: a thread gives its lease back when it asks for anything else, or asks too late. The
///   tokens come back with a response that is recorded, within 50 ms of traffic. Where the rate is
///   fixed, refusals alone do not bring them back; a later thread in the same place does. A thread
///   that is stopped loses its lease.
/// - *Age*: in a bucket that is nearly full, each token minted since the take may discard a token
///   of the lease.
/// - *Changes*: a throttle that counts, a pause, a [reset](Self::reset) and new settings end all
///   leases. What other threads had left is lost then.
/// - *Memory*: the first lease allocates 128 bytes for each of 16 threads, or of four for each core
///   if that is more. Further threads have no leases.
///
/// # Places given up
///
/// While places in line are given up whose turn has not come, a waiter's look at the line visits
/// the slots of the waiters ahead of it: some 50 µs for the last of 20,000. New settings wake every
/// waiter whose turn has moved, and visit the slots once for all: some 3 ms for 20,000.
///
/// # Memory ordering
///
/// None is promised: do not publish data through a limiter. Grants are in one order that all
/// threads agree on. A call answers to the rate as it was at some moment of the call; while the
/// rate changes, calls that overlap the change may be granted what the old rate allowed.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use paceline::{ControlLaw, Outcome, SendRate, Timestamp};
///
/// let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
/// let permit = rate.try_acquire(Timestamp::ZERO).expect("not throttled yet");
/// rate.record(Timestamp::ZERO, permit, Outcome::Throttled);
///
/// // The floor is one request in two seconds.
/// let now = Timestamp::from_nanos(100_000_000);
/// assert_eq!(rate.try_acquire(now), Err(Duration::from_millis(1_900)));
/// assert!(rate.try_acquire(Timestamp::from_nanos(2_000_000_000)).is_ok());
/// ```
pub struct SendRate {
    gate: Gate,
    /// Made by the first throttle.
    words: Lazy<Words>,
    meter: Meter,
    pub(crate) law: BoundLaw,
}

impl SendRate {
    /// Creates a limiter that limits nothing until the first throttle, with the law's own settings.
    #[must_use]
    pub fn new(law: ControlLaw, start: Timestamp) -> Self {
        let law = Controller::new(law, start.as_nanos());
        Self::build(law, Dimension::default(), start)
    }

    /// Creates a limiter of [`ControlLaw::Paced`] with `settings`.
    ///
    /// With a ceiling or an initial rate it limits from the start, with a full bucket.
    #[must_use]
    pub fn paced(settings: PacedSettings, start: Timestamp) -> Self {
        Self::build(Controller::Paced(settings), Dimension::default(), start)
    }

    /// Creates a limiter of [`ControlLaw::Declared`](crate::ControlLaw::Declared) with `settings`.
    ///
    /// It limits from the start, to the first burst.
    #[must_use]
    pub fn declared(settings: DeclaredSettings, start: Timestamp) -> Self {
        let law = Controller::Declared(settings.law());
        Self::build(law, settings.obeyed(), start)
    }

    fn build(law: Controller, obeyed: Dimension, start: Timestamp) -> Self {
        let (meter, window_end) = Meter::new(&law);
        let rate = Self {
            gate: Gate::new(window_end),
            words: Lazy::new(|| Words::new(law.burst())),
            meter,
            law: BoundLaw::new(law, obeyed, start),
        };
        if let Some(memory) = law.unthrottled().start {
            rate.gate.engage();
            rate.about_to_limit()
                .adaptation()
                .begin(memory, law.shut_at_first());
        }
        rate
    }

    /// Returns the control law that the limiter was created with.
    #[must_use]
    pub const fn law(&self) -> ControlLaw {
        self.law.kind()
    }

    /// Takes a token, or takes nothing and returns how long it will be until there is one.
    ///
    /// # Errors
    ///
    /// The wait is exact to the nanosecond, as long as no other caller takes the token and the rate
    /// stays as it is, and never zero. A caller may be refused although a place in line has just
    /// been given up. A refusal writes nothing, but for a [lease](Self#leases) that it gives back.
    /// Where a service has yet to declare its limits, nothing can be foretold, and the wait is the
    /// time until another look, 50 ms.
    #[inline]
    pub fn try_acquire(&self, now: Timestamp) -> Result<SendPermit, Duration> {
        match self.ask(now, 1, Class::Foreground).take_one() {
            Ok(order) => Ok(SendPermit::with_order(now, 1, order)),
            Err(nanos) => Err(Duration::from_nanos(nanos)),
        }
    }

    /// As [`try_acquire`](Self::try_acquire), and asks for the time only if it matters.
    ///
    /// It does not while nothing is limited and the calling thread is busy: see
    /// [`record_with`](Self::record_with). While something is, it does so after it has looked
    /// at the limiter. If the rate falls in between, it may be granted one token that was there
    /// at the old rate, even if a pause has begun.
    ///
    /// A thread that has a [lease](Self#leases) asks for the time of one request in eight. The
    /// permits of the seven after it have the time of that one, and go even if the lease has become
    /// too old meanwhile: so many more than the bound there says, for each thread.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_with(
        &self,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<SendPermit, Duration> {
        let gate = self.gate.look();
        if !gate.is_engaged() {
            return Ok(if self.meter.is_ahead() {
                SendPermit::NO_TIME
            } else {
                SendPermit::sent_at(now())
            });
        }
        let Some(words) = self.words.get() else {
            return Ok(SendPermit::with_order(now(), 1, Order::NONE));
        };
        let lease = words.lease();
        let untimed = lease.and_then(|(lease, changes)| lease.spend_untimed(changes));
        if let Some(earlier) = untimed {
            let earlier = Timestamp::from_nanos(earlier);
            return Ok(SendPermit::with_order(earlier, 1, Order::CHARGED_EARLIER));
        }
        let lease = lease.map(|(lease, _)| lease);
        let (now, taken) = Engaged::new(self, words).try_timed(lease, gate, now);
        match taken {
            Ok(order) => Ok(SendPermit::with_order(now, 1, order)),
            Err(nanos) => Err(Duration::from_nanos(nanos)),
        }
    }

    /// Returns the meter while nothing is limited: then a request may go, and be counted, without
    /// a look at the clock.
    #[inline]
    fn untimed(&self) -> Option<&Meter> {
        Some(&self.meter).filter(|_| !self.gate.load().is_engaged())
    }

    /// Returns `true` if a request may go without a look at the clock.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn is_untimed(&self) -> bool {
        self.untimed().is_some_and(Meter::is_ahead)
    }

    /// Counts a request if neither it nor its outcome needs a look at the clock.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn count_untimed(&self) -> bool {
        self.untimed().is_some_and(Meter::count_untimed)
    }

    /// Returns `true` if the target has the 128-bit atomics that the line of tokens is made of.
    ///
    /// Elsewhere, as on most 32-bit targets, `portable-atomic` puts a lock in their place, and a
    /// thread stopped while it holds one stops others.
    #[cfg(not(all(loom, feature = "loom")))]
    #[must_use]
    pub fn is_lock_free() -> bool {
        super::sync::AtomicU128::is_lock_free()
    }

    /// Returns the words of the limiter, if it has ever been about to limit.
    #[inline]
    fn words(&self) -> Option<Engaged<'_>> {
        Some(Engaged::new(self, self.words.get()?))
    }

    /// Returns the words of the limiter, which is about to limit.
    fn about_to_limit(&self) -> Engaged<'_> {
        let make = || Words::new(self.law.get().burst());
        Engaged::new(self, self.words.get_or_make(make))
    }

    /// Returns what a request has to look at, `None` if nothing holds it back.
    #[inline]
    fn engaged(&self) -> Option<Engaged<'_>> {
        self.words().filter(|_| self.gate.load().is_engaged())
    }
}

#[cfg(test)]
mod tests;
