//! What the models look at that the public types make no room for: only under `--cfg loom`.

use super::cells::{self, Condition, Counts};
use super::counter::{NUMBER, Slots, Stripes};
use super::multi_word::MultiWord;
use super::send_rate::head::LineWords;
use super::usage;
use crate::line::{Minted, Place};

/// The numbers of threads.
#[derive(Debug)]
pub struct Numbers(Slots);

impl Numbers {
    /// Creates the numbers, all of them free.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "as the one it stands for")]
    pub fn new() -> Self {
        Self(Slots::new())
    }

    /// Takes the lowest free number.
    #[must_use]
    pub fn take(&self) -> Option<usize> {
        self.0.take()
    }

    /// Takes `number`, or returns false if it is taken.
    #[must_use]
    pub fn take_this(&self, number: usize) -> bool {
        self.0.take_this(number)
    }

    /// Gives `number` back.
    pub fn give_back(&self, number: usize) {
        self.0.give_back(number);
    }
}

/// Lets the calling thread have `number`, by which it finds the words that are its own.
pub fn go_by(number: usize) {
    NUMBER.with(|own| own.set(number));
}

/// What is so or not.
#[cfg(feature = "std")]
#[derive(Debug)]
pub struct News(Counts);

#[cfg(feature = "std")]
impl News {
    /// Creates one that is not so.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "as the one it stands for")]
    pub fn new() -> Self {
        Self(Counts::new())
    }

    /// Notes whether it is so. Returns `true` if that is news.
    #[must_use]
    pub fn note(&self, so: bool) -> bool {
        self.0.note(Condition::Limiting, so)
    }
}

/// A count in stripes.
#[derive(Debug)]
pub struct Count(Stripes);

impl Count {
    /// Creates a count of zero.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "as the one it stands for")]
    pub fn new() -> Self {
        Self(Stripes::new(0))
    }

    /// Adds one, for the thread with `number`.
    pub fn add_one_as(&self, number: usize) {
        self.0.add_as(number, 1);
    }

    /// Returns the sum.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0.sum()
    }
}

/// Who uses a thing that is dropped when it is unused.
#[cfg(feature = "std")]
#[derive(Debug)]
pub struct Usage(usage::Usage);

#[cfg(feature = "std")]
impl Usage {
    /// Creates the usage of a thing that has no place yet, and one user, who made it.
    #[must_use]
    pub fn entered() -> Self {
        Self(usage::Usage::entered())
    }

    /// Notes that the thing has its place, and returns true to the first caller.
    #[must_use]
    pub fn place(&self) -> bool {
        self.0.place()
    }

    /// Returns `true` if it is noted that the thing has its place.
    #[must_use]
    pub fn is_placed(&self) -> bool {
        self.0.is_placed()
    }

    /// Ends a use of a thing without a place, and retires it if that was the last.
    #[must_use]
    pub fn leave_unplaced(&self) -> bool {
        self.0.leave_unplaced()
    }

    /// Begins to use the thing, or returns false if it has been retired.
    #[must_use]
    pub fn enter(&self) -> bool {
        self.0.enter()
    }

    /// Ends a use.
    pub fn leave(&self) {
        self.0.leave();
    }

    /// Returns `None` if the thing is in use or retired, else whether it was used since the last
    /// look.
    #[must_use]
    pub fn look(&self) -> Option<bool> {
        self.0.look()
    }

    /// Retires the thing, or returns false if it was used since the look.
    #[must_use]
    pub fn retire(&self) -> bool {
        self.0.retire()
    }

    /// Retires the thing unless it is in use or retired.
    #[must_use]
    pub fn retire_unlooked(&self) -> bool {
        self.0.retire_unlooked()
    }

    /// Returns `true` if it has been retired.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        self.0.is_retired()
    }

    /// Returns `true` if it is in use.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.0.is_used()
    }
}

/// The places of a bounded store.
#[cfg(feature = "std")]
#[derive(Debug)]
pub struct Places(usage::Occupancy);

#[cfg(feature = "std")]
impl Places {
    /// Creates `most` places, all free.
    #[must_use]
    pub fn new(most: u64) -> Self {
        Self(usage::Occupancy::new(most))
    }

    /// Takes a place for the thing with `number`, unless it has one or there is none, as a store
    /// does. `is_placed` says whether it is noted that the thing has its place, and `place`
    /// notes it of any thing.
    pub fn place(&self, number: u64, is_placed: impl Fn() -> bool, place: impl Fn(u64)) -> bool {
        loop {
            let seen = self.0.taken();
            if seen.last() == number || is_placed() {
                place(number);
                return true;
            }
            if self.0.is_full(seen) {
                self.0.note_refusal();
                return false;
            }
            place(seen.last());
            self.0.take(seen, number);
        }
    }

    /// Gives a place back.
    pub fn give_back(&self) {
        self.0.note_eviction();
        self.0.give_back();
    }

    /// Returns the places taken, those given back, the calls refused, and the places there are.
    #[must_use]
    pub fn counts(&self) -> [u64; 4] {
        let places = &self.0;
        [
            places.taken().count(),
            places.evicted(),
            places.refused(),
            places.most(),
        ]
    }
}

/// How long nothing has been delivered.
#[cfg(feature = "std")]
#[derive(Debug)]
pub struct Drought(cells::Drought);

#[cfg(feature = "std")]
impl Drought {
    /// Creates a word without a throttle.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "as the one it stands for")]
    pub fn new() -> Self {
        Self(cells::Drought::new())
    }

    /// Notes a throttle, and returns the time since the first one.
    #[must_use]
    pub fn throttled(&self, now: u64, longest: u64) -> u64 {
        self.0.throttled(now, longest)
    }

    /// Notes a request that begins to wait.
    pub fn resumed(&self, now: u64, longest: u64) {
        self.0.resumed(now, longest);
    }

    /// Notes a delivery.
    pub fn delivered(&self) {
        self.0.delivered();
    }

    /// Returns the time from the first throttle to `now`.
    #[must_use]
    pub fn length(&self, now: u64) -> Option<u64> {
        self.0.length(now)
    }
}

/// A value of two words that is replaced as a whole.
#[derive(Debug)]
pub struct Pair(MultiWord<2>);

impl Pair {
    /// Creates the pair of zeros.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "as the one it stands for")]
    pub fn new() -> Self {
        Self(MultiWord::new([0, 0]))
    }

    /// Returns both words.
    #[must_use]
    pub fn read(&self) -> [u64; 2] {
        self.0.read().words
    }

    /// Adds one to each word, unless another thread replaces the pair meanwhile.
    #[must_use]
    pub fn step(&self) -> bool {
        let read = self.0.read();
        let next = read.words.map(|word| word.wrapping_add(1));
        self.0.replace(&read, next)
    }

    /// Takes a ticket and writes the first word, as a thread that stops then.
    pub fn stop_within(&self) {
        self.0.write_first(&self.0.read(), u64::MAX);
    }
}

/// The time of the last change of a line.
#[expect(missing_debug_implementations, reason = "for models")]
pub struct LastChange(LineWords);

impl LastChange {
    /// Creates the time zero.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "as the one it stands for")]
    pub fn new() -> Self {
        Self(LineWords::new(Minted::from_place(Place::from_bits(0)), 0))
    }

    /// Raises it to `now`, and returns when a change begins.
    #[must_use]
    pub fn raise(&self, now: u64) -> Option<u64> {
        self.0.raise(now)
    }
}
