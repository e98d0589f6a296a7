//! The small words: counts of events, conditions, and droughts.

use crate::seam::sync::{AtomicU64, AtomicU128, Ordering::Relaxed};
use crate::seam::{Lazy, Padded};

/// A kind of counted event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tally {
    Granted,
    Delayed,
    DelayedBackground,
    RefusedAttempts,
    RefusedSafety,
    RefusedQuota,
    RefusedTime,
    RefusedOther,
    RefusedSend,
    Throttled,
    Cut,
    Credited,
}

/// A condition whose changes are announced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Condition {
    /// The quota refused the last retry.
    Exhausted,
    /// The send rate limits requests.
    Limiting,
    /// A send rate obeys declared limits, but has received none.
    Unheard,
    /// A background request has waited.
    Classes,
}

impl Condition {
    const fn bit(self) -> u64 {
        1 << self as u32
    }
}

/// Counts that take no memory before the first event. Later only events touch their cache lines.
#[derive(Debug)]
pub(crate) struct Counts(Lazy<Padded<Words>>);

#[derive(Debug)]
struct Words {
    /// One for each [`Tally`].
    tallies: [AtomicU64; 12],
    /// A bit for each [`Condition`].
    states: AtomicU64,
    /// The time in nanoseconds from which a refused send is announced again.
    due: AtomicU64,
    /// The time in nanoseconds when a retry was last paid for.
    paid: AtomicU64,
}

impl Words {
    fn new() -> Padded<Self> {
        Padded::new(Self {
            tallies: core::array::from_fn(|_| AtomicU64::new(0)),
            states: AtomicU64::new(0),
            due: AtomicU64::new(0),
            paid: AtomicU64::new(0),
        })
    }
}

impl Counts {
    pub(crate) fn new() -> Self {
        Self(Lazy::new(Words::new))
    }

    /// Counts `tally` once.
    pub(crate) fn one(&self, tally: Tally) {
        self.add(tally, 1);
    }

    /// Adds `times` to `tally`. Zero touches nothing.
    pub(crate) fn add(&self, tally: Tally, times: u32) {
        if times == 0 {
            return;
        }
        if let Some(count) = self.0.get_or_make(Words::new).tallies.get(tally as usize) {
            // Relaxed: a count that is only shown.
            count.fetch_add(u64::from(times), Relaxed);
        }
    }

    /// Returns how often `tally` was counted.
    pub(crate) fn get(&self, tally: Tally) -> u64 {
        let words = self.0.get();
        let count = words.and_then(|words| words.tallies.get(tally as usize));
        // Relaxed: as above.
        count.map_or(0, |count| count.load(Relaxed))
    }

    /// Returns `true` if nothing has been counted or noted.
    #[cfg(test)]
    pub(crate) fn is_untouched(&self) -> bool {
        self.0.get().is_none()
    }

    /// Returns `true` if `state` held when it was noted last.
    pub(crate) fn is(&self, state: Condition) -> bool {
        // Relaxed: a hint; `note` decides.
        let states = self.0.get().map(|words| words.states.load(Relaxed));
        states.is_some_and(|states| states & state.bit() != 0)
    }

    /// Notes whether `state` holds. Returns `true` to one caller for each change.
    pub(crate) fn note(&self, state: Condition, so: bool) -> bool {
        if self.is(state) == so {
            return false;
        }
        let states = &self.0.get_or_make(Words::new).states;
        // Relaxed: read-modify-writes of one word are totally ordered, so of the threads that make
        // the same change exactly one finds the old bit. The bit publishes no other data. Models:
        // `counts::news_is_told_once`, `counts::of_two_states_neither_is_lost`.
        let before = if so {
            states.fetch_or(state.bit(), Relaxed)
        } else {
            states.fetch_and(!state.bit(), Relaxed)
        };
        (before & state.bit() == 0) == so
    }

    /// Returns `true` to one caller in each `span` of nanoseconds, by the callers' time `now`.
    pub(crate) fn is_due(&self, now: u64, span: u64) -> bool {
        let word = &self.0.get_or_make(Words::new).due;
        let (due, next) = (word.load(Relaxed), now.saturating_add(span));
        // Relaxed: as above. Model: `counts::a_time_is_due_once`.
        now >= due && word.compare_exchange(due, next, Relaxed, Relaxed).is_ok()
    }

    /// Notes that a retry was paid for at `now`.
    pub(crate) fn paid(&self, now: u64) {
        // Relaxed, here and below: the word publishes no other data. Of two stores at once either
        // may stay.
        self.0.get_or_make(Words::new).paid.store(now, Relaxed);
    }

    /// Returns when a retry was last paid for; 0 if none was.
    pub(crate) fn paid_at(&self) -> u64 {
        self.0.get().map_or(0, |words| words.paid.load(Relaxed))
    }
}

/// Returns the low and the high half of a word.
#[expect(clippy::cast_possible_truncation, reason = "64 bits are kept")]
pub(crate) const fn halves(word: u128) -> (u64, u64) {
    (word as u64, (word >> 64) as u64)
}

/// Returns the word of these halves.
pub(crate) const fn whole(low: u64, high: u64) -> u128 {
    (high as u128) << 64 | low as u128
}

/// How long requests have been tried and nothing delivered. Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 64 | when the first throttle came after the last delivery, in nanoseconds, and one more; 0 if none came |
/// | 64 | when the last throttle came |
///
/// | call | before | after |
/// |---|---|---|
/// | `throttled` | zero, or the last throttle is longer ago than `longest` | dry since now |
/// | `throttled` | dry | dry since then, with a later last throttle |
/// | `resumed` | dry, and the last throttle is longer ago than `longest` | dry since now |
/// | `delivered` | any | zero |
#[derive(Debug)]
pub(crate) struct Drought(AtomicU128);

/// Makes a word from the times of the first and of the last throttle. `u64::MAX` counts as a
/// nanosecond earlier.
const fn dry(since: u64, latest: u64) -> u128 {
    whole(since.saturating_add(1), latest)
}

/// Returns the times of the first and of the last throttle, or `None` for zero.
fn read(word: u128) -> Option<(u64, u64)> {
    let (since, latest) = halves(word);
    Some((since.checked_sub(1)?, latest))
}

// Relaxed throughout: the word publishes no other data. Each change swaps the whole word, so a
// throttle never continues a drought that a delivery has ended. Model:
// `drought::a_delivery_ends_what_came_before_it`.
impl Drought {
    pub(crate) fn new() -> Self {
        Self(AtomicU128::new(0))
    }

    /// Notes a throttle at `now`, and returns the nanoseconds since the first throttle. After a
    /// silence of more than `longest` the drought begins anew, since nothing was tried.
    pub(crate) fn throttled(&self, now: u64, longest: u64) -> u64 {
        loop {
            let seen = self.0.load(Relaxed);
            let before = read(seen).filter(|(_, latest)| now.saturating_sub(*latest) <= longest);
            let (since, latest) = before.unwrap_or((now, now));
            if self.swap(seen, dry(since, latest.max(now))) {
                return now.saturating_sub(since);
            }
        }
    }

    /// Notes a request that begins to wait at `now`. After a silence of more than `longest` the
    /// drought begins anew.
    pub(crate) fn resumed(&self, now: u64, longest: u64) {
        let seen = self.0.load(Relaxed);
        if read(seen).is_some_and(|(_, latest)| now.saturating_sub(latest) > longest) {
            // One try is enough. A failure means that a throttle has renewed the drought, or a
            // delivery ended it.
            self.swap(seen, dry(now, now));
        }
    }

    /// Notes a delivery.
    #[inline]
    pub(crate) fn delivered(&self) {
        let mut seen = self.0.load(Relaxed);
        while seen != 0 && !self.swap(seen, 0) {
            seen = self.0.load(Relaxed);
        }
    }

    /// Returns the nanoseconds from the first throttle to `now`, or `None` without a throttle since
    /// the last delivery.
    pub(crate) fn length(&self, now: u64) -> Option<u64> {
        let (since, _) = read(self.0.load(Relaxed))?;
        Some(now.saturating_sub(since))
    }

    fn swap(&self, seen: u128, next: u128) -> bool {
        self.0
            .compare_exchange(seen, next, Relaxed, Relaxed)
            .is_ok()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn tallies_are_counted_apart_and_nothing_is_made_for_none() {
        let counts = Counts::new();
        counts.add(Tally::Credited, 0);
        assert!(!counts.note(Condition::Limiting, false));
        assert_eq!(counts.get(Tally::Granted), 0);
        assert!(counts.0.get().is_none(), "no memory yet");
        counts.one(Tally::Granted);
        counts.add(Tally::Credited, 14);
        let seen = [Tally::Granted, Tally::Delayed, Tally::Credited].map(|tally| counts.get(tally));
        assert_eq!(seen, [1, 0, 14]);
    }

    #[test]
    fn a_change_of_state_is_news_once() {
        let counts = Counts::new();
        let news =
            [false, true, true, false, false, true].map(|so| counts.note(Condition::Exhausted, so));
        assert_eq!(news, [false, true, false, true, false, true]);
        assert!(
            !counts.note(Condition::Limiting, false),
            "the other is another"
        );
        assert!(counts.note(Condition::Limiting, true));
    }

    #[test]
    #[cfg_attr(target_family = "wasm", ignore = "needs threads")]
    fn of_many_threads_one_has_the_news() {
        let counts = Counts::new();
        let news = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| u32::from(counts.note(Condition::Limiting, true))))
                .collect();
            threads
                .into_iter()
                .filter_map(|thread| thread.join().ok())
                .sum::<u32>()
        });
        assert_eq!(news, 1);
    }

    #[test]
    fn a_state_is_as_it_was_noted_last() {
        let counts = Counts::new();
        assert!(!counts.is(Condition::Limiting));
        assert!(counts.note(Condition::Exhausted, true));
        assert!(counts.is(Condition::Exhausted) && !counts.is(Condition::Limiting));
    }

    #[test]
    fn a_drought_goes_on_over_a_silence_of_the_longest_length() {
        let drought = Drought::new();
        let lengths = [3, 13, 24].map(|now| drought.throttled(now, 10));
        assert_eq!(lengths, [0, 10, 0]);
    }

    #[test]
    fn a_request_that_comes_after_a_silence_begins_it_anew() {
        let drought = Drought::new();
        drought.resumed(5, 10);
        assert_eq!(drought.length(5), None, "there was no throttle");
        drought.throttled(10, 10);
        drought.resumed(20, 10);
        assert_eq!(drought.length(20), Some(10));
        drought.resumed(21, 10);
        assert_eq!(drought.length(23), Some(2));
    }
}
