//! Counts that many threads add to without meeting, and the numbers of threads that they go by.

mod slots;
mod stripes;

#[cfg(all(loom, feature = "loom"))]
pub(super) use slots::Slots;
pub(super) use stripes::{Stripe, Stripes};
