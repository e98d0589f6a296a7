//! The retry loop: blocking, asynchronous and driven by hand, with its limits and what an outer loop hands down.
#![cfg(feature = "std")]

extern crate alloc;

#[path = "../support/mod.rs"]
mod support;

mod attempts;
#[cfg(feature = "classify")]
mod batches;
mod cancelled;
mod limits;
#[cfg(feature = "tokio")]
mod limits_async;
mod outer;
mod parts;
mod reporting;
#[cfg(feature = "tokio")]
mod run_async;
mod run_loop;
