//! Counts that many threads add to without meeting, and the numbers of threads that they go by.

mod owner;
#[cfg(any(
    all(feature = "std", not(all(shuttle, feature = "shuttle"))),
    all(loom, feature = "loom")
))]
mod slots;
mod stripes;
// Without thread locals no threads can be numbered, and models number their own.
#[cfg(all(
    feature = "std",
    not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))
))]
mod threads;
#[cfg(not(all(
    feature = "std",
    not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))
)))]
mod threads {
    /// Returns a number that no thread has to itself.
    #[cfg(not(all(loom, feature = "loom")))]
    pub(in crate::atomic) const fn number() -> usize {
        super::SLOTS
    }

    #[cfg(all(loom, feature = "loom"))]
    loom::thread_local! {
        /// Set by models.
        pub(in crate::atomic) static NUMBER: core::cell::Cell<usize> =
            core::cell::Cell::new(super::SLOTS);
    }

    /// Returns the number that a model has given to the calling thread; without one, a number that
    /// no thread has to itself.
    #[cfg(all(loom, feature = "loom"))]
    pub(in crate::atomic) fn number() -> usize {
        NUMBER.with(core::cell::Cell::get)
    }

    pub(in crate::atomic) use number as known_number;

    /// Does nothing: there are no numbers, or they are the model's.
    pub(in crate::atomic) fn stand_in(_number: usize, _work: impl FnOnce()) {}
}

#[cfg(all(loom, feature = "loom"))]
pub(super) use slots::Slots;
pub(super) use stripes::{Stripe, Stripes, cores, own_words};
#[cfg(all(loom, feature = "loom"))]
pub(super) use threads::NUMBER;
pub(super) use threads::{known_number, number, stand_in};

/// How many numbers there are: as many as machines have cores, or more.
const SLOTS: usize = 256;
