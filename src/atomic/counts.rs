//! How often something happened that is not the rule, and what was so when somebody looked last.

use super::lazy::Lazy;
use super::padded::Padded;
use super::sync::{AtomicU64, Ordering::Relaxed};

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
pub(crate) struct Counts(Lazy<Padded<Words>>);

#[derive(Debug)]
struct Words {
    events: [AtomicU64; EVENTS],
    states: [AtomicU64; STATES],
}

impl Words {
    fn new() -> Padded<Self> {
        Padded::new(Self {
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
    #[cfg(all(test, feature = "std"))]
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
            // Relaxed: read-modify-writes of one word are totally ordered, so that of those who swap it one way exactly
            // one succeeds before it is swapped back; nothing else goes with it. Model: `counts::news_is_told_once`.
            word.load(Relaxed) == before
                && word
                    .compare_exchange(before, after, Relaxed, Relaxed)
                    .is_ok()
        })
    }
}

#[cfg(test)]
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

    #[cfg(feature = "std")]
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
}
