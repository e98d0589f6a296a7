//! Waiting for send tokens, in virtual time and in real time.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]

extern crate alloc;

mod classes;
mod forms;
mod loops;
mod panics;
mod proportion;
mod rises;
mod runtimes;
mod sets;
mod steady;
mod world;
