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
/// A limiter from [`new`](Self::new) limits nothing until the first throttle. A limiter with a
/// ceiling limits from the start. While it limits, each request needs a token: take one with
/// [`try_acquire`](Self::try_acquire), or a place in line with [`reserve`](Self::reserve). Report
/// every response with [`record`](Self::record).
///
/// Where [`is_lock_free`](Self::is_lock_free) returns `true`, no call waits for another thread. A
/// thread that stops at any instruction, even for good, does not keep others from acquiring,
/// recording or reading. While nothing is limited, a request writes one count. Threads share the
/// cache line of this count only if there are more than four threads for each core, or without the
/// feature `std`.
///
/// # Time
///
/// Every call takes the time as an argument, from one monotonic clock for each limiter.
///
/// - A timestamp before the start counts as the start. A timestamp over 146 years after the start
///   counts as 146 years.
/// - A caller whose clock lags gets no extra tokens. If its clock is over a second behind the last
///   change of rate, the caller is refused until the clock catches up.
/// - After a timestamp far in the future, callers at true time wait until that time has come, or
///   until [`reset`](Self::reset) is called with the true time.
/// - Tokens granted after the timestamp of a change of rate count at the new rate. So a change by a
///   clock that lags costs the lag times the old rate in tokens, paid at the new rate. Give
///   [`set_paced`](Self::set_paced) the newest time there is.
///
/// # Leases
///
/// Under [`ControlLaw::Paced`] a busy thread takes several tokens at once, and spends them without
/// a word that other threads write. A lone thread gets the same answers as if it took one token
/// after the other, and a full bucket is exact to the token. Let `S` be 2¹⁸ ns, 0.26 ms. Several
/// threads are granted from `t1` to `t2` at most the bucket's tokens plus the tokens minted from
/// `t1 − S` to `t2`.
///
/// A lease has at most an eighth of the bucket's tokens, at most 4,096, and at most one core's
/// share of what the rate mints in `S`. This share is two tokens at 7,630 tokens/s for each core,
/// with the cores counted as a power of two. At lower rates there are no leases, nor while the
/// bucket holds less than 16 tokens. Other threads may be refused while a thread has unspent
/// tokens. Places in line wait no longer for unspent tokens than for spent ones. A thread gives its
/// unspent tokens back when it asks for anything else, or asks too late for its lease. When the
/// thread ends, its tokens come back with a recorded response, within 50 ms of traffic. Where the
/// rate is fixed, refusals alone do not bring them back, but a later thread with the same number
/// does. A thread that stops for good loses its tokens. If the bucket is nearly full, each token
/// minted since the take may discard a leased token. A throttle that counts, a pause, a
/// [reset](Self::reset) and new settings end all leases. The unspent tokens of other threads are
/// lost then. The first lease allocates 128 bytes for each of 16 threads, or for four threads a
/// core if these are more. Further threads get no leases.
///
/// # Places given up
///
/// If places ahead were given up before their turn, a waiter's look at the line visits the slots of
/// the waiters ahead. This takes some 50 µs for the last of 20,000. New settings wake every waiter
/// whose turn has moved, and visit the slots once for all. This takes some 3 ms for 20,000.
///
/// # Memory ordering
///
/// No ordering is promised, so do not publish data through a limiter. Grants are in one order that
/// all threads agree on. A call answers by the rate at some moment of the call. So calls that
/// overlap a change of rate may be granted what the old rate allowed.
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
    /// It limits from the start: only the first burst may go.
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

    /// Takes a token, or takes nothing and returns the time until there is a token.
    ///
    /// # Errors
    ///
    /// The wait is never zero. It is exact to the nanosecond, if no other caller takes the token
    /// and the rate stays as it is. A caller may be refused although a place in line has just been
    /// given up. A refusal writes nothing, except to give back a [lease](Self#leases). While a
    /// service has yet to declare its limits, the wait cannot be foretold. The returned wait is
    /// then the time until another look, 50 ms.
    #[inline]
    pub fn try_acquire(&self, now: Timestamp) -> Result<SendPermit, Duration> {
        match self.ask(now, 1, Class::Foreground).take_one() {
            Ok(order) => Ok(SendPermit::with_order(now, 1, order)),
            Err(nanos) => Err(Duration::from_nanos(nanos)),
        }
    }

    /// Takes a token like [`try_acquire`](Self::try_acquire), and asks for the time only if it
    /// matters.
    ///
    /// The time does not matter while nothing is limited and the calling thread is busy: see
    /// [`record_with`](Self::record_with). While the limiter limits, the call asks for the time
    /// after a look at the limiter. If the rate falls in between, the call may be granted one token
    /// of the old rate, even if a pause has begun.
    ///
    /// A thread that has a [lease](Self#leases) asks for the time of one request in eight. The
    /// permits of the next seven requests have the same time, and are granted even if the lease has
    /// become too old meanwhile. So each thread may get seven tokens above the bound of leases.
    ///
    /// # Errors
    ///
    /// The errors of [`try_acquire`](Self::try_acquire).
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
    /// Elsewhere, as on most 32-bit targets, `portable-atomic` uses a lock instead. A thread that
    /// stops while it holds the lock stops others.
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

    /// Returns the words that a request has to look at, `None` if nothing is limited.
    #[inline]
    fn engaged(&self) -> Option<Engaged<'_>> {
        self.words().filter(|_| self.gate.load().is_engaged())
    }
}

#[cfg(test)]
mod tests;
