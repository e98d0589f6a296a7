//! The send rate: a line of tokens whose slope a control law moves.

use core::convert::Infallible;
use core::time::Duration;

use super::gate::Gate;
use super::law::Law;
use super::lazy::Lazy;
use super::limit::{Limit, Limited, elapsed};
use super::meter::Meter;
use super::permit::{ControlLaw, SendPermit};
use super::reservation::{Reservation, Turn};
use crate::Timestamp;
use crate::meter::Windows;
use crate::paced::{PacedSettings, started_at};

/// A token bucket for sends, refilled by time at a rate that answers to throttling.
///
/// Until the first throttle it limits nothing. From then on a request needs a token: take one with
/// [`try_acquire`](Self::try_acquire), or a place in line with [`reserve`](Self::reserve). Tell it every response
/// with [`record`](Self::record).
///
/// No call waits for another thread, where [`is_lock_free`](Self::is_lock_free): a thread stopped at any
/// instruction, for ever, keeps no other from acquiring, recording or reading. Until the first throttle a
/// request writes one count, in a cache line that threads share only if there are more of them than
/// four for each core (one for all without the feature `std`).
///
/// # Time
///
/// Every call takes the time as an argument, from one monotonic clock for each limiter. A timestamp before
/// the start counts as the start, one over 146 years after it as that instant. A caller with an older clock
/// than another one's mints nothing: it finds what there was, and if it is over a second behind the last
/// change of rate it waits. After a timestamp far in the future callers at true time wait until it has come.
///
/// # Memory ordering
///
/// None is promised: do not publish data through a limiter. Grants are in one order that all threads agree
/// on. A call answers to the rate as it was at some moment of the call; while the rate changes, calls
/// that overlap the change may be granted what the old rate allowed.
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
#[derive(Debug)]
pub struct SendRate {
    pub(super) gate: Gate,
    /// Made by the first throttle.
    limit: Lazy<Limit>,
    pub(super) meter: Meter,
    pub(super) windows: Windows,
    start: Timestamp,
    pub(super) law: Law,
    /// How many open places are remembered.
    places: u32,
}

/// How many open places are remembered when one is given up, unless the caller says otherwise.
const OPEN_PLACES: u32 = 65_536;

impl SendRate {
    /// Creates a limiter that limits nothing until the first throttle, with the law's own settings.
    ///
    /// Remembers 65,536 open places: see [`with_open_places`](Self::with_open_places).
    #[must_use]
    pub fn new(law: ControlLaw, start: Timestamp) -> Self {
        Self::with_open_places(law, start, OPEN_PLACES)
    }

    /// Creates a limiter that remembers places given up while at most `places` are open.
    ///
    /// Any number of places may be open. But one that is given up further back in line than this may be
    /// forgotten: its token is lost, nobody is let go early, and nobody behind it moves up. Rounded up to a
    /// power of two, at least 512 and at most 2²⁴; a byte of memory holds four places.
    #[must_use]
    pub fn with_open_places(law: ControlLaw, start: Timestamp, places: u32) -> Self {
        let law = match law {
            ControlLaw::Aws => Law::Aws,
            ControlLaw::Paced => Law::paced(PacedSettings::new()),
        };
        Self::build(law, start, places)
    }

    /// Creates a limiter of [`ControlLaw::Paced`] with `settings`.
    ///
    /// With a ceiling or an initial rate it limits from the start, with a full bucket. Remembers 65,536 open
    /// places.
    #[must_use]
    pub fn paced(settings: PacedSettings, start: Timestamp) -> Self {
        Self::build(Law::paced(settings), start, OPEN_PLACES)
    }

    /// Creates a limiter of [`ControlLaw::Paced`] with `settings`, that remembers places given up while at most
    /// `places` are open: see [`with_open_places`](Self::with_open_places).
    #[must_use]
    pub fn paced_with_open_places(settings: PacedSettings, start: Timestamp, places: u32) -> Self {
        Self::build(Law::paced(settings), start, places)
    }

    fn build(law: Law, start: Timestamp, places: u32) -> Self {
        let windows = Windows::new(start.as_nanos());
        let window_end = match law {
            Law::Aws => windows.window(0).end,
            Law::Paced(_) => 0, // the first response begins a window
        };
        let rate = Self {
            gate: Gate::new(window_end),
            limit: Lazy::new(|| Limit::new(law.burst(), places)),
            meter: Meter::new(),
            windows,
            start,
            law,
            places,
        };
        rate.limit_from_the_start();
        rate
    }

    /// Engages a limiter that is to limit from the start, with a full bucket.
    fn limit_from_the_start(&self) {
        let Some(settings) = self.paced_settings() else {
            return;
        };
        let Some(initial) = settings.start() else {
            return;
        };
        self.gate.engage();
        let limited = self.about_to_limit();
        let last = limited.throttle.load();
        let next = last.next_with(0, started_at(&settings, initial).to_bits());
        let _ = limited.throttle.replace(last, next);
        limited.apply_throttle(0);
        let (_, line) = limited.segments.read();
        let _ = limited.issue(|issued| Ok::<_, Infallible>(issued.less(line.capacity())));
    }

    /// Returns the control law that the limiter was created with.
    #[must_use]
    pub const fn law(&self) -> ControlLaw {
        match self.law {
            Law::Aws => ControlLaw::Aws,
            Law::Paced(_) => ControlLaw::Paced,
        }
    }

    /// Takes a token, or takes nothing and returns how long it will be until there is one.
    ///
    /// # Errors
    ///
    /// The wait is exact to the nanosecond, as long as nobody else takes the token and the rate stays as it is,
    /// and never zero. While places in line are being given up it may be refused as if some were not yet. A refusal
    /// writes nothing of its own.
    pub fn try_acquire(&self, now: Timestamp) -> Result<SendPermit, Duration> {
        match self.engaged() {
            None => Ok(SendPermit::sent_at(now)),
            Some(limited) => limited.try_acquire(now),
        }
    }

    /// As [`try_acquire`](Self::try_acquire), and asks for the time only if it matters.
    ///
    /// It does not while nothing is limited and the calling thread is busy: see [`record_with`](Self::record_with).
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    pub fn try_acquire_with(
        &self,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<SendPermit, Duration> {
        match self.go_untimed() {
            Some(permit) => Ok(permit),
            None => self.try_acquire(now()),
        }
    }

    /// Takes a place in line: first come, first served.
    ///
    /// While the limiter limits nothing there is no line: the reservation looks again when it is claimed.
    pub fn reserve(&self, now: Timestamp) -> Reservation<'_> {
        Reservation::new(self, self.queue_up_anyhow(now, 1), 1)
    }

    /// As [`reserve`](Self::reserve), and asks for the time only if it matters.
    ///
    /// A place that is had without it is claimed already.
    pub fn reserve_with(&self, now: impl FnOnce() -> Timestamp) -> Reservation<'_> {
        let turn = match self.go_untimed() {
            Some(permit) => Turn::Claimed(permit),
            None => self.queue_up_anyhow(now(), 1),
        };
        Reservation::new(self, turn, 1)
    }

    /// Lets a request go without a look at the clock, if that may be.
    #[inline]
    pub(crate) fn go_untimed(&self) -> Option<SendPermit> {
        (!self.gate.is_engaged() && self.meter.is_ahead()).then(SendPermit::untimed)
    }

    /// Whether the target has the 128-bit atomics that the line of tokens is made of.
    ///
    /// Elsewhere, as on most 32-bit targets, `portable-atomic` puts a lock in their place, and a thread stopped
    /// while it holds one stops others.
    #[cfg(not(all(loom, feature = "loom")))]
    #[must_use]
    pub fn is_lock_free() -> bool {
        super::sync::AtomicU128::is_lock_free()
    }

    pub(super) const fn start(&self) -> Timestamp {
        self.start
    }

    /// Returns the time since the start, as words hold it.
    pub(super) fn elapsed(&self, now: Timestamp) -> u64 {
        elapsed(self.start, now)
    }

    /// Returns the limiter as one that limits, if it has ever been about to.
    pub(super) fn limited(&self) -> Option<Limited<'_>> {
        self.limit.get().map(|limit| self.with(limit))
    }

    /// Returns the limiter as one that is about to limit.
    pub(super) fn about_to_limit(&self) -> Limited<'_> {
        self.with(
            self.limit
                .get_or_make(|| Limit::new(self.law.burst(), self.places)),
        )
    }

    fn with<'a>(&'a self, limit: &'a Limit) -> Limited<'a> {
        Limited {
            limit,
            gate: &self.gate,
            meter: &self.meter,
            windows: self.windows,
            law: &self.law,
            start: self.start,
        }
    }

    /// Returns what a request has to look at, `None` if nothing holds it back.
    pub(super) fn engaged(&self) -> Option<Limited<'_>> {
        if self.gate.is_engaged() {
            self.limited()
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests;
