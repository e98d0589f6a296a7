//! The line of tokens of a limiter that limits: who may go, and who has to wait for how long.

use core::ops::Deref;
use core::time::Duration;

use super::bits::LAST_TIME;
use super::cancellations::Cancellations;
use super::delivery::LastMark;
use super::followed::Followed;
use super::gate::Gate;
use super::law::Law;
use super::meter::Meter;
use super::padded::Padded;
use super::permit::SendPermit;
use super::segments::Segments;
use super::sync::{AtomicU64, Ordering::Relaxed};
use super::throttle::LastThrottle;
use crate::Timestamp;
use crate::fixed::Rate;
use crate::line::{Level, Line, Minted, Place, SKEW, TOKEN};
use crate::meter::Windows;

/// The words that a limiter needs once it limits; before its first throttle it has none.
#[derive(Debug)]
pub(super) struct Limit {
    pub(super) segments: Segments,
    pub(super) throttle: LastThrottle,
    /// Of the paced law.
    pub(super) mark: LastMark,
    pub(super) followed: Followed,
    pub(super) cancellations: Cancellations,
    /// The last token promised. Every limited request writes it, so it has a line of its own.
    pub(super) issued: Padded<AtomicU64>,
    #[cfg(feature = "wake")]
    pub(super) waiters: super::waiters::Waiters,
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

impl Limit {
    /// Creates the words of a line that mints nothing, for buckets that hold `burst` nanoseconds at their rate, and
    /// `places` open places.
    pub(super) fn new(burst: u64, places: u32) -> Self {
        let issued = BEGINNING.to_place().plus(GIVEN_UP.wrapping_mul(TOKEN));
        let words = places.div_ceil(32).clamp(LEAST_WORDS, 1 << 19) as usize;
        Self {
            segments: Segments::new(BEGINNING, burst),
            throttle: LastThrottle::new(),
            mark: LastMark::new(),
            followed: Followed::new(),
            cancellations: Cancellations::new(issued, GIVEN_UP, words),
            issued: Padded::new(AtomicU64::new(issued.to_bits())),
            #[cfg(feature = "wake")]
            waiters: super::waiters::Waiters::new(),
        }
    }
}

/// A limiter that limits, or is about to: its words, and those that it has from the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limited<'a> {
    pub(super) limit: &'a Limit,
    pub(super) gate: &'a Gate,
    pub(super) meter: &'a Meter,
    pub(super) windows: Windows,
    pub(super) law: &'a Law,
    pub(super) start: Timestamp,
}

impl Deref for Limited<'_> {
    type Target = Limit;

    fn deref(&self) -> &Limit {
        self.limit
    }
}

impl Limited<'_> {
    /// Takes a token, or returns the wait.
    #[inline]
    pub(super) fn try_acquire(&self, now: Timestamp) -> Result<SendPermit, Duration> {
        let elapsed = self.elapsed(now);
        let (head, line) = self.segments.read();
        let level = line.level(elapsed).filter(|_| head.rate() != Rate::ZERO);
        match level.map(|level| self.try_take(level)) {
            Some(Ok(_)) => Ok(SendPermit::sent_at(now)),
            Some(Err((issued, cancelled))) if self.is_final(&line, elapsed) => {
                Err(self.wait(now, line.wait_for_next(elapsed, issued, cancelled)))
            }
            _ => self.try_again(now, elapsed),
        }
    }

    /// Takes up to `most` tokens, at least one, or returns the wait.
    pub(super) fn try_acquire_up_to(&self, now: Timestamp, most: u32) -> Result<u32, Duration> {
        let elapsed = self.elapsed(now);
        let (head, line) = self.segments.read();
        let level = line.level(elapsed).filter(|_| head.rate() != Rate::ZERO);
        let taken = level.and_then(|level| self.try_take_up_to(level, most));
        match taken {
            Some(taken) => Ok(taken),
            None => self.try_again(now, elapsed).map(|_| 1),
        }
    }

    fn try_take_up_to(&self, level: Level, most: u32) -> Option<u32> {
        let cancelled = self.cancellations.total();
        let mut taken = 0;
        self.issue(|issued| {
            let (next, tokens) = level.take_up_to(issued, cancelled, most).ok_or(())?;
            taken = tokens;
            Ok::<_, ()>(next)
        })
        .ok()
        .map(|_| taken)
    }

    /// Whether a take from `line` that failed would fail again.
    fn is_final(&self, line: &Line, elapsed: u64) -> bool {
        !line.is_paused() && (self.law.is_published() || self.is_followed(elapsed))
    }

    /// Tries with all that may be in the way: a throttle that has yet to take effect, a curve that has moved, a clamp
    /// that has to be written down, a pause.
    #[inline(never)]
    fn try_again(&self, now: Timestamp, elapsed: u64) -> Result<SendPermit, Duration> {
        let granted = Ok(SendPermit::sent_at(now));
        let Some(nanos) = self.take(elapsed) else {
            return granted;
        };
        if self.law.is_published() || self.is_followed(elapsed) {
            return Err(self.wait(now, nanos));
        }
        // The law may have moved the rate since it was last looked at.
        self.follow_curve(elapsed);
        self.take(elapsed)
            .map_or(granted, |nanos| Err(self.wait(now, nanos)))
    }

    /// Returns the time since the start, as words hold it.
    pub(super) fn elapsed(&self, now: Timestamp) -> u64 {
        elapsed(self.start, now)
    }

    /// Returns the wait of `nanos` after `now`, or after the start if that is later.
    pub(super) fn wait(&self, now: Timestamp, nanos: u64) -> Duration {
        let early = self.start.as_nanos().saturating_sub(now.as_nanos());
        Duration::from_nanos(nanos.saturating_add(early))
    }

    /// Looks whether the turn of `place` has come; if not, returns the time until then.
    pub(super) fn check(&self, place: Place, now: Timestamp) -> Option<Duration> {
        let nanos = self.nanos_until(place, self.elapsed(now))?;
        Some(self.wait(now, nanos))
    }

    /// Returns the nanoseconds until the turn of `place`, after a look at the law; `None` if it has come.
    pub(super) fn nanos_until(&self, place: Place, elapsed: u64) -> Option<u64> {
        let nanos = self.wait_for_place(place, elapsed)?;
        if self.law.is_published() || self.is_followed(elapsed) {
            return Some(nanos);
        }
        // The law may have moved the rate since it was last looked at.
        self.follow_curve(elapsed);
        self.wait_for_place(place, elapsed)
    }

    /// Returns the nanoseconds until the turn of `place`, or `None` if it has come.
    fn wait_for_place(&self, place: Place, elapsed: u64) -> Option<u64> {
        let line = self.line(elapsed)?;
        self.retire(&line, elapsed);
        let rank = place.less_tokens(self.cancellations.before(place));
        self.wait_of(&line, elapsed, rank)
    }

    /// Returns the nanoseconds until `line`, or the one after its pause, reaches `rank`; `None` if it has.
    pub(super) fn wait_of(&self, line: &Line, elapsed: u64, rank: Place) -> Option<u64> {
        if line.is_paused() {
            return Some(self.wait_for_resumption(line, elapsed, rank));
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
    pub(super) fn line(&self, elapsed: u64) -> Option<Line> {
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

    #[inline]
    fn try_take(&self, level: Level) -> Result<Place, (Place, u64)> {
        let cancelled = self.cancellations.total();
        self.issue(|issued| level.take(issued, cancelled).ok_or((issued, cancelled)))
    }

    /// Takes a token if there is one or nothing is limited; else returns the nanoseconds until there is.
    fn take(&self, elapsed: u64) -> Option<u64> {
        loop {
            let line = self.line(elapsed)?;
            // One that is too long has just been started anew.
            let Some(level) = line.level(elapsed) else {
                continue;
            };
            let Err((issued, cancelled)) = self.try_take(level) else {
                return None;
            };
            if !line.is_paused() {
                return Some(line.wait_for_next(elapsed, issued, cancelled));
            }
            let next = line.settled(elapsed, issued, cancelled).plus(TOKEN);
            let rank = next.less_tokens(cancelled);
            return Some(self.wait_for_resumption(&line, elapsed, rank));
        }
    }

    /// Replaces the last token promised by what `step` makes of it, or returns the step's refusal.
    pub(super) fn issue<R>(
        &self,
        mut step: impl FnMut(Place) -> Result<Place, R>,
    ) -> Result<Place, R> {
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

    /// Returns how many tokens are promised that `line` has not minted at `elapsed`, counting one that is begun.
    pub(super) fn waiting(&self, line: &Line, elapsed: u64) -> u64 {
        let ahead = self.last_rank().since(line.minted_at(elapsed).to_place());
        u64::try_from(ahead).map_or(0, |ahead| ahead.div_ceil(TOKEN))
    }

    /// Returns the tokens in the bucket of `line` at `elapsed`, with 64 fraction bits.
    pub(super) fn available(&self, line: &Line, elapsed: u64) -> u128 {
        let cancelled = self.cancellations.total();
        // Relaxed, after `cancelled`: see `issue`.
        let issued = Place::from_bits(self.issued.load(Relaxed));
        line.available(elapsed, issued, cancelled)
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

/// Returns the time from `start` to `now`, as words hold it.
pub(super) fn elapsed(start: Timestamp, now: Timestamp) -> u64 {
    now.as_nanos()
        .saturating_sub(start.as_nanos())
        .min(LAST_TIME)
}
