//! The small words: counts of events, settings, numbers, and who uses a scope.

use crossbeam_utils::CachePadded;

use super::lazy::Lazy;
use super::sync::{AtomicU64, Ordering::Relaxed, StaticU64};
#[cfg(any(feature = "scopes", all(loom, feature = "loom")))]
use super::sync::{
    AtomicU128,
    Ordering::{Acquire, Release},
};
#[cfg(any(feature = "scopes", all(loom, feature = "loom")))]
use crate::bits::Field;

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Granted,
    Delayed,
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

const EVENTS: usize = 11;

/// What is so or not, and announced when that changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum State {
    /// The quota refused last.
    Exhausted,
    /// The send rate limits.
    Limiting,
}

const STATES: usize = 2;

/// Counts that take no memory before the first event, and then lines that only events touch.
#[derive(Debug)]
pub(crate) struct Counts(Lazy<CachePadded<Words>>);

#[derive(Debug)]
struct Words {
    events: [AtomicU64; EVENTS],
    states: [AtomicU64; STATES],
}

impl Words {
    fn new() -> CachePadded<Self> {
        CachePadded::new(Self {
            events: core::array::from_fn(|_| AtomicU64::new(0)),
            states: core::array::from_fn(|_| AtomicU64::new(0)),
        })
    }
}

impl Counts {
    pub(crate) fn new() -> Self {
        Self(Lazy::new(Words::new))
    }

    /// Counts `event` once.
    pub(crate) fn one(&self, event: Event) {
        self.add(event, 1);
    }

    /// Counts `event` so many times. None touches nothing.
    pub(crate) fn add(&self, event: Event, times: u32) {
        if times == 0 {
            return;
        }
        if let Some(count) = self.0.get_or_make(Words::new).events.get(event as usize) {
            // Relaxed: a count that is only shown.
            count.fetch_add(u64::from(times), Relaxed);
        }
    }

    /// Returns how often `event` happened.
    pub(crate) fn get(&self, event: Event) -> u64 {
        let words = self.0.get();
        let count = words.and_then(|words| words.events.get(event as usize));
        // Relaxed: as above.
        count.map_or(0, |count| count.load(Relaxed))
    }

    /// Whether nothing has been counted or noted, so that nothing has been written.
    #[cfg(test)]
    pub(crate) fn is_untouched(&self) -> bool {
        self.0.get().is_none()
    }

    /// Tells whether `state` was so when it was noted last.
    #[cfg(feature = "tracing")]
    pub(crate) fn is(&self, state: State) -> bool {
        let words = self.0.get();
        let word = words.and_then(|words| words.states.get(state as usize));
        // Relaxed: a hint; `note` decides.
        word.is_some_and(|word| word.load(Relaxed) != 0)
    }

    /// Notes whether `state` is so, and tells whether that is news: to one caller for each change.
    pub(crate) fn note(&self, state: State, so: bool) -> bool {
        let words = match self.0.get() {
            None if !so => return false,
            None => self.0.get_or_make(Words::new),
            Some(words) => words,
        };
        let (before, after) = (u64::from(!so), u64::from(so));
        words.states.get(state as usize).is_some_and(|word| {
            // Relaxed: read-modify-writes of one word are totally ordered, so that of those who
            // swap it one way exactly one succeeds before it is swapped back; nothing
            // else goes with it. Model: `counts::news_is_told_once`.
            word.load(Relaxed) == before
                && word
                    .compare_exchange(before, after, Relaxed, Relaxed)
                    .is_ok()
        })
    }
}

/// One word that is replaced as a whole.
#[derive(Debug)]
pub(crate) struct Setting(AtomicU64);

impl Setting {
    pub(crate) fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    pub(crate) fn get(&self) -> u64 {
        // Relaxed, here and below: all that belongs together is in the one word, and nothing is
        // published with it. Who reads the old value goes by what held a moment sooner.
        self.0.load(Relaxed)
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
}

/// Consecutive numbers, each handed out once to whichever thread asks next.
#[derive(Debug)]
pub(crate) struct Sequence(StaticU64);

impl Sequence {
    /// Creates a sequence that begins with `first`.
    pub(crate) const fn starting_at(first: u64) -> Self {
        Self(StaticU64::new(first))
    }

    /// Returns the next number. After `u64::MAX` comes 0.
    pub(crate) fn next(&self) -> u64 {
        // Relaxed: read-modify-writes of one word are totally ordered at any ordering, which is all
        // that "once" needs; no other memory goes with the number.
        self.0.fetch_add(1, Relaxed)
    }
}

/// The largest value that any thread has set.
#[derive(Debug)]
pub(crate) struct Latest(AtomicU64);

impl Latest {
    pub(crate) fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    pub(crate) fn get(&self) -> u64 {
        // Relaxed: the word is all there is, and its values are seen by each thread in the order in
        // which they were set.
        self.0.load(Relaxed)
    }

    /// Sets `value` if it is larger, and returns the largest.
    pub(crate) fn raise(&self, value: u64) -> u64 {
        // Relaxed: as above. A read-modify-write, so that no late thread sets the word back.
        // Model: `latest::no_thread_sets_it_back`.
        self.0.fetch_max(value, Relaxed).max(value)
    }
}

/// A count of users that decides, in one word, whether a thing is used again or retired for good.
///
/// Bits 0 to 60 count the users. Bit 61 is set once, when the thing has its place in the store. Bit
/// 62 is set by every user that enters, and cleared by every look: with it a look notices a user
/// that has come and gone. Bit 63 is set once, when the thing is retired; then the count means
/// nothing.
///
/// At most one thread may be between [`look`](Self::look) and [`retire`](Self::retire).
#[cfg(any(feature = "scopes", all(loom, feature = "loom")))]
#[derive(Debug)]
pub(crate) struct Usage(AtomicU64);

#[cfg(any(feature = "scopes", all(loom, feature = "loom")))]
const RETIRED: u64 = 1 << 63;
#[cfg(any(feature = "scopes", all(loom, feature = "loom")))]
const TOUCHED: u64 = 1 << 62;
#[cfg(any(feature = "scopes", all(loom, feature = "loom")))]
const PLACED: u64 = 1 << 61;
#[cfg(any(feature = "scopes", all(loom, feature = "loom")))]
const USERS: u64 = PLACED.wrapping_sub(1);

#[cfg(any(feature = "scopes", all(loom, feature = "loom")))]
impl Usage {
    /// Creates the usage of a thing that has no place yet, and one user, who made it.
    #[must_use]
    pub(crate) fn entered() -> Self {
        Self(AtomicU64::new(1))
    }

    /// Begins to use the thing, or returns false if it has been retired.
    #[must_use]
    pub(crate) fn enter(&self) -> bool {
        // Relaxed, here and below: read-modify-writes of one word are totally ordered at any
        // ordering, so that either this comes before a retirement, which then fails, or
        // after it. The thing itself was published by the map.
        // Models: `usage::what_is_used_is_never_retired`,
        // `usage::whoever_has_been_there_is_noticed`.
        let before = self.0.fetch_add(1, Relaxed);
        if before & TOUCHED == 0 {
            // No look clears it before this user leaves.
            self.0.fetch_or(TOUCHED, Relaxed);
        }
        before & RETIRED == 0
    }

    /// Notes that the thing has its place, and returns true to the first caller.
    pub(crate) fn place(&self) -> bool {
        // Relaxed: ordered by the word of the places, see `Occupancy::take`.
        self.0.fetch_or(PLACED, Relaxed) & PLACED == 0
    }

    /// Whether it is noted that the thing has its place.
    #[must_use]
    pub(crate) fn is_placed(&self) -> bool {
        // Relaxed: as above.
        self.0.load(Relaxed) & PLACED != 0
    }

    /// Ends a use.
    pub(crate) fn leave(&self) {
        // Release, with the acquire of `look`: a retiring thread sees what a user did to the thing.
        // Model: `usage::what_a_user_did_is_seen_before_it_is_retired`.
        self.0.fetch_sub(1, Release);
    }

    /// Ends a use of a thing that got no place, and retires it if that was the last use. Returns
    /// whether it did.
    ///
    /// If the thing has its place by now, this only ends the use.
    #[must_use]
    pub(crate) fn leave_unplaced(&self) -> bool {
        let mut seen = self.0.load(Relaxed);
        loop {
            if seen & PLACED != 0 {
                self.leave();
                return false;
            }
            let last = seen & USERS == 1;
            let next = if last { RETIRED } else { seen.wrapping_sub(1) };
            // Relaxed: no user has done anything to a thing without a place.
            // Model: `usage::what_has_its_place_is_not_withdrawn`.
            match self.0.compare_exchange(seen, next, Relaxed, Relaxed) {
                Ok(_) => return last,
                Err(actual) => seen = actual,
            }
        }
    }

    /// Looks whether the thing is unused: `None` if it is in use, retired or without a place, else
    /// whether it was used since the last look.
    ///
    /// From then on the thing's state can be read, and [`retire`](Self::retire) fails if it may
    /// have changed.
    #[must_use]
    pub(crate) fn look(&self) -> Option<bool> {
        // Acquire: see `leave`; in both places, as a user may have come and gone between them.
        // Models: those of `leave` and `enter`, and `usage::what_its_maker_did_is_seen_too`.
        let seen = self.0.load(Acquire);
        if seen & !TOUCHED != PLACED {
            return None;
        }
        if seen == PLACED {
            return Some(false);
        }
        let cleared = self
            .0
            .compare_exchange(seen, PLACED, Acquire, Relaxed)
            .is_ok();
        cleared.then_some(true)
    }

    /// Retires the thing for good, or returns false if a user has entered since the look.
    #[must_use]
    pub(crate) fn retire(&self) -> bool {
        // Relaxed: what there is to see was seen by `look`.
        self.0
            .compare_exchange(PLACED, PLACED | RETIRED, Relaxed, Relaxed)
            .is_ok()
    }

    /// Retires the thing whatever has been done to it, unless it is in use, retired or without a
    /// place. Any thread may, at any time.
    #[must_use]
    pub(crate) fn retire_unlooked(&self) -> bool {
        let seen = self.0.load(Relaxed);
        seen & !TOUCHED == PLACED
            && self
                .0
                .compare_exchange(seen, PLACED | RETIRED, Relaxed, Relaxed)
                .is_ok()
    }

    /// Whether it has been retired. That never ends.
    #[must_use]
    pub(crate) fn is_retired(&self) -> bool {
        // Relaxed: the bit is all there is to know.
        self.0.load(Relaxed) & RETIRED != 0
    }

    /// Whether it is in use at the moment.
    #[must_use]
    pub(crate) fn is_used(&self) -> bool {
        let seen = self.0.load(Relaxed);
        seen & RETIRED == 0 && seen & USERS != 0
    }
}

/// The places of a bounded store, and counts of what happened for want of one.
///
/// One word holds how many places are taken, and which thing took the last one. A thing takes its
/// place by one swap that counts it and names it, so that any thread can finish what the one that
/// stops after it has left: note at the thing that it has its place, before another name takes the
/// place of its own. No thing takes two places, whichever threads take one for it.
#[cfg(any(feature = "scopes", all(loom, feature = "loom")))]
#[derive(Debug)]
pub(crate) struct Occupancy {
    taken: AtomicU128,
    most: u64,
    evicted: AtomicU64,
    refused: AtomicU64,
}

/// The places taken, and which thing took the last one. Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 64 | the number of places |
/// | 64 | the thing's number; 0 before the first |
#[cfg(any(feature = "scopes", all(loom, feature = "loom")))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken(u128);

#[cfg(any(feature = "scopes", all(loom, feature = "loom")))]
impl Taken {
    const COUNT: Field = Field::lowest(64);
    const LAST: Field = Self::COUNT.above(64);

    fn new(count: u64, last: u64) -> Self {
        Self(Self::COUNT.put(count) | Self::LAST.put(last))
    }

    pub(crate) fn count(self) -> u64 {
        Self::COUNT.get(self.0)
    }

    pub(crate) fn last(self) -> u64 {
        Self::LAST.get(self.0)
    }
}

#[cfg(any(feature = "scopes", all(loom, feature = "loom")))]
impl Occupancy {
    /// Creates the occupancy of `most` places, all free.
    pub(crate) fn new(most: u64) -> Self {
        Self {
            taken: AtomicU128::new(0),
            most,
            evicted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Returns the places taken.
    pub(crate) fn taken(&self) -> Taken {
        // Acquire, with the release of `take`: what is noted at all things named before the last
        // one is seen. Model: `occupancy::a_thing_takes_one_place`.
        Taken(self.taken.load(Acquire))
    }

    /// Whether no place is free.
    pub(crate) fn is_full(&self, taken: Taken) -> bool {
        taken.count() >= self.most
    }

    /// Takes a place for the thing with `number`, or returns false if `seen` is out of date or
    /// full.
    ///
    /// Numbers are given out once. After `seen` was loaded, and before this call, the caller has to
    /// see that the thing has no place, and that the place of the last one is noted.
    pub(crate) fn take(&self, seen: Taken, number: u64) -> bool {
        let next = Taken::new(seen.count().saturating_add(1), number);
        // Release: see `taken`. A word never comes back: a name comes once, and the count falls
        // until the next one. Models: `occupancy::a_thing_takes_one_place`,
        // `occupancy::two_things_never_share_a_place`.
        !self.is_full(seen)
            && self
                .taken
                .compare_exchange(seen.0, next.0, Release, Relaxed)
                .is_ok()
    }

    /// Gives a place back.
    pub(crate) fn give_back(&self) {
        // Relaxed: it notes nothing, and a swap in between takes nothing from the release of
        // `take`. Model: `occupancy::no_place_is_lost`.
        let mut seen = Taken(self.taken.load(Relaxed));
        loop {
            let next = Taken::new(seen.count().saturating_sub(1), seen.last());
            match self
                .taken
                .compare_exchange(seen.0, next.0, Relaxed, Relaxed)
            {
                Ok(_) => return,
                Err(actual) => seen = Taken(actual),
            }
        }
    }

    /// Counts a thing that was dropped.
    pub(crate) fn note_eviction(&self) {
        // Relaxed, here and below: counts that are shown.
        self.evicted.fetch_add(1, Relaxed);
    }

    /// Counts a caller that got no place.
    pub(crate) fn note_refusal(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    pub(crate) const fn most(&self) -> u64 {
        self.most
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_apart_and_nothing_is_made_for_none() {
        let counts = Counts::new();
        counts.add(Event::Credited, 0);
        assert!(!counts.note(State::Limiting, false));
        assert_eq!(counts.get(Event::Granted), 0);
        assert!(counts.0.get().is_none(), "no memory yet");
        counts.one(Event::Granted);
        counts.add(Event::Credited, 14);
        let seen = [Event::Granted, Event::Delayed, Event::Credited].map(|event| counts.get(event));
        assert_eq!(seen, [1, 0, 14]);
    }

    #[test]
    fn a_change_of_state_is_news_once() {
        let counts = Counts::new();
        let news =
            [false, true, true, false, false, true].map(|so| counts.note(State::Exhausted, so));
        assert_eq!(news, [false, true, false, true, false, true]);
        assert!(!counts.note(State::Limiting, false), "the other is another");
        assert!(counts.note(State::Limiting, true));
    }

    #[test]
    fn of_many_threads_one_has_the_news() {
        let counts = Counts::new();
        let news = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| u32::from(counts.note(State::Limiting, true))))
                .collect();
            threads
                .into_iter()
                .filter_map(|thread| thread.join().ok())
                .sum::<u32>()
        });
        assert_eq!(news, 1);
    }

    #[cfg(feature = "scopes")]
    #[test]
    fn what_is_used_is_not_retired_and_what_is_retired_is_not_used() {
        let usage = Usage::entered();
        assert!(usage.place() && !usage.place());
        assert!(usage.is_used());
        assert_eq!(usage.look(), None);
        assert!(!usage.retire() && !usage.retire_unlooked());
        assert!(usage.enter());
        usage.leave();
        assert!(usage.is_used(), "one of two has left");
        usage.leave();
        assert!(!usage.is_used());
        assert_eq!(usage.look(), Some(true), "somebody had entered");
        assert_eq!(usage.look(), Some(false), "nobody since");
        assert!(usage.retire());
        assert!(usage.is_retired() && !usage.is_used());
        assert!(!usage.enter() && !usage.enter());
        assert!(usage.is_retired() && !usage.is_used());
        assert_eq!(usage.look(), None);
        assert!(!usage.retire() && !usage.retire_unlooked());
    }

    #[cfg(feature = "scopes")]
    #[test]
    fn who_comes_and_goes_between_the_look_and_the_retirement_prevents_it() {
        let usage = Usage::entered();
        assert!(usage.place() && !usage.place());
        usage.leave();
        assert_eq!(usage.look(), Some(false), "its maker does not count");
        assert!(usage.enter());
        usage.leave();
        assert!(!usage.retire());
        assert!(usage.retire_unlooked(), "whatever was done to it");
    }
}
