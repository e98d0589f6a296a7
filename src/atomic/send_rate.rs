//! The send rate: a line of tokens whose slope a control law moves.

use core::time::Duration;

use crossbeam_utils::CachePadded;

use super::bits::LAST_TIME;
use super::cancellations::Cancellations;
use super::gate::Gate;
use super::law::Law;
use super::meter::Meter;
use super::permit::{ControlLaw, SendPermit};
use super::reservation::{Reservation, Turn};
use super::segments::Segments;
use super::sync::{AtomicU64, Ordering::Relaxed};
use super::throttle::LastThrottle;
use crate::Timestamp;
use crate::fixed::Rate;
use crate::line::{Line, Minted, Place, SKEW, TOKEN, Take};
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
/// cores (one for all without the feature `std`).
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
    pub(super) gate: CachePadded<Gate>,
    pub(super) segments: Segments,
    pub(super) throttle: LastThrottle,
    pub(super) meter: Meter,
    /// The last token promised. Every limited request writes it, so it has a line of its own.
    pub(super) issued: CachePadded<AtomicU64>,
    pub(super) cancellations: Cancellations,
    start: Timestamp,
    pub(super) law: Law,
}

/// Where the line begins: one and a half tokens before the wrap of places, of counts and of the ring, so that
/// every test crosses it.
const BEGINNING: Minted = Minted::from_bits((3_u128 << 63).wrapping_neg());
/// How many places had been given up by then.
const GIVEN_UP: u64 = 1_u64.wrapping_neg();

/// The fewest words of the ring: with fewer, laps would wrap sooner than places.
const LEAST_WORDS: u32 = if cfg!(all(loom, feature = "loom")) {
    1
} else {
    16
};

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
            ControlLaw::Paced => Law::Paced(PacedSettings::new()),
        };
        Self::build(law, start, places)
    }

    /// Creates a limiter of [`ControlLaw::Paced`] with `settings`.
    ///
    /// With a ceiling or an initial rate it limits from the start, with a full bucket. Remembers 65,536 open
    /// places.
    #[must_use]
    pub fn paced(settings: PacedSettings, start: Timestamp) -> Self {
        Self::build(Law::Paced(settings), start, OPEN_PLACES)
    }

    /// Creates a limiter of [`ControlLaw::Paced`] with `settings`, that remembers places given up while at most
    /// `places` are open: see [`with_open_places`](Self::with_open_places).
    #[must_use]
    pub fn paced_with_open_places(settings: PacedSettings, start: Timestamp, places: u32) -> Self {
        Self::build(Law::Paced(settings), start, places)
    }

    fn build(law: Law, start: Timestamp, places: u32) -> Self {
        let meter = Meter::new(start.as_nanos());
        let issued = BEGINNING.to_place().plus(GIVEN_UP.wrapping_mul(TOKEN));
        let words = places.div_ceil(32).clamp(LEAST_WORDS, 1 << 19) as usize;
        let window_end = match law {
            Law::Aws => meter.first_window_end(),
            Law::Paced(_) => 0, // the first response begins a window
        };
        let rate = Self {
            gate: CachePadded::new(Gate::new(window_end)),
            segments: Segments::new(BEGINNING, law.burst()),
            throttle: LastThrottle::new(),
            meter,
            issued: CachePadded::new(AtomicU64::new(issued.to_bits())),
            cancellations: Cancellations::new(issued, GIVEN_UP, words),
            start,
            law,
        };
        rate.limit_from_the_start();
        rate
    }

    /// Engages a limiter that is to limit from the start, with a full bucket.
    fn limit_from_the_start(&self) {
        let Law::Paced(settings) = self.law else {
            return;
        };
        let Some(initial) = settings.start() else {
            return;
        };
        self.gate.engage();
        let last = self.throttle.load();
        let next = last.next_with(0, started_at(&settings, initial).to_bits());
        let _ = self.throttle.replace(last, next);
        self.apply_throttle(0);
        let (_, line) = self.segments.read();
        let _ = self.issue(|issued| Ok::<_, Take>(issued.less(line.capacity())));
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
        if !self.gate.is_engaged() {
            return Ok(SendPermit::sent_at(now));
        }
        let elapsed = self.elapsed(now);
        let Some(line) = self.line(elapsed) else {
            return Ok(SendPermit::sent_at(now));
        };
        match self.take(&line, elapsed) {
            Take::Granted(_) => Ok(SendPermit::sent_at(now)),
            Take::Wait(nanos) => self.try_moved(now, elapsed, nanos),
        }
    }

    /// Tries once more if the law has moved the rate since it was last looked at. `nanos` is the wait otherwise.
    fn try_moved(&self, now: Timestamp, elapsed: u64, nanos: u64) -> Result<SendPermit, Duration> {
        if let Law::Aws = self.law {
            return Err(self.wait(now, nanos));
        }
        self.follow_curve(elapsed);
        let Some(line) = self.line(elapsed) else {
            return Ok(SendPermit::sent_at(now));
        };
        match self.take(&line, elapsed) {
            Take::Granted(_) => Ok(SendPermit::sent_at(now)),
            Take::Wait(nanos) => Err(self.wait(now, nanos)),
        }
    }

    /// Takes a place in line: first come, first served.
    ///
    /// While the limiter limits nothing there is no line: the reservation looks again when it is claimed.
    pub fn reserve(&self, now: Timestamp) -> Reservation<'_> {
        Reservation::new(self, self.queue_up(now))
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

    /// Returns the time since the start, as words hold it.
    pub(super) fn elapsed(&self, now: Timestamp) -> u64 {
        now.as_nanos()
            .saturating_sub(self.start.as_nanos())
            .min(LAST_TIME)
    }

    /// Returns the wait of `nanos` after `now`, or after the start if that is later.
    fn wait(&self, now: Timestamp, nanos: u64) -> Duration {
        Duration::from_nanos(nanos).saturating_add(self.start.saturating_since(now))
    }

    /// Takes a place in line, or none if the limiter limits nothing.
    pub(super) fn queue_up(&self, now: Timestamp) -> Turn {
        if !self.gate.is_engaged() {
            return Turn::Unlimited;
        }
        let elapsed = self.elapsed(now);
        let Some(line) = self.line(elapsed) else {
            return Turn::Unlimited;
        };
        let cancelled = self.cancellations.total();
        let place = self
            .issue(|issued| Ok::<_, Take>(line.settled(elapsed, issued, cancelled).plus(TOKEN)));
        self.retire(&line, elapsed);
        place.map_or(Turn::Unlimited, Turn::Placed)
    }

    /// Looks whether the turn of `place` has come; if not, returns the time until then.
    pub(super) fn check(&self, place: Place, now: Timestamp) -> Option<Duration> {
        let elapsed = self.elapsed(now);
        let nanos = match self.wait_for_place(place, elapsed)? {
            nanos if self.law.is_published() => nanos,
            _ => {
                // The law may have moved the rate since it was last looked at.
                self.follow_curve(elapsed);
                self.wait_for_place(place, elapsed)?
            }
        };
        Some(self.wait(now, nanos))
    }

    /// Returns the nanoseconds until the turn of `place`, or `None` if it has come.
    fn wait_for_place(&self, place: Place, elapsed: u64) -> Option<u64> {
        let line = self.line(elapsed)?;
        self.retire(&line, elapsed);
        let rank = place.less_tokens(self.cancellations.before(place));
        if line.is_paused() {
            return Some(self.wait_for_resumption(&line, elapsed, rank));
        }
        line.wait_for(elapsed, rank)
    }

    /// Returns the nanoseconds until the turn of the place at `rank`, from within a pause.
    fn wait_for_resumption(&self, line: &Line, elapsed: u64, rank: Place) -> u64 {
        let throttle = self.throttle.load();
        let left = throttle.since().saturating_sub(elapsed).max(1);
        let resumed = Line {
            minted: line.minted_at(elapsed),
            since: throttle.since(),
            rate: self.law.resumed(throttle),
            burst: line.burst,
        };
        resumed
            .wait_for(elapsed, rank)
            .map_or(left, |wait| wait.max(left))
    }

    /// Returns the current line, or `None` if the limiter limits nothing.
    fn line(&self, elapsed: u64) -> Option<Line> {
        loop {
            let (head, line) = self.segments.read();
            if head.rate() == Rate::ZERO {
                if !self.throttle.load().is_engaged() {
                    return None;
                }
                self.apply_throttle(elapsed);
            } else if line.is_too_long(elapsed) {
                self.change(head, elapsed, head.rate(), head.throttle());
            } else {
                return Some(line);
            }
        }
    }

    fn take(&self, line: &Line, elapsed: u64) -> Take {
        let cancelled = self.cancellations.total();
        let taken = self.issue(|issued| match line.take(elapsed, issued, cancelled) {
            Take::Granted(next) => Ok(next),
            wait @ Take::Wait(_) => Err(wait),
        });
        match taken {
            Ok(next) => Take::Granted(next),
            Err(_) if line.is_paused() => {
                // Relaxed, after `cancelled`: see `issue`.
                let issued = Place::from_bits(self.issued.load(Relaxed));
                let next = line.settled(elapsed, issued, cancelled).plus(TOKEN);
                Take::Wait(self.wait_for_resumption(line, elapsed, next.less_tokens(cancelled)))
            }
            Err(wait) => wait,
        }
    }

    /// Replaces the last token promised by what `step` makes of it, or returns the step's refusal.
    pub(super) fn issue<R>(&self, step: impl Fn(Place) -> Result<Place, R>) -> Result<Place, R> {
        // Relaxed throughout: the word is a chain of read-modify-writes, totally ordered by itself, and
        // publishes nothing. It was read after `cancelled`, whose acquire makes it at least as new.
        // Models: `send_rate::grants_never_exceed_what_was_minted`, `send_rate::live_places_never_run_backwards`.
        let mut seen = self.issued.load(Relaxed);
        loop {
            let next = step(Place::from_bits(seen))?;
            if next.to_bits() == seen {
                return Ok(next);
            }
            match self
                .issued
                .compare_exchange_weak(seen, next.to_bits(), Relaxed, Relaxed)
            {
                Ok(_) => return Ok(next),
                Err(actual) => seen = actual,
            }
        }
    }

    /// Returns the last token promised, less those given back.
    pub(super) fn last_rank(&self) -> Place {
        let cancelled = self.cancellations.total();
        // Relaxed, after `cancelled`: see `issue`.
        Place::from_bits(self.issued.load(Relaxed)).less_tokens(cancelled)
    }

    /// Retires the places that have come due by `elapsed`, as far as records vouch for that clock: a single wrong
    /// timestamp must not let the whole line go. Once half the ring is in use there is no choice.
    pub(super) fn retire(&self, line: &Line, elapsed: u64) {
        // Relaxed: an older value retires less, which only costs memory for a while.
        let issued = Place::from_bits(self.issued.load(Relaxed));
        let elapsed = if self.cancellations.is_half_full(issued) {
            elapsed
        } else {
            elapsed.min(self.gate.window_end().saturating_add(SKEW))
        };
        let minted = line.minted_at(elapsed).to_place();
        self.cancellations.retire(|given_up| {
            let due = minted.plus(given_up.wrapping_mul(TOKEN));
            if due.since(issued) > 0 { issued } else { due }
        });
    }
}

#[cfg(test)]
mod tests;
