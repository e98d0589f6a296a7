//! Models of the atomic core, one module for each of its files, run over every interleaving.
//!
//! Out of reach here: a `compare_exchange_weak` that fails for no reason (loom's never does), load
//! buffering, which loom does not explore, and any order that only `SeqCst` accesses forbid, which
//! loom reports as possible. `teeth.rs` holds twins of the same code with the mistakes that others
//! have made: a model that stops biting is noticed there.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test --release -p loom-tests --target-dir target/loom`.
#![cfg(all(loom, test))]
#![expect(
    clippy::float_arithmetic,
    clippy::arithmetic_side_effects,
    reason = "a model may overflow, and fail"
)]

mod line;
mod quota;
mod send_rate;
mod teeth;
