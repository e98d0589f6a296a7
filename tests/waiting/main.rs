//! Waiting for send tokens, in virtual time and in real time.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]

extern crate alloc;

mod classes;
mod forms;
mod in_flight;
mod loops;
mod rises;
mod runtimes;
mod sets;
mod steady;
mod world;
