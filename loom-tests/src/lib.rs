//! Models of the atomic core, one module for each of its files, run over every interleaving.
//!
//! Out of reach here: a `compare_exchange_weak` that fails for no reason (loom's never does), load
//! buffering, which loom does not explore, and any order that only `SeqCst` accesses forbid, which
//! loom reports as possible. `teeth.rs` holds twins of the same code with the mistakes that others
//! have made: a model that stops biting is noticed there.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test --release -p loom-tests --features strategies --target-dir target/loom`.
#![cfg(all(loom, test))]
#![expect(
    clippy::float_arithmetic,
    clippy::arithmetic_side_effects,
    reason = "a model may overflow, and fail"
)]

extern crate alloc;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

mod classes;
#[cfg(feature = "strategies")]
mod counts;
mod declared;
#[cfg(feature = "strategies")]
mod drought;
mod forget;
mod lease;
mod line;
mod multi_word;
#[cfg(feature = "strategies")]
mod occupancy;
mod paced;
mod pools;
mod quota;
mod send_rate;
mod sets;
mod stripes;
mod teeth;
#[cfg(feature = "strategies")]
mod usage;
#[cfg(feature = "strategies")]
mod waiters;

/// Runs `model` over every interleaving, or over those with at most `bound` preemptions.
///
/// A model that loom runs only once has no two threads that meet: that is a mistake in the model.
fn explore(bound: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    // Not loom's: it counts across the runs of a model.
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = bound;
    builder.max_branches = 20_000;
    builder.check(move || {
        counter.fetch_add(1, Relaxed);
        model();
    });
    let runs = runs.load(Relaxed);
    assert!(runs > 1, "the model was run once");
    println!("{runs} interleavings");
}
