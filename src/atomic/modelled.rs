//! What the models look at that the public types make no room for: only under `--cfg loom`.

#[cfg(feature = "std")]
use super::cells::{self, Condition, Counts};
use super::counter::{NUMBER, Slots, Stripes};
use super::multi_word::MultiWord;
pub use super::send_rate::modelled::*;
#[cfg(feature = "std")]
use super::usage;

/// Makes public types that stand for those of the crate, and forward to them.
macro_rules! stand_ins {
    ($(
        $(#[$doc:meta])*
        $name:ident($inner:ty) {
            let $new:ident($($given:ident: $kind:ty)?) = $made:expr;
            $($method:ident($($argument:ident: $of:ty),*) $(-> $result:ty)?;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[allow(missing_debug_implementations, reason = "for models")]
        pub struct $name($inner);

        #[allow(clippy::must_use_candidate, reason = "for models")]
        impl $name {
            /// Creates it.
            pub fn $new($($given: $kind)?) -> Self {
                Self($made)
            }

            $(
                /// As the method of the type that it stands for.
                pub fn $method(&self $(, $argument: $of)*) $(-> $result)? {
                    self.0.$method($($argument),*)
                }
            )*
        }
    )*};
}
pub(super) use stand_ins;

stand_ins! {
    /// The numbers of threads.
    Numbers(Slots) {
        let new() = Slots::new();
        take() -> Option<usize>;
        take_this(number: usize) -> bool;
        give_back(number: usize);
    }

    /// A count in stripes.
    Count(Stripes) {
        let new() = Stripes::new(0);
        sum() -> u64;
    }

    /// A value of two words that is replaced as a whole.
    Pair(MultiWord<2>) {
        let new() = MultiWord::new([0, 0]);
    }
}

#[cfg(feature = "std")]
stand_ins! {
    /// What is so or not.
    News(Counts) {
        let new() = Counts::new();
    }

    /// Who uses a thing that is dropped when it is unused.
    Usage(usage::Usage) {
        let entered() = usage::Usage::entered();
        place() -> bool;
        is_placed() -> bool;
        leave_unplaced() -> bool;
        enter() -> bool;
        leave();
        look() -> Option<bool>;
        retire() -> bool;
        retire_unlooked() -> bool;
        is_retired() -> bool;
        is_used() -> bool;
    }

    /// The places of a bounded store.
    Places(usage::Occupancy) {
        let new(most: u64) = usage::Occupancy::new(most);
    }

    /// How long nothing has been delivered.
    Drought(cells::Drought) {
        let new() = cells::Drought::new();
        throttled(now: u64, longest: u64) -> u64;
        resumed(now: u64, longest: u64);
        delivered();
        length(now: u64) -> Option<u64>;
    }
}

/// Lets the calling thread have `number`, by which it finds the words that are its own.
pub fn go_by(number: usize) {
    NUMBER.with(|own| own.set(number));
}

#[cfg(feature = "std")]
impl News {
    /// Notes whether it is so. Returns `true` if that is news.
    #[must_use]
    pub fn note(&self, so: bool) -> bool {
        self.0.note(Condition::Limiting, so)
    }

    /// As [`note`](Self::note), of another state.
    #[must_use]
    pub fn note_other(&self, so: bool) -> bool {
        self.0.note(Condition::Exhausted, so)
    }

    /// Returns `true` if it is due at `now`, and lets it be due again after `span`.
    #[must_use]
    pub fn is_due(&self, now: u64, span: u64) -> bool {
        self.0.is_due(now, span)
    }
}

impl Count {
    /// Adds one, for the thread with `number`.
    pub fn add_one_as(&self, number: usize) {
        self.0.add_as(number, 1);
    }
}

#[cfg(feature = "std")]
impl Places {
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

impl Pair {
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
