//! Counts that many threads add to without meeting, and the numbers of threads that they go by.

#[cfg(any(
    all(feature = "std", not(all(shuttle, feature = "shuttle"))),
    all(loom, feature = "loom")
))]
mod slots;
mod stripes;
// There are none to number without thread locals, and models number their own.
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
    pub(super) const fn number() -> usize {
        super::SLOTS
    }
}

#[cfg(all(loom, feature = "loom"))]
pub(super) use slots::Slots;
pub(super) use stripes::{Stripe, Stripes};

/// How many numbers there are: as many as machines have cores, or more.
const SLOTS: usize = 256;
